//! A union of which all branches but one are known to have no rows.
//!
//! DataFusion's rule puts a projection of the union's columns over the branch that is left, by
//! their names alone, which the branch may have with a table. A filter above was then pushed below
//! a conversion in the branch as if the column were not converted. Here the projection names the
//! columns of the branch as they are.
//!
//! **Cost**: a look at the inputs of each union.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};

/// What the rule that drops branches without rows makes of a node.
///
/// # Errors
/// Those of the rule.
pub(super) fn with_one_branch(
    node: LogicalPlan,
    rewrite: impl FnOnce(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(union) = &node else {
        return rewrite(node);
    };
    let mut left = union.inputs.iter().filter(|input| !is_empty(input));
    let (Some(branch), None, true) = (left.next(), left.next(), union.inputs.len() > 1) else {
        return rewrite(node);
    };
    let columns = branch.schema().iter().zip(union.schema.fields());
    let columns = columns.map(|((table, field), of_union)| {
        let column = Expr::Column(Column::from((table, field)));
        match table.is_none() && field.name() == of_union.name() {
            true => column,
            false => column.alias(of_union.name()),
        }
    });
    let (branch, schema) = (Arc::clone(branch), Arc::clone(&union.schema));
    let projection = Projection::try_new_with_schema(columns.collect(), branch, schema)?;
    Ok(Transformed::yes(LogicalPlan::Projection(projection)))
}

fn is_empty(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::EmptyRelation(empty) if !empty.produce_one_row)
}
