//! The stream of one output partition.
//!
//! ```text
//!   small --> the stock join's stream
//!   paged --> probing: own partition of the right side --> ended
//!                      \-> the last one to end: rows of tables, pairs --> ended
//! ```
//!
//! No stream waits for another, because nobody promises that they are polled at the same time. What
//! can only be told when all have ended is the task of the last one.

use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{JoinSide, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use futures::{Stream, StreamExt, stream};
use mayfly_table::rows::{JoinTables, SideRows};

use super::build::{Built, Left};
use super::kinds::Roles;
use super::output::Output;
use super::pairs::Pairs;
use super::run::{Probing, Run};
use super::tables::AbsentPart;
use super::unmatched::Unmatched;
use crate::time_slice::TimeSlice;

/// Where a stream is.
enum Stage {
    Waiting,
    /// The stock join does it all.
    Stock(SendableRecordBatchStream),
    Probing(Box<Probing>, Arc<Built>),
    Remaining(Box<Remaining>),
    Ended,
}

/// What comes when all of the right side went by.
struct Remaining {
    built: Arc<Built>,
    /// Tables whose rows are returned for themselves.
    tables: Option<(JoinTables, Unmatched)>,
    /// The partitions of both sides that are joined behind them.
    absent: Option<(Vec<AbsentPart>, Arc<SideRows>)>,
    pairs: Option<Pairs>,
}

/// One output partition.
struct JoinStream {
    run: Arc<Run>,
    partition: usize,
    stage: Stage,
    output: Output,
    is_finished: bool,
    metrics: BaselineMetrics,
    slice: TimeSlice,
}

/// The results of one partition, at most `fetch` of them.
pub(super) fn results(
    run: Arc<Run>,
    partition: usize,
    metrics: BaselineMetrics,
    fetch: Option<usize>,
) -> impl Stream<Item = Result<RecordBatch>> + Send + 'static {
    let spec = &run.spec;
    let output = Output::new(&spec.schema, run.limits.0, fetch);
    let stream = JoinStream {
        run,
        partition,
        stage: Stage::Waiting,
        output,
        is_finished: false,
        metrics,
        slice: TimeSlice::begin(),
    };
    stream::try_unfold(stream, async |mut stream| {
        let next = stream.next().await?;
        // Lets others run, and a consumer that polls in a loop be cancelled.
        stream.slice.share().await;
        Ok(next.map(|batch| (batch.record_output(&stream.metrics), stream)))
    })
}

impl JoinStream {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.output.next()? {
                return Ok(Some(batch));
            }
            if self.output.is_full() {
                self.stage = Stage::Ended;
            }
            let results = match &mut self.stage {
                Stage::Waiting => {
                    self.stage = match self.run.left().await? {
                        Left::Small(join) => Stage::Stock(join.take(self.partition)?),
                        Left::Paged(built) => match self.run.probe(&built, self.partition)? {
                            Some(probing) => Stage::Probing(Box::new(probing), built),
                            None => Stage::Ended,
                        },
                    };
                    continue;
                }
                Stage::Stock(results) => return results.next().await.transpose(),
                Stage::Probing(probing, built) => match probing.next(&self.run).await? {
                    Some(results) => results,
                    None => {
                        let built = Arc::clone(built);
                        // The share in the tables goes before the last one asks for them.
                        self.stage = Stage::Ended;
                        if self.run.unfinished.is_last_to_finish() {
                            self.stage = Stage::Remaining(Box::new(self.remaining(built)?));
                        }
                        continue;
                    }
                },
                Stage::Remaining(remaining) => match remaining.next(&self.run).await? {
                    Some(results) => results,
                    None => {
                        self.stage = Stage::Ended;
                        continue;
                    }
                },
                Stage::Ended if self.is_finished => return Ok(None),
                Stage::Ended => {
                    self.is_finished = true;
                    self.output.finish()?;
                    continue;
                }
            };
            self.output.push(results)?;
        }
    }

    fn remaining(&self, built: Arc<Built>) -> Result<Remaining> {
        let rest = built.tables.take_rest()?;
        let roles = Roles::new(self.run.spec.kind, JoinSide::Left);
        let unmatched = |tables| (tables, Unmatched::new(&self.run, roles));
        Ok(Remaining {
            built,
            tables: rest.tables.map(unmatched),
            absent: rest.partner.map(|partner| (rest.absent, partner)),
            pairs: None,
        })
    }
}

impl Remaining {
    async fn next(&mut self, run: &Arc<Run>) -> Result<Option<RecordBatch>> {
        if let Some((tables, unmatched)) = &mut self.tables {
            let _timer = run.counts().compute.timer();
            let before = unmatched.partition();
            let next = unmatched.next(tables)?;
            (before..unmatched.partition()).for_each(|partition| tables.free(partition));
            if next.is_some() {
                return Ok(next);
            }
            self.tables = None;
        }
        if let Some((absent, partner)) = self.absent.take()
            && !run.is_void()
        {
            self.pairs = Some(Pairs::start(run, &self.built, absent, partner)?);
        }
        match &mut self.pairs {
            Some(pairs) => pairs.next().await,
            None => Ok(None),
        }
    }
}
