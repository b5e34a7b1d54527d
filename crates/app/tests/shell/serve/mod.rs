//! `mayfly serve` as MySQL's clients meet it.

mod clients;
mod drivers;
mod metrics;
mod running;
mod shell;
mod slow_log;
