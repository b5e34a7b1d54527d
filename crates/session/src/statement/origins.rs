//! What a client is told of the columns of tables that a result shows.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use mayfly_sql::origin::{Origin, Origins};
use mayfly_sql::stored::Stored;
use mayfly_table::{Definition, Key, KeyKind};
use mayfly_types::ColumnType;

use super::Job;
use crate::column_info::{ColumnInfo, ColumnOrigin, KeyRole, columns_of};

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
        origins: &Origins,
    ) -> Vec<ColumnInfo> {
        let mut columns = columns_of(schema, Some(labels));
        let fields = schema.fields().iter();
        let described = columns.iter_mut().zip(origins.iter()).zip(fields);
        for (place, ((column, origin), field)) in described.enumerate() {
            let found = origin.as_ref().and_then(|origin| self.looked_up(origin));
            column.origin = found.map(Arc::new);
            // A comparison. Drivers take TINYINT(1) for a declared BOOLEAN and make a type of their
            // language of it.
            if column.origin.is_none() && *field.data_type() == DataType::Boolean {
                column.column_type = ColumnType::BigInt { unsigned: false };
            }
            if let Some(computed) = origins.computed(place) {
                match origin.as_ref().is_some_and(|origin| origin.is_of_group) {
                    true => column.nullable &= computed.nullable,
                    false => tell(column, computed),
                }
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
            let database = origin.database.as_deref().unwrap_or_default();
            return Some(ColumnOrigin::with_names(
                &named_in(database),
                &origin.column,
            ));
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

/// Describes a column that is computed as MySQL does: a text by its length, an exact number by its
/// digits, and whether it can be NULL. Other numbers keep the type of their values.
fn tell(column: &mut ColumnInfo, computed: &Stored) {
    if column.column_type == ColumnType::Null {
        return;
    }
    column.nullable &= computed.nullable;
    let is_text = |of: &ColumnType| {
        matches!(
            of,
            ColumnType::Char { .. } | ColumnType::VarChar { .. } | ColumnType::Text(_)
        )
    };
    let is_bytes = |of: &ColumnType| {
        matches!(
            of,
            ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob(_)
        )
    };
    let (told, found) = (&column.column_type, &computed.column_type);
    let is_exact = |of: &ColumnType| match of {
        ColumnType::Decimal { scale, .. } => Some(*scale),
        _ => None,
    };
    let same_scale = is_exact(told).is_some() && is_exact(told) == is_exact(found);
    if same_scale || is_text(told) && is_text(found) || is_bytes(told) && is_bytes(found) {
        column.column_type = match *found {
            // An empty constant.
            ColumnType::Char { length: 0 } => ColumnType::VarChar { length: 0 },
            ColumnType::Binary { length: 0 } => ColumnType::VarBinary { length: 0 },
            ref other => other.clone(),
        };
    }
}
