//! Literals of many bytes become functions, which a plan does not copy ([`LongTexts`]).

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, ObjectNamePart, Query,
    SetExpr, Value, VisitorMut,
};

use super::call;
use crate::functions::LongTexts;

/// Takes literals of many bytes out of a statement.
pub(super) struct LongLiterals<'a> {
    texts: &'a LongTexts,
    /// For each query that is being visited, whether it has rows of VALUES, which are computed
    /// while it is planned.
    has_values: Vec<bool>,
}

impl<'a> LongLiterals<'a> {
    pub(super) fn new(texts: &'a LongTexts) -> Self {
        Self {
            texts,
            has_values: Vec::new(),
        }
    }

    /// Puts a literal back that has been taken out.
    fn put_back(&self, expr: &mut Expr) {
        if let Expr::Function(function) = expr
            && let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice()
            && let Some(text) = self.texts.text(&name.value)
        {
            *expr = Expr::Value(Value::SingleQuotedString(text.as_ref().to_owned()).into());
        }
    }
}

impl VisitorMut for LongLiterals<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.has_values.push(has_values(&query.body));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.has_values.pop();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Value(value) if self.has_values.last() != Some(&true) => {
                if let Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) =
                    &mut value.value
                    && LongTexts::is_one(text)
                {
                    let name = self.texts.take(std::mem::take(text));
                    *expr = call(&name, Vec::new());
                }
            }
            // A separator, a default: the planner wants a literal there.
            Expr::Function(function) if wants_literals(function) => {
                if let FunctionArguments::List(list) = &mut function.args {
                    for argument in &mut list.args {
                        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument {
                            self.put_back(expr);
                        }
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether rows of VALUES are among what a query puts together.
fn has_values(body: &SetExpr) -> bool {
    match body {
        SetExpr::Values(_) => true,
        SetExpr::SetOperation { left, right, .. } => has_values(left) || has_values(right),
        _ => false,
    }
}

/// Whether a function is an aggregate or a window, some of whose arguments are no expressions.
fn wants_literals(function: &Function) -> bool {
    let name = function.name.to_string();
    function.over.is_some() || name.to_ascii_lowercase().contains("group_concat")
}
