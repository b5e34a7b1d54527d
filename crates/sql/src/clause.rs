//! Where in a statement a column is named: MySQL says it in the error for an unknown column.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, JoinConstraint, OrderByKind, Query, Select, SetExpr, Visitor,
};

use crate::select_list::expression_of;
use crate::{from_list, walk};

/// MySQL's name of the clause of `query` that names this column; the last part of the name
/// decides.
pub fn of_column(query: &Query, column: &str) -> &'static str {
    let name = column.rsplit('.').next().unwrap_or(column);
    let mut search = Search { name, found: None };
    let _ = walk::read(query, &mut search);
    search.found.unwrap_or("field list")
}

struct Search<'a> {
    name: &'a str,
    found: Option<&'static str>,
}

impl Visitor for Search<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let Some(order_by) = &query.order_by else {
            return ControlFlow::Continue(());
        };
        if let OrderByKind::Expressions(list) = &order_by.kind
            && list.iter().any(|by| names(&by.expr, self.name))
            && !in_selects(&query.body, self.name)
        {
            self.found = Some("order clause");
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.found = clause(select, self.name);
        if self.found.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

fn in_selects(body: &SetExpr, name: &str) -> bool {
    match body {
        SetExpr::Select(select) => clause(select, name).is_some(),
        SetExpr::SetOperation { left, right, .. } => {
            in_selects(left, name) || in_selects(right, name)
        }
        _ => false,
    }
}

fn clause(select: &Select, name: &str) -> Option<&'static str> {
    let on = from_list::joins(&select.from).into_iter().any(|join| {
        matches!(from_list::constraint(join), Some(JoinConstraint::On(on)) if names(on, name))
    });
    let mut listed = select.projection.iter().filter_map(expression_of);
    let listed = listed.any(|expr| names(expr, name));
    let grouped = match &select.group_by {
        GroupByExpr::Expressions(list, _) => list.iter().any(|expr| names(expr, name)),
        GroupByExpr::All(_) => false,
    };
    if on {
        Some("on clause")
    } else if select
        .selection
        .iter()
        .any(|condition| names(condition, name))
    {
        Some("where clause")
    } else if listed {
        Some("field list")
    } else if grouped {
        Some("group statement")
    } else if select.having.iter().any(|condition| names(condition, name)) {
        Some("having clause")
    } else {
        None
    }
}

/// Whether an expression names a column, subqueries left out.
fn names(expr: &Expr, name: &str) -> bool {
    walk::finds(expr, &mut |expr| {
        let last = match expr {
            Expr::Identifier(ident) => Some(ident),
            Expr::CompoundIdentifier(parts) => parts.last(),
            _ => None,
        };
        last.is_some_and(|ident| ident.value.eq_ignore_ascii_case(name))
    })
}
