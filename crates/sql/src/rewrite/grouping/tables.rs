//! The tables of a FROM list and their columns.

use std::collections::HashMap;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::sql::sqlparser::ast::{Expr, Select, TableFactor};

use super::context::GroupingContext;
use crate::bindings::BoundTable;
use crate::from_list;
use crate::references::table_name;
use crate::rewrite::relation::base_table;

/// A column of FROM: the number of its table, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) table: usize,
    pub(super) column: usize,
}

/// A table of a FROM list.
pub(super) struct Table<'a> {
    /// What it is called there; nothing if that cannot be told.
    pub(super) alias: Option<String>,
    /// What is known of it; `None` if it is no base table.
    pub(super) bound: Option<&'a BoundTable>,
    /// The numbers of its columns by their names in lower case.
    pub(super) columns: HashMap<String, usize>,
}

impl<'a> Table<'a> {
    pub(super) fn of(alias: Option<String>, bound: Option<&'a BoundTable>) -> Table<'a> {
        let names = bound.iter().flat_map(|bound| &bound.columns).enumerate();
        Table {
            columns: names
                .map(|(number, name)| (name.to_lowercase(), number))
                .collect(),
            alias,
            bound,
        }
    }
}

/// The tables of a FROM list, from left to right.
pub(super) struct Tables<'a>(pub(super) Vec<Table<'a>>);

impl<'a> Tables<'a> {
    /// The tables of the FROM list of a select.
    pub(super) fn of(select: &Select, context: &GroupingContext<'a>) -> Tables<'a> {
        let tables = from_list::tables(&select.from).into_iter().map(|factor| {
            // The table of a common table expression may have the name of another.
            let is_common = match factor {
                TableFactor::Table { name, .. } => table_name(name).is_some_and(|name| {
                    name.database.is_none() && context.ctes.iter().any(|cte| cte.name == name.table)
                }),
                _ => false,
            };
            match base_table(factor, context.bindings).filter(|_| !is_common) {
                Some((alias, _, _, bound)) => Table::of(Some(alias), Some(bound)),
                None => Table::of(from_list::alias(factor), None),
            }
        });
        Tables(tables.collect())
    }

    pub(super) fn all(&self) -> &[Table<'a>] {
        &self.0
    }

    /// Which column an expression is; `None` if it is none or several, or if that cannot be told.
    pub(super) fn find(&self, expr: &Expr) -> Option<Place> {
        match expr {
            Expr::Nested(inner) => self.find(inner),
            Expr::Identifier(ident) => {
                if self.0.iter().any(|table| table.bound.is_none()) {
                    return None;
                }
                let mut places =
                    (0..self.0.len()).filter_map(|table| self.column(table, &ident.value));
                places.next().filter(|_| places.next().is_none())
            }
            Expr::CompoundIdentifier(parts) => {
                let [.., table, column] = parts.as_slice() else {
                    return None;
                };
                let is_meant =
                    |number: &usize| self.0[*number].alias.as_ref() == Some(&table.value);
                let mut tables = (0..self.0.len()).filter(is_meant);
                let number = tables.next().filter(|_| tables.next().is_none())?;
                self.column(number, &column.value)
            }
            _ => None,
        }
    }

    /// Whether none has a column of a name, which cannot be told of those that are no base tables.
    pub(super) fn lack(&self, name: &str) -> bool {
        let mut tables = self.0.iter();
        tables.all(|table| table.bound.is_some() && !table.columns.contains_key(name))
    }

    /// Whether a column is of none of the tables: it is one of an outer query, or of no table.
    pub(super) fn are_without(&self, column: &Expr) -> bool {
        match column {
            Expr::Identifier(ident) => self.lack(&ident.value),
            Expr::CompoundIdentifier(parts) => {
                let [table, _] = parts.as_slice() else {
                    return false;
                };
                let mut aliases = self.0.iter().map(|table| table.alias.as_ref());
                aliases.all(|alias| {
                    alias.is_some_and(|alias| !alias.eq_ignore_ascii_case(&table.value))
                })
            }
            _ => false,
        }
    }

    pub(super) fn column(&self, table: usize, name: &str) -> Option<Place> {
        let column = *self.0[table].columns.get(name)?;
        Some(Place { table, column })
    }

    /// The field of a column.
    pub(super) fn field(&self, place: Place) -> Option<FieldRef> {
        // A view has no types before it is planned.
        let bound = self.0[place.table]
            .bound
            .filter(|bound| bound.view.is_none())?;
        let schema = bound.provider.schema();
        schema.fields().get(place.column).cloned()
    }
}
