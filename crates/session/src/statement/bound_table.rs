//! Tables as statements name them.

use std::sync::Arc;

use mayfly_exec::TableSource;
use mayfly_sql::bindings::BoundTable;
use mayfly_table::Table;
use mayfly_types::MySqlError;

use crate::lowered;

/// A table as a statement names it.
pub(super) fn bind_table(table: Arc<Table>) -> Result<BoundTable, MySqlError> {
    let unique = unique_columns(&table);
    let invisible = invisible_columns(&table);
    let bound = lowered::bind(Arc::new(TableSource::new(table)))?;
    Ok(BoundTable {
        unique,
        invisible,
        ..bound
    })
}

/// The columns of each key that tells rows apart.
fn unique_columns(table: &Table) -> Vec<Vec<String>> {
    let definition = table.definition();
    let keys = definition.keys.iter();
    let keys = keys.filter(|key| definition.identifies(key));
    let names = keys.map(|key| {
        let parts = key.parts.iter();
        parts
            .map(|part| definition.columns[part.column].name.to_lowercase())
            .collect()
    });
    names.collect()
}

/// The columns that `*` leaves out.
pub(super) fn invisible_columns(table: &Table) -> Vec<String> {
    let columns = table.columns().iter().filter(|column| column.is_invisible);
    columns.map(|column| column.name.to_lowercase()).collect()
}
