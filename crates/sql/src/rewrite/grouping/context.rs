//! What the rules of grouping know of a statement.

use std::collections::{HashMap, HashSet};

use datafusion::sql::sqlparser::ast::{Expr, Function, ObjectNamePart, Select, SelectItem, Visit};

use super::super::ctes::Named;
use crate::bindings::Bindings;
use crate::walk;

/// What the rules know of the statement.
pub(in crate::rewrite) struct GroupingContext<'a> {
    pub(in crate::rewrite) bindings: &'a Bindings,
    /// How names in lower case were written.
    pub(in crate::rewrite) spellings: &'a HashMap<String, String>,
    /// Names of common table expressions.
    pub(in crate::rewrite) ctes: &'a [Named],
}

pub(in crate::rewrite) fn has_aggregate(node: &impl Visit, aggregates: &HashSet<String>) -> bool {
    walk::finds(
        node,
        &mut |expr| matches!(expr, Expr::Function(function) if is_aggregate(function, aggregates)),
    )
}

pub(in crate::rewrite) fn is_aggregate(function: &Function, aggregates: &HashSet<String>) -> bool {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else {
        return false;
    };
    let name = name.value.to_lowercase();
    function.over.is_none() && (aggregates.contains(&name) || name == "grouping")
}

/// Select items by their aliases.
pub(in crate::rewrite) fn aliases(select: &Select) -> HashMap<String, Expr> {
    select
        .projection
        .iter()
        .filter_map(|item| match item {
            SelectItem::ExprWithAlias { expr, alias } => Some((alias.value.clone(), expr.clone())),
            _ => None,
        })
        .collect()
}
