//! The 22 queries of TPC-H with the parameters of its validation.
//!
//! Owns: their texts, which lie in `bench/tpch`, and which of their columns are rounded. One
//! text serves all systems: it is MySQL's, and DuckDB and DataFusion read it too. `{NAME}` is a
//! table; `{n1}` and `{n2}` are nation, `{l1}` to `{l3}` lineitem, under these names.
//!
//! Where the specification asks for the first rows only, the text has its LIMIT. Query 15 is its
//! variant with WITH, as a view would outlive the statement.

use crate::data::Named;

/// One query.
pub(crate) struct Query {
    pub(crate) number: u32,
    text: &'static str,
    /// Columns that are averages or quotients: decimals in MySQL, doubles elsewhere.
    pub(crate) rounded: &'static [usize],
}

macro_rules! query {
    ($number:literal, $file:literal, $rounded:expr) => {
        Query {
            number: $number,
            text: include_str!(concat!("../../../tpch/", $file)),
            rounded: &$rounded,
        }
    };
}

pub(crate) const QUERIES: [Query; 22] = [
    query!(1, "q01.sql", [6, 7, 8]),
    query!(2, "q02.sql", []),
    query!(3, "q03.sql", []),
    query!(4, "q04.sql", []),
    query!(5, "q05.sql", []),
    query!(6, "q06.sql", []),
    query!(7, "q07.sql", []),
    query!(8, "q08.sql", [1]),
    query!(9, "q09.sql", []),
    query!(10, "q10.sql", []),
    query!(11, "q11.sql", []),
    query!(12, "q12.sql", []),
    query!(13, "q13.sql", []),
    query!(14, "q14.sql", [0]),
    query!(15, "q15.sql", []),
    query!(16, "q16.sql", []),
    query!(17, "q17.sql", [0]),
    query!(18, "q18.sql", []),
    query!(19, "q19.sql", []),
    query!(20, "q20.sql", []),
    query!(21, "q21.sql", []),
    query!(22, "q22.sql", []),
];

/// Tables that a query names twice, under the names that it uses.
const ALIASES: [(&str, &str); 5] = [
    ("n1", "nation"),
    ("n2", "nation"),
    ("l1", "lineitem"),
    ("l2", "lineitem"),
    ("l3", "lineitem"),
];

impl Query {
    /// The text at a scale factor; the fraction of query 11 depends on it.
    pub(crate) fn statement(&self, scale: f64) -> String {
        let fraction = format!("{:.10}", 0.0001 / scale);
        self.text.trim_end().replace("{fraction}", &fraction)
    }

    /// The tables that it names, out of the eight.
    pub(crate) fn tables(&self, database: &[Named]) -> Vec<Named> {
        let aliased = ALIASES.iter().filter_map(|(alias, name)| {
            let table = database.iter().find(|table| table.name == *name)?;
            Some(Named::new(alias, &table.dataset))
        });
        let names = database.iter().cloned().chain(aliased);
        names.filter(|table| self.names(&table.name)).collect()
    }

    fn names(&self, table: &str) -> bool {
        self.text.contains(&format!("{{{table}}}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the specification has in the FROM of each query.
    const TABLES: [&[&str]; 22] = [
        &["lineitem"],
        &["nation", "part", "partsupp", "region", "supplier"],
        &["customer", "lineitem", "orders"],
        &["lineitem", "orders"],
        &[
            "customer", "lineitem", "nation", "orders", "region", "supplier",
        ],
        &["lineitem"],
        &["customer", "lineitem", "n1", "n2", "orders", "supplier"],
        &[
            "customer", "lineitem", "n1", "n2", "orders", "part", "region", "supplier",
        ],
        &[
            "lineitem", "nation", "orders", "part", "partsupp", "supplier",
        ],
        &["customer", "lineitem", "nation", "orders"],
        &["nation", "partsupp", "supplier"],
        &["lineitem", "orders"],
        &["customer", "orders"],
        &["lineitem", "part"],
        &["lineitem", "supplier"],
        &["part", "partsupp", "supplier"],
        &["lineitem", "part"],
        &["customer", "lineitem", "orders"],
        &["lineitem", "part"],
        &["lineitem", "nation", "part", "partsupp", "supplier"],
        &["l1", "l2", "l3", "nation", "orders", "supplier"],
        &["customer", "orders"],
    ];

    #[test]
    fn all_22_are_there_and_name_their_tables() {
        for (index, (query, tables)) in QUERIES.iter().zip(TABLES).enumerate() {
            assert_eq!(query.number as usize, index + 1);
            let mut named: Vec<&str> = (query.text.split('{').skip(1))
                .filter_map(|rest| Some(rest.split_once('}')?.0))
                .filter(|name| *name != "fraction")
                .collect();
            named.sort_unstable();
            named.dedup();
            assert_eq!(named, tables, "query {}", query.number);
            let statement = query.statement(1.0);
            assert!(statement.starts_with("SELECT") || query.number == 15);
            assert!(!statement.contains(';') && !statement.contains("{fraction}"));
        }
    }

    #[test]
    fn the_fraction_of_query_11_falls_with_the_scale() {
        assert!(QUERIES[10].statement(1.0).contains("* 0.0001000000"));
        assert!(QUERIES[10].statement(10.0).contains("* 0.0000100000"));
    }
}
