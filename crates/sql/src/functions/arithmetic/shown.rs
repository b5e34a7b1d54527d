//! Expressions as the errors about them show them.

use std::collections::HashMap;

use datafusion::logical_expr::{Expr, ScalarUDF};
use mayfly_types::ColumnType;

use super::shown_text::text_in_databases;
use super::{Arithmetic, chain};
use crate::functions::{cast, own};

/// The expression of a call as an error shows it; empty for what is no operator.
pub(crate) fn text(function: &ScalarUDF, arguments: &[Expr]) -> String {
    if let Some(text) = chain::text(function, || operand_texts(arguments)) {
        return text;
    }
    let operator = function.inner().downcast_ref::<Arithmetic>();
    operator.map_or(String::new(), |operator| {
        match operand_texts(arguments).as_slice() {
            [argument] => format!("{}({argument})", operator.operator.symbol()),
            [left, right] => format!("({left} {} {right})", operator.operator.symbol()),
            _ => String::new(),
        }
    })
}

/// The operands of a call as errors show them.
pub(crate) fn operand_texts(arguments: &[Expr]) -> Vec<String> {
    arguments.iter().map(shown).collect()
}

/// An operand as an error shows it: columns in backquotes, constants as they were written.
fn shown(expr: &Expr) -> String {
    match expr {
        Expr::Literal(value, _) => match value.try_as_str() {
            Some(Some(text)) => format!("'{text}'"),
            _ => value.to_string(),
        },
        Expr::Column(column) | Expr::OuterReferenceColumn(_, column) => match &column.relation {
            Some(table) => {
                let schema = table
                    .schema()
                    .map_or(String::new(), |name| format!("`{name}`."));
                format!("{schema}`{}`.`{}`", table.table(), column.name)
            }
            None => format!("`{}`", column.name),
        },
        Expr::Alias(alias) => shown(&alias.expr),
        Expr::Cast(cast) => shown(&cast.expr),
        Expr::ScalarFunction(call) => match text(&call.func, &call.args) {
            text if text.is_empty() => called(&call.func, &call.args),
            text => text,
        },
        other => other.schema_name().to_string(),
    }
}

/// A call of a function as an error shows it.
fn called(function: &ScalarUDF, arguments: &[Expr]) -> String {
    // A number with an exponent was written as one.
    if let (own::TO_DOUBLE, [Expr::Literal(value, _)]) = (function.name(), arguments)
        && let Some(Some(digits)) = value.try_as_str()
    {
        return digits.to_owned();
    }
    let list = operand_texts(arguments).join(",");
    match cast::target(function) {
        Some(ColumnType::BigInt { unsigned: true }) => format!("cast({list} as unsigned)"),
        Some(ColumnType::BigInt { unsigned: false }) => format!("cast({list} as signed)"),
        Some(target) => format!("cast({list} as {target})"),
        None => format!("{}({list})", function.name().trim_start_matches(own::MARK)),
    }
}

/// The same operator, whose errors name tables with their databases; `None` if they name no table.
pub(crate) fn in_databases(
    function: &ScalarUDF,
    databases: &HashMap<String, String>,
) -> Option<ScalarUDF> {
    if let Some(chain) = chain::in_databases(function, databases) {
        return Some(chain);
    }
    let operator = function.inner().downcast_ref::<Arithmetic>()?;
    let text = text_in_databases(operator.text.as_str(), databases)?;
    Some(ScalarUDF::new_from_impl(Arithmetic {
        text: text.into(),
        ..operator.clone()
    }))
}
