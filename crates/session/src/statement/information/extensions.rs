//! The tables of attributes of engines and options, of which nothing has any.

use super::super::Job;
use super::{columns, constraints, tables};
use crate::listing::Listing;

/// COLUMNS_EXTENSIONS.
pub(super) fn columns(job: &Job) -> Listing {
    columns::columns(job).renamed(&[
        ("TABLE_CATALOG", "TABLE_CATALOG"),
        ("TABLE_SCHEMA", "TABLE_SCHEMA"),
        ("TABLE_NAME", "TABLE_NAME"),
        ("COLUMN_NAME", "COLUMN_NAME"),
        ("ENGINE_ATTRIBUTE", ""),
        ("SECONDARY_ENGINE_ATTRIBUTE", ""),
    ])
}

/// SCHEMATA_EXTENSIONS.
pub(super) fn schemata(job: &Job) -> Listing {
    tables::schemata(job).renamed(&[
        ("CATALOG_NAME", "CATALOG_NAME"),
        ("SCHEMA_NAME", "SCHEMA_NAME"),
        ("OPTIONS", ""),
    ])
}

/// TABLES_EXTENSIONS.
pub(super) fn tables(job: &Job) -> Listing {
    tables::tables(job).renamed(&[
        ("TABLE_CATALOG", "TABLE_CATALOG"),
        ("TABLE_SCHEMA", "TABLE_SCHEMA"),
        ("TABLE_NAME", "TABLE_NAME"),
        ("ENGINE_ATTRIBUTE", ""),
        ("SECONDARY_ENGINE_ATTRIBUTE", ""),
    ])
}

/// TABLE_CONSTRAINTS_EXTENSIONS.
pub(super) fn constraints(job: &Job) -> Listing {
    constraints::table_constraints(job).renamed(&[
        ("CONSTRAINT_CATALOG", "CONSTRAINT_CATALOG"),
        ("CONSTRAINT_SCHEMA", "CONSTRAINT_SCHEMA"),
        ("CONSTRAINT_NAME", "CONSTRAINT_NAME"),
        ("TABLE_NAME", "TABLE_NAME"),
        ("ENGINE_ATTRIBUTE", ""),
        ("SECONDARY_ENGINE_ATTRIBUTE", ""),
    ])
}
