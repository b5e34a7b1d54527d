//! UPDATE and DELETE.
//!
//! A query reads the ids of the rows that change, and for UPDATE their old and new values; the
//! changes of each table are gathered beside it and become part of the table when all of them are
//! known: in all tables or in none. A statement therefore never meets a row that it has written,
//! and one that fails has done nothing. It has its turn (`super::turns`) from before it reads until
//! it ends.

mod constant_conditions;
mod names;
mod safe;
mod set;
mod target;

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::UInt64Array;
use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use mayfly_exec::TableSource;
use mayfly_sql::assigned;
use mayfly_sql::change::{self, Mention, ROW_ID, TARGETS, target_name};
use mayfly_sql::names_of_changes;
use mayfly_sql::references::References;
use mayfly_sql::source::Source;
use mayfly_sql::statement::{Delete, RowChoice, SetColumn, TableName, Update};
use mayfly_table::Table;
use mayfly_table::Turn;
use mayfly_types::{ErrorCode, Level, MySqlError, Warning};

use super::Job;
use super::assigning::Assigning;
use super::bound_table::invisible_columns;
use super::query::Ready;
use super::turns::{HeldTurns, purpose_of_change};
use super::working_table::WorkingTable;
use crate::commands::Command;
use crate::errors;
use crate::lowered;
use crate::outcome::Outcome;
use crate::status::RowChanges;
use target::present;
pub(crate) use target::{Target, Updated};

pub(crate) use names::{assigned_before, assigned_place};
pub(crate) use set::{Set, assigned_values, assigns_unique};

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
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The number of the table among those that change.
    target: usize,
    column: usize,
}

/// Tables that change, and the right to change them.
type TablesInTurn = (Vec<Arc<Table>>, Vec<Turn>);

/// The assignments of an UPDATE, the tables that they change, and their places in these.
struct Assigned<'u>(Cow<'u, [SetColumn]>, Vec<Mention>, Vec<Place>);

/// New rows for those with these numbers.
type NumberedRows = Vec<(Vec<u64>, RecordBatch)>;

impl Job {
    pub(crate) async fn delete(&self, delete: Delete) -> Result<Outcome, MySqlError> {
        let is_one = delete.targets.is_empty();
        self.count(|status| match is_one {
            true => status.deletes += 1,
            false => status.commands.add(Command::DeleteSeveral),
        });
        let removed = Box::pin(self.delete_rows(delete)).await?;
        Ok(Outcome::done(removed))
    }

    pub(crate) async fn update(&self, update: Update) -> Result<Outcome, MySqlError> {
        let is_one = change::only_table(&update.choice.from).is_some();
        self.count(|status| match is_one {
            true => status.updates += 1,
            false => status.commands.add(Command::UpdateSeveral),
        });
        let updated = Box::pin(self.update_rows(update)).await?;
        let said = self.connection.values.lock().said_insert_id;
        Ok(updated.outcome(self.connection.local().counts_found, said))
    }

    fn refuse_groups<'a>(
        &self,
        exprs: impl IntoIterator<Item = &'a ast::Expr>,
    ) -> Result<(), MySqlError> {
        change::refuse_groups(exprs, &self.connection.aggregates)
    }

    async fn delete_rows(&self, delete: Delete) -> Result<u64, MySqlError> {
        let mut choice = delete.choice;
        let found = self.mentions(&mut choice.from, "DELETE")?;
        let derived = change::derived(&mut choice.from);
        let mut named = delete.targets.iter().map(|target| &target.table);
        if let Some(name) = named.find(|name| derived.contains(name)) {
            return Err(not_updatable(name, "DELETE"));
        }
        let mentions = self.deleted(&found, &delete.targets)?;
        let source = self.settle_names(&mut choice, &mut []).await?;
        self.refuse_groups(choice.order_by.iter().map(|by| &by.expr))?;
        self.check_safe_change(&choice, &found, true).await?;
        let find = || mentions.iter().map(|mention| self.table(&mention.table));
        let held = self.tables_to_change(|| find().collect()).await?;
        let mut targets = self.targets(mentions, held, &mut choice.from);
        let names = targets.all.iter().map(|target| &target.mention);
        let names = names.chain(targets.again.iter().map(|again| &again.mention));
        let list = names.map(row_id).collect();
        let (ready, _) = Box::pin(self.changing(choice, list, &targets, source)).await?;
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
        let all = targets.all.into_iter();
        let all = all.map(|target| (target, Vec::new())).collect();
        self.commit_changes(all, RowChanges::deleted)
    }

    async fn update_rows(&self, mut update: Update) -> Result<Updated, MySqlError> {
        let found = self.mentions(&mut update.choice.from, "UPDATE")?;
        let derived = change::derived(&mut update.choice.from);
        for set in &update.assignments {
            let alone = derived.first().filter(|_| found.is_empty());
            let name = set.table.as_ref().map(|table| &table.table).or(alone);
            if let Some(name) = name.filter(|name| derived.contains(name)) {
                return Err(not_updatable(name, "UPDATE"));
            }
        }
        let assignments = &mut update.assignments;
        let source = self.settle_names(&mut update.choice, assignments).await?;
        self.check_safe_change(&update.choice, &found, false)
            .await?;
        let mut choice = update.choice.clone();
        let is_one_table = change::only_table(&choice.from).is_some();
        let is_strict = self.connection.local().variables.is_strict() && !update.ignore;
        if let Some(condition) = choice
            .condition
            .as_mut()
            .filter(|_| is_strict && is_one_table)
        {
            Box::pin(self.settle_constant_conditions(condition)).await?;
        }
        let (Assigned(assignments, mentions, places), held) =
            self.assigned_in_turn(&update, &found).await?;
        let values = { assignments.iter() }.filter_map(|set| set.value.as_ref());
        self.refuse_groups(values.chain(choice.order_by.iter().map(|by| &by.expr)))?;
        let mut targets = self.targets(mentions, held, &mut choice.from);
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
        let (ready, mut assigning) =
            Box::pin(self.changing(choice, list, &targets, source)).await?;
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
        let all = targets.all.into_iter().zip(sets);
        let all = all.map(|(target, set)| (target, set.one_by_one.unwrap_or_default()));
        done.changed = self.commit_changes(all.collect(), RowChanges::updated)?;
        Ok(done)
    }

    /// What an UPDATE assigns, and the tables that it changes when all turns are taken. A column
    /// that is not there may be the one that somebody adds meanwhile.
    async fn assigned_in_turn<'u>(
        &self,
        update: &'u Update,
        found: &[Mention],
    ) -> Result<(Assigned<'u>, TablesInTurn), MySqlError> {
        let mut held = HeldTurns::default();
        loop {
            let assigned = self.owned(update).await.and_then(|owned| {
                let (mentions, places) = self.assigned(found, &owned)?;
                Ok(Assigned(owned, mentions, places))
            });
            let changed = assigned.as_ref().map_or(found, |assigned| &assigned.1);
            let tables = changed.iter().map(|mention| self.table(&mention.table));
            let tables = match tables.collect::<Result<Vec<_>, _>>() {
                Ok(tables) => tables,
                Err(error) => return Err(assigned.err().unwrap_or(error)),
            };
            if self
                .hold_turns(&mut held, &tables, purpose_of_change)
                .await?
            {
                return Ok((assigned?, (tables, held.into_turns())));
            }
        }
    }

    /// Changes rows one after the other; those that would meet another one stay as they are, with a
    /// warning. Returns how many changed.
    fn change_one_by_one(&self, table: &Arc<Table>, rows: NumberedRows) -> Result<u64, MySqlError> {
        let failed = |error: mayfly_table::Error| errors::from_table(&error);
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
        Ok(changed)
    }

    /// The tables of a FROM list that a command changes, which are told apart by their names there
    /// from now on.
    pub(crate) fn mentions(
        &self,
        from: &mut [ast::TableWithJoins],
        command: &str,
    ) -> Result<Vec<Mention>, MySqlError> {
        let mut found = change::mentions(from);
        for (number, one) in found.iter().enumerate() {
            for other in &found[..number] {
                if one.alias == other.alias
                    && self.database_of(&one.table)? == self.database_of(&other.table)?
                {
                    return Err(MySqlError::new(ErrorCode::NotUniqueTable, &[&one.alias]));
                }
            }
        }
        names_of_changes::tell_apart(from)?;
        for (mention, told_apart) in found.iter_mut().zip(change::mentions(from)) {
            mention.alias = told_apart.alias;
        }
        if let [only] = found.as_slice() {
            self.refuse_system_rows(&only.table, command)?;
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
        let database = self.current_database();
        let mut mentions: Vec<Mention> = Vec::with_capacity(targets.len());
        for target in targets {
            let is_named = |mention: &&Mention| mention.is_named(target, database.as_deref());
            let mut named = found.iter().filter(is_named);
            let mention = named.next().ok_or_else(|| {
                let code = ErrorCode::UnknownTableIn;
                MySqlError::new(code, &[&target.table, &"MULTI DELETE"])
            })?;
            if mentions.contains(mention) || named.next().is_some() {
                return Err(MySqlError::new(ErrorCode::NotUniqueTable, &[&target.table]));
            }
            mentions.push(mention.clone());
        }
        Ok(mentions)
    }

    /// The tables that change, whose mentions in FROM show the ids of their rows from now on.
    fn targets(
        &self,
        mentions: Vec<Mention>,
        (found, turns): TablesInTurn,
        from: &mut [ast::TableWithJoins],
    ) -> Targets {
        let mut tables: Vec<Arc<Table>> = Vec::with_capacity(found.len());
        let mut first = Vec::with_capacity(found.len());
        let mut again = Vec::new();
        for (table, mention) in found.into_iter().zip(mentions) {
            match tables.iter().position(|other| Arc::ptr_eq(other, &table)) {
                Some(target) => again.push(Again { mention, target }),
                None => {
                    tables.push(table);
                    first.push(mention);
                }
            }
        }
        let mut all = Vec::with_capacity(tables.len());
        for (number, (table, mention)) in tables.iter().zip(first).enumerate() {
            self.running.also_count(table.account());
            change::name_target(from, &mention.alias, number);
            all.push(Target {
                change: table.begin_change().stopped_by(self.running.stop_flag()),
                mention,
            });
        }
        for (number, again) in (all.len()..).zip(&again) {
            change::name_target(from, &again.mention.alias, number);
        }
        Targets {
            all,
            again,
            _turns: turns,
        }
    }

    /// The plan of the query that reads what changes.
    async fn changing(
        &self,
        choice: RowChoice,
        list: Vec<ast::Expr>,
        targets: &Targets,
        source: Arc<Source>,
    ) -> Result<(Ready, Option<Assigning>), MySqlError> {
        let mut query = change::query(choice, list)?;
        let mut bindings = self.bindings(&References::of_query(&query)).await?;
        let again = targets.again.iter().map(|again| &targets.all[again.target]);
        for (number, target) in targets.all.iter().chain(again).enumerate() {
            let rows = TableSource::with_row_ids(&target.change, ROW_ID);
            let mut bound = lowered::bind(Arc::new(rows))?;
            bound.invisible = invisible_columns(target.table());
            bound.invisible.push(ROW_ID.to_owned());
            let name = (TARGETS.to_owned(), target_name(number));
            bindings.tables.insert(name, bound);
        }
        let assigned = assigned::split(&mut query, &self.connection.aggregates)?;
        let planned = self.planned_of(query, &bindings, source).await?;
        let Some(assigned) = assigned else {
            return Ok((self.physical(planned).await?, None));
        };
        let ready = self.physical_in_order(planned).await?;
        let (ready, assigning) = Assigning::planned(self, ready, assigned, bindings).await?;
        Ok((ready, Some(assigning)))
    }

    /// Makes all changes part of their tables, or none; behind those of each table come rows that
    /// change one after the other. Counts the rows that changed, and returns how many.
    fn commit_changes(
        &self,
        targets: Vec<(Target, NumberedRows)>,
        count: impl Fn(u64) -> RowChanges,
    ) -> Result<u64, MySqlError> {
        for (target, _) in &targets {
            self.connection.before_change(target.table())?;
        }
        let is_one = targets.len() == 1;
        let mut changes = Vec::with_capacity(targets.len());
        let mut all = Vec::new();
        for (target, rows) in targets {
            let mut changed = target.change.changed();
            let table = Arc::clone(target.table());
            if is_one && rows.is_empty() {
                let committed = self.in_long_step(&table, changed, || target.change.commit());
                committed.map_err(|error| errors::from_table(&error))?;
            } else if changed > 0 || !rows.is_empty() {
                let working = WorkingTable::begin(&table)?;
                self.in_long_step(&table, changed, || working.change(target.change))?;
                changed += self.change_one_by_one(working.table(), rows)?;
                all.push(working);
            }
            changes.push((table, changed));
        }
        WorkingTable::finish_all(all)?;
        for (table, changed) in &changes {
            self.connection.changed_rows(table, count(*changed));
        }
        Ok(changes.iter().map(|(_, changed)| changed).sum())
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
                let owner = change::owner(from, &set.column, &bindings)?;
                set.table = owner.map(|table| TableName {
                    database: None,
                    table,
                });
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
        let database = self.current_database();
        for set in assignments {
            let name = set.name();
            let mut all = Vec::new();
            for mention in found {
                let named = set.table.as_ref();
                if named.is_some_and(|named| !mention.owns(named, database.as_deref())) {
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
