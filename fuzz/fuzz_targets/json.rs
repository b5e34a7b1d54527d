//! JSON files, against what was written into them.

#![no_main]

mayfly_fuzz::target!(
    mayfly_fuzz::records::json::check,
    mayfly_fuzz::records::json::plausible
);
