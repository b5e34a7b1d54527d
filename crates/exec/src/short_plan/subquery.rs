//! Subqueries of which a query wants one value.
//!
//! Owns: the step that computes such values before its input runs, and the table whose rows are
//! found by them. Never: says that a subquery has several rows: the long way fails with that.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::physical_planning_context::{ScalarSubqueryResults, SubqueryIndex};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::sorts::sort::SortExec;

use super::run::Run;
use super::size::Size;
use super::step::Step;
use crate::by_key::{Condition, KeyScan, Known, ROWS_FEW, known, waiting_conditions};
use crate::filter::filter_of;
use crate::provider::RowsNow;
use crate::subquery_value::{SubqueryValue, tell};
use crate::unbound::UnboundRows;

/// A step that asks for values.
pub(super) struct WithValues {
    pub(super) values: Vec<Value>,
    pub(super) input: Box<Step>,
}

/// The value of a subquery.
pub(super) struct Value {
    pub(super) step: Step,
    place: usize,
    of_type: DataType,
}

/// Rows of a table that conditions narrow whose values are known once the plan runs, those of
/// subqueries or of an outer row; they are checked above.
pub(super) struct NarrowedTable {
    pub(super) rows: UnboundRows,
    pub(super) conditions: Vec<Condition>,
}

/// Where the values of subqueries are in a plan.
pub(super) struct Places {
    /// Those that the plan computes itself. It may be a part of one that computes others.
    own: Vec<ScalarSubqueryResults>,
    values: Vec<(ScalarSubqueryResults, SubqueryIndex)>,
}

impl Places {
    /// Those of a plan.
    pub(super) fn of_plan(plan: &Arc<dyn ExecutionPlan>) -> Result<Places> {
        let mut own = Vec::new();
        plan.apply(|node| {
            let node = node.downcast_ref::<ScalarSubqueryExec>();
            own.extend(node.map(|node| node.results().clone()));
            Ok(TreeNodeRecursion::Continue)
        })?;
        let values = Vec::new();
        Ok(Places { own, values })
    }

    /// The value of a subquery of the plan itself that an expression is.
    fn own<'a>(&self, expr: &'a dyn PhysicalExpr) -> Option<&'a ScalarSubqueryExpr> {
        let value = expr.downcast_ref::<ScalarSubqueryExpr>()?;
        self.own.contains(value.results()).then_some(value)
    }

    fn of(&mut self, results: &ScalarSubqueryResults, index: SubqueryIndex) -> usize {
        let is_it =
            |(of, other): &(ScalarSubqueryResults, SubqueryIndex)| of == results && *other == index;
        self.values.iter().position(is_it).unwrap_or_else(|| {
            self.values.push((results.clone(), index));
            self.values.len() - 1
        })
    }

    /// The same expression with its own values where the thread has them that runs it.
    pub(super) fn placed(&mut self, expr: &Arc<dyn PhysicalExpr>) -> Result<Arc<dyn PhysicalExpr>> {
        let placed = Arc::clone(expr).transform_up(|part| {
            let Some(value) = self.own(part.as_ref()) else {
                return Ok(Transformed::no(part));
            };
            #[expect(deprecated, reason = "nothing else tells which value it is")]
            let place = self.of(value.results(), value.index());
            let field = part.return_field(&Schema::empty())?;
            let value: Arc<dyn PhysicalExpr> = Arc::new(SubqueryValue { place, field });
            Ok(Transformed::yes(value))
        });
        placed.data()
    }

    /// The step of a node: its first input, which asks for the values of the others.
    pub(super) fn with_values(
        &mut self,
        node: &ScalarSubqueryExec,
        mut inputs: Vec<Step>,
    ) -> WithValues {
        let subqueries = inputs.split_off(1);
        let values = node.subqueries().iter().zip(subqueries);
        let values = values.map(|(link, step)| Value {
            step,
            place: self.of(node.results(), link.index),
            of_type: link.plan.schema().field(0).data_type().clone(),
        });
        WithValues {
            values: values.collect(),
            input: Box::new(inputs.swap_remove(0)),
        }
    }

    /// The input of a filter, narrowed by what its predicate asks of columns with values of
    /// subqueries.
    pub(super) fn narrowed(
        &mut self,
        predicate: &Arc<dyn PhysicalExpr>,
        input: Step,
    ) -> Result<Step> {
        let rows = match &input {
            Step::Table(rows) => rows.clone(),
            Step::Found(scan) => match many_found(scan) {
                Some(rows) => rows,
                None => return Ok(input),
            },
            _ => return Ok(input),
        };
        let Some(table) = rows.table().filter(|_| !rows.has_limit()) else {
            return Ok(input);
        };
        let mut conditions = waiting_conditions(&table, predicate, |expr| {
            let (column, cast) = match expr.downcast_ref::<CastExpr>() {
                Some(cast) => (cast.expr(), Some(cast.cast_type().clone())),
                None => (expr, None),
            };
            let column = column.downcast_ref::<Column>()?;
            Some((rows.column(column.index())?, cast))
        });
        if conditions.is_empty() {
            return Ok(input);
        }
        for condition in &mut conditions {
            condition.value = self.placed(&condition.value)?;
        }
        Ok(Step::NarrowedTable(NarrowedTable { rows, conditions }))
    }

    /// Whether own values stand only where a step finds them: in filters, projections and sorts
    /// that are steps of their own, which those below a join are not.
    pub(super) fn are_steps(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        is_in_join: bool,
    ) -> Result<bool> {
        let is_step = filter_of(plan.as_ref()).is_some()
            || plan.is::<ProjectionExec>()
            || plan.is::<SortExec>();
        let mut is_read = false;
        plan.apply_expressions(&mut |expr| {
            is_read |= expr.exists(|part| Ok(self.own(part.as_ref()).is_some()))?;
            Ok(TreeNodeRecursion::Continue)
        })?;
        if is_read && (is_in_join || !is_step) {
            return Ok(false);
        }
        let is_join = plan.children().len() > 1 && !plan.is::<ScalarSubqueryExec>();
        for child in plan.children() {
            if !self.are_steps(child, is_in_join || is_join)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The rows of a table of which constants have found so many that a value may find fewer.
fn many_found(scan: &KeyScan) -> Option<UnboundRows> {
    let is_many = scan.row_count() as u64 > ROWS_FEW;
    let source = scan.source().filter(|_| is_many)?;
    Some(UnboundRows::of_source(source, None))
}

impl WithValues {
    /// The rows of the input; `None` if there is too much to do, or a subquery has several rows.
    pub(super) fn rows(&self, run: &mut Run) -> Result<Option<RecordBatch>> {
        for value in &self.values {
            let Some(rows) = value.step.rows(run)? else {
                return Ok(None);
            };
            let found = match rows.num_rows() {
                0 => ScalarValue::try_from(&value.of_type)?,
                1 => ScalarValue::try_from_array(rows.column(0), 0)?,
                _ => return Ok(None),
            };
            tell(value.place, found);
        }
        self.input.rows(run)
    }
}

impl NarrowedTable {
    /// The rows; `None` if they are too many.
    pub(super) fn rows_now(&self, most: Size) -> Result<Option<RowsNow>> {
        let Some(table) = self.rows.table() else {
            return Ok(None);
        };
        match known(&self.conditions, table.schema()) {
            Known::NoRow => Ok(Some(RowsNow::none(self.rows.schema()))),
            Known::Filters(filters) => self.rows.narrowed_by(filters).rows_now(most),
        }
    }
}
