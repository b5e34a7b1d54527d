//! Parts that are too large, split by more hash bits.

use std::sync::{Arc, Mutex, PoisonError};

use super::Error;
use super::hash::Level;
use super::partition::{Mode, Partition, make_room};
use super::row_table::Scratch;
use super::scatter::Scatter;
use super::segment::{OpenSegment, Segment, Shape};
use super::walked::Walked;

/// Distributes pages over 2^`bits` partitions of the level `below`, freeing them one by one. The
/// partitions are settled, and stand in the order of their hash bits.
pub(crate) fn split_pages(
    shape: &Arc<Shape>,
    number: u32,
    below: Level,
    bits: u32,
    cold: Vec<Segment>,
    mode: Mode,
    scratch: &mut Scratch,
) -> Result<Vec<Partition>, Error> {
    let partitions: Vec<Mutex<Partition>> = (0..1 << bits)
        .map(|_| Mutex::new(Partition::new(shape, number, below, 1 << bits)))
        .collect();
    let mut scatter = Scatter::default();
    let mut walked = Walked::default();
    let mut second_hashes: Vec<u64> = Vec::new();
    for segment in cold {
        shape.stop.check()?;
        let open = open_or_make_room(&segment, &partitions, mode, scratch)?;
        let rows = walked.rows(&shape.layout, &open);
        let splitting = if below.is_second() {
            second_hashes.clear();
            let rows_at = rows.offsets.iter().map(|at| open.row(*at as usize));
            let keys = rows_at.map(|row| shape.layout.key_of(row));
            second_hashes.extend(keys.map(|key| shape.hasher.second_hash(key)));
            &second_hashes
        } else {
            rows.hashes
        };
        scatter.sort(splitting, below.shared_bits() - bits, bits);
        scatter.distribute(&partitions, mode, rows, 0, scratch)?;
    }
    let mut settled = Vec::with_capacity(partitions.len());
    for partition in partitions {
        let mut partition = partition
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        partition.settle(scratch)?;
        settled.push(partition);
    }
    Ok(settled)
}

/// Pins a page, for which the fullest partition lets its own go where memory is short.
pub(crate) fn open_or_make_room(
    segment: &Segment,
    partitions: &[Mutex<Partition>],
    mode: Mode,
    scratch: &mut Scratch,
) -> Result<OpenSegment, Error> {
    loop {
        if let Some(open) = segment.open()? {
            return Ok(open);
        }
        let mut any = partitions[0].lock().unwrap_or_else(PoisonError::into_inner);
        if !make_room(partitions, &mut any, mode, scratch)? {
            return Ok(segment.open_or_fail()?);
        }
    }
}
