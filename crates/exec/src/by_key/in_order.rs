//! The rows of a table in the order of a key.
//!
//! Owns: which key lies in the order that is asked for, and the walk along its entries, some rows
//! at a time. Never: checks a condition; it narrows the walk where it may.

use std::ops::Bound;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::SortOptions;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Expr;
use mayfly_table::{ByKey, KeyPlace, Search, Table};

use super::ROWS_FEW;
use super::choice::{Access, in_order, keeps_order};
use super::pipeline::Source;
use super::rows_by_key;
use super::scan::Found;
use crate::error::table_error;
use crate::reads::TableReads;

/// The rows that are shown take at most so much memory, and those that are read at once.
pub(super) const KEPT_BYTES_MAX: u64 = 1 << 20;
/// Rows that are read at once, where some of them may be left out.
const STEP_ROWS_MIN: usize = 64;
const STEP_ROWS_MAX: usize = 8192;

/// A column that rows are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ordered {
    column: usize,
    is_descending: bool,
}

impl Ordered {
    /// The order by a column of a table; `None` if NULL stands elsewhere than in MySQL, or the type
    /// compares in another way than the bytes of a key.
    pub(crate) fn by(table: &Table, column: usize, options: SortOptions) -> Option<Ordered> {
        let of_table = &table.columns()[column];
        let is_descending = options.descending;
        let has_null_in_place = !of_table.is_nullable || options.nulls_first != is_descending;
        (has_null_in_place && keeps_order(&of_table.column_type)).then_some(Ordered {
            column,
            is_descending,
        })
    }
}

/// A key whose entries lie in an order or against it, and what is asked of it.
pub(crate) struct OrderedKey {
    pub(crate) search: Search,
    pub(crate) is_reversed: bool,
    /// How many of its parts are asked for.
    parts: usize,
    access: Access,
}

impl OrderedKey {
    /// The key of whose parts conditions ask for most, of those that lie in an order.
    pub(crate) fn best(table: &Table, filters: &[Expr], ordered: &[Ordered]) -> Option<OrderedKey> {
        let mut best: Option<OrderedKey> = None;
        for key in 0..table.definition().keys.len() {
            let found = in_order(table, key, filters);
            let equal = found.search.equal.len();
            let Some(is_reversed) = direction(table, key, equal, ordered) else {
                continue;
            };
            if best.as_ref().is_none_or(|best| found.parts > best.parts) {
                best = Some(OrderedKey {
                    search: found.search,
                    is_reversed,
                    parts: found.parts,
                    access: found.access,
                });
            }
        }
        best
    }

    /// Whether conditions ask for any of its parts.
    pub(crate) fn is_narrowed(&self) -> bool {
        self.parts > 0
    }

    /// The same without the rows in which the column of an order is NULL. Where conditions ask for
    /// a value or a range of the column, no bound is added: they leave NULL out, or want it alone.
    /// `None` if the type of the column has no least value.
    pub(crate) fn without_null(mut self, table: &Table, ordered: Ordered) -> Option<OrderedKey> {
        let search = &mut self.search;
        let key = &table.definition().keys[search.key];
        let is_unbounded = |bound: &Bound<ArrayRef>| matches!(bound, Bound::Unbounded);
        if let Some(part) = key.parts.get(search.equal.len())
            && part.column == ordered.column
            && table.columns()[part.column].is_nullable
            && is_unbounded(&search.low)
            && is_unbounded(&search.high)
        {
            // NULL lies outside of all bounds.
            let least = ScalarValue::min(table.schema().field(part.column).data_type())?;
            search.low = Bound::Included(least.to_array().ok()?);
        }
        Some(self)
    }

    /// The key, as EXPLAIN shows it.
    pub(super) fn found(&self, source: &Source) -> Found {
        let table = &source.table;
        Found {
            table: table.clone(),
            key: self.search.key,
            parts: match self.parts {
                0 => table.definition().keys[self.search.key].parts.len(),
                parts => parts,
            },
            access: self.access,
            is_covered: false,
        }
    }

    /// What reading some rows counts as, the first ones among them or not.
    fn reads(&self, rows: usize, is_first: bool) -> TableReads {
        let (rows, is_whole) = (rows as u64, self.search.is_whole());
        let mut reads = TableReads::default();
        match self.is_reversed {
            true => reads.previous_rows = rows,
            false => reads.next_rows = rows,
        }
        match (is_first, is_whole, self.is_reversed) {
            (false, ..) => {}
            (true, true, false) => reads.firsts = 1,
            (true, true, true) => reads.lasts = 1,
            (true, false, _) => reads.searches = 1,
        }
        reads
    }
}

/// Whether the first rows in an order may be worth reading by a key: they are few and take little
/// memory, and are not among few that a key has found already, which are sorted sooner.
pub(crate) fn is_worth(source: &Source, fetch: usize, found: Option<u64>) -> bool {
    let fetch = fetch as u64;
    let is_small = fetch <= rows_by_key(source.snapshot.row_count())
        && fetch.saturating_mul(source.row_bytes()) <= KEPT_BYTES_MAX;
    let is_found = found.is_some_and(|found| found <= ROWS_FEW.max(fetch.saturating_mul(2)));
    fetch > 0 && is_small && !is_found
}

/// Whether the entries of a key lie in an order (`false`) or against it (`true`), where the first
/// parts have one value each.
fn direction(table: &Table, key: usize, equal: usize, ordered: &[Ordered]) -> Option<bool> {
    let key = &table.definition().keys[key];
    let mut wanted = ordered.iter().peekable();
    let mut is_reversed = None;
    for (index, part) in key.parts.iter().enumerate() {
        let Some(next) = wanted.peek() else {
            break;
        };
        let is_constant = index < equal;
        if part.column != next.column {
            if is_constant {
                continue;
            }
            return None;
        }
        if !is_constant {
            if part.prefix.is_some() {
                return None;
            }
            let against = part.is_descending != next.is_descending;
            if *is_reversed.get_or_insert(against) != against {
                return None;
            }
        }
        wanted.next();
    }
    // Behind a key that tells all rows apart nothing is left to be ordered.
    let is_ordered = wanted.peek().is_none() || table.definition().identifies(key);
    is_ordered.then_some(is_reversed.unwrap_or(false))
}

/// Reads rows along a key, more with each step.
pub(crate) struct Walk<'a> {
    source: &'a Source,
    key: &'a OrderedKey,
    place: Option<KeyPlace>,
    has_begun: bool,
    has_ended: bool,
    step_rows: usize,
    step_rows_max: usize,
    /// The rows that may still be read.
    limit: usize,
}

/// The rows of a step.
pub(crate) enum Walked {
    /// Some rows in their order, how many they are and what reading them counts as.
    Rows(Option<RecordBatch>, usize, TableReads),
    /// There are no more.
    End,
    /// They are more than the limit, or the table has changed.
    GivenUp,
}

impl<'a> Walk<'a> {
    /// The walk to the first `fetch` rows, among which `has_filter` leaves some out.
    pub(crate) fn begin(
        source: &'a Source,
        key: &'a OrderedKey,
        fetch: usize,
        has_filter: bool,
        limit: usize,
    ) -> Self {
        let rows_max = usize::try_from(KEPT_BYTES_MAX / source.row_bytes()).unwrap_or(usize::MAX);
        Self {
            source,
            key,
            place: None,
            has_begun: false,
            has_ended: false,
            step_rows: match has_filter {
                true => fetch.max(STEP_ROWS_MIN),
                false => fetch,
            },
            step_rows_max: rows_max.clamp(1, STEP_ROWS_MAX),
            limit,
        }
    }

    /// The next rows.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub(crate) fn next(&mut self) -> Result<Walked> {
        if self.has_ended {
            return Ok(Walked::End);
        }
        let count = self.step_rows.min(self.step_rows_max).min(self.limit);
        if count == 0 {
            return Ok(Walked::GivenUp);
        }
        let (source, key) = (self.source, self.key);
        let step = source.table.walk(
            &source.snapshot,
            &key.search,
            key.is_reversed,
            self.place.as_ref(),
            count,
        );
        let ByKey::Found(step) = step.map_err(table_error)? else {
            return Ok(Walked::GivenUp);
        };
        let count = step.numbers.len();
        let reads = key.reads(count, !self.has_begun);
        self.has_begun = true;
        self.limit -= count;
        self.step_rows *= 2;
        self.place = step.next;
        self.has_ended = self.place.is_none();
        let rows = match count {
            0 => None,
            _ => Some(source.rows(&step.numbers)?),
        };
        Ok(Walked::Rows(rows, count, reads))
    }
}
