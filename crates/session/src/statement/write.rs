//! Rows on their way into a table.
//!
//! Without a word about rows that meet another one in a unique key, nothing is seen before all are
//! written, and one of them is an error. IGNORE, REPLACE and ON DUPLICATE KEY UPDATE (`conflicts`)
//! write part by part, and a statement that fails leaves nothing of that.

mod conflicts;

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::FieldRef;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::Expr;
use futures::StreamExt;
use mayfly_sql::change::Mention;
use mayfly_sql::statement::SetColumn;
use mayfly_table::{Appender, Table, Turn};
use mayfly_types::{ErrorCode, MySqlError, Warning};

use super::Job;
use super::assign::Values;
use super::counter::{self, Counter};
use super::defaults::Fallback;
use super::duplicate::Updater;
use super::evaluate::{bytes, number_of_bits};
use super::query::Ready;
use super::working_table::WorkingTable;
use super::written::Written;
use crate::errors;
use crate::status::RowChanges;

pub(crate) use conflicts::replaced_by_equals;

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
        let counts_found = job.connection.local().counts_found;
        Ok(Writer {
            values,
            table: Arc::clone(table),
            on_duplicate: match ignores {
                true => OnDuplicate::Ignore,
                false => OnDuplicate::Fail,
            },
            written: Written {
                ignores,
                counts_found,
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
            self.written.ignores = ignore;
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
        self.written.of_values = true;
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
        if let OnDuplicate::Update(updater) = &mut self.on_duplicate {
            updater.refuse_null();
        }
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
        if let Some(first) = first.filter(|_| !job.through_views.hides_numbers) {
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
            (None, None, Some(number)) if written.has_changed() => self.counted(number)?,
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
