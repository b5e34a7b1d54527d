//! The MySQL types of aggregates, kept from the rule that simplifies expressions.
//!
//! MIN, MAX and SUM have an alias that says the type of their argument. DataFusion's rule takes an
//! aggregate with such an alias for something else and puts a projection above it that says the
//! type. Where that is merged with one above, functions of the value do not learn its type:
//! `CONCAT(MAX(d))` had six digits for a DATETIME(3). So the rule sees aggregates without what
//! their aliases say.
//!
//! **Cost**: a look at the functions of each aggregate.

use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Applies the rule that simplifies expressions to a node.
///
/// # Errors
/// Those of the rule.
pub(super) fn with_aggregate_types(
    node: LogicalPlan,
    simplify: impl FnOnce(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Aggregate(mut aggregate) = node else {
        return simplify(node);
    };
    let types = aggregate.aggr_expr.iter_mut().map(|expr| match expr {
        Expr::Alias(alias) => alias.metadata.take(),
        _ => None,
    });
    let types: Vec<Option<FieldMetadata>> = types.collect();
    let made = simplify(LogicalPlan::Aggregate(aggregate))?;
    if types.iter().all(Option::is_none) {
        return Ok(made);
    }
    made.map_data(|plan| with_types(plan, types))
}

/// An aggregate, or a projection above it, whose last columns have these types.
fn with_types(mut plan: LogicalPlan, types: Vec<Option<FieldMetadata>>) -> Result<LogicalPlan> {
    let exprs = match &mut plan {
        LogicalPlan::Aggregate(aggregate) => &mut aggregate.aggr_expr,
        LogicalPlan::Projection(projection) => &mut projection.expr,
        _ => return Ok(plan),
    };
    let first = exprs.len().saturating_sub(types.len());
    for (expr, metadata) in exprs[first..].iter_mut().zip(types) {
        let (None, Some(metadata)) = (typed(expr), metadata) else {
            continue;
        };
        let (table, name) = expr.qualified_name();
        let inner = std::mem::take(expr).unalias();
        *expr = inner.alias_qualified_with_metadata(table, name, Some(metadata));
    }
    plan.recompute_schema()
}

/// What the alias of an expression says of its type.
fn typed(expr: &Expr) -> Option<&FieldMetadata> {
    match expr {
        Expr::Alias(alias) => alias.metadata.as_ref(),
        _ => None,
    }
}
