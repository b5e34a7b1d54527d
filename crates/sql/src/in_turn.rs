//! Conditions whose parts are asked one after the other.
//!
//! The engine asks both sides of AND and OR for all rows of a batch, where MySQL asks the right
//! side only for rows that the left one leaves open. It is the same answer, but not the same
//! warnings; and for a statement that writes in strict mode warnings are errors. For those the
//! finished plan is changed here. **Cost**: one walk over the plan, and a copy of the rows that are
//! left open.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, BooleanArray, RecordBatch};
use datafusion::arrow::compute::kernels::boolean::{and_kleene, or_kleene};
use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, LogicalPlan, Operator};
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_expr::projection::ProjectionExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr, conjunction, split_conjunction};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExecBuilder;
use datafusion::physical_plan::projection::ProjectionExec;
use mayfly_exec::{FilterOperator, filter_of};

/// Whether a plan computes rows that it may then leave out by their number.
pub fn limits(plan: &LogicalPlan) -> bool {
    let mut limits = false;
    // The walk fails only where its visitor does.
    let _ = plan.apply_with_subqueries(|node| {
        limits |= matches!(node, LogicalPlan::Limit(_));
        Ok(match limits {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    });
    limits
}

/// The plan with its conditions asked in turn.
///
/// # Errors
/// None but for a bug in the planner.
pub fn in_turn(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let changed = plan.transform_up(|node| {
        if let Some(filter) = filter_of(node.as_ref()) {
            let is_ours = node.is::<FilterOperator>();
            let predicate = match is_ours {
                true => sides_asked(filter.predicate())?,
                false => asked(Arc::clone(filter.predicate()))?,
            };
            if predicate.transformed {
                let builder = FilterExecBuilder::from(filter).with_predicate(predicate.data);
                let filter = builder.build()?;
                let filter: Arc<dyn ExecutionPlan> = match is_ours {
                    true => Arc::new(FilterOperator::of(&filter)),
                    false => Arc::new(filter),
                };
                return Ok(Transformed::yes(filter));
            }
        }
        if let Some(projection) = node.downcast_ref::<ProjectionExec>() {
            let mut changes = false;
            let mut list = Vec::with_capacity(projection.expr().len());
            for item in projection.expr() {
                let expr = asked(Arc::clone(&item.expr))?;
                changes |= expr.transformed;
                list.push(ProjectionExpr::new(expr.data, item.alias.clone()));
            }
            if changes {
                let input = Arc::clone(projection.input());
                return Ok(Transformed::yes(
                    Arc::new(ProjectionExec::try_new(list, input)?) as _,
                ));
            }
        }
        Ok(Transformed::no(node))
    });
    Ok(changed?.data)
}

/// The expression with its conditions asked in turn.
pub(crate) fn asked(expr: Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    expr.transform_up(|expr| {
        let Some(both) = expr.downcast_ref::<BinaryExpr>() else {
            return Ok(Transformed::no(expr));
        };
        let is_or = match both.op() {
            Operator::And => false,
            Operator::Or => true,
            _ => return Ok(Transformed::no(expr)),
        };
        // Nothing but functions warns.
        let warns = both
            .right()
            .exists(|part| Ok(part.downcast_ref::<ScalarFunctionExpr>().is_some()))?;
        if !warns {
            return Ok(Transformed::no(expr));
        }
        Ok(Transformed::yes(Arc::new(InTurn {
            left: Arc::clone(both.left()),
            right: Arc::clone(both.right()),
            is_or,
        }) as _))
    })
}

/// The condition of a filter of ours, which asks the sides of its ANDs in turn by itself.
fn sides_asked(predicate: &Arc<dyn PhysicalExpr>) -> Result<Transformed<Arc<dyn PhysicalExpr>>> {
    let mut changes = false;
    let mut sides = Vec::new();
    for side in split_conjunction(predicate) {
        let side = asked(Arc::clone(side))?;
        changes |= side.transformed;
        sides.push(side.data);
    }
    Ok(match changes {
        true => Transformed::yes(conjunction(sides)),
        false => Transformed::no(Arc::clone(predicate)),
    })
}

/// AND or OR whose right side is asked for the rows that the left one leaves open.
#[derive(Debug)]
struct InTurn {
    left: Arc<dyn PhysicalExpr>,
    right: Arc<dyn PhysicalExpr>,
    is_or: bool,
}

// The derived ones cannot look behind the pointers.
impl PartialEq for InTurn {
    fn eq(&self, other: &Self) -> bool {
        self.is_or == other.is_or && *self.left == *other.left && *self.right == *other.right
    }
}

impl Eq for InTurn {}

impl Hash for InTurn {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.is_or.hash(state);
        self.left.hash(state);
        self.right.hash(state);
    }
}

impl fmt::Display for InTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.is_or { "OR" } else { "AND" };
        write!(f, "{} {word} {}", self.left, self.right)
    }
}

impl PhysicalExpr for InTurn {
    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        let operator = if self.is_or {
            Operator::Or
        } else {
            Operator::And
        };
        let (left, right) = (Arc::clone(&self.left), Arc::clone(&self.right));
        BinaryExpr::new(left, operator, right).return_field(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let rows = batch.num_rows();
        let left = self.left.evaluate(batch)?.into_array(rows)?;
        let left = left.as_boolean();
        let open = left.iter().map(|left| Some(left != Some(self.is_or)));
        let open: BooleanArray = open.collect();
        let right = self
            .right
            .evaluate_selection(batch, &open)?
            .into_array(rows)?;
        let right = right.as_boolean();
        Ok(ColumnarValue::Array(Arc::new(match self.is_or {
            true => or_kleene(left, right)?,
            false => and_kleene(left, right)?,
        })))
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.left, &self.right]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let Ok([left, right]) = <[_; 2]>::try_from(children) else {
            return internal_err!("AND and OR have two sides");
        };
        let is_or = self.is_or;
        Ok(Arc::new(InTurn { left, right, is_or }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
