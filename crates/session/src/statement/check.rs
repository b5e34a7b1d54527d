//! Whether the names of a statement that returns no rows mean something: what a client is told when
//! it prepares one. Nothing is run, and nobody is waited for.

use datafusion::sql::sqlparser::ast::Expr;
use mayfly_sql::change::Mention;
use mayfly_sql::references::References;
use mayfly_sql::statement::{
    Assignment, Explain, ExplainFormat, Insert, InsertSource, RowChoice, SetValue, Statement,
};
use mayfly_types::{ErrorCode, MySqlError};

use super::Job;
use super::assign::Values;
use super::duplicate::Updater;
use super::evaluate::is_constant;
use super::record::Record;
use crate::variables::find;

/// Expressions of a statement that are looked at.
const VALUES_MAX: usize = 256;

/// The values that are looked at: not those that are there as they stand.
fn computed<'a>(values: impl IntoIterator<Item = &'a Expr>) -> Vec<Expr> {
    let values = values.into_iter().filter(|value| !is_constant(value));
    values.take(VALUES_MAX).cloned().collect()
}

/// Refuses to assign to a variable of the system that is not there.
fn check_variable(assignment: &Assignment) -> Result<(), MySqlError> {
    match assignment {
        Assignment::System { name, .. } if find(name).is_none() => {
            Err(MySqlError::new(ErrorCode::UnknownSystemVariable, &[name]))
        }
        _ => Ok(()),
    }
}

/// What a statement that changes rows mentions; `None` for any other one.
fn references(statement: &Statement) -> Option<References> {
    let mut all = References::default();
    let mut expressions: Vec<&Expr> = Vec::new();
    match statement {
        Statement::Update(update) => {
            mention(&update.choice, &mut all, &mut expressions);
            let values = update.assignments.iter();
            expressions.extend(values.filter_map(|set| set.value.as_ref()));
        }
        Statement::Delete(delete) => mention(&delete.choice, &mut all, &mut expressions),
        Statement::Insert(insert) => {
            all.tables.push(insert.table.clone());
            if let InsertSource::Query(query) = &insert.source {
                all.add(References::of_query(query));
            }
            let values = insert.on_duplicate.iter();
            expressions.extend(values.filter_map(|set| set.value.as_ref()));
        }
        _ => return None,
    }
    for expression in expressions {
        all.add(References::of_expression(expression));
    }
    Some(all)
}

fn mention<'a>(choice: &'a RowChoice, all: &mut References, expressions: &mut Vec<&'a Expr>) {
    all.add(References::of_tables(&choice.from));
    expressions.extend(&choice.condition);
    expressions.extend(choice.order_by.iter().map(|by| &by.expr));
    expressions.extend(&choice.limit);
}

impl Job {
    /// Looks at the names of a statement without rows, once for all connections that are alike.
    ///
    /// # Errors
    /// Those that running it would give; one may be due to values that are not known yet.
    pub(super) async fn check_once(&self, statement: Statement) -> Result<(), MySqlError> {
        let Some(references) = references(&statement) else {
            return Box::pin(self.check(statement)).await;
        };
        let find = async {
            Box::pin(self.check(statement)).await?;
            Ok(Vec::new())
        };
        self.found_once(&references, find).await.map(drop)
    }

    pub(super) async fn check(&self, statement: Statement) -> Result<(), MySqlError> {
        match &statement {
            // Who explains one of these looks at its names first.
            Statement::Update(_) | Statement::Delete(_) | Statement::Insert(_) => {
                self.try_plan(statement).await
            }
            Statement::CreateTable(create) => match (&create.query, &create.like) {
                (Some(query), _) => self.try_plan(Statement::Query(query.clone())).await,
                (None, Some(like)) => self.table(like).map(drop),
                (None, None) => Ok(()),
            },
            Statement::QueryInto(query, _) => self.try_plan(Statement::Query(query.clone())).await,
            Statement::LoadData(load) => self.table(&load.table).map(drop),
            Statement::Kill { id, .. } => self.try_values(computed([id.as_ref()])).await,
            Statement::Do(expressions) => self.try_values(computed(expressions)).await,
            Statement::Set(assignments) => {
                assignments.iter().try_for_each(check_variable)?;
                let values = assignments
                    .iter()
                    .filter_map(|assignment| match assignment {
                        Assignment::User { value, .. }
                        | Assignment::System {
                            value: SetValue::Expression(value),
                            ..
                        } => Some(value),
                        _ => None,
                    });
                self.try_values(computed(values)).await
            }
            _ => Ok(()),
        }
    }

    async fn try_values(&self, values: Vec<Expr>) -> Result<(), MySqlError> {
        match values.is_empty() {
            true => Ok(()),
            false => Box::pin(self.ready_alone(values)).await.map(drop),
        }
    }

    /// Plans what EXPLAIN would show.
    async fn try_plan(&self, statement: Statement) -> Result<(), MySqlError> {
        let explain = Explain {
            analyze: false,
            format: Some(ExplainFormat::Traditional),
            statement: Box::new(statement),
        };
        Box::pin(self.explanation(explain)).await.map(drop)
    }

    pub(super) async fn check_insert(&self, insert: &Insert) -> Result<(), MySqlError> {
        let table = self.table(&insert.table)?;
        let mention = Mention::of(insert.table.clone());
        let values = Values::begin(self, &table, &insert.columns, insert.ignore).await?;
        if let InsertSource::Values(rows) = &insert.source {
            let count = values.filled().len();
            let is_wrong = |row: &Vec<_>| row.len() != count && !row.is_empty();
            if let Some(wrong) = rows.iter().position(is_wrong) {
                return Err(MySqlError::new(ErrorCode::ValueCount, &[&(wrong + 1)]));
            }
            let record = Record::begin(&table, &mention)?;
            let mut values = computed(rows.iter().flatten().flatten());
            for value in &mut values {
                record.fill(self, value).await?;
            }
            self.try_values(values).await?;
        }
        if !insert.on_duplicate.is_empty() {
            let (assignments, behind) = self.source_of(insert, (&table, &mention)).await?;
            let names = values.source_columns();
            let (alias, ignore) = (insert.alias.as_ref(), insert.ignore);
            let to = (&table, &mention);
            Updater::begin(self, to, &assignments, alias, &names, ignore, &behind).await?;
        }
        Ok(())
    }
}
