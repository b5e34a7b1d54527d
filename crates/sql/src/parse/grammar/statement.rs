//! The queries and expressions that a statement holds.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Select, TableFactor, Visit, Visitor};

use super::Grammar;
use crate::statement::{
    AlterAction, AlterTable, Assignment, CheckDefinition, ColumnDefinition, CreateTable,
    CreateView, Delete, Explain, Filter, Flush, GeneratedColumn, Insert, InsertSource, LoadData,
    RowChoice, SetColumn, SetValue, Show, Statement, Update,
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
            Statement::CreateView(view) => self.create_view(view),
            Statement::AlterTable(table) => self.alter_table(table),
            Statement::Insert(insert) => self.insert(insert),
            Statement::Update(update) => {
                let Update {
                    ignore: _,
                    choice,
                    assignments,
                } = update.as_ref();
                self.choice(choice);
                self.assigned(assignments);
            }
            Statement::Delete(delete) => {
                let Delete {
                    ignore: _,
                    targets: _,
                    choice,
                } = delete.as_ref();
                self.choice(choice);
            }
            Statement::LoadData(load) => self.load(load),
            Statement::Set(assignments) => {
                for assignment in assignments {
                    self.set(assignment);
                }
            }
            Statement::Show(show) => self.show(show),
            Statement::Do(expressions) => self.read(expressions),
            Statement::Kill { id, only_query: _ } => self.read(id),
            Statement::DropTable(_)
            | Statement::DropView(_)
            | Statement::DropAbsent(_)
            | Statement::RenameTable(_)
            | Statement::Truncate(_)
            | Statement::CreateDatabase {
                name: _,
                if_not_exists: _,
            }
            | Statement::DropDatabase {
                name: _,
                if_exists: _,
            }
            | Statement::Use(_)
            | Statement::Flush(Flush {
                status: _,
                slow_log: _,
                accounts: _,
                gtids: _,
            })
            | Statement::StopReplica
            | Statement::Maintain(_)
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
        let CreateTable {
            temporary: _,
            or_replace: _,
            if_not_exists: _,
            name: _,
            columns,
            keys: _,
            checks,
            auto_increment: _,
            like: _,
            engine: _,
            comment: _,
            options: _,
            query,
            ignore: _,
            replace: _,
        } = table;
        for column in columns {
            self.column(column);
        }
        for check in checks {
            self.check(check);
        }
        self.read(query);
    }

    fn create_view(&mut self, view: &CreateView) {
        let CreateView {
            old: _,
            if_not_exists: _,
            algorithm: _,
            definer: _,
            security: _,
            name: _,
            columns: _,
            query,
            place: _,
            check: _,
        } = view;
        self.read(query);
    }

    fn column(&mut self, column: &ColumnDefinition) {
        let ColumnDefinition {
            name: _,
            column_type: _,
            character_set: _,
            not_null: _,
            null: _,
            default,
            on_update,
            generated,
            auto_increment: _,
            invisible: _,
            key: _,
            checks,
            references: _,
            comment: _,
        } = column;
        self.read(default);
        self.read(on_update);
        if let Some(GeneratedColumn {
            expression,
            stored: _,
        }) = generated
        {
            self.read(expression);
        }
        for check in checks {
            self.check(check);
        }
    }

    fn check(&mut self, check: &CheckDefinition) {
        let CheckDefinition {
            name: _,
            expression,
            enforced: _,
            column: _,
        } = check;
        self.read(expression);
    }

    fn alter_table(&mut self, table: &AlterTable) {
        let AlterTable {
            table: _,
            if_exists: _,
            ignore: _,
            actions,
        } = table;
        for action in actions {
            match action {
                AlterAction::AddColumn {
                    definition,
                    placement: _,
                    if_not_exists: _,
                }
                | AlterAction::ChangeColumn {
                    old: _,
                    definition,
                    placement: _,
                    if_exists: _,
                } => self.column(definition),
                AlterAction::SetDefault { column: _, default } => self.read(default),
                AlterAction::AddCheck(check) => self.check(check),
                AlterAction::DropColumn {
                    name: _,
                    if_exists: _,
                }
                | AlterAction::RenameColumn { old: _, new: _ }
                | AlterAction::SetInvisible {
                    column: _,
                    invisible: _,
                }
                | AlterAction::AddKey(_)
                | AlterAction::DropKey {
                    name: _,
                    if_exists: _,
                }
                | AlterAction::DropForeignKey {
                    name: _,
                    if_exists: _,
                }
                | AlterAction::RenameKey {
                    old: _,
                    new: _,
                    if_exists: _,
                }
                | AlterAction::DropCheck {
                    name: _,
                    if_exists: _,
                }
                | AlterAction::EnforceCheck {
                    name: _,
                    enforced: _,
                    as_constraint: _,
                }
                | AlterAction::DropConstraint {
                    name: _,
                    if_exists: _,
                }
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
        let Insert {
            table: _,
            columns: _,
            qualified: _,
            source,
            ignore: _,
            replace: _,
            alias: _,
            on_duplicate,
        } = insert;
        match source {
            InsertSource::Query(query) => self.read(query),
            InsertSource::Values(rows) => self.read(rows),
        }
        self.assigned(on_duplicate);
    }

    fn load(&mut self, load: &LoadData) {
        let LoadData {
            local: _,
            ignore: _,
            replace: _,
            path: _,
            table: _,
            character_set: _,
            format: _,
            skip_lines: _,
            targets: _,
            assignments,
        } = load;
        self.assigned(assignments);
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
            let SetColumn {
                table: _,
                column: _,
                value,
            } = assignment;
            self.read(value);
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
            Assignment::Names {
                character_set: _,
                collation: _,
            }
            | Assignment::CharacterSet(_)
            | Assignment::Transaction {
                scope: _,
                access: _,
                isolation: _,
            } => {}
        }
    }

    fn show(&mut self, show: &Show) {
        match show {
            Show::Tables {
                full: _,
                database: _,
                filter,
            }
            | Show::TableStatus {
                database: _,
                filter,
            }
            | Show::Columns {
                full: _,
                table: _,
                filter,
            }
            | Show::Variables { scope: _, filter }
            | Show::Status { scope: _, filter }
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
            | Show::CreateDatabase {
                name: _,
                if_not_exists: _,
            }
            | Show::Warnings {
                errors_only: _,
                offset: _,
                limit: _,
            }
            | Show::WarningCount { errors_only: _ }
            | Show::Engines
            | Show::ProcessList
            | Show::Profiles
            | Show::Profile(_)
            | Show::Plugins
            | Show::Privileges
            | Show::Grants(_)
            | Show::EngineStatus(_)
            | Show::BinaryLogs
            | Show::CreateView(_)
            | Show::CreateAbsent(..)
            | Show::Nothing(_) => {}
        }
    }
}
