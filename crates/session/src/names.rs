//! Names for completion.

use std::collections::BTreeSet;

use mayfly_sql::functions::scalar_names;

use crate::connection::Connection;
use crate::variables;

const KEYWORDS: &[&str] = &[
    "ALL",
    "ANALYZE",
    "AND",
    "AS",
    "ASC",
    "BETWEEN",
    "BY",
    "CASE",
    "COLUMNS",
    "CREATE",
    "CROSS",
    "DATABASE",
    "DATABASES",
    "DESC",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXCEPT",
    "EXISTS",
    "EXPLAIN",
    "FIELDS",
    "FLUSH",
    "FROM",
    "GLOBAL",
    "GROUP",
    "HAVING",
    "IF",
    "IN",
    "INFILE",
    "INNER",
    "INSERT",
    "INTERSECT",
    "INTO",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "LINES",
    "LOAD DATA",
    "LOCAL",
    "NOT",
    "NULL",
    "ON",
    "OR",
    "ORDER",
    "OUTER",
    "OVER",
    "PARTITION",
    "REGEXP",
    "RIGHT",
    "ROLLUP",
    "SELECT",
    "SESSION",
    "SET",
    "SHOW",
    "STATUS",
    "TABLE",
    "TABLES",
    "TEMPORARY",
    "TERMINATED",
    "THEN",
    "TRUNCATE",
    "UNION",
    "USE",
    "USING",
    "VALUES",
    "VARIABLES",
    "VIEW",
    "WARNINGS",
    "WHEN",
    "WHERE",
    "WITH",
];

/// All names that a statement of this session could use, sorted.
pub(crate) fn all(connection: &Connection) -> Vec<String> {
    let mut names: BTreeSet<String> = KEYWORDS.iter().map(|word| (*word).to_owned()).collect();
    let dictionary = &connection.engine.shared().dictionary;
    let (database, temporary) = {
        let local = connection.local();
        (local.database.clone(), local.temporary.tables())
    };
    let mut tables: Vec<_> = temporary.into_iter().map(|(_, table)| table).collect();
    if let Some(database) = database {
        for view in dictionary.views(&database) {
            names.insert(view.name.clone());
            names.extend(view.columns.iter().cloned());
        }
        tables.extend(dictionary.tables(&database).unwrap_or_default());
    }
    for table in tables {
        names.insert(table.name().to_owned());
        names.extend(table.columns().iter().map(|column| column.name.clone()));
    }
    names.extend(dictionary.databases());
    if let Ok(state) = connection.state() {
        names.extend(scalar_names().map(str::to_owned));
        names.extend(state.aggregate_functions().keys().cloned());
        names.extend(state.window_functions().keys().cloned());
    }
    names.extend(
        variables::all()
            .iter()
            .map(|definition| format!("@@{}", definition.name)),
    );
    names.into_iter().collect()
}
