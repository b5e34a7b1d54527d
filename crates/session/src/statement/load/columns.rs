//! The columns of a batch of LOAD DATA, as they come from the file.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewBuilder, StringViewBuilder};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use mayfly_records::Record;
use mayfly_types::{CharacterSet, ErrorCode, MySqlError};

use super::plan::{Absent, Plan};
use crate::errors;

/// Rows of the file that are converted together.
const ROWS_TOGETHER: usize = 4096;
/// Values of a batch: a row of a few bytes may have thousands.
const VALUES_TOGETHER: usize = 256 << 10;
/// Bytes of the file after which a batch ends early.
const BYTES_TOGETHER: usize = 1 << 20;
/// Bytes that are reserved for a byte of latin1: what it becomes in UTF-8, at most three, twice.
const LATIN1_COPIES: usize = 6;
/// Bytes of a wrong field that an error shows.
const SHOWN_BYTES: usize = 64;

enum Builder {
    Text(StringViewBuilder),
    Bytes(BinaryViewBuilder),
}

/// The columns of a batch while it is read.
pub(super) struct Columns {
    schema: SchemaRef,
    /// What each field is where a line ends before it.
    absent: Vec<Absent>,
    /// The time at which the statement began.
    now: String,
    set: CharacterSet,
    builders: Vec<Builder>,
    rows: usize,
    rows_max: usize,
    bytes: usize,
    /// Pays for rows that are longer than a usual batch.
    memory: MemoryReservation,
}

impl Columns {
    pub(super) fn new(
        plan: &Plan,
        set: CharacterSet,
        now: String,
        pool: &Arc<dyn MemoryPool>,
    ) -> Columns {
        let rows_max = VALUES_TOGETHER.checked_div(plan.absent.len());
        let rows_max = rows_max.map_or(ROWS_TOGETHER, |rows| rows.clamp(1, ROWS_TOGETHER));
        let builders = plan.schema.fields().iter();
        let builders = builders.map(|field| match field.data_type() {
            DataType::BinaryView => Builder::Bytes(BinaryViewBuilder::new()),
            _ => Builder::Text(StringViewBuilder::new()),
        });
        Columns {
            schema: Arc::clone(&plan.schema),
            absent: plan.absent.clone(),
            now,
            set,
            builders: builders.collect(),
            rows: 0,
            rows_max,
            bytes: 0,
            memory: MemoryConsumer::new("long rows of LOAD DATA").register(pool),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.rows >= self.rows_max || self.bytes >= BYTES_TOGETHER
    }

    /// Asks for the memory of a row that is longer than a usual batch.
    fn grant(&self, row_bytes: usize, row: u64) -> Result<(), MySqlError> {
        if row_bytes <= BYTES_TOGETHER {
            return Ok(());
        }
        let copies = match self.set {
            CharacterSet::Latin1 => LATIN1_COPIES,
            _ => 1,
        };
        let granted = self.memory.try_grow(row_bytes.saturating_mul(copies));
        granted.map_err(|error| {
            let mut error = errors::from_plan(&error);
            let text = format!("; row {row} of the file is long");
            error.message.push_str(&text);
            error
        })
    }

    pub(super) fn push(&mut self, record: &Record, row: u64) -> Result<(), MySqlError> {
        let fields = 0..record.count().min(self.builders.len());
        let lengths = fields.map(|index| record.field(index).map_or(0, <[u8]>::len));
        self.grant(lengths.fold(0, usize::saturating_add), row)?;
        self.rows = self.rows.saturating_add(1);
        let builders = self.builders.iter_mut().zip(&self.absent).enumerate();
        for (index, (builder, absent)) in builders {
            let field = match (index < record.count(), absent) {
                (_, Absent::Now) => record.field(index).or(Some(self.now.as_bytes())),
                (true, _) => record.field(index),
                (false, Absent::Zero(text)) => Some(text.as_bytes()),
                (false, Absent::Variable | Absent::Null) => None,
            };
            let bytes = field.map_or(0, <[u8]>::len);
            self.bytes = self.bytes.saturating_add(bytes);
            match builder {
                Builder::Bytes(builder) => builder.append_option(field),
                Builder::Text(builder) => match field {
                    None => builder.append_null(),
                    Some(bytes) => match self.set.decode(bytes) {
                        Ok(text) => builder.append_value(text),
                        Err(_) => {
                            let shown = bytes.get(..SHOWN_BYTES).unwrap_or(bytes);
                            let shown = String::from_utf8_lossy(shown);
                            let text = format!("{shown} (row {row})");
                            let code = ErrorCode::InvalidCharacterString;
                            return Err(MySqlError::new(code, &[&self.set.name(), &text]));
                        }
                    },
                },
            }
        }
        Ok(())
    }

    /// The rows so far, and what was granted for them.
    pub(super) fn finish(&mut self) -> Result<(RecordBatch, MemoryReservation), MySqlError> {
        self.rows = 0;
        self.bytes = 0;
        let arrays: Vec<ArrayRef> = self
            .builders
            .iter_mut()
            .map(|builder| match builder {
                Builder::Text(builder) => Arc::new(builder.finish()) as ArrayRef,
                Builder::Bytes(builder) => Arc::new(builder.finish()) as ArrayRef,
            })
            .collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays);
        let batch = batch.map_err(|error| errors::from_plan(&error.into()))?;
        Ok((batch, self.memory.take()))
    }
}
