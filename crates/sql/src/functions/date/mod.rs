//! Functions that read, make and move days and times, one family a file.

mod clock;
mod digits;
mod format;
pub(crate) mod interval;
mod parts;
mod shift;
mod times;

use super::define::Definition;

pub(super) static TABLES: [&[Definition]; 5] = [
    clock::FUNCTIONS,
    parts::FUNCTIONS,
    times::FUNCTIONS,
    shift::FUNCTIONS,
    format::FUNCTIONS,
];
