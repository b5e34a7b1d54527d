//! Answers of SHOW and EXPLAIN, and tables of INFORMATION_SCHEMA, as record batches.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringViewArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema, TimeUnit};
use arrow::error::ArrowError;
use arrow::record_batch::{RecordBatch, RecordBatchOptions};
use mayfly_types::{CASELESS, COLLATION_KEY, ColumnType, MySqlError};

use crate::errors;

/// A column of text that says no length of its own.
const TEXT: ColumnType = ColumnType::VarChar { length: 1024 };

const NUMBER: ColumnType = ColumnType::BigInt { unsigned: false };

/// A number of seconds, as MySQL declares it.
const SECONDS: ColumnType = ColumnType::Decimal {
    precision: 9,
    scale: 6,
    unsigned: false,
};

/// A table that is written row by row. Cells are texts that its columns' types can be read from.
pub(crate) struct Listing {
    columns: Vec<(&'static str, ColumnType)>,
    rows: Vec<Vec<Option<String>>>,
}

impl Listing {
    /// A listing of text columns.
    pub(crate) fn new(columns: &[&'static str]) -> Listing {
        Listing {
            columns: columns.iter().map(|name| (*name, TEXT)).collect(),
            rows: Vec::new(),
        }
    }

    /// A listing whose columns are declared as in CREATE TABLE: `ID bigint, NAME varchar(64)`. A
    /// comma and a space part them; a type that is not one is a text.
    pub(crate) fn declared(columns: &'static str) -> Listing {
        let column = |(name, declared): (&'static str, &str)| {
            let column_type = declared.parse::<ColumnType>();
            (name, column_type.unwrap_or(TEXT))
        };
        Listing {
            columns: declared_columns(columns).map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Makes some columns numbers.
    pub(crate) fn with_numbers(self, names: &[&str]) -> Listing {
        self.with(&NUMBER, names)
    }

    /// Makes some columns times in seconds.
    pub(crate) fn with_seconds(self, names: &[&str]) -> Listing {
        self.with(&SECONDS, names)
    }

    fn with(mut self, new: &ColumnType, names: &[&str]) -> Listing {
        for (name, column_type) in &mut self.columns {
            if names.contains(name) {
                column_type.clone_from(new);
            }
        }
        self
    }

    /// The same rows under other names and in another order: pairs of a new name and the one that
    /// the column has here. What is not here is NULL.
    pub(crate) fn renamed(&self, columns: &[(&'static str, &str)]) -> Listing {
        let place = |old: &str| self.columns.iter().position(|(name, _)| *name == old);
        let places: Vec<Option<usize>> = columns.iter().map(|(_, old)| place(old)).collect();
        let column_type = |place: &Option<usize>| match place {
            Some(place) => self.columns[*place].1.clone(),
            None => TEXT,
        };
        let names = columns.iter().map(|(new, _)| *new);
        let cell = |row: &[Option<String>], place: &Option<usize>| {
            place.and_then(|place| row.get(place).cloned().flatten())
        };
        Listing {
            columns: names.zip(places.iter().map(column_type)).collect(),
            rows: { self.rows.iter() }
                .map(|row| places.iter().map(|place| cell(row, place)).collect())
                .collect(),
        }
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

    /// Puts rows into the order of a column, but for those that come first.
    pub(crate) fn sort_behind(
        &mut self,
        column: usize,
        is_first: impl Fn(&[Option<String>]) -> bool,
    ) {
        let key = |row: &Vec<Option<String>>| match is_first(row) {
            true => None,
            false => row[column].clone(),
        };
        self.rows.sort_by_cached_key(key);
    }

    /// Keeps the rows of which a column matches.
    pub(crate) fn retain(&mut self, column: usize, keep: impl Fn(&str) -> bool) {
        self.rows
            .retain(|row| row[column].as_deref().is_some_and(&keep));
    }

    /// The names of the columns and their types.
    pub(crate) fn columns(&self) -> &[(&'static str, ColumnType)] {
        &self.columns
    }

    /// The rows as a batch; `name` replaces the name of the first column if given.
    pub(crate) fn batch(&self, name: Option<&str>) -> Result<RecordBatch, MySqlError> {
        let mut fields = Vec::with_capacity(self.columns.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for (index, (label, column_type)) in self.columns.iter().enumerate() {
            let label = if index == 0 {
                name.unwrap_or(label)
            } else {
                label
            };
            let cells = self.rows.iter().map(|row| row.get(index)?.as_deref());
            let texts: ArrayRef = Arc::new(StringViewArray::from_iter(cells));
            let mut field = column_type.to_arrow(label, true);
            if column_type.is_text() && !counts_case(label) {
                let metadata = field.metadata_mut();
                metadata.insert(COLLATION_KEY.to_owned(), CASELESS.to_owned());
            }
            let values = values_of(&texts, field.data_type());
            arrays.push(values.map_err(|error| errors::from_plan(&error.into()))?);
            fields.push(field);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|error| errors::from_plan(&error.into()))
    }
}

/// The values of cells. A cell that is no value of its type is NULL.
fn values_of(texts: &ArrayRef, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    match data_type {
        // Arrow reads times of a day, and no durations.
        DataType::Duration(TimeUnit::Microsecond) => {
            let times = cast(texts, &DataType::Time64(TimeUnit::Microsecond))?;
            cast(&cast(&times, &DataType::Int64)?, data_type)
        }
        _ => cast(texts, data_type),
    }
}

/// Whether case counts in a column: in the names of databases and tables it does, as in MySQL on a
/// file system where it does.
fn counts_case(column: &str) -> bool {
    let column = column.to_ascii_uppercase();
    let ends = ["SCHEMA", "SCHEMA_NAME", "TABLE_NAME"];
    ["DB", "DATABASE", "TABLE"].contains(&column.as_str())
        || column.starts_with("TABLES_IN_")
        || ends.iter().any(|end| column.ends_with(end))
}

/// The names of declared columns, each with the text of its type.
pub(crate) fn declared_columns(
    columns: &'static str,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let columns = columns.split(", ");
    columns.map(|column| column.split_once(' ').unwrap_or((column, "")))
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
    use super::{Listing, is_like, some};

    #[test]
    fn cells_are_read_as_their_types() {
        let mut listing =
            Listing::declared("id bigint unsigned, ms decimal(22,3), at datetime, took time(6)");
        listing.push(vec![
            some(u64::MAX),
            some("1.5"),
            some("2024-02-29 01:02:03"),
            some("01:02:03.000004"),
        ]);
        listing.push(vec![some("x"), None, None, some("x")]);
        let batch = listing.batch(None).unwrap();
        let shown = |column: usize, row: usize| {
            arrow::util::display::array_value_to_string(batch.column(column), row).unwrap()
        };
        assert_eq!(shown(0, 0), u64::MAX.to_string());
        assert_eq!(shown(1, 0), "1.500");
        assert_eq!(shown(2, 0), "2024-02-29T01:02:03");
        assert_eq!(shown(3, 0), "PT3723.000004S");
        assert_eq!(batch.column(0).null_count(), 1);
        assert_eq!(batch.column(3).null_count(), 1);
    }

    #[test]
    fn columns_take_other_names_and_places() {
        let mut listing = Listing::new(&["Name", "Size"]).with_numbers(&["Size"]);
        listing.push(vec![some("a"), some(7)]);
        let renamed = listing.renamed(&[("SIZE", "Size"), ("NONE", "None"), ("NAME", "Name")]);
        let batch = renamed.batch(None).unwrap();
        let shown = |column: usize| {
            arrow::util::display::array_value_to_string(batch.column(column), 0).unwrap()
        };
        assert_eq!(
            (shown(0), shown(1), shown(2)),
            ("7".into(), "".into(), "a".into())
        );
        assert_eq!(batch.schema_ref().field(0).name(), "SIZE");
    }

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
