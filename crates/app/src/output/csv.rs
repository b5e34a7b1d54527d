//! Comma-separated rows (RFC 4180, line feeds).

use std::io::{self, Write};

use mayfly_session::ColumnInfo;
use mayfly_session::row_text::{write_csv_cell, write_csv_header};
use mayfly_types::ColumnType;

use super::cells::Cells;
use super::writer::ResultWriter;

const DELIMITER: u8 = b',';

/// A header line even without rows, NULL as an empty field, an empty text as `""`; cells as INTO
/// OUTFILE writes them too.
pub struct Csv {
    types: Vec<ColumnType>,
    header: Option<Vec<u8>>,
    /// The row that is being written.
    line: Vec<u8>,
}

impl Csv {
    pub fn new(columns: &[ColumnInfo], names: bool) -> Self {
        let mut header = Vec::new();
        write_csv_header(columns, DELIMITER, &mut header);
        let types = columns.iter().map(|column| column.column_type.clone());
        Self {
            types: types.collect(),
            header: names.then_some(header),
            line: Vec::new(),
        }
    }

    fn write_header(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match self.header.take() {
            Some(header) => out.write_all(&header),
            None => Ok(()),
        }
    }
}

impl ResultWriter for Csv {
    fn row(&mut self, cells: &Cells, out: &mut dyn Write) -> io::Result<()> {
        self.write_header(out)?;
        self.line.clear();
        for (index, (cell, of)) in cells.iter().zip(&self.types).enumerate() {
            if index > 0 {
                self.line.push(DELIMITER);
            }
            if let Some(cell) = cell {
                write_csv_cell(cell, of, DELIMITER, &mut self.line);
            }
        }
        self.line.push(b'\n');
        out.write_all(&self.line)
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.write_header(out)
    }
}
