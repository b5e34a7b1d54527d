//! SHOW and DESCRIBE.

mod administration;
pub(super) mod columns;
pub(super) mod definition;
pub(super) mod keys;
mod nothing;
pub(super) mod profile;
pub(super) mod server;
pub(super) mod table_status;
mod tables;
mod views;

use datafusion::sql::sqlparser::ast::SetExpr;
use mayfly_sql::parse;
use mayfly_sql::statement::{Filter, Show, Statement};
use mayfly_types::{ErrorCode, MySqlError};

use super::Job;
use crate::column_info::columns_of;
use crate::listing::{Listing, is_like};
use crate::outcome::Outcome;

/// The name under which a listing is filtered by WHERE.
const LISTING: &str = "show";

impl Job {
    pub(crate) async fn show(&self, show: Show) -> Result<Outcome, MySqlError> {
        match show {
            Show::Tables {
                full,
                database,
                filter,
            } => {
                let database = self.database_or_current(database)?;
                let name = match &filter.like {
                    Some(pattern) => format!("Tables_in_{database} ({pattern})"),
                    None => format!("Tables_in_{database}"),
                };
                let listing = self.list_tables(&database, full)?;
                self.filtered(listing, filter, Some(&name)).await
            }
            Show::TableStatus { database, filter } => {
                let database = self.database_or_current(database)?;
                let listing = self.list_table_status(&database)?;
                self.filtered(listing, filter, None).await
            }
            Show::Columns {
                full,
                table,
                filter,
            } => {
                let listing = self.list_columns(&table, full).await?;
                self.filtered(listing, filter, None).await
            }
            Show::FileColumns(path) => {
                let listing = self.list_file_columns(&path).await?;
                self.filtered(listing, Filter::default(), None).await
            }
            Show::Index { table, condition } => {
                let listing = self.list_keys(&table)?;
                let filter = Filter {
                    like: None,
                    condition,
                };
                self.filtered(listing, filter, None).await
            }
            Show::Databases(filter) => {
                let name = filter
                    .like
                    .as_ref()
                    .map(|pattern| format!("Database ({pattern})"));
                let listing = self.list_databases();
                self.filtered(listing, filter, name.as_deref()).await
            }
            Show::Variables { scope, filter } => {
                let listing = self.list_variables(scope);
                self.filtered(listing, filter, None).await
            }
            Show::Status { scope, filter } => {
                self.connection.count(|status| status.shows += 1);
                let listing = self.list_status(scope);
                self.filtered(listing, filter, None).await
            }
            Show::CharacterSets(filter) => {
                self.filtered(server::character_sets(), filter, None).await
            }
            Show::Collations(filter) => self.filtered(server::collations(), filter, None).await,
            Show::Grants(account) => {
                let listing = self.show_grants(account.as_ref())?;
                let label = self.grants_label();
                self.filtered(listing, Filter::default(), Some(&label))
                    .await
            }
            other => {
                let listing = self.unfiltered(other)?;
                self.filtered(listing, Filter::default(), None).await
            }
        }
    }

    /// The answer of what has no filter, and looks at nothing but what is at hand.
    fn unfiltered(&self, show: Show) -> Result<Listing, MySqlError> {
        Ok(match show {
            Show::CreateTable(table) => self.show_create_table(&table)?,
            Show::CreateDatabase {
                name,
                if_not_exists,
            } => self.show_create_database(&name, if_not_exists)?,
            Show::CreateView(view) => self.show_create_view(&view)?,
            Show::CreateAbsent(kind, name) => self.show_create_absent(kind, &name)?,
            Show::Warnings {
                errors_only,
                offset,
                limit,
            } => self.list_warnings(errors_only, offset, limit),
            Show::WarningCount { errors_only } => self.count_warnings(errors_only),
            Show::Profiles => self.list_profiles(),
            Show::Profile(asked) => self.show_profile(&asked),
            Show::ProcessList => server::processes(self),
            Show::Engines => server::engines(),
            Show::EngineStatus(name) => administration::engine_status(&name)?,
            Show::Plugins => administration::plugins(),
            Show::Privileges => administration::privileges(),
            Show::BinaryLogs => return Err(MySqlError::new(ErrorCode::NoBinaryLogging, &[])),
            Show::Nothing(what) => nothing::nothing(what),
            // The others have filters.
            _ => return Err(MySqlError::new(ErrorCode::Unknown, &[])),
        })
    }

    fn database_or_current(&self, database: Option<String>) -> Result<String, MySqlError> {
        let current = self.current_database();
        let database = database
            .or(current)
            .ok_or_else(|| MySqlError::new(ErrorCode::NoDatabase, &[]))?;
        if !self.has_database(&database) {
            return Err(MySqlError::new(ErrorCode::UnknownDatabase, &[&database]));
        }
        Ok(database)
    }

    /// Applies LIKE to the first column, or WHERE to all of them.
    async fn filtered(
        &self,
        mut listing: Listing,
        filter: Filter,
        name: Option<&str>,
    ) -> Result<Outcome, MySqlError> {
        if let Some(pattern) = &filter.like {
            listing.retain(0, |text| is_like(text, pattern));
        }
        let batch = listing.batch(name)?;
        let Some(condition) = filter.condition else {
            return Ok(Outcome::ready(batch));
        };
        let columns = columns_of(batch.schema_ref(), None);
        let (statement, _) = parse::parse(&format!("SELECT * FROM '{LISTING}'"))?;
        let Statement::Query(mut query) = statement else {
            return Err(MySqlError::new(ErrorCode::Unknown, &[]));
        };
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.selection = Some(condition);
        }
        let batch = self.query_over(*query, LISTING, batch).await?;
        match Outcome::ready(batch) {
            Outcome::Rows { batches, .. } => Ok(Outcome::Rows { columns, batches }),
            other => Ok(other),
        }
    }
}
