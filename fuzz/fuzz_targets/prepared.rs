//! Commands on prepared statements, against a model of what must be answered.

#![no_main]

mayfly_fuzz::target!(
    mayfly_fuzz::wire::prepared::check,
    mayfly_fuzz::wire::prepared::plausible
);
