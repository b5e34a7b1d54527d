//! Rows on their way into a table, and what becomes of those that meet another one in a unique key.
//!
//! Without a word about such rows, nothing is seen before all are written, and one of them is an
//! error. IGNORE, REPLACE and ON DUPLICATE KEY UPDATE depend on the rows before: they write part by
//! part, and a statement that fails leaves nothing of that.

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch, UInt64Array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::FieldRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::Expr;
use futures::StreamExt;
use mayfly_sql::change::Mention;
use mayfly_sql::statement::SetColumn;
use mayfly_table::{Appender, Conflicts, Repeats, Table, Turn, key_entry};
use mayfly_types::{ErrorCode, Level, MySqlError, Warning};

use super::Job;
use super::assign::Values;
use super::change::Updated;
use super::counter::{self, Counter};
use super::defaults::Fallback;
use super::duplicate::Updater;
use super::evaluate::{bytes, number_of_bits};
use super::query::Ready;
use super::working_table::WorkingTable;
use super::written::Written;
use crate::errors;
use crate::status::RowChanges;

/// Writes rows of a source to a table.
pub(crate) struct Writer {
    values: Values,
    table: Arc<Table>,
    on_duplicate: OnDuplicate,
    written: Written,
    /// The rows that are seen by nobody yet.
    appender: Option<Appender>,
    /// Whether clients get the number of a row that was met, and that of the last row, if it was.
    tells_met: bool,
    last_met: Option<u64>,
    /// What a statement that writes part by part has made of the table.
    working: Option<WorkingTable>,
    _turns: Vec<Turn>,
}

/// What becomes of a row that meets another one.
enum OnDuplicate {
    Fail,
    Ignore,
    Replace,
    Update(Box<Updater>),
}

impl Writer {
    /// Begins a statement that writes the named columns, in the order of its source; all visible
    /// columns where none is named. With `ignore`, rows that meet others are left out. The turns
    /// are those of the table, unless nobody else knows it yet.
    pub(crate) async fn begin(
        job: &Job,
        (table, turns): (&Arc<Table>, Vec<Turn>),
        names: &[String],
        ignore: bool,
    ) -> Result<Writer, MySqlError> {
        let mut values = Values::begin(job, table, names, ignore).await?;
        let settings = job.connection.local().settings();
        values.counter = Counter::of(table, settings.numbering);
        if let Some(counter) = &mut values.counter {
            counter.begin_with(settings.insert_id);
        }
        let keys = &table.definition().keys;
        let ignores = ignore && keys.iter().any(|key| key.is_unique());
        Ok(Writer {
            values,
            table: Arc::clone(table),
            on_duplicate: match ignores {
                true => OnDuplicate::Ignore,
                false => OnDuplicate::Fail,
            },
            written: Written {
                ignores,
                ..Written::default()
            },
            appender: (!ignores).then(|| table.begin_append().stopped_by(job.running.stop_flag())),
            tells_met: false,
            last_met: None,
            working: None,
            _turns: turns,
        })
    }

    /// Lets rows take the places of those that they meet.
    pub(crate) fn replace(&mut self) {
        if self.has_unique_key() {
            self.write_parts(OnDuplicate::Replace);
        }
    }

    /// Changes the rows that would be met. The assignments may name columns that batches of the
    /// source have behind those that are written.
    pub(crate) async fn update(
        &mut self,
        mention: &Mention,
        assignments: &[SetColumn],
        alias: Option<&(String, Vec<String>)>,
        ignore: bool,
        behind: &[FieldRef],
    ) -> Result<(), MySqlError> {
        let job = self.values.job().clone();
        let names = self.values.source_columns();
        let to = (&self.table, mention);
        let updater = Updater::begin(&job, to, assignments, alias, &names, ignore, behind);
        let updater = Box::pin(updater).await?;
        if self.has_unique_key() {
            self.write_parts(OnDuplicate::Update(Box::new(updater)));
        }
        Ok(())
    }

    /// Whether the result depends on the order of the rows: which of two stays, which number one
    /// gets.
    pub(crate) fn depends_on_order(&self) -> bool {
        self.appender.is_none() || self.values.counter.is_some()
    }

    /// Whether rows can meet others.
    pub(crate) fn has_unique_key(&self) -> bool {
        let mut keys = self.table.definition().keys.iter();
        keys.any(|key| key.is_unique())
    }

    fn write_parts(&mut self, on_duplicate: OnDuplicate) {
        self.on_duplicate = on_duplicate;
        self.written.ignores = false;
        self.appender = None;
    }

    /// Says how many rows will come: those of VALUES.
    pub(crate) fn expect(&mut self, rows: usize) {
        self.tells_met = true;
        if let Some(counter) = &mut self.values.counter {
            counter.expect(rows);
        }
    }

    /// Keeps a 0 in an AUTO_INCREMENT column: it was there before.
    pub(crate) fn keep_zeros(&mut self) {
        if let Some(counter) = &mut self.values.counter {
            counter.keep_zeros();
        }
    }

    /// As [`Values::take_fields`].
    pub(crate) fn take_fields(&mut self, count: usize) {
        self.values.take_fields(count);
    }

    /// As [`Values::keep_rows`].
    pub(crate) fn keep_rows(&mut self) {
        self.values.keep_rows();
    }

    /// Whether a value for a column is passed over, since the column is generated. Without strict
    /// mode it is, as in MariaDB, whose dumps have such values, with a warning unless it is NULL.
    ///
    /// # Errors
    /// 3105 in strict mode.
    pub(crate) fn passes_over(&self, column: usize, is_null: bool) -> Result<bool, MySqlError> {
        let Err(error) = self.values.refuse_value(column) else {
            return Ok(false);
        };
        if self.values.is_strict() {
            return Err(error);
        }
        if !is_null {
            let table = self.table();
            let code = ErrorCode::GeneratedValueIgnored;
            let name = &table.columns()[column].name;
            let connection = &self.values.job().connection;
            connection.warn(Warning::new(code, &[name, &table.name()]));
        }
        Ok(true)
    }

    /// Passes over the values of a source for generated columns.
    ///
    /// # Errors
    /// As [`Writer::passes_over`].
    pub(crate) fn pass_over_all(&self) -> Result<(), MySqlError> {
        let mut filled = self.filled().into_iter();
        filled.try_for_each(|column| self.passes_over(column, false).map(|_| ()))
    }

    /// Makes NULL in a column that refuses it an error in every mode, as in an INSERT of one row.
    pub(crate) fn refuse_null(&mut self) {
        self.values.refuse_null();
    }

    /// As [`Values::default_of`].
    pub(crate) fn default_of(&self, column: usize) -> Result<Fallback, MySqlError> {
        self.values.default_of(column)
    }

    /// As [`Values::default_expression`].
    pub(crate) fn default_expression(&self, column: usize) -> Option<&Expr> {
        self.values.default_expression(column)
    }

    /// What a literal of bits is to a column of numbers.
    pub(crate) fn number_of_bits(&self, column: usize, literal: &Expr) -> Option<ScalarValue> {
        let number = number_of_bits(literal, &self.table.columns()[column])?;
        Some(ScalarValue::UInt64(Some(number)))
    }

    /// What a literal of bytes is to a column that is not one of numbers.
    pub(crate) fn bytes(&self, column: usize, literal: &Expr) -> Option<ScalarValue> {
        let bytes = bytes(literal, &self.table.columns()[column])?;
        Some(ScalarValue::Binary(Some(bytes)))
    }

    /// The table.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// As [`Values::filled`].
    pub(crate) fn filled(&self) -> Vec<usize> {
        self.values.filled()
    }

    /// Converts and writes a batch of the source. Where a value is an error or warns, rows are
    /// written one after the other, so that MySQL's row is the first to tell.
    pub(crate) async fn append(&mut self, batch: &RecordBatch) -> Result<(), MySqlError> {
        let mut waiting = vec![batch.clone()];
        while let Some(batch) = waiting.pop() {
            let rows = batch.num_rows();
            if rows > 1 && !self.values.job().connection.values.is_full() {
                if let Some(converted) = self.values.converted_well(&batch) {
                    self.append_converted(converted, &batch).await?;
                    continue;
                }
                waiting.push(batch.slice(rows / 2, rows - rows / 2));
                waiting.push(batch.slice(0, rows / 2));
                continue;
            }
            if rows > 0 {
                let converted = self.values.converted(&batch);
                let converted = converted.map_err(|error| self.first_error(error))?;
                self.append_converted(converted, &batch).await?;
            }
        }
        Ok(())
    }

    /// Writes rows that have the types of the table. They are those of a batch of the source, of
    /// which some may be left out.
    async fn append_converted(
        &mut self,
        (rows, stays): (RecordBatch, Option<BooleanArray>),
        batch: &RecordBatch,
    ) -> Result<(), MySqlError> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        self.written.rows += rows.num_rows() as u64;
        if let Some(appender) = &mut self.appender {
            let rows = self.values.numbered(&rows)?;
            appender.append(&rows).map_err(table_error)?;
            self.written.inserted += rows.num_rows() as u64;
            if let Some(counter) = &mut self.values.counter {
                counter.remember_first();
            }
            return Ok(());
        }
        if self.working.is_none() {
            self.values.job().connection.before_change(&self.table)?;
            self.working = Some(WorkingTable::begin(&self.table)?);
        }
        match &self.on_duplicate {
            OnDuplicate::Fail | OnDuplicate::Ignore => self.append_ignoring(rows),
            OnDuplicate::Replace => self.append_replacing(rows),
            OnDuplicate::Update(updater) => {
                let behind = behind(batch, updater.columns_behind(), stays.as_ref())?;
                Box::pin(self.append_updating(rows, behind)).await
            }
        }
    }

    /// The error of a statement that fails at a row: one of the rows before may have met another
    /// in a unique key, which is seen only when all are written.
    pub(crate) fn first_error(&mut self, error: MySqlError) -> MySqlError {
        let Some(appender) = self.appender.take().filter(|_| self.has_unique_key()) else {
            return error;
        };
        let job = self.values.job();
        let tried = job.connection.before_change(&self.table);
        // What is written is forgotten at once.
        let tried = tried.and_then(|()| WorkingTable::begin(&self.table)?.append(appender));
        match tried {
            Err(met) if met.is(ErrorCode::DuplicateEntry) => met,
            _ => error,
        }
    }

    /// Writes the rows of a query, and shows them to everybody.
    pub(crate) async fn write(mut self, ready: &Ready) -> Result<Written, MySqlError> {
        let rows = self.values.job().rows(ready)?;
        self.write_rows(rows).await?;
        self.commit()
    }

    /// Writes the rows of a stream, which nobody sees yet.
    pub(crate) async fn write_rows(
        &mut self,
        mut stream: SendableRecordBatchStream,
    ) -> Result<(), MySqlError> {
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|error| errors::from_plan(&error));
            // A row is computed before it is written.
            let batch = batch.and_then(|batch| {
                self.values.job().check_misfits()?;
                Ok(batch)
            });
            let batch = batch.map_err(|error| self.first_error(error))?;
            self.append(&batch).await?;
            self.values.job().check_misfits()?;
        }
        Ok(())
    }

    /// Leaves out the rows that meet others, with a warning for each.
    fn append_ignoring(&mut self, mut rows: RecordBatch) -> Result<(), MySqlError> {
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
    fn append_replacing(&mut self, rows: RecordBatch) -> Result<(), MySqlError> {
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
            change.remove(&UInt64Array::from(ids));
            let deleted = change.changed() - self.replaced_by_equals(&conflicts, &part)?;
            change.append(&part).map_err(table_error)?;
            change.commit().map_err(table_error)?;
            self.written.deleted += deleted;
            self.written.inserted += part.num_rows() as u64;
        }
        Ok(())
    }

    /// How many rows take the place of one that is the same: MySQL does not count those as deleted
    /// that it found by the last unique key.
    fn replaced_by_equals(
        &self,
        conflicts: &Conflicts,
        part: &RecordBatch,
    ) -> Result<u64, MySqlError> {
        let keys = &self.table.definition().keys;
        let Some(last) = keys.iter().rposition(|key| key.is_unique()) else {
            return Ok(0);
        };
        let snapshot = self.rows().snapshot();
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

    /// Changes the rows that others meet.
    async fn append_updating(
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
            self.written.updated += done.changed;
        }
        Ok(())
    }

    /// The table as the statement has made it so far.
    fn rows(&self) -> &Arc<Table> {
        match &self.working {
            Some(working) => working.table(),
            None => &self.table,
        }
    }

    /// The rows that were numbered last are written.
    fn inserted(&mut self) {
        if let Some(counter) = &mut self.values.counter {
            counter.written(&self.table);
        }
    }

    fn conflicts(&self, rows: &RecordBatch, repeats: Repeats) -> Result<Conflicts, MySqlError> {
        self.rows().conflicts(rows, repeats).map_err(table_error)
    }

    /// What the row of a number has in the AUTO_INCREMENT column.
    fn counted(&self, number: u64) -> Result<u64, MySqlError> {
        let Some(counter) = &self.values.counter else {
            return Ok(0);
        };
        let snapshot = self.table.snapshot();
        let ids = snapshot.locate([number]).map_err(table_error)?;
        let row = snapshot.rows(&ids, Some(&[counter.column]));
        counter::last_of(row.map_err(table_error)?.column(0)).map_err(plan_error)
    }

    /// Shows the rows to everybody. The first number that one was given is what LAST_INSERT_ID()
    /// says from here on.
    pub(crate) fn commit(self) -> Result<Written, MySqlError> {
        let job = self.values.job().clone();
        let (written, first) = self.commit_rows()?;
        if let Some(first) = first {
            job.connection.values.lock().last_insert_id = first;
        }
        Ok(written)
    }

    /// Shows rows that are copies of those of another table: the numbers that they were given are
    /// those of no insert.
    pub(crate) fn commit_copy(self) -> Result<Written, MySqlError> {
        let (written, _) = self.commit_rows()?;
        Ok(Written {
            insert_id: 0,
            ..written
        })
    }

    /// Gives the first number that a row was given beside what was written.
    fn commit_rows(mut self) -> Result<(Written, Option<u64>), MySqlError> {
        let job = self.values.job().clone();
        job.check_misfits()?;
        if let Some(appender) = self.appender.take() {
            job.connection.before_change(&self.table)?;
            let committed =
                job.in_long_step(&self.table, appender.row_count(), || appender.commit());
            committed.map_err(table_error)?;
            self.inserted();
        }
        if let Some(working) = self.working.take() {
            working.finish()?;
        }
        let mut written = self.written;
        let counter = self.values.counter.as_ref();
        let first = counter.and_then(Counter::first);
        let said = job.connection.values.lock().said_insert_id;
        written.insert_id = match (first, said, self.last_met) {
            (Some(first), ..) => first,
            (None, Some(said), _) => said,
            (None, None, Some(number)) if written.affected() > 0 => self.counted(number)?,
            _ => counter.map_or(0, Counter::insert_id),
        };
        let changes = RowChanges {
            written: written.inserted,
            updated: written.updated,
            deleted: written.deleted,
        };
        job.connection.changed_rows(&self.table, changes);
        Ok((written, first))
    }
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
        let row_bytes = table.bytes().checked_div(table.row_count()).unwrap_or(0);
        let rows = Self::BYTES / row_bytes.max(1);
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

/// The last columns of a batch of the source, which assignments read, of the rows that stay.
fn behind(
    batch: &RecordBatch,
    columns: usize,
    stays: Option<&BooleanArray>,
) -> Result<RecordBatch, MySqlError> {
    let all = batch.num_columns();
    let places: Vec<usize> = (all - columns..all).collect();
    let behind = batch.project(&places).map_err(plan_error)?;
    match stays {
        Some(stays) => filter_record_batch(&behind, stays).map_err(plan_error),
        None => Ok(behind),
    }
}

fn table_error(error: mayfly_table::Error) -> MySqlError {
    errors::from_table(&error)
}

fn plan_error(error: arrow::error::ArrowError) -> MySqlError {
    errors::from_plan(&error.into())
}
