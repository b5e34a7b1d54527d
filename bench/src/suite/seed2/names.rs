//! What the contenders are called in the tables.

pub(super) const MAYFLY: &str = "Mayfly";
pub(super) const PREAD: &str = "MyISAM";
pub(super) const MMAP: &str = "MyISAM mmap";

/// Mayfly in a quarter of the table, by how it reads its file.
pub(super) const QUARTERS: [(&str, &str); 3] = [
    ("Mayfly 1/4 direct", "direct"),
    ("Mayfly 1/4 buffered", "buffered"),
    ("Mayfly 1/4 mmap", "mmap"),
];
