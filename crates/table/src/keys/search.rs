//! Rows by the values of a key.

use std::ops::Bound;

use arrow_array::ArrayRef;

use super::{Index, Indexes};
use crate::error::Result;
use crate::tree::KeyRange;

/// What is asked of a key: its first parts have certain values, and the part behind them lies
/// between bounds. Each value is an array of one row, of the type of its column.
///
/// A part that is kept to a prefix only finds more rows than are asked for; who asks filters them.
#[derive(Debug, Clone)]
pub struct Search {
    /// The place of the key in the table's definition.
    pub key: usize,
    /// The values of its first parts; NULL finds NULL.
    pub equal: Vec<ArrayRef>,
    /// From where the next part reaches. NULL lies outside of all bounds.
    pub low: Bound<ArrayRef>,
    /// To where the next part reaches.
    pub high: Bound<ArrayRef>,
}

impl Search {
    /// The rows whose first parts have these values.
    pub fn equal(key: usize, equal: Vec<ArrayRef>) -> Self {
        Self {
            key,
            equal,
            low: Bound::Unbounded,
            high: Bound::Unbounded,
        }
    }

    /// Whether it finds all rows.
    pub fn is_whole(&self) -> bool {
        let is_unbounded = |bound: &Bound<ArrayRef>| matches!(bound, Bound::Unbounded);
        self.equal.is_empty() && is_unbounded(&self.low) && is_unbounded(&self.high)
    }
}

/// The keys that a search asks for.
pub(super) enum Wanted {
    /// One key of a unique index.
    One(Vec<u8>),
    /// From the first, and up to the second without it.
    Range(Vec<u8>, Option<Vec<u8>>),
}

impl Wanted {
    /// The first key that it may find.
    fn low(&self) -> &[u8] {
        match self {
            Wanted::One(low) | Wanted::Range(low, _) => low,
        }
    }

    /// Whether no key lies between its ends: `BETWEEN 9 AND 3`.
    fn is_empty(&self) -> bool {
        matches!(self, Wanted::Range(low, Some(high)) if low >= high)
    }

    /// Takes in another one that begins at the same key or behind it; gives it back where some key
    /// may lie between the two.
    fn join(&mut self, next: Wanted) -> Option<Wanted> {
        match (&mut *self, next) {
            (Wanted::One(key), next) if next.low() != key.as_slice() => Some(next),
            (Wanted::One(_), next) => {
                *self = next;
                None
            }
            (Wanted::Range(_, None), _) => None,
            (Wanted::Range(_, Some(high)), Wanted::One(key)) => {
                (key >= *high).then_some(Wanted::One(key))
            }
            (Wanted::Range(_, Some(high)), Wanted::Range(low, to)) if low > *high => {
                Some(Wanted::Range(low, to))
            }
            (Wanted::Range(_, high), Wanted::Range(_, to)) => {
                // No bound lies behind all bounds.
                *high = match (high.take(), to) {
                    (Some(high), Some(to)) => Some(high.max(to)),
                    _ => None,
                };
                None
            }
        }
    }

    pub(super) fn range(&self) -> KeyRange<'_> {
        match self {
            Wanted::One(key) => KeyRange {
                low: Bound::Included(key),
                high: Bound::Included(key),
            },
            Wanted::Range(low, high) => KeyRange {
                low: Bound::Included(low),
                high: match high {
                    Some(high) => Bound::Excluded(high),
                    None => Bound::Unbounded,
                },
            },
        }
    }
}

impl Indexes {
    /// The numbers of the rows that searches of one key find, each of them once; `None` when they
    /// are more than `limit`. They come in the order of the key if there is one search.
    pub(crate) fn search(&self, searches: &[Search], limit: usize) -> Result<Option<Vec<u64>>> {
        let Some(first) = searches.first() else {
            return Ok(Some(Vec::new()));
        };
        let index = &self.indexes[first.key];
        let mut numbers = Vec::new();
        if let [search] = searches {
            let is_all = index.search(&index.wanted(search), limit, &mut numbers)?;
            return Ok(is_all.then_some(numbers));
        }
        for wanted in index.wanted_once(searches) {
            if !index.search(&wanted, limit, &mut numbers)? {
                return Ok(None);
            }
        }
        // By pages, each of which is read once then.
        numbers.sort_unstable();
        Ok(Some(numbers))
    }

    /// About how many rows a search finds.
    pub(crate) fn estimate(&self, search: &Search) -> Result<u64> {
        let index = &self.indexes[search.key];
        match index.wanted(search) {
            Wanted::One(_) => Ok(1),
            wanted => index.tree.estimate(wanted.range()),
        }
    }
}

impl Index {
    /// Adds the numbers of the rows that a search finds; whether they are within the limit.
    fn search(&self, wanted: &Wanted, limit: usize, numbers: &mut Vec<u64>) -> Result<bool> {
        if wanted.is_empty() {
            return Ok(true);
        }
        if let Wanted::One(key) = wanted {
            let found = self.tree.get(key)?;
            numbers.extend(found.and_then(|payload| payload.row_id()));
            return Ok(numbers.len() <= limit);
        }
        let mut range = self.tree.range(wanted.range());
        while range.next_row_ids(numbers)? {
            if numbers.len() > limit {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What several searches ask for, in the order of the key: ranges that meet are one, so that no
    /// key lies in two of them.
    pub(super) fn wanted_once(&self, searches: &[Search]) -> Vec<Wanted> {
        let mut all: Vec<Wanted> = { searches.iter() }
            .map(|search| self.wanted(search))
            .filter(|wanted| !wanted.is_empty())
            .collect();
        all.sort_unstable_by(|one, other| one.low().cmp(other.low()));
        let mut joined: Vec<Wanted> = Vec::with_capacity(all.len());
        for wanted in all {
            let apart = match joined.last_mut() {
                Some(last) => last.join(wanted),
                None => Some(wanted),
            };
            joined.extend(apart);
        }
        joined
    }

    pub(super) fn wanted(&self, search: &Search) -> Wanted {
        let (encoder, at) = (&self.encoder, search.equal.len());
        let (beginning, has_null) = encoder.beginning(&search.equal, 0);
        if at == encoder.part_count() {
            if encoder.is_unique() && !has_null {
                return Wanted::One(beginning);
            }
            let end = after(&beginning);
            return Wanted::Range(beginning, end);
        }
        let encoded = |value: &ArrayRef| {
            let mut values = search.equal.clone();
            values.push(value.clone());
            encoder.beginning(&values, 0).0
        };
        // A bound that leaves its value out still needs it where only a prefix was kept.
        let exact = encoder.is_whole(at);
        // Behind the greatest key there is none, which is not the same as no bound.
        let mut is_empty = false;
        let mut from = |bound: &Bound<ArrayRef>| match bound {
            Bound::Included(value) => Some(encoded(value)),
            Bound::Excluded(value) if exact => {
                let low = after(&encoded(value));
                is_empty |= low.is_none();
                low
            }
            Bound::Excluded(value) => Some(encoded(value)),
            Bound::Unbounded => None,
        };
        let to = |bound: &Bound<ArrayRef>| match bound {
            Bound::Included(value) => after(&encoded(value)),
            Bound::Excluded(value) if exact => Some(encoded(value)),
            Bound::Excluded(value) => after(&encoded(value)),
            Bound::Unbounded => None,
        };
        let is_bounded = !matches!(
            (&search.low, &search.high),
            (Bound::Unbounded, Bound::Unbounded)
        );
        // All values that are not NULL, or all rows where nothing is asked of the part.
        let mut all = beginning;
        all.extend(encoder.value_mark(at).filter(|_| is_bounded));
        let (low, high) = match encoder.is_descending(at) {
            false => (from(&search.low), to(&search.high)),
            true => (from(&search.high), to(&search.low)),
        };
        if is_empty {
            return Wanted::Range(Vec::new(), Some(Vec::new()));
        }
        Wanted::Range(
            low.unwrap_or_else(|| all.clone()),
            high.or_else(|| after(&all)),
        )
    }
}

/// The smallest key behind all that begin with these bytes; `None` if there is none.
pub(super) fn after(beginning: &[u8]) -> Option<Vec<u8>> {
    let end = beginning.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut after = beginning[..=end].to_vec();
    after[end] += 1;
    Some(after)
}
