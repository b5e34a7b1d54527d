//! Whether the names of a statement that changes rows mean something: what a client is told when it
//! prepares one. Nothing is run, and nobody is waited for.

use std::sync::Arc;

use mayfly_sql::parse;
use mayfly_sql::statement::{Explain, ExplainFormat, Insert, InsertSource, Statement};
use mayfly_types::{ErrorCode, MySqlError};

use super::Job;
use super::assign::Values;
use super::duplicate::Updater;
use crate::connection::Connection;
use crate::running::Running;

/// Looks at the tables and columns of UPDATE, DELETE, INSERT, REPLACE and CREATE TABLE ... SELECT.
///
/// # Errors
/// Those that running it would give; one may be due to values that are not known yet.
pub(crate) async fn check(
    connection: Arc<Connection>,
    running: Arc<Running>,
) -> Result<(), MySqlError> {
    let (statement, source) = parse::parse(&running.text)?;
    let job = Job {
        connection,
        running,
        source: Arc::new(source),
    };
    match &statement {
        Statement::Update(update) => {
            let found = job.mentions(&mut update.choice.from.clone())?;
            let assignments = job.owned(update).await?;
            job.assigned(&found, &assignments)?;
            job.try_plan(statement).await
        }
        Statement::Delete(delete) => {
            let found = job.mentions(&mut delete.choice.from.clone())?;
            job.deleted(&found, &delete.targets)?;
            job.try_plan(statement).await
        }
        Statement::Insert(insert) => {
            Box::pin(job.check_insert(insert)).await?;
            match insert.source {
                InsertSource::Query(_) => job.try_plan(statement).await,
                InsertSource::Values(_) => Ok(()),
            }
        }
        Statement::CreateTable(create) => match &create.query {
            Some(query) => job.try_plan(Statement::Query(query.clone())).await,
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

impl Job {
    /// Plans what EXPLAIN would show.
    async fn try_plan(&self, statement: Statement) -> Result<(), MySqlError> {
        let explain = Explain {
            analyze: false,
            format: ExplainFormat::Traditional,
            statement: Box::new(statement),
        };
        Box::pin(self.explain(explain)).await.map(drop)
    }

    async fn check_insert(&self, insert: &Insert) -> Result<(), MySqlError> {
        let table = self.table(&insert.table)?;
        let values = Values::begin(self, &table, &insert.columns, insert.ignore).await?;
        if let InsertSource::Values(rows) = &insert.source {
            let count = values.filled().len();
            let is_wrong = |row: &Vec<_>| row.len() != count && !row.is_empty();
            if let Some(wrong) = rows.iter().position(is_wrong) {
                return Err(MySqlError::new(ErrorCode::ValueCount, &[&(wrong + 1)]));
            }
        }
        if !insert.on_duplicate.is_empty() {
            let assignments = &insert.on_duplicate;
            let names = values.source_columns();
            let alias = insert.alias.as_ref();
            Updater::begin(self, &table, assignments, alias, &names, insert.ignore).await?;
        }
        Ok(())
    }
}
