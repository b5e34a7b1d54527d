//! Where the plan of a view begins in that of a statement.
//!
//! A view stands under its name as any table does, or under an alias. Below that is one more name,
//! which nobody can write: it has the database of the view in front of it.

use datafusion::common::TableReference;
use datafusion::logical_expr::{LogicalPlan, SubqueryAlias};

use crate::functions::own::MARK;

/// The name of the plan of a view.
pub(crate) fn mark(database: &str, view: &str) -> TableReference {
    TableReference::partial(database, format!("{MARK}{view}"))
}

/// Whether the name of a table in a plan is that of the plan of a view.
pub fn is_mark(table: &TableReference) -> bool {
    table.table().starts_with(MARK) && table.schema().is_some()
}

/// The view whose plan begins here: its database and its name.
pub(crate) fn named(alias: &SubqueryAlias) -> Option<(&str, &str)> {
    let view = alias.alias.table().strip_prefix(MARK)?;
    Some((alias.alias.schema()?, view))
}

/// The same for a view under its name or not.
pub(crate) fn named_by(plan: &LogicalPlan) -> Option<(&str, &str)> {
    let LogicalPlan::SubqueryAlias(alias) = plan else {
        return None;
    };
    named(alias).or_else(|| match alias.input.as_ref() {
        LogicalPlan::SubqueryAlias(inner) => named(inner),
        _ => None,
    })
}
