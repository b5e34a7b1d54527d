//! Where in a statement a column is named: MySQL says it in the error for an unknown column.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, JoinConstraint, OrderByKind, Query, Select, SetExpr, Visitor,
};

use crate::select_list::expression_of;
use crate::{from_list, walk};

/// MySQL's name of the clause of `query` that names this column, with its table or without.
pub fn of_column(query: &Query, column: &str) -> &'static str {
    let last = column.rsplit('.').next().unwrap_or(column);
    let clause = |name| {
        let mut search = Search { name, found: None };
        let _ = walk::read(query, &mut search);
        search.found
    };
    clause(column)
        .or_else(|| clause(last))
        .unwrap_or("field list")
}

/// The name of a column behind a table as `query` writes it, with all that stands before it; `None`
/// for one that stands alone.
pub fn written(query: &Query, column: &str) -> Option<String> {
    { column.contains('.') }.then(|| find(query, &|name| ends_with(name, column)))?
}

/// The first column that `query` names behind this word.
pub fn behind(query: &Query, word: &str) -> Option<String> {
    find(query, &|name| {
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        !rest.is_empty() && first.eq_ignore_ascii_case(word)
    })
}

/// The first name of a column that is the one, in subqueries too.
fn find(query: &Query, is_it: &dyn Fn(&str) -> bool) -> Option<String> {
    struct Find<'a> {
        is_it: &'a dyn Fn(&str) -> bool,
        found: Option<String>,
    }
    impl Visitor for Find<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            self.found = name_of(expr).filter(|name| (self.is_it)(name));
            match self.found {
                Some(_) => ControlFlow::Break(()),
                None => ControlFlow::Continue(()),
            }
        }
    }
    let mut find = Find { is_it, found: None };
    let _ = walk::read(query, &mut find);
    find.found
}

/// The name of a column, with all that stands before it.
fn name_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Identifier(ident) => Some(ident.value.clone()),
        Expr::CompoundIdentifier(parts) => {
            let parts: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
            Some(parts.join("."))
        }
        _ => None,
    }
}

/// Whether a name is another one, or that one behind a table.
fn ends_with(name: &str, end: &str) -> bool {
    let Some(before) = name.len().checked_sub(end.len()) else {
        return false;
    };
    let is_end = { name.get(before..) }.is_some_and(|last| last.eq_ignore_ascii_case(end));
    is_end && (before == 0 || name[..before].ends_with('.'))
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
        name_of(expr).is_some_and(|written| ends_with(&written, name))
    })
}
