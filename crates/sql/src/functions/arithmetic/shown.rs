//! Expressions as the errors about them show them.

use std::collections::HashMap;

use datafusion::logical_expr::{Expr, ScalarUDF};
use mayfly_types::ColumnType;

use super::Arithmetic;
use crate::functions::{cast, own};

/// The expression of a call as an error shows it; empty for what is no operator.
pub(crate) fn text(function: &ScalarUDF, arguments: &[Expr]) -> String {
    let operator = function.inner().downcast_ref::<Arithmetic>();
    operator.map_or(String::new(), |operator| {
        let shown: Vec<String> = arguments.iter().map(shown).collect();
        match shown.as_slice() {
            [argument] => format!("{}({argument})", operator.operator.symbol()),
            [left, right] => format!("({left} {} {right})", operator.operator.symbol()),
            _ => String::new(),
        }
    })
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
    let list: Vec<String> = arguments.iter().map(shown).collect();
    let list = list.join(",");
    match cast::target(function) {
        Some(ColumnType::BigInt { unsigned: true }) => format!("cast({list} as unsigned)"),
        Some(ColumnType::BigInt { unsigned: false }) => format!("cast({list} as signed)"),
        Some(target) => format!("cast({list} as {target})"),
        None => format!("{}({list})", function.name().trim_start_matches(own::MARK)),
    }
}

/// The text of an expression with the databases of its tables; `None` if it names none of these
/// tables without its database.
fn text_in_databases(text: &str, databases: &HashMap<String, String>) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut is_changed = false;
    let mut rest = text;
    while let Some(start) = rest.find('`') {
        let Some(length) = rest[start + 1..].find('`') else {
            break;
        };
        let (before, end) = (&rest[..start], start + length + 2);
        let is_table = rest[end..].starts_with(".`") && !before.ends_with('.');
        let database = databases.get(&rest[start + 1..end - 1]);
        out.push_str(before);
        if let Some(database) = database.filter(|_| is_table) {
            out.push_str(&format!("`{database}`."));
            is_changed = true;
        }
        out.push_str(&rest[start..end]);
        rest = &rest[end..];
    }
    out.push_str(rest);
    is_changed.then_some(out)
}

/// The same operator, whose errors name tables with their databases; `None` if they name no table.
pub(crate) fn in_databases(
    function: &ScalarUDF,
    databases: &HashMap<String, String>,
) -> Option<ScalarUDF> {
    let operator = function.inner().downcast_ref::<Arithmetic>()?;
    let text = text_in_databases(&operator.text, databases)?;
    Some(ScalarUDF::new_from_impl(Arithmetic {
        text,
        ..operator.clone()
    }))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::text_in_databases;

    #[test]
    fn tables_are_named_with_their_databases() {
        let databases = HashMap::from([("t".to_owned(), "test".to_owned())]);
        for (text, named) in [
            ("(`t`.`a` + 1)", Some("(`test`.`t`.`a` + 1)")),
            (
                "(-(`t`.`a`) - `u`.`t`)",
                Some("(-(`test`.`t`.`a`) - `u`.`t`)"),
            ),
            ("(`other`.`t`.`a` + 1)", None),
            ("(`t` + 1)", None),
            ("('`' + 1)", None),
            ("", None),
        ] {
            assert_eq!(
                text_in_databases(text, &databases).as_deref(),
                named,
                "{text}"
            );
        }
    }
}
