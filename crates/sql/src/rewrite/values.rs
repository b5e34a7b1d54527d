//! `VALUES ROW(1), ROW('a')`: rows whose values are not of one kind.
//!
//! The planner gives each column one type and converts what is of another, text to numbers among
//! them. MySQL gives it the type that a UNION of the rows has; such rows become one.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, UnaryOperator, Value,
    Values, VisitorMut,
};
use mayfly_types::MySqlError;

use crate::parse::select_one;
use crate::walk;

/// Rows that become a UNION: each of them is planned.
const ROWS_MAX: usize = 500;

/// Writes rows of several kinds as a UNION.
pub(crate) fn unite(query: &mut Query) -> Result<(), MySqlError> {
    struct Unite(Option<MySqlError>);
    impl VisitorMut for Unite {
        type Break = ();

        fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
            match body(&mut query.body) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    self.0 = Some(error);
                    ControlFlow::Break(())
                }
            }
        }
    }
    let mut unite = Unite(None);
    let _ = walk::write(query, &mut unite);
    unite.0.map_or(Ok(()), Err)
}

fn body(set: &mut SetExpr) -> Result<(), MySqlError> {
    match set {
        SetExpr::SetOperation { left, right, .. } => {
            body(left)?;
            body(right)
        }
        SetExpr::Values(values) if is_mixed(values) => {
            let mut parts = Vec::with_capacity(values.rows.len());
            for row in std::mem::take(&mut values.rows) {
                parts.push(select(row.content)?);
            }
            let united = parts
                .into_iter()
                .reduce(|left, right| SetExpr::SetOperation {
                    op: SetOperator::Union,
                    set_quantifier: SetQuantifier::All,
                    left: Box::new(left),
                    right: Box::new(right),
                });
            if let Some(united) = united {
                *set = united;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A row as a query, with the names that the planner gives to columns of VALUES.
fn select(row: Vec<Expr>) -> Result<SetExpr, MySqlError> {
    let mut one = select_one()?;
    if let SetExpr::Select(select) = one.body.as_mut() {
        // It stands nowhere in the text.
        select.select_token = AttachedToken::empty();
        let items = row.into_iter().enumerate();
        select.projection = items
            .map(|(index, expr)| SelectItem::ExprWithAlias {
                expr,
                alias: Ident::new(format!("column{}", index + 1)),
            })
            .collect();
    }
    Ok(*one.body)
}

/// Whether a column has values of several kinds, or some whose kind is not seen; not if rows have
/// not as many values as others, which the planner refuses.
fn is_mixed(values: &Values) -> bool {
    let Some(first) = values.rows.first() else {
        return false;
    };
    let width = first.content.len();
    let is_even = values.rows.iter().all(|row| row.content.len() == width);
    is_even
        && (2..=ROWS_MAX).contains(&values.rows.len())
        && (0..width).any(|column| {
            let all = values.rows.iter().map(|row| kind(&row.content[column]));
            let mut known = all.filter(|kind| *kind != Kind::Null);
            let first = known.next();
            known.any(|kind| kind == Kind::Other || Some(kind) != first)
        })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Null,
    Integer,
    Decimal,
    Text,
    Other,
}

fn kind(expr: &Expr) -> Kind {
    match expr {
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => kind(expr),
        Expr::Value(value) => match &value.value {
            Value::Null => Kind::Null,
            Value::Number(digits, _) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                Kind::Integer
            }
            Value::Number(digits, _) if !digits.contains(['e', 'E']) => Kind::Decimal,
            Value::SingleQuotedString(_) | Value::DoubleQuotedString(_) => Kind::Text,
            _ => Kind::Other,
        },
        _ => Kind::Other,
    }
}
