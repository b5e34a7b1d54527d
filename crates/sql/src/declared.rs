//! The expressions of a table's definition: their text, and the columns that they mention.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{Expr, Value};

use crate::walk;

/// An expression as MySQL prints it: names in backquotes, each operation in parentheses.
pub fn text(expression: &Expr) -> String {
    let mut expression = expression.clone();
    walk::change_expressions(&mut expression, &mut |expr| match expr {
        Expr::Identifier(name) => name.quote_style = Some('`'),
        Expr::CompoundIdentifier(names) => {
            for name in names {
                name.quote_style = Some('`');
            }
        }
        Expr::Nested(inner) => {
            // Parentheses of its own, or none needed.
            let inner = std::mem::replace(inner.as_mut(), Expr::Value(Value::Null.into()));
            *expr = inner;
        }
        Expr::BinaryOp { .. }
        | Expr::UnaryOp { .. }
        | Expr::Between { .. }
        | Expr::InList { .. }
        | Expr::Like { .. }
        | Expr::IsNull(_)
        | Expr::IsNotNull(_) => {
            let inner = std::mem::replace(expr, Expr::Value(Value::Null.into()));
            *expr = Expr::Nested(Box::new(inner));
        }
        _ => {}
    });
    expression.to_string()
}

/// The columns that an expression mentions, in lower case.
pub fn columns(expression: &Expr) -> HashSet<String> {
    let mut found = HashSet::new();
    walk::finds(expression, &mut |expr| {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last(),
            _ => None,
        };
        found.extend(name.map(|name| name.value.to_lowercase()));
        false
    });
    found
}
