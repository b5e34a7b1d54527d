//! Tables, trees, rows of groups and runs whose pages are damaged on the disk.

#![no_main]

mayfly_fuzz::target!(mayfly_fuzz::tables::check, mayfly_fuzz::tables::plausible);
