//! Columns that have one value in each group, since a key of their table is grouped.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{Expr, Select};

use super::columns::relations;
use crate::bindings::Bindings;

/// The tables of a FROM list, and which of them are determined.
#[derive(Default)]
pub(super) struct Determined {
    tables: Vec<Table>,
}

struct Table {
    alias: String,
    /// In lower case.
    columns: HashSet<String>,
    is_determined: bool,
}

impl Determined {
    /// The tables of which a unique key is among the texts of what is grouped. Those have no
    /// qualifiers, so a name that several tables have counts for none.
    pub(super) fn of(select: &Select, bindings: &Bindings, keys: &HashSet<String>) -> Determined {
        let relations = relations(select, bindings).unwrap_or_default();
        if relations.iter().all(|(.., bound)| bound.unique.is_empty()) {
            return Determined::default();
        }
        let mut tables: Vec<Table> = Vec::with_capacity(relations.len());
        for (alias, _, _, bound) in &relations {
            let columns = bound.columns.iter().map(|column| column.to_lowercase());
            tables.push(Table {
                alias: alias.clone(),
                columns: columns.collect(),
                is_determined: false,
            });
        }
        for (index, (.., bound)) in relations.iter().enumerate() {
            let is_grouped = |column: &String| {
                let named = tables.iter().filter(|table| table.columns.contains(column));
                named.count() == 1 && keys.contains(&format!("`{column}`"))
            };
            let determined = bound.unique.iter().any(|key| key.iter().all(is_grouped));
            tables[index].is_determined = determined;
        }
        Determined { tables }
    }

    /// Whether there is no such table.
    pub(super) fn is_empty(&self) -> bool {
        !self.tables.iter().any(|table| table.is_determined)
    }

    /// Whether a column has one value in each group.
    pub(super) fn has(&self, column: &Expr) -> bool {
        let mut tables = self.tables.iter();
        match column {
            Expr::Identifier(ident) => {
                let mut named = tables.filter(|table| table.columns.contains(&ident.value));
                let first = named.next();
                named.next().is_none() && first.is_some_and(|table| table.is_determined)
            }
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [.., table, _] => {
                    tables.any(|found| found.is_determined && found.alias == table.value)
                }
                _ => false,
            },
            _ => false,
        }
    }
}
