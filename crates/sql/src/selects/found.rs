//! What a SELECT finds in one of its expressions: columns, subqueries and windows.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Function, Query, Visitor, WindowType};

use super::block::Window;
use crate::references::variable;

/// What an expression mentions outside of its subqueries, and those.
#[derive(Default)]
pub(super) struct Found {
    depth: usize,
    pub(super) queries: Vec<Query>,
    pub(super) columns: Vec<Vec<String>>,
    pub(super) windows: Vec<Window>,
}

/// The window of a function, if it has one.
fn window_of(function: &Function) -> Option<Window> {
    let (name, text) = match function.over.as_ref()? {
        WindowType::NamedWindow(name) => (Some(name.value.clone()), String::new()),
        WindowType::WindowSpec(spec) => (None, spec.to_string()),
    };
    Some(Window {
        name,
        text,
        functions: vec![function.name.to_string().to_lowercase()],
    })
}

impl Visitor for Found {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if self.depth == 0 {
            self.queries.push(query.clone());
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let names = match expr {
            Expr::Identifier(name) => std::slice::from_ref(name),
            Expr::CompoundIdentifier(names) => names,
            _ => &[],
        };
        if self.depth == 0 && !names.is_empty() && variable(expr).is_none() {
            let names = names.iter().map(|name| name.value.to_lowercase());
            self.columns.push(names.collect());
        }
        if self.depth == 0
            && let Expr::Function(function) = expr
        {
            self.windows.extend(window_of(function));
        }
        ControlFlow::Continue(())
    }
}
