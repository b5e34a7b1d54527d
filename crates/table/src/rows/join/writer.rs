//! One thread's way into a [`SideRows`].

use std::sync::Arc;

use arrow_array::ArrayRef;

use super::super::Error;
use super::super::encode::{GroupInput, RowBlock};
use super::super::hash::KeyHasher;
use super::super::layout::RowLayout;
use super::super::row_table::Scratch;
use super::super::scatter::Scatter;
use super::super::slices::{Slice, cut};
use super::side::SideRows;

/// Encodes the rows of batches and brings them to their partitions.
pub struct SideWriter {
    side: Arc<SideRows>,
    first_partition: usize,
    block: RowBlock,
    scatter: Scatter,
    scratch: Scratch,
    /// Rows so far whose keys have no equal.
    unmatchable_rows: u64,
}

impl SideWriter {
    /// A worker that fills a side; one for each input stream, with its number.
    pub fn new(side: &Arc<SideRows>, number: usize) -> SideWriter {
        SideWriter {
            first_partition: (number << side.partition_bits()) / side.workers(),
            side: Arc::clone(side),
            block: RowBlock::default(),
            scatter: Scatter::default(),
            scratch: Scratch::default(),
            unmatchable_rows: number as u64,
        }
    }

    /// Takes all rows of a batch in: their keys, and what is carried.
    ///
    /// # Errors
    /// Whatever the temp space reports: quota, disk full, I/O; then the side is to be dropped.
    pub fn push(
        &mut self,
        rows: usize,
        key: &[ArrayRef],
        payload: &[ArrayRef],
    ) -> Result<(), Error> {
        self.push_input(&GroupInput {
            rows,
            key,
            payload,
            states: &[],
        })
    }

    /// Takes some rows of a batch in.
    ///
    /// # Errors
    /// As [`SideWriter::push`].
    pub fn push_picked(
        &mut self,
        rows: usize,
        key: &[ArrayRef],
        payload: &[ArrayRef],
        picked: &[u32],
    ) -> Result<(), Error> {
        let input = GroupInput {
            rows,
            key,
            payload,
            states: &[],
        };
        if picked.len() == rows {
            return self.push_input(&input);
        }
        self.push_input(&Slice::picked(&input, picked).input())
    }

    fn push_input(&mut self, input: &GroupInput<'_>) -> Result<(), Error> {
        let side = Arc::clone(&self.side);
        let shape = side.shape();
        let cuts = cut(&shape.layout, input).map_err(|row_bytes| shape.short_of(row_bytes))?;
        let is_whole = cuts.len() == 1;
        for rows in cuts {
            shape.stop.check()?;
            let slice = (!is_whole).then(|| Slice::of(input, rows));
            let part = slice.as_ref().map(Slice::input);
            let part = part.as_ref().unwrap_or(input);
            self.block.encode(&shape.layout, &shape.hasher, part);
            self.spread_unmatchable(&shape.layout, &shape.hasher);
            side.push(
                self.block.view(),
                self.first_partition,
                &mut self.scatter,
                &mut self.scratch,
            )?;
        }
        self.block.shrink();
        Ok(())
    }

    /// Gives rows whose keys have no equal hashes as they come: nobody looks for them, and a
    /// million rows with the key NULL must not be one partition.
    fn spread_unmatchable(&mut self, layout: &RowLayout, hasher: &KeyHasher) {
        if !layout.has_unmatchable_keys() {
            return;
        }
        let RowBlock {
            bytes,
            offsets,
            hashes,
            ..
        } = &mut self.block;
        for (offset, hash) in offsets.iter().zip(hashes) {
            let row = &mut bytes[*offset as usize..];
            if !layout.is_matchable(layout.key_of(row)) {
                self.unmatchable_rows += 1;
                *hash = hasher.hash(&self.unmatchable_rows.to_le_bytes());
                row[..8].copy_from_slice(&hash.to_le_bytes());
            }
        }
    }
}
