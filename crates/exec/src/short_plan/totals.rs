//! Aggregates over all rows of an input.
//!
//! Owns: the step that computes them, without the operator. Never: groups.
//!
//! The stock operator takes some microseconds to be copied, opened and polled, and an accumulator
//! some hundred nanoseconds to be made and to add up a few rows.

use std::sync::Arc;

use arrow::array::{RecordBatch, as_boolean_array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use datafusion::common::{Result, ScalarValue};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};

use crate::batches::batch_of;

/// Aggregates of which there is one row.
pub(super) struct Totals {
    aggregates: Vec<Aggregate>,
    schema: SchemaRef,
}

struct Aggregate {
    function: Arc<AggregateFunctionExpr>,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
    filter: Option<Arc<dyn PhysicalExpr>>,
}

impl Totals {
    /// Those of a node; `None` for any other node, and one that groups.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<Totals> {
        let node = plan.downcast_ref::<AggregateExec>()?;
        let group_by = node.group_expr();
        let is_whole = matches!(
            node.mode(),
            AggregateMode::Single | AggregateMode::SinglePartitioned
        );
        let has_groups = !group_by.is_empty() || group_by.groups().len() > 1;
        if !is_whole || has_groups || node.limit_options().is_some() {
            return None;
        }
        let filters = node.filter_expr().iter().cloned();
        let aggregates = node.aggr_expr().iter().zip(filters);
        let aggregates = aggregates.map(|(function, filter)| {
            let order = function.order_bys().iter().map(|by| Arc::clone(&by.expr));
            let arguments = function.expressions().into_iter().chain(order);
            Aggregate {
                arguments: arguments.collect(),
                function: Arc::clone(function),
                filter,
            }
        });
        Some(Totals {
            aggregates: aggregates.collect(),
            schema: node.schema(),
        })
    }

    /// Their one row.
    ///
    /// # Errors
    /// If an expression or an aggregate fails.
    pub(super) fn row(&self, rows: &RecordBatch) -> Result<RecordBatch> {
        let columns = self.aggregates.iter();
        let columns = columns.map(|aggregate| aggregate.value(rows)?.to_array());
        batch_of(&self.schema, columns.collect::<Result<_>>()?, 1)
    }
}

impl Aggregate {
    fn value(&self, rows: &RecordBatch) -> Result<ScalarValue> {
        let mut accumulator = self.function.create_accumulator()?;
        let filtered;
        let rows = match &self.filter {
            None => rows,
            Some(filter) => {
                let mask = filter.evaluate(rows)?.into_array(rows.num_rows())?;
                filtered = filter_record_batch(rows, as_boolean_array(&mask))?;
                &filtered
            }
        };
        let arguments = { self.arguments.iter() }
            .map(|argument| argument.evaluate(rows)?.into_array(rows.num_rows()));
        accumulator.update_batch(&arguments.collect::<Result<Vec<_>>>()?)?;
        accumulator.evaluate()
    }
}
