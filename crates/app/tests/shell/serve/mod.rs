//! `mayfly serve` as MySQL's clients meet it.

mod character_sets;
mod clients;
mod cursors;
mod drivers;
mod metrics;
mod running;
mod shell;
mod slow_log;
