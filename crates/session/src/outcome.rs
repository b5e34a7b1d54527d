//! What a statement gives back: rows as a stream of record batches, or counts.
//!
//! Never renders a value: that is `render`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::record_batch::RecordBatch;
use futures::Stream;
use mayfly_table::RowReader;
use mayfly_types::MySqlError;
use tokio::sync::mpsc;

use super::column_info::{ColumnInfo, columns_of};
use super::crash::{crashed, panic_text};
use crate::abandoned::abandon;
use crate::errors;
use crate::profile::Stage;
use crate::running::Running;

/// The result of one statement.
pub enum Outcome {
    /// A result set.
    Rows {
        /// One entry for each column of `batches`, in order.
        columns: Vec<ColumnInfo>,
        /// The rows. Dropping it cancels the statement and frees all that it holds.
        batches: RowStream,
    },
    /// No result set.
    Done {
        /// Rows written or removed.
        affected_rows: u64,
        /// Value of `LAST_INSERT_ID()` if the statement set it, else 0.
        last_insert_id: u64,
        /// Entries that `SHOW WARNINGS` would list.
        warnings: u16,
        /// Text such as `Records: 3  Duplicates: 0  Warnings: 0`; often empty.
        info: String,
    },
}

impl Outcome {
    /// The end of a statement without rows; warnings are counted by the caller of the statement.
    pub(crate) fn done(affected_rows: u64) -> Outcome {
        Outcome::Done {
            affected_rows,
            last_insert_id: 0,
            warnings: 0,
            info: String::new(),
        }
    }

    /// A result that is known whole.
    pub(crate) fn ready(batch: RecordBatch) -> Outcome {
        Outcome::known(columns_of(batch.schema_ref(), None), batch)
    }

    /// The same under a description of its columns.
    pub(crate) fn known(columns: Vec<ColumnInfo>, batch: RecordBatch) -> Outcome {
        let batches = RowStream {
            first: Some(batch),
            source: Source::Nothing,
            running: None,
        };
        Outcome::Rows { columns, batches }
    }
}

/// Rows of a result set, computed while they are read.
pub struct RowStream {
    first: Option<RecordBatch>,
    source: Source,
    running: Option<Arc<Running>>,
}

/// Where the rows come from that follow the first ones.
enum Source {
    Nothing,
    /// The task of the statement.
    Task(mpsc::Receiver<Message>),
    /// The table: whoever reads the rows fetches them.
    Table(Box<RowReader>),
}

/// What the task of a statement sends to the reader of its rows.
pub(crate) enum Message {
    Batch(RecordBatch),
    Failed(MySqlError),
    End,
}

impl RowStream {
    /// Waits for the first rows, so that what fails before any row fails the statement.
    pub(crate) async fn begin(
        mut receiver: mpsc::Receiver<Message>,
        running: Arc<Running>,
    ) -> Result<RowStream, MySqlError> {
        let mut stream = RowStream {
            first: None,
            source: Source::Nothing,
            running: Some(running),
        };
        match receiver.recv().await {
            Some(Message::Batch(batch)) => {
                stream.first = Some(batch);
                stream.source = Source::Task(receiver);
                Ok(stream)
            }
            Some(Message::End) => {
                stream.finish();
                Ok(stream)
            }
            // Whoever runs the statement ends it: it may be started again.
            Some(Message::Failed(error)) => {
                stream.running = None;
                Err(error)
            }
            None => {
                let error = stream.lost();
                stream.running = None;
                Err(error)
            }
        }
    }

    /// Rows that are fetched from a table while they are read; the first ones are there.
    pub(crate) fn fetched(
        first: RecordBatch,
        rest: RowReader,
        running: &Arc<Running>,
    ) -> RowStream {
        running.enter(Stage::SendingData);
        running.has_fetched(first.num_rows() as u64);
        RowStream {
            first: Some(first),
            source: Source::Table(Box::new(rest)),
            running: Some(Arc::clone(running)),
        }
    }

    /// The next rows of the table.
    fn fetch(&mut self) -> Option<Result<RecordBatch, MySqlError>> {
        let Source::Table(reader) = &mut self.source else {
            return None;
        };
        let interrupted = self.running.as_ref();
        let interrupted = interrupted.and_then(|running| running.interrupted());
        let read = match interrupted {
            Some(error) => Err(error),
            None => match catch_unwind(AssertUnwindSafe(|| reader.next())) {
                Ok(Some(read)) => read.map_err(|error| errors::from_table(&error)),
                Ok(None) => {
                    self.finish();
                    return None;
                }
                Err(panic) => Err(crashed(&panic_text(panic))),
            },
        };
        Some(match read {
            Ok(batch) => {
                if let Some(running) = &self.running {
                    running.has_fetched(batch.num_rows() as u64);
                }
                Ok(batch)
            }
            Err(error) => Err(self.fail(error)),
        })
    }

    /// The rows of a result that is known whole.
    pub(crate) fn ready_rows(&self) -> Option<u64> {
        match &self.running {
            Some(_) => None,
            None => Some(
                self.first
                    .as_ref()
                    .map_or(0, |batch| batch.num_rows() as u64),
            ),
        }
    }

    /// The error of a task that ended without a word.
    fn lost(&self) -> MySqlError {
        self.running
            .as_ref()
            .and_then(|running| running.interrupted())
            .unwrap_or_else(|| crashed("the statement's task ended"))
    }

    /// Ends the statement; the error that its reader sees. Parts of a statement that is stopped
    /// fail before its task is ended.
    fn fail(&mut self, error: MySqlError) -> MySqlError {
        self.source = Source::Nothing;
        let Some(running) = self.running.take() else {
            return error;
        };
        let error = running.shown_error(error);
        running.fail(&error);
        error
    }

    fn finish(&mut self) {
        self.source = Source::Nothing;
        if let Some(running) = self.running.take() {
            running.finish();
        }
    }
}

impl Stream for RowStream {
    type Item = Result<RecordBatch, MySqlError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        let source = match &mut self.source {
            Source::Nothing => return Poll::Ready(None),
            Source::Table(_) => return Poll::Ready(self.fetch()),
            Source::Task(source) => source,
        };
        let message = match source.poll_recv(context) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(message) => message,
        };
        Poll::Ready(match message {
            Some(Message::Batch(batch)) => Some(Ok(batch)),
            Some(Message::Failed(error)) => Some(Err(self.fail(error))),
            Some(Message::End) => {
                self.finish();
                None
            }
            None => {
                let error = self.lost();
                Some(Err(self.fail(error)))
            }
        })
    }
}

impl Drop for RowStream {
    fn drop(&mut self) {
        // What they hold belongs to the statement.
        (self.first, self.source) = (None, Source::Nothing);
        if let Some(running) = self.running.take() {
            abandon(&running);
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Schema;
    use datafusion::error::DataFusionError;
    use futures::StreamExt;
    use mayfly_types::ErrorCode;

    use super::*;
    use crate::engine::{Engine, EngineOptions};

    #[tokio::test]
    async fn a_statement_that_is_stopped_behind_its_first_rows_says_so() {
        let engine = Engine::open(EngineOptions {
            memory_bytes: 64 << 20,
            ..EngineOptions::default()
        });
        let engine = engine.unwrap();
        let session = engine.connect();
        let connection = &session.connection;
        let running = Running::begin(connection, "SELECT 1", connection.statement_account());
        let (sender, receiver) = mpsc::channel(1);
        let first = RecordBatch::new_empty(Arc::new(Schema::empty()));
        sender.send(Message::Batch(first)).await.unwrap();
        let mut rows = RowStream::begin(receiver, Arc::clone(&running))
            .await
            .unwrap();
        rows.next().await.unwrap().unwrap();
        running.give_up();
        // Its task is ended between two of its steps: this one had failed before.
        let failed = Message::Failed(crashed("a part of it ended"));
        sender.send(failed).await.unwrap();
        let error = rows.next().await.unwrap().unwrap_err();
        assert!(error.is(ErrorCode::QueryInterrupted), "{error:?}");
    }

    #[test]
    fn a_step_that_is_stopped_was_interrupted() {
        let stopped = DataFusionError::External(Box::new(mayfly_table::rows::Error::Stopped));
        let error = errors::from_plan(&DataFusionError::Shared(Arc::new(stopped)));
        assert!(error.is(ErrorCode::QueryInterrupted), "{error:?}");
    }
}
