//! The merge of sorted runs, one batch at a time.
//!
//! Owns: [`Run`] and [`Merger`]. Never: pins more than the current batch of each run and a few
//! that the next output still refers to.
//!
//! ```text
//!    run 0: batch batch [batch] ...     cursor: heads of the keys of one batch
//!    run 1: batch [batch] batch ...        \
//!    run 2: [batch] ...                     > tree of losers -> picks (batch, row) -> output
//! ```
//!
//! A cursor compares the first sixteen key bytes as one integer and the remaining bytes only
//! when those are equal; equal keys leave in the order of the runs, so the merge is stable.
//!
//! The current batches alias their pages, so one page a run stays pinned between two outputs, over
//! an await of the consumer too. The sorter counts them when it chooses how many runs to merge.
//!
//! Cost: log2(runs) comparisons a row and one gather.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use arrow::row::Rows;
use datafusion::common::{DataFusionError, Result};
use mayfly_table::{BatchRun, Drain};

use super::keys::{HEAD_BYTES, KeyEncoder, head};
use super::losers::LoserTree;
use crate::error::table_error;

/// A sorted run in pages.
pub(super) struct Run {
    pub data: BatchRun,
    pub rows: u64,
    /// Merges that its rows went through.
    pub level: u64,
}

/// The place of a merge in one run.
struct Cursor {
    /// What is left of the run; a page is freed as soon as nothing refers to its batch.
    drain: Drain,
    /// First bytes of the keys of the current batch.
    heads: Vec<u128>,
    /// Whole keys of the current batch; empty when the heads decide.
    rows: Rows,
    row: usize,
    /// Position of the current batch in `Merger::held`.
    slot: usize,
    live: bool,
}

/// A merge in progress.
pub(super) struct Merger {
    encoder: Arc<KeyEncoder>,
    heads_decide: bool,
    cursors: Vec<Cursor>,
    tree: LoserTree,
    held: Vec<RecordBatch>,
    held_max: usize,
    picks: Vec<(usize, usize)>,
    /// The cursor whose batch ended and whose next one is not loaded yet.
    waiting: Option<usize>,
    batch_rows: usize,
    rows_left: u64,
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
        // The first page of every run, pinned until its cursor has it: draining a run cannot be
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
        let mut merger = Self {
            encoder: Arc::clone(encoder),
            heads_decide: encoder.fits(HEAD_BYTES),
            cursors: Vec::with_capacity(runs.len()),
            tree: LoserTree::default(),
            held: Vec::new(),
            held_max: runs.len() + options.held_extra,
            picks: Vec::new(),
            waiting: None,
            batch_rows: options.batch_rows,
            rows_left: options.rows_max,
        };
        for (index, run) in runs.into_iter().enumerate() {
            merger.cursors.push(Cursor {
                drain: run.data.drain().map_err(table_error)?,
                heads: Vec::new(),
                rows: encoder.empty(),
                row: 0,
                slot: 0,
                live: true,
            });
            merger.load(index)?;
        }
        merger.tree = LoserTree::new(merger.cursors.len(), |a, b| merger.compare(a, b));
        Ok(merger)
    }

    /// Loads the next batch into a cursor, or ends the cursor.
    fn load(&mut self, index: usize) -> Result<()> {
        let cursor = &mut self.cursors[index];
        let Some(batch) = cursor.drain.next() else {
            cursor.live = false;
            cursor.heads = Vec::new();
            return Ok(());
        };
        let batch = batch.map_err(table_error)?;
        self.encoder.encode_into(&batch, &mut cursor.rows)?;
        cursor.heads.clear();
        cursor
            .heads
            .extend(cursor.rows.iter().map(|key| head(key.data())));
        cursor.row = 0;
        cursor.slot = self.held.len();
        self.held.push(batch);
        Ok(())
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (left, right) = (&self.cursors[a], &self.cursors[b]);
        match (left.live, right.live) {
            (true, true) => {}
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => return a.cmp(&b),
        }
        let mut order = left.heads[left.row].cmp(&right.heads[right.row]);
        if order.is_eq() && !self.heads_decide {
            order = left.rows.row(left.row).cmp(&right.rows.row(right.row));
        }
        order.then(a.cmp(&b))
    }

    /// Plays the matches of one cursor again after its row changed.
    fn replay(&mut self, cursor: usize) {
        let mut tree = std::mem::take(&mut self.tree);
        tree.replay(cursor, |a, b| self.compare(a, b));
        self.tree = tree;
    }

    /// The next rows in order, or none at the end. The batch may alias pages.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.picks.len() < self.batch_rows && self.rows_left > 0 {
            if let Some(index) = self.waiting {
                if self.held.len() >= self.held_max && !self.picks.is_empty() {
                    break;
                }
                match self.load(index) {
                    Ok(()) => {
                        self.waiting = None;
                        self.replay(index);
                    }
                    // Batches that only the output refers to may be what is in the way.
                    Err(_) if !self.picks.is_empty() => break,
                    Err(error) => return Err(error),
                }
            }
            let Some(cursor) = self.cursors.get_mut(self.tree.winner()) else {
                break;
            };
            if !cursor.live {
                break;
            }
            self.picks.push((cursor.slot, cursor.row));
            self.rows_left -= 1;
            cursor.row += 1;
            let winner = self.tree.winner();
            if cursor.row < cursor.heads.len() {
                self.replay(winner);
            } else {
                self.waiting = Some(winner);
            }
        }
        if self.picks.is_empty() {
            return Ok(None);
        }
        let batches: Vec<&RecordBatch> = self.held.iter().collect();
        let output = interleave_record_batch(&batches, &self.picks)?;
        self.picks.clear();
        self.release_ended();
        Ok(Some(output))
    }

    /// Keeps only the batches that cursors stand in.
    fn release_ended(&mut self) {
        let mut kept = Vec::with_capacity(self.cursors.len());
        for cursor in &mut self.cursors {
            if cursor.live && cursor.row < cursor.heads.len() {
                kept.push(self.held[cursor.slot].clone());
                cursor.slot = kept.len() - 1;
            }
        }
        self.held = kept;
    }
}
