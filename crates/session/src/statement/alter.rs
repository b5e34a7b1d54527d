//! ALTER TABLE and RENAME TABLE.
//!
//! A table never changes its definition: another one is made, and takes the place of the old one
//! when it is whole. Where rows lie as before they share their pages, else the new one is filled.
//! Whoever reads the old one goes on reading it; a change that fails leaves it untouched. Whoever
//! wants to write it waits (`super::turns`) and writes the new one.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::{Field, FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::scalar::ScalarValue;
use mayfly_sql::functions::shown_texts;
use mayfly_sql::statement::{AlterAction, AlterTable, ColumnDefinition, KeyDefinition, TableName};
use mayfly_table::{Check, Column, Definition, Place, Table, TableSnapshot};
use mayfly_types::{ColumnType, ErrorCode, MySqlError, Warning};

use super::altered::{Altered, altered};
use super::batch::batch_of;
use super::defaults::{Fallback, zero};
use super::define::{check_table_name, key_notes};
use super::expressions::rename_checks;
use super::insert::with_info;
use super::succession::Succession;
use super::write::Writer;
use super::written::Written;
use super::{Job, foreign_key};
use crate::errors;
use crate::outcome::Outcome;

/// Where a table is known: among the temporary tables or the shared ones, its database, its name.
type Whereabouts = (bool, String, String);

impl Job {
    pub(crate) async fn alter_table(&self, alter: AlterTable) -> Result<Outcome, MySqlError> {
        let database = self.database_of(&alter.table)?;
        let name = &alter.table.table;
        let temporary = self.connection.exists(&database, name, true);
        let (table, _turns) = match self.table_to_change(&alter.table).await {
            Err(error) if alter.if_exists && error.is(ErrorCode::NoSuchTable) => {
                self.note(ErrorCode::NoSuchTable, &[&database, name]);
                return Ok(Outcome::done(0));
            }
            found => found?,
        };
        let does_nothing = |action: &AlterAction| matches!(action, AlterAction::Nothing);
        if alter.actions.iter().all(does_nothing) {
            let copies = temporary && !alter.actions.is_empty();
            let rows = if copies { table.row_count() } else { 0 };
            return Ok(with_info(Written::all(rows)));
        }
        let pipes_as_concat = self
            .connection
            .local()
            .variables
            .has_mode("PIPES_AS_CONCAT");
        if temporary && added_keys(&alter.actions).any(|key| key.for_foreign_key) {
            return Err(MySqlError::new(ErrorCode::CannotAddForeignKey, &[]));
        }
        let mut altered = altered(name, table.definition(), &alter.actions, pipes_as_concat)?;
        for note in altered.notes.drain(..) {
            self.connection.warn(note);
        }
        self.check_new_defaults(&mut altered, &alter.actions)
            .await?;
        if let Some(engine) = &altered.engine {
            self.check_engine(engine, name)?;
        }
        let (new_database, new_name) = match &altered.name {
            Some(new) => (self.database_of(new)?, new.table.clone()),
            None => (database.clone(), name.clone()),
        };
        if (&new_database, &new_name) != (&database, name) {
            self.check_new_name(&new_database, &new_name, temporary)?;
        }
        let definition = altered.draft.definition(&new_name)?;
        self.check_rules(&definition).await?;
        let added = added_keys(&alter.actions);
        let notes = key_notes(added, &definition.keys, &table.definition().keys);
        let foreign_keys =
            foreign_key::warnings(added_keys(&alter.actions), added_columns(&alter.actions));
        for note in notes.into_iter().chain(foreign_keys) {
            self.connection.warn(note);
        }
        let made = Made {
            name: &new_name,
            definition: definition.clone(),
            sources: &altered.sources,
            temporary,
            ignore: alter.ignore,
            keeps_rows: !altered.is_rebuilt,
            first_number: altered.auto_increment,
        };
        let (new, rows) = self.make(&database, &table, &new_database, made).await?;
        if let Some(next) = altered.auto_increment {
            new.table().raise_auto_increment(next);
        }
        self.swap(&[new], temporary)?;
        let only_renames =
            { alter.actions.iter() }.all(|action| matches!(action, AlterAction::Rename(_)));
        if only_renames {
            return Ok(Outcome::done(0));
        }
        // A temporary table is copied by MySQL whatever is changed.
        let copies = match temporary {
            true => {
                altered.engine.is_some()
                    || altered.auto_increment.is_some()
                    || definition != *table.definition()
            }
            false => altered.copies,
        };
        Ok(with_info(match (copies, altered.is_rebuilt) {
            (false, _) => Written::default(),
            (true, true) => rows,
            (true, false) => Written::all(table.row_count()),
        }))
    }

    /// RENAME TABLE: one after the other, but seen at once.
    pub(crate) async fn rename_tables(
        &self,
        names: Vec<(TableName, TableName)>,
    ) -> Result<Outcome, MySqlError> {
        let mut views = names.iter().filter_map(|(old, _)| self.view(old));
        if let Some((database, view)) = views.next() {
            let [(_, new)] = names.as_slice() else {
                return Err(errors::not_supported("RENAME TABLE of a view among others"));
            };
            return self.rename_view((&database, &view), new);
        }
        // What is not there may be what another table is called by then.
        let found = || {
            Ok({ names.iter() }
                .filter_map(|(old, _)| self.table(old).ok())
                .collect())
        };
        let (_, _turns) = self.tables_to_change(found).await?;
        // Where tables are after the renames so far; `None` where a table has left.
        let mut moved: HashMap<Whereabouts, Option<Place>> = HashMap::new();
        for (old, new) in &names {
            let place = |temporary: bool, name: &TableName| -> Result<Whereabouts, MySqlError> {
                Ok((temporary, self.database_of(name)?, name.table.clone()))
            };
            let find = |at: &Whereabouts| match moved.get(at) {
                Some(found) => found.clone(),
                None => self.place(at),
            };
            let (own, shared) = (place(true, old)?, place(false, old)?);
            let (from, found) = match (find(&own), find(&shared)) {
                (Some(found), _) => (own, found),
                (None, Some(found)) => (shared, found),
                (None, None) => {
                    let code = ErrorCode::NoSuchTable;
                    return Err(MySqlError::new(code, &[&own.1, &own.2]));
                }
            };
            let to = place(from.0, new)?;
            let is_view = !to.0 && self.connection.view(&to.1, &to.2).is_some();
            let is_taken = is_view || find(&to).is_some();
            self.check_name_in(&to.1, &to.2)?;
            if is_taken {
                return Err(MySqlError::new(ErrorCode::TableExists, &[&to.2]));
            }
            moved.insert(from, None);
            moved.insert(to, Some(found));
        }
        for temporary in [true, false] {
            let mut successions = Vec::new();
            for ((_, database, name), found) in moved.iter().filter(|(at, _)| at.0 == temporary) {
                let Some((was_in, table)) = found else {
                    continue;
                };
                if (was_in.as_str(), table.name()) == (database.as_str(), name.as_str()) {
                    continue;
                }
                let sources: Vec<_> = (0..table.columns().len()).map(Some).collect();
                let mut definition = table.definition().clone();
                rename_checks(&mut definition.checks, table.name(), name);
                let made = Made {
                    name,
                    definition,
                    sources: &sources,
                    temporary,
                    ignore: false,
                    keeps_rows: true,
                    first_number: None,
                };
                let (renamed, _) = self.make(was_in, table, database, made).await?;
                successions.push(renamed);
            }
            self.swap(&successions, temporary)?;
        }
        Ok(Outcome::done(0))
    }

    fn place(&self, (temporary, database, name): &Whereabouts) -> Option<Place> {
        let table = match temporary {
            true => self.connection.local().temporary.table(database, name),
            false => {
                let dictionary = &self.connection.engine.shared().dictionary;
                dictionary.table(database, name).ok()
            }
        };
        table.map(|table| (database.clone(), table))
    }

    fn check_name_in(&self, database: &str, name: &str) -> Result<(), MySqlError> {
        check_table_name(name)?;
        self.refuse_system(database)?;
        let dictionary = &self.connection.engine.shared().dictionary;
        if !dictionary.has_database(database) {
            return Err(MySqlError::new(ErrorCode::UnknownDatabase, &[&database]));
        }
        Ok(())
    }

    fn check_new_name(
        &self,
        database: &str,
        name: &str,
        temporary: bool,
    ) -> Result<(), MySqlError> {
        self.check_name_in(database, name)?;
        let is_view = !temporary && self.connection.view(database, name).is_some();
        if is_view || self.connection.exists(database, name, temporary) {
            return Err(MySqlError::new(ErrorCode::TableExists, &[&name]));
        }
        Ok(())
    }

    /// Constant defaults must fit the columns as they will be.
    async fn check_new_defaults(
        &self,
        altered: &mut Altered,
        actions: &[AlterAction],
    ) -> Result<(), MySqlError> {
        for action in actions {
            let (name, default) = match action {
                AlterAction::AddColumn { definition, .. }
                | AlterAction::ChangeColumn { definition, .. } => {
                    (&definition.name, definition.default.as_ref())
                }
                AlterAction::SetDefault { column, default } => (column, default.as_ref()),
                _ => continue,
            };
            if let Some(default) = default {
                self.check_default(&mut altered.draft.columns, name, default)
                    .await?;
            }
        }
        Ok(())
    }

    /// A table of another definition, with the rows of the old one.
    async fn make(
        &self,
        old_database: &str,
        old: &Arc<Table>,
        database: &str,
        made: Made<'_>,
    ) -> Result<(Succession, Written), MySqlError> {
        let succession = |new, seen, shares_rows| Succession {
            was: (old_database.to_owned(), Arc::clone(old)),
            seen,
            is: (database.to_owned(), new),
            shares_rows,
        };
        if made.leaves_rows(old.definition()) {
            let stop = self.running.stop_flag();
            let rows = match old.keys_to_build(&made.definition) {
                0 => 0,
                _ => old.row_count(),
            };
            let successor = self.in_long_step(old, rows, || {
                old.successor(made.name, &made.definition, &stop)
            });
            if let Some((new, seen)) = successor.map_err(|error| errors::from_table(&error))? {
                let rows = Written::all(seen.row_count());
                return Ok((succession(Arc::new(new), seen, true), rows));
            }
        }
        let seen = old.snapshot();
        let definition = made.definition.clone();
        let definition = Arc::new(definition);
        let new = self
            .connection
            .new_table(made.name, definition, made.temporary);
        let new = Arc::new(new.with_turns_of(old));
        let rows = self.copy(&seen, old, &new, &made).await?;
        Ok((succession(new, seen, false), rows))
    }

    /// Writes the rows of a table into another, whose columns take their values from `sources`.
    async fn copy(
        &self,
        snapshot: &TableSnapshot,
        from: &Arc<Table>,
        to: &Arc<Table>,
        made: &Made<'_>,
    ) -> Result<Written, MySqlError> {
        let Made {
            sources,
            ignore,
            keeps_rows,
            first_number,
            ..
        } = *made;
        let counted = to.definition().auto_increment();
        let was_counted = counted
            .and_then(|column| sources[column])
            .is_some_and(|source| from.columns()[source].is_auto_increment);
        match was_counted {
            true => to.set_auto_increment(from.auto_increment()),
            // A column that is counted from here on begins anew.
            false => to.set_auto_increment(first_number.unwrap_or(1)),
        }
        let mut names: Vec<String> = Vec::with_capacity(sources.len());
        let mut copy = Copy {
            job: self,
            columns: Vec::with_capacity(sources.len()),
            strict: self.connection.local().variables.is_strict() && !ignore,
            row: 0,
        };
        for (column, source) in to.columns().iter().zip(sources) {
            copy.columns.push(match source {
                _ if column.generated.is_some() && !keeps_rows => {
                    (column.clone(), Value::Same(ScalarValue::Null))
                }
                Some(index) => (column.clone(), Value::Old(*index)),
                None if snapshot.row_count() == 0 => {
                    (column.clone(), Value::Same(ScalarValue::Null))
                }
                None => match value_of_added(column)? {
                    Some(value) => (column.clone(), Value::Same(value)),
                    // It is computed for each row.
                    None => continue,
                },
            });
            names.push(column.name.clone());
        }
        if snapshot.row_count() == 0 {
            return Ok(Written::default());
        }
        let mut writer = Writer::begin(self, (to, Vec::new()), &names, ignore).await?;
        if keeps_rows {
            writer.keep_rows();
        }
        if was_counted {
            writer.keep_zeros();
        }
        for batch in snapshot.scan(0..snapshot.batch_count(), None) {
            let batch = batch.map_err(|error| errors::from_table(&error))?;
            writer.append(&copy.batch(&batch)?).await?;
            tokio::task::yield_now().await;
        }
        writer.commit_copy()
    }
}

/// What a column that is added has in the rows that are there; `None` where it differs.
fn value_of_added(column: &Column) -> Result<Option<ScalarValue>, MySqlError> {
    match Fallback::of(column)? {
        Fallback::Value(value) => return Ok(Some(value)),
        Fallback::Expression(_) => return Ok(None),
        Fallback::Missing => {}
    }
    let zero = zero(&column.column_type).ok_or_else(|| {
        let kind = column.column_type.to_string();
        let kind = kind.split('(').next().unwrap_or_default();
        let date = match kind {
            "date" => "0000-00-00",
            _ => "0000-00-00 00:00:00",
        };
        MySqlError::with_message(
            ErrorCode::TruncatedValue,
            format!(
                "Incorrect {kind} value: '{date}' for column '{}' at row 1",
                column.name
            ),
        )
    })?;
    Ok(Some(zero))
}

fn added_keys(actions: &[AlterAction]) -> impl Iterator<Item = &KeyDefinition> {
    actions.iter().filter_map(|action| match action {
        AlterAction::AddKey(key) => Some(key),
        _ => None,
    })
}

/// The definitions of columns that are added or changed.
fn added_columns(actions: &[AlterAction]) -> impl Iterator<Item = &ColumnDefinition> {
    actions.iter().filter_map(|action| match action {
        AlterAction::AddColumn { definition, .. }
        | AlterAction::ChangeColumn { definition, .. } => Some(definition.as_ref()),
        _ => None,
    })
}

/// The table that takes the place of another.
struct Made<'a> {
    name: &'a str,
    definition: Definition,
    /// For each column, the one of the old table whose values it takes.
    sources: &'a [Option<usize>],
    temporary: bool,
    ignore: bool,
    /// Whether rows stay what they are: nothing is computed anew, and nothing looked at.
    keeps_rows: bool,
    /// The AUTO_INCREMENT option.
    first_number: Option<u64>,
}

impl Made<'_> {
    /// Whether rows stay as they are: each column has the values it had, and nothing is asked of
    /// them that was not asked before.
    fn leaves_rows(&self, old: &Definition) -> bool {
        let new = &self.definition;
        let mut columns = new.columns.iter().zip(self.sources).enumerate();
        let has_values = |(place, (column, source)): (usize, (&Column, &Option<usize>))| {
            let Some(old) = old.columns.get(place).filter(|_| *source == Some(place)) else {
                return false;
            };
            column.column_type == old.column_type
                && column.collation == old.collation
                && column.generated == old.generated
                && (!column.is_auto_increment || old.is_auto_increment)
        };
        let is_old = |check: &Check| {
            let mut checks = old.checks.iter();
            let same = |old: &Check| old.expression == check.expression && old.is_enforced;
            !check.is_enforced || checks.any(same)
        };
        !self.ignore && columns.all(has_values) && new.checks.iter().all(is_old)
    }
}

/// Where a column takes its values from.
enum Value {
    /// A column of the old table.
    Old(usize),
    /// The same value in all rows.
    Same(ScalarValue),
}

/// Makes batches of the old table the source of the new one.
struct Copy<'a> {
    job: &'a Job,
    columns: Vec<(Column, Value)>,
    strict: bool,
    /// The rows that were read.
    row: usize,
}

impl Copy<'_> {
    fn batch(&mut self, old: &RecordBatch) -> Result<RecordBatch, MySqlError> {
        let rows = old.num_rows();
        let mut fields: Vec<FieldRef> = Vec::with_capacity(self.columns.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for (column, value) in &self.columns {
            match value {
                Value::Old(index) => {
                    let array = old.column(*index);
                    self.refuse_null(column, array)?;
                    let field = &old.schema_ref().fields()[*index];
                    let of = ColumnType::from_arrow(field);
                    if !becomes_text(&of, &column.column_type) {
                        fields.push(Arc::clone(field));
                        arrays.push(Arc::clone(array));
                        continue;
                    }
                    let texts = shown_texts(array, &of);
                    let texts = texts.map_err(|error| errors::from_plan(&error))?;
                    fields.push(Arc::new(Field::new(
                        &column.name,
                        texts.data_type().clone(),
                        true,
                    )));
                    arrays.push(texts);
                }
                Value::Same(value) => {
                    let array = value
                        .to_array_of_size(rows)
                        .map_err(|error| errors::from_plan(&error))?;
                    let field = Field::new(&column.name, array.data_type().clone(), true);
                    fields.push(Arc::new(field));
                    arrays.push(array);
                }
            }
        }
        self.row += rows;
        batch_of(&Arc::new(Schema::new(fields)), arrays, rows)
    }

    /// NULL in a column that no longer takes it.
    fn refuse_null(&self, column: &Column, array: &ArrayRef) -> Result<(), MySqlError> {
        if column.is_nullable || column.is_auto_increment || array.null_count() == 0 {
            return Ok(());
        }
        let place = (0..array.len()).find(|row| array.is_null(*row));
        let row = self.row + place.unwrap_or_default() + 1;
        let code = ErrorCode::DataTruncated;
        if self.strict {
            return Err(MySqlError::new(code, &[&column.name, &row]));
        }
        let warning = Warning::new(code, &[&column.name, &row]);
        self.job.connection.warn(warning);
        Ok(())
    }
}

/// Whether a column that changes its type keeps what it shows, where INSERT copies a number.
fn becomes_text(old: &ColumnType, new: &ColumnType) -> bool {
    let is_short = matches!(
        new,
        ColumnType::Char { .. }
            | ColumnType::VarChar { .. }
            | ColumnType::Binary { .. }
            | ColumnType::VarBinary { .. }
    );
    let has_digits = matches!(
        old,
        ColumnType::Float { .. } | ColumnType::Double { .. } | ColumnType::Year
    );
    is_short && has_digits
}
