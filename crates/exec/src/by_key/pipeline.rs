//! What a plan does between a table and the operator that reads it by a key.
//!
//! Owns: the filters and projections there, run over a few rows at a time. Never: reorders rows.

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{filter, filter_record_batch};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr_common::physical_expr::is_volatile;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::repartition::RepartitionExec;

use super::KeyScan;
use crate::batches::projected;
use crate::filter::{Condition, chosen};
use crate::source::Source;
use crate::table_scan::TableScan;

/// A table of a plan, and what is done to its rows.
#[derive(Clone)]
pub(crate) struct Pipeline {
    pub(crate) source: Source,
    pub(crate) steps: Steps,
}

/// What is done to the rows of a table, from the table on.
#[derive(Clone, Default)]
pub(crate) struct Steps(Vec<Step>);

#[derive(Clone)]
enum Step {
    Filter {
        condition: Condition,
        projection: Option<Vec<usize>>,
    },
    Project {
        exprs: Vec<Arc<dyn PhysicalExpr>>,
        schema: SchemaRef,
    },
}

impl Pipeline {
    /// The pipeline that a plan is; `None` for any other plan.
    pub(crate) fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let mut steps = Steps::default();
        let mut plan = plan;
        let source = loop {
            if let Some(scan) = plan.downcast_ref::<TableScan>() {
                break scan.source()?;
            }
            if let Some(scan) = plan.downcast_ref::<KeyScan>() {
                break scan.source()?.clone();
            }
            if plan.fetch().is_some() {
                return None;
            }
            if let Some(filter) = plan.downcast_ref::<FilterExec>() {
                if is_volatile(filter.predicate()) {
                    return None;
                }
                let condition = Condition::of(filter);
                let projection = filter.projection().as_ref().map(|columns| columns.to_vec());
                steps.filter(condition, projection);
            } else if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
                let exprs = projection.expr().iter().map(|of| Arc::clone(&of.expr));
                let exprs: Vec<_> = exprs.collect();
                if exprs.iter().any(is_volatile) {
                    return None;
                }
                steps.project(exprs, projection.schema());
            } else if !is_exchange(plan) && plan.downcast_ref::<CooperativeExec>().is_none() {
                return None;
            }
            plan = plan.children().into_iter().next()?;
        };
        steps.0.reverse();
        Some(Self { source, steps })
    }

    /// The column of the table that an expression over the result is.
    pub(crate) fn column(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<usize> {
        let (column, cast) = self.column_or_cast(expr)?;
        cast.is_none().then_some(column)
    }

    /// The same, or the column that the expression casts, and the type that it casts to.
    pub(crate) fn column_or_cast(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
    ) -> Option<(usize, Option<DataType>)> {
        let (index, cast) = self.steps.column_or_cast(expr)?;
        Some((self.source.columns.of_table(index)?, cast))
    }
}

impl Steps {
    /// Adds a filter.
    pub(crate) fn filter(&mut self, condition: Condition, projection: Option<Vec<usize>>) {
        self.0.push(Step::Filter {
            condition,
            projection,
        });
    }

    /// Adds a projection.
    pub(crate) fn project(&mut self, exprs: Vec<Arc<dyn PhysicalExpr>>, schema: SchemaRef) {
        self.0.push(Step::Project { exprs, schema });
    }

    /// The column of the rows of the table that an expression over the result is or casts, and the
    /// type that it casts to.
    pub(crate) fn column_or_cast(
        &self,
        expr: &Arc<dyn PhysicalExpr>,
    ) -> Option<(usize, Option<DataType>)> {
        let mut cast = None;
        let mut index = index_or_cast(expr, &mut cast)?;
        for step in self.0.iter().rev() {
            index = match step {
                Step::Filter { projection, .. } => match projection {
                    Some(columns) => *columns.get(index)?,
                    None => index,
                },
                Step::Project { exprs, .. } => index_or_cast(exprs.get(index)?, &mut cast)?,
            };
        }
        Some((index, cast))
    }

    /// Whether rows may be lost on the way.
    pub(crate) fn has_filter(&self) -> bool {
        let is_filter = |step: &Step| matches!(step, Step::Filter { .. });
        self.0.iter().any(is_filter)
    }

    /// Runs rows of the table through it; where each row that comes out stood.
    pub(crate) fn run(&self, rows: RecordBatch) -> Result<(RecordBatch, UInt32Array)> {
        let mut places = UInt32Array::from_iter_values(0..rows.num_rows() as u32);
        let mut rows = rows;
        for step in &self.0 {
            match step {
                Step::Filter {
                    condition,
                    projection,
                } => {
                    let kept = condition.terms().open_rows(&rows)?.mask(rows.num_rows());
                    rows = chosen(rows, projection.as_deref())?;
                    let Some(kept) = kept else {
                        continue;
                    };
                    places = filter(&places, &kept)?
                        .as_any()
                        .downcast_ref()
                        .cloned()
                        .ok_or_else(|| {
                            internal_datafusion_err!("filtered numbers are no numbers")
                        })?;
                    rows = filter_record_batch(&rows, &kept)?;
                }
                Step::Project { exprs, schema } => rows = projected(exprs, schema, &rows)?,
            }
        }
        Ok((rows, places))
    }
}

/// The index of a column, or of one that is cast, where nothing else was cast.
fn index_or_cast(expr: &Arc<dyn PhysicalExpr>, cast: &mut Option<DataType>) -> Option<usize> {
    let mut expr = expr;
    if let Some(found) = expr.downcast_ref::<CastExpr>() {
        let before = cast.replace(found.cast_type().clone());
        if before.is_some() {
            return None;
        }
        expr = found.expr();
    }
    Some(expr.downcast_ref::<Column>()?.index())
}

/// Whether a node only moves rows between partitions, in whatever order.
pub(crate) fn is_exchange(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let exchange = plan.downcast_ref::<CoalescePartitionsExec>().is_some()
        || plan.downcast_ref::<RepartitionExec>().is_some();
    exchange && plan.fetch().is_none()
}
