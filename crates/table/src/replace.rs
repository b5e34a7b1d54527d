//! Rows that take the place of others.
//!
//! **Owns** the rows that wait for their neighbours, and the pages that were written again with
//! them. **Never** changes a page: what it writes is seen by nobody until the change commits.
//!
//! An updated row that stays where it is keeps its number, and with it the entries of all keys
//! whose columns keep their values. For that its page is written again, which costs what the page
//! costs, so it must be worth it:
//!
//! ```text
//!                     many of a page --> the page is written again, slot by slot
//!   rows by their id <
//!                     few of a page  --> their values are written over the old ones, or else
//!                                        they are removed, and appended with new numbers
//! ```
//!
//! (Values that are written over others: `crate::patch`.)
//!
//! Rows come in the order in which a scan finds them, so those of a page are neighbours, but for
//! the batches of other scans between them: a few pages wait at a time.

use std::collections::BTreeMap;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_select::interleave::interleave;
use mayfly_space::NextUse;

use crate::column_page::{Columns, Format, Prepared, Rows, Size};
use crate::error::{Error, Result};
use crate::patch::Patch;
use crate::removal::Slots;
use crate::sealed::{Heap, Sealed, page_class};
use crate::snapshot::{Batch, SnapshotParts};
use crate::table_page::TablePage;
use crate::tail::Segment;

/// A page is written again if at least this part of its rows changes: one row of eight copied
/// costs less than the entries that it would lose and get, ...
const CHANGED_PART: usize = 8;
/// ... or if it is so short that copying it costs less than the entries of one row.
const SHORT_BYTES: usize = 4 << 10;
/// A page that is written again may become that many times as long as a page that rows are appended
/// to: longer ones are read for few of their rows.
const GROWTH_MAX: usize = 2;
/// The pages that wait for more of their rows: a few for each scan that runs beside others.
const WAITING_MAX: usize = 8;

/// The pages that were written again, by their place in the snapshot.
pub(crate) type ReplacedPages = BTreeMap<usize, Replaced>;

/// A page with other rows in some slots; all slots and row numbers are as they were.
pub(crate) struct Replaced {
    pub(crate) rows: NewRows,
    /// The slots of the rows that are others.
    pub(crate) slots: Slots,
    /// The columns in which they are others.
    pub(crate) differing: Columns,
}

/// Where the rows of a page stand that was written again.
pub(crate) enum NewRows {
    Page(TablePage),
    Segment(Segment),
}

impl NewRows {
    pub(crate) fn batch(&self) -> Batch<'_> {
        match self {
            NewRows::Page(page) => Batch::Page(page),
            NewRows::Segment(segment) => Batch::Segment(segment),
        }
    }
}

/// Rows in the places of others, as far as a statement has come.
#[derive(Default)]
pub(crate) struct Replacement {
    pub(crate) pages: ReplacedPages,
    /// The oldest first.
    waiting: Vec<PageRows>,
    /// What the waiting rows take.
    heap: Heap,
}

/// Rows of one page that are to take the place of others.
#[derive(Debug)]
pub(crate) struct PageRows {
    /// The place of the page in the snapshot.
    pub(crate) batch: usize,
    /// The slots of the rows of all parts, one after the other.
    pub(crate) slots: Vec<u32>,
    pub(crate) parts: Vec<RecordBatch>,
    bytes: usize,
}

impl PageRows {
    pub(crate) fn new(batch: usize, slots: Vec<u32>, part: RecordBatch) -> PageRows {
        PageRows {
            batch,
            slots,
            parts: vec![part],
            bytes: 0,
        }
    }
}

impl Replacement {
    /// Whether some rows of a page may be worth that it is written again.
    pub(crate) fn may_place(&self, snapshot: &SnapshotParts, batch: usize, rows: usize) -> bool {
        self.waits(batch) || is_worth_it(snapshot, batch, rows)
    }

    /// Whether rows have the types of the table, and not others that it would admit as well.
    pub(crate) fn takes(&self, snapshot: &SnapshotParts, rows: &RecordBatch) -> bool {
        let fields = snapshot.format.schema().fields().iter();
        let mut types = fields.zip(rows.columns());
        types.all(|(field, column)| field.data_type() == column.data_type())
    }

    /// Whether rows of a page wait for others.
    pub(crate) fn waits(&self, batch: usize) -> bool {
        self.waiting.iter().any(|waiting| waiting.batch == batch)
    }

    /// Gives rows of a segment values that fit where the old ones stand.
    pub(crate) fn patch(&mut self, batch: usize, segment: &Segment, patch: &Patch, width: usize) {
        let differing = patch.changing(width);
        let slots = patch.slots.iter().copied();
        match self.pages.get_mut(&batch) {
            Some(replaced) => {
                replaced.rows = NewRows::Segment(segment.patched(patch));
                replaced.differing.add(&differing);
                slots.for_each(|slot| _ = replaced.slots.insert(slot));
            }
            None => {
                let replaced = Replaced {
                    rows: NewRows::Segment(segment.patched(patch)),
                    slots: slots.collect(),
                    differing,
                };
                self.pages.insert(batch, replaced);
            }
        }
    }

    /// Takes some rows of a page. Those that are returned must be removed and appended.
    ///
    /// # Errors
    /// If memory, disk or I/O fail.
    pub(crate) fn add(
        &mut self,
        snapshot: &SnapshotParts,
        rows: PageRows,
    ) -> Result<Vec<PageRows>> {
        let batch = rows.batch;
        let parts = rows.parts.iter();
        let bytes = parts.map(|part| snapshot.format.bytes_of(part.columns(), part.num_rows()));
        let bytes: usize = bytes.sum();
        let place = match self.waiting.iter().position(|other| other.batch == batch) {
            Some(place) => {
                let waiting = &mut self.waiting[place];
                waiting.slots.extend(rows.slots);
                waiting.parts.extend(rows.parts);
                place
            }
            None => {
                self.waiting.push(rows);
                self.waiting.len() - 1
            }
        };
        let there = snapshot.batch(batch);
        let waiting = &mut self.waiting[place];
        waiting.bytes += bytes;
        let mut moving = Vec::new();
        // Rows that would not fit, however narrow they become.
        if waiting.bytes > Format::wide_max(bytes_max(snapshot)) {
            moving.push(self.waiting.remove(place));
        } else if waiting.slots.len() == there.row_count() {
            let whole = self.waiting.remove(place);
            moving.extend(self.place(snapshot, whole)?);
        }
        let bytes = self.waiting.iter().map(|waiting| waiting.bytes).sum();
        let is_full = self.waiting.len() > WAITING_MAX;
        if is_full || self.heap.reserve(&snapshot.account, bytes).is_err() {
            let oldest = self.waiting.remove(0);
            moving.extend(self.place(snapshot, oldest)?);
        }
        self.heap.shrink(bytes);
        Ok(moving)
    }

    /// Places the rows that still wait. Those that are returned must be removed and appended.
    ///
    /// # Errors
    /// If memory, disk or I/O fail.
    pub(crate) fn finish(&mut self, snapshot: &SnapshotParts) -> Result<Vec<PageRows>> {
        let mut moving = Vec::new();
        for rows in std::mem::take(&mut self.waiting) {
            moving.extend(self.place(snapshot, rows)?);
        }
        self.heap.shrink(0);
        Ok(moving)
    }

    /// Writes a page again, unless that is not worth it.
    fn place(&mut self, snapshot: &SnapshotParts, rows: PageRows) -> Result<Option<PageRows>> {
        // Rows of a page that was written again already are late, and few.
        let is_first = !self.pages.contains_key(&rows.batch);
        if !is_first || !is_worth_it(snapshot, rows.batch, rows.slots.len()) {
            return Ok(Some(rows));
        }
        match written_again(snapshot, &rows)? {
            Some(new) => {
                // Found out now: at the commit both pages may have to be read for it.
                let there = snapshot.batch(rows.batch);
                let differing = there.differing(new.batch(), &snapshot.format)?;
                let replaced = Replaced {
                    rows: new,
                    slots: rows.slots.iter().copied().collect(),
                    differing,
                };
                self.pages.insert(rows.batch, replaced);
                Ok(None)
            }
            None => Ok(Some(rows)),
        }
    }
}

fn is_worth_it(snapshot: &SnapshotParts, batch: usize, rows: usize) -> bool {
    let there = snapshot.batch(batch);
    let is_short = there.bytes() <= SHORT_BYTES;
    snapshot.format.merges() && (is_short || rows * CHANGED_PART >= there.written_count())
}

/// The longest page that is written again.
fn bytes_max(snapshot: &SnapshotParts) -> usize {
    GROWTH_MAX * page_class(&snapshot.account).bytes()
}

/// The page with the new rows; `None` if it would be too long, or finds no room.
fn written_again(snapshot: &SnapshotParts, rows: &PageRows) -> Result<Option<NewRows>> {
    let format = &*snapshot.format;
    let there = snapshot.batch(rows.batch);
    let old = there.written(format)?;
    let Some(new) = merged(format, &old, rows)? else {
        return Ok(None);
    };
    let is_too_long = |bytes| bytes > bytes_max(snapshot) && there.written_count() > 1;
    Ok(match there {
        Batch::Page(page) => {
            let prepared = Prepared::new(format, &new)?;
            if is_too_long(prepared.len_bytes()) {
                return Ok(None);
            }
            match Sealed::write(&snapshot.account, &prepared, NextUse::SecondChance) {
                Ok(sealed) => Some(NewRows::Page(page.over(sealed))),
                // Rows that move need less room at a time.
                Err(Error::Space(_)) => None,
                Err(error) => return Err(error),
            }
        }
        Batch::Segment(_) => {
            let sizes = new
                .iter()
                .map(|rows| format.size(rows, 0, rows.row_count()));
            let size = sizes.fold(Size::default(), |sum, size| sum.plus(&size));
            match is_too_long(format.page_bytes(&size)) {
                true => None,
                false => Some(NewRows::Segment(Segment::encode(format, &new, size)?)),
            }
        }
    })
}

/// The rows of all slots; `None` if they are of other types than the old ones.
fn merged(format: &Format, old: &RecordBatch, rows: &PageRows) -> Result<Option<Vec<Rows>>> {
    let width = old.num_columns() - usize::from(format.has_row_numbers());
    let (values, numbers) = old.columns().split_at(width);
    let types = |columns: &[ArrayRef]| {
        let same = columns.iter().zip(values);
        columns.len() == width && { same }.all(|(new, old)| new.data_type() == old.data_type())
    };
    if !rows.parts.iter().all(|part| types(part.columns())) {
        return Ok(None);
    }
    let row_count = old.num_rows();
    if rows.slots.iter().copied().eq(0..row_count as u32) {
        let mut from = 0;
        let part = |part: &RecordBatch| {
            let mut columns = part.columns().to_vec();
            let numbers = numbers.iter();
            columns.extend(numbers.map(|numbers| numbers.slice(from, part.num_rows())));
            from += part.num_rows();
            format.admit(&columns, part.num_rows())
        };
        return rows.parts.iter().map(part).collect::<Result<_>>().map(Some);
    }
    let mut places: Vec<(usize, usize)> = (0..row_count).map(|slot| (0, slot)).collect();
    let parts = rows.parts.iter().enumerate();
    let new = parts.flat_map(|(part, rows)| (0..rows.num_rows()).map(move |row| (part + 1, row)));
    for (slot, place) in rows.slots.iter().zip(new) {
        places[*slot as usize] = place;
    }
    let mut columns = Vec::with_capacity(old.num_columns());
    for (column, values) in values.iter().enumerate() {
        let parts = rows.parts.iter().map(|part| part.column(column).as_ref());
        let sources: Vec<&dyn Array> = std::iter::once(values.as_ref()).chain(parts).collect();
        columns.push(interleave(&sources, &places)?);
    }
    columns.extend(numbers.iter().cloned());
    Ok(Some(vec![format.admit(&columns, row_count)?]))
}
