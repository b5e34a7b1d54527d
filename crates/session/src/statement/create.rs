//! Databases and tables: create, drop, truncate.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::Expr;
use mayfly_space::AccountOptions;
use mayfly_sql::declared;
use mayfly_sql::functions::aside;
use mayfly_sql::origin::Origin;
use mayfly_sql::references::References;
use mayfly_sql::statement::{CreateTable, DropTable, TableName};
use mayfly_sql::stored::{self, Stored};
use mayfly_table::{Column, Definition, Table};
use mayfly_types::{ColumnType, ErrorCode, Level, MySqlError, Warning};

use super::assign::Values;
use super::defaults::{Fallback, constant};
use super::define::{Draft, check_table_name, key_notes};
use super::evaluate::{is_constant, names_columns, number_of_bits};
use super::expressions::name_checks_anew;
use super::information::{refuse_information, undroppable};
use super::insert::with_info;
use super::name_length::NAME_LENGTH;
use super::query::Ready;
use super::succession::Succession;
use super::write::Writer;
use super::written::Written;
use super::{Job, foreign_key};
use crate::connection::Connection;
use crate::errors;
use crate::gone_tables;
use crate::outcome::Outcome;

/// Engines that are accepted in the place of ours; with a note, as MySQL substitutes engines.
const OTHER_ENGINES: [&str; 8] = [
    "InnoDB",
    "MyISAM",
    "MEMORY",
    "HEAP",
    "Aria",
    "CSV",
    "ARCHIVE",
    "TempTable",
];

/// The engine of this name that is accepted in the place of ours, as it spells itself.
pub(crate) fn other_engine(name: &str) -> Option<&'static str> {
    let mut engines = OTHER_ENGINES.iter().copied();
    engines.find(|engine| engine.eq_ignore_ascii_case(name))
}

/// ER_WARN_USING_OTHER_HANDLER.
const USING_OTHER_ENGINE: u16 = 1266;

impl Job {
    pub(crate) fn create_database(
        &self,
        name: &str,
        if_not_exists: bool,
    ) -> Result<Outcome, MySqlError> {
        if name.is_empty() || name.chars().count() > NAME_LENGTH {
            return Err(MySqlError::new(ErrorCode::WrongDatabaseName, &[&name]));
        }
        refuse_information(&self.connection, name)?;
        match self
            .connection
            .engine
            .shared()
            .dictionary
            .create_database(name)
        {
            Ok(()) => Ok(Outcome::done(1)),
            Err(mayfly_table::Error::DatabaseExists { .. }) if if_not_exists => {
                self.note(ErrorCode::DatabaseExists, &[&name]);
                Ok(Outcome::done(1))
            }
            Err(error) => Err(errors::from_table(&error)),
        }
    }

    pub(crate) async fn drop_database(
        &self,
        name: &str,
        if_exists: bool,
    ) -> Result<Outcome, MySqlError> {
        refuse_information(&self.connection, name)?;
        let dictionary = &self.connection.engine.shared().dictionary;
        let tables = || Ok(dictionary.tables(name).unwrap_or_default());
        let (tables, turns) = self.tables_to_change(tables).await?;
        let dropped = match self
            .connection
            .engine
            .shared()
            .dictionary
            .drop_database(name)
        {
            Ok(tables) => {
                let mut local = self.connection.local();
                if local.database.as_deref() == Some(name) {
                    local.database = None;
                    local.database_changed();
                }
                Ok(Outcome::done(tables as u64))
            }
            Err(mayfly_table::Error::UnknownDatabase { .. }) if if_exists => {
                self.note(ErrorCode::DatabaseDropMissing, &[&name]);
                Ok(Outcome::done(0))
            }
            Err(_) => {
                let missing = || MySqlError::new(ErrorCode::DatabaseDropMissing, &[&name]);
                Err(undroppable(&self.connection, name).unwrap_or_else(missing))
            }
        };
        drop(turns);
        gone_tables::free(&self.running, tables);
        dropped
    }

    pub(crate) async fn create_table(&self, create: CreateTable) -> Result<Outcome, MySqlError> {
        let temporary = create.temporary;
        self.count(|status| {
            if temporary {
                status.temporary_creates += 1;
            } else {
                status.creates += 1;
            }
        });
        let database = self.database_of(&create.name)?;
        let name = &create.name.table;
        check_table_name(name)?;
        self.refuse_system(&database)?;
        if let Some(like) = &create.like
            && (self.database_of(like)?.as_str(), &like.table) == (database.as_str(), name)
        {
            return Err(MySqlError::new(ErrorCode::NotUniqueTable, &[name]));
        }
        let dictionary = &self.connection.engine.shared().dictionary;
        if !dictionary.has_database(&database) {
            return Err(MySqlError::new(ErrorCode::UnknownDatabase, &[&database]));
        }
        let view = self.connection.view(&database, name);
        let view = view.filter(|_| !temporary);
        if view.is_some() && create.or_replace {
            return Err(Job::not_base_table(&database, name));
        }
        let is_taken = view.is_some() || self.connection.exists(&database, name, temporary);
        if is_taken && !create.or_replace {
            if create.if_not_exists {
                self.note(ErrorCode::TableExists, &[name]);
                return Ok(Outcome::done(0));
            }
            return Err(MySqlError::new(ErrorCode::TableExists, &[name]));
        }
        if let Some(engine) = &create.engine {
            self.check_engine(engine, name)?;
        }
        if let Some(like) = &create.like {
            let model = self.table(like)?;
            let mut definition = model.definition().clone();
            name_checks_anew(&mut definition, name);
            let definition = Arc::new(definition);
            let table = self.connection.new_table(name, definition, temporary);
            let table = Arc::new(table);
            return match self.publish(&create, &database, table).await {
                Err(error) => self.made_by_others(&create, error),
                Ok(()) => Ok(Outcome::done(0)),
            };
        }
        let pipes_as_concat = self
            .connection
            .local()
            .variables
            .has_mode("PIPES_AS_CONCAT");
        let mut draft = Draft::of_statement(&create, pipes_as_concat);
        for column in &create.columns {
            if let Some(default) = &column.default {
                self.check_default(&mut draft.columns, &column.name, default)
                    .await?;
            }
        }
        let selected = match create.query.clone() {
            Some(query) => {
                let bindings = self.bindings(&References::of_query(&query)).await?;
                self.begin_assignments(create.ignore);
                let planned = self.planned(*query, &bindings).await?;
                let stored = stored::columns(&planned.plan);
                // Which of two rows stays, and which number one gets, depends on their order.
                let counts = draft.columns.iter().any(|column| column.is_auto_increment);
                let ready = match create.ignore || create.replace || counts {
                    true => self.physical_in_order(planned).await?,
                    false => self.physical(planned).await?,
                };
                let names = self.selected_columns(&mut draft.columns, &ready, &stored)?;
                Some((ready, names))
            }
            None => None,
        };
        let definition = draft.definition(name)?;
        self.check_rules(&definition).await?;
        let mut notes = key_notes(create.keys.iter(), &definition.keys, &[]);
        notes.extend(foreign_key::warnings(
            create.keys.iter(),
            create.columns.iter(),
        ));
        let warns = !notes.is_empty();
        for note in notes {
            self.connection.warn(note);
        }
        let definition = Arc::new(definition);
        let made = self
            .connection
            .new_table(name, Arc::clone(&definition), temporary);
        let table = Arc::new(made);
        table.raise_auto_increment(create.auto_increment.unwrap_or(1));
        let rows = match selected {
            Some((ready, names)) => {
                let fill = self.fill(&table, &names, &ready, create.ignore, create.replace);
                Some(fill.await?)
            }
            None => None,
        };
        if let Err(error) = self.publish(&create, &database, table).await {
            return self.made_by_others(&create, error);
        }
        if !warns {
            self.keep_table(&create, &definition);
        }
        Ok(rows.map_or_else(|| Outcome::done(0), with_info))
    }

    /// The end of a statement whose table somebody else has made since it was looked for.
    fn made_by_others(
        &self,
        create: &CreateTable,
        error: MySqlError,
    ) -> Result<Outcome, MySqlError> {
        if !create.if_not_exists || !error.is(ErrorCode::TableExists) {
            return Err(error);
        }
        self.note(ErrorCode::TableExists, &[&create.name.table]);
        Ok(Outcome::done(0))
    }

    /// Makes a table known by its name, in the place of another one if there may be one: whoever
    /// looks finds one of them at any moment, and a statement that fails has dropped nothing.
    async fn publish(
        &self,
        create: &CreateTable,
        database: &str,
        table: Arc<Table>,
    ) -> Result<(), MySqlError> {
        let (temporary, replace) = (create.temporary, create.or_replace);
        if temporary && replace {
            let name = table.name().to_owned();
            let mut local = self.connection.local();
            let replaced = local.temporary.drop_table(database, &name);
            let created = local.temporary.create(database, table);
            drop(local);
            gone_tables::free(&self.running, replaced.into_iter().collect());
            return created.map_err(|error| errors::from_table(&error));
        }
        if temporary || !replace {
            return self.connection.publish(database, table, temporary);
        }
        let dictionary = &self.connection.engine.shared().dictionary;
        let replaced = || {
            let found = dictionary.table(database, table.name());
            Ok(found.ok().into_iter().collect())
        };
        loop {
            let (found, _turns) = self.tables_to_change(replaced).await?;
            let place = |table: &Arc<Table>| (database.to_owned(), Arc::clone(table));
            let Some(old) = found.first() else {
                match self.connection.publish(database, Arc::clone(&table), false) {
                    // Somebody has made one since it was looked for.
                    Err(error)
                        if error.is(ErrorCode::TableExists)
                            && self.connection.view(database, table.name()).is_none() =>
                    {
                        continue;
                    }
                    published => return published,
                }
            };
            let succession = Succession {
                was: place(old),
                seen: old.snapshot(),
                is: place(&table),
                shares_rows: false,
            };
            return self.swap(&[succession], false);
        }
    }

    /// Writes the rows of a query into the named columns.
    async fn fill(
        &self,
        table: &Arc<Table>,
        names: &[String],
        ready: &Ready,
        ignore: bool,
        replace: bool,
    ) -> Result<Written, MySqlError> {
        let mut writer = Writer::begin(self, (table, Vec::new()), names, ignore).await?;
        if replace {
            writer.replace();
        }
        writer.pass_over_all()?;
        writer.write(ready).await
    }

    /// Notes that an engine is not obeyed, or refuses one that nobody knows.
    pub(crate) fn check_engine(&self, engine: &str, table: &str) -> Result<(), MySqlError> {
        // Everybody writes InnoDB, and asks for no other engine by it.
        if ["mayfly", "innodb"].contains(&engine.to_ascii_lowercase().as_str()) {
            return Ok(());
        }
        let substitutes = other_engine(engine).is_some();
        let refuses = self
            .connection
            .local()
            .variables
            .has_mode("NO_ENGINE_SUBSTITUTION");
        if !substitutes && refuses {
            return Err(MySqlError::new(ErrorCode::UnknownStorageEngine, &[&engine]));
        }
        self.connection.warn(Warning {
            level: Level::Note,
            error: MySqlError {
                code: USING_OTHER_ENGINE,
                sqlstate: "HY000",
                message: format!("Using storage engine Mayfly for table '{table}'"),
            },
        });
        Ok(())
    }

    /// Adds the columns of a query behind those that are only declared. A declared column of the
    /// same name stands among those of the query and takes the value. Returns the names in the
    /// order of the query.
    fn selected_columns(
        &self,
        columns: &mut Vec<Column>,
        ready: &Ready,
        stored: &[Stored],
    ) -> Result<Vec<String>, MySqlError> {
        let mut names: Vec<String> = Vec::with_capacity(ready.labels.len());
        let selected = stored.iter().zip(ready.origins.iter());
        for ((stored, origin), label) in selected.zip(&ready.labels) {
            if names.iter().any(|name| name.eq_ignore_ascii_case(label)) {
                return Err(MySqlError::new(ErrorCode::DuplicateColumn, &[label]));
            }
            names.push(label.clone());
            let lower = label.to_lowercase();
            let is_it = |column: &Column| column.name.to_lowercase() == lower;
            let column = match columns.iter().position(is_it) {
                Some(place) => columns.remove(place),
                None => self.copied(stored, origin.as_ref()),
            };
            columns.push(Column {
                name: label.clone(),
                ..column
            });
        }
        Ok(names)
    }

    /// The column that takes a column of a query. Of the one that it is a copy of it keeps what a
    /// row of its own needs: the constant that it gets where nothing is given, or the time.
    fn copied(&self, stored: &Stored, origin: Option<&Origin>) -> Column {
        let column = Column::new("", stored.column_type.clone(), stored.nullable);
        let Some(model) = origin.and_then(|origin| self.column_of(origin)) else {
            return column;
        };
        let is_kept = match Fallback::of(&model) {
            Ok(Fallback::Value(_)) => true,
            Ok(Fallback::Expression(expression)) => declared::is_now(&expression),
            _ => false,
        };
        let default = match model.is_auto_increment {
            true => Some("0".to_owned()),
            false => model.default.filter(|_| is_kept),
        };
        Column {
            default,
            on_update: model.on_update,
            comment: model.comment,
            ..column
        }
    }

    /// The column of a table that a column of a query is a copy of.
    fn column_of(&self, origin: &Origin) -> Option<Column> {
        let table = self.table(&origin.table_name()?).ok()?;
        let place = table.definition().column(&origin.column)?;
        Some(table.columns()[place].clone())
    }

    /// A constant default must fit its column, which is one of `columns`, and is kept as that keeps
    /// it.
    pub(crate) async fn check_default(
        &self,
        columns: &mut [Column],
        name: &str,
        default: &Expr,
    ) -> Result<(), MySqlError> {
        let Some(column) = columns.iter_mut().find(|column| column.name == name) else {
            return Ok(());
        };
        let invalid = || MySqlError::new(ErrorCode::InvalidDefault, &[&name]);
        if names_columns(default) {
            return Ok(());
        }
        let bits = number_of_bits(default, column).map(|bits| ScalarValue::UInt64(Some(bits)));
        let is_list = matches!(column.column_type, ColumnType::Enum(_) | ColumnType::Set(_));
        let value = match bits {
            Some(bits) => bits,
            None => self.evaluate(default).await?,
        };
        if value.is_null() && !column.is_nullable {
            return Err(invalid());
        }
        // A word is not told by its number.
        if is_list && value.data_type().is_numeric() && is_constant(default) {
            return Err(invalid());
        }
        if !is_constant(default) || value.is_null() {
            return Ok(());
        }
        let probe = Column::new(&column.name, column.column_type.clone(), true);
        // Not of the statement, which waits at its end until nobody has a part of its memory.
        let probe = Table::new("probe", vec![probe], &self.connection.account);
        let values = Values::begin_all(self, &Arc::new(probe), false).await?;
        let array = value
            .to_array()
            .map_err(|error| errors::from_plan(&error))?;
        let field = arrow::datatypes::Field::new("value", array.data_type().clone(), true);
        let schema = Arc::new(arrow::datatypes::Schema::new(vec![field]));
        let batch = arrow::record_batch::RecordBatch::try_new(schema, vec![array])
            .map_err(|error| errors::from_plan(&error.into()))?;
        let (kept, said) = aside(|| values.assigned(&batch));
        let kept = kept.map_err(|_| invalid())?;
        for warning in said {
            let warning = match warning.level {
                // The row is none of the table.
                Level::Note => Warning::note(ErrorCode::DataTruncated, &[&name, &0]),
                _ => warning,
            };
            self.connection.warn(warning);
        }
        // Bytes that are no text stay as they were written.
        if !column.column_type.is_binary() {
            column.default = kept
                .first()
                .and_then(|kept| constant(kept, &column.column_type));
        }
        Ok(())
    }

    pub(crate) async fn drop_table(&self, drop: &DropTable) -> Result<Outcome, MySqlError> {
        self.connection.count(|status| status.drops += 1);
        let mut seen = HashSet::new();
        let mut places = Vec::new();
        for name in &drop.names {
            let database = self.database_of(name)?;
            if !seen.insert((database.clone(), name.table.clone())) {
                return Err(MySqlError::new(ErrorCode::NotUniqueTable, &[&name.table]));
            }
            places.push((database, &name.table));
        }
        let dictionary = &self.connection.engine.shared().dictionary;
        let dropped = || {
            let shared = places.iter().filter_map(|(database, table)| {
                let is_own = self.connection.exists(database, table, true);
                let found = dictionary.table(database, table).ok();
                found.filter(|_| !is_own && !drop.temporary)
            });
            Ok(shared.collect())
        };
        let (mut gone, turns) = self.tables_to_change(dropped).await?;
        let mut missing = Vec::new();
        for (database, table) in &places {
            let is_temporary = self.connection.exists(database, table, true);
            let is_shared = !drop.temporary && self.connection.exists(database, table, false);
            if !is_temporary && !is_shared {
                missing.push(format!("{database}.{table}"));
            }
        }
        // MySQL drops nothing when one of the tables is missing.
        if !missing.is_empty() && !drop.if_exists {
            return Err(MySqlError::new(
                ErrorCode::UnknownTable,
                &[&missing.join(",")],
            ));
        }
        for (database, table) in &places {
            let dropped = self
                .connection
                .local()
                .temporary
                .drop_table(database, table);
            match dropped {
                Ok(table) => gone.push(table),
                Err(_) if drop.temporary => {}
                // Its turn was taken, so it is among those that are gone.
                Err(_) => {
                    let _ = dictionary.drop_table(database, table);
                }
            }
        }
        for name in missing {
            self.note(ErrorCode::UnknownTable, &[&name]);
        }
        // Whoever waits for a turn at one of them finds that it has gone.
        std::mem::drop(turns);
        gone_tables::free(&self.running, gone);
        Ok(Outcome::done(0))
    }

    pub(crate) async fn truncate(&self, name: &TableName) -> Result<Outcome, MySqlError> {
        if let Some(outcome) = self.truncate_system(name)? {
            return Ok(outcome);
        }
        if let Some((database, view)) = self.view(name) {
            return Err(MySqlError::no_such_table(&database, &view.name));
        }
        let (table, turns) = self.table_to_change(name).await?;
        let is_large = gone_tables::is_large(&table);
        let truncated = table.truncate();
        let gone = truncated.map_err(|error| errors::from_table(&error))?;
        drop(turns);
        if is_large {
            gone_tables::free_beside(&self.running, gone);
        }
        Ok(Outcome::done(0))
    }
}

impl Connection {
    pub(crate) fn exists(&self, database: &str, name: &str, temporary: bool) -> bool {
        if temporary {
            self.local().temporary.table(database, name).is_some()
        } else {
            self.engine
                .shared()
                .dictionary
                .table(database, name)
                .is_ok()
        }
    }

    /// A table of nobody yet; a temporary one is capped as `tmp_table_size` says.
    pub(crate) fn new_table(
        &self,
        name: &str,
        definition: Arc<Definition>,
        temporary: bool,
    ) -> Table {
        if !temporary {
            let account = &self.engine.shared().table_account;
            return Table::of(name, definition, account, AccountOptions::default()).shared();
        }
        let options = AccountOptions {
            resident_max_bytes: self.temp_table_cap(),
            takes_memory: true,
            ..AccountOptions::default()
        };
        let account = self.account.child("temporary table", options);
        Table::of(name, definition, &account, AccountOptions::default())
    }

    /// Makes a table known by its name; to all others too, if it is no temporary one.
    pub(crate) fn publish(
        &self,
        database: &str,
        table: Arc<Table>,
        temporary: bool,
    ) -> Result<(), MySqlError> {
        let dictionary = &self.engine.shared().dictionary;
        let created = if temporary {
            self.local().temporary.create(database, table)
        } else {
            dictionary.create_table(database, table)
        };
        created.map_err(|error| errors::from_table(&error))
    }
}
