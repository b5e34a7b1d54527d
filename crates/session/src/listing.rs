//! Answers of SHOW and EXPLAIN as record batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use mayfly_types::{ColumnType, MySqlError};

use crate::errors;

/// Longest text of a listing's column, as its declared type says it.
const TEXT_LENGTH: u32 = 1024;

/// Digits of a number of seconds, before and behind the point, as MySQL declares them.
const SECONDS: (u8, u8) = (9, 6);

/// What the cells of a column are.
#[derive(Clone, Copy)]
enum Cells {
    Texts,
    Numbers,
    Seconds,
}

/// A table that is written row by row.
pub(crate) struct Listing {
    columns: Vec<(&'static str, Cells)>,
    rows: Vec<Vec<Option<String>>>,
}

impl Listing {
    /// A listing of text columns.
    pub(crate) fn new(columns: &[&'static str]) -> Listing {
        Listing {
            columns: columns.iter().map(|name| (*name, Cells::Texts)).collect(),
            rows: Vec::new(),
        }
    }

    /// Makes some columns numbers.
    pub(crate) fn with_numbers(self, names: &[&str]) -> Listing {
        self.with(Cells::Numbers, names)
    }

    /// Makes some columns times in seconds.
    pub(crate) fn with_seconds(self, names: &[&str]) -> Listing {
        self.with(Cells::Seconds, names)
    }

    fn with(mut self, new: Cells, names: &[&str]) -> Listing {
        for (name, cells) in &mut self.columns {
            if names.contains(name) {
                *cells = new;
            }
        }
        self
    }

    pub(crate) fn push(&mut self, row: Vec<Option<String>>) {
        self.rows.push(row);
    }

    /// Some of the columns as lines of the slow log: a line of names, and one for each row. Names
    /// that the listing does not have are NULL.
    pub(crate) fn log_lines(&self, names: &[&str]) -> String {
        let place = |name: &&str| self.columns.iter().position(|(known, _)| known == name);
        let places: Vec<Option<usize>> = names.iter().map(place).collect();
        let mut lines = format!("# explain: {}\n", names.join("\t"));
        for row in &self.rows {
            let cell = |place: &Option<usize>| place.and_then(|place| row[place].as_deref());
            let cells: Vec<&str> = { places.iter() }
                .map(|place| cell(place).unwrap_or("NULL"))
                .collect();
            lines += &format!("# explain: {}\n", cells.join("\t").replace('\n', " "));
        }
        lines
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
        for (index, (label, kind)) in self.columns.iter().enumerate() {
            let label = if index == 0 {
                name.unwrap_or(label)
            } else {
                label
            };
            let cells = self
                .rows
                .iter()
                .map(|row| row.get(index).cloned().flatten());
            match kind {
                Cells::Texts => {
                    fields.push(text_field(label));
                    arrays.push(Arc::new(StringViewArray::from_iter(cells)));
                }
                Cells::Numbers => {
                    let column_type = ColumnType::BigInt { unsigned: false };
                    fields.push(column_type.to_arrow(label, true));
                    let numbers = cells.map(|cell| cell.and_then(|text| text.parse::<i64>().ok()));
                    arrays.push(Arc::new(Int64Array::from_iter(numbers)));
                }
                Cells::Seconds => {
                    let (precision, scale) = SECONDS;
                    let column_type = ColumnType::Decimal {
                        precision,
                        scale,
                        unsigned: false,
                    };
                    let field = column_type.to_arrow(label, true);
                    let texts: ArrayRef = Arc::new(StringViewArray::from_iter(cells));
                    let seconds = cast(&texts, field.data_type());
                    arrays.push(seconds.map_err(|error| errors::from_plan(&error.into()))?);
                    fields.push(field);
                }
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
    let characters = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let (text, pattern) = (characters(text), characters(pattern));
    let (mut at, mut of) = (0, 0);
    // Where to go on when the last `%` takes one letter more: never further back, so that no
    // pattern takes longer than its length times that of the text.
    let mut again = None;
    loop {
        let (is_one, width) = match pattern.get(of..).unwrap_or_default() {
            ['%', ..] => {
                of += 1;
                again = Some((at, of));
                continue;
            }
            [] if at == text.len() => return true,
            ['_', ..] => (at < text.len(), 1),
            ['\\', escaped, ..] => (text.get(at) == Some(escaped), 2),
            [other, ..] => (text.get(at) == Some(other), 1),
            [] => (false, 0),
        };
        if is_one {
            (at, of) = (at + 1, of + width);
            continue;
        }
        match again {
            Some((from, behind)) if from < text.len() => {
                again = Some((from + 1, behind));
                (at, of) = (from + 1, behind);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_like;

    #[test]
    fn names_match_patterns() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("a", "", false),
            ("ab", "AB", true),
            ("ab", "a_", true),
            ("ab", "a__", false),
            ("ab", "%b", true),
            ("abab", "%ab", true),
            ("aab", "%a_", true),
            ("aab", "a%c%", false),
            ("a_b", "a\\_b", true),
            ("axb", "a\\_b", false),
            ("50%", "50\\%", true),
            ("created_tmp_tables", "%tmp%", true),
            (
                "max_heap_table_size",
                "%_%_%_%_%_%_%_%_%_%_%_%_%_%_%!",
                false,
            ),
        ] {
            assert_eq!(is_like(text, pattern), expected, "{text} LIKE {pattern}");
        }
    }
}
