//! Rows of values, `(a, b)`: compared value by value, as MySQL defines it.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectNamePart, Query, Select, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
    TableWithJoins, UnaryOperator, Value,
};
use mayfly_types::{ErrorCode, MySqlError};

use crate::comparison::is_comparison;
use crate::parse;
use crate::select_list::is_wildcard;
use crate::shallow;

/// Rewrites a comparison of rows whose children have been rewritten.
///
/// # Errors
/// 1241 when the two sides have different widths.
pub(super) fn rewrite(expr: &mut Expr) -> Result<(), MySqlError> {
    if let Expr::Function(function) = expr
        && let Some(values) = row_constructor(function)
    {
        *expr = Expr::Tuple(values);
        return Ok(());
    }
    if let Expr::BinaryOp { left, op, right } = expr {
        let (left, right) = (values(left), values(right));
        let (Some(left), Some(right)) = (left.as_deref(), right.as_deref()) else {
            let width = left.or(right).map_or(1, |values| values.len());
            return match is_comparison(op) && width > 1 {
                true => Err(MySqlError::new(ErrorCode::OperandColumns, &[&width])),
                false => Ok(()),
            };
        };
        if left.len() != right.len() {
            return Err(MySqlError::new(ErrorCode::OperandColumns, &[&left.len()]));
        }
        if let Some(compared) = compare(left, op, right) {
            *expr = compared;
        }
        return Ok(());
    }
    if let Expr::InList {
        expr: value,
        list,
        negated,
    } = expr
        && let Some(value) = values(value)
    {
        let mut equal = Vec::with_capacity(list.len());
        for item in list {
            equal.extend(match values(item) {
                Some(item) if item.len() == value.len() => {
                    compare(&value, &BinaryOperator::Eq, &item)
                }
                _ => return Err(MySqlError::new(ErrorCode::OperandColumns, &[&value.len()])),
            });
        }
        let any = |any, one| connected(any, BinaryOperator::Or, one);
        if let Some(any) = shallow::joined(equal, any) {
            let any = Expr::Nested(Box::new(any));
            *expr = if *negated { not(any) } else { any };
        }
    }
    Ok(())
}

/// `(a, b) IN (SELECT ...)` in a condition, which asks only whether it is true: as EXISTS.
///
/// # Errors
/// 1241 when a subquery with a select list of known width has another number of columns.
pub(super) fn in_subqueries(condition: &mut Expr) -> Result<(), MySqlError> {
    match condition {
        Expr::Nested(inner) => in_subqueries(inner),
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And | BinaryOperator::Or,
            right,
        } => {
            in_subqueries(left)?;
            in_subqueries(right)
        }
        Expr::InSubquery {
            expr,
            subquery,
            negated,
        } => {
            let Some(values) = values(expr) else {
                return Ok(());
            };
            *condition = exists(&values, subquery, *negated)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

fn exists(values: &[Expr], subquery: &Query, negated: bool) -> Result<Expr, MySqlError> {
    if let SetExpr::Select(select) = subquery.body.as_ref() {
        let width = select.projection.len();
        if !select.projection.iter().any(is_wildcard) && width != values.len() {
            return Err(MySqlError::new(ErrorCode::OperandColumns, &[&values.len()]));
        }
    }
    // Names that no statement can write, so that the values keep their meaning.
    let name = |index: usize| Ident::with_quote('`', format!("\u{1}value {index}"));
    let columns: Vec<Expr> = (0..values.len())
        .map(|index| Expr::Identifier(name(index)))
        .collect();
    let mut equal = compare(&columns, &BinaryOperator::Eq, values)
        .unwrap_or_else(|| Expr::Value(Value::Null.into()));
    if negated {
        // A comparison that is unknown makes NOT IN unknown, which is not true.
        equal = Expr::IsNotFalse(Box::new(equal));
    }
    let mut query = parse::select_one()?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        // It stands nowhere in the statement.
        select.select_token = AttachedToken::empty();
        fill(select, subquery, values.len(), &name, equal);
    }
    Ok(Expr::Exists {
        subquery: Box::new(query),
        negated,
    })
}

fn fill(
    select: &mut Select,
    subquery: &Query,
    width: usize,
    name: &dyn Fn(usize) -> Ident,
    condition: Expr,
) {
    let columns = (0..width)
        .map(|index| TableAliasColumnDef {
            name: name(index),
            data_type: None,
        })
        .collect();
    select.from = vec![TableWithJoins {
        relation: TableFactor::Derived {
            lateral: false,
            subquery: Box::new(subquery.clone()),
            alias: Some(TableAlias {
                explicit: true,
                name: Ident::with_quote('`', "\u{1}rows"),
                columns,
                at: None,
            }),
            sample: None,
        },
        joins: Vec::new(),
    }];
    select.selection = Some(condition);
}

/// The arguments of `ROW(a, b)`.
fn row_constructor(function: &Function) -> Option<Vec<Expr>> {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
        return None;
    };
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    if !name.value.eq_ignore_ascii_case("row") || list.args.len() < 2 {
        return None;
    }
    list.args
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        })
        .collect()
}

/// The values of a row.
fn values(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Tuple(values) => Some(values.clone()),
        Expr::Nested(inner) => values(inner),
        _ => None,
    }
}

fn compare(left: &[Expr], op: &BinaryOperator, right: &[Expr]) -> Option<Expr> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or, Spaceship};
    let pairs = || left.iter().zip(right);
    let all = |op: BinaryOperator, joined_by: BinaryOperator| {
        pairs().fold(None, |all, (left, right)| {
            join(
                all,
                joined_by.clone(),
                Some(binary(left, op.clone(), right)),
            )
        })
    };
    match op {
        Eq => all(Eq, And),
        Spaceship => all(Spaceship, And),
        NotEq => all(NotEq, Or),
        Lt | LtEq | Gt | GtEq => {
            let strict = if matches!(op, Lt | LtEq) { Lt } else { Gt };
            let (left_last, right_last) = (left.last()?, right.last()?);
            let mut whole = binary(left_last, op.clone(), right_last);
            for (left, right) in pairs().rev().skip(1) {
                let equal = join(Some(binary(left, Eq, right)), And, Some(whole));
                whole = join(Some(binary(left, strict.clone(), right)), Or, equal)?;
            }
            Some(whole)
        }
        _ => None,
    }
}

fn binary(left: &Expr, op: BinaryOperator, right: &Expr) -> Expr {
    connected(left.clone(), op, right.clone())
}

fn connected(left: Expr, op: BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    }
}

fn join(left: Option<Expr>, op: BinaryOperator, right: Option<Expr>) -> Option<Expr> {
    match (left, right) {
        (Some(left), Some(right)) => Some(Expr::Nested(Box::new(connected(left, op, right)))),
        (left, right) => left.or(right),
    }
}

fn not(expr: Expr) -> Expr {
    Expr::UnaryOp {
        op: UnaryOperator::Not,
        expr: Box::new(Expr::Nested(Box::new(expr))),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;
    use crate::dialect::MayflyDialect;

    fn rewritten(text: &str) -> Expr {
        let dialect = MayflyDialect::for_text(text.len(), text.len());
        let parser = Parser::new(&dialect).try_with_sql(text);
        let mut expr = parser.and_then(|mut parser| parser.parse_expr()).unwrap();
        rewrite(&mut expr).unwrap();
        expr
    }

    fn depth(expr: &Expr) -> usize {
        match expr {
            Expr::BinaryOp { left, right, .. } => 1 + depth(left).max(depth(right)),
            Expr::Nested(inner) => depth(inner),
            _ => 0,
        }
    }

    #[test]
    fn rows_in_a_list_are_compared_in_their_order() {
        assert_eq!(
            rewritten("(a, b) IN ((1, 2), (3, 4))").to_string(),
            "((a = 1 AND b = 2) OR (a = 3 AND b = 4))"
        );
        assert_eq!(
            rewritten("(a, b) NOT IN ((1, 2))").to_string(),
            "NOT (((a = 1 AND b = 2)))"
        );
    }

    #[test]
    fn many_rows_in_a_list_are_shallow() {
        let rows: Vec<String> = (0..1000).map(|row| format!("({row}, 1)")).collect();
        let expr = rewritten(&format!("(a, b) IN ({})", rows.join(", ")));
        // Two for the values of a row.
        assert_eq!(depth(&expr), crate::shallow::depth(1000) + 2);
        let text = expr.to_string();
        let places = (0..1000).map(|row| text.find(&format!("(a = {row} AND")));
        assert!(places.clone().all(|place| place.is_some()));
        assert!(places.is_sorted());
    }
}
