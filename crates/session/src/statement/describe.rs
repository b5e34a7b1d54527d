//! The columns that a statement has, found without running it: what a client is told when it
//! prepares one.

use std::sync::Arc;

use mayfly_sql::parse;
use mayfly_sql::statement::Statement;
use mayfly_types::MySqlError;

use super::Job;
use crate::connection::Connection;
use crate::outcome::{ColumnInfo, Outcome};
use crate::running::Running;

/// The columns of the rows that a statement returns; none where it returns no rows, or tells its
/// columns only when it runs.
pub(crate) async fn describe(
    connection: Arc<Connection>,
    running: Arc<Running>,
) -> Result<Vec<ColumnInfo>, MySqlError> {
    let (mut statement, source) = parse::parse(&running.text)?;
    connection.begin_statement(true);
    let job = Job {
        connection,
        running,
        source: Arc::new(source),
    };
    job.name_defaults(&mut statement)?;
    match statement {
        Statement::Query(query) => {
            let ready = Box::pin(job.ready(*query)).await?;
            Ok(ready.columns(&job))
        }
        // They look at names only.
        Statement::Show(show) => match Box::pin(job.show(show)).await? {
            Outcome::Rows { columns, .. } => Ok(columns),
            Outcome::Done { .. } => Ok(Vec::new()),
        },
        Statement::Explain(explain) if !explain.analyze => {
            match Box::pin(job.explain(explain)).await? {
                Outcome::Rows { columns, .. } => Ok(columns),
                Outcome::Done { .. } => Ok(Vec::new()),
            }
        }
        Statement::Insert(insert) => job.table(&insert.table).map(|_| Vec::new()),
        _ => Ok(Vec::new()),
    }
}
