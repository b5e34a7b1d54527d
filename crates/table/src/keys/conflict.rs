//! Rows that would meet others in a unique key: what INSERT IGNORE, REPLACE and ON DUPLICATE KEY
//! UPDATE ask before they write.

use std::collections::{HashMap, HashSet};

use arrow_array::RecordBatch;

use super::Indexes;
use super::encoder::{EncodedKeys, Reader};
use crate::error::Result;

/// A row that meets another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The row of the batch.
    pub row: usize,
    /// The place of the key in the table's definition.
    pub key: usize,
    /// The number of the table's row; `None` when it is an earlier row of the batch.
    pub number: Option<u64>,
}

/// What becomes of rows that meet an earlier row of their batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeats {
    /// They are conflicts like others: the earlier row stays, they do not.
    Count,
    /// They end the part of the batch that is looked at: what they meet must be written first.
    /// So does a row that meets the same row of the table as an earlier one.
    Stop,
}

/// The conflicts of the first rows of a batch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// How many rows were looked at.
    pub rows: usize,
    /// Their conflicts, by row and then by key; none for a row that can be written.
    pub found: Vec<Conflict>,
}

impl Indexes {
    /// Which rows of a batch of the table would meet others.
    pub(crate) fn conflicts(&self, batch: &RecordBatch, repeats: Repeats) -> Result<Conflicts> {
        let rows = batch.num_rows();
        // No row with a NULL in the key meets another one, so its number does not matter.
        let number = |row: usize| row as u64;
        let unique = self.indexes.iter().enumerate();
        let unique = unique.filter(|(_, index)| index.encoder.is_unique());
        let unique: Vec<_> = unique
            .map(|(key, index)| {
                let columns = index.columns.iter();
                let values: Vec<Reader<'_>> = columns
                    .map(|column| Reader::new(batch.column(*column)))
                    .collect();
                let mut keys = EncodedKeys::default();
                index.encoder.encode(&values, 0..rows, number, &mut keys);
                (key, index, keys)
            })
            .collect();
        let mut earlier: Vec<HashMap<&[u8], usize>> = vec![HashMap::new(); unique.len()];
        let mut met: HashSet<u64> = HashSet::new();
        let mut conflicts = Conflicts::default();
        for row in 0..rows {
            let before = conflicts.found.len();
            let mut repeated = false;
            for (seen, (key, index, keys)) in earlier.iter().zip(&unique) {
                if keys.has_null(row) {
                    continue;
                }
                let found = index.tree.get(keys.key(row))?;
                let number = found.and_then(|payload| payload.row_id());
                let repeats_row = number.is_none() && seen.contains_key(keys.key(row));
                repeated |= repeats_row;
                if number.is_some() || repeats_row {
                    conflicts.found.push(Conflict {
                        row,
                        key: *key,
                        number,
                    });
                }
            }
            if repeats == Repeats::Stop {
                let numbers = conflicts.found[before..].iter();
                let numbers: HashSet<u64> = numbers.filter_map(|found| found.number).collect();
                if repeated || numbers.iter().any(|number| met.contains(number)) {
                    conflicts.found.truncate(before);
                    return Ok(conflicts);
                }
                met.extend(numbers);
            }
            if conflicts.found.len() == before || repeats == Repeats::Stop {
                for (seen, (_, _, keys)) in earlier.iter_mut().zip(&unique) {
                    if !keys.has_null(row) {
                        seen.insert(keys.key(row), row);
                    }
                }
            }
            conflicts.rows = row + 1;
        }
        Ok(conflicts)
    }
}
