//! What SHOW TABLE STATUS and INFORMATION_SCHEMA.TABLES say of a table.

use mayfly_table::{Definition, Table};
use mayfly_types::Collation;

use crate::listing::some;

/// The status of a table, from its engine to its comment.
pub(crate) fn status(table: &Table) -> Vec<Option<String>> {
    let (format, options) = row_format(table);
    let mut row = vec![some("Mayfly"), some(10), some(format)];
    row.extend(sizes(table));
    row.push(next_number(table).map(|next| next.to_string()));
    row.extend([None, None, None, some(Collation::default()), None]);
    row.extend([some(options), some(&table.definition().comment)]);
    row
}

/// The same of a log, which is always empty.
pub(crate) fn status_of_log(definition: &Definition) -> Vec<Option<String>> {
    let mut row = vec![some("Mayfly"), some(10), some("Dynamic")];
    row.extend([some(0), some(0), some(0), some(0), some(0), some(0)]);
    row.extend([None, None, None, None, some(Collation::default()), None]);
    row.extend([some(""), some(&definition.comment)]);
    row
}

/// The same of a view, of which nothing is kept.
pub(crate) fn status_of_view() -> Vec<Option<String>> {
    let mut row = vec![None; 16];
    row.push(some("VIEW"));
    row
}

/// The row format, and the options that the table was created with.
fn row_format(table: &Table) -> (&'static str, String) {
    let options = table.definition().options.iter();
    let options: Vec<String> = options
        .map(|(option, value)| format!("{}={value}", option.name().to_lowercase()))
        .collect();
    let format = match table.definition().is_compressed {
        true => "Compressed",
        false => "Dynamic",
    };
    (format, options.join(" "))
}

/// The AUTO_INCREMENT value that comes next, where a column has it.
pub(super) fn next_number(table: &Table) -> Option<u64> {
    let column = table.definition().auto_increment();
    column.map(|_| table.auto_increment())
}

/// Rows, bytes of a row, of all of them, the most that there may be, of indexes, and what is free.
fn sizes(table: &Table) -> [Option<String>; 6] {
    let rows = table.row_count();
    let bytes = table.bytes();
    let average = bytes.checked_div(rows).unwrap_or(0);
    [
        some(rows),
        some(average),
        some(bytes),
        some(0),
        some(table.index_bytes()),
        some(0),
    ]
}
