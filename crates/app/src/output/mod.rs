//! Result sets as text: boxes, `mysql -B`, CSV, JSON lines, one column per line.
//!
//! **Owns** the layout around the cells. **Never** renders a value (that is
//! `mayfly_session::render`, the only place) and never holds a result set: every format writes rows
//! as they come. The box format looks at a first window of rows for its widths.

mod cells;
mod csv;
mod json;
mod table;
mod tsv;
mod vertical;

use std::io::{self, Write};

use mayfly_session::ColumnInfo;

pub use cells::Cells;

use crate::args::Format;

/// Writes one result set.
pub trait ResultWriter {
    /// Takes the next row. The first row comes before any output, so that an empty result set
    /// prints nothing but what [`ResultWriter::finish`] does.
    fn row(&mut self, cells: &Cells, out: &mut dyn Write) -> io::Result<()>;

    /// Ends the result set after its last row.
    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()>;
}

/// The writer of `format`, or of one column per line when the statement ended with `\G`; with or
/// without the `names` of the columns, which JSON always has.
pub fn writer(
    format: Format,
    vertical: bool,
    names: bool,
    columns: &[ColumnInfo],
) -> Box<dyn ResultWriter> {
    match format {
        Format::Table | Format::Tsv if vertical => {
            Box::new(vertical::Vertical::new(columns, names))
        }
        Format::Table => Box::new(table::Table::new(columns, names)),
        Format::Tsv => Box::new(tsv::Tsv::new(columns, names)),
        Format::Csv => Box::new(csv::Csv::new(columns, names)),
        Format::Json => Box::new(json::Json::new(columns)),
    }
}
