//! The queries and expressions that a statement holds.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Select, TableFactor, Visit, Visitor};

use super::Grammar;
use crate::statement::{
    AlterAction, AlterTable, Assignment, CheckDefinition, ColumnDefinition, CreateTable, Explain,
    Filter, GeneratedColumn, Insert, InsertSource, RowChoice, SetColumn, SetValue, Show, Statement,
};
use crate::walk;

impl Visitor for Grammar {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.query(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.select(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.table_factor(factor);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        self.expression(expr);
        ControlFlow::Continue(())
    }
}

impl Grammar {
    /// Looks at all that a statement holds of sqlparser's tree.
    pub(super) fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Query(query) | Statement::QueryInto(query, _) => self.read(query),
            Statement::Explain(Explain {
                analyze: _,
                format: _,
                statement,
            }) => self.statement(statement),
            Statement::CreateTable(table) => self.create_table(table),
            Statement::AlterTable(table) => self.alter_table(table),
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => {
                self.choice(&update.choice);
                self.assigned(&update.assignments);
            }
            Statement::Delete(delete) => self.choice(&delete.choice),
            Statement::LoadData(load) => {
                for (_, value) in &load.assignments {
                    self.read(value);
                }
            }
            Statement::Set(assignments) => {
                for assignment in assignments {
                    self.set(assignment);
                }
            }
            Statement::Show(show) => self.show(show),
            Statement::Do(expressions) => self.read(expressions),
            Statement::Kill { id, only_query: _ } => self.read(id),
            Statement::DropTable(_)
            | Statement::DropAbsent(_)
            | Statement::RenameTable(_)
            | Statement::Truncate(_)
            | Statement::CreateDatabase { .. }
            | Statement::DropDatabase { .. }
            | Statement::Use(_)
            | Statement::FlushStatus
            | Statement::FlushSlowLog
            | Statement::Flush
            | Statement::LockTables(_)
            | Statement::OnPrepared(_)
            | Statement::Begin(_)
            | Statement::Commit(_)
            | Statement::Rollback(_)
            | Statement::Savepoint(_)
            | Statement::RollbackTo(_)
            | Statement::ReleaseSavepoint(_)
            | Statement::Nothing => {}
        }
    }

    fn read(&mut self, node: &impl Visit) {
        let _ = walk::read(node, self);
    }

    fn create_table(&mut self, table: &CreateTable) {
        for column in &table.columns {
            self.column(column);
        }
        for check in &table.checks {
            self.check(check);
        }
        self.read(&table.query);
    }

    fn column(&mut self, column: &ColumnDefinition) {
        self.read(&column.default);
        self.read(&column.on_update);
        if let Some(GeneratedColumn {
            expression,
            stored: _,
        }) = &column.generated
        {
            self.read(expression);
        }
        for check in &column.checks {
            self.check(check);
        }
    }

    fn check(&mut self, check: &CheckDefinition) {
        self.read(&check.expression);
    }

    fn alter_table(&mut self, table: &AlterTable) {
        for action in &table.actions {
            match action {
                AlterAction::AddColumn { definition, .. }
                | AlterAction::ChangeColumn { definition, .. } => self.column(definition),
                AlterAction::SetDefault { column: _, default } => self.read(default),
                AlterAction::AddCheck(check) => self.check(check),
                AlterAction::DropColumn { .. }
                | AlterAction::RenameColumn { .. }
                | AlterAction::SetInvisible { .. }
                | AlterAction::AddKey(_)
                | AlterAction::DropKey { .. }
                | AlterAction::RenameKey { .. }
                | AlterAction::DropCheck { .. }
                | AlterAction::EnforceCheck { .. }
                | AlterAction::DropConstraint { .. }
                | AlterAction::Rename(_)
                | AlterAction::Engine(_)
                | AlterAction::AutoIncrement(_)
                | AlterAction::Comment(_)
                | AlterAction::Option(..)
                | AlterAction::Nothing => {}
            }
        }
    }

    fn insert(&mut self, insert: &Insert) {
        match &insert.source {
            InsertSource::Query(query) => self.read(query),
            InsertSource::Values(rows) => self.read(rows),
        }
        self.assigned(&insert.on_duplicate);
    }

    /// Tables and conditions of UPDATE and DELETE.
    fn choice(&mut self, choice: &RowChoice) {
        let RowChoice {
            from,
            condition,
            order_by,
            limit,
        } = choice;
        self.from(from);
        self.order_keys(order_by);
        self.read(from);
        self.read(condition);
        self.read(order_by);
        self.read(limit);
    }

    fn assigned(&mut self, assignments: &[SetColumn]) {
        for assignment in assignments {
            self.read(&assignment.value);
        }
    }

    fn set(&mut self, assignment: &Assignment) {
        match assignment {
            Assignment::User { name: _, value } => self.read(value),
            Assignment::System {
                scope: _,
                name: _,
                value,
            } => match value {
                SetValue::Expression(value) => self.read(value),
                SetValue::Word(_) | SetValue::Default => {}
            },
            Assignment::Names { .. }
            | Assignment::CharacterSet(_)
            | Assignment::Transaction { .. } => {}
        }
    }

    fn show(&mut self, show: &Show) {
        match show {
            Show::Tables { filter, .. }
            | Show::TableStatus { filter, .. }
            | Show::Columns { filter, .. }
            | Show::Variables { filter, .. }
            | Show::Status { filter, .. }
            | Show::Databases(filter)
            | Show::CharacterSets(filter)
            | Show::Collations(filter) => {
                let Filter { like: _, condition } = filter;
                self.read(condition);
            }
            Show::Index {
                table: _,
                condition,
            } => self.read(condition),
            Show::FileColumns(_)
            | Show::CreateTable(_)
            | Show::CreateDatabase(_)
            | Show::Warnings { .. }
            | Show::WarningCount { .. }
            | Show::Engines
            | Show::ProcessList
            | Show::Profiles
            | Show::Profile(_)
            | Show::Nothing(_) => {}
        }
    }
}
