//! Comparisons: both sides as what MySQL compares them as.

use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue, internal_datafusion_err};
use datafusion::error::Result;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, Operator, lit};
use mayfly_types::spelling::shown_bytes;
use mayfly_types::{BlobSize, CASELESS, COLLATION_KEY, ColumnType, ErrorCode, MySqlError};

use super::kind::{Kind, kind};
use super::listed;
use super::nameless::{data_type_of, type_of};
use super::subquery_expressions::subquery_of;
use crate::functions::calendar::{self, DAY_MICROS};
use crate::functions::own::{COMPARE, TO_DOUBLE};
use crate::functions::{call, cast, raise, read_integer};
use crate::literal::decimal_of;

/// The text of a constant.
pub(super) fn constant_text(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        Expr::Alias(alias) => constant_text(&alias.expr),
        _ => None,
    }
}

/// A value as a truth value: numbers that are not zero.
pub(super) fn truth(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    Ok(match kind(&expr, schema)? {
        Kind::Boolean => expr,
        Kind::Null => Expr::Cast(Cast::new(Box::new(expr), DataType::Boolean)),
        Kind::Integer | Kind::Decimal | Kind::Single | Kind::Double => {
            if let Expr::Literal(ScalarValue::Int64(Some(value)), _) = &expr {
                return Ok(lit(*value != 0));
            }
            let zero = ScalarValue::new_zero(&data_type_of(&expr, schema)?)?;
            binary(expr, Operator::NotEq, Expr::Literal(zero, None))
        }
        _ => match listed::as_number(&expr, schema) {
            Some(number) => return truth(number, schema),
            None => binary(double(expr), Operator::NotEq, lit(0.0_f64)),
        },
    })
}

fn binary(left: Expr, operator: Operator, right: Expr) -> Expr {
    Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
}

/// A value as a DOUBLE; a constant text that is a whole number as that number, so that it can be
/// compared with an index of whole numbers as it is.
pub(super) fn double(expr: Expr) -> Expr {
    if let Some(text) = constant_text(&expr) {
        let (value, whole) = crate::functions::read_double(text);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "only where nothing is lost"
        )]
        if whole {
            return if value.fract() == 0.0 && value.abs() < 9e15 {
                lit(value as i64)
            } else {
                lit(value)
            };
        }
    }
    call(TO_DOUBLE, vec![expr])
}

/// A constant text that spells a number without an exponent, as that DECIMAL.
fn decimal_constant(expr: &Expr) -> Option<Expr> {
    decimal_of(constant_text(expr)?.trim()).map(lit)
}

/// Two values with a comparison between them.
pub(super) fn compare(
    left: Expr,
    operator: Operator,
    right: Expr,
    schema: &DFSchema,
) -> Result<Expr> {
    let (left, right) = comparable(left, right, schema)?;
    Ok(binary(left, operator, right))
}

const OPERATORS: [Operator; 7] = [
    Operator::Eq,
    Operator::NotEq,
    Operator::Lt,
    Operator::LtEq,
    Operator::Gt,
    Operator::GtEq,
    Operator::IsNotDistinctFrom,
];

/// A comparison of values whose types may yet change: those of a UNION or of CASE are not known
/// while a statement is planned. Values of one kind are left as they are, to be looked at again.
pub(super) fn compare_later(
    left: Expr,
    operator: Operator,
    right: Expr,
    schema: &DFSchema,
) -> Result<Expr> {
    let kinds = [kind(&left, schema)?, kind(&right, schema)?];
    let is_open = |kind: &Kind| matches!(kind, Kind::Null | Kind::Other);
    if kinds[0] == kinds[1] || kinds.iter().any(is_open) {
        return Ok(binary(left, operator, right));
    }
    Ok(call(COMPARE, vec![lit(operator.to_string()), left, right]))
}

/// The comparison that such a call stands for.
pub(super) fn compare_now(arguments: Vec<Expr>, schema: &DFSchema) -> Result<Expr> {
    let [operator, left, right] = <[Expr; 3]>::try_from(arguments)
        .map_err(|_| internal_datafusion_err!("a comparison has two sides"))?;
    let text = constant_text(&operator).unwrap_or_default();
    let mut operators = OPERATORS.into_iter();
    let operator = operators
        .find(|known| known.to_string() == text)
        .ok_or_else(|| internal_datafusion_err!("no comparison is called {text}"))?;
    compare(left, operator, right, schema)
}

/// Whether a value is a text of which case does not count, and all others are constant texts or
/// NULL. Columns are compared with columns as they are: names that are meant to be the same are
/// spelled alike in all tables, and what is joined by them stays an equality of columns.
pub(super) fn is_caseless<'e>(
    value: &Expr,
    others: impl IntoIterator<Item = &'e Expr>,
    schema: &DFSchema,
) -> Result<bool> {
    let Expr::Column(column) = value else {
        return Ok(false);
    };
    let Some(place) = schema.maybe_index_of_column(column) else {
        return Ok(false);
    };
    let collation = schema.field(place).metadata().get(COLLATION_KEY);
    if collation.is_none_or(|name| name != CASELESS) {
        return Ok(false);
    }
    for other in others {
        if !matches!(kind(other, schema)?, Kind::Text | Kind::Null) || !is_constant(other)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a value is one for all rows.
fn is_constant(expr: &Expr) -> Result<bool> {
    let is_open = |expr: &Expr| {
        subquery_of(expr).is_some()
            || matches!(
                expr,
                Expr::Column(_)
                    | Expr::OuterReferenceColumn(..)
                    | Expr::AggregateFunction(_)
                    | Expr::WindowFunction(_)
                    | Expr::Placeholder(_)
            )
    };
    expr.exists(|expr| Ok(is_open(expr))).map(|open| !open)
}

/// A text without its case.
pub(super) fn without_case(expr: Expr) -> Expr {
    match (constant_text(&expr), &expr) {
        (Some(text), _) => lit(text.to_lowercase()),
        (None, Expr::Literal(..)) => expr,
        (None, _) => call("lower", vec![expr]),
    }
}

/// Two values as what they are compared as.
pub(super) fn comparable(left: Expr, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr)> {
    if is_caseless(&left, [&right], schema)? || is_caseless(&right, [&left], schema)? {
        return Ok((without_case(left), without_case(right)));
    }
    let is_constant = |expr: &Expr| matches!(expr, Expr::Literal(..) | Expr::Alias(_));
    if is_constant(&right) && is_year(&left, schema)? {
        return comparable_kinds(left, beside_year(right), schema);
    }
    if is_constant(&left) && is_year(&right, schema)? {
        return comparable_kinds(beside_year(left), right, schema);
    }
    comparable_kinds(left, right, schema)
}

/// Two values of which neither is a constant beside a YEAR.
fn comparable_kinds(left: Expr, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr)> {
    let kinds = (kind(&left, schema)?, kind(&right, schema)?);
    if kinds.0.is_number()
        && let Some(number) = listed::as_number(&right, schema)
    {
        return comparable(left, number, schema);
    }
    if kinds.1.is_number()
        && let Some(number) = listed::as_number(&left, schema)
    {
        return comparable(number, right, schema);
    }
    Ok(match kinds {
        (Kind::Null | Kind::Other, _) | (_, Kind::Null | Kind::Other) => (left, right),
        (a, b) if a == b => (left, right),
        // A truth value beside a number is 0 or 1; what is not exact is compared as DOUBLE.
        (a, b) if a.is_exact() && b.is_exact() => (counted(left, a), counted(right, b)),
        (a, b) if a.is_number() && b.is_number() => (rounded(left, a), rounded(right, b)),
        // A constant text is the number that it spells.
        (Kind::Text, Kind::Decimal) if let Some(constant) = decimal_constant(&left) => {
            (constant, right)
        }
        (Kind::Decimal, Kind::Text) if let Some(constant) = decimal_constant(&right) => {
            (left, constant)
        }
        (Kind::Text | Kind::Bytes, b) if b.is_number() => (double(left), rounded(right, b)),
        (a, Kind::Text | Kind::Bytes) if a.is_number() => (rounded(left, a), double(right)),
        (Kind::Text, Kind::Bytes) => (bytes(left), right),
        (Kind::Bytes, Kind::Text) => (left, bytes(right)),
        (Kind::Text | Kind::Bytes, b) if b.is_temporal() => {
            let (right, left) = with_text(right, b, text_of_bytes(left))?;
            (left, right)
        }
        (a, Kind::Text | Kind::Bytes) if a.is_temporal() => {
            with_text(left, a, text_of_bytes(right))?
        }
        (a, b) if a.is_temporal() && b.is_number() => {
            let right = number_as_time(right, a);
            match kind(&right, schema)? {
                Kind::Moment if a == Kind::Date => day_beside(left, right),
                now if now.is_temporal() => (left, right),
                _ => (double(left), rounded(right, b)),
            }
        }
        (a, b) if a.is_number() && b.is_temporal() => {
            let (right, left) = comparable_kinds(right, left, schema)?;
            (left, right)
        }
        (Kind::Time, Kind::Moment) => (moment(left), right),
        (Kind::Moment, Kind::Time) => (left, moment(right)),
        (Kind::Time, Kind::Date) | (Kind::Date, Kind::Time) => (moment(left), moment(right)),
        (Kind::Date, Kind::Moment) => day_beside(left, right),
        (Kind::Moment, Kind::Date) => {
            let (right, left) = day_beside(right, left);
            (left, right)
        }
        _ => (left, right),
    })
}

/// A DECIMAL without a fraction.
fn whole_number(units: i128, scale: i8) -> Option<i128> {
    let one = 10_i128.checked_pow(u32::try_from(scale).ok()?)?;
    (units % one == 0).then_some(units / one)
}

/// Whether values are of the type YEAR.
pub(super) fn is_year(expr: &Expr, schema: &DFSchema) -> Result<bool> {
    if data_type_of(expr, schema)? != ColumnType::Year.data_type() {
        return Ok(false);
    }
    Ok(type_of(expr, schema)? == ColumnType::Year)
}

/// A constant beside a YEAR, which means the year that the column would hold: 10 is 2010. What is
/// no year, and all else, stays what it is.
pub(super) fn beside_year(value: Expr) -> Expr {
    let (number, is_short) = match &value {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => (Some(i128::from(*number)), false),
        Expr::Literal(ScalarValue::Decimal128(Some(units), _, scale), _) => {
            (whole_number(*units, *scale), false)
        }
        value => match constant_text(value).map(|text| (read_integer(text), text.len())) {
            Some(((number, true), length)) => (Some(number), length != 4),
            _ => (None, false),
        },
    };
    let year = match number.and_then(calendar::year_of_number) {
        Some(0) if is_short => Some(2000),
        year => year,
    };
    let year = year.and_then(|year| i64::try_from(year).ok());
    year.map_or(value, lit)
}

fn counted(expr: Expr, kind: Kind) -> Expr {
    match kind {
        Kind::Boolean => Expr::Cast(Cast::new(Box::new(expr), DataType::Int64)),
        _ => expr,
    }
}

/// A number beside a DOUBLE: a DECIMAL as the nearest DOUBLE, where the engine would look for
/// the DECIMAL that a DOUBLE is, of which few have one.
fn rounded(expr: Expr, kind: Kind) -> Expr {
    match kind {
        Kind::Decimal => double(expr),
        Kind::Single => Expr::Cast(Cast::new(Box::new(expr), DataType::Float64)),
        _ => counted(expr, kind),
    }
}

fn bytes(expr: Expr) -> Expr {
    cast::conversion(ColumnType::Blob(BlobSize::Long)).call(vec![expr])
}

fn moment(expr: Expr) -> Expr {
    cast::conversion(ColumnType::DateTime { digits: 6 }).call(vec![expr])
}

/// A day beside a moment. The engine would compare both in nanoseconds, which 1677 and 2262 bound;
/// a constant that begins a day is that day, so that a key of days finds it.
fn day_beside(day: Expr, time: Expr) -> (Expr, Expr) {
    if let Expr::Literal(ScalarValue::TimestampMicrosecond(Some(micros), None), _) = &time
        && micros % DAY_MICROS == 0
        && let Ok(days) = i32::try_from(micros / DAY_MICROS)
    {
        return (day, lit(ScalarValue::Date32(Some(days))));
    }
    (moment(day), time)
}

fn moment_literal(micros: i64) -> Expr {
    lit(ScalarValue::TimestampMicrosecond(Some(micros), None))
}

/// A constant of bytes as the text that it spells.
fn text_of_bytes(expr: Expr) -> Expr {
    match &expr {
        Expr::Literal(
            ScalarValue::Binary(Some(bytes)) | ScalarValue::BinaryView(Some(bytes)),
            _,
        ) => lit(match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => shown_bytes(bytes),
        }),
        _ => expr,
    }
}

/// A day, moment or time beside a text: the text becomes one, once if it is constant.
fn with_text(time: Expr, kind: Kind, text: Expr) -> Result<(Expr, Expr)> {
    let beside = |time: Expr, other: Expr| match kind {
        Kind::Date => day_beside(time, other),
        _ => (time, other),
    };
    let Some(constant) = constant_text(&text) else {
        return Ok(match kind {
            Kind::Time => (
                time,
                cast::conversion(ColumnType::Time { digits: 6 }).call(vec![text]),
            ),
            _ => beside(time, moment(text)),
        });
    };
    if kind == Kind::Time {
        let read = calendar::read_whole_time(constant).ok_or_else(|| wrong("TIME", constant))?;
        return Ok((
            time,
            lit(ScalarValue::DurationMicrosecond(Some(read.micros))),
        ));
    }
    let what = if kind == Kind::Date {
        "DATE"
    } else {
        "DATETIME"
    };
    let read = calendar::read_moment(constant).ok_or_else(|| wrong(what, constant))?;
    if read.offset_seconds.is_some() {
        // What it means depends on the session.
        return Ok(beside(time, moment(text)));
    }
    Ok(beside(time, moment_literal(read.moment)))
}

fn wrong(what: &str, text: &str) -> datafusion::error::DataFusionError {
    raise(MySqlError::new(ErrorCode::WrongValue, &[&what, &text]))
}

/// A constant number such as 20240131 beside a time.
fn number_as_time(number: Expr, kind: Kind) -> Expr {
    let Expr::Literal(ScalarValue::Int64(Some(value)), _) = &number else {
        return number;
    };
    let converted = match kind {
        Kind::Time => calendar::time_of_number(*value)
            .map(|micros| lit(ScalarValue::DurationMicrosecond(Some(micros)))),
        _ => calendar::moment_of_number(*value).map(moment_literal),
    };
    converted.unwrap_or(number)
}
