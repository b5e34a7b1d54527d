//! Many values of a key at once, and the entries of a key in their order.
//!
//! **Owns** the way through a tree that serves a whole batch: values are sorted first, so that
//! neighbours meet the same leaf, and equal ones are looked for once.

use std::ops::{Bound, Range};

use arrow_array::ArrayRef;

use super::decoder::KeyDecoder;
use super::{Index, Indexes, Search};
use crate::definition::{Key, KeyPart};
use crate::error::Result;
use crate::tree::{Cursor, KeyRange, split_row_id};

/// Different beginnings of a key that are counted before the rest is thought to be like them.
const COUNTED_MAX: u64 = 1024;

/// The rows that a batch of values finds, in the order of the key.
#[derive(Debug, Default)]
pub struct Lookup {
    /// For each row that was found, which value of the batch found it.
    pub places: Vec<u32>,
    /// The numbers of the rows.
    pub numbers: Vec<u64>,
}

/// Some entries of a key, one after the other.
#[derive(Debug, Default)]
pub struct Step {
    /// The numbers of the rows, in the order of the walk; fewer than were asked for at its end.
    pub numbers: Vec<u64>,
    /// Where the next step begins.
    pub next: Option<Place>,
}

/// A place between two entries of a key.
#[derive(Debug, Clone)]
pub struct Place(Vec<u8>);

impl Indexes {
    /// The rows that have certain values in the first parts of a key; `None` when they are more
    /// than `limit`. NULL finds nothing.
    pub(crate) fn lookup(
        &self,
        key: usize,
        values: &[ArrayRef],
        limit: usize,
    ) -> Result<Option<Lookup>> {
        let index = &self.indexes[key];
        let keys = index.encoder.beginnings(values);
        let mut cursor = index.tree.cursor();
        let mut found = Lookup::default();
        // Where the rows of the value before lie in the result.
        let mut before: Option<(usize, Range<usize>)> = None;
        for &place in keys.order() {
            let row = place as usize;
            if keys.has_null(row) {
                continue;
            }
            let start = found.numbers.len();
            match &before {
                Some((other, rows)) if keys.key(*other) == keys.key(row) => {
                    found.numbers.extend_from_within(rows.clone());
                }
                _ => index.extend(&mut cursor, keys.key(row), limit, &mut found.numbers)?,
            }
            if found.numbers.len() > limit {
                return Ok(None);
            }
            before = Some((row, start..found.numbers.len()));
            found.places.resize(found.numbers.len(), place);
        }
        Ok(Some(found))
    }

    /// The rows that have any of certain values in the first parts of a key, each once; `None` when
    /// they are more than `limit`. NULL finds nothing.
    pub(crate) fn lookup_any(
        &self,
        key: usize,
        values: &[ArrayRef],
        limit: usize,
    ) -> Result<Option<Vec<u64>>> {
        let index = &self.indexes[key];
        let keys = index.encoder.beginnings(values);
        let mut cursor = index.tree.cursor();
        let mut numbers = Vec::new();
        let mut before: Option<usize> = None;
        for &place in keys.order() {
            let row = place as usize;
            if keys.has_null(row) || before.is_some_and(|other| keys.key(other) == keys.key(row)) {
                continue;
            }
            index.extend(&mut cursor, keys.key(row), limit, &mut numbers)?;
            if numbers.len() > limit {
                return Ok(None);
            }
            before = Some(row);
        }
        // Of a part that is kept to a prefix one beginning may be that of another.
        numbers.sort_unstable();
        numbers.dedup();
        Ok(Some(numbers))
    }

    /// The next entries of those that a search finds, in the order of the key or against it.
    pub(crate) fn walk(
        &self,
        search: &Search,
        is_reversed: bool,
        from: Option<&Place>,
        count: usize,
    ) -> Result<Step> {
        let index = &self.indexes[search.key];
        let wanted = index.wanted(search);
        let range = wanted.range();
        let behind = from.map(|place| Bound::Excluded(place.0.as_slice()));
        let mut entries = match is_reversed {
            false => index.tree.range(KeyRange {
                low: behind.unwrap_or(range.low),
                ..range
            }),
            true => index.tree.range_reversed(KeyRange {
                high: behind.unwrap_or(range.high),
                ..range
            }),
        };
        let has_payload = index.tree.payload_bytes() > 0;
        let mut step = Step::default();
        while step.numbers.len() < count {
            let Some((key, payload)) = entries.next_entry()? else {
                return Ok(step);
            };
            let number = match has_payload {
                true => payload.row_id(),
                false => split_row_id(key).map(|(_, number)| number),
            };
            step.numbers.extend(number);
            if step.numbers.len() == count {
                step.next = Some(Place(key.to_vec()));
            }
        }
        Ok(step)
    }

    /// The values of some columns in the rows that searches find, read off the keys, and how many
    /// rows they are, in the order of the key; `None` when they are more than `limit`.
    pub(crate) fn values(
        &self,
        searches: &[Search],
        parts: &[usize],
        limit: usize,
    ) -> Result<Option<(Vec<ArrayRef>, usize)>> {
        let Some(first) = searches.first() else {
            return Ok(None);
        };
        let index = &self.indexes[first.key];
        let mut decoder = KeyDecoder::new(&index.encoder, parts);
        let mut count = 0;
        for wanted in index.wanted_once(searches) {
            let mut entries = index.tree.range(wanted.range());
            while let Some((key, _)) = entries.next_entry()? {
                count += 1;
                if count > limit {
                    return Ok(None);
                }
                decoder.push(key)?;
            }
        }
        Ok(Some((decoder.finish(parts)?, count)))
    }

    /// The parts of a key that hold these columns, if it holds them all, in full.
    pub(crate) fn covering(&self, key: &Key, at: usize, columns: &[usize]) -> Option<Vec<usize>> {
        let encoder = &self.indexes[at].encoder;
        let part_of = |column: &usize| {
            let mut parts = key.parts.iter().enumerate();
            let is_it =
                |(part, of): &(usize, &KeyPart)| of.column == *column && encoder.is_covering(*part);
            parts.find(is_it).map(|(part, _)| part)
        };
        columns.iter().map(part_of).collect()
    }

    /// About how many different values the first parts of a key have: exact when they are few, or
    /// as many as the rows.
    pub(crate) fn distinct(&self, key: usize, parts: usize) -> Result<u64> {
        let index = &self.indexes[key];
        let is_whole = parts == index.encoder.part_count();
        if index.encoder.is_unique() && is_whole {
            return Ok(index.tree.len());
        }
        let mut cursor = index.tree.cursor();
        let mut is_there = cursor.seek_first()?;
        let mut counted = 0;
        while is_there {
            if counted == COUNTED_MAX {
                let passed = index.tree.estimate(KeyRange {
                    low: Bound::Unbounded,
                    high: Bound::Excluded(cursor.key()),
                })?;
                let all = u128::from(index.tree.len()) * u128::from(counted);
                let all = all / u128::from(passed.max(1));
                return Ok(u64::try_from(all).unwrap_or(u64::MAX).max(counted));
            }
            counted += 1;
            let key = cursor.key();
            let beginning = index.encoder.length_of(key, parts);
            let Some(behind) = super::search::after(&key[..beginning]) else {
                break;
            };
            cursor.seek(&behind)?;
            is_there = cursor.is_at_entry();
        }
        Ok(counted)
    }

    /// Bytes of the pages of all trees, in memory or not.
    pub(crate) fn bytes(&self) -> u64 {
        self.indexes.iter().map(|index| index.tree.bytes()).sum()
    }
}

impl Index {
    /// Adds the numbers of the rows whose keys begin so; stops behind the limit.
    fn extend(
        &self,
        cursor: &mut Cursor<'_>,
        beginning: &[u8],
        limit: usize,
        numbers: &mut Vec<u64>,
    ) -> Result<()> {
        let has_payload = self.tree.payload_bytes() > 0;
        cursor.seek(beginning)?;
        while cursor.is_at_entry() && numbers.len() <= limit {
            let payload = cursor.payload().try_into().ok().map(u64::from_le_bytes);
            let key = cursor.key();
            if !key.starts_with(beginning) {
                break;
            }
            let number = match has_payload {
                true => payload,
                false => split_row_id(key).map(|(_, number)| number),
            };
            let is_only = key.len() == beginning.len();
            numbers.extend(number);
            // No other key begins with a whole one.
            if is_only {
                break;
            }
            cursor.next_entry()?;
        }
        Ok(())
    }
}
