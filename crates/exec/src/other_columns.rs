//! Expressions that are moved to another place of a plan, where columns have other numbers.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::utils::collect_columns;

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

/// An expression over the columns that it reads and no others, and the places of these, in order.
pub(crate) fn over_read_columns(
    expr: &Arc<dyn PhysicalExpr>,
) -> Result<(Arc<dyn PhysicalExpr>, Vec<usize>)> {
    let read = collect_columns(expr);
    let mut columns: Vec<usize> = read.iter().map(Column::index).collect();
    columns.sort_unstable();
    columns.dedup();
    let moved = with_columns(expr, |column| {
        let place = columns.binary_search(&column.index());
        Column::new(column.name(), place.unwrap_or(usize::MAX))
    })?;
    Ok((moved, columns))
}
