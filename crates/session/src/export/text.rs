//! Files of text: rows are spelled into a buffer, which is written when it is full.

use arrow::record_batch::RecordBatch;
use mayfly_types::MySqlError;

use super::delimited::DelimitedRows;
use super::sink::Sink;
use crate::new_file::{NewFile, cannot_write};
use crate::outcome::ColumnInfo;
use crate::render;
use crate::row_text::{JsonRows, text_of, write_csv_field, write_csv_header};

/// Bytes that are written together.
const BUFFER_BYTES: usize = 256 << 10;

/// A text file that is being written.
pub(crate) struct TextWriter {
    // fixed
    path: String,
    rows: TextRows,
    // state
    sink: Sink,
    buffer: Vec<u8>,
}

/// How rows are spelled.
pub(super) enum TextRows {
    /// As LOAD DATA reads them.
    Delimited(DelimitedRows),
    Csv {
        columns: Vec<ColumnInfo>,
        delimiter: u8,
    },
    Json {
        columns: Vec<ColumnInfo>,
        rows: JsonRows,
    },
}

impl TextRows {
    /// Appends a row; `cell` is memory to work in.
    fn write_row(&self, out: &mut Vec<u8>, cell: &mut Vec<u8>, batch: &RecordBatch, row: usize) {
        match self {
            TextRows::Delimited(rows) => rows.write_row(out, batch, row),
            TextRows::Csv { columns, delimiter } => {
                each_cell(batch, row, columns, cell, |index, column, cell| {
                    if index > 0 {
                        out.push(*delimiter);
                    }
                    if let Some(cell) = cell {
                        write_csv_field(&text_of(cell, &column.column_type), *delimiter, out);
                    }
                });
                out.push(b'\n');
            }
            TextRows::Json { columns, rows } => {
                each_cell(batch, row, columns, cell, |index, _, cell| {
                    rows.write_cell(index, cell, out);
                });
                rows.write_end(out);
            }
        }
    }
}

/// Shows the cells of a row; `None` is NULL.
fn each_cell(
    batch: &RecordBatch,
    row: usize,
    columns: &[ColumnInfo],
    cell: &mut Vec<u8>,
    mut show: impl FnMut(usize, &ColumnInfo, Option<&[u8]>),
) {
    for (index, (array, column)) in batch.columns().iter().zip(columns).enumerate() {
        cell.clear();
        let is_some = render::write_cell(cell, array, row, &column.column_type);
        show(index, column, is_some.then_some(cell.as_slice()));
    }
}

impl TextWriter {
    /// Begins a file, with a line that names its columns if it is to have one.
    pub(super) fn new(path: &str, sink: Sink, rows: TextRows, has_header: bool) -> TextWriter {
        let mut buffer = Vec::new();
        if let TextRows::Csv { columns, delimiter } = &rows
            && has_header
        {
            write_csv_header(columns, *delimiter, &mut buffer);
        }
        TextWriter {
            path: path.to_owned(),
            rows,
            sink,
            buffer,
        }
    }

    /// Whether fields may hold what ends them, unescaped.
    pub(super) fn is_end_ambiguous(&self) -> bool {
        match &self.rows {
            TextRows::Delimited(rows) => rows.is_end_ambiguous(),
            TextRows::Csv { .. } | TextRows::Json { .. } => false,
        }
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), MySqlError> {
        let mut cell = Vec::new();
        for row in 0..batch.num_rows() {
            let TextWriter { rows, buffer, .. } = self;
            rows.write_row(buffer, &mut cell, batch, row);
            if self.buffer.len() >= BUFFER_BYTES {
                self.write_buffer()?;
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<NewFile, MySqlError> {
        self.write_buffer()?;
        let TextWriter { path, sink, .. } = self;
        sink.finish().map_err(|error| cannot_write(&path, &error))
    }

    fn write_buffer(&mut self) -> Result<(), MySqlError> {
        let written = self.sink.write(&self.buffer);
        written.map_err(|error| cannot_write(&self.path, &error))?;
        self.buffer.clear();
        Ok(())
    }
}
