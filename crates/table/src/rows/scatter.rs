//! Rows on their way into radix partitions.

use std::sync::{Mutex, PoisonError};

use super::Error;
use super::encode::RowsView;
use super::partition::{Mode, Partition, make_room};
use super::row_table::Scratch;

/// The order of rows by partition: a counting sort of their hashes' upper bits.
#[derive(Default)]
pub(crate) struct Scatter {
    order: Vec<u32>,
    starts: Vec<u32>,
}

impl Scatter {
    /// Sorts rows by the `bits` hash bits behind the first `skip`.
    pub(crate) fn sort(&mut self, hashes: &[u64], skip: u32, bits: u32) {
        let count = 1usize << bits;
        // In two steps, since no bits at all are a shift by 64.
        let part = |hash: u64| ((hash << skip) >> 1 >> (63 - bits)) as usize;
        self.starts.clear();
        self.starts.resize(count + 1, 0);
        for hash in hashes {
            self.starts[part(*hash) + 1] += 1;
        }
        for at in 1..=count {
            self.starts[at] += self.starts[at - 1];
        }
        self.order.clear();
        self.order.resize(hashes.len(), 0);
        let mut next = self.starts.clone();
        for (row, hash) in hashes.iter().enumerate() {
            let at = &mut next[part(*hash)];
            self.order[*at as usize] = row as u32;
            *at += 1;
        }
    }

    pub(crate) fn rows_of(&self, partition: usize) -> &[u32] {
        &self.order[self.starts[partition] as usize..self.starts[partition + 1] as usize]
    }
    /// Puts all rows into their partitions, beginning at the partition `first`.
    pub(crate) fn distribute(
        &self,
        partitions: &[Mutex<Partition>],
        mode: Mode,
        rows: RowsView<'_>,
        first: usize,
        scratch: &mut Scratch,
    ) -> Result<(), Error> {
        let count = partitions.len();
        for step in 0..count {
            let number = (first + step) % count;
            let selection = self.rows_of(number);
            if !selection.is_empty() {
                let lock = partitions[number].lock();
                let mut partition = lock.unwrap_or_else(PoisonError::into_inner);
                fill(partitions, &mut partition, mode, rows, selection, scratch)?;
            }
        }
        Ok(())
    }
}

/// Puts all selected rows into a partition, withdrawing tables where memory is short.
pub(crate) fn fill(
    partitions: &[Mutex<Partition>],
    partition: &mut Partition,
    mode: Mode,
    rows: RowsView<'_>,
    mut selection: &[u32],
    scratch: &mut Scratch,
) -> Result<(), Error> {
    loop {
        let taken = partition.accept(mode, rows, selection, scratch)?;
        selection = &selection[taken..];
        if selection.is_empty() {
            return Ok(());
        }
        if !make_room(partitions, partition, mode, scratch)? {
            // Others hold the memory. Ask once more: the error says how much there is.
            let taken = partition.accept(Mode::Append, rows, &selection[..1], scratch)?;
            if taken == 0 {
                let row = &rows.bytes[rows.offsets[selection[0] as usize] as usize..];
                return Err(partition.short_of(partition.row_len(row) as u64));
            }
            selection = &selection[taken..];
        }
    }
}
