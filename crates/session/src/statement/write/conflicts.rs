//! Rows that meet others in a unique key: what IGNORE, REPLACE and ON DUPLICATE KEY UPDATE make of
//! them.
//!
//! These depend on the rows before: they write part by part.

use arrow::array::{BooleanArray, RecordBatch, UInt64Array};
use arrow::compute::filter_record_batch;
use mayfly_table::{Change, Conflicts, Repeats, Table, key_entry};
use mayfly_types::{ErrorCode, Level, MySqlError, Warning};

use super::{OnDuplicate, Writer, plan_error, table_error};
use crate::errors;
use crate::statement::change::Updated;

impl Writer {
    /// Leaves out the rows that meet others, with a warning for each.
    pub(super) fn append_ignoring(&mut self, mut rows: RecordBatch) -> Result<(), MySqlError> {
        loop {
            let (tried, mixes) = self.values.tried(&rows)?;
            let conflicts = self.conflicts(&tried, Repeats::Count)?;
            if conflicts.found.is_empty() {
                break;
            }
            let mut keeps = vec![true; rows.num_rows()];
            for found in &conflicts.found {
                // The first key tells.
                if std::mem::replace(&mut keeps[found.row], false) {
                    let key = &self.table.definition().keys[found.key];
                    let columns: Vec<usize> = key.parts.iter().map(|part| part.column).collect();
                    let row = tried.slice(found.row, 1);
                    let row = row.project(&columns).map_err(plan_error)?;
                    let prefixes = key.parts.iter().map(|part| part.prefix);
                    let entry = key_entry(&row, prefixes).map_err(table_error)?;
                    let text = errors::entry_text(&entry);
                    let warning = Warning::new(ErrorCode::DuplicateEntry, &[&text, &key.name]);
                    self.values.job().connection.warn(warning);
                }
            }
            rows = filter_record_batch(&rows, &BooleanArray::from(keeps)).map_err(plan_error)?;
            // A row may get the number of one that was left out, and another row have it.
            if !mixes {
                break;
            }
        }
        let kept = self.values.numbered(&rows)?;
        self.written.inserted += kept.num_rows() as u64;
        self.rows().append(&kept).map_err(table_error)?;
        self.inserted();
        Ok(())
    }

    /// Takes out the rows that others meet.
    pub(super) fn append_replacing(&mut self, rows: RecordBatch) -> Result<(), MySqlError> {
        let mut rest = self.values.numbered(&rows)?;
        self.inserted();
        let mut window = Window::of(&self.table);
        while rest.num_rows() > 0 {
            let asked = rest.slice(0, window.rows(rest.num_rows()));
            let conflicts = self.conflicts(&asked, Repeats::Stop)?;
            window.looked_at(conflicts.rows);
            let part = rest.slice(0, conflicts.rows);
            rest = rest.slice(conflicts.rows, rest.num_rows() - conflicts.rows);
            let stop = self.values.job().running.stop_flag();
            let mut change = self.rows().begin_change().stopped_by(stop);
            let numbers = conflicts.found.iter().filter_map(|found| found.number);
            let ids = change.snapshot().locate(numbers).map_err(table_error)?;
            let equal = replaced_by_equals(&change, &conflicts, &part)?;
            change.remove(&UInt64Array::from(ids));
            let deleted = change.changed() - equal;
            change.append(&part).map_err(table_error)?;
            change.commit().map_err(table_error)?;
            self.written.deleted += deleted;
            self.written.inserted += part.num_rows() as u64;
        }
        Ok(())
    }

    /// Changes the rows that others meet.
    pub(super) async fn append_updating(
        &mut self,
        mut rest: RecordBatch,
        mut behind: RecordBatch,
    ) -> Result<(), MySqlError> {
        let OnDuplicate::Update(updater) = &self.on_duplicate else {
            return Ok(());
        };
        // One row at a time where a changed row may meet one that comes with it.
        let mut one_by_one = updater.changes_unique();
        let ignores = updater.ignores();
        let mut window = Window::of(&self.table);
        while rest.num_rows() > 0 {
            let asked = match one_by_one {
                true => 1,
                false => window.rows(rest.num_rows()),
            };
            let (tried, _) = self.values.tried(&rest.slice(0, asked))?;
            let conflicts = self.conflicts(&tried, Repeats::Stop)?;
            window.looked_at(conflicts.rows);
            let part = tried.slice(0, conflicts.rows);
            let counter = self.values.counter.clone();
            let stop = self.values.job().running.stop_flag();
            let mut change = self.rows().begin_change().stopped_by(stop);
            let OnDuplicate::Update(updater) = &mut self.on_duplicate else {
                return Ok(());
            };
            let mut is_new = vec![true; part.num_rows()];
            let mut met = Vec::new();
            for found in &conflicts.found {
                if std::mem::replace(&mut is_new[found.row], false)
                    && let Some(number) = found.number
                {
                    met.push((found.row as u32, number));
                }
            }
            let unnumbered = rest.slice(0, conflicts.rows);
            let new = filter_record_batch(&unnumbered, &BooleanArray::from(is_new));
            let new = self.values.numbered(&new.map_err(plan_error)?)?;
            change.append(&new).map_err(table_error)?;
            let mut done = Updated::default();
            if !met.is_empty() {
                let new = (&part, &behind.slice(0, part.num_rows()));
                change = updater.update(change, new, &met, &mut done).await?;
            }
            let after =
                |rows: &RecordBatch| rows.slice(part.num_rows(), rows.num_rows() - part.num_rows());
            match change.commit() {
                Ok(()) => {}
                Err(mayfly_table::Error::DuplicateEntry { .. }) if part.num_rows() > 1 => {
                    one_by_one = true;
                    self.values.counter = counter;
                    continue;
                }
                Err(error @ mayfly_table::Error::DuplicateEntry { .. }) if ignores => {
                    let error = table_error(error);
                    let level = Level::Warning;
                    self.values.job().connection.warn(Warning { level, error });
                    self.written.met += met.len() as u64;
                    (rest, behind) = (after(&rest), after(&behind));
                    continue;
                }
                Err(error) => return Err(table_error(error)),
            }
            (rest, behind) = (after(&rest), after(&behind));
            self.inserted();
            let last_row = part.num_rows().saturating_sub(1) as u32;
            let last_met = met
                .last()
                .filter(|(row, _)| self.tells_met && *row == last_row);
            self.last_met = last_met.map(|(_, number)| *number);
            self.written.inserted += new.num_rows() as u64;
            self.written.met += met.len() as u64;
            self.written.updated += done.changed;
        }
        Ok(())
    }

    fn conflicts(&self, rows: &RecordBatch, repeats: Repeats) -> Result<Conflicts, MySqlError> {
        self.rows().conflicts(rows, repeats).map_err(table_error)
    }
}

/// How many rows take the place of one that is the same: MySQL does not count those as deleted that
/// it found by the last unique key.
pub(crate) fn replaced_by_equals(
    change: &Change,
    conflicts: &Conflicts,
    part: &RecordBatch,
) -> Result<u64, MySqlError> {
    let (keys, snapshot) = (&change.table().definition().keys, change.snapshot());
    let Some(last) = keys.iter().rposition(|key| key.is_unique()) else {
        return Ok(0);
    };
    let mut equal = 0;
    for found in &conflicts.found {
        let mut of_row = conflicts
            .found
            .iter()
            .filter(|other| other.row == found.row);
        if found.key != last || of_row.nth(1).is_some() {
            continue;
        }
        let ids = snapshot.locate(found.number).map_err(table_error)?;
        let old = snapshot.rows(&ids, None).map_err(table_error)?;
        let new = part.slice(found.row, 1);
        equal += u64::from(old.columns() == new.columns());
    }
    Ok(equal)
}

/// How many rows are looked at together: rows that are met are read, so not more than some bytes of
/// them, and few where most of those that were looked at had to wait.
struct Window {
    most: usize,
    rows: usize,
}

impl Window {
    /// Bytes of the table's rows that are read together.
    const BYTES: u64 = 1 << 20;
    const LEAST: usize = 16;

    fn of(table: &Table) -> Window {
        let rows = Self::BYTES / table.row_bytes().max(1);
        let most = usize::try_from(rows).unwrap_or(usize::MAX).max(Self::LEAST);
        Window { most, rows: most }
    }

    fn rows(&self, left: usize) -> usize {
        self.rows.min(left)
    }

    fn looked_at(&mut self, rows: usize) {
        self.rows = (2 * rows).clamp(Self::LEAST, self.most);
    }
}
