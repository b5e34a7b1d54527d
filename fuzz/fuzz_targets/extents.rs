//! Pages whose extents are damaged on the disk.

#![no_main]

mayfly_fuzz::target!(mayfly_fuzz::extents::check, mayfly_fuzz::extents::plausible);
