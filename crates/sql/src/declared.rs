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

#[cfg(test)]
mod tests {
    use crate::parse::parse_expression;

    #[test]
    fn operations_stand_in_parentheses() {
        for (input, expect) in [
            ("a + 1", "(`a` + 1)"),
            ("(a + 1) * b", "((`a` + 1) * `b`)"),
            ("((a))", "`a`"),
            (
                "a > 3 and b is not null",
                "((`a` > 3) AND (`b` IS NOT NULL))",
            ),
            ("concat(a, 'x')", "concat(`a`, 'x')"),
        ] {
            let read = parse_expression(input).expect(input);
            assert_eq!(super::text(&read), expect);
            let again = parse_expression(expect).expect(expect);
            assert_eq!(super::text(&again), expect);
        }
    }

    #[test]
    fn columns_are_found_at_every_depth() {
        let read = parse_expression("concat(A, t.b) > 3 or not c").expect("an expression");
        let mut columns: Vec<String> = super::columns(&read).into_iter().collect();
        columns.sort();
        assert_eq!(columns, ["a", "b", "c"]);
    }
}
