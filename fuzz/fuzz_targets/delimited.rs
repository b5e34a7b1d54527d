//! Files of LOAD DATA, in pieces of any length.

#![no_main]

mayfly_fuzz::target!(
    mayfly_fuzz::records::delimited::check,
    mayfly_fuzz::records::delimited::plausible
);
