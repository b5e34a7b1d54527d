//! Columns keep their types through rules.
//!
//! What is above a node was typed for its columns. A rule of DataFusion changes them: beside one
//! DISTINCT aggregate it makes a SUM of SUMs, which has more digits than the SUM had. Comparisons
//! with such a column failed when they ran. So the columns of what a rule makes of a node are
//! converted back.
//!
//! **Cost**: a look at the fields of a node that a rule changed.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchemaRef};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, cast};

/// What a rule made of a node, with the types of the columns that the node had.
///
/// # Errors
/// None of its own.
pub(super) fn with_types_of(
    before: &DFSchemaRef,
    made: Transformed<LogicalPlan>,
) -> Result<Transformed<LogicalPlan>> {
    let after = made.data.schema();
    if !made.transformed || Arc::ptr_eq(before, after) || !changes_types(before, after) {
        return Ok(made);
    }
    made.map_data(|plan| {
        let schema = Arc::clone(plan.schema());
        let columns = schema.iter().zip(before.fields());
        let columns = columns.map(|((table, field), before)| {
            let column = Expr::Column(Column::from((table, field)));
            match field.data_type() == before.data_type() {
                true => column,
                false => cast(column, before.data_type().clone())
                    .alias_qualified(table.cloned(), field.name()),
            }
        });
        let projection = Projection::try_new(columns.collect(), Arc::new(plan))?;
        Ok(LogicalPlan::Projection(projection))
    })
}

/// Whether the same columns have other types.
fn changes_types(before: &DFSchemaRef, after: &DFSchemaRef) -> bool {
    let are_same = before.fields().len() == after.fields().len() && {
        before.fields().iter().zip(after.fields())
    }
    .all(|(before, after)| before.name() == after.name());
    are_same && { before.fields().iter().zip(after.fields()) }
        .any(|(before, after)| before.data_type() != after.data_type())
}
