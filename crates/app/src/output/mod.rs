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
mod writer;

use std::io::{self, Write};

use mayfly_session::ColumnInfo;
use mayfly_types::ColumnType;

pub use cells::Cells;

use crate::args::{Format, WideRows};
pub use writer::ResultWriter;

/// How a result is laid out.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub format: Format,
    /// One column per line, as a statement has it that ends with `\G`.
    pub vertical: bool,
    /// The names of the columns, which JSON always has.
    pub names: bool,
    /// The columns of a terminal, and what becomes of boxes that are wider.
    pub terminal: Option<(usize, WideRows)>,
}

/// The writer of a result.
pub fn writer(layout: &Layout, columns: &[ColumnInfo]) -> Box<dyn ResultWriter> {
    let names = layout.names;
    match layout.format {
        // A statement that asks for it is shown so whatever the format is.
        _ if layout.vertical => Box::new(vertical::Vertical::new(columns, names)),
        Format::Table => Box::new(table::Table::new(columns, names, layout.terminal)),
        Format::Tsv => Box::new(tsv::Tsv::new(columns, names)),
        Format::Csv => Box::new(csv::Csv::new(columns, names)),
        Format::Json => Box::new(json::Json::new(columns)),
    }
}

/// Writes rows of texts that no statement gave.
pub fn write_texts<const COLUMNS: usize>(
    layout: &Layout,
    names: &[&str; COLUMNS],
    rows: impl Iterator<Item = [String; COLUMNS]>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let columns = names.map(|name| ColumnInfo {
        name: name.to_owned(),
        column_type: ColumnType::VarChar { length: 64 },
        nullable: false,
        origin: None,
    });
    let mut writer = writer(layout, &columns);
    let mut cells = Cells::default();
    for row in rows {
        cells.clear();
        for text in row {
            cells.buffer().extend_from_slice(text.as_bytes());
            cells.end();
        }
        writer.row(&cells, out)?;
    }
    writer.finish(out)
}
