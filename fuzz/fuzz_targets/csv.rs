//! CSV files, against a model that reads byte by byte.

#![no_main]

mayfly_fuzz::target!(
    mayfly_fuzz::records::csv::check,
    mayfly_fuzz::records::csv::plausible
);
