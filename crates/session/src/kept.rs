//! The rows of a result that its client reads piece by piece, when it likes.
//!
//! **Owns** a run of batches in the temp space of the connection. The statement that made the rows
//! is over when they are kept: others may run on the connection, whatever they do to its tables.
//!
//! **Never** holds a page between two reads: rows that nobody asks for leave memory first.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use futures::StreamExt;
use mayfly_exec::TimeSlice;
use mayfly_space::{Account, NextUse};
use mayfly_table::BatchRun;
use mayfly_types::MySqlError;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use crate::crash::crashed;
use crate::errors;
use crate::outcome::RowStream;

/// Rows in the temp space, read once from the first to the last. Dropping them frees their pages.
pub struct KeptRows {
    // fixed
    /// `None` if there are no rows.
    run: Option<Arc<BatchRun>>,
    workers: Handle,
    // state
    /// The batch that is read next, and the first of its rows.
    place: (usize, usize),
}

impl KeptRows {
    /// Takes all rows of a stream, on a worker.
    pub(crate) async fn of(
        batches: RowStream,
        account: Account,
        workers: Handle,
    ) -> Result<KeptRows, MySqlError> {
        let task = Stopping(workers.spawn(keep(batches, account)));
        let run = task.ended().await?;
        Ok(KeptRows {
            run: run.map(Arc::new),
            workers,
            place: (0, 0),
        })
    }

    /// The next rows, at most `rows_max` of them, and `None` after the last. The batch holds its
    /// page as long as it lives.
    ///
    /// # Errors
    /// Those of the temp space: the memory for a page is not there, or it cannot be read.
    pub async fn next(&mut self, rows_max: usize) -> Result<Option<RecordBatch>, MySqlError> {
        let (index, first) = self.place;
        let Some(run) = self.run.as_ref().filter(|run| index < run.batch_count()) else {
            return Ok(None);
        };
        let count = run.rows_of(index);
        let taken = rows_max.min(count - first);
        let source = Arc::clone(run);
        let task = Stopping(self.workers.spawn(async move {
            let batch = source.read(index, None);
            source.prefetch(index + 1);
            batch.map_err(|error| errors::from_table(&error))
        }));
        let batch = task.ended().await?;
        self.place = match first + taken == count {
            true => (index + 1, 0),
            false => (index, first + taken),
        };
        Ok(Some(batch.slice(first, taken)))
    }
}

async fn keep(mut batches: RowStream, account: Account) -> Result<Option<BatchRun>, MySqlError> {
    let mut run: Option<BatchRun> = None;
    let mut slice = TimeSlice::begin();
    while let Some(batch) = batches.next().await {
        let batch = batch?;
        let run = run
            .get_or_insert_with(|| BatchRun::new(&account, batch.schema(), NextUse::SecondChance));
        run.append(&batch)
            .map_err(|error| errors::from_table(&error))?;
        slice.share().await;
    }
    if let Some(run) = &mut run {
        run.finish().map_err(|error| errors::from_table(&error))?;
    }
    Ok(run)
}

/// A task that ends with whoever waits for it.
struct Stopping<T>(JoinHandle<Result<T, MySqlError>>);

impl<T> Stopping<T> {
    async fn ended(mut self) -> Result<T, MySqlError> {
        let ended = (&mut self.0).await;
        ended.unwrap_or_else(|_| Err(crashed("a task that kept rows ended")))
    }
}

impl<T> Drop for Stopping<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
