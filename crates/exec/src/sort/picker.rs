//! Which rows come next, out of the current batches of several sorted inputs.
//!
//! Owns: [`Picker`]: the keys of the current batch of each input, and the batches that the next
//! output refers to. Never: reads an input; whoever merges does, when an input has run out of rows.
//!
//! ```text
//!    input 0: [batch]      keys of one batch each
//!    input 1: [batch]         \
//!    input 2: [batch]          > tree of losers -> picks (batch, row) -> output
//! ```
//!
//! The first sixteen key bytes are compared as one integer, the remaining bytes only when those are
//! equal; equal keys leave in the order of the inputs, so a merge is stable.
//!
//! Cost: log2(inputs) comparisons a row and one gather.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use arrow::row::Rows;
use datafusion::common::Result;

use super::keys::{HEAD_BYTES, KeyEncoder, head};
use super::losers::LoserTree;

/// What an output holds at most.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    pub rows: usize,
    pub bytes: usize,
    /// Batches that it refers to.
    pub held: usize,
}

/// A merge in progress, but for its inputs.
pub(super) struct Picker {
    // Fixed.
    encoder: Arc<KeyEncoder>,
    heads_decide: bool,
    limits: Limits,
    // State.
    cursors: Vec<Cursor>,
    /// None before all inputs have their first batch.
    tree: Option<LoserTree>,
    held: Vec<Held>,
    picks: Vec<(usize, usize)>,
    picked_bytes: usize,
    rows_left: u64,
    /// The inputs that wait for a batch, the last one first.
    waiting: Vec<usize>,
}

/// The place of a merge in one input.
struct Cursor {
    /// First bytes of the keys of the current batch.
    heads: Vec<u128>,
    /// Whole keys of the current batch.
    keys: Rows,
    row: usize,
    /// Position of the current batch in `Picker::held`.
    slot: usize,
    is_live: bool,
}

impl Cursor {
    /// Whether it stands in a batch that has more rows.
    fn has_row(&self) -> bool {
        self.is_live && self.row < self.heads.len()
    }
}

/// A batch that the next output may refer to.
struct Held {
    batch: RecordBatch,
    row_bytes: usize,
}

impl Picker {
    /// A merge of so many inputs, up to a number of rows. All of them wait for a batch.
    pub(super) fn new(
        encoder: &Arc<KeyEncoder>,
        inputs: usize,
        limits: Limits,
        rows_max: u64,
    ) -> Self {
        let cursor = || Cursor {
            heads: Vec::new(),
            keys: encoder.empty(),
            row: 0,
            slot: 0,
            is_live: true,
        };
        Self {
            encoder: Arc::clone(encoder),
            heads_decide: encoder.fits(HEAD_BYTES),
            limits,
            cursors: (0..inputs).map(|_| cursor()).collect(),
            tree: None,
            held: Vec::new(),
            picks: Vec::new(),
            picked_bytes: 0,
            rows_left: rows_max,
            waiting: (0..inputs).rev().collect(),
        }
    }

    /// The input whose next batch is needed before more rows can be picked.
    pub(super) fn waiting(&self) -> Option<usize> {
        self.waiting.last().copied()
    }

    /// Whether the next output has rows.
    pub(super) fn has_picks(&self) -> bool {
        !self.picks.is_empty()
    }

    /// Whether the next output refers to as many batches as it may.
    pub(super) fn holds_enough(&self) -> bool {
        self.has_picks() && self.held.len() >= self.limits.held
    }

    /// Gives the input that waits its next batch, which is not empty. `inner` is the batch as the
    /// encoder knows it, `row_bytes` what a row of it counts against the limit.
    pub(super) fn enter(
        &mut self,
        batch: RecordBatch,
        inner: &RecordBatch,
        row_bytes: usize,
    ) -> Result<()> {
        let Some(index) = self.waiting() else {
            return Ok(());
        };
        let cursor = &mut self.cursors[index];
        self.encoder.encode_into(inner, &mut cursor.keys)?;
        cursor.heads.clear();
        let heads = cursor.keys.iter().map(|key| head(key.data()));
        cursor.heads.extend(heads);
        cursor.row = 0;
        cursor.slot = self.held.len();
        self.held.push(Held { batch, row_bytes });
        self.resume(index);
        Ok(())
    }

    /// Ends the input that waits.
    pub(super) fn end(&mut self) {
        if let Some(index) = self.waiting() {
            let cursor = &mut self.cursors[index];
            cursor.is_live = false;
            cursor.heads = Vec::new();
            self.resume(index);
        }
    }

    /// The input that waited does no longer.
    fn resume(&mut self, index: usize) {
        self.waiting.pop();
        if self.tree.is_some() {
            self.replay(index);
        } else if self.waiting.is_empty() {
            let tree = LoserTree::new(self.cursors.len(), |a, b| self.compare(a, b));
            self.tree = Some(tree);
        }
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let (left, right) = (&self.cursors[a], &self.cursors[b]);
        match (left.is_live, right.is_live) {
            (true, true) => {}
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (false, false) => return a.cmp(&b),
        }
        let mut order = left.heads[left.row].cmp(&right.heads[right.row]);
        if order.is_eq() && !self.heads_decide {
            order = left.keys.row(left.row).cmp(&right.keys.row(right.row));
        }
        order.then(a.cmp(&b))
    }

    /// Plays the matches of one input again after its row changed.
    fn replay(&mut self, index: usize) {
        if let Some(mut tree) = self.tree.take() {
            tree.replay(index, |a, b| self.compare(a, b));
            self.tree = Some(tree);
        }
    }

    /// Whether the next output has room for more rows, if there are any.
    pub(super) fn has_room(&self) -> bool {
        self.picks.len() < self.limits.rows
            && self.picked_bytes < self.limits.bytes
            && self.rows_left > 0
    }

    /// Picks rows until an input waits or there is no room; `false` when all inputs have ended.
    pub(super) fn pick(&mut self) -> bool {
        while self.has_room() {
            let Some(winner) = self.tree.as_ref().map(LoserTree::winner) else {
                return true;
            };
            let Some(cursor) = self.cursors.get_mut(winner).filter(|cursor| cursor.is_live) else {
                return false;
            };
            self.picks.push((cursor.slot, cursor.row));
            self.picked_bytes += self.held[cursor.slot].row_bytes;
            self.rows_left -= 1;
            cursor.row += 1;
            if !cursor.has_row() {
                self.waiting.push(winner);
                return true;
            }
            self.replay(winner);
        }
        true
    }

    /// The rows that were picked, or none at the end. They may alias the batches of the inputs.
    pub(super) fn output(&mut self) -> Result<Option<RecordBatch>> {
        if self.picks.is_empty() {
            return Ok(None);
        }
        let batches: Vec<&RecordBatch> = self.held.iter().map(|held| &held.batch).collect();
        let output = interleave_record_batch(&batches, &self.picks)?;
        self.picks.clear();
        self.picked_bytes = 0;
        self.release_ended();
        Ok(Some(output))
    }

    /// Keeps only the batches that inputs stand in.
    fn release_ended(&mut self) {
        let mut held: Vec<Option<Held>> = self.held.drain(..).map(Some).collect();
        for cursor in &mut self.cursors {
            if cursor.has_row()
                && let Some(current) = held[cursor.slot].take()
            {
                self.held.push(current);
                cursor.slot = self.held.len() - 1;
            }
        }
    }
}
