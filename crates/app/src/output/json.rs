//! One JSON object a line.

use std::io::{self, Write};

use mayfly_session::ColumnInfo;
use mayfly_session::row_text::JsonRows;

use super::cells::Cells;
use super::writer::ResultWriter;

/// Objects as INTO OUTFILE writes them too.
pub struct Json {
    rows: JsonRows,
    /// The row that is being written.
    line: Vec<u8>,
}

impl Json {
    pub fn new(columns: &[ColumnInfo]) -> Self {
        Self {
            rows: JsonRows::new(columns),
            line: Vec::new(),
        }
    }
}

impl ResultWriter for Json {
    fn row(&mut self, cells: &Cells, out: &mut dyn Write) -> io::Result<()> {
        self.line.clear();
        for (column, cell) in cells.iter().enumerate() {
            self.rows.write_cell(column, cell, &mut self.line);
        }
        self.rows.write_end(&mut self.line);
        out.write_all(&self.line)
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
