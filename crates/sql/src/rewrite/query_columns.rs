//! What the columns of queries and tables are called, as far as that is known before planning.

use std::cell::OnceCell;

use datafusion::sql::sqlparser::ast::{
    Cte, Ident, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, TableAlias, TableFactor,
};

use super::ctes::Named;
use super::labels::label;
use super::merged::{is_merged, is_merged_view, is_view};
use super::relation::{base_table, name_of};
use crate::bindings::Bindings;
use crate::from_list;
use crate::select_list::{column, is_wildcard};
use crate::source::Source;

/// Tells the columns of queries and tables, as far as they are known.
#[derive(Clone, Copy)]
pub(super) struct Columns<'a> {
    pub(super) source: &'a Source,
    pub(super) bindings: &'a Bindings,
    /// Common table expressions that can be named; the nearest last.
    pub(super) ctes: &'a [Named],
}

impl<'a> Columns<'a> {
    /// The labels of a query's columns, without those of wildcards over tables that are not known.
    pub(super) fn of_query(self, query: &Query) -> Vec<String> {
        let Some(with) = &query.with else {
            return self.of_body(&query.body);
        };
        let mut ctes = self.ctes.to_vec();
        for cte in &with.cte_tables {
            let within = Columns {
                ctes: &ctes,
                ..self
            };
            let named = within.of_cte(cte);
            ctes.push(named);
        }
        let within = Columns {
            ctes: &ctes,
            ..self
        };
        within.of_body(&query.body)
    }

    /// What is known of a common table expression.
    pub(super) fn of_cte(self, cte: &Cte) -> Named {
        Named {
            name: cte.alias.name.value.clone(),
            columns: self.aliased(&cte.query, &cte.alias),
            is_whole: self.tells_all(&cte.query, &cte.alias),
            is_merged: is_merged(&cte.query, self.bindings),
        }
    }

    /// The columns of a query under an alias that may name them.
    pub(super) fn aliased(self, query: &Query, alias: &TableAlias) -> Vec<String> {
        match alias.columns.as_slice() {
            [] => self.of_query(query),
            columns => columns.iter().map(|c| c.name.value.clone()).collect(),
        }
    }

    /// As [`Columns::of_query`], of what a query is made of.
    pub(super) fn of_body(self, body: &SetExpr) -> Vec<String> {
        let select = match body {
            SetExpr::Select(select) => select,
            SetExpr::SetOperation { left, .. } => return self.of_body(left),
            SetExpr::Query(query) => return self.of_query(query),
            _ => return Vec::new(),
        };
        let texts = self.source.items(select.select_token.0.span.start);
        let whole = texts.len() == select.projection.len();
        let mut labels = Vec::new();
        let tables = self.tables(select);
        for (index, item) in select.projection.iter().enumerate() {
            let only = match item {
                SelectItem::Wildcard(_) => None,
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(name),
                    _,
                ) => name.0.last().and_then(|part| part.as_ident()),
                item if is_wildcard(item) => continue,
                item => {
                    let text = whole.then(|| texts[index].as_str());
                    let merged = merged_label(item, &tables);
                    labels.push(merged.unwrap_or_else(|| label(item, text)));
                    continue;
                }
            };
            for table in &tables {
                if only.is_none_or(|only| table.goes_by(only)) {
                    labels.extend_from_slice(table.columns());
                }
            }
        }
        labels
    }

    /// The labels of items that name columns of tables which are merged into the select.
    pub(super) fn merged_labels(self, select: &Select) -> Vec<Option<String>> {
        let tables = self.tables(select);
        let items = select.projection.iter();
        items.map(|item| merged_label(item, &tables)).collect()
    }

    /// The tables of FROM.
    fn tables<'t>(self, select: &'t Select) -> Vec<Shown<'t>>
    where
        'a: 't,
    {
        let tables = from_list::tables(&select.from).into_iter();
        let shown = tables.map(|table| Shown {
            table,
            is_merged: match table {
                TableFactor::Derived { subquery, .. } => is_merged(subquery, self.bindings),
                table => match self.cte(table) {
                    Some(cte) => cte.is_merged,
                    None => is_view(table, self.bindings) || is_merged_view(table, self.bindings),
                },
            },
            within: self,
            columns: OnceCell::new(),
        });
        shown.collect()
    }

    /// The columns that `*` shows of a table.
    pub(super) fn of_table(self, table: &TableFactor) -> Vec<String> {
        if let TableFactor::Derived {
            alias: Some(alias),
            subquery,
            ..
        } = table
        {
            return self.aliased(subquery, alias);
        }
        if let Some(cte) = self.cte(table) {
            return cte.columns.clone();
        }
        match base_table(table, self.bindings) {
            Some((.., bound)) => {
                let shown = bound.columns.iter().filter(|column| bound.shows(column));
                shown.cloned().collect()
            }
            None => Vec::new(),
        }
    }

    /// Whether [`Columns::of_table`] tells all columns that `*` shows of a table.
    pub(super) fn tells_all_of_table(self, table: &TableFactor) -> bool {
        match (table, self.cte(table)) {
            (
                TableFactor::Derived {
                    alias: Some(alias),
                    subquery,
                    ..
                },
                _,
            ) => self.tells_all(subquery, alias),
            (_, Some(cte)) => cte.is_whole,
            (table, None) => base_table(table, self.bindings).is_some(),
        }
    }

    /// Whether [`Columns::aliased`] tells all columns of a query.
    fn tells_all(self, query: &Query, alias: &TableAlias) -> bool {
        !alias.columns.is_empty() || (query.with.is_none() && self.tells_all_of(&query.body))
    }

    fn tells_all_of(self, body: &SetExpr) -> bool {
        let select = match body {
            SetExpr::Select(select) => select,
            SetExpr::SetOperation { left, .. } => return self.tells_all_of(left),
            SetExpr::Query(query) => {
                return query.with.is_none() && self.tells_all_of(&query.body);
            }
            _ => return false,
        };
        // Of tables that are joined by name `*` shows the common columns once.
        let mut joins = from_list::joins(&select.from).into_iter();
        let mut tables = from_list::tables(&select.from).into_iter();
        !select.projection.iter().any(is_wildcard)
            || (!joins.any(from_list::is_by_name)
                && tables.all(|table| self.tells_all_of_table(table)))
    }

    /// The common table expression that a table is.
    pub(super) fn cte(self, table: &TableFactor) -> Option<&'a Named> {
        let TableFactor::Table { name, .. } = table else {
            return None;
        };
        let [ObjectNamePart::Identifier(name)] = name.0.as_slice() else {
            return None;
        };
        self.ctes.iter().rev().find(|cte| cte.name == name.value)
    }
}

/// A table of FROM as labels see it.
struct Shown<'a> {
    table: &'a TableFactor,
    is_merged: bool,
    within: Columns<'a>,
    /// Looked up once, however many items ask: each look-up goes through all derived tables inside,
    /// and two at each level would be 2^n for n levels.
    columns: OnceCell<Vec<String>>,
}

impl Shown<'_> {
    fn columns(&self) -> &[String] {
        self.columns
            .get_or_init(|| self.within.of_table(self.table))
    }

    fn goes_by(&self, name: &Ident) -> bool {
        name_of(self.table).is_some_and(|called| called == name.value)
    }
}

/// What an item is called that names a column of a table which is merged (see [`super::merged`]).
fn merged_label(item: &SelectItem, tables: &[Shown<'_>]) -> Option<String> {
    let SelectItem::UnnamedExpr(expr) = item else {
        return None;
    };
    if !tables.iter().any(|table| table.is_merged) {
        return None;
    }
    let parts = column(expr)?;
    let name = parts.last()?.value.to_lowercase();
    let of = match parts {
        [.., of, _] => Some(of),
        _ => None,
    };
    let is_meant = |table: &&Shown<'_>| of.is_none_or(|of| table.goes_by(of));
    let mut found = tables.iter().filter(is_meant).filter_map(|table| {
        let mut columns = table.columns().iter();
        let column = columns.find(|column| column.to_lowercase() == name)?;
        Some((table, column))
    });
    let (table, column) = found.next()?;
    let is_one = of.is_some() || found.next().is_none();
    (is_one && table.is_merged).then(|| column.clone())
}
