//! Expressions that are moved to another place of a plan, where columns have other numbers.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;

/// An expression with other columns in the places of its own.
pub(crate) fn with_columns(
    expr: &Arc<dyn PhysicalExpr>,
    other: impl Fn(&Column) -> Column,
) -> Result<Arc<dyn PhysicalExpr>> {
    let exchange = |expr: Arc<dyn PhysicalExpr>| {
        Ok(match expr.downcast_ref::<Column>() {
            Some(column) => Transformed::yes(Arc::new(other(column)) as Arc<dyn PhysicalExpr>),
            None => Transformed::no(expr),
        })
    };
    Arc::clone(expr).transform(exchange).data()
}
