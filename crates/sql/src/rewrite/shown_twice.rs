//! Names in GROUP BY, HAVING and ORDER BY under which a select list shows several things.
//!
//! ```text
//!   SELECT a AS x, b AS x FROM t ORDER BY x        1052
//!   SELECT a AS x, t.a AS x FROM t ORDER BY x      a
//!   SELECT a AS x, b + 0 AS x FROM t ORDER BY x    b + 0: an expression goes before a column
//! ```
//!
//! The planner takes one of them in silence. [`labels::name`] leaves the name to the one that is
//! meant; here names that mean none of them are refused. In ORDER BY and GROUP BY a name that
//! stands alone means an item, in HAVING each one outside of aggregates does. Within other
//! expressions a name means an item only where no table of FROM has a column of that name, and
//! nothing where several have. In HAVING what is grouped by goes before an item:
//!
//! ```text
//!   SELECT a AS x, MAX(b) AS x FROM t GROUP BY a HAVING x > 1     a
//! ```
//!
//! **Source**: `find_item_in_list` and `Item_field::fix_fields` of MariaDB's `sql/sql_base.cc` and
//! `sql/item.cc`.
//!
//! [`labels::name`]: super::labels::name

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Value,
    VisitorMut,
};
use mayfly_types::MySqlError;

use super::common_columns::{Found, Outputs, ambiguous, grouped, is_same, nested};
use super::found_columns::{any, table_has};
use super::labels;
use super::query_columns::Columns;
use super::refused::is_aggregate;
use super::relation::name_of;
use crate::from_list;
use crate::select_list::{column, expression_of, is_wildcard, table_of_star};
use crate::typing::syntax;
use crate::walk::{self, change_expressions};

type Result<T> = std::result::Result<T, MySqlError>;

/// Looks at ORDER BY of a query that is not yet rewritten.
///
/// # Errors
/// 1052 for a name that means several items, or columns of several tables.
pub(super) fn check_order(query: &Query, columns: Columns<'_>) -> Result<()> {
    Shown(columns).check_order(query)
}

/// Looks at the other clauses of a select that is not yet rewritten, and writes what is grouped by
/// in the place of its names in HAVING that mean something else in the select list.
///
/// # Errors
/// As [`check_order`].
pub(super) fn settle_clauses(select: &mut Select, columns: Columns<'_>) -> Result<()> {
    let grouped = Shown(columns).check_clauses(select)?;
    if let Some(having) = &mut select.having
        && !grouped.is_empty()
    {
        let mut writer = Having::new(&columns.bindings.aggregates, |name, is_within| {
            grouped
                .get(&(name.value.to_lowercase(), is_within))
                .cloned()
        });
        let _ = walk::write(having, &mut writer);
    }
    Ok(())
}

/// Looks names up.
#[derive(Clone, Copy)]
struct Shown<'a>(Columns<'a>);

impl Shown<'_> {
    fn check_order(self, query: &Query) -> Result<()> {
        let Some(OrderBy {
            kind: OrderByKind::Expressions(list),
            ..
        }) = &query.order_by
        else {
            return Ok(());
        };
        let keys = || list.iter().map(|by| &by.expr);
        match innermost(&query.body) {
            SetExpr::Select(select) => self.check_names(select, "order clause", |names| {
                keys().for_each(|key| names.add_key(key));
            }),
            // An order names columns of the result, so even the same column twice are two.
            body @ SetExpr::SetOperation { .. } => {
                let mut counts: HashMap<String, usize> = HashMap::new();
                for label in self.0.of_body(body) {
                    *counts.entry(label.to_lowercase()).or_default() += 1;
                }
                let is_twice = |name: &&Ident| {
                    { counts.get(&name.value.to_lowercase()) }.is_some_and(|count| *count > 1)
                };
                let twice = keys().filter_map(alone).find(is_twice);
                twice.map_or(Ok(()), |name| Err(ambiguous(&name.value, "order clause")))
            }
            _ => Ok(()),
        }
    }

    /// What some names of HAVING mean that are grouped by.
    fn check_clauses(self, select: &Select) -> Result<HashMap<Name, Expr>> {
        let keys: &[Expr] = match &select.group_by {
            GroupByExpr::Expressions(keys, _) => keys,
            GroupByExpr::All(_) => &[],
        };
        self.check_names(select, "group statement", |names| {
            keys.iter().for_each(|key| names.add_key(key));
        })?;
        let Some(having) = &select.having else {
            return Ok(HashMap::new());
        };
        let mut asked = Asked::default();
        let mut reader = Having::new(&self.0.bindings.aggregates, |name, is_within| {
            asked.add(name, is_within);
            None
        });
        let _ = walk::write(&mut having.clone(), &mut reader);
        self.check(select, "having clause", &asked)?;
        self.grouped(select, keys, &asked)
    }

    /// What the names of HAVING mean that are grouped by, but for those that the select list has
    /// for the same.
    fn grouped(self, select: &Select, keys: &[Expr], asked: &Asked) -> Result<HashMap<Name, Expr>> {
        let mut found = HashMap::new();
        if keys.is_empty() || asked.0.is_empty() {
            return Ok(found);
        }
        let clause = "having clause";
        let outputs = Outputs {
            items: &select.projection,
            keys,
            go_first: true,
        };
        let counts = self.counts(select);
        let keys = outputs.keys(&|name| counts.contains_key(name));
        for (name, _) in asked.in_order() {
            if name.1 && self.finds_column(select, &name.0) != Some(false) {
                continue;
            }
            let Some(key) = grouped(&keys, &name.0, clause)? else {
                continue;
            };
            let item = match outputs.find(&name.0, clause)? {
                Some(Found::Column(expr)) => Some(expr),
                Some(Found::Expression(place)) => expression_of(&select.projection[place]),
                Some(Found::Renamed(_)) | None => None,
            };
            if !item.is_some_and(|item| is_same(item, key)) {
                found.insert(name.clone(), nested(key));
            }
        }
        Ok(found)
    }

    /// Looks up the names that `add` finds in one clause.
    fn check_names(
        self,
        select: &Select,
        clause: &str,
        add: impl FnOnce(&mut Asked),
    ) -> Result<()> {
        let mut asked = Asked::default();
        add(&mut asked);
        self.check(select, clause, &asked)
    }

    fn check(self, select: &Select, clause: &str, asked: &Asked) -> Result<()> {
        if asked.0.is_empty() {
            return Ok(());
        }
        let items = self.items(select, asked);
        let counts = LazyCell::new(|| self.counts(select));
        for ((name, is_within), used) in asked.in_order() {
            let is_ambiguous = || {
                let Some(items) = items.get(name) else {
                    return false;
                };
                let outputs = Outputs {
                    items,
                    keys: &[],
                    go_first: false,
                };
                outputs.find(name, clause).is_err()
            };
            let refused = match is_within {
                true => match self.finds_column(select, name) {
                    Some(true) => counts.get(name).is_some_and(|count| *count > 1),
                    Some(false) => is_ambiguous(),
                    None => false,
                },
                false => is_ambiguous(),
            };
            if refused {
                return Err(ambiguous(&used.written, clause));
            }
        }
        Ok(())
    }

    /// Whether a table of FROM has a column of this name; `None` if one is not known.
    fn finds_column(self, select: &Select, name: &str) -> Option<bool> {
        let tables = from_list::tables(&select.from).into_iter();
        any(tables.map(|table| match self.0.cte(table) {
            Some(cte) if cte.columns.is_empty() => None,
            Some(cte) => Some(cte.columns.iter().any(|c| c.to_lowercase() == name)),
            None => table_has(table, name, self.0.bindings),
        }))
    }

    /// How many tables of FROM are known to have each column, by its name in lower case.
    fn counts(self, select: &Select) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for table in from_list::tables(&select.from) {
            let columns = self.0.of_table(table).into_iter();
            let columns: HashSet<String> = columns.map(|column| column.to_lowercase()).collect();
            for column in columns {
                *counts.entry(column).or_default() += 1;
            }
        }
        counts
    }

    /// The items that each of some names may mean, with `*` written out as far as columns are
    /// known.
    fn items(self, select: &Select, asked: &Asked) -> HashMap<String, Vec<SelectItem>> {
        let mut found: HashMap<String, Vec<SelectItem>> = HashMap::new();
        let names: HashSet<&str> = asked.0.keys().map(|(name, _)| name.as_str()).collect();
        let mut add = |name: &str, item: &dyn Fn() -> SelectItem| {
            let name = name.to_lowercase();
            if names.contains(name.as_str()) {
                found.entry(name).or_default().push(item());
            }
        };
        let texts = self.0.source.items(select.select_token.0.span.start);
        let called = from_list::tables(&select.from).into_iter();
        let called: Vec<String> = called.filter_map(name_of).collect();
        // Letter case counts in the names of tables: such a column is one that does not exist.
        let is_misspelled = |parts: &[Ident]| match parts {
            [.., table, _] if !called.contains(&table.value) => {
                let mut called = called.iter();
                called.any(|called| called.eq_ignore_ascii_case(&table.value))
            }
            _ => false,
        };
        let are_whole = texts.len() == select.projection.len();
        for (place, item) in select.projection.iter().enumerate() {
            if is_wildcard(item) {
                for (table, name) in self.starred(select, item) {
                    let parts = [&table, &name].map(|part| Ident::with_quote('`', part));
                    let expr = || Expr::CompoundIdentifier(parts.to_vec());
                    add(&name, &|| SelectItem::UnnamedExpr(expr()));
                }
                continue;
            }
            let text = are_whole.then(|| texts[place].as_str());
            let label = labels::label(item, text);
            let Some(expr) = expression_of(item) else {
                continue;
            };
            // What an expression is made of is of no interest, and may be long.
            let Some(parts) = column(expr) else {
                add(&label, &|| SelectItem::ExprWithAlias {
                    expr: Expr::Value(Value::Null.into()),
                    alias: Ident::with_quote('`', &label),
                });
                continue;
            };
            if is_misspelled(parts) {
                continue;
            }
            add(&label, &|| item.clone());
            if let Some(own) = parts.last()
                && own.value.to_lowercase() != label.to_lowercase()
            {
                add(&own.value, &|| item.clone());
            }
        }
        found
    }

    /// The columns that `*` or `t.*` shows, with what their tables are called.
    fn starred(self, select: &Select, item: &SelectItem) -> Vec<(String, String)> {
        let only = { table_of_star(item) }.and_then(|name| name.0.last()?.as_ident());
        let mut found = Vec::new();
        for table in from_list::tables(&select.from) {
            let Some(called) =
                name_of(table).filter(|name| only.is_none_or(|only| only.value == *name))
            else {
                continue;
            };
            let columns = self.0.of_table(table);
            found.extend(columns.into_iter().map(|name| (called.clone(), name)));
        }
        found
    }
}

/// A name in lower case, and whether it means a column of FROM before it means an item.
type Name = (String, bool);

/// The names of a clause.
#[derive(Default)]
struct Asked(HashMap<Name, Use>);

struct Use {
    /// Its place among the names of the clause: the first one that is ambiguous is told.
    place: usize,
    /// As it is written.
    written: String,
}

impl Asked {
    fn in_order(&self) -> Vec<(&Name, &Use)> {
        let mut names: Vec<(&Name, &Use)> = self.0.iter().collect();
        names.sort_by_key(|(_, used)| used.place);
        names
    }

    fn add(&mut self, name: &Ident, is_within: bool) {
        let place = self.0.len();
        let entry = self.0.entry((name.value.to_lowercase(), is_within));
        entry.or_insert_with(|| Use {
            place,
            written: name.value.clone(),
        });
    }

    /// Adds the names of a key of GROUP BY or ORDER BY.
    fn add_key(&mut self, key: &Expr) {
        if let Some(name) = alone(key) {
            self.add(name, false);
            return;
        }
        walk::finds(&without_units(key), &mut |expr| {
            if let (Expr::Identifier(_), Some(name)) = (expr, alone(expr)) {
                self.add(name, true);
            }
            false
        });
    }
}

/// Asks what the names of HAVING mean, and writes that in their place. In aggregates they mean
/// columns first.
struct Having<'a, F> {
    // fixed
    aggregates: &'a HashSet<String>,
    // state
    meaning: F,
    /// How many aggregates are around.
    depth: usize,
    subqueries: usize,
}

impl<'a, F: FnMut(&Ident, bool) -> Option<Expr>> Having<'a, F> {
    fn new(aggregates: &'a HashSet<String>, meaning: F) -> Having<'a, F> {
        Having {
            aggregates,
            meaning,
            depth: 0,
            subqueries: 0,
        }
    }
}

impl<F: FnMut(&Ident, bool) -> Option<Expr>> VisitorMut for Having<'_, F> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.depth += usize::from(is_aggregate(expr, self.aggregates));
        if let Expr::Function(function) = expr {
            // The unit of TIMESTAMPDIFF is no name.
            syntax::unit(function);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.depth -= usize::from(is_aggregate(expr, self.aggregates));
        if self.subqueries == 0
            && let (Expr::Identifier(_), Some(name)) = (&*expr, alone(expr))
            && let Some(meant) = (self.meaning)(name, self.depth > 0)
        {
            *expr = meant;
        }
        ControlFlow::Continue(())
    }
}

/// An expression without the units of TIMESTAMPDIFF and TIMESTAMPADD, which are no names.
fn without_units(expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    change_expressions(&mut expr, &mut |expr| {
        if let Expr::Function(function) = expr {
            syntax::unit(function);
        }
    });
    expr
}

/// The name that an expression is, in parentheses or not.
fn alone(expr: &Expr) -> Option<&Ident> {
    match column(expr)? {
        [name] => Some(name),
        _ => None,
    }
}

/// What an order behind parentheses sorts.
fn innermost(body: &SetExpr) -> &SetExpr {
    match body {
        SetExpr::Query(query) => innermost(&query.body),
        body => body,
    }
}
