//! The columns of queries that were described, by their texts.

use std::collections::HashMap;

use super::name_resolution::Meanings;
use crate::column_info::ColumnInfo;

/// Queries whose columns are kept; the bytes of the longest, and its columns.
pub(super) const QUERIES_MAX: usize = 128;
pub(super) const TEXT_BYTES_MAX: usize = 4 << 10;
pub(super) const COLUMNS_MAX: usize = 64;
/// The columns of all of them: about a quarter of a megabyte.
pub(super) const COLUMNS_IN_ALL_MAX: usize = 1024;

/// The columns of statements, by their text; of one that changes rows it is known that it has none,
/// and that its names mean something.
#[derive(Default)]
pub(crate) struct Described {
    pub(super) queries: HashMap<String, Columns>,
    pub(super) columns_in_all: usize,
}

pub(super) struct Columns {
    pub(super) columns: Vec<ColumnInfo>,
    pub(super) meanings: Meanings,
}

impl Described {
    pub(super) fn keep(&mut self, text: &str, columns: Columns) {
        if text.len() > TEXT_BYTES_MAX || columns.columns.len() > COLUMNS_MAX {
            return;
        }
        let count = columns.columns.len();
        let is_full =
            self.queries.len() >= QUERIES_MAX || self.columns_in_all + count > COLUMNS_IN_ALL_MAX;
        if is_full {
            *self = Described::default();
        }
        self.columns_in_all += count;
        self.queries.insert(text.to_owned(), columns);
    }
}
