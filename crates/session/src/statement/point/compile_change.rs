//! From a parsed change of few rows to one that computes over them: what is left of its condition
//! behind a key, values that depend on the row, LIMIT, ON DUPLICATE KEY UPDATE.
//!
//! Whatever is not exactly of the kind is `None`, errors included: the long way tells them.

use mayfly_sql::change::{Mention, mentions};
use mayfly_sql::literal::Literal;
use mayfly_sql::statement::{Delete, Insert, RowChoice, SetColumn, Statement, Update};
use mayfly_table::Table;

use super::compile::{Constants, has_one_row};
use super::key_condition::{Parted, parted};
use super::known::{Action, Assignments, Cell, Chosen, NewValue, OverRows, PointStatement};
use super::row_expression::{Of, RowExpression};
use crate::statement::Job;
use crate::statement::apart::{Apart, Given};
use crate::statement::change::{assigned_place, assigns_unique};
use crate::statement::table_rules::Rules;

/// Values that are computed, with the places of their columns.
type Values = Vec<(usize, RowExpression)>;

impl Job {
    /// The meaning of a change that computes over its rows, and its constants.
    pub(super) async fn computed_change(
        &self,
        parsed: &Statement,
    ) -> Option<(PointStatement, Given<'static>)> {
        let is_one = match parsed {
            Statement::Insert(insert) => !insert.on_duplicate.is_empty() && has_one_row(insert),
            Statement::Update(_) | Statement::Delete(_) => true,
            _ => false,
        };
        if !is_one {
            return None;
        }
        let Apart { shape, .. } = Apart::of(&self.running.text)?;
        if !self.connection.local().known.may_be_computed(&shape) {
            return None;
        }
        let change = parsed.clone();
        let compile = self.compute(move |job| Ok(job.compiled_change(&change)));
        compile.await.ok().flatten()
    }

    fn compiled_change(&self, change: &Statement) -> Option<(PointStatement, Given<'static>)> {
        let mut constants = Constants::default();
        let statement = match change {
            Statement::Insert(insert) => self.upsert(insert, &mut constants),
            Statement::Update(update) => self.update_over_rows(update, &mut constants),
            Statement::Delete(delete) => self.delete_over_rows(delete, &mut constants),
            _ => None,
        };
        let constants = constants.0;
        Some((statement?, Given { constants, rows: 1 }))
    }

    fn update_over_rows(
        &self,
        update: &Update,
        constants: &mut Constants,
    ) -> Option<PointStatement> {
        let (table, mention) = self.keyed(&update.choice.from)?;
        if update.ignore {
            return None;
        }
        let of = Of {
            table: &table,
            alias: &mention.alias,
            has_new_row: false,
        };
        let sets = &update.assignments;
        let (assignments, values) = self.assignments(sets, &of, &mention, constants)?;
        let rows = self.chosen_over_rows(&update.choice, &of, values, constants)?;
        self.change_of(&table, mention.table, Action::Update { rows, assignments })
    }

    fn delete_over_rows(
        &self,
        delete: &Delete,
        constants: &mut Constants,
    ) -> Option<PointStatement> {
        let (table, mention) = self.keyed(&delete.choice.from)?;
        let mut from = delete.choice.from.clone();
        self.deleted(&mentions(&mut from), &delete.targets).ok()?;
        let of = Of {
            table: &table,
            alias: &mention.alias,
            has_new_row: false,
        };
        let rows = self.chosen_over_rows(&delete.choice, &of, Vec::new(), constants)?;
        let is_multi = !delete.targets.is_empty();
        self.change_of(&table, mention.table, Action::Delete { rows, is_multi })
    }

    fn upsert(&self, insert: &Insert, constants: &mut Constants) -> Option<PointStatement> {
        if insert.ignore || insert.replace {
            return None;
        }
        let mut rows = 0;
        let (table, columns, _) = self.inserted(insert, constants, &mut rows)?;
        if !table.definition().keys.iter().any(|key| key.is_unique()) {
            return None;
        }
        let mention = Mention::of(insert.table.clone());
        let of = Of {
            table: &table,
            alias: &mention.alias,
            has_new_row: true,
        };
        let sets = &insert.on_duplicate;
        let (assignments, values) = self.assignments(sets, &of, &mention, constants)?;
        let places: Vec<usize> = assignments.iter().map(|(place, _)| *place).collect();
        // A row that changes may not meet another one.
        if assigns_unique(&table, &places) {
            return None;
        }
        let over = self.over_rows(&table, Vec::new(), values, constants)?;
        let action = Action::Upsert {
            columns,
            assignments,
            over,
        };
        self.change_of(&table, mention.table, action)
    }

    /// The rows that a key finds, and what is computed over them.
    fn chosen_over_rows(
        &self,
        choice: &RowChoice,
        of: &Of<'_>,
        values: Values,
        constants: &mut Constants,
    ) -> Option<Chosen> {
        if !choice.order_by.is_empty() {
            return None;
        }
        let Parted { choice: rows, rest } = parted(choice.condition.as_ref()?, of, constants)?;
        let limit = match &choice.limit {
            Some(limit) => Some(constants.cell(limit)?),
            None => None,
        };
        let over = self.over_rows(of.table, rest, values, constants)?;
        Some(Chosen { rows, over, limit })
    }

    /// Conditions and values made ready, if there are any.
    fn over_rows(
        &self,
        table: &Table,
        conditions: Vec<RowExpression>,
        values: Values,
        constants: &Constants,
    ) -> Option<Option<OverRows>> {
        match conditions.is_empty() && values.is_empty() {
            true => Some(None),
            false => OverRows::of(self, table, conditions, values, &constants.0).map(Some),
        }
    }

    /// What columns get. None of the values reads a column that one before it changes.
    fn assignments(
        &self,
        sets: &[SetColumn],
        of: &Of<'_>,
        mention: &Mention,
        constants: &mut Constants,
    ) -> Option<(Assignments, Values)> {
        let columns = of.table.columns();
        let has_more = columns.iter().any(|column| column.on_update.is_some());
        if has_more || Rules::exist(of.table.definition()) {
            return None;
        }
        let database = self.current_database();
        let mut assignments = Assignments::with_capacity(sets.len());
        let mut values = Values::new();
        for set in sets {
            let place = assigned_place(set, (of.table, mention), database.as_deref()).ok()?;
            let column = &columns[place];
            let is_assigned = |place: &usize| assignments.iter().any(|(other, _)| other == place);
            if is_assigned(&place) || column.is_auto_increment {
                return None;
            }
            let value = set.value.as_ref()?;
            let value = match Literal::of(value) {
                Some(_) => {
                    let cell = constants.cell(value)?;
                    if matches!(cell, Cell::Null) && !column.is_nullable {
                        return None;
                    }
                    NewValue::Value(cell)
                }
                None => {
                    let value = of.read_value(value, place, constants)?;
                    if value.reads.columns.iter().any(is_assigned) {
                        return None;
                    }
                    values.push((place, value));
                    NewValue::Computed(values.len() - 1)
                }
            };
            assignments.push((place, value));
        }
        Some((assignments, values))
    }
}
