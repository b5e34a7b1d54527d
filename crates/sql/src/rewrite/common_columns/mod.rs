//! Columns that tables of FROM have in common, and those that `*` leaves out.
//!
//! DataFusion's planner shows of columns that are joined by name the one of the alphabetically
//! first table, where that one stands, and calls their name ambiguous elsewhere. Here NATURAL JOIN
//! and USING become joins ON equalities; over them, and over tables with invisible columns, `*` is
//! written out; and the name of a common column becomes the column of the first table.
//!
//! It goes before all other rewrites and only where a statement needs it. Selects are walked from
//! the outermost to the innermost with the tables that each can name; what a table shows is told
//! by the bindings, or by the select list of a derived table. Where that cannot be told, what
//! depends on it is refused.
//!
//! **Source**: "JOIN Clause" of the MySQL manual; which of a column and an item of the select list
//! goes first is MariaDB's `find_order_in_list` and `resolve_ref_in_select_and_group`.

mod from;
mod names;
mod outputs;

use datafusion::sql::sqlparser::ast::{
    Cte, Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, ObjectName, OrderBy, OrderByKind,
    Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Spanned, TableAlias,
    TableFactor, TableWithJoins,
};
use datafusion::sql::sqlparser::tokenizer::Span;
use mayfly_types::{ErrorCode, MySqlError};

use super::labels;
use super::relation::{is_dual, resolve, table_as_select};
use crate::bindings::{Bindings, BoundTable};
use crate::from_list::{constraint_mut, using};
use crate::references::table_name;
use crate::select_list::table_of_star;
use crate::source::{Source, replace_items};
pub(super) use from::ambiguous;
use from::{Column, Joined};
use outputs::position;
pub(super) use outputs::{Found, Outputs, grouped, is_same, nested};

type Result<T> = std::result::Result<T, MySqlError>;

/// Names of columns; `None` where they cannot be told.
type Names = Option<Vec<String>>;

/// Writes a query out, and returns the texts of its select lists if some have become longer.
///
/// # Errors
/// 1052 and 1054 for common columns that are several or none, 1235 for what cannot be told.
pub(super) fn write(
    query: &mut Query,
    source: &Source,
    bindings: &Bindings,
) -> Result<Option<Source>> {
    let mut writer = Writer::new(source, bindings);
    writer.query(query)?;
    Ok(writer.written)
}

/// A `*` of a query, and the columns that it shows.
pub(crate) struct Star {
    /// Where it stands.
    pub(crate) place: Span,
    /// The columns, each with its table.
    pub(crate) columns: Vec<Expr>,
}

/// Finds each `*` of a query.
///
/// # Errors
/// Those for which the columns of a table are not known; 1235 for a TABLE that is no part of a
/// SELECT.
pub(crate) fn stars(query: &Query, source: &Source, bindings: &Bindings) -> Result<Vec<Star>> {
    let mut writer = Writer::new(source, bindings);
    writer.stars = Some(Vec::new());
    writer.query(&mut query.clone())?;
    Ok(writer.stars.unwrap_or_default())
}

/// What the table of a column is called whose name stands alone, if it is a common column of a
/// FROM list.
///
/// # Errors
/// As [`write`].
pub(crate) fn owner(
    from: &[TableWithJoins],
    column: &str,
    bindings: &Bindings,
) -> Result<Option<String>> {
    let source = Source::default();
    let mut writer = Writer::new(&source, bindings);
    let joined = writer.from(&mut from.to_vec())?;
    let name = column.to_lowercase();
    if !joined.is_common(&name) {
        return Ok(None);
    }
    let column = joined.common_column(&name, "field list")?;
    Ok(column.and_then(|column| column.table().map(str::to_owned)))
}

struct Writer<'a> {
    // fixed
    source: &'a Source,
    bindings: &'a Bindings,
    // state
    /// The texts of select lists, from the first change on.
    written: Option<Source>,
    /// Common table expressions that can be named, with their columns; the nearest last.
    ctes: Vec<(String, Names)>,
    /// The tables of the selects around, the innermost last.
    scopes: Vec<Joined>,
    /// What `*` shows, if that is asked for.
    stars: Option<Vec<Star>>,
}

impl<'a> Writer<'a> {
    fn new(source: &'a Source, bindings: &'a Bindings) -> Writer<'a> {
        Writer {
            source,
            bindings,
            written: None,
            ctes: Vec::new(),
            scopes: Vec::new(),
            stars: None,
        }
    }

    /// Writes a query, and tells what its columns are called.
    fn query(&mut self, query: &mut Query) -> Result<Names> {
        let outside = self.ctes.len();
        if let Some(with) = &mut query.with {
            for cte in &mut with.cte_tables {
                self.cte(cte, with.recursive)?;
            }
        }
        if let Some(select) = table_as_select(&query.body)? {
            if self.stars.is_some() {
                return Err(refused("TABLE in a view"));
            }
            query.body = select;
        }
        let columns = self.body(&mut query.body, query.order_by.as_mut());
        self.ctes.truncate(outside);
        columns
    }

    fn cte(&mut self, cte: &mut Cte, is_recursive: bool) -> Result<()> {
        let name = cte.alias.name.value.clone();
        let declared = declared(&cte.alias);
        let outside = self.ctes.len();
        if is_recursive {
            let columns = match (&declared, cte.query.body.as_ref()) {
                (None, SetExpr::SetOperation { left, .. }) => {
                    self.apart(|writer| writer.body(&mut left.clone(), None))?
                }
                _ => declared.clone(),
            };
            self.ctes.push((name.clone(), columns));
        }
        let columns = self.apart(|writer| writer.query(&mut cte.query))?;
        self.ctes.truncate(outside);
        self.ctes.push((name, declared.or(columns)));
        Ok(())
    }

    /// Does something that sees no select around.
    fn apart<T>(&mut self, write: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let around = std::mem::take(&mut self.scopes);
        let written = write(self);
        self.scopes = around;
        written
    }

    fn body(&mut self, body: &mut SetExpr, order_by: Option<&mut OrderBy>) -> Result<Names> {
        match body {
            SetExpr::Select(select) => self.select(select, order_by),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, right, .. } => {
                let columns = self.body(left, None)?;
                self.body(right, None)?;
                Ok(columns)
            }
            SetExpr::Values(values) => {
                self.names(values, "field list", None)?;
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    fn select(&mut self, select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<Names> {
        let joined = self.from(&mut select.from)?;
        self.find_stars(select, &joined)?;
        if joined.leaves_out() {
            self.write_stars(select, &joined)?;
        }
        let columns = self.columns(select, &joined);
        self.scopes.push(joined);
        let written = self.clauses(select, order_by);
        self.scopes.pop();
        written.map(|()| columns)
    }

    /// Writes the names in all clauses but FROM.
    fn clauses(&mut self, select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<()> {
        self.names(&mut select.projection, "field list", None)?;
        self.names(&mut select.selection, "where clause", None)?;
        self.names(&mut select.named_window, "window", None)?;
        let items = select.projection.as_slice();
        let mut outputs = Outputs {
            items,
            keys: &[],
            go_first: false,
        };
        if let GroupByExpr::Expressions(keys, modifiers) = &mut select.group_by {
            for key in keys.iter_mut() {
                self.key(key, !modifiers.is_empty(), outputs)?;
            }
            outputs.keys = keys;
        }
        outputs.go_first = true;
        self.names(&mut select.having, "having clause", Some(outputs))?;
        outputs.go_first = false;
        if let Some(OrderBy {
            kind: OrderByKind::Expressions(list),
            ..
        }) = order_by
        {
            for by in list {
                self.ordered(&mut by.expr, outputs)?;
            }
        }
        Ok(())
    }

    /// An expression of GROUP BY. A name of an item that is no column means that item.
    fn key(&mut self, key: &mut Expr, has_modifiers: bool, outputs: Outputs<'_>) -> Result<()> {
        let clause = "group statement";
        if let Some(name) = self.own_common(key) {
            let meant = match outputs.find(&name, clause)? {
                Some(Found::Column(expr)) => Some(expr.clone()),
                // A position beside WITH ROLLUP would be a constant.
                Some(Found::Expression(place)) if has_modifiers => outputs.expression(place),
                Some(Found::Expression(place)) => Some(position(place)),
                Some(Found::Renamed(_)) | None => None,
            };
            if let Some(meant) = meant {
                *key = meant;
                return Ok(());
            }
        }
        self.names(key, clause, Some(outputs))
    }

    /// An expression of ORDER BY. A name of an item means that item.
    fn ordered(&mut self, by: &mut Expr, outputs: Outputs<'_>) -> Result<()> {
        let clause = "order clause";
        if let Some(name) = self.own_common(by)
            && let Some(found) = outputs.find(&name, clause)?
        {
            *by = match found {
                Found::Column(expr) | Found::Renamed(expr) => expr.clone(),
                Found::Expression(place) => position(place),
            };
            return Ok(());
        }
        self.names(by, clause, Some(outputs))
    }

    /// The name, in lower case, that an expression is, if it is that of a common column of the
    /// innermost select.
    fn own_common(&self, expr: &Expr) -> Option<String> {
        let Expr::Identifier(ident) = expr else {
            return None;
        };
        let name = ident.value.to_lowercase();
        let own = self.scopes.last()?;
        own.is_common(&name).then_some(name)
    }

    /// Notes what `*` and `table.*` show, if that is asked for.
    fn find_stars(&mut self, select: &Select, joined: &Joined) -> Result<()> {
        let Some(stars) = &mut self.stars else {
            return Ok(());
        };
        for item in &select.projection {
            let (shown, options, table) = match item {
                SelectItem::Wildcard(options) => (Some(joined.shown()?), options, None),
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(table),
                    options,
                ) => (joined.shown_of(table), options, Some(table.span())),
                _ => continue,
            };
            let end = options.wildcard_token.0.span;
            let place = table.map_or(end, |table| table.union(&end));
            // One of a table that is not there has its error when it is planned.
            if let Some(shown) = shown {
                let columns = shown.into_iter().map(Column::expr).collect();
                stars.push(Star { place, columns });
            }
        }
        Ok(())
    }

    /// Writes `*` and `table.*` out.
    fn write_stars(&mut self, select: &mut Select, joined: &Joined) -> Result<()> {
        let others = |item: SelectItem, text: String| {
            let shown = match &item {
                SelectItem::Wildcard(_) => Some(joined.shown()?),
                item => table_of_star(item).and_then(|table| joined.shown_of(table)),
            };
            let Some(shown) = shown else {
                return Ok(vec![(item, text)]);
            };
            let shown = shown.into_iter();
            Ok(shown
                .map(|column| (SelectItem::UnnamedExpr(column.expr()), column.name.clone()))
                .collect())
        };
        replace_items(select, self.source, &mut self.written, others)
    }

    /// What the columns of a select are called.
    fn columns(&self, select: &Select, joined: &Joined) -> Names {
        let source = self.written.as_ref().unwrap_or(self.source);
        let texts = source.items(select.select_token.0.span.start);
        let are_known = texts.len() == select.projection.len();
        let mut names = Vec::with_capacity(select.projection.len());
        for (place, item) in select.projection.iter().enumerate() {
            let shown = match item {
                SelectItem::Wildcard(_) => joined.shown().ok()?,
                SelectItem::QualifiedWildcard(
                    SelectItemQualifiedWildcardKind::ObjectName(table),
                    _,
                ) => joined.shown_of(table)?,
                SelectItem::QualifiedWildcard(..) => return None,
                item => {
                    let text = are_known.then(|| texts[place].as_str());
                    names.push(labels::label(item, text));
                    continue;
                }
            };
            names.extend(shown.into_iter().map(|column| column.name.clone()));
        }
        Some(names)
    }

    /// Writes a FROM list.
    fn from(&mut self, from: &mut [TableWithJoins]) -> Result<Joined> {
        let mut joined = Joined::default();
        for table in from {
            joined = joined.and(self.joined(table)?);
        }
        Ok(joined)
    }

    fn joined(&mut self, table: &mut TableWithJoins) -> Result<Joined> {
        let mut left = self.factor(&mut table.relation)?;
        for join in &mut table.joins {
            let right = self.factor(&mut join.relation)?;
            let is_right = matches!(
                join.join_operator,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_)
            );
            let Some(constraint) = constraint_mut(&mut join.join_operator) else {
                left = left.and(right);
                continue;
            };
            let using: Option<Vec<String>> = match constraint {
                JoinConstraint::Natural => None,
                JoinConstraint::Using(names) => Some(using(names).map(str::to_owned).collect()),
                JoinConstraint::On(condition) => {
                    left = self.on(condition, left.and(right))?;
                    continue;
                }
                JoinConstraint::None => {
                    left = left.and(right);
                    continue;
                }
            };
            let (joined, condition) = left.by_name(right, using.as_deref(), is_right)?;
            *constraint = JoinConstraint::On(condition);
            left = joined;
        }
        Ok(left)
    }

    /// The condition of a join names the tables that are joined.
    fn on(&mut self, condition: &mut Expr, joined: Joined) -> Result<Joined> {
        self.scopes.push(joined);
        let written = self.names(condition, "on clause", None);
        let joined = self.scopes.pop().unwrap_or_default();
        written.map(|()| joined)
    }

    fn factor(&mut self, factor: &mut TableFactor) -> Result<Joined> {
        if is_dual(factor, self.bindings) {
            return Ok(Joined::default());
        }
        resolve(factor);
        match factor {
            TableFactor::Table {
                name, alias, args, ..
            } if args.is_none() => self.table(name, alias.as_ref()),
            TableFactor::Derived {
                subquery, alias, ..
            } => {
                let columns = self.apart(|writer| writer.query(subquery))?;
                Ok(match alias {
                    Some(alias) => derived(alias.name.clone(), declared(alias).or(columns)),
                    None => Joined::unknown(unknown_columns()),
                })
            }
            TableFactor::NestedJoin {
                table_with_joins,
                alias: None,
            } => self.joined(table_with_joins),
            _ => Ok(Joined::unknown(unknown_columns())),
        }
    }

    fn table(&self, name: &ObjectName, alias: Option<&TableAlias>) -> Result<Joined> {
        let called: Vec<Ident> = match alias {
            Some(alias) => vec![alias.name.clone()],
            None => {
                let parts = name.0.iter().filter_map(|part| part.as_ident());
                parts.cloned().collect()
            }
        };
        let Some(table) = table_name(name) else {
            return Ok(Joined::unknown(unknown_columns()));
        };
        if table.database.is_none()
            && let Some((_, columns)) = self.ctes.iter().rev().find(|(cte, _)| *cte == table.table)
        {
            return Ok(match called.into_iter().next() {
                Some(name) => derived(name, columns.clone()),
                None => Joined::unknown(unknown_columns()),
            });
        }
        let bindings = self.bindings;
        let Some(database) = table.database.or_else(|| bindings.database.clone()) else {
            let reason = MySqlError::new(ErrorCode::NoDatabase, &[]);
            return Ok(Joined::unknown(reason));
        };
        let bound = bindings.table_or_file(Some(&database), &table.table);
        Ok(match bound {
            Some(bound) => Joined::table(called, columns_of(bound)),
            None => Joined::unknown(MySqlError::no_such_table(&database, &table.table)),
        })
    }
}

/// The columns of a table, and whether `*` shows them.
fn columns_of(bound: &BoundTable) -> impl Iterator<Item = (String, bool)> {
    let columns = bound.columns.iter();
    columns.map(|column| (column.clone(), bound.shows(column)))
}

fn derived(name: Ident, columns: Names) -> Joined {
    match columns {
        Some(columns) => {
            let columns = columns.into_iter().map(|column| (column, true));
            Joined::table(vec![name], columns)
        }
        None => Joined::unknown(unknown_columns()),
    }
}

/// The names that an alias gives to columns.
fn declared(alias: &TableAlias) -> Names {
    let columns = alias.columns.iter().map(|column| column.name.value.clone());
    (!alias.columns.is_empty()).then(|| columns.collect())
}

fn refused(what: &str) -> MySqlError {
    MySqlError::new(ErrorCode::NotSupportedYet, &[&what])
}

fn unknown_columns() -> MySqlError {
    refused("NATURAL JOIN or USING beside a table whose columns are not known before it is planned")
}
