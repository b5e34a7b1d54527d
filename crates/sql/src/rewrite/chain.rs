//! Chains of UNION, whose queries give the types of columns together.
//!
//! In a plan a query in parentheses that begins a chain looks like the beginning of that chain. It
//! becomes a derived table here, and is typed by itself.

use datafusion::sql::sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier, TableFactor};
use mayfly_types::MySqlError;

use crate::parse;

/// Sets apart what begins a chain in parentheses; whether there is a chain of three or more, or a
/// set operation but UNION with ALL.
///
/// # Errors
/// None but for a bug in the parser.
pub(super) fn set_apart(body: &mut SetExpr) -> Result<bool, MySqlError> {
    let SetExpr::SetOperation {
        left,
        right,
        op,
        set_quantifier,
    } = body
    else {
        return Ok(false);
    };
    let mut found = *op != SetOperator::Union && *set_quantifier == SetQuantifier::All;
    // Stands there by its precedence.
    found |= set_apart(right)?;
    match left.as_mut() {
        SetExpr::SetOperation { .. } => {
            set_apart(left)?;
            found = true;
        }
        SetExpr::Query(query) if is_union(query) => {
            let query = query.clone();
            **left = as_derived_table(query)?;
        }
        _ => {}
    }
    Ok(found)
}

/// Whether a query is a union without more; an order or a limit sets it apart as it is.
fn is_union(query: &Query) -> bool {
    let is_bare = query.order_by.is_none() && query.limit_clause.is_none();
    is_bare
        && match query.body.as_ref() {
            SetExpr::SetOperation { .. } => true,
            SetExpr::Query(inner) => is_union(inner),
            _ => false,
        }
}

fn as_derived_table(query: Box<Query>) -> Result<SetExpr, MySqlError> {
    let text = "SELECT * FROM (SELECT 1) AS `\u{1}operand`";
    let mut outer = parse::skeleton(text)?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(table) = select.from.first_mut()
        && let TableFactor::Derived { subquery, .. } = &mut table.relation
    {
        *subquery = query;
    }
    Ok(*outer.body)
}
