//! Rewrites of syntax that the planner would refuse, or read in another sense, before any type is
//! known.
//!
//! Two entries: [`expression`] for a node whose children have been rewritten, [`condition`] for
//! what stands in WHERE, HAVING and ON.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, DateTimeField, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Interval, JoinConstraint,
    JoinOperator, ObjectNamePart, Select, UnaryOperator, Value,
};
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::comparison::is_comparison;
use crate::dialect::{MayflyDialect, NONE};
use crate::functions::own::{BIT_NOT, NEGATE, TO_BOOLEAN, TO_DOUBLE};
use crate::rewrite::call;

fn null() -> Expr {
    Expr::Value(Value::Null.into())
}

fn text(words: String) -> Expr {
    Expr::Value(Value::SingleQuotedString(words).into())
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, null())
}

/// Rewrites one node whose children have been rewritten.
pub fn expression(expr: &mut Expr) {
    match expr {
        // 1e3 is a DOUBLE, 1000.0 is a DECIMAL.
        Expr::Value(value) => {
            if let Value::Number(digits, _) = &value.value
                && digits.contains(['e', 'E'])
            {
                *expr = call(TO_DOUBLE, vec![text(digits.clone())]);
            }
        }
        Expr::UnaryOp { op, expr: operand } => match op {
            UnaryOperator::Not | UnaryOperator::BangNot => {
                let mut operand = take(operand);
                if !is_truth(&operand) {
                    operand = call(TO_BOOLEAN, vec![operand]);
                }
                *expr = Expr::UnaryOp {
                    op: UnaryOperator::Not,
                    expr: Box::new(operand),
                };
            }
            UnaryOperator::BitwiseNot => *expr = call(BIT_NOT, vec![take(operand)]),
            UnaryOperator::Plus => *expr = take(operand),
            UnaryOperator::Minus if !is_number(operand) => {
                *expr = call(NEGATE, vec![take(operand)]);
            }
            _ => {}
        },
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Plus,
            right,
        } => {
            if let Expr::Interval(interval) = right.as_ref() {
                *expr = moved("date_add", left, interval.clone());
            } else if let Expr::Interval(interval) = left.as_ref() {
                *expr = moved("date_add", right, interval.clone());
            }
        }
        Expr::BinaryOp {
            left,
            op: BinaryOperator::Minus,
            right,
        } => {
            if let Expr::Interval(interval) = right.as_ref() {
                *expr = moved("date_sub", left, interval.clone());
            }
        }
        Expr::Convert {
            expr: operand,
            data_type,
            ..
        } => {
            let data_type = data_type.clone().unwrap_or(DataType::Char(None));
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(take(operand)),
                data_type,
                array: false,
                format: None,
            };
        }
        // The planner takes a constant condition for a truth value before anything is typed.
        Expr::Case {
            operand: None,
            conditions,
            ..
        } => {
            for condition in conditions.iter_mut().map(|when| &mut when.condition) {
                if matches!(condition, Expr::Value(_)) && !is_truth(condition) {
                    *condition = call(TO_BOOLEAN, vec![take(condition)]);
                }
            }
        }
        Expr::Function(function) => function_call(function),
        _ => {}
    }
}

/// The units of an interval.
const UNITS: [&str; 20] = [
    "YEAR",
    "QUARTER",
    "MONTH",
    "WEEK",
    "DAY",
    "HOUR",
    "MINUTE",
    "SECOND",
    "MICROSECOND",
    "YEAR_MONTH",
    "DAY_HOUR",
    "DAY_MINUTE",
    "DAY_SECOND",
    "DAY_MICROSECOND",
    "HOUR_MINUTE",
    "HOUR_SECOND",
    "HOUR_MICROSECOND",
    "MINUTE_SECOND",
    "MINUTE_MICROSECOND",
    "SECOND_MICROSECOND",
];

/// Whether a word is a unit of time.
pub(crate) fn is_unit(word: &str) -> bool {
    UNITS.iter().any(|unit| unit.eq_ignore_ascii_case(word))
}

/// What the older names of units begin with.
const OLDER: &str = "SQL_TSI_";

fn is_older_unit(word: &str) -> bool {
    match word.split_at_checked(OLDER.len()) {
        Some((older, unit)) => {
            let is_single = !unit.contains('_') && !unit.eq_ignore_ascii_case("MICROSECOND");
            older.eq_ignore_ascii_case(OLDER) && is_single && is_unit(unit)
        }
        None => false,
    }
}

/// Reads `INTERVAL value unit`, or the function INTERVAL(n, a, b, ...); the parser stands at the
/// word INTERVAL. What both begin with is read once: only the function has several values.
///
/// # Errors
/// Those of the value, and that no unit follows it.
pub(crate) fn parse_interval(
    dialect: &MayflyDialect,
    parser: &mut Parser<'_>,
) -> Result<Expr, ParserError> {
    parser.advance_token();
    let value = if parser.peek_token_ref().token == Token::LParen {
        match dialect.operand(parser)? {
            Expr::Tuple(arguments) => return Ok(call("interval", arguments)),
            first => dialect.continued(parser, first, NONE)?,
        }
    } else {
        dialect.expression(parser, NONE)?
    };
    let unit = match &parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style.is_none() && is_unit(&word.value) => {
            parser.parse_identifier()?
        }
        // The older names.
        Token::Word(word) if word.quote_style.is_none() && is_older_unit(&word.value) => {
            let mut unit = parser.parse_identifier()?;
            unit.value = unit.value.split_off(OLDER.len());
            unit
        }
        _ => return parser.expected_ref("a unit of time", parser.peek_token_ref()),
    };
    Ok(Expr::Interval(Interval {
        value: Box::new(value),
        leading_field: Some(DateTimeField::Custom(unit)),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

fn moved(name: &str, value: &mut Expr, interval: Interval) -> Expr {
    let (amount, unit) = parts(interval);
    call(name, vec![take(value), amount, text(unit)])
}

/// The amount of an interval and the name of its unit.
pub(crate) fn parts(interval: Interval) -> (Expr, String) {
    let unit = interval
        .leading_field
        .unwrap_or(DateTimeField::Day)
        .to_string();
    let unit = match interval.last_field {
        Some(last) => format!("{unit}_{last}"),
        None => unit,
    };
    let unit = unit.trim_matches(['"', '`']).to_ascii_uppercase();
    let amount = match hexadecimal(&interval.value) {
        // One number is asked for, not the text that several are read from.
        Some(number) if !unit.contains('_') => number,
        _ => *interval.value,
    };
    (amount, unit)
}

/// The number that `0x41` is.
fn hexadecimal(expr: &Expr) -> Option<Expr> {
    let Expr::Value(value) = expr else {
        return None;
    };
    let Value::HexStringLiteral(digits) = &value.value else {
        return None;
    };
    let number = u64::from_str_radix(digits, 16).ok()?;
    let number = Value::Number(number.to_string(), false);
    Some(Expr::Value(number.with_span(value.span)))
}

fn is_number(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if matches!(value.value, Value::Number(..)))
}

/// Whether an expression is a truth value by its form.
pub(crate) fn is_truth(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_truth(inner),
        Expr::BinaryOp { op, .. } => {
            let joins = matches!(
                op,
                BinaryOperator::And | BinaryOperator::Or | BinaryOperator::Xor
            );
            joins || is_comparison(op)
        }
        Expr::UnaryOp { op, .. } => matches!(op, UnaryOperator::Not | UnaryOperator::BangNot),
        Expr::Value(value) => matches!(value.value, Value::Boolean(_)),
        Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsNotTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotFalse(_)
        | Expr::IsUnknown(_)
        | Expr::IsNotUnknown(_)
        | Expr::IsDistinctFrom(..)
        | Expr::IsNotDistinctFrom(..)
        | Expr::InList { .. }
        | Expr::InSubquery { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::RLike { .. }
        | Expr::AllOp { .. }
        | Expr::AnyOp { .. }
        | Expr::Exists { .. } => true,
        _ => false,
    }
}

/// Makes a condition of anything: what is not a truth value by its form is tested for truth. The
/// typing removes the test again.
pub fn condition(expr: &mut Expr) {
    if !is_truth(expr) {
        *expr = Expr::IsTrue(Box::new(take(expr)));
    }
}

/// The conditions of a SELECT.
pub fn conditions(select: &mut Select) {
    select.selection.iter_mut().for_each(condition);
    select.having.iter_mut().for_each(condition);
    for join in select.from.iter_mut().flat_map(|table| &mut table.joins) {
        if let JoinOperator::Join(JoinConstraint::On(on))
        | JoinOperator::Inner(JoinConstraint::On(on))
        | JoinOperator::Left(JoinConstraint::On(on))
        | JoinOperator::LeftOuter(JoinConstraint::On(on))
        | JoinOperator::Right(JoinConstraint::On(on))
        | JoinOperator::RightOuter(JoinConstraint::On(on))
        | JoinOperator::FullOuter(JoinConstraint::On(on))
        | JoinOperator::CrossJoin(JoinConstraint::On(on)) = &mut join.join_operator
        {
            condition(on);
        }
    }
}

fn argument(argument: &mut FunctionArg) -> Option<&mut Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// Turns the unit of TIMESTAMPDIFF and TIMESTAMPADD, which stands there like a column, into a text.
pub(crate) fn unit(function: &mut Function) {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
        return;
    };
    let mut names = ["timestampdiff", "timestampadd"].iter();
    if !names.any(|known| name.value.eq_ignore_ascii_case(known)) {
        return;
    }
    if let FunctionArguments::List(list) = &mut function.args
        && let Some(unit) = list.args.first_mut().and_then(argument)
        && let Expr::Identifier(ident) = unit
    {
        *unit = text(ident.value.to_ascii_uppercase());
    }
}

/// Functions whose arguments have a syntax of their own.
fn function_call(function: &mut Function) {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
        return;
    };
    let name = name.value.to_ascii_lowercase();
    let FunctionArguments::List(list) = &mut function.args else {
        return;
    };
    match name.as_str() {
        // DATE_ADD(d, INTERVAL n unit): the amount and the unit are arguments.
        "date_add" | "date_sub" | "adddate" | "subdate" if list.args.len() == 2 => {
            let Some(second) = argument(&mut list.args[1]) else {
                return;
            };
            if let Expr::Interval(interval) = second {
                let (amount, unit) = parts(interval.clone());
                *second = amount;
                list.args
                    .push(FunctionArg::Unnamed(FunctionArgExpr::Expr(text(unit))));
            }
        }
        "timestampdiff" | "timestampadd" => unit(function),
        "group_concat" => {
            let mut separator = text(",".to_owned());
            list.clauses.retain(|clause| match clause {
                FunctionArgumentClause::Separator(value) => {
                    separator = Expr::Value(value.clone());
                    false
                }
                _ => true,
            });
            let mut values: Vec<Expr> = list
                .args
                .iter_mut()
                .filter_map(argument)
                .map(take)
                .collect();
            let value = match values.len() {
                1 => values.remove(0),
                _ => call("concat", values),
            };
            list.args = [value, separator]
                .map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)))
                .into();
        }
        _ => {}
    }
}
