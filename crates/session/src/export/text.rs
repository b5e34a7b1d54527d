//! Files of text: rows are spelled into a buffer, which is written when it is full.

use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use mayfly_table::owned::own_bytes;
use mayfly_types::MySqlError;

use super::delimited::DelimitedRows;
use super::sink::Sink;
use crate::column_info::ColumnInfo;
use crate::new_file::{NewFile, cannot_write};
use crate::row_text::{JsonRows, write_csv_cell, write_csv_header};
use crate::{errors, render};

/// Bytes that are written together.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes that are reserved for each byte of a long row before it is spelled: its cell and its
/// spelling. What hex digits or a growing buffer take beyond that is asked for behind each row.
const COPIES: usize = 2;

/// A text file that is being written.
pub(crate) struct TextWriter {
    // fixed
    path: String,
    rows: TextRows,
    // state
    sink: Sink,
    buffer: Vec<u8>,
    /// Of rows that are longer than a buffer.
    memory: MemoryReservation,
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
            TextRows::Delimited(rows) => rows.write_row(out, cell, batch, row),
            TextRows::Csv { columns, delimiter } => {
                each_cell(batch, row, columns, cell, |index, column, cell| {
                    if index > 0 {
                        out.push(*delimiter);
                    }
                    if let Some(cell) = cell {
                        write_csv_cell(cell, &column.column_type, *delimiter, out);
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
    pub(super) fn new(
        path: &str,
        sink: Sink,
        rows: TextRows,
        has_header: bool,
        pool: &Arc<dyn MemoryPool>,
    ) -> TextWriter {
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
            memory: MemoryConsumer::new("long rows of written files").register(pool),
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
        let longest = longest_row_bytes(batch);
        if longest > BUFFER_BYTES {
            self.reserve(longest.saturating_mul(COPIES))?;
        }
        let mut cell = Vec::new();
        for row in 0..batch.num_rows() {
            let TextWriter { rows, buffer, .. } = self;
            rows.write_row(buffer, &mut cell, batch, row);
            // Signs that JSON escapes take even more.
            let held = self.buffer.capacity() + cell.capacity();
            if held > self.memory.size().max(4 * BUFFER_BYTES) {
                self.reserve(held)?;
            }
            if self.buffer.len() >= BUFFER_BYTES {
                self.write_buffer()?;
            }
        }
        if self.memory.size() > 0 {
            self.buffer.shrink_to(BUFFER_BYTES);
            self.memory.free();
        }
        Ok(())
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), MySqlError> {
        let reserved = self.memory.try_resize(bytes);
        reserved.map_err(|error| {
            let mut error = errors::from_plan(&error);
            let place = format!("; a long row of file '{}' is being written", self.path);
            error.message.push_str(&place);
            error
        })
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

/// The most bytes that the values of a row may have, or more than that.
fn longest_row_bytes(batch: &RecordBatch) -> usize {
    let columns = batch
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Utf8View => longest_view(column.as_string_view().views()),
            DataType::BinaryView => longest_view(column.as_binary_view().views()),
            flat if flat.is_primitive() => 0,
            // No value of it is longer than all are.
            _ => own_bytes(column),
        });
    columns.fold(0, usize::saturating_add)
}

/// The longest of some texts: the low half of a view's low half is its length.
fn longest_view(views: &[u128]) -> usize {
    let lengths = views.iter().map(|view| *view as u32);
    lengths.max().map_or(0, |length| length as usize)
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int32Array, StringViewArray};

    use super::*;

    #[test]
    fn the_longest_row_is_as_long_as_its_texts() {
        let short = "x".repeat(7);
        let long = "y".repeat(300_000);
        let numbers: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3]));
        let texts = StringViewArray::from(vec![Some(short.as_str()), None, Some(long.as_str())]);
        let texts: ArrayRef = Arc::new(texts);
        let batch =
            RecordBatch::try_from_iter_with_nullable([("n", numbers, true), ("t", texts, true)]);
        let batch = batch.expect("columns of one length");
        assert_eq!(longest_row_bytes(&batch), 300_000);
        assert_eq!(longest_row_bytes(&batch.slice(0, 2)), 7);
        assert_eq!(longest_row_bytes(&batch.slice(0, 0)), 0);
    }
}
