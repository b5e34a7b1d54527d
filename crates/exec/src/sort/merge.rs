//! The merge of sorted runs, one batch at a time.
//!
//! Owns: [`Run`] and [`Merger`]. Never: pins more than the current batch of each run and a few
//! that the next output still refers to.
//!
//! The current batches alias their pages, so one page a run stays pinned between two outputs, over
//! an await of the consumer too. The sorter counts them when it chooses how many runs to merge.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use mayfly_table::{BatchRun, Drain};

use super::keys::KeyEncoder;
use super::picker::{Limits, Picker};
use crate::error::table_error;

/// A sorted run in pages.
pub(super) struct Run {
    pub data: BatchRun,
    pub rows: u64,
    /// Merges that its rows went through.
    pub level: u64,
}

/// A merge in progress.
pub(super) struct Merger {
    picker: Picker,
    /// What is left of each run; a page is freed as soon as nothing refers to its batch.
    drains: Vec<Drain>,
}

/// How a merge is to be done.
#[derive(Clone, Copy)]
pub(super) struct MergeOptions {
    /// Rows of an output batch.
    pub batch_rows: usize,
    /// Rows of the whole output.
    pub rows_max: u64,
    /// Ended batches that an output may keep pinned beside the current ones.
    pub held_extra: usize,
}

/// Why a merge could not be opened.
pub(super) enum Opening {
    /// There is no memory for a page of each run.
    Refused(Box<Refused>),
    /// Anything else.
    Failed(DataFusionError),
}

impl From<DataFusionError> for Opening {
    fn from(error: DataFusionError) -> Self {
        Self::Failed(error)
    }
}

/// A merge for which there is no memory: its runs, how many of them fitted, and why no more did.
pub(super) struct Refused {
    pub runs: Vec<Run>,
    pub opened: usize,
    pub error: DataFusionError,
}

impl Merger {
    /// Opens a merge of runs that are not empty; earlier runs win ties.
    pub(super) fn open(
        encoder: &Arc<KeyEncoder>,
        runs: Vec<Run>,
        options: MergeOptions,
    ) -> Result<Self, Opening> {
        // The first page of every run, pinned until the picker has it: draining a run cannot be
        // taken back, so it begins only when all of them fit.
        let mut first = Vec::with_capacity(runs.len());
        for run in &runs {
            let opened = first.len();
            match run.data.read(0, None) {
                Ok(batch) => first.push(batch),
                Err(error) => {
                    let error = table_error(error);
                    return Err(Opening::Refused(Box::new(Refused {
                        runs,
                        opened,
                        error,
                    })));
                }
            }
        }
        let limits = Limits {
            rows: options.batch_rows,
            bytes: usize::MAX,
            held: runs.len() + options.held_extra,
        };
        let picker = Picker::new(encoder, runs.len(), limits, options.rows_max);
        let drains = runs.into_iter().map(|run| run.data.drain());
        let mut merger = Self {
            picker,
            drains: drains.collect::<Result<_, _>>().map_err(table_error)?,
        };
        while let Some(index) = merger.picker.waiting() {
            merger.load(index)?;
        }
        Ok(merger)
    }

    /// Loads the next batch of a run, or ends it.
    fn load(&mut self, index: usize) -> Result<()> {
        let Some(batch) = self.drains[index].next() else {
            self.picker.end();
            return Ok(());
        };
        let batch = batch.map_err(table_error)?;
        self.picker.enter(batch.clone(), &batch, 0)
    }

    /// The next rows in order, or none at the end. The batch may alias pages.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.picker.has_room() {
            if let Some(index) = self.picker.waiting() {
                if self.picker.holds_enough() {
                    break;
                }
                match self.load(index) {
                    Ok(()) => {}
                    // Batches that only the output refers to may be what is in the way.
                    Err(_) if self.picker.has_picks() => break,
                    Err(error) => return Err(error),
                }
            }
            if !self.picker.pick() {
                break;
            }
        }
        self.picker.output()
    }
}
