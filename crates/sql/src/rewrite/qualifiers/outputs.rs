//! Names behind a table in HAVING and ORDER BY, which mean items of the select list before they
//! mean columns of FROM.
//!
//! ```text
//!   SELECT d.t.a FROM d.t JOIN e.t USING (a) ORDER BY t.a      d.t.a
//!   SELECT d.t.a FROM d.t, e.t HAVING t.a > 1                  d.t.a
//! ```
//!
//! In HAVING each of them does, outside of aggregates and subqueries, and a column that is grouped
//! by goes before an item; in ORDER BY only one that is all of what is ordered by, and whose table
//! FROM alone tells as well.
//!
//! **Source**: `find_order_in_list` and `resolve_ref_in_select_and_group` of MariaDB's
//! `sql/sql_select.cc` and `sql/item.cc`.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, JoinConstraint, Query, Select, SelectItem, SetExpr, VisitorMut,
};

use super::relations::{Refused, Relation, column_of};
use crate::from_list;
use crate::inner_name::{is_inner, shown};
use crate::rewrite::refused::is_aggregate;
use crate::select_list::{expression_of, table_of_star};
use crate::walk::{self, counts_depth};

/// What the names in FROM mean.
type Settled<'f> = dyn Fn(&[Ident]) -> Result<Option<Vec<Ident>>, Refused> + 'f;

/// A select whose list is settled, and its tables.
#[derive(Clone, Copy)]
pub(super) struct Outputs<'a> {
    select: &'a Select,
    relations: &'a [Relation],
}

/// The select whose list ORDER BY sees, with its tables.
pub(super) fn of_body<'a>(body: &'a SetExpr, relations: &'a [Relation]) -> Option<Outputs<'a>> {
    match body {
        SetExpr::Select(select) => Some(Outputs::new(select, relations)),
        SetExpr::Query(query) => of_body(&query.body, relations),
        _ => None,
    }
}

impl<'a> Outputs<'a> {
    pub(super) fn new(select: &'a Select, relations: &'a [Relation]) -> Outputs<'a> {
        Outputs { select, relations }
    }

    /// Settles what is ordered by if it is one name; `settled` tells what that means in FROM.
    pub(super) fn order(self, expr: &mut Expr, settled: &Settled<'_>) -> Result<(), Refused> {
        match expr {
            Expr::Nested(inner) => self.order(inner, settled),
            Expr::CompoundIdentifier(parts) => {
                // It is refused where FROM has several.
                if let Some(meant) = self.item(parts)?
                    && settled(parts)?.is_some()
                {
                    *parts = meant;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Settles the names in HAVING that mean a column that is grouped by or an item.
    pub(super) fn choose(
        self,
        condition: &mut Expr,
        aggregates: &HashSet<String>,
    ) -> Result<(), Refused> {
        let mut having = Having {
            outputs: self,
            aggregates,
            depth: 0,
            refused: None,
        };
        let _ = walk::write(condition, &mut having);
        having.refused.map_or(Ok(()), Err)
    }

    /// The column that is grouped by which a name means, if its table shares its name.
    fn key(self, parts: &[Ident]) -> Result<Option<Vec<Ident>>, Refused> {
        let GroupByExpr::Expressions(keys, _) = &self.select.group_by else {
            return Ok(None);
        };
        let [table, column] = parts else {
            return Ok(None);
        };
        let found = keys.iter().filter_map(|key| table_of(key, table, column));
        only(found, table, column)
    }

    /// The same for a column that is shown.
    fn item(self, parts: &[Ident]) -> Result<Option<Vec<Ident>>, Refused> {
        let [table, column] = parts else {
            return Ok(None);
        };
        let has_it =
            |relation: &&Relation| relation.name == table.value && !relation.lacks(&column.value);
        let having_it = self.relations.iter().filter(has_it);
        let having_it: Vec<&str> = { having_it.filter_map(|of| of.inner.as_deref()) }.collect();
        let found = self.select.projection.iter().flat_map(|item| match item {
            // A common column is shown once, for all tables.
            SelectItem::Wildcard(_) if self.is_common(&column.value) => Vec::new(),
            SelectItem::Wildcard(_) => having_it.clone(),
            item => match (table_of_star(item), expression_of(item)) {
                (Some(star), _) => {
                    let star = star.0.last().and_then(|part| part.as_ident());
                    let is_shown = |of: &&&str| star.is_some_and(|star| star.value == ***of);
                    having_it.iter().filter(is_shown).copied().collect()
                }
                (None, Some(expr)) => table_of(expr, table, column).into_iter().collect(),
                (None, None) => Vec::new(),
            },
        });
        only(found, table, column)
    }

    /// Whether tables are joined by a column that several of them have.
    fn is_common(self, column: &str) -> bool {
        let joins = from_list::joins(&self.select.from).into_iter();
        let mut constraints = joins.filter_map(from_list::constraint);
        constraints.any(|constraint| match constraint {
            JoinConstraint::Natural => true,
            JoinConstraint::Using(names) => {
                from_list::using(names).any(|name| name.to_lowercase() == column.to_lowercase())
            }
            _ => false,
        })
    }
}

struct Having<'a> {
    outputs: Outputs<'a>,
    aggregates: &'a HashSet<String>,
    /// How many subqueries and aggregates are around.
    depth: usize,
    refused: Option<Refused>,
}

impl Having<'_> {
    fn meant(&self, parts: &[Ident]) -> Result<Option<Vec<Ident>>, Refused> {
        match self.outputs.key(parts)? {
            Some(key) => Ok(Some(key)),
            None => self.outputs.item(parts),
        }
    }
}

impl VisitorMut for Having<'_> {
    type Break = ();

    counts_depth!(&mut Query);

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.depth += usize::from(is_aggregate(expr, self.aggregates));
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let meant = match column_of(expr) {
            Some(parts) => self.meant(parts),
            None => Ok(None),
        };
        match meant {
            Ok(Some(parts)) => *expr = Expr::CompoundIdentifier(parts),
            Ok(None) => {}
            Err(refused) => {
                self.refused = Some(refused);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.depth -= usize::from(is_aggregate(expr, self.aggregates));
        ControlFlow::Continue(())
    }
}

/// The table, by the name that the planner knows, of a column in parentheses or not that a name
/// means.
fn table_of<'e>(expr: &'e Expr, table: &Ident, column: &Ident) -> Option<&'e str> {
    if let Expr::Nested(inner) = expr {
        return table_of(inner, table, column);
    }
    let [of, named] = column_of(expr)? else {
        return None;
    };
    let is_meant = is_inner(&of.value)
        && shown(&of.value) == table.value
        && named.value.to_lowercase() == column.value.to_lowercase();
    is_meant.then_some(&of.value)
}

/// A column of the only one of some tables.
fn only<'e>(
    tables: impl Iterator<Item = &'e str>,
    table: &Ident,
    column: &Ident,
) -> Result<Option<Vec<Ident>>, Refused> {
    let mut found: Option<&str> = None;
    for of in tables {
        if found.is_some_and(|other| other != of) {
            let written = format!("{}.{}", table.value, column.value);
            return Err(Refused::Ambiguous(written));
        }
        found = Some(of);
    }
    Ok(found.map(|of| vec![Ident::with_quote('`', of), column.clone()]))
}
