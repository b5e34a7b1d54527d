//! What the names and variables of a statement meant when something was made of it.

use std::sync::Arc;
use std::time::Duration;

use mayfly_sql::statement::TableName;
use mayfly_table::Table;
use tokio::sync::MutexGuard;

use super::Job;
use super::name_resolution::Meanings;
use crate::connection::Connection;
use crate::local::Local;
use crate::plan_owner::PlanOwner;

impl Meanings {
    /// The tables, if names and variables mean what they meant.
    pub(super) fn now(&self, local: &Local, connection: &Connection) -> Option<Vec<Arc<Table>>> {
        let is_same =
            self.variables == local.variables.version() && self.database == local.database;
        if !is_same {
            return None;
        }
        let shared = &connection.engine.shared().dictionary;
        let tables = self.tables.iter().map(|(name, table)| {
            let database = name.database.as_ref().or(local.database.as_ref())?;
            let now = local.temporary.resolve(shared, database, &name.table);
            let now = now.ok()?;
            std::ptr::eq(table.as_ptr(), Arc::as_ptr(&now)).then_some(now)
        });
        tables.collect()
    }
}

/// How long one waits for what others make: longer than most plans take, shorter than a user
/// notices.
const PATIENCE: Duration = Duration::from_millis(100);

/// The right to make something for all connections that are alike.
pub(super) struct Making<'a>(
    #[expect(dead_code, reason = "it is held")] Option<MutexGuard<'a, ()>>,
);

impl PlanOwner {
    /// Waits until nobody else makes something here, for a moment.
    pub(super) async fn begin_making(&self) -> Option<Making<'_>> {
        let making = tokio::time::timeout(PATIENCE, self.making.lock()).await;
        making.ok().map(|guard| Making(Some(guard)))
    }
}

/// Who plans a statement: its own connection, where it names a temporary table, or the one that
/// plans for all that are alike.
pub(super) struct Home {
    /// What it has at hand there.
    pub(super) job: Job,
    pub(super) owner: Option<Arc<PlanOwner>>,
}

impl Job {
    /// Who plans a statement over these tables.
    pub(super) fn home(&self, tables: &[Arc<Table>]) -> Home {
        let has_own = {
            let local = self.connection.local();
            tables.iter().any(|table| local.temporary.has(table))
        };
        let owner = match has_own {
            true => None,
            false => self.connection.plan_owner_or_new(),
        };
        let Some(owner) = owner else {
            return Home {
                job: self.clone(),
                owner: None,
            };
        };
        let connection = Arc::clone(&owner.connection);
        Home {
            job: Job {
                connection,
                ..self.clone()
            },
            owner: Some(owner),
        }
    }

    /// The tables of these names; `None` if one of them is none.
    pub(super) fn tables<'a>(
        &self,
        names: impl IntoIterator<Item = &'a TableName>,
    ) -> Option<Vec<Arc<Table>>> {
        let tables = names.into_iter().map(|name| self.table(name).ok());
        tables.collect()
    }

    /// What names mean now.
    pub(super) fn meanings<'a>(
        &self,
        names: impl IntoIterator<Item = &'a TableName>,
    ) -> Option<Meanings> {
        let tables = names.into_iter().map(|name| {
            let table = self.table(name).ok()?;
            Some((name.clone(), Arc::downgrade(&table)))
        });
        let tables = tables.collect::<Option<_>>()?;
        let local = self.connection.local();
        Some(Meanings {
            database: local.database.clone(),
            tables,
            variables: local.variables.version(),
        })
    }
}

impl Home {
    /// Whether somebody else makes something here.
    pub(super) fn is_making(&self) -> bool {
        let owner = self.owner.as_ref();
        owner.is_some_and(|owner| owner.making.try_lock().is_err())
    }

    /// Waits until nobody else makes something here; `None` where that takes too long. The guard is
    /// to be held while it is made.
    pub(super) async fn begin_making(&self) -> Option<Making<'_>> {
        match &self.owner {
            Some(owner) => owner.begin_making().await,
            None => Some(Making(None)),
        }
    }
}
