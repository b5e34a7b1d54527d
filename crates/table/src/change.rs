//! The changes of one statement: rows that go and rows that come.
//!
//! **Owns** the row ids of one snapshot and the rows that replace them. **Never** shows a part of
//! them: what a statement removes and appends becomes part of the table at once, or not at all.
//!
//! A statement reads the snapshot that it changes, so it never meets a row that it has written
//! itself (the Halloween problem). Nothing is locked in between: should somebody else have changed
//! the table before the commit, `Error::Changed` says so, and the statement starts again.
//!
//! **Cost**: a bit of each removed row and a copy of the list of pages; updated rows are written
//! where they stand (`crate::patch`), again together with their page, or at the end
//! (`crate::replace`).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow_select::filter::{filter, filter_record_batch};

use super::removal::{Removal, Slots, is_same_batch, row_id, split_row_id};
use crate::appender::Pending;
use crate::column_page::StoredRows;
use crate::error::Result;
use crate::patch::{self, Patch, Patches};
use crate::replace::{NewRows, PageRows, Replacement};
use crate::rows::StopFlag;
use crate::snapshot::{Batch, TableSnapshot};
use crate::table::{Draft, StatementRows, Table};

/// The ids that a mask chooses.
fn chosen(ids: &[u64], mask: &[bool]) -> Vec<u64> {
    let ids = ids.iter().zip(mask);
    ids.filter(|(_, is_chosen)| **is_chosen)
        .map(|(id, _)| *id)
        .collect()
}

/// Rows with other values in some columns.
fn assigned(
    old: &RecordBatch,
    columns: &[usize],
    values: impl IntoIterator<Item = ArrayRef>,
) -> Result<RecordBatch> {
    let mut arrays = old.columns().to_vec();
    for (column, values) in columns.iter().zip(values) {
        arrays[*column] = values;
    }
    Ok(RecordBatch::try_new(old.schema(), arrays)?)
}

/// What came of writing values where others stand.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patched {
    /// They are there already.
    Same,
    Yes,
    /// They do not fit.
    No,
}

/// What one statement changes: seen by nobody until [`Change::commit`], gone when it is dropped
/// before.
pub struct Change {
    table: Arc<Table>,
    snapshot: TableSnapshot,
    removal: Removal,
    /// The rows that others take the place of, whether they leave theirs or not.
    replaced: BTreeMap<usize, Slots>,
    /// Those of them that stay, or still may.
    replaced_count: u64,
    replacement: Replacement,
    patches: Patches,
    pending: Pending,
}

impl Change {
    pub(crate) fn new(table: &Arc<Table>, snapshot: TableSnapshot, pending: Pending) -> Change {
        Change {
            pending,
            table: Arc::clone(table),
            snapshot,
            removal: Removal::default(),
            replaced: BTreeMap::new(),
            replaced_count: 0,
            replacement: Replacement::default(),
            patches: Patches::default(),
        }
    }

    /// The same, which ends with [`Error::Stopped`](crate::Error::Stopped) when the flag is raised
    /// before the change is seen; the table is as it was then.
    #[must_use]
    pub fn stopped_by(mut self, stop: StopFlag) -> Self {
        self.pending.stop = Some(stop);
        self
    }

    /// The table.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The rows before the change, whose ids [`Change::remove`] takes.
    pub fn snapshot(&self) -> &TableSnapshot {
        &self.snapshot
    }

    /// Removes rows by their ids: a row that was named before, here or in [`Change::replace`],
    /// is ignored.
    pub fn remove(&mut self, ids: &UInt64Array) {
        for ids in ids.values().chunk_by(is_same_batch) {
            let (batch, _) = split_row_id(ids[0]);
            let replaced = self.replaced.get(&batch);
            let slots = ids.iter().map(|id| split_row_id(*id).1);
            let mut slots = slots
                .filter(|slot| replaced.is_none_or(|slots| !slots.contains(*slot)))
                .peekable();
            // A page that is named here is changed at the commit.
            if slots.peek().is_none() {
                continue;
            }
            let removed = self.removal.slots.entry(batch).or_default();
            for slot in slots {
                self.removal.row_count += u64::from(removed.insert(slot));
            }
        }
    }

    /// Puts rows in the place of others, whose ids these are, and returns how many: a row that was
    /// named before, here or in [`Change::remove`], stays what it became then.
    ///
    /// The rows keep their numbers where many rows of a page change, or where their values fit into
    /// the places of the old ones.
    ///
    /// # Errors
    /// If the batch does not have the schema of the table, or memory, disk or I/O fail; the change
    /// must not be committed then.
    pub fn replace(&mut self, ids: &UInt64Array, rows: &RecordBatch) -> Result<u64> {
        let is_new = self.take_note(ids);
        let count = is_new.iter().filter(|is_new| **is_new).count();
        if count == ids.len() {
            self.replace_new(ids.values(), rows)?;
        } else if count > 0 {
            let ids = chosen(ids.values(), &is_new);
            self.replace_new(&ids, &filter_record_batch(rows, &is_new.into())?)?;
        }
        Ok(count as u64)
    }

    /// As [`Change::replace`], with the values of some columns; the others stay.
    ///
    /// # Errors
    /// As for [`Change::replace`].
    ///
    /// # Panics
    /// If there is no such column.
    pub fn assign(
        &mut self,
        ids: &UInt64Array,
        columns: &[usize],
        values: &[ArrayRef],
    ) -> Result<u64> {
        let is_new = self.take_note(ids);
        let count = is_new.iter().filter(|is_new| **is_new).count();
        if count == ids.len() {
            self.assign_new(ids.values(), columns, values)?;
        } else if count > 0 {
            let ids = chosen(ids.values(), &is_new);
            let mask = is_new.into();
            let values = values.iter().map(|values| Ok(filter(values, &mask)?));
            self.assign_new(&ids, columns, &values.collect::<Result<Vec<_>>>()?)?;
        }
        Ok(count as u64)
    }

    /// As [`Change::assign`] for one row; whether it has other values now. Where they fit, the row
    /// is not read for that: what it has is compared where it stands.
    ///
    /// # Errors
    /// As for [`Change::replace`].
    ///
    /// # Panics
    /// If there is no such row or column, or the row was named before.
    pub fn assign_one(&mut self, id: u64, columns: &[usize], values: &[ArrayRef]) -> Result<bool> {
        let is_new = self.take_note(&UInt64Array::from(vec![id]));
        assert_eq!(is_new, [true], "a row that was changed before");
        match self.patch(&[id], columns.iter().copied().zip(values.iter().cloned()))? {
            Patched::Same => return Ok(false),
            Patched::Yes => return Ok(true),
            Patched::No => {}
        }
        let old = self.snapshot.rows(&[id], None)?;
        let mut differs = false;
        for (column, value) in columns.iter().zip(values) {
            differs |= old.column(*column) != value;
        }
        if differs {
            self.replace_new(&[id], &assigned(&old, columns, values.iter().cloned())?)?;
        }
        Ok(differs)
    }

    /// Whether each of some rows is named for the first time; it is from now on.
    fn take_note(&mut self, ids: &UInt64Array) -> Vec<bool> {
        let mut is_new = Vec::with_capacity(ids.len());
        for ids in ids.values().chunk_by(is_same_batch) {
            let (batch, _) = split_row_id(ids[0]);
            let removed = self.removal.slots.get(&batch);
            let replaced = self.replaced.entry(batch).or_default();
            is_new.extend(ids.iter().map(|id| {
                let (_, slot) = split_row_id(*id);
                let is_new = removed.is_none_or(|slots| !slots.contains(slot));
                is_new && replaced.insert(slot)
            }));
        }
        self.replaced_count += is_new.iter().filter(|is_new| **is_new).count() as u64;
        is_new
    }

    fn assign_new(&mut self, ids: &[u64], columns: &[usize], values: &[ArrayRef]) -> Result<()> {
        let mut from = 0;
        for run in ids.chunk_by(is_same_batch) {
            let part = values.iter().map(|values| values.slice(from, run.len()));
            let part: Vec<ArrayRef> = part.collect();
            from += run.len();
            let values = columns.iter().copied().zip(part.iter().cloned());
            if self.patch(run, values)? != Patched::No {
                continue;
            }
            let old = self.snapshot.rows(run, None)?;
            self.replace_new(run, &assigned(&old, columns, part)?)?;
        }
        Ok(())
    }

    /// Gives rows of one page other values where the old ones stand.
    fn patch(
        &mut self,
        ids: &[u64],
        values: impl Iterator<Item = (usize, ArrayRef)>,
    ) -> Result<Patched> {
        let (batch, _) = split_row_id(ids[0]);
        // The rows that it is written again with would meet others.
        if self.replacement.waits(batch) {
            return Ok(Patched::No);
        }
        let slots: Vec<u32> = ids.iter().map(|id| split_row_id(*id).1).collect();
        let layout = self.table.patched();
        let there = self.snapshot.parts().batch(batch);
        let replaced = self.replacement.pages.get(&batch);
        match (there, replaced.map(|replaced| &replaced.rows)) {
            (Batch::Page(page), None) => {
                let bytes = page.bytes_pinned()?;
                let stored = StoredRows::open(layout.format, &bytes)?;
                Ok(match Patch::new(layout, &stored, &slots, values)? {
                    Some(patch) if patch.is_empty() => Patched::Same,
                    Some(patch) => match self.patches.add(layout, batch, page, patch) {
                        true => Patched::Yes,
                        false => Patched::No,
                    },
                    None => Patched::No,
                })
            }
            (Batch::Page(_), Some(_)) => Ok(Patched::No),
            (Batch::Segment(segment), replaced) => {
                let segment = match replaced {
                    Some(NewRows::Segment(other)) => other.clone(),
                    _ => segment.clone(),
                };
                let stored = StoredRows::open(layout.format, segment.bytes())?;
                // Its keys change as those of a page that was written again.
                let layout = patch::Layout {
                    keyed: &[],
                    ..layout
                };
                let Some(patch) = Patch::new(layout, &stored, &slots, values)? else {
                    return Ok(Patched::No);
                };
                if patch.is_empty() {
                    return Ok(Patched::Same);
                }
                let width = layout.format.schema().fields().len();
                self.replacement.patch(batch, &segment, &patch, width);
                Ok(Patched::Yes)
            }
        }
    }

    fn replace_new(&mut self, ids: &[u64], rows: &RecordBatch) -> Result<()> {
        let may_stay = |run: &[u64]| {
            // The next rows of a scan may be of the same page as the last.
            let may_go_on = ids.len() > 1 && run.last() == ids.last();
            let (batch, _) = split_row_id(run[0]);
            let (replacement, parts) = (&self.replacement, self.snapshot.parts());
            !self.patches.has(batch)
                && (may_go_on || replacement.may_place(parts, batch, run.len()))
        };
        let takes = self.replacement.takes(self.snapshot.parts(), rows);
        if !takes || !ids.chunk_by(is_same_batch).any(may_stay) {
            return self.move_rows(ids, rows);
        }
        let mut moves = vec![true; ids.len()];
        let mut staying = Vec::new();
        let mut from = 0;
        for run in ids.chunk_by(is_same_batch) {
            let first = from;
            from += run.len();
            if may_stay(run) {
                moves[first..from].fill(false);
                let (batch, _) = split_row_id(run[0]);
                let slots = run.iter().map(|id| split_row_id(*id).1).collect();
                let part = rows.slice(first, run.len());
                staying.push(PageRows::new(batch, slots, part));
            }
        }
        if moves.contains(&true) {
            let ids = chosen(ids, &moves);
            self.move_rows(&ids, &filter_record_batch(rows, &moves.into())?)?;
        }
        for rows in staying {
            if self.patches.has(rows.batch) {
                self.move_all(vec![rows])?;
                continue;
            }
            let late = self.replacement.add(self.snapshot.parts(), rows)?;
            self.move_all(late)?;
        }
        Ok(())
    }

    fn move_all(&mut self, moving: Vec<PageRows>) -> Result<()> {
        for rows in moving {
            let ids = rows.slots.iter().map(|slot| row_id(rows.batch, *slot));
            let ids: Vec<u64> = ids.collect();
            let mut from = 0;
            for part in &rows.parts {
                let first = from;
                from += part.num_rows();
                self.move_rows(&ids[first..from], part)?;
            }
        }
        Ok(())
    }

    /// Writes rows over the old ones where they fit. Takes the others out of their pages and puts
    /// what they become to the end.
    fn move_rows(&mut self, ids: &[u64], rows: &RecordBatch) -> Result<()> {
        let mut moves = vec![true; ids.len()];
        let mut from = 0;
        for run in ids.chunk_by(is_same_batch) {
            let first = from;
            from += run.len();
            let columns = rows.columns().iter().enumerate();
            let values = columns.map(|(column, values)| (column, values.slice(first, run.len())));
            if rows.num_columns() == self.snapshot.schema().fields().len()
                && self.patch(run, values)? != Patched::No
            {
                moves[first..from].fill(false);
            }
        }
        if moves.iter().all(|moves| *moves) {
            return self.move_all_of(ids, rows);
        }
        if moves.contains(&true) {
            let ids = chosen(ids, &moves);
            self.move_all_of(&ids, &filter_record_batch(rows, &moves.into())?)?;
        }
        Ok(())
    }

    fn move_all_of(&mut self, ids: &[u64], rows: &RecordBatch) -> Result<()> {
        for ids in ids.chunk_by(is_same_batch) {
            let (batch, _) = split_row_id(ids[0]);
            let removed = self.removal.slots.entry(batch).or_default();
            for id in ids {
                removed.insert(split_row_id(*id).1);
            }
        }
        self.removal.row_count += ids.len() as u64;
        self.replaced_count -= ids.len() as u64;
        self.pending.append(rows)
    }

    /// The rows that were removed or replaced so far.
    pub fn changed(&self) -> u64 {
        self.removal.row_count + self.replaced_count
    }

    /// Appends all rows of a batch or, on an error, none of them.
    ///
    /// # Errors
    /// If the batch does not have the schema of the table, or memory, disk or I/O fail.
    pub fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        self.pending.append(batch)
    }

    /// Makes the change part of the table.
    ///
    /// # Errors
    /// [`Error::Changed`](crate::Error::Changed) if the table is no longer what the snapshot shows;
    /// if memory, disk or I/O fail. The table is as it was then.
    pub fn commit(self) -> Result<()> {
        let table = Arc::clone(&self.table);
        match self.finish()? {
            Some(rows) => table.commit(rows),
            None => Ok(()),
        }
    }

    /// Makes the change part of a draft of the table, which is as the snapshot shows it.
    ///
    /// # Errors
    /// As for [`Change::commit`]. The draft is as it was then.
    pub fn commit_to(self, draft: &Draft) -> Result<()> {
        match self.finish()? {
            Some(rows) => draft.table().absorb(rows),
            None => Ok(()),
        }
    }

    /// All that the statement did, if it did anything.
    fn finish(mut self) -> Result<Option<StatementRows>> {
        let late = self.replacement.finish(self.snapshot.parts())?;
        self.move_all(late)?;
        if self.changed() == 0 && self.pending.writer.row_count == 0 {
            return Ok(None);
        }
        let version = self.snapshot.version();
        // The snapshot goes: it would hold on to the list of pages, which the change would have to
        // copy then.
        Ok(Some(StatementRows {
            pending: self.pending,
            removal: self.removal,
            replaced: self.replacement.pages,
            patches: self.patches,
            seen: Some(version),
        }))
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change")
            .field("table", &self.table.name())
            .field("changed", &self.changed())
            .field("appended", &self.pending.writer.row_count)
            .finish_non_exhaustive()
    }
}
