//! The conditions of a table in the words of SQL.
//!
//! A plan has conditions that nobody wrote: casts of the planner, functions that stand for
//! operators. What MySQL has a word for is written with it; anything else as the plan prints it.

use std::collections::HashSet;

use arrow::util::display::array_value_to_string;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::{Between, Case, InList, Like};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use mayfly_sql::file_name;
use mayfly_sql::functions::own::MARK;
use mayfly_sql::inner_name::{shown, shown_in};

/// The longest text of a condition; those of generated statements can be very long.
const LENGTH_MAX: usize = 64 << 10;

/// The text of conditions that must all hold. One that a filter and a scan both have is told once.
pub(super) fn text(conditions: &[Expr]) -> String {
    let mut known = HashSet::new();
    let parts = conditions.iter().flat_map(split_conjunction);
    let parts: Vec<&Expr> = parts.filter(|part| known.insert(*part)).collect();
    let mut text = match parts.as_slice() {
        [only] => of(only),
        _ => joined(parts.iter().copied(), " and "),
    };
    if text.len() > LENGTH_MAX {
        let mut end = LENGTH_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str("...");
    }
    text
}

fn joined<'e>(parts: impl Iterator<Item = &'e Expr>, word: &str) -> String {
    let parts: Vec<String> = parts.map(of).collect();
    format!("({})", parts.join(word))
}

fn of(expr: &Expr) -> String {
    let is = |inner: &Expr, what: &str| format!("({} is {what})", of(inner));
    match expr {
        Expr::Column(column) => name(column),
        Expr::Literal(value, _) => literal(value),
        Expr::Alias(alias) => of(&alias.expr),
        // Casts of the planner and those that somebody wrote look the same.
        Expr::Cast(cast) => of(&cast.expr),
        Expr::TryCast(cast) => of(&cast.expr),
        Expr::BinaryExpr(binary) => of_binary(binary),
        Expr::Not(inner) => format!("(not({}))", of(inner)),
        Expr::Negative(inner) => format!("-({})", of(inner)),
        Expr::IsNull(inner) => is(inner, "null"),
        Expr::IsNotNull(inner) => is(inner, "not null"),
        Expr::IsTrue(inner) => is(inner, "true"),
        Expr::IsNotTrue(inner) => is(inner, "not true"),
        Expr::IsFalse(inner) => is(inner, "false"),
        Expr::IsNotFalse(inner) => is(inner, "not false"),
        Expr::IsUnknown(inner) => is(inner, "unknown"),
        Expr::IsNotUnknown(inner) => is(inner, "not unknown"),
        Expr::Like(Like {
            negated,
            expr,
            pattern,
            ..
        }) => format!("({}{} like {})", of(expr), not(*negated), of(pattern)),
        Expr::Between(Between {
            expr,
            negated,
            low,
            high,
        }) => format!(
            "({}{} between {} and {})",
            of(expr),
            not(*negated),
            of(low),
            of(high)
        ),
        Expr::InList(InList {
            expr,
            list,
            negated,
        }) => format!(
            "({}{} in {})",
            of(expr),
            not(*negated),
            joined(list.iter(), ",")
        ),
        Expr::Case(case) => of_case(case),
        Expr::ScalarFunction(function) => of_function(function.name(), &function.args),
        // It is a SELECT of its own, beside the condition.
        Expr::ScalarSubquery(_) => "<subquery>".to_owned(),
        other => shown_in(other.to_string().replace(MARK, "")),
    }
}

fn not(negated: bool) -> &'static str {
    match negated {
        true => " not",
        false => "",
    }
}

fn name(column: &Column) -> String {
    let quoted = |name: &str| format!("`{}`", shown(name).replace('`', "``"));
    let name = quoted(&column.name);
    match &column.relation {
        Some(table) => format!("{}.{name}", quoted(&file_name::shown(table.table()))),
        None => name,
    }
}

fn literal(value: &ScalarValue) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match value {
        value if value.is_null() => "NULL".to_owned(),
        ScalarValue::Utf8(Some(text))
        | ScalarValue::Utf8View(Some(text))
        | ScalarValue::LargeUtf8(Some(text)) => quoted(text),
        ScalarValue::Binary(Some(bytes))
        | ScalarValue::BinaryView(Some(bytes))
        | ScalarValue::LargeBinary(Some(bytes)) => {
            let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
            format!("0x{}", digits.collect::<String>())
        }
        value => {
            let array = value.to_array().ok();
            let text = array.and_then(|array| array_value_to_string(&array, 0).ok());
            let text = text.unwrap_or_else(|| value.to_string());
            match value.data_type().is_temporal() {
                true => quoted(&text.replace('T', " ")),
                false => text,
            }
        }
    }
}

fn of_binary(binary: &BinaryExpr) -> String {
    let word = match binary.op {
        Operator::And => " and ",
        Operator::Or => " or ",
        Operator::NotEq => " <> ",
        Operator::IsNotDistinctFrom => " <=> ",
        Operator::Modulo => " % ",
        operator => {
            let (left, right) = (of(&binary.left), of(&binary.right));
            return format!("({left} {} {right})", operator.to_string().to_lowercase());
        }
    };
    // Long chains of one operator are deep on the left.
    let mut operands = vec![binary.right.as_ref()];
    let mut left = binary.left.as_ref();
    while let Expr::BinaryExpr(inner) = left
        && inner.op == binary.op
        && matches!(binary.op, Operator::And | Operator::Or)
    {
        operands.push(inner.right.as_ref());
        left = inner.left.as_ref();
    }
    operands.push(left);
    joined(operands.into_iter().rev(), word)
}

fn of_case(case: &Case) -> String {
    let mut text = "(case".to_owned();
    if let Some(value) = &case.expr {
        text += &format!(" {}", of(value));
    }
    for (when, then) in &case.when_then_expr {
        text += &format!(" when {} then {}", of(when), of(then));
    }
    if let Some(value) = &case.else_expr {
        text += &format!(" else {}", of(value));
    }
    text + " end)"
}

fn of_function(name: &str, arguments: &[Expr]) -> String {
    let own = name.strip_prefix(MARK);
    match (own, arguments) {
        (Some("like"), [value, pattern, ..]) => format!("({} like {})", of(value), of(pattern)),
        // What a column of that type keeps of a value.
        (Some(own), [value, ..]) if own.starts_with("kept_as_") => of(value),
        // A literal that is too long for the text of the statement.
        (Some(own), _) if own.starts_with("long_text_") => "'...'".to_owned(),
        _ => format!("{}{}", own.unwrap_or(name), joined(arguments.iter(), ",")),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{col, lit};

    use super::*;

    #[track_caller]
    fn check(condition: Expr, expected: &str) {
        assert_eq!(text(&[condition]), expected);
    }

    #[test]
    fn conditions_are_written_as_mysql_writes_them() {
        check(col("t.a").eq(lit(5_i64)), "(`t`.`a` = 5)");
        check(col("a").not_eq(lit("it's")), "(`a` <> 'it''s')");
        check(col("a").is_not_null(), "(`a` is not null)");
        check(
            col("a").in_list(vec![lit(1_i64), lit(2_i64)], true),
            "(`a` not in (1,2))",
        );
        check(
            col("a").between(lit(1_i64), lit(3_i64)),
            "(`a` between 1 and 3)",
        );
        check(lit(ScalarValue::Int64(None)).is_null(), "(NULL is null)");
    }

    #[test]
    fn a_chain_of_one_operator_has_one_pair_of_parentheses() {
        let is = |number: i64| col("a").eq(lit(number));
        check(
            is(1).or(is(2)).or(is(3)),
            "((`a` = 1) or (`a` = 2) or (`a` = 3))",
        );
        let many = (1..2000).fold(is(0), |chain, number| chain.or(is(number)));
        assert!(text(&[many]).ends_with("(`a` = 1999))"));
        assert_eq!(text(&[is(1), is(2), is(1)]), "((`a` = 1) and (`a` = 2))");
    }

    #[test]
    fn long_conditions_are_cut() {
        let long = col("a").eq(lit("\u{e4}".repeat(LENGTH_MAX)));
        let text = text(&[long]);
        assert!(text.ends_with("..."));
        assert!(text.len() <= LENGTH_MAX + 3);
    }
}
