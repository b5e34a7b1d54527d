//! The stream of one output partition.
//!
//! ```text
//!   built --> probing: own partition of the right side --> ended
//!                      \-> the last one to end: rows of tables, pairs --> ended
//! ```
//!
//! No stream waits for another, because nobody promises that they are polled at the same time. What
//! can only be told when all have ended is the task of the last one.

use std::sync::{Arc, PoisonError};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{JoinSide, Result};
use datafusion::physical_plan::metrics::{BaselineMetrics, RecordOutput};
use futures::Stream;
use futures::stream;
use mayfly_table::rows::JoinTables;

use super::build::Built;
use super::kinds::Roles;
use super::output::Output;
use super::pairs::Pairs;
use super::run::{Probing, Run};
use super::unmatched::Unmatched;
use crate::time_slice::TimeSlice;

/// Where a stream is.
enum Stage {
    Waiting,
    Probing(Box<Probing>, Arc<Built>),
    Remaining(Box<Remaining>),
    Ended,
}

/// What comes when all of the right side went by.
struct Remaining {
    built: Arc<Built>,
    /// Tables whose rows are returned for themselves.
    tables: Option<(JoinTables, Unmatched)>,
    pairs: Option<Pairs>,
    has_begun_pairs: bool,
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
            if let Some(batch) = self.output.next() {
                return Ok(Some(batch));
            }
            if self.output.is_full() {
                self.stage = Stage::Ended;
            }
            let results = match &mut self.stage {
                Stage::Waiting => {
                    let built = self.run.built().await?;
                    self.stage = match self.run.probe(&built, self.partition)? {
                        Some(probing) => Stage::Probing(Box::new(probing), built),
                        None => Stage::Ended,
                    };
                    continue;
                }
                Stage::Probing(probing, built) => match probing.next(&self.run).await? {
                    Some(results) => results,
                    None => {
                        let built = Arc::clone(built);
                        // The share in the tables goes before the last one asks for them.
                        self.stage = Stage::Ended;
                        if self.run.is_last_to_finish() {
                            self.stage = Stage::Remaining(Box::new(self.remaining(built)));
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

    fn remaining(&self, built: Arc<Built>) -> Remaining {
        let tables = {
            let mut tables = built.tables.lock().unwrap_or_else(PoisonError::into_inner);
            tables.take().and_then(Arc::into_inner)
        };
        let roles = Roles::new(self.run.spec.kind, JoinSide::Left);
        Remaining {
            built,
            tables: tables.map(|tables| (tables, Unmatched::new(&self.run, roles))),
            pairs: None,
            has_begun_pairs: false,
        }
    }
}

impl Remaining {
    async fn next(&mut self, run: &Arc<Run>) -> Result<Option<RecordBatch>> {
        if let Some((tables, unmatched)) = &mut self.tables {
            let before = unmatched.partition();
            let next = unmatched.next(tables)?;
            (before..unmatched.partition()).for_each(|partition| tables.free(partition));
            if next.is_some() {
                return Ok(next);
            }
            self.tables = None;
        }
        if !self.has_begun_pairs {
            self.has_begun_pairs = true;
            if !run.is_void() {
                self.pairs = Pairs::start(run, &self.built)?;
            }
        }
        match &mut self.pairs {
            Some(pairs) => pairs.next().await,
            None => Ok(None),
        }
    }
}
