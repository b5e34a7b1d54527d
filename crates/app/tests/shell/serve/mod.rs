//! `mayfly serve` as MySQL's clients meet it.

mod clients;
mod running;
mod shell;
