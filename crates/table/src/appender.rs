//! The rows that a statement adds to a table.
//!
//! **Owns** pages that nobody else can see. **Never** waits: where rows have numbers, those of a
//! statement follow the rows that were there when it began, so should somebody else have changed
//! the table before the commit, [`Error::Changed`](crate::Error::Changed) says so.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt64Array};

use crate::error::Result;
use crate::rows::StopFlag;
use crate::sealed::Writer;
use crate::table::{Draft, StatementRows, Table};

/// Rows on their way into a table.
pub(crate) struct Pending {
    pub(crate) writer: Writer,
    numbers: Option<Numbers>,
    /// Says that nobody wants them any more.
    pub(crate) stop: Option<StopFlag>,
}

/// The numbers that new rows get.
pub(crate) struct Numbers {
    /// The version of the table that they follow.
    pub(crate) version: u64,
    pub(crate) next: u64,
}

impl Pending {
    pub(crate) fn new(writer: Writer, numbers: Option<Numbers>) -> Self {
        Self {
            writer,
            numbers,
            stop: None,
        }
    }

    pub(crate) fn version(&self) -> Option<u64> {
        self.numbers.as_ref().map(|numbers| numbers.version)
    }

    pub(crate) fn next_number(&self) -> Option<u64> {
        self.numbers.as_ref().map(|numbers| numbers.next)
    }

    /// Appends all rows of a batch or, on an error, none of them.
    pub(crate) fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        StopFlag::check_any(self.stop.as_ref())?;
        let Some(numbers) = &mut self.numbers else {
            return self.writer.append(batch);
        };
        let end = numbers.next + batch.num_rows() as u64;
        let column: ArrayRef = Arc::new(UInt64Array::from_iter_values(numbers.next..end));
        let mut columns = batch.columns().to_vec();
        columns.push(column);
        self.writer.append_columns(columns, batch.num_rows())?;
        numbers.next = end;
        Ok(())
    }
}

/// The rows that one statement appends: seen by nobody until [`Appender::commit`], gone when the
/// appender is dropped before.
pub struct Appender {
    table: Arc<Table>,
    pending: Pending,
}

impl Appender {
    pub(crate) fn new(table: &Arc<Table>, pending: Pending) -> Self {
        Self {
            table: Arc::clone(table),
            pending,
        }
    }

    /// The same, which ends with [`Error::Stopped`](crate::Error::Stopped) when the flag is raised
    /// before the rows are seen; the table is as it was then.
    #[must_use]
    pub fn stopped_by(mut self, stop: StopFlag) -> Self {
        self.pending.stop = Some(stop);
        self
    }

    /// The table that gets the rows.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The rows that were appended so far.
    pub fn row_count(&self) -> u64 {
        self.pending.writer.row_count
    }

    /// Appends all rows of a batch or, on an error, none of them.
    ///
    /// # Errors
    /// If the batch does not have the schema (see `Format::admit`), or memory, disk or I/O fail.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        self.pending.append(batch)
    }

    /// Shows the rows to everybody, and tells how many they are.
    ///
    /// # Errors
    /// If memory, disk or I/O fail; the rows are gone then, and the table is as it was.
    pub fn commit(self) -> Result<u64> {
        let row_count = self.row_count();
        self.table.commit(StatementRows::of_pending(self.pending))?;
        Ok(row_count)
    }

    /// Adds the rows to a draft of the table, which is as the table was when the appender began.
    ///
    /// # Errors
    /// As for [`Appender::commit`]; the draft is as it was then.
    pub fn commit_to(self, draft: &Draft) -> Result<u64> {
        let row_count = self.row_count();
        let rows = StatementRows::of_pending(self.pending);
        draft.table().absorb(rows)?;
        Ok(row_count)
    }
}

impl fmt::Debug for Appender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appender")
            .field("table", &self.table.name())
            .field("row_count", &self.row_count())
            .finish_non_exhaustive()
    }
}
