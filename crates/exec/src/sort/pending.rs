//! Rows that wait, in memory, to become a run.
//!
//! Owns: the batches of an unfinished run and the entries that order them. Never: reserves
//! memory or writes a page; its owner does both from [`Pending::bytes`].

use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::compute::interleave_record_batch;
use arrow::datatypes::SchemaRef;
use arrow::row::Rows;
use datafusion::common::Result;

use super::deciding_bytes::DecidingBytes;
use super::keys::KeyEncoder;
use super::order::{PREFIX_BYTES, entry, prefix_bytes, row_index, sort_narrow, sort_wide};
use crate::compact::batch_bytes;

/// Bits of a row index that count rows inside a batch; the others count batches.
const ROW_BITS: u32 = 14;
/// Rows of a batch at most.
pub(super) const BATCH_ROWS_MAX: usize = 1 << ROW_BITS;
/// Batches of a run at most.
const BATCHES_MAX: usize = 1 << (32 - ROW_BITS);
/// Bytes of an entry, with the slack of a growing vector.
const ENTRY_BYTES: usize = 24;
/// Bytes of the structures around a batch and around each of its columns.
const BATCH_OVERHEAD_BYTES: usize = 256;

/// Batches and the order of their rows.
pub(super) struct Pending {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// Row bytes of each batch; empty when the entries hold the whole keys.
    keys: Vec<Rows>,
    /// Until they are sorted, row indexes alone where they do not hold the whole keys.
    entries: Vec<u128>,
    /// Bytes of every key, when all have the same.
    fixed: Option<usize>,
    /// The same, when the entries hold the whole keys.
    narrow: Option<usize>,
    sorted: bool,
    bytes: usize,
}

/// Bytes that a batch takes while it waits, its keys left out.
pub(super) fn waiting_bytes(batch: &RecordBatch) -> usize {
    batch_bytes(batch)
        + batch.num_rows() * ENTRY_BYTES
        + (1 + batch.num_columns()) * BATCH_OVERHEAD_BYTES
}

fn split(index: u32) -> (usize, usize) {
    (
        (index >> ROW_BITS) as usize,
        (index & ((1 << ROW_BITS) - 1)) as usize,
    )
}

impl Pending {
    pub(super) fn new(schema: SchemaRef, encoder: &KeyEncoder) -> Self {
        Self {
            schema,
            batches: Vec::new(),
            keys: Vec::new(),
            entries: Vec::new(),
            fixed: encoder.fixed_bytes(),
            narrow: encoder.fixed_bytes().filter(|&bytes| bytes <= PREFIX_BYTES),
            sorted: false,
            bytes: 0,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that the rows take in memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn has_room_for_batch(&self) -> bool {
        self.batches.len() < BATCHES_MAX
    }

    /// Bytes that [`Self::push`] would add.
    pub(super) fn cost(&self, batch: &RecordBatch, keys: &Rows) -> usize {
        waiting_bytes(batch)
            + if self.narrow.is_some() {
                0
            } else {
                keys.size()
            }
    }

    /// Adds a batch of at most [`BATCH_ROWS_MAX`] rows.
    pub(super) fn push(&mut self, batch: RecordBatch, keys: Rows) {
        debug_assert!(batch.num_rows() <= BATCH_ROWS_MAX && self.has_room_for_batch());
        self.bytes += self.cost(&batch, &keys);
        self.sorted = false;
        let base = u32::try_from(self.batches.len() << ROW_BITS)
            .expect("the number of batches is limited to the bits left");
        let indexes = base..;
        if self.narrow.is_some() {
            let entries = indexes
                .zip(&keys)
                .map(|(index, key)| entry(key.data(), index));
            self.entries.extend(entries);
        } else {
            // Which bytes of the keys go into entries is known when all of them are there.
            self.entries
                .extend(indexes.take(keys.num_rows()).map(u128::from));
            self.keys.push(keys);
        }
        self.batches.push(batch);
    }

    /// Orders the rows; rows beyond `limit` are forgotten.
    pub(super) fn sort(&mut self, limit: Option<usize>) {
        if !self.sorted {
            if self.narrow.is_some() {
                sort_narrow(&mut self.entries);
            } else {
                self.sort_by_deciding_bytes();
            }
            self.sorted = true;
        }
        if let Some(limit) = limit {
            self.entries.truncate(limit);
        }
    }

    fn sort_by_deciding_bytes(&mut self) {
        let keys = &self.keys;
        let all = keys
            .iter()
            .flat_map(|keys| keys.iter().map(|key| key.data()));
        let deciding = match self.fixed {
            Some(length) => DecidingBytes::of_fixed(length, all),
            None => DecidingBytes::behind_common(all),
        };
        let key_of = |index| {
            let (batch, row) = split(index);
            keys[batch].row(row).data()
        };
        for entry in &mut self.entries {
            let index = row_index(*entry);
            *entry = deciding.entry(key_of(index), index);
        }
        match deciding.rest() {
            None => sort_narrow(&mut self.entries),
            Some(rest) => sort_wide(&mut self.entries, rest, key_of),
        }
    }

    /// The key of the row at a place in the order.
    pub(super) fn key(&self, place: usize) -> Vec<u8> {
        let entry = self.entries[place];
        if let Some(bytes) = self.narrow {
            return prefix_bytes(entry)[..bytes].to_vec();
        }
        let (batch, row) = split(row_index(entry));
        self.keys[batch].row(row).data().to_vec()
    }

    /// The rows at a range of places, as one batch.
    pub(super) fn gather(&self, places: Range<usize>) -> Result<RecordBatch> {
        let picks: Vec<(usize, usize)> = self.entries[places]
            .iter()
            .map(|&entry| split(row_index(entry)))
            .collect();
        let batches: Vec<&RecordBatch> = self.batches.iter().collect();
        if batches.is_empty() {
            return Ok(RecordBatch::new_empty(self.schema.clone()));
        }
        Ok(interleave_record_batch(&batches, &picks)?)
    }

    /// Forgets all rows.
    pub(super) fn clear(&mut self) {
        self.batches = Vec::new();
        self.keys = Vec::new();
        self.entries = Vec::new();
        self.sorted = false;
        self.bytes = 0;
    }
}
