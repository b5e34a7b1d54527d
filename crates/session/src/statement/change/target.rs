//! A table whose rows a statement changes, and what was done to it.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::UInt64Type;
use mayfly_sql::change::Mention;
use mayfly_sql::statement::TableName;
use mayfly_table::{Change, Table};

use crate::outcome::Outcome;

/// A table that a statement changes.
pub(crate) struct Target {
    pub(crate) mention: Mention,
    pub(crate) change: Change,
}

impl Target {
    /// A table that no query reads.
    pub(crate) fn unnamed(change: Change) -> Target {
        let name = TableName {
            database: None,
            table: change.table().name().to_owned(),
        };
        Target {
            mention: Mention::of(name),
            change,
        }
    }

    pub(super) fn table(&self) -> &Arc<Table> {
        self.change.table()
    }
}

/// What an UPDATE did.
#[derive(Default)]
pub(crate) struct Updated {
    pub(crate) matched: u64,
    pub(crate) changed: u64,
}

impl Updated {
    /// `said` is what LAST_INSERT_ID(expression) said.
    pub(super) fn outcome(self, counts_found: bool, said: Option<u64>) -> Outcome {
        let Updated { matched, changed } = self;
        Outcome::Done {
            affected_rows: if counts_found { matched } else { changed },
            last_insert_id: said.unwrap_or(0),
            warnings: 0,
            info: format!("Rows matched: {matched}  Changed: {changed}  Warnings: ?"),
        }
    }
}

/// The ids that are there: an outer join has rows without one.
pub(super) fn present(ids: &ArrayRef) -> UInt64Array {
    let ids = ids.as_primitive::<UInt64Type>();
    match ids.null_count() {
        0 => ids.clone(),
        _ => ids.iter().flatten().collect::<Vec<_>>().into(),
    }
}
