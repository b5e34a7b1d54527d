//! What a client is told of the columns of tables that a result shows.

use std::sync::Arc;

use mayfly_sql::origin::Origin;
use mayfly_sql::statement::TableName;
use mayfly_table::{Definition, Key, KeyKind};

use super::Job;
use crate::outcome::{ColumnOrigin, KeyRole};

/// A table as a statement names it.
pub(super) struct Named<'a> {
    pub(super) database: &'a str,
    pub(super) table: &'a str,
    pub(super) alias: &'a str,
}

impl ColumnOrigin {
    /// The column at a place of a table.
    pub(super) fn of(definition: &Definition, place: usize, named: &Named<'_>) -> ColumnOrigin {
        let column = &definition.columns[place];
        let keys = &definition.keys;
        let is_in = |key: &Key| key.parts.iter().any(|part| part.column == place);
        let is_in_primary = keys
            .iter()
            .any(|key| key.kind == KeyKind::Primary && is_in(key));
        let is_unique_alone = |key: &Key| key.kind == KeyKind::Unique && key.parts.len() == 1;
        let mut leads = keys.iter().filter(|key| key.parts[0].column == place);
        let key = if is_in_primary {
            KeyRole::Primary
        } else if leads.clone().any(is_unique_alone) {
            KeyRole::Unique
        } else if leads.next().is_some() {
            KeyRole::Repeated
        } else {
            KeyRole::None
        };
        let is_given = column.default.is_some() || column.generated.is_some();
        ColumnOrigin {
            database: named.database.into(),
            table: named.table.into(),
            alias: named.alias.into(),
            column: column.name.as_str().into(),
            key,
            is_in_key: keys.iter().any(is_in),
            is_auto_increment: column.is_auto_increment,
            needs_value: !column.is_nullable && !is_given && !column.is_auto_increment,
            sets_itself: column.on_update.is_some(),
        }
    }
}

impl Job {
    /// Looks up what the tables say of their columns.
    pub(super) fn origins(&self, origins: &[Option<Origin>]) -> Vec<Option<Arc<ColumnOrigin>>> {
        let found = origins.iter().map(|origin| match origin {
            Some(origin) => self.looked_up(origin).map(Arc::new),
            None => None,
        });
        found.collect()
    }

    fn looked_up(&self, origin: &Origin) -> Option<ColumnOrigin> {
        if origin.is_derived {
            return Some(ColumnOrigin {
                table: origin.table.as_str().into(),
                alias: origin.alias.as_str().into(),
                column: origin.column.as_str().into(),
                ..ColumnOrigin::default()
            });
        }
        let name = TableName {
            database: origin.database.clone(),
            table: origin.table.clone(),
        };
        let database = self.database_of(&name).ok()?;
        let named = Named {
            database: &database,
            table: &origin.table,
            alias: &origin.alias,
        };
        let Ok(table) = self.table(&name) else {
            // A table of information_schema.
            return Some(ColumnOrigin {
                database: named.database.into(),
                table: named.table.into(),
                alias: named.alias.into(),
                column: origin.column.as_str().into(),
                ..ColumnOrigin::default()
            });
        };
        let definition = table.definition();
        let mut columns = definition.columns.iter();
        let place = columns.position(|column| column.name.to_lowercase() == origin.column)?;
        Some(ColumnOrigin::of(definition, place, &named))
    }
}
