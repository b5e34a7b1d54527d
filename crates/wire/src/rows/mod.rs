//! Rows of a result, from Arrow arrays or single values into packets.
//!
//! ```text
//!   RecordBatch -> cells: typed arrays -> Value --+-> text     length and characters
//!   a row by a key ----------------------> Value -+-> binary   NULL bits and fixed widths
//! ```
//!
//! **Source**: "Text Resultset Row", "Binary Protocol Resultset Row".

mod binary;
mod cells;
mod text;

#[cfg(test)]
mod tests;

use arrow_array::RecordBatch;
use bytes::{BufMut, BytesMut};
use mayfly_types::MySqlError;

use crate::column::ColumnDefinition;
use crate::error::{Failure, internal, packet_too_large};
use crate::flags::ServerStatus;
use crate::packets;
use crate::reply::Reply;
use crate::summary::{Format, Summary};
use crate::value::Value;
use cells::Cells;

/// NULL bits of a binary row begin at this bit.
const NULL_BITS_OFFSET: usize = 2;

/// The rows of one result. Ends with [`finish`](Rows::finish); dropped before, the statement must
/// end in an error.
pub struct Rows<'a> {
    reply: &'a mut Reply,
    columns: &'a [ColumnDefinition],
}

impl Reply {
    /// Begins a result of rows: tells the client of its columns. `status` is that before the
    /// statement, for clients that expect it here.
    ///
    /// # Errors
    /// [`Failure::Transport`] when the client is gone.
    pub async fn rows<'a>(
        &'a mut self,
        columns: &'a [ColumnDefinition],
        status: ServerStatus,
    ) -> Result<Rows<'a>, Failure> {
        self.begin_rows(columns, status).await?;
        Ok(Rows::new(self, columns))
    }
}

impl<'a> Rows<'a> {
    pub(crate) fn new(reply: &'a mut Reply, columns: &'a [ColumnDefinition]) -> Rows<'a> {
        Rows { reply, columns }
    }

    /// Writes all rows of a batch; waits while the client does not read. Dropped amid that, as by
    /// a KILL that need not wait for the client, the rows so far stay whole and an error may
    /// follow.
    ///
    /// # Errors
    /// [`Failure::Transport`] when the client is gone; 1153 for a row beyond
    /// `max_allowed_packet`; 1105 for a batch that does not fit the columns.
    pub async fn push_batch(&mut self, batch: &RecordBatch) -> Result<(), Failure> {
        let batch = BatchRows::new(batch, self.columns)?;
        match self.reply.encoding.converts() {
            true => self.push_rows::<true>(&batch).await,
            false => self.push_rows::<false>(&batch).await,
        }
    }

    async fn push_rows<const CONVERTS: bool>(
        &mut self,
        batch: &BatchRows<'_>,
    ) -> Result<(), Failure> {
        let mut row = 0;
        while row < batch.count() {
            // Without a look at the socket between two rows.
            while row < batch.count() && !self.reply.is_full() {
                batch.write::<CONVERTS>(self.reply, self.columns, row)?;
                row = row.saturating_add(1);
            }
            self.reply.relieve().await?;
        }
        Ok(())
    }

    /// Writes one row, without waiting: call [`relieve`](Rows::relieve) now and then.
    ///
    /// # Errors
    /// 1153 for a row beyond `max_allowed_packet`; 1105 for values that do not fit the columns.
    pub fn push_row<'v>(
        &mut self,
        values: impl IntoIterator<Item = Value<'v>>,
    ) -> Result<(), Failure> {
        match self.reply.encoding.converts() {
            true => self.push_values::<true>(values),
            false => self.push_values::<false>(values),
        }
    }

    fn push_values<'v, const CONVERTS: bool>(
        &mut self,
        values: impl IntoIterator<Item = Value<'v>>,
    ) -> Result<(), Failure> {
        let mut row = RowWriter::begin(self.reply, self.columns.len());
        let mut values = values.into_iter();
        for (index, column) in self.columns.iter().enumerate() {
            let value = values.next();
            let written = value
                .ok_or_else(|| internal("a row with too few values"))
                .and_then(|value| row.push::<CONVERTS>(index, value, column));
            if let Err(error) = written {
                return Err(row.abandon(error).into());
            }
        }
        Ok(row.end()?)
    }

    /// Sends rows if enough have gathered; waits while the client does not read.
    ///
    /// # Errors
    /// [`Failure::Transport`] when the client is gone.
    pub async fn relieve(&mut self) -> Result<(), Failure> {
        self.reply.relieve().await
    }

    /// Ends the result.
    ///
    /// # Errors
    /// [`Failure::Transport`] when the client is gone.
    pub async fn finish(self, summary: &Summary) -> Result<(), Failure> {
        self.reply.end_result(summary, packets::EOF);
        self.reply.relieve().await
    }
}

/// The rows of a batch, its arrays downcast once.
pub(crate) struct BatchRows<'a> {
    cells: Vec<Cells<'a>>,
    count: usize,
}

impl<'a> BatchRows<'a> {
    pub(crate) fn new(
        batch: &'a RecordBatch,
        columns: &[ColumnDefinition],
    ) -> Result<BatchRows<'a>, MySqlError> {
        if batch.num_columns() != columns.len() {
            return Err(internal("a batch with another number of columns"));
        }
        let fields = batch.schema_ref().fields().iter();
        let cells = batch
            .columns()
            .iter()
            .zip(fields)
            .map(|(array, field)| Cells::new(array, field));
        Ok(BatchRows {
            cells: cells.collect::<Result<_, _>>()?,
            count: batch.num_rows(),
        })
    }

    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Appends one row, its texts in the encoding of the results.
    pub(crate) fn write_encoded(
        &self,
        reply: &mut Reply,
        columns: &[ColumnDefinition],
        row_index: usize,
    ) -> Result<(), MySqlError> {
        match reply.encoding.converts() {
            true => self.write::<true>(reply, columns, row_index),
            false => self.write::<false>(reply, columns, row_index),
        }
    }

    fn write<const CONVERTS: bool>(
        &self,
        reply: &mut Reply,
        columns: &[ColumnDefinition],
        row_index: usize,
    ) -> Result<(), MySqlError> {
        let mut row = RowWriter::begin(reply, columns.len());
        for (index, (cells, column)) in self.cells.iter().zip(columns).enumerate() {
            let pushed = match cells.document(row_index) {
                Some(document) => row.push::<CONVERTS>(index, Value::Bytes(&document), column),
                None => row.push::<CONVERTS>(index, cells.value(row_index), column),
            };
            if let Err(error) = pushed {
                return Err(row.abandon(error));
            }
        }
        row.end()
    }
}

/// One row on its way into a packet.
struct RowWriter<'a> {
    reply: &'a mut Reply,
    start: usize,
    null_bits: usize,
}

impl<'a> RowWriter<'a> {
    fn begin(reply: &'a mut Reply, column_count: usize) -> RowWriter<'a> {
        let start = reply.sender.begin();
        let out = reply.sender.payload();
        if reply.format == Format::Binary {
            out.put_u8(packets::OK);
        }
        let null_bits = out.len();
        if reply.format == Format::Binary {
            out.put_bytes(0, column_count.saturating_add(NULL_BITS_OFFSET).div_ceil(8));
        }
        RowWriter {
            reply,
            start,
            null_bits,
        }
    }

    /// Appends a cell. Whether texts are converted is known for a result: where they are not, a
    /// cell does not ask.
    fn push<const CONVERTS: bool>(
        &mut self,
        index: usize,
        value: Value<'_>,
        column: &ColumnDefinition,
    ) -> Result<(), MySqlError> {
        let encoding = self.reply.encoding;
        let encoded;
        let value = match value {
            Value::Bytes(text) if CONVERTS && !column.column_type.is_binary() => {
                encoded = encoding.encode(text);
                Value::Bytes(&encoded)
            }
            other => other,
        };
        if let Value::Bytes(bytes) = value {
            self.reply.sender.make_room(bytes.len())?;
        }
        let out = self.reply.sender.payload();
        match self.reply.format {
            Format::Text => text::write(out, value, &column.column_type),
            Format::Binary if value == Value::Null => set_null(out, self.null_bits, index),
            Format::Binary => {
                if !binary::write(out, value, &column.column_type) {
                    return Err(internal("a value of another type than its column"));
                }
            }
        }
        Ok(())
    }

    fn end(self) -> Result<(), MySqlError> {
        if self.reply.sender.payload_len(self.start) > self.reply.max_packet_bytes {
            return Err(self.abandon(packet_too_large()));
        }
        self.reply.sender.end(self.start);
        Ok(())
    }

    fn abandon(self, error: MySqlError) -> MySqlError {
        self.reply.sender.abandon(self.start);
        error
    }
}

fn set_null(out: &mut BytesMut, null_bits: usize, index: usize) {
    let bit = index.saturating_add(NULL_BITS_OFFSET);
    if let Some(byte) = out.get_mut(null_bits.saturating_add(bit / 8)) {
        *byte |= 1 << (bit % 8);
    }
}
