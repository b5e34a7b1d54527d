//! Rewrites of single expressions.

use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType, DuplicateTreatment, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArgumentClause, FunctionArguments, ObjectNamePart, TrimWhereField,
    TypedString, UnaryOperator, Value, ValueWithSpan,
};
use mayfly_types::{CharacterSet, ErrorCode, MySqlError};

use super::call::call;
use super::column_names::lower;
use super::tuple;
use crate::bindings::{Bindings, literal};
use crate::functions::own::{
    CONVERT_USING, SET_LAST_INSERT_ID, TO_DOUBLE, TRIM_LEADING, TRIM_TRAILING,
};
use crate::functions::{calendar, own_name};
use crate::references::{Variable, is_clock, variable};
use crate::source::Source;

/// `CAST(... AS BINARY)`.
fn as_bytes(expr: Expr) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(expr),
        data_type: DataType::Binary(None),
        array: false,
        format: None,
    }
}

/// Rewrites one node whose children have been rewritten.
pub(super) fn rewrite(
    expr: &mut Expr,
    source: &Source,
    bindings: &Bindings,
) -> Result<(), MySqlError> {
    if let Some(variable) = variable(expr) {
        *expr = match variable {
            Variable::User(name) => {
                let value = bindings.user_variables.get(&name);
                let value = value.unwrap_or(&ScalarValue::Null);
                match value {
                    ScalarValue::Float64(Some(number)) => double(*number),
                    // Bytes that are no literal any more are no number.
                    ScalarValue::Binary(Some(_)) => as_bytes(literal(value)),
                    value => literal(value),
                }
            }
            Variable::System(name) => match bindings.system_variables.get(&name) {
                // Seconds show six digits.
                Some(ScalarValue::Float64(Some(seconds))) => {
                    let digits = literal(&ScalarValue::Int64(Some(6)));
                    call("round", vec![double(*seconds), digits])
                }
                Some(value) => literal(value),
                None => {
                    let name = name.rsplit('.').next().unwrap_or(&name);
                    return Err(MySqlError::new(ErrorCode::UnknownSystemVariable, &[&name]));
                }
            },
        };
        return Ok(());
    }
    match expr {
        Expr::Identifier(ident) if is_clock(ident) => {
            *expr = call(&ident.value.to_ascii_lowercase(), Vec::new());
        }
        Expr::Identifier(ident) => lower(ident),
        Expr::CompoundIdentifier(parts) => {
            if let Some(column) = parts.last_mut() {
                lower(column);
            }
        }
        Expr::Function(function) => {
            lower_function(function);
            last_insert_id(function);
            check_function(function)?;
            check_stars(function, source)?;
            group_concat(function, source)?;
            name_as_defined(function);
        }
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedByteStringLiteral(bits)
                if bits.bytes().all(|bit| bit == b'0' || bit == b'1') =>
            {
                value.value = Value::HexStringLiteral(hexadecimal(bits));
            }
            Value::NationalStringLiteral(text) => {
                value.value = Value::SingleQuotedString(text.clone());
            }
            Value::Number(digits, _) if is_beyond(digits) => {
                let code = ErrorCode::IllegalValueForType;
                return Err(MySqlError::new(code, &[&"double", digits]));
            }
            _ => {}
        },
        Expr::TypedString(literal) => type_literal(literal)?,
        Expr::Like { escape_char, .. } => escape(escape_char)?,
        Expr::BinaryOp { op, .. } => match op {
            BinaryOperator::StringConcat if !bindings.pipes_as_concat => *op = BinaryOperator::Or,
            BinaryOperator::Assignment => {
                return Err(MySqlError::new(
                    ErrorCode::NotSupportedYet,
                    &[&"assignment to a user variable in an expression"],
                ));
            }
            BinaryOperator::Arrow | BinaryOperator::LongArrow => arrow(expr),
            _ => {}
        },
        Expr::RLike { .. } => regexp(expr),
        Expr::Collate { .. } => return collate(expr),
        Expr::Convert {
            charset: Some(set),
            data_type: None,
            ..
        } => {
            let set = CharacterSet::parse(&set.to_string())?;
            convert_using(expr, set);
        }
        Expr::Substring { .. }
        | Expr::Trim { .. }
        | Expr::Position { .. }
        | Expr::Extract { .. }
        | Expr::Prefixed { .. } => special(expr),
        _ => {}
    }
    tuple::rewrite(expr)?;
    crate::typing::syntax::expression(expr);
    Ok(())
}

/// A DOUBLE, which no literal of DataFusion's planner is.
fn double(number: f64) -> Expr {
    let text = ScalarValue::Utf8(Some(format!("{number:e}")));
    call(TO_DOUBLE, vec![literal(&text)])
}

/// LAST_INSERT_ID with an argument is a function of its own.
fn last_insert_id(function: &mut Function) {
    if let [ObjectNamePart::Identifier(name)] = function.name.0.as_mut_slice()
        && name.value == "last_insert_id"
        && let FunctionArguments::List(list) = &function.args
        && list.args.len() == 1
    {
        name.value = SET_LAST_INSERT_ID.to_owned();
    }
}

/// Whether a number with an exponent is too large for a DOUBLE.
fn is_beyond(digits: &str) -> bool {
    digits.contains(['e', 'E']) && digits.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// Functions that are nothing without OVER.
pub(crate) const WINDOW_ONLY: [&str; 11] = [
    "cume_dist",
    "dense_rank",
    "first_value",
    "lag",
    "last_value",
    "lead",
    "nth_value",
    "ntile",
    "percent_rank",
    "rank",
    "row_number",
];

/// The planner has a function of its own, UNNEST, and does not look at the database of a function.
fn check_function(function: &Function) -> Result<(), MySqlError> {
    match function.name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] if name.value == "unnest" => {
            let arguments: [&dyn std::fmt::Display; 2] = [&"FUNCTION", &"UNNEST"];
            Err(MySqlError::new(ErrorCode::NoSuchFunction, &arguments))
        }
        [_] | [] => Ok(()),
        // The functions that there are belong to no database.
        parts => {
            let parts = parts.iter().filter_map(ObjectNamePart::as_ident);
            let parts: Vec<&str> = parts.map(|part| part.value.as_str()).collect();
            let arguments: [&dyn std::fmt::Display; 2] = [&"FUNCTION", &parts.join(".")];
            Err(MySqlError::new(ErrorCode::NoSuchFunction, &arguments))
        }
    }
}

/// What escapes in a pattern where nothing does, in MySQL too.
const NO_ESCAPE: char = '\0';

/// The character of `LIKE ... ESCAPE`, which any constant may be; NULL is the usual one.
///
/// # Errors
/// 1210 for more than one.
fn escape(escape: &mut Option<ValueWithSpan>) -> Result<(), MySqlError> {
    let Some(constant) = escape else {
        return Ok(());
    };
    let text = match &constant.value {
        Value::Null => {
            *escape = None;
            return Ok(());
        }
        Value::Number(digits, _) => digits.clone(),
        value => match separator_text(value) {
            Some(text) => text,
            None => return Ok(()),
        },
    };
    let mut characters = text.chars();
    let character = characters.next().unwrap_or(NO_ESCAPE);
    if characters.next().is_some() {
        return Err(MySqlError::new(ErrorCode::WrongArguments, &[&"ESCAPE"]));
    }
    constant.value = Value::SingleQuotedString(character.to_string());
    Ok(())
}

/// `*` is an argument of COUNT alone, and several are arguments of COUNT(DISTINCT ...) alone.
fn check_stars(function: &Function, source: &Source) -> Result<(), MySqlError> {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
        return Ok(());
    };
    let FunctionArguments::List(list) = &function.args else {
        return Ok(());
    };
    let is_count = name.value == "count";
    let is_distinct = matches!(list.duplicate_treatment, Some(DuplicateTreatment::Distinct));
    let starred = list
        .args
        .iter()
        .any(|argument| matches!(argument, FunctionArg::Unnamed(FunctionArgExpr::Wildcard)));
    let refused = match function.over {
        Some(_) if name.value == "group_concat" => Some("GROUP_CONCAT as a window function"),
        Some(_) if is_distinct => Some("<window function>(DISTINCT ..)"),
        _ if name.value == "format" && list.args.len() == 3 && !is_english(&list.args[2]) => {
            Some("FORMAT in another locale than en_US")
        }
        _ => None,
    };
    if let Some(refused) = refused {
        return Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&refused]));
    }
    let needs_window = WINDOW_ONLY.contains(&name.value.as_str()) && function.over.is_none();
    if needs_window
        || starred && (!is_count || is_distinct)
        || is_count && !is_distinct && list.args.len() > 1
    {
        return Err(source.syntax_error(name.span.start));
    }
    Ok(())
}

/// The clauses of GROUP_CONCAT: a number in its ORDER BY stands for one of its own arguments, and
/// its separator is a text.
///
/// # Errors
/// 1054 for a number that no argument has.
fn group_concat(function: &mut Function, source: &Source) -> Result<(), MySqlError> {
    let FunctionArguments::List(list) = &mut function.args else {
        return Ok(());
    };
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
        return Ok(());
    };
    if name.value != "group_concat" {
        return Ok(());
    }
    if list.args.is_empty() || list.duplicate_treatment == Some(DuplicateTreatment::All) {
        return Err(source.syntax_error(name.span.start));
    }
    for clause in &mut list.clauses {
        match clause {
            FunctionArgumentClause::OrderBy(keys) => {
                for key in keys.iter_mut() {
                    by_position(&mut key.expr, &list.args)?;
                }
                // The planner would look for a place again, and a constant orders nothing.
                keys.retain(|key| !matches!(key.expr, Expr::Value(_)));
            }
            FunctionArgumentClause::Separator(separator) => {
                let at = separator.span.start;
                separator.value = match separator_text(&separator.value) {
                    Some(text) => Value::SingleQuotedString(text),
                    None => return Err(source.syntax_error(at)),
                };
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a number in ORDER BY is no place: one with a fraction, or of more than 64 bits.
pub(super) fn is_constant_key(key: &Expr) -> bool {
    match key {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse::<u64>().is_err(),
            value => *value == Value::Null,
        },
        _ => false,
    }
}

fn by_position(key: &mut Expr, arguments: &[FunctionArg]) -> Result<(), MySqlError> {
    let Some(position) = position(key).filter(|_| !is_constant_key(key)) else {
        return Ok(());
    };
    let argument = position.parse::<usize>().ok();
    match argument.and_then(|position| arguments.get(position.checked_sub(1)?)) {
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))) => {
            *key = argument.clone();
            Ok(())
        }
        _ => {
            let code = ErrorCode::UnknownColumn;
            Err(MySqlError::new(code, &[&position, &"order clause"]))
        }
    }
}

/// The text of a separator, as it stands or in hexadecimal or binary digits.
fn separator_text(value: &Value) -> Option<String> {
    let digits = match value {
        Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
            return Some(text.clone());
        }
        Value::HexStringLiteral(digits) => digits.clone(),
        Value::SingleQuotedByteStringLiteral(bits) => hexadecimal(bits),
        _ => return None,
    };
    let padded = format!(
        "{digits:0>width$}",
        width = digits.len().next_multiple_of(2)
    );
    let bytes = (0..padded.len()).step_by(2);
    let bytes = bytes.map(|at| u8::from_str_radix(padded.get(at..at + 2)?, 16).ok());
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
}

/// The text of a whole number that stands alone.
fn position(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
                Some(digits.clone())
            }
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => Some(format!("-{}", position(expr)?)),
        _ => None,
    }
}

/// Whether the locale of FORMAT is the only one that is known.
fn is_english(locale: &FunctionArg) -> bool {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(locale))) = locale else {
        return false;
    };
    let text = locale.value.clone().into_string().unwrap_or_default();
    text.eq_ignore_ascii_case("en_US")
}

/// DATE, TIME and TIMESTAMP in front of a text: TIMESTAMP makes a DATETIME, and the digits behind
/// the point are those of the text.
///
/// # Errors
/// 1525 when the text is no such value.
pub(crate) fn type_literal(literal: &mut TypedString) -> Result<(), MySqlError> {
    let Value::SingleQuotedString(text) = &literal.value.value else {
        return Ok(());
    };
    let digits = match text.split_once('.') {
        Some((_, fraction)) => fraction.bytes().take_while(u8::is_ascii_digit).count(),
        None => 0,
    };
    let digits = (digits > 0).then_some(digits.min(6) as u64);
    let moment = || calendar::read_moment(text).filter(|read| !read.has_garbage());
    let (what, is_one) = match literal.data_type {
        DataType::Date => ("DATE", moment().is_some_and(|read| !read.has_time)),
        DataType::Time(..) => {
            let is_whole = |read: calendar::ReadTime| !read.has_rest && !read.is_beyond;
            (
                "TIME",
                calendar::read_whole_time(text).is_some_and(is_whole),
            )
        }
        DataType::Timestamp(..) => ("DATETIME", moment().is_some_and(|read| read.has_time)),
        _ => return Ok(()),
    };
    if !is_one {
        return Err(MySqlError::new(ErrorCode::WrongValue, &[&what, text]));
    }
    match &mut literal.data_type {
        DataType::Time(precision, _) => *precision = digits,
        DataType::Timestamp(..) => literal.data_type = DataType::Datetime(digits),
        _ => {}
    }
    Ok(())
}

/// The digits of b'101', filled up to whole bytes.
fn hexadecimal(bits: &str) -> String {
    let padded = format!("{bits:0>width$}", width = bits.len().next_multiple_of(8));
    padded
        .as_bytes()
        .chunks(4)
        .map(|four| {
            four.iter()
                .fold(0, |value, bit| value * 2 + u32::from(bit - b'0'))
        })
        .filter_map(|digit| char::from_digit(digit, 16))
        .collect()
}

fn lower_function(function: &mut Function) {
    for part in &mut function.name.0 {
        if let ObjectNamePart::Identifier(ident) = part {
            ident.value = ident.value.to_lowercase();
            ident.quote_style = None;
        }
    }
}

/// Calls a function by its own name. DataFusion puts a label around one that goes by another, of
/// which it asks the type twice: in each other, so often as two to the power of their number.
fn name_as_defined(function: &mut Function) {
    if let [ObjectNamePart::Identifier(ident)] = function.name.0.as_mut_slice()
        && let Some(name) = own_name(&ident.value)
    {
        name.clone_into(&mut ident.value);
    }
}

fn text(words: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(words.to_owned()).into())
}

fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, Expr::Value(Value::Null.into()))
}

/// `a -> path` and `a ->> path`.
fn arrow(expr: &mut Expr) {
    let Expr::BinaryOp { left, op, right } = take(expr) else {
        return;
    };
    let extracted = call("json_extract", vec![*left, *right]);
    *expr = match op {
        BinaryOperator::LongArrow => call("json_unquote", vec![extracted]),
        _ => extracted,
    };
}

/// `CONVERT(value USING set)`. Texts are kept in UTF-8 whatever their set: what the set does not
/// have becomes `?`, and bytes are read in it.
fn convert_using(expr: &mut Expr, set: CharacterSet) {
    let Expr::Convert { expr: value, .. } = take(expr) else {
        return;
    };
    *expr = match set {
        CharacterSet::Binary => as_bytes(*value),
        set => call(CONVERT_USING, vec![*value, text(set.name())]),
    };
}

fn regexp(expr: &mut Expr) {
    let Expr::RLike {
        negated,
        expr: subject,
        pattern,
        ..
    } = take(expr)
    else {
        return;
    };
    let matched = call("regexp_like", vec![*subject, *pattern]);
    *expr = if negated {
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(matched),
        }
    } else {
        matched
    };
}

/// Only what the engine compares by anyway may be asked for.
fn collate(expr: &mut Expr) -> Result<(), MySqlError> {
    let Expr::Collate {
        expr: inner,
        collation,
    } = take(expr)
    else {
        return Ok(());
    };
    let name = collation
        .to_string()
        .trim_matches(['`', '\'', '"'])
        .to_ascii_lowercase();
    CharacterSet::of_usable_collation(&name).map_err(|no| no.error(&name))?;
    *expr = *inner;
    Ok(())
}

/// Constructs with a syntax of their own, as calls of functions.
fn special(expr: &mut Expr) {
    *expr = match take(expr) {
        Expr::Substring {
            expr: subject,
            substring_from,
            substring_for,
            ..
        } => {
            let mut arguments = vec![*subject];
            arguments.extend(substring_from.map(|from| *from));
            arguments.extend(substring_for.map(|count| *count));
            call("substring", arguments)
        }
        Expr::Trim {
            trim_where,
            trim_what,
            expr: subject,
            ..
        } => {
            let name = match (&trim_where, &trim_what) {
                (Some(TrimWhereField::Leading), None) => "ltrim",
                (Some(TrimWhereField::Trailing), None) => "rtrim",
                (Some(TrimWhereField::Leading), Some(_)) => TRIM_LEADING,
                (Some(TrimWhereField::Trailing), Some(_)) => TRIM_TRAILING,
                _ => "trim",
            };
            let mut arguments = vec![*subject];
            arguments.extend(trim_what.map(|what| *what));
            call(name, arguments)
        }
        Expr::Position { expr: needle, r#in } => call("locate", vec![*needle, *r#in]),
        Expr::Extract {
            field, expr: value, ..
        } => call(
            "extract",
            vec![text(&field.to_string().to_ascii_uppercase()), *value],
        ),
        // A character set introducer, as in _utf8mb4'text'.
        Expr::Prefixed { value, .. } => *value,
        other => other,
    };
}
