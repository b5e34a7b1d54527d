//! Answers of SHOW and EXPLAIN as record batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringViewArray};
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use mayfly_types::{ColumnType, MySqlError};

use crate::errors;

/// Longest text of a listing's column, as its declared type says it.
const TEXT_LENGTH: u32 = 1024;

/// A table that is written row by row.
pub(crate) struct Listing {
    columns: Vec<(&'static str, bool)>,
    rows: Vec<Vec<Option<String>>>,
}

impl Listing {
    /// A listing of text columns.
    pub(crate) fn new(columns: &[&'static str]) -> Listing {
        Listing {
            columns: columns.iter().map(|name| (*name, false)).collect(),
            rows: Vec::new(),
        }
    }

    /// Makes some columns numbers.
    pub(crate) fn with_numbers(mut self, names: &[&str]) -> Listing {
        for (name, is_number) in &mut self.columns {
            *is_number = names.contains(name);
        }
        self
    }

    pub(crate) fn push(&mut self, row: Vec<Option<String>>) {
        self.rows.push(row);
    }

    /// Keeps the rows of which a column matches.
    pub(crate) fn retain(&mut self, column: usize, keep: impl Fn(&str) -> bool) {
        self.rows
            .retain(|row| row[column].as_deref().is_some_and(&keep));
    }

    /// The rows as a batch; `name` replaces the name of the first column if given.
    pub(crate) fn batch(&self, name: Option<&str>) -> Result<RecordBatch, MySqlError> {
        let mut fields = Vec::with_capacity(self.columns.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for (index, (label, is_number)) in self.columns.iter().enumerate() {
            let label = if index == 0 {
                name.unwrap_or(label)
            } else {
                label
            };
            let cells = self
                .rows
                .iter()
                .map(|row| row.get(index).cloned().flatten());
            if *is_number {
                let column_type = ColumnType::BigInt { unsigned: false };
                fields.push(column_type.to_arrow(label, true));
                let numbers = cells.map(|cell| cell.and_then(|text| text.parse::<i64>().ok()));
                arrays.push(Arc::new(Int64Array::from_iter(numbers)));
            } else {
                fields.push(text_field(label));
                arrays.push(Arc::new(StringViewArray::from_iter(cells)));
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|error| errors::from_plan(&error.into()))
    }
}

fn text_field(label: &str) -> Field {
    ColumnType::VarChar {
        length: TEXT_LENGTH,
    }
    .to_arrow(label, true)
}

/// A cell.
pub(crate) fn some(text: impl ToString) -> Option<String> {
    Some(text.to_string())
}

/// Whether `text` matches a pattern of LIKE, without regard to case.
pub(crate) fn is_like(text: &str, pattern: &str) -> bool {
    fn matches(text: &[char], pattern: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|skip| matches(&text[skip..], rest)),
            ['_', rest @ ..] => !text.is_empty() && matches(&text[1..], rest),
            ['\\', escaped, rest @ ..] => {
                text.first() == Some(escaped) && matches(&text[1..], rest)
            }
            [other, rest @ ..] => text.first() == Some(other) && matches(&text[1..], rest),
        }
    }
    let characters = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    matches(&characters(text), &characters(pattern))
}
