//! The rows of a table in the order of a key.
//!
//! Owns: which key lies in the order that is asked for, and the walk along its entries, some rows
//! at a time, through the filters and projections above the table. Never: reads many bytes at once,
//! however the rows that it meets differ in length.

use std::ops::Bound;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::compute::SortOptions;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::Expr;
use mayfly_space::{Account, Reservation};
use mayfly_table::{ByKey, KeyPlace, Search, Table};

use super::choice::{Access, in_order, keeps_order};
use super::limits::{ROWS_FEW, rows_by_key};
use super::pipeline::Steps;
use super::scan::Found;
use crate::error::table_error;
use crate::reads::TableReads;
use crate::source::Source;

/// The rows that are shown take about so much memory at most, and those that are read at once.
const KEPT_BYTES_MAX: u64 = 1 << 20;
/// The rows of the first step and of the largest one.
const STEP_ROWS_MIN: usize = 16;
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

    /// Whether a key of the table has the column.
    pub(crate) fn has_key(&self, table: &Table) -> bool {
        let mut keys = table.definition().keys.iter();
        keys.any(|key| key.parts.iter().any(|part| part.column == self.column))
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

/// Reads the first rows along a key, more with each step.
pub(crate) struct Walk<'a> {
    source: &'a Source,
    key: &'a OrderedKey,
    steps: &'a Steps,
    place: Option<KeyPlace>,
    has_begun: bool,
    has_ended: bool,
    step_rows: usize,
    /// The rows that may still be read.
    limit: usize,
    /// The rows that are still wanted.
    left: usize,
    /// Memory of the rows that were handed out and of a step.
    reservation: Reservation,
    kept_bytes: u64,
}

/// What a step of a walk comes to.
pub(crate) enum Walked {
    Step(WalkStep),
    /// There are no more rows, or no more are wanted.
    End,
    /// More rows than the limit or the memory allows would be read, or the table has changed.
    GivenUp,
}

/// A step of a walk.
pub(crate) struct WalkStep {
    /// The rows that are wanted, in their order; `None` if there are none.
    pub(crate) rows: Option<RecordBatch>,
    /// How many rows were read.
    pub(crate) count: usize,
    /// The memory that they took.
    pub(crate) bytes: u64,
    /// What reading them counts as.
    pub(crate) reads: TableReads,
}

impl<'a> Walk<'a> {
    /// The walk to the first `fetch` rows behind some steps, which reads no more than `limit`
    /// rows; `None` if there is no memory for it.
    pub(crate) fn begin(
        source: &'a Source,
        key: &'a OrderedKey,
        steps: &'a Steps,
        fetch: usize,
        limit: usize,
        account: &Account,
    ) -> Option<Self> {
        let reservation = account.reserve(2 * KEPT_BYTES_MAX).ok()?;
        Some(Self {
            source,
            key,
            steps,
            place: None,
            has_begun: false,
            has_ended: false,
            step_rows: STEP_ROWS_MIN,
            limit,
            left: fetch,
            reservation,
            kept_bytes: 0,
        })
    }

    /// The next rows.
    ///
    /// # Errors
    /// If a page cannot be read, or a filter or projection fails.
    pub(crate) fn next(&mut self) -> Result<Walked> {
        if self.has_ended || self.left == 0 {
            return Ok(Walked::End);
        }
        let wanted = match self.steps.has_filter() {
            true => self.step_rows,
            false => self.step_rows.min(self.left),
        };
        let Some((ids, place)) = self.ids(wanted.min(self.limit))? else {
            return Ok(Walked::GivenUp);
        };
        let count = ids.len();
        let mut step = WalkStep {
            rows: None,
            count,
            bytes: 0,
            reads: self.key.reads(count, !self.has_begun),
        };
        self.has_begun = true;
        self.limit -= count;
        self.has_ended = place.is_none();
        self.place = place;
        if count > 0 {
            let rows = self.source.rows_by_id(&ids)?;
            step.bytes = rows.get_array_memory_size() as u64;
            self.step_rows = next_step_rows(self.step_rows, count, step.bytes);
            let (rows, _) = self.steps.run(rows)?;
            let rows = rows.slice(0, rows.num_rows().min(self.left));
            self.left -= rows.num_rows();
            if rows.num_rows() > 0 {
                if !self.keeps(&rows) {
                    return Ok(Walked::GivenUp);
                }
                step.rows = Some(rows);
            }
        }
        Ok(Walked::Step(step))
    }

    /// Ends the walk: the memory of the rows that it has handed out.
    pub(crate) fn end(mut self) -> Reservation {
        self.reservation.shrink(self.kept_bytes);
        self.reservation
    }

    /// The ids of the next rows, at most so many and no more than may be read at once, and the
    /// place behind them, if anything is there; `None` if none may be read.
    fn ids(&self, count: usize) -> Result<Option<(Vec<u64>, Option<KeyPlace>)>> {
        if count == 0 {
            return Ok(None);
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
            return Ok(None);
        };
        let ids = source.ids(&step.numbers)?;
        // Long rows may lie together: the pages tell how long their rows are.
        match source.fitting(&ids, KEPT_BYTES_MAX) {
            fitting if fitting < ids.len() => self.ids(fitting),
            _ => Ok(Some((ids, step.next))),
        }
    }

    /// Whether there is memory for rows that are handed out.
    fn keeps(&mut self, rows: &RecordBatch) -> bool {
        self.kept_bytes += rows.get_array_memory_size() as u64;
        let needed = self.kept_bytes.saturating_add(KEPT_BYTES_MAX);
        needed <= self.reservation.bytes() || self.reservation.try_resize(needed).is_ok()
    }
}

/// How many rows a step may read behind one that read `count` rows of so many bytes.
fn next_step_rows(before: usize, count: usize, bytes: u64) -> usize {
    let fitting = KEPT_BYTES_MAX * count as u64 / bytes.max(1);
    let fitting = usize::try_from(fitting).unwrap_or(usize::MAX);
    fitting.clamp(1, STEP_ROWS_MAX).min(2 * before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_grow_while_their_rows_are_short() {
        assert_eq!(next_step_rows(16, 16, 1600), 32);
        assert_eq!(
            next_step_rows(STEP_ROWS_MAX, STEP_ROWS_MAX, 1),
            STEP_ROWS_MAX
        );
        assert_eq!(next_step_rows(16, 16, 4 * KEPT_BYTES_MAX), 4);
        assert_eq!(next_step_rows(4, 1, 2 * KEPT_BYTES_MAX), 1);
    }
}
