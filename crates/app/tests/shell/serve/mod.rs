//! `mayfly serve` as MySQL's clients meet it.

mod administration;
mod ansi_quotes;
mod character_sets;
mod clients;
mod comments;
mod cursors;
mod drivers;
mod exhaustion;
mod hostile;
mod metrics;
mod planning;
mod raw;
mod resources;
mod running;
mod service;
mod session;
mod shell;
mod slow_log;
