//! UPDATE and DELETE.
//!
//! A query reads the ids of the rows that change, and for UPDATE their old and new values; the
//! changes of each table are gathered beside it and become part of the table when all of them are
//! known. A statement therefore never meets a row that it has written, and one that fails has done
//! nothing.

mod set;

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::UInt64Type;
use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use mayfly_exec::TableSource;
use mayfly_sql::assigned;
use mayfly_sql::change::{self, Mention, ROW_ID, TARGETS, target_name};
use mayfly_sql::references::References;
use mayfly_sql::statement::{Delete, RowChoice, SetColumn, TableName, Update};
use mayfly_table::{Change, Table};
use mayfly_types::{ErrorCode, Level, MySqlError, Warning};

use super::assigning::Assigning;
use super::bind::invisible_columns;
use super::create::refuse_information;
use super::query::Ready;
use super::write::Undo;
use super::{Job, Turn};
use crate::commands::Command;
use crate::errors;
use crate::lowered;
use crate::outcome::Outcome;
use crate::status::RowChanges;

pub(crate) use set::{Set, assigns_unique};

/// How often a statement starts again because somebody else changed a shared table meanwhile.
const ATTEMPTS: usize = 16;

/// A table that a statement changes.
pub(crate) struct Target {
    pub(crate) mention: Mention,
    pub(crate) change: Change,
}

impl Target {
    /// A table that no query reads.
    pub(crate) fn unnamed(change: Change) -> Target {
        Target {
            mention: Mention::of(change.table().name()),
            change,
        }
    }

    fn table(&self) -> &Arc<Table> {
        self.change.table()
    }
}

/// One more name of a table that changes.
struct Again {
    mention: Mention,
    /// The number of the table among those that change.
    target: usize,
}

/// The tables that a statement changes.
struct Targets {
    all: Vec<Target>,
    /// Further names of them, whose rows change as well.
    again: Vec<Again>,
    /// The right to write them.
    _turns: Vec<Turn>,
}

fn row_id(mention: &Mention) -> ast::Expr {
    change::column(&mention.alias, ROW_ID)
}

/// What an assignment changes.
pub(crate) struct Place {
    /// The number of the table among those that change.
    target: usize,
    column: usize,
}

/// What an UPDATE did.
#[derive(Default)]
pub(crate) struct Updated {
    pub(crate) matched: u64,
    pub(crate) changed: u64,
}

impl Updated {
    /// `said` is what LAST_INSERT_ID(expression) said.
    fn outcome(self, counts_found: bool, said: Option<u64>) -> Outcome {
        let Updated { matched, changed } = self;
        Outcome::Done {
            affected_rows: if counts_found { matched } else { changed },
            last_insert_id: said.unwrap_or(0),
            warnings: 0,
            info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: ?"),
        }
    }
}

impl Job {
    pub(crate) async fn delete(&self, delete: Delete) -> Result<Outcome, MySqlError> {
        let is_one = delete.targets.is_empty();
        self.count(|status| match is_one {
            true => status.deletes += 1,
            false => status.commands.add(Command::DeleteSeveral),
        });
        for _ in 0..ATTEMPTS {
            if let Some(removed) = Box::pin(self.try_delete(&delete)).await? {
                return Ok(Outcome::done(removed));
            }
        }
        Err(MySqlError::new(ErrorCode::LockWaitTimeout, &[]))
    }

    pub(crate) async fn update(&self, update: Update) -> Result<Outcome, MySqlError> {
        let is_one = change::only_table(&update.choice.from).is_some();
        self.count(|status| match is_one {
            true => status.updates += 1,
            false => status.commands.add(Command::UpdateSeveral),
        });
        for _ in 0..ATTEMPTS {
            if let Some(updated) = Box::pin(self.try_update(&update)).await? {
                let said = self.connection.values.lock().said_insert_id;
                return Ok(updated.outcome(self.connection.local().counts_found, said));
            }
        }
        Err(MySqlError::new(ErrorCode::LockWaitTimeout, &[]))
    }

    fn refuse_groups<'a>(
        &self,
        exprs: impl IntoIterator<Item = &'a ast::Expr>,
    ) -> Result<(), MySqlError> {
        change::refuse_groups(exprs, &self.connection.aggregates)
    }

    /// Deletes, unless somebody else was faster.
    async fn try_delete(&self, delete: &Delete) -> Result<Option<u64>, MySqlError> {
        let mut choice = delete.choice.clone();
        let found = self.mentions(&mut choice.from)?;
        let derived = change::derived(&mut choice.from);
        let mut named = delete.targets.iter().map(|target| &target.table);
        if let Some(name) = named.find(|name| derived.contains(name)) {
            return Err(not_updatable(name, "DELETE"));
        }
        let mentions = self.deleted(&found, &delete.targets)?;
        self.refuse_groups(choice.order_by.iter().map(|by| &by.expr))?;
        let mut targets = self.targets(mentions, &mut choice.from).await?;
        let names = targets.all.iter().map(|target| &target.mention);
        let names = names.chain(targets.again.iter().map(|again| &again.mention));
        let list = names.map(row_id).collect();
        let (ready, _) = Box::pin(self.changing(choice, list, &targets)).await?;
        let mut stream = self.stream(&ready.plan)?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|error| errors::from_plan(&error))?;
            let again = targets.again.iter().map(|again| again.target);
            let places = (0..targets.all.len()).chain(again);
            for (place, ids) in places.zip(batch.columns()) {
                targets.all[place].change.remove(&present(ids));
            }
        }
        drop(stream);
        let removed = targets.all.iter();
        let removed = removed.map(|target| target.change.changed()).sum();
        let has_committed = self.commit_changes(targets.all, RowChanges::deleted)?;
        Ok(has_committed.then_some(removed))
    }

    /// Updates, unless somebody else was faster.
    async fn try_update(&self, update: &Update) -> Result<Option<Updated>, MySqlError> {
        let mut choice = update.choice.clone();
        let found = self.mentions(&mut choice.from)?;
        let derived = change::derived(&mut choice.from);
        for set in &update.assignments {
            let alone = derived.first().filter(|_| found.is_empty());
            let name = set.table.as_ref().or(alone);
            if let Some(name) = name.filter(|name| derived.contains(name)) {
                return Err(not_updatable(name, "UPDATE"));
            }
        }
        let assignments = self.owned(update).await?;
        let (mentions, places) = self.assigned(&found, &assignments)?;
        let values = { assignments.iter() }.filter_map(|set| set.value.as_ref());
        self.refuse_groups(values.chain(choice.order_by.iter().map(|by| &by.expr)))?;
        let is_one_table = change::only_table(&choice.from).is_some();
        let mut targets = self.targets(mentions, &mut choice.from).await?;
        if !targets.again.is_empty() {
            let what = "several changes of one table in a statement";
            return Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]));
        }
        let mut list = Vec::new();
        let mut sets = Vec::with_capacity(targets.all.len());
        for (number, target) in targets.all.iter().enumerate() {
            let assignments = assignments.iter().zip(&places);
            let assignments = assignments
                .filter(|(_, place)| place.target == number)
                .map(|(set, place)| (set, place.column));
            let (table, mention) = (target.table(), &target.mention);
            let one = is_one_table;
            let set = Set::begin(
                self,
                table,
                mention,
                assignments,
                one,
                update.ignore,
                &mut list,
            );
            sets.push(set.await?);
        }
        if let [target] = targets.all.as_slice()
            && choice.limit.is_some()
        {
            let columns = target.table().columns().iter();
            let mut columns: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
            columns.push(ROW_ID);
            choice = change::choose_first(choice, &target.mention.alias, &columns)?;
        }
        let (ready, mut assigning) = Box::pin(self.changing(choice, list, &targets)).await?;
        // What has no columns is computed once for all rows; it means nothing where there are none.
        let constant = self.connection.values.lock().refused.take();
        let mut stream = self.rows(&ready)?;
        let mut done = Updated::default();
        while let Some(batch) = stream.next().await {
            let mut batch = batch.map_err(|error| errors::from_plan(&error))?;
            if let Some(assigning) = &mut assigning {
                batch = assigning.computed(&batch)?;
            }
            for (target, set) in targets.all.iter_mut().zip(&mut sets) {
                set.apply(&batch, target, is_one_table, &mut done)?;
            }
            self.check_misfits()?;
        }
        drop(stream);
        self.check_misfits()?;
        if let Some(error) = constant {
            if done.matched > 0 {
                return Err(error);
            }
            let level = Level::Warning;
            self.connection.warn(Warning { level, error });
        }
        let mut waiting = Vec::new();
        for (target, set) in targets.all.iter().zip(sets) {
            let rows = set.one_by_one.unwrap_or_default();
            waiting.extend((!rows.is_empty()).then(|| (Arc::clone(target.table()), rows)));
        }
        if !self.commit_changes(targets.all, RowChanges::updated)? {
            return Ok(None);
        }
        for (table, rows) in waiting {
            done.changed += self.change_one_by_one(&table, rows)?;
        }
        Ok(Some(done))
    }

    /// Changes rows one after the other; those that would meet another one stay as they are, with a
    /// warning. Returns how many changed.
    fn change_one_by_one(
        &self,
        table: &Arc<Table>,
        rows: Vec<(Vec<u64>, RecordBatch)>,
    ) -> Result<u64, MySqlError> {
        let failed = |error: mayfly_table::Error| errors::from_table(&error);
        self.connection.before_change(table)?;
        let mut undo = Undo::begin(table)?;
        let mut changed = 0;
        for (numbers, new) in rows {
            for (row, number) in numbers.into_iter().enumerate() {
                let mut change = table.begin_change();
                let ids = change.snapshot().locate([number]).map_err(failed)?;
                let (ids, row) = (UInt64Array::from(ids), new.slice(row, 1));
                change.replace(&ids, &row).map_err(failed)?;
                match change.commit() {
                    Ok(()) => changed += 1,
                    Err(error @ mayfly_table::Error::DuplicateEntry { .. }) => {
                        self.connection.warn(Warning {
                            level: Level::Warning,
                            error: failed(error),
                        });
                    }
                    Err(error) => return Err(failed(error)),
                }
            }
        }
        undo.forget();
        self.connection
            .changed_rows(table, RowChanges::updated(changed));
        Ok(changed)
    }

    /// The tables of a FROM list, which are told apart by their names.
    pub(crate) fn mentions(
        &self,
        from: &mut [ast::TableWithJoins],
    ) -> Result<Vec<Mention>, MySqlError> {
        let found = change::mentions(from);
        let is_own = |mention: &Mention| mention.alias == mention.table.table;
        for (number, one) in found.iter().enumerate() {
            for other in &found[..number] {
                let differ = is_own(one)
                    && is_own(other)
                    && self.database_of(&one.table)? != self.database_of(&other.table)?;
                if one.alias == other.alias && !differ {
                    return Err(MySqlError::new(ErrorCode::NotUniqueTable, &[&one.alias]));
                }
            }
        }
        if let [only] = found.as_slice() {
            refuse_information(&self.database_of(&only.table)?)?;
        }
        Ok(found)
    }

    /// The tables that lose rows.
    pub(crate) fn deleted(
        &self,
        found: &[Mention],
        targets: &[TableName],
    ) -> Result<Vec<Mention>, MySqlError> {
        if targets.is_empty() {
            return match found {
                [one] => Ok(vec![one.clone()]),
                _ => {
                    let near = "";
                    Err(MySqlError::new(ErrorCode::Syntax, &[&near, &1]))
                }
            };
        }
        let database = self.connection.local().database.clone();
        let mut mentions: Vec<Mention> = Vec::with_capacity(targets.len());
        for target in targets {
            let mention = found
                .iter()
                .find(|mention| mention.is_named(target, database.as_deref()))
                .ok_or_else(|| {
                    let code = ErrorCode::UnknownTableIn;
                    MySqlError::new(code, &[&target.table, &"MULTI DELETE"])
                })?;
            if mentions.contains(mention) {
                return Err(MySqlError::new(ErrorCode::NotUniqueTable, &[&target.table]));
            }
            mentions.push(mention.clone());
        }
        Ok(mentions)
    }

    /// The tables that change, whose mentions in FROM show the ids of their rows from now on.
    async fn targets(
        &self,
        mentions: Vec<Mention>,
        from: &mut [ast::TableWithJoins],
    ) -> Result<Targets, MySqlError> {
        let mut tables: Vec<Arc<Table>> = Vec::with_capacity(mentions.len());
        let mut first = Vec::with_capacity(mentions.len());
        let mut again = Vec::new();
        for mention in mentions {
            let table = self.table(&mention.table)?;
            match tables.iter().position(|other| Arc::ptr_eq(other, &table)) {
                Some(target) => again.push(Again { mention, target }),
                None => {
                    tables.push(table);
                    first.push(mention);
                }
            }
        }
        // Two statements that wait for each other's tables ask in one order.
        let mut order: Vec<&Arc<Table>> = tables.iter().collect();
        order.sort_by_key(|table| Arc::as_ptr(table).addr());
        let mut turns = Vec::new();
        for table in order {
            turns.extend(self.turn(table).await);
        }
        let mut all = Vec::with_capacity(tables.len());
        for (number, (table, mention)) in tables.iter().zip(first).enumerate() {
            self.running.also_count(table.account());
            change::name_target(from, &mention.alias, number);
            all.push(Target {
                change: table.begin_change(),
                mention,
            });
        }
        for (number, again) in (all.len()..).zip(&again) {
            change::name_target(from, &again.mention.alias, number);
        }
        Ok(Targets {
            all,
            again,
            _turns: turns,
        })
    }

    /// The plan of the query that reads what changes.
    async fn changing(
        &self,
        choice: RowChoice,
        list: Vec<ast::Expr>,
        targets: &Targets,
    ) -> Result<(Ready, Option<Assigning>), MySqlError> {
        let mut query = change::query(choice, list)?;
        let mut bindings = self.bindings(&References::of_query(&query)).await?;
        let again = targets.again.iter().map(|again| &targets.all[again.target]);
        for (number, target) in targets.all.iter().chain(again).enumerate() {
            let source = TableSource::with_row_ids(&target.change, ROW_ID);
            let mut bound = lowered::bind(Arc::new(source))?;
            bound.invisible = invisible_columns(target.table());
            bound.invisible.push(ROW_ID.to_owned());
            let name = (TARGETS.to_owned(), target_name(number));
            bindings.tables.insert(name, bound);
        }
        let assigned = assigned::split(&mut query, &self.connection.aggregates)?;
        let planned = self.planned(query, &bindings).await?;
        let Some(assigned) = assigned else {
            return Ok((self.physical(planned).await?, None));
        };
        let ready = self.physical_in_order(planned).await?;
        let assigning = Assigning::begin(self, &ready, assigned, &bindings)?;
        Ok((ready, Some(assigning)))
    }

    /// Makes all changes part of their tables, and counts their rows; whether nobody else was
    /// faster.
    fn commit_changes(
        &self,
        targets: Vec<Target>,
        count: impl Fn(u64) -> RowChanges,
    ) -> Result<bool, MySqlError> {
        // When a later table refuses, the earlier ones go back.
        let mut undos = Vec::new();
        if targets.len() > 1 {
            for target in &targets {
                undos.push(Undo::begin(target.table())?);
            }
        }
        for (number, target) in targets.into_iter().enumerate() {
            let rows = target.change.changed();
            let table = Arc::clone(target.table());
            self.connection.before_change(&table)?;
            match target.change.commit() {
                Ok(()) => self.connection.changed_rows(&table, count(rows)),
                Err(mayfly_table::Error::Changed { .. }) if number == 0 => {
                    undos.iter_mut().for_each(Undo::forget);
                    return Ok(false);
                }
                Err(error) => return Err(errors::from_table(&error)),
            }
        }
        undos.iter_mut().for_each(Undo::forget);
        Ok(true)
    }

    /// The assignments, with the tables of those columns that tables are joined by.
    pub(crate) async fn owned<'u>(
        &self,
        update: &'u Update,
    ) -> Result<Cow<'u, [SetColumn]>, MySqlError> {
        let mut assignments = Cow::Borrowed(update.assignments.as_slice());
        let from = &update.choice.from;
        if !change::joins_by_name(from) {
            return Ok(assignments);
        }
        let query = change::query(update.choice.clone(), Vec::new())?;
        let bindings = self.bindings(&References::of_query(&query)).await?;
        for set in assignments.to_mut() {
            if set.table.is_none() {
                set.table = change::owner(from, &set.column, &bindings)?;
            }
        }
        Ok(assignments)
    }

    /// The tables that assignments change, and for each assignment its table and column.
    pub(crate) fn assigned(
        &self,
        found: &[Mention],
        assignments: &[SetColumn],
    ) -> Result<(Vec<Mention>, Vec<Place>), MySqlError> {
        let mut changed: Vec<Mention> = Vec::new();
        let mut places = Vec::with_capacity(assignments.len());
        for set in assignments {
            let name = match &set.table {
                Some(table) => format!("{table}.{}", set.column),
                None => set.column.clone(),
            };
            let mut all = Vec::new();
            for mention in found {
                if set
                    .table
                    .as_ref()
                    .is_some_and(|table| *table != mention.alias)
                {
                    continue;
                }
                let table = self.table(&mention.table)?;
                let column = table
                    .columns()
                    .iter()
                    .position(|column| column.name.eq_ignore_ascii_case(&set.column));
                all.extend(column.map(|column| (mention, column)));
            }
            let (mention, column) = match all.as_slice() {
                [one] => *one,
                [] => {
                    let clause = "field list";
                    return Err(MySqlError::new(ErrorCode::UnknownColumn, &[&name, &clause]));
                }
                _ => {
                    let clause = "field list";
                    return Err(MySqlError::new(
                        ErrorCode::AmbiguousColumn,
                        &[&name, &clause],
                    ));
                }
            };
            let number = match changed.iter().position(|other| other == mention) {
                Some(number) => number,
                None => {
                    changed.push(mention.clone());
                    changed.len() - 1
                }
            };
            places.push(Place {
                target: number,
                column,
            });
        }
        Ok((changed, places))
    }
}

fn not_updatable(name: &str, statement: &str) -> MySqlError {
    MySqlError::new(ErrorCode::NonUpdatableTable, &[&name, &statement])
}

/// The ids that are there: an outer join has rows without one.
fn present(ids: &ArrayRef) -> UInt64Array {
    let ids = ids.as_primitive::<UInt64Type>();
    match ids.null_count() {
        0 => ids.clone(),
        _ => ids.iter().flatten().collect::<Vec<_>>().into(),
    }
}
