//! The columns that a statement has, found without running it: what a client is told when it
//! prepares one. Of a statement that has none the names are looked at.
//!
//! Owns what was found out about the columns of queries over shared tables, for all connections
//! that are alike: many clients that come at once prepare the same statements.

use std::sync::{Arc, MutexGuard, PoisonError};

use datafusion::sql::sqlparser::ast::Query;
use mayfly_sql::parse;
use mayfly_sql::references::References;
use mayfly_sql::statement::Statement;
use mayfly_types::MySqlError;

use super::described::{Columns, Described};
use super::{Job, ThroughViews, maintenance_listing};
use crate::column_info::{ColumnInfo, columns_of};
use crate::connection::Connection;
use crate::outcome::Outcome;
use crate::plan_owner::PlanOwner;
use crate::running::Running;

impl PlanOwner {
    fn described(&self) -> MutexGuard<'_, Described> {
        self.described
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The columns of a statement, if they are known and its names mean what they meant.
pub(crate) fn known_columns(connection: &Connection, text: &str) -> Option<Vec<ColumnInfo>> {
    let owner = connection.plan_owner()?;
    let described = owner.described();
    let found = described.queries.get(text)?;
    found.meanings.now(&connection.local(), connection)?;
    Some(found.columns.clone())
}

/// The columns of the rows that a statement returns; none where it returns no rows, or tells its
/// columns only when it runs.
///
/// # Errors
/// Those that running it would give; one may be due to values that are not known yet.
pub(crate) async fn describe(
    connection: Arc<Connection>,
    running: Arc<Running>,
) -> Result<Vec<ColumnInfo>, MySqlError> {
    let (mut statement, source) = parse::parse(&running.text)?;
    connection.begin_looking(true);
    let job = Job {
        connection,
        running,
        source: Arc::new(source),
        through_views: ThroughViews::default(),
    };
    let is_through = job.change_through_views(&mut statement)?.is_some();
    job.name_defaults(&mut statement)?;
    match statement {
        Statement::Query(query) => {
            job.limit_time();
            job.columns_of(*query).await
        }
        // They look at names only.
        Statement::Show(show) => match Box::pin(job.show(show)).await? {
            Outcome::Rows { columns, .. } => Ok(columns),
            Outcome::Done { .. } => Ok(Vec::new()),
        },
        Statement::Maintain(asked) => {
            let batch = maintenance_listing::answer(asked.kind).batch(None)?;
            Ok(columns_of(batch.schema_ref(), None))
        }
        Statement::Explain(explain) if !explain.analyze => {
            let explanation = Box::pin(job.explanation(explain)).await?;
            let batch = explanation.listing.batch(None)?;
            Ok(columns_of(batch.schema_ref(), None))
        }
        // Kept by its text it would outlive the view.
        other if is_through => Box::pin(job.check(other)).await.map(|()| Vec::new()),
        other => job.check_once(other).await.map(|()| Vec::new()),
    }
}

impl Job {
    async fn columns_of(&self, query: Query) -> Result<Vec<ColumnInfo>, MySqlError> {
        let references = References::of_query(&query);
        let find = async {
            if let Some((ready, assigning)) = Box::pin(self.assigning(&query)).await? {
                return assigning.columns(&ready, self);
            }
            let ready = Box::pin(self.ready(query)).await?;
            Ok(ready.columns(self))
        };
        self.found_once(&references, find).await
    }

    /// What is found out about the columns of a statement that mentions no more than this, once for
    /// all connections that are alike.
    pub(super) async fn found_once(
        &self,
        references: &References,
        find: impl Future<Output = Result<Vec<ColumnInfo>, MySqlError>>,
    ) -> Result<Vec<ColumnInfo>, MySqlError> {
        let is_of_session = !references.files.is_empty()
            || !references.user_variables.is_empty()
            || !references.system_variables.is_empty();
        let tables = self.tables(&references.tables);
        let home = tables
            .filter(|_| !is_of_session)
            .map(|tables| self.home(&tables));
        let Some(owner) = home.as_ref().and_then(|home| home.owner.as_ref()) else {
            return find.await;
        };
        let Some(_making) = owner.begin_making().await else {
            return find.await;
        };
        if let Some(columns) = known_columns(&self.connection, &self.running.text) {
            return Ok(columns);
        }
        let meanings = self.meanings(&references.tables);
        let columns = find.await?;
        if let Some(meanings) = meanings {
            let columns = columns.clone();
            let kept = Columns { columns, meanings };
            owner.described().keep(&self.running.text, kept);
        }
        Ok(columns)
    }
}
