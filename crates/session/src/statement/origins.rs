//! What a client is told of the columns of tables that a result shows.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use mayfly_sql::origin::Origin;
use mayfly_table::{Definition, Key, KeyKind};
use mayfly_types::ColumnType;

use super::Job;
use crate::outcome::{ColumnInfo, ColumnOrigin, KeyRole, columns_of};

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
        let names = ColumnOrigin::with_names(named, &column.name);
        let is_given = column.default.is_some() || column.generated.is_some();
        ColumnOrigin {
            key,
            is_in_key: keys.iter().any(is_in),
            is_auto_increment: column.is_auto_increment,
            needs_value: !column.is_nullable && !is_given && !column.is_auto_increment,
            sets_itself: column.on_update.is_some(),
            ..names
        }
    }

    /// A column of which no more than its names is known.
    fn with_names(named: &Named<'_>, column: &str) -> ColumnOrigin {
        ColumnOrigin {
            database: named.database.into(),
            table: named.table.into(),
            alias: named.alias.into(),
            column: column.into(),
            ..ColumnOrigin::default()
        }
    }
}

impl Job {
    /// Describes the columns of a query, with what the tables say of those that they are from.
    pub(super) fn described(
        &self,
        schema: &Schema,
        labels: &[String],
        origins: &[Option<Origin>],
    ) -> Vec<ColumnInfo> {
        let mut columns = columns_of(schema, Some(labels));
        let fields = schema.fields().iter();
        for ((column, origin), field) in columns.iter_mut().zip(origins).zip(fields) {
            let found = origin.as_ref().and_then(|origin| self.looked_up(origin));
            column.origin = found.map(Arc::new);
            // A comparison. Drivers take TINYINT(1) for a declared BOOLEAN and make a type of their
            // language of it.
            if column.origin.is_none() && *field.data_type() == DataType::Boolean {
                column.column_type = ColumnType::BigInt { unsigned: false };
            }
        }
        columns
    }

    fn looked_up(&self, origin: &Origin) -> Option<ColumnOrigin> {
        let named_in = |database| Named {
            database,
            table: &origin.table,
            alias: &origin.alias,
        };
        let Some(name) = origin.table_name() else {
            return Some(ColumnOrigin::with_names(&named_in(""), &origin.column));
        };
        let database = self.database_of(&name).ok()?;
        let named = named_in(&database);
        let Ok(table) = self.table(&name) else {
            // A table of information_schema.
            return Some(ColumnOrigin::with_names(&named, &origin.column));
        };
        let definition = table.definition();
        let place = definition.column(&origin.column)?;
        Some(ColumnOrigin::of(definition, place, &named))
    }
}
