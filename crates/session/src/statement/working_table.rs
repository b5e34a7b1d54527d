//! A table that a statement changes part by part, though all of it happens or nothing.
//!
//! A shared table has a draft, which nobody else sees before the statement has ended well. A
//! temporary table has no other readers: it is changed as it is, and put back if the statement
//! fails.

use std::sync::Arc;

use mayfly_table::{Appender, Change, Draft, Saved, Table, publish_all};
use mayfly_types::MySqlError;

use crate::errors;

/// What a statement makes of a table. Dropping it undoes all of that.
pub(crate) enum WorkingTable {
    /// A temporary table of the session.
    Own(InPlace),
    /// A table of all sessions.
    Shared(Draft),
}

/// A table that is changed as it is, and its state before.
pub(crate) struct InPlace {
    table: Arc<Table>,
    before: Option<Saved>,
}

impl WorkingTable {
    /// Begins to change a table.
    pub(crate) fn begin(table: &Arc<Table>) -> Result<WorkingTable, MySqlError> {
        Ok(match table.turns() {
            None => WorkingTable::Own(InPlace {
                table: Arc::clone(table),
                before: Some(table.save().map_err(failed)?),
            }),
            Some(_) => WorkingTable::Shared(table.draft().map_err(failed)?),
        })
    }

    /// The table as the statement has made it so far.
    pub(crate) fn table(&self) -> &Arc<Table> {
        match self {
            WorkingTable::Own(own) => &own.table,
            WorkingTable::Shared(draft) => draft.table(),
        }
    }

    /// Takes a change of the table as it was when the work on it began.
    pub(crate) fn change(&self, change: Change) -> Result<(), MySqlError> {
        match self {
            WorkingTable::Own(_) => change.commit(),
            WorkingTable::Shared(draft) => change.commit_to(draft),
        }
        .map_err(failed)
    }

    /// Takes rows that were to be added to the table as it was when the work on it began.
    pub(crate) fn append(&self, rows: Appender) -> Result<u64, MySqlError> {
        match self {
            WorkingTable::Own(_) => rows.commit(),
            WorkingTable::Shared(draft) => rows.commit_to(draft),
        }
        .map_err(failed)
    }

    /// Makes tables what the statement has made of them, all of them or none.
    pub(crate) fn finish_all(
        tables: impl IntoIterator<Item = WorkingTable>,
    ) -> Result<(), MySqlError> {
        let mut own = Vec::new();
        let mut drafts = Vec::new();
        for table in tables {
            match table {
                WorkingTable::Own(in_place) => own.push(in_place),
                WorkingTable::Shared(draft) => drafts.push(draft),
            }
        }
        publish_all(drafts).map_err(failed)?;
        own.iter_mut().for_each(|own| own.before = None);
        Ok(())
    }

    /// Makes the table what the statement has made it.
    pub(crate) fn finish(self) -> Result<(), MySqlError> {
        WorkingTable::finish_all([self])
    }
}

impl Drop for InPlace {
    /// Puts the table back unless its statement has ended well.
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            before.restore();
        }
    }
}

fn failed(error: mayfly_table::Error) -> MySqlError {
    errors::from_table(&error)
}
