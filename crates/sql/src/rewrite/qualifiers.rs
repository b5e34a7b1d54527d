//! Names of columns behind a table and its database: which table of FROM each of them means.
//!
//! DataFusion's planner compares databases only where FROM has them too. To it `nosuch.t.a` is a
//! column of any `t`, and `d.t.a` one of the first `t` of two. So names are settled before it sees
//! them:
//!
//! ```text
//!   FROM t         FROM current.t     the planner compares its database
//!   d.t.a          t.a                one table can be meant
//!   d.t.a          d.t.a              there are tables of this name in several databases
//!   d.t.a          1054               no table of this name stands in `d`
//! ```
//!
//! It looks only at statements that have such a name, or tables of one name in one FROM.
//!
//! Beside a table under its own name, an alias or a derived table of the same name is one to the
//! planner: it takes the columns of one for those of the other. Such a FROM is refused unless the
//! columns of both are known and none has the name of another.
//!
//! **Source**: `find_field_in_table_ref` of MariaDB's `sql/sql_base.cc`. An alias stands in the
//! database of its table; derived tables and common table expressions stand in none. Of tables that
//! are joined by name, the last one that has a column goes first.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, JoinOperator, ObjectNamePart, Query, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableFactor, TableWithJoins, Visit,
    VisitMut, Visitor, VisitorMut, With,
};
use mayfly_types::{ErrorCode, MySqlError};

use super::refused::column_names;
use super::relation::{file_alias, is_dual};
use crate::bindings::{Bindings, FILES};
use crate::change::{self, Mention, TARGETS};
use crate::references::{file_path, table_name};
use crate::statement::RowChoice;
use crate::{clause, from_list, walk};

/// Settles the names of a query.
///
/// # Errors
/// 1054 and 1052 for those that mean no table, or columns of several; 1066 for tables of one name;
/// 1235 where the planner would take another table.
pub(super) fn settle(query: &mut Query, bindings: &Bindings) -> Result<(), MySqlError> {
    if !is_needed(query) {
        return Ok(());
    }
    let mut names = Names::new(bindings);
    names.settle([&mut *query]);
    let clause = |column: &str| clause::of_column(query, column);
    names
        .refused
        .map_or(Ok(()), |refused| Err(refused.error(clause)))
}

/// Settles the names of an UPDATE or a DELETE in the rows that it chooses and in the values that
/// these get, before the tables that change are named anew.
///
/// # Errors
/// 1054 for names that mean no table; 1235 where the planner would take another table.
pub fn in_change<'a>(
    choice: &mut RowChoice,
    values: impl Iterator<Item = &'a mut Expr>,
    database: Option<&str>,
) -> Result<(), MySqlError> {
    let mut values: Vec<&mut Expr> = values.collect();
    let RowChoice {
        from,
        condition,
        order_by,
        limit: _,
    } = &mut *choice;
    if !from.iter().any(is_needed)
        && !condition.iter().any(is_needed)
        && !order_by.iter().any(is_needed)
        && !values.iter().any(|value| is_needed(&**value))
    {
        return Ok(());
    }
    let bindings = without_tables(database);
    let mut names = Names::new(&bindings);
    let scope = names.scope(from);
    names.scopes.push(Some(scope));
    names.settle(from);
    names.settle(condition);
    names.settle(order_by);
    names.settle(values.iter_mut().map(|value| &mut **value));
    let Some(refused) = names.refused else {
        return Ok(());
    };
    let values = values.iter().map(|value| (**value).clone());
    let query = change::query(choice.clone(), values.collect())?;
    Err(refused.error(|column| clause::of_column(&query, column)))
}

/// Settles the names of a value that a row of one table gets.
///
/// # Errors
/// 1054 for names that mean another table.
pub fn in_value(
    value: &mut Expr,
    table: &Mention,
    database: Option<&str>,
) -> Result<(), MySqlError> {
    if !is_needed(value) {
        return Ok(());
    }
    let bindings = without_tables(database);
    let mut names = Names::new(&bindings);
    names.scopes.push(Some(vec![Relation {
        name: table.alias.clone(),
        table: Some(table.table.table.clone()),
        database: table.database(database).map(str::to_owned),
        is_plain: true,
        columns: None,
        chain: None,
    }]));
    names.settle([value]);
    let refused = names.refused.map(|refused| refused.error(|_| "field list"));
    refused.map_or(Ok(()), Err)
}

/// Where names without a database mean this one.
fn without_tables(database: Option<&str>) -> Bindings {
    Bindings {
        database: database.map(str::to_owned),
        ..Bindings::default()
    }
}

/// Whether something has names that are to be settled.
fn is_needed(node: &impl Visit) -> bool {
    struct Search;
    impl Visitor for Search {
        type Break = ();

        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            let mut seen = HashSet::new();
            let tables = from_list::tables(&select.from).into_iter();
            match { tables.filter_map(name_of) }.all(|name| seen.insert(name)) {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match column_of(expr) {
                Some([_, _, _]) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk::read(node, &mut Search).is_break()
}

/// What a table goes by.
fn name_of(table: &TableFactor) -> Option<String> {
    match table {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => Some(alias.name.value.clone()),
        TableFactor::Table { name, .. } => match file_path(name) {
            Some(path) => Some(file_alias(path)),
            None => Some(name.0.last()?.as_ident()?.value.clone()),
        },
        _ => None,
    }
}

/// The parts of the name of a column that has several.
fn column_of(expr: &Expr) -> Option<&[Ident]> {
    match expr {
        Expr::CompoundIdentifier(parts) if !parts.first()?.value.starts_with('@') => Some(parts),
        _ => None,
    }
}

/// A table of FROM, as names of columns mean it.
struct Relation {
    /// Its alias or its own name.
    name: String,
    /// Its own name, unless it is a file, a derived table or a common table expression.
    table: Option<String>,
    /// The database that it stands in, if it stands in one.
    database: Option<String>,
    /// Whether the planner knows that database: the table goes by its own name.
    is_plain: bool,
    /// Its columns in lower case, if they are known.
    columns: Columns,
    /// The item of FROM that it is part of, if all tables there are joined by name.
    chain: Option<usize>,
}

/// Names of columns; `None` where they are not known.
type Columns = Option<Vec<String>>;

impl Relation {
    fn is(&self, table: &str, database: &str) -> bool {
        let stands_in = |own: &str| {
            // A table that changes has been named anew, and its names have been settled before.
            own == database || own == TARGETS || are_information_schema(own, database)
        };
        self.name == table && self.database.as_deref().is_some_and(stands_in)
    }

    /// Whether it is known not to have a column.
    fn lacks(&self, column: &str) -> bool {
        self.columns.is_some() && !self.has(column)
    }

    /// Whether it is known to have a column.
    fn has(&self, column: &str) -> bool {
        let column = column.to_lowercase();
        { self.columns.as_ref() }.is_some_and(|columns| columns.contains(&column))
    }

    /// Whether no column of two tables has the name of one of the other.
    fn is_apart_from(&self, other: &Relation) -> bool {
        match (&self.columns, &other.columns) {
            (Some(own), Some(others)) => !own.iter().any(|column| others.contains(column)),
            _ => false,
        }
    }

    /// As an error names it.
    fn described(&self) -> String {
        let alias = &self.name;
        match (&self.database, &self.table) {
            (Some(database), Some(table)) if table == alias => format!("{database}.{table}"),
            (Some(database), Some(table)) => format!("{database}.{table} AS {alias}"),
            _ => format!("the derived table {alias}"),
        }
    }
}

/// The one database whose name has no case.
fn are_information_schema(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) && one.eq_ignore_ascii_case("information_schema")
}

/// Why a name cannot be settled.
enum Refused {
    /// It means no table.
    Unknown(String),
    /// It means columns of several tables.
    Ambiguous(String),
    /// The planner would take another table for the one that is meant.
    Hidden,
    /// Whatever its names are.
    Whole(MySqlError),
}

impl Refused {
    fn error(&self, clause: impl Fn(&str) -> &'static str) -> MySqlError {
        let (code, name) = match self {
            Refused::Unknown(name) => (ErrorCode::UnknownColumn, name),
            Refused::Ambiguous(name) => (ErrorCode::AmbiguousColumn, name),
            Refused::Hidden => {
                let what =
                    "a database before one of several tables that share a name with an alias";
                return not_supported(what);
            }
            Refused::Whole(error) => return error.clone(),
        };
        MySqlError::new(code, &[name, &clause(name)])
    }
}

fn not_supported(what: &str) -> MySqlError {
    MySqlError::new(ErrorCode::NotSupportedYet, &[&what])
}

/// Looks for a table beside an alias or a derived table of the same name.
fn check_apart(relations: &[Relation]) -> Result<(), Refused> {
    for (place, one) in relations.iter().enumerate() {
        for other in &relations[..place] {
            // Two of a kind are told apart, or refused, where all names of FROM are looked at.
            if one.name != other.name || one.is_plain == other.is_plain {
                continue;
            }
            if one.database == other.database {
                let error = MySqlError::new(ErrorCode::NotUniqueTable, &[&one.name]);
                return Err(Refused::Whole(error));
            }
            if !one.is_apart_from(other) {
                let (one, other) = (other.described(), one.described());
                let what = format!("one name for tables that may share columns: {one} and {other}");
                return Err(Refused::Whole(not_supported(&what)));
            }
        }
    }
    Ok(())
}

/// `t.*` shows the columns of all tables of that name, and the planner those of one.
fn check_stars(select: &Select, relations: &[Relation]) -> Result<(), Refused> {
    for item in &select.projection {
        if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) =
            item
            && let [table] = name.0.as_slice()
            && let Some(table) = table.as_ident()
        {
            let named = relations.iter();
            if named.filter(|one| one.name == table.value).count() > 1 {
                let what = format!("{}.* of several tables of that name", table.value);
                return Err(Refused::Whole(not_supported(&what)));
            }
        }
    }
    Ok(())
}

/// Names of columns as they are compared.
fn lowered<'n>(names: impl IntoIterator<Item = &'n String>) -> Vec<String> {
    names.into_iter().map(|name| name.to_lowercase()).collect()
}

/// The columns of a query under an alias that may name them.
fn columns_of(query: &Query, alias: &TableAlias) -> Columns {
    match alias.columns.as_slice() {
        [] => column_names(&query.body).map(|names| lowered(&names)),
        declared => Some(lowered(declared.iter().map(|column| &column.name.value))),
    }
}

/// Whether all tables of an item of FROM are joined by name, from left to right.
fn is_chain(item: &TableWithJoins) -> bool {
    let is_table = |factor| !matches!(factor, &TableFactor::NestedJoin { .. });
    let is_right = |operator| {
        matches!(
            operator,
            &JoinOperator::Right(_) | &JoinOperator::RightOuter(_)
        )
    };
    let mut joins = item.joins.iter();
    is_table(&item.relation)
        && joins.all(|join| {
            let operator = &join.join_operator;
            is_table(&join.relation) && from_list::is_by_name(operator) && !is_right(operator)
        })
}

/// Settles names, with the tables that they can mean.
struct Names<'a> {
    // fixed
    bindings: &'a Bindings,
    // state
    /// Common table expressions that can be named, with their columns; the nearest last.
    ctes: Vec<(String, Columns)>,
    /// The queries around: how many of those could be named outside of them, and their WITH, which
    /// has been settled.
    queries: Vec<(usize, Option<With>)>,
    /// The tables of the selects around, the innermost last; `None` behind a set operation, where
    /// no name is settled.
    scopes: Vec<Option<Vec<Relation>>>,
    /// The scopes around derived tables, which do not see them.
    hidden: Vec<Vec<Option<Vec<Relation>>>>,
    refused: Option<Refused>,
}

impl Names<'_> {
    fn new(bindings: &Bindings) -> Names<'_> {
        Names {
            bindings,
            ctes: Vec::new(),
            queries: Vec::new(),
            scopes: Vec::new(),
            hidden: Vec::new(),
            refused: None,
        }
    }

    /// Settles names until one is refused.
    fn settle<'n, N: VisitMut + 'n>(&mut self, nodes: impl IntoIterator<Item = &'n mut N>) {
        for node in nodes {
            if self.refused.is_none() {
                let _ = walk::write(node, self);
            }
        }
    }

    /// Goes on unless something is refused.
    fn goes_on(&mut self, checked: Result<(), Refused>) -> ControlFlow<()> {
        match checked {
            Ok(()) if self.refused.is_none() => ControlFlow::Continue(()),
            Ok(()) => ControlFlow::Break(()),
            Err(refused) => {
                self.refused = Some(refused);
                ControlFlow::Break(())
            }
        }
    }

    /// The tables of a FROM list, in which those without an alias get their database.
    fn scope(&mut self, from: &mut [TableWithJoins]) -> Vec<Relation> {
        let mut relations = Vec::new();
        for (place, item) in from.iter_mut().enumerate() {
            let chain = is_chain(item).then_some(place);
            for factor in from_list::tables_mut(std::slice::from_mut(item)) {
                let relation = self.relation(factor);
                relations.extend(relation.map(|relation| Relation { chain, ..relation }));
            }
        }
        if let Err(refused) = check_apart(&relations) {
            self.refused = Some(refused);
        }
        relations
    }

    /// The tables that ORDER BY of a query can name.
    fn scope_of_body(&mut self, body: &mut SetExpr) -> Option<Vec<Relation>> {
        match body {
            SetExpr::Select(select) => Some(self.scope(&mut select.from)),
            SetExpr::Query(query) => {
                let outside = self.ctes.len();
                for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
                    let columns = columns_of(&cte.query, &cte.alias);
                    self.ctes.push((cte.alias.name.value.clone(), columns));
                }
                let scope = self.scope_of_body(&mut query.body);
                self.ctes.truncate(outside);
                scope
            }
            SetExpr::SetOperation { .. } => None,
            _ => Some(Vec::new()),
        }
    }

    /// Settles common table expressions, which see no select around, and from then on knows them.
    fn with(&mut self, with: &mut With) -> ControlFlow<()> {
        let around = std::mem::take(&mut self.scopes);
        for cte in &mut with.cte_tables {
            let name = cte.alias.name.value.clone();
            let columns = columns_of(&cte.query, &cte.alias);
            let before = self.ctes.len();
            if with.recursive {
                self.ctes.push((name.clone(), columns.clone()));
            }
            walk::write(cte.query.as_mut(), self)?;
            self.ctes.truncate(before);
            self.ctes.push((name, columns));
        }
        self.scopes = around;
        ControlFlow::Continue(())
    }

    fn relation(&self, factor: &mut TableFactor) -> Option<Relation> {
        if is_dual(factor, self.bindings) {
            return None;
        }
        let apart = |name: String, columns: Columns| Relation {
            name,
            table: None,
            database: None,
            is_plain: false,
            columns,
            chain: None,
        };
        let (name, alias) = match factor {
            TableFactor::Table { name, alias, .. } => (name, alias.as_ref()),
            TableFactor::Derived {
                subquery, alias, ..
            } => {
                let alias = alias.as_ref()?;
                return Some(apart(alias.name.value.clone(), columns_of(subquery, alias)));
            }
            _ => return None,
        };
        let alias = alias.map(|alias| alias.name.value.clone());
        if let Some(path) = file_path(name) {
            let bound = self.bindings.files.get(path);
            let columns = bound.map(|file| lowered(&file.columns));
            return Some(apart(alias.unwrap_or_else(|| file_alias(path)), columns));
        }
        let table = table_name(name)?;
        let is_named = table.database.is_some();
        let mut ctes = self.ctes.iter().rev();
        if !is_named && let Some((_, columns)) = ctes.find(|(cte, _)| *cte == table.table) {
            return Some(apart(alias.unwrap_or(table.table), columns.clone()));
        }
        let database = table.database.or_else(|| self.bindings.database.clone());
        let is_plain = alias.is_none() && database.is_some();
        let mut columns = None;
        if let Some(database) = &database {
            let bound = match database == FILES {
                true => self.bindings.files.get(&table.table),
                false => {
                    let place = (database.clone(), table.table.clone());
                    self.bindings.tables.get(&place)
                }
            };
            columns = bound.map(|table| lowered(&table.columns));
            if is_plain && !is_named {
                let part = ObjectNamePart::Identifier(Ident::with_quote('`', database));
                name.0.insert(0, part);
            }
        }
        Some(Relation {
            name: alias.unwrap_or_else(|| table.table.clone()),
            table: Some(table.table),
            database,
            is_plain,
            columns,
            chain: None,
        })
    }

    /// The parts of a name as the planner is to read them; `None` if it stays as it is.
    fn settled(&self, parts: &[Ident]) -> Result<Option<Vec<Ident>>, Refused> {
        let written = || {
            let parts: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
            parts.join(".")
        };
        let named = |database: &str, table: &Ident, column: &Ident| {
            let database = Ident::with_quote('`', database);
            vec![database, table.clone(), column.clone()]
        };
        match parts {
            [table, column] => match self.several(&table.value, &column.value) {
                None => Ok(None),
                Some(several) => {
                    let chain = several.first().and_then(|first| first.chain);
                    let database = several.last().and_then(|last| last.database.as_ref());
                    match (chain, database) {
                        (Some(_), Some(database))
                            if several.iter().all(|one| one.chain == chain) =>
                        {
                            Ok(Some(named(database, table, column)))
                        }
                        _ => Err(Refused::Ambiguous(written())),
                    }
                }
            },
            [database, table, column] => {
                let (depth, meant) = self
                    .meant(&database.value, &table.value, &column.value)
                    .ok_or_else(|| Refused::Unknown(written()))?;
                let nearer = self.scopes.iter().skip(depth).flatten().flatten();
                let others: Vec<_> = nearer
                    .filter(|other| other.name == meant.name && !std::ptr::eq(*other, meant))
                    .collect();
                // Those that have no such column cannot be taken for it.
                let mut rivals = others.iter().filter(|other| !other.lacks(&column.value));
                if rivals.any(|other| !other.is_plain || !meant.is_plain) {
                    return Err(Refused::Hidden);
                }
                match &meant.database {
                    Some(database) if meant.is_plain && !others.is_empty() => {
                        Ok(Some(named(database, table, column)))
                    }
                    _ => Ok(Some(vec![table.clone(), column.clone()])),
                }
            }
            _ => Ok(None),
        }
    }

    /// The nearest table with a column that a name means, and how deep its select is.
    fn meant(&self, database: &str, table: &str, column: &str) -> Option<(usize, &Relation)> {
        let is_meant = |relation: &&Relation| relation.is(table, database);
        let mut scopes = self.scopes.iter().enumerate().rev();
        scopes.find_map(|(depth, scope)| {
            let mut relations = scope.iter().flatten();
            let found = relations.find(|one| is_meant(one) && !one.lacks(column))?;
            Some((depth, found))
        })
    }

    /// The tables of a name that have a column, where the nearest select has several of them.
    fn several(&self, table: &str, column: &str) -> Option<Vec<&Relation>> {
        let is_named = |relation: &&Relation| relation.name == table;
        let mut scopes = self.scopes.iter().flatten().rev();
        let scope = scopes.find(|scope| scope.iter().any(|one| is_named(&one)))?;
        let named = scope.iter().filter(is_named);
        let named: Vec<_> = named
            .filter(|one| one.is_plain && one.has(column))
            .collect();
        (named.len() > 1).then_some(named)
    }
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let outside = self.ctes.len();
        // It is walked here, and put back behind the query.
        let mut with = query.with.take();
        if let Some(settled) = &mut with
            && self.with(settled).is_break()
        {
            query.with = with;
            return ControlFlow::Break(());
        }
        self.queries.push((outside, with));
        // For ORDER BY, which stands behind the select.
        let scope = self.scope_of_body(&mut query.body);
        self.scopes.push(scope);
        self.goes_on(Ok(()))
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scopes.pop();
        if let Some((outside, with)) = self.queries.pop() {
            self.ctes.truncate(outside);
            query.with = with;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if is_set_apart(factor) {
            self.hidden.push(std::mem::take(&mut self.scopes));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if is_set_apart(factor)
            && let Some(scopes) = self.hidden.pop()
        {
            self.scopes = scopes;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let scope = self.scope(&mut select.from);
        let checked = check_stars(select, &scope);
        self.scopes.push(Some(scope));
        // What is wrong with FROM goes first.
        match self.refused.is_some() {
            true => ControlFlow::Break(()),
            false => self.goes_on(checked),
        }
    }

    fn post_visit_select(&mut self, _select: &mut Select) -> ControlFlow<()> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(None) = self.scopes.last() {
            return ControlFlow::Continue(());
        }
        let settled = match column_of(expr) {
            Some(parts) => self.settled(parts),
            None => Ok(None),
        };
        let checked = settled.map(|parts| {
            if let Some(parts) = parts {
                *expr = Expr::CompoundIdentifier(parts);
            }
        });
        self.goes_on(checked)
    }
}

/// Whether it is a derived table that does not see the tables beside it.
fn is_set_apart(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Derived { lateral: false, .. })
}
