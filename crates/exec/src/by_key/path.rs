//! The way from a plan down to the one scan that all its rows come from.
//!
//! Owns: what an expression above means over the rows of the scan, through filters, projections
//! and groups, and the exchange of the scan for another. Never: takes a way on which rows are left
//! out by their number, or by chance.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;

use super::pipeline::is_exchange;
use crate::source::Source;
use crate::table_scan::TableScan;

type Expr = Arc<dyn PhysicalExpr>;

/// The nodes from a plan to its scan.
pub(super) struct Path<'a> {
    nodes: Vec<&'a Arc<dyn ExecutionPlan>>,
    pub(super) scan: &'a TableScan,
    pub(super) source: Source,
}

impl<'a> Path<'a> {
    /// The way through a plan; `None` where it has none.
    pub(super) fn of(plan: &'a Arc<dyn ExecutionPlan>) -> Option<Path<'a>> {
        let mut nodes = Vec::new();
        let mut plan = plan;
        loop {
            if let Some(scan) = plan.downcast_ref::<TableScan>() {
                let source = scan.source()?;
                return Some(Path {
                    nodes,
                    scan,
                    source,
                });
            }
            if plan.fetch().is_some() || !is_known(plan) {
                return None;
            }
            nodes.push(plan);
            plan = plan.children().into_iter().next()?;
        }
    }

    /// Whether rows are grouped on the way.
    pub(super) fn has_groups(&self) -> bool {
        self.nodes.iter().any(|node| node.is::<AggregateExec>())
    }

    /// Whether some columns of the plan are all that its rows are grouped by, so that each of their
    /// values is in one row at most.
    pub(super) fn is_unique(&self, columns: &[&Expr]) -> bool {
        let mut groups = None;
        let mut columns: Option<Vec<Expr>> = Some(columns.iter().copied().cloned().collect());
        for node in &self.nodes {
            if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
                groups = Some(aggregate.group_expr().input_exprs().len());
                break;
            }
            columns = columns.and_then(|columns| {
                let through = columns.into_iter().map(|expr| through(node, expr));
                through.collect()
            });
        }
        let (Some(groups), Some(columns)) = (groups, columns) else {
            return false;
        };
        (0..groups).all(|group| {
            let is_it = |expr: &Expr| {
                let column = expr.downcast_ref::<Column>();
                column.is_some_and(|column| column.index() == group)
            };
            columns.iter().any(is_it)
        })
    }

    /// What an expression over the rows of the plan is over those of the scan; `None` if it is more
    /// than an expression.
    pub(super) fn expression(&self, expr: &Expr) -> Option<Expr> {
        let mut nodes = self.nodes.iter();
        nodes.try_fold(Arc::clone(expr), |expr, node| through(node, expr))
    }

    /// The column of the table that an expression over the rows of the plan is, or that it casts,
    /// and the type that it casts to.
    pub(super) fn column_or_cast(&self, expr: &Expr) -> Option<(usize, Option<DataType>)> {
        let expr = self.expression(expr)?;
        let (column, cast) = match expr.downcast_ref::<CastExpr>() {
            Some(cast) => (cast.expr(), Some(cast.cast_type().clone())),
            None => (&expr, None),
        };
        let column = column.downcast_ref::<Column>()?;
        Some((self.source.columns.of_table(column.index())?, cast))
    }
}

/// Whether a node has one row for each of its input, or some of them, or for groups of them.
fn is_known(plan: &Arc<dyn ExecutionPlan>) -> bool {
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        return !is_volatile(filter.predicate());
    }
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return !projection.expr().iter().any(|of| is_volatile(&of.expr));
    }
    if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        let groups = aggregate.group_expr();
        return groups.is_single()
            && !groups.input_exprs().is_empty()
            && aggregate.limit_options().is_none();
    }
    plan.is::<CooperativeExec>() || is_exchange(plan)
}

/// What an expression over the rows of a node is over those of its input.
fn through(node: &Arc<dyn ExecutionPlan>, expr: Expr) -> Option<Expr> {
    let meaning: Box<dyn Fn(usize) -> Option<Expr>> =
        if let Some(filter) = node.downcast_ref::<FilterExec>() {
            let Some(columns) = filter.projection().as_ref() else {
                return Some(expr);
            };
            let columns = columns.to_vec();
            let schema = filter.input().schema();
            Box::new(move |index| {
                let index = *columns.get(index)?;
                Some(Arc::new(Column::new(schema.field(index).name(), index)) as _)
            })
        } else if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            let exprs: Vec<Expr> = projection.expr().iter().map(|of| of.expr.clone()).collect();
            Box::new(move |index| exprs.get(index).cloned())
        } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
            let groups = aggregate.group_expr().input_exprs();
            Box::new(move |index| groups.get(index).cloned())
        } else {
            return Some(expr);
        };
    let replaced = expr.transform_up(|part| {
        let Some(column) = part.downcast_ref::<Column>() else {
            return Ok(Transformed::no(part));
        };
        match meaning(column.index()) {
            Some(meaning) => Ok(Transformed::yes(meaning)),
            None => internal_err!("a column without a meaning below"),
        }
    });
    replaced.data().ok()
}

/// A plan with another node in the place of its scan, of the same rows or fewer.
///
/// # Errors
/// Where DataFusion cannot rebuild a node.
pub(super) fn with_scan(
    plan: &Arc<dyn ExecutionPlan>,
    scan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let children = plan.children();
    let Some(child) = children.first() else {
        return Ok(scan);
    };
    let child = with_scan(child, scan)?;
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    Arc::clone(plan).replace_children(vec![child], options)
}
