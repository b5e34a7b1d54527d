//! Column labels.
//!
//! MySQL labels a column with its alias, its name as written, or the text of its expression.
//! Names are planned in lower case, so spellings are kept beside the plan.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::sqlparser::ast::{
    Cte, Expr, Ident, ObjectNamePart, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    SetExpr, TableAlias, TableFactor, Value,
};

use super::call::call;
use super::column_names::{lower, plain_column};
use super::ctes::Named;
use super::declared_names::declared;
use super::merged::{is_merged, is_merged_view, is_view};
use super::relation::{base_table, name_of};
use crate::bindings::Bindings;
use crate::from_list;
use crate::functions::own::MARK;
use crate::inner_name::shown_in;
use crate::references::{table_name, variable};
use crate::select_list::{column, expression_of, is_wildcard, shown};
use crate::source::Source;

/// One item of a select list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    /// A label.
    Label(String),
    /// `*` or `t.*`.
    Wildcard,
}

/// What the columns of a result are called.
#[derive(Debug, Clone)]
pub(crate) struct Labels {
    items: Vec<Item>,
    spellings: HashMap<String, String>,
}

impl Labels {
    pub(super) fn new(items: Vec<Item>, spellings: HashMap<String, String>) -> Labels {
        Labels { items, spellings }
    }

    /// One label for each field of the plan's schema.
    pub(crate) fn of(&self, plan: &LogicalPlan, bindings: &Bindings) -> Vec<String> {
        let fields = plan.schema().fields();
        let labels = self.items.iter().map(|item| match item {
            Item::Label(text) => Some(text.clone()),
            Item::Wildcard => None,
        });
        let without_wildcards: Option<Vec<String>> = labels.collect();
        let has_wildcards = without_wildcards.is_none();
        if let Some(labels) = without_wildcards.filter(|labels| labels.len() == fields.len()) {
            return labels;
        }
        let names = { fields.iter().enumerate() }.map(|(place, field)| {
            match declared(plan, place, bindings) {
                Some(name) => name.to_owned(),
                None => self.spell(field.name()),
            }
        });
        let mut result: Vec<String> = names.collect();
        if !has_wildcards {
            return result;
        }
        // The places of what stands before the first wildcard and behind the last are known.
        let is_label = |item: &&Item| **item != Item::Wildcard;
        let before = self.items.iter().take_while(is_label).count();
        let after = self.items.iter().rev().take_while(is_label).count();
        let first = self.items.iter().take(before).enumerate();
        let start = result.len().saturating_sub(after);
        let last = self.items[self.items.len() - after..].iter().enumerate();
        let last = last.map(|(index, item)| (start + index, item));
        for (index, item) in first.chain(last) {
            if let (Item::Label(text), Some(label)) = (item, result.get_mut(index)) {
                label.clone_from(text);
            }
        }
        result
    }

    fn spell(&self, name: &str) -> String {
        let spelled = self.spellings.get(name).map(String::as_str);
        let spelled = spelled.or_else(|| shown_by_star(name));
        spelled.unwrap_or(name).to_owned()
    }
}

/// The declared spellings of all columns that the statement can see.
pub(super) fn spellings(bindings: &Bindings) -> HashMap<String, String> {
    let mut spellings = HashMap::new();
    // Of two spellings it is always the same one.
    let mut tables: Vec<_> = bindings.tables.iter().collect();
    tables.sort_unstable_by_key(|(name, _)| *name);
    let mut files: Vec<_> = bindings.files.iter().collect();
    files.sort_unstable_by_key(|(path, _)| *path);
    let tables = tables.into_iter().map(|(_, table)| table);
    for table in tables.chain(files.into_iter().map(|(_, file)| file)) {
        for column in &table.columns {
            remember(&mut spellings, column);
        }
    }
    spellings
}

pub(super) fn remember(spellings: &mut HashMap<String, String>, name: &str) {
    spellings
        .entry(name.to_lowercase())
        .or_insert_with(|| name.to_owned());
}

/// Gives every item of a select list a name that the planner takes, and returns the labels.
///
/// Expressions get their own text as alias, so that an outer query can refer to it. Of those that
/// share a name, the one that the name means keeps it: the first expression, or the first column
/// where all are columns; the others get a name that cannot be written. The columns of a select
/// that is free may have any name.
pub(super) fn name(
    select: &mut Select,
    source: &Source,
    spellings: &mut HashMap<String, String>,
    is_free: bool,
) -> Vec<Item> {
    let texts = source.items(select.select_token.0.span.start).to_vec();
    let whole = texts.len() == select.projection.len();
    let has_wildcard = select.projection.iter().any(is_wildcard);
    let labels = select.projection.iter().enumerate().map(|(index, item)| {
        let text = whole.then(|| texts[index].as_str());
        { !is_wildcard(item) }.then(|| label(item, text))
    });
    let labels: Vec<Option<String>> = labels.collect();
    let keepers = keepers(&select.projection, &labels);
    let mut items = Vec::with_capacity(select.projection.len());
    for (index, (item, label)) in select.projection.iter_mut().zip(labels).enumerate() {
        let Some(label) = label else {
            items.push(Item::Wildcard);
            continue;
        };
        let is_variable =
            matches!(&*item, SelectItem::UnnamedExpr(expr) if variable(expr).is_some());
        remember(spellings, &label);
        let name = label.to_lowercase();
        let plain = plain_column(item).is_some() && !is_variable;
        let keeps = keepers.get(&name) == Some(&index);
        items.push(Item::Label(label));
        if plain && keeps && !(has_wildcard && is_free) {
            continue;
        }
        let alias = if keeps && !(plain && has_wildcard) {
            name
        } else if is_free || !keeps {
            hidden(index)
        } else {
            continue;
        };
        let mut alias = Ident::new(alias);
        lower(&mut alias);
        let expr = match std::mem::replace(item, SelectItem::Wildcard(Default::default())) {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr,
            other => {
                *item = other;
                continue;
            }
        };
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
    items
}

/// The places of the items that keep their names, by the names in lower case.
fn keepers(items: &[SelectItem], labels: &[Option<String>]) -> HashMap<String, usize> {
    let is_column = |place: usize| expression_of(&items[place]).is_none_or(|e| column(e).is_some());
    let mut keepers: HashMap<String, usize> = HashMap::with_capacity(items.len());
    for (place, label) in labels.iter().enumerate() {
        let Some(label) = label else {
            continue;
        };
        let keeper = keepers.entry(label.to_lowercase()).or_insert(place);
        if is_column(*keeper) && !is_column(place) {
            *keeper = place;
        }
    }
    keepers
}

/// Remembers how items are called that may stand between two wildcards, where their places are not
/// known.
pub(super) fn remember_hidden(spellings: &mut HashMap<String, String>, items: &[Item]) {
    for (index, item) in items.iter().enumerate() {
        if let Item::Label(label) = item {
            spellings.insert(hidden(index), label.clone());
            spellings.insert(apart(&label.to_lowercase()), label.clone());
        }
    }
}

/// A table of FROM whose columns a star shows.
struct Starred {
    alias: String,
    /// That of a base table.
    database: Option<String>,
    columns: Vec<String>,
}

impl Starred {
    /// The table; `None` if its columns are not known.
    fn of(table: &TableFactor, within: Columns<'_>) -> Option<Starred> {
        if !within.tells_all_of_table(table) {
            return None;
        }
        let of_base = { within.cte(table).is_none() }.then(|| base_table(table, within.bindings));
        Some(Starred {
            alias: name_of(table)?,
            database: of_base.flatten().map(|(_, database, ..)| database),
            columns: within.of_table(table),
        })
    }
}

/// Writes `t.*` out where the same list shows the columns of `t` before it: no two columns of a
/// plan have one name.
pub(super) fn write_out_stars(select: &mut Select, columns: Columns<'_>) {
    if select.projection.iter().filter(|i| is_wildcard(i)).count() < 2 {
        return;
    }
    let tables = from_list::tables(&select.from).into_iter();
    let tables: Option<Vec<Starred>> = tables.map(|table| Starred::of(table, columns)).collect();
    let Some(tables) = tables else {
        return;
    };
    let mut shown = HashSet::new();
    let mut list = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        let only = match &item {
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                table_name(name)
            }
            SelectItem::Wildcard(_) => {
                shown.extend(tables.iter().map(|table| &table.alias));
                None
            }
            _ => None,
        };
        let table = only.and_then(|only| {
            // It is named as FROM does.
            let of = only.database;
            let is_meant = |table: &&Starred| {
                table.alias == only.table && (of.is_none() || of == table.database)
            };
            let table = tables.iter().find(is_meant)?;
            Some((of, table))
        });
        let table = table.filter(|(_, table)| !shown.insert(&table.alias));
        let Some((database, table)) = table else {
            list.push(item);
            continue;
        };
        for column in &table.columns {
            let parts = database.iter().chain([&table.alias]).cloned();
            let parts = parts.chain([column.to_lowercase()]);
            let parts = parts.map(|part| Ident::with_quote('`', part)).collect();
            let name = by_star("star", list.len(), column);
            list.push(SelectItem::ExprWithAlias {
                expr: Expr::CompoundIdentifier(parts),
                alias: Ident::with_quote('`', name),
            });
        }
    }
    select.projection = list;
}

/// A name that no statement can write, for the column at a place.
fn hidden(index: usize) -> String {
    format!("{MARK}column {index}")
}

/// A name that no statement can write, for a column that a star shows under a name which another
/// column of the list has; `index` tells those of one name apart.
pub(super) fn again(index: usize, column: &str) -> String {
    by_star("again", index, column)
}

/// Such a name, which says how the column is called; `who` tells apart who writes stars out.
fn by_star(who: &str, index: usize, column: &str) -> String {
    format!("{MARK}{who} {index} {column}")
}

/// How a column under a name of [`by_star`] is called.
fn shown_by_star(name: &str) -> Option<&str> {
    let name = name.strip_prefix(MARK)?;
    let rest = { name.strip_prefix("again ") }.or_else(|| name.strip_prefix("star "))?;
    Some(rest.split_once(' ')?.1)
}

/// A name that no statement can write, for a column of this alias.
pub(super) fn apart(alias: &str) -> String {
    format!("{MARK}alias {alias}")
}

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
    fn tells_all_of_table(self, table: &TableFactor) -> bool {
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

/// Takes the MySQL types off the columns of a recursive common table expression.
pub(super) fn untyped(select: &mut Select) {
    for item in &mut select.projection {
        let (expr, alias) = match item {
            SelectItem::ExprWithAlias { expr, alias } => (expr, alias.clone()),
            SelectItem::UnnamedExpr(expr) => {
                let Some(name) = (match &*expr {
                    Expr::Identifier(ident) => Some(ident.clone()),
                    Expr::CompoundIdentifier(parts) => parts.last().cloned(),
                    _ => None,
                }) else {
                    continue;
                };
                (expr, name)
            }
            _ => continue,
        };
        let expr = std::mem::replace(expr, Expr::Value(Value::Null.into()));
        let expr = call(crate::untyped::NAME, vec![expr]);
        *item = SelectItem::ExprWithAlias { expr, alias };
    }
}

/// Whether an expression is a name, in parentheses or not.
fn is_name(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_name(inner),
        expr => matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)),
    }
}

/// What the column of an item is called; `text` is how the item is written.
pub(super) fn label(item: &SelectItem, text: Option<&str>) -> String {
    match item {
        SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
        SelectItem::UnnamedExpr(Expr::Prefixed { value, .. }) => {
            label(&SelectItem::UnnamedExpr(value.as_ref().clone()), text)
        }
        SelectItem::UnnamedExpr(Expr::Nested(inner)) if is_name(inner) => {
            label(&SelectItem::UnnamedExpr(inner.as_ref().clone()), text)
        }
        SelectItem::UnnamedExpr(expr) => match expr {
            Expr::Value(value) => match &value.value {
                Value::Null => "NULL".to_owned(),
                Value::Boolean(true) => "TRUE".to_owned(),
                Value::Boolean(false) => "FALSE".to_owned(),
                Value::SingleQuotedString(words)
                | Value::DoubleQuotedString(words)
                | Value::NationalStringLiteral(words) => shown(words).to_owned(),
                other => written(text, other),
            },
            Expr::Identifier(ident) => ident.value.clone(),
            Expr::CompoundIdentifier(parts) if variable(expr).is_none() => parts
                .last()
                .map(|part| part.value.clone())
                .unwrap_or_default(),
            other => written(text, other),
        },
        other => other.to_string(),
    }
}

/// An expression as its column is called. It may be long, and is copied with the plan.
fn written(text: Option<&str>, expr: &impl ToString) -> String {
    match text {
        Some(text) => shown(text).to_owned(),
        None => shown(&shown_in(expr.to_string())).to_owned(),
    }
}
