//! STATISTICS, KEY_COLUMN_USAGE, TABLE_CONSTRAINTS and CHECK_CONSTRAINTS.

use mayfly_table::KeyKind;

use super::super::Job;
use super::super::show::keys::parts;
use super::system::CATALOG;
use crate::listing::{Listing, some};

pub(super) fn statistics(job: &Job) -> Listing {
    let mut listing = Listing::new(&[
        "TABLE_CATALOG",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "NON_UNIQUE",
        "INDEX_SCHEMA",
        "INDEX_NAME",
        "SEQ_IN_INDEX",
        "COLUMN_NAME",
        "COLLATION",
        "CARDINALITY",
        "SUB_PART",
        "PACKED",
        "NULLABLE",
        "INDEX_TYPE",
        "COMMENT",
        "INDEX_COMMENT",
        "IS_VISIBLE",
        "EXPRESSION",
    ])
    .with_numbers(&["NON_UNIQUE", "SEQ_IN_INDEX", "CARDINALITY", "SUB_PART"]);
    for (database, table, _) in job.all_tables() {
        for part in parts(&table) {
            let mut row = vec![some(CATALOG), some(&database), some(table.name())];
            row.extend([part.non_unique(), some(&database)]);
            row.extend(part.row());
            listing.push(row);
        }
    }
    listing
}

pub(super) fn key_column_usage(job: &Job) -> Listing {
    let mut listing = Listing::new(&[
        "CONSTRAINT_CATALOG",
        "CONSTRAINT_SCHEMA",
        "CONSTRAINT_NAME",
        "TABLE_CATALOG",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "COLUMN_NAME",
        "ORDINAL_POSITION",
        "POSITION_IN_UNIQUE_CONSTRAINT",
        "REFERENCED_TABLE_SCHEMA",
        "REFERENCED_TABLE_NAME",
        "REFERENCED_COLUMN_NAME",
    ])
    .with_numbers(&["ORDINAL_POSITION", "POSITION_IN_UNIQUE_CONSTRAINT"]);
    for (database, table, _) in job.all_tables() {
        for part in parts(&table).filter(|part| part.key.is_unique()) {
            let mut row = vec![some(CATALOG), some(&database), some(&part.key.name)];
            row.extend([some(CATALOG), some(&database), some(table.name())]);
            row.extend([some(part.column), some(part.sequence)]);
            row.extend([None, None, None, None]);
            listing.push(row);
        }
    }
    listing
}

pub(super) fn table_constraints(job: &Job) -> Listing {
    let mut listing = Listing::new(&[
        "CONSTRAINT_CATALOG",
        "CONSTRAINT_SCHEMA",
        "CONSTRAINT_NAME",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "CONSTRAINT_TYPE",
        "ENFORCED",
    ]);
    for (database, table, _) in job.all_tables() {
        let definition = table.definition();
        let keys = definition.keys.iter().filter_map(|key| match key.kind {
            KeyKind::Primary => Some((&key.name, "PRIMARY KEY", true)),
            KeyKind::Unique => Some((&key.name, "UNIQUE", true)),
            KeyKind::Plain => None,
        });
        let checks = definition.checks.iter();
        let checks = checks.map(|check| (&check.name, "CHECK", check.is_enforced));
        for (name, kind, is_enforced) in keys.chain(checks) {
            listing.push(vec![
                some(CATALOG),
                some(&database),
                some(name),
                some(&database),
                some(table.name()),
                some(kind),
                some(if is_enforced { "YES" } else { "NO" }),
            ]);
        }
    }
    listing
}

pub(super) fn check_constraints(job: &Job) -> Listing {
    let mut listing = Listing::new(&[
        "CONSTRAINT_CATALOG",
        "CONSTRAINT_SCHEMA",
        "CONSTRAINT_NAME",
        "CHECK_CLAUSE",
    ]);
    for (database, table, _) in job.all_tables() {
        for check in &table.definition().checks {
            listing.push(vec![
                some(CATALOG),
                some(&database),
                some(&check.name),
                some(&check.expression),
            ]);
        }
    }
    listing
}
