//! The columns of tables of FROM by name, as far as they can be told before these are planned.
//!
//! Those of a derived table and of a common table expression are what its select list shows: `*`
//! over tables whose columns are known, and an expression without an alias by its text.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{
    Cte, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr,
    TableAlias, TableFactor,
};

use super::super::relation::name_of;
use crate::bindings::{Bindings, BoundTable};
use crate::from_list;
use crate::inner_name::shown;
use crate::references::{file_path, table_name};
use crate::rewrite::labels::label;
use crate::rewrite::relation::{is_dual, table_as_select};
use crate::source::Source;

/// Names of columns in lower case; `None` where they are not known.
pub(crate) type Columns = Option<Vec<String>>;

/// A common table expression: its name and its columns.
pub(crate) type Named = (String, Columns);

/// What tells the columns of tables.
#[derive(Clone, Copy)]
pub(crate) struct Catalog<'a> {
    pub(crate) bindings: &'a Bindings,
    /// The texts of select lists.
    pub(crate) source: &'a Source,
}

impl<'a> Catalog<'a> {
    /// The database of a table, if it stands in one, and its columns; `None` for DUAL and for what
    /// goes by no name. `ctes` are those that it may be, the nearest last.
    pub(crate) fn table(
        self,
        factor: &TableFactor,
        ctes: &[Named],
    ) -> Option<(Option<String>, Columns)> {
        if is_dual(factor, self.bindings) {
            return None;
        }
        match factor {
            TableFactor::Derived {
                subquery,
                alias: Some(alias),
                ..
            } => Some((None, self.aliased(subquery, alias, ctes))),
            TableFactor::Table { name, .. } => {
                let (database, columns) = self.named(name, ctes)?;
                let columns = match columns {
                    Found::Columns(columns) => columns,
                    Found::Table(table) => Some(lowered(&table.columns)),
                };
                Some((database, columns))
            }
            _ => None,
        }
    }

    /// The columns of a common table expression.
    pub(crate) fn cte(self, cte: &Cte, ctes: &[Named]) -> Columns {
        self.aliased(&cte.query, &cte.alias, ctes)
    }

    /// The columns of a query under an alias that may name them.
    fn aliased(self, query: &Query, alias: &TableAlias, ctes: &[Named]) -> Columns {
        match alias.columns.as_slice() {
            [] => self.query(query, ctes),
            declared => Some(lowered(declared.iter().map(|column| &column.name.value))),
        }
    }

    fn query(self, query: &Query, ctes: &[Named]) -> Columns {
        let Some(with) = &query.with else {
            return self.body(&query.body, ctes);
        };
        let mut ctes = ctes.to_vec();
        for cte in &with.cte_tables {
            let columns = self.cte(cte, &ctes);
            ctes.push((cte.alias.name.value.clone(), columns));
        }
        self.body(&query.body, &ctes)
    }

    fn body(self, body: &SetExpr, ctes: &[Named]) -> Columns {
        match body {
            SetExpr::SetOperation { left, .. } => self.body(left, ctes),
            SetExpr::Query(query) => self.query(query, ctes),
            SetExpr::Select(select) => self.select(select, ctes),
            SetExpr::Values(values) => {
                let count = values.rows.first()?.content.len();
                Some((1..=count).map(|place| format!("column{place}")).collect())
            }
            body => {
                let select = table_as_select(body).ok()??;
                self.body(&select, ctes)
            }
        }
    }

    fn select(self, select: &Select, ctes: &[Named]) -> Columns {
        let texts = self.source.items(select.select_token.0.span.start);
        let are_whole = texts.len() == select.projection.len();
        let mut names = Vec::new();
        // Asked once, however many stars there are: those of nested queries would be asked as often
        // as the product of all stars says.
        let mut tables: Option<Vec<(String, Columns)>> = None;
        // A name is there or not: what several stars show counts once.
        let mut seen = HashSet::new();
        for (place, item) in select.projection.iter().enumerate() {
            let only = match item {
                SelectItem::Wildcard(_) => None,
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => Some(table_name(name)?.table),
                SelectItem::QualifiedWildcard(..) => return None,
                item => {
                    let text = are_whole.then(|| texts[place].as_str());
                    names.push(label(item, text).to_lowercase());
                    continue;
                }
            };
            let tables = match &tables {
                Some(tables) => tables,
                None => {
                    let mut asked = Vec::new();
                    for factor in from_list::tables(&select.from) {
                        asked.push((name_of(factor)?, self.starred(factor, ctes)));
                    }
                    tables.insert(asked)
                }
            };
            for (name, columns) in tables {
                if only.as_ref().is_none_or(|only| shown(name) == only) {
                    let columns = columns.as_ref()?.iter();
                    names.extend(columns.filter(|name| seen.insert((*name).clone())).cloned());
                }
            }
        }
        Some(names)
    }

    /// The columns that `*` shows of a table.
    fn starred(self, factor: &TableFactor, ctes: &[Named]) -> Columns {
        if let TableFactor::Table { name, .. } = factor
            && let Some((_, Found::Table(table))) = self.named(name, ctes)
        {
            let shown = table.columns.iter().filter(|column| table.shows(column));
            return Some(lowered(shown));
        }
        match self.table(factor, ctes) {
            Some((_, columns)) => columns,
            None if is_dual(factor, self.bindings) => Some(Vec::new()),
            None => None,
        }
    }

    fn named(self, name: &ObjectName, ctes: &[Named]) -> Option<(Option<String>, Found<'a>)> {
        let bound = |table: Option<&'a BoundTable>| match table {
            Some(table) => Found::Table(table),
            None => Found::Columns(None),
        };
        if let Some(path) = file_path(name) {
            return Some((None, bound(self.bindings.files.get(path))));
        }
        let table = table_name(name)?;
        if table.database.is_none()
            && let Some((_, columns)) = ctes.iter().rev().find(|(cte, _)| *cte == table.table)
        {
            return Some((None, Found::Columns(columns.clone())));
        }
        let database = table.database.or_else(|| self.bindings.database.clone());
        let found = self
            .bindings
            .table_or_file(database.as_deref(), &table.table);
        Some((database, bound(found)))
    }
}

/// What a name of a table means.
enum Found<'a> {
    /// A common table expression, or nothing that is known.
    Columns(Columns),
    Table(&'a BoundTable),
}

/// Names of columns as they are compared.
pub(super) fn lowered<'n>(names: impl IntoIterator<Item = &'n String>) -> Vec<String> {
    names.into_iter().map(|name| name.to_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::Catalog;
    use crate::bindings::Bindings;
    use crate::parse::parse;
    use crate::statement::Statement;

    /// Were a table asked once for each star, or its columns told as often, this would take 3^24
    /// steps.
    #[test]
    fn stars_of_nested_queries_do_not_double_the_work() {
        let mut query = "SELECT 1 AS c".to_owned();
        for level in 0..24 {
            query = format!("SELECT x.*, y.*, x.* FROM ({query}) x JOIN (SELECT 2 AS c{level}) y");
        }
        let (statement, source) = parse(&query).expect("a statement");
        let Statement::Query(query) = statement else {
            panic!("a query");
        };
        let catalog = Catalog {
            bindings: &Bindings::default(),
            source: &source,
        };
        let columns = catalog.query(&query, &[]).expect("columns that are known");
        assert_eq!(columns.len(), 25);
    }
}
