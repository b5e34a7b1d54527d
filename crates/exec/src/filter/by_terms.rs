//! Conditions of joins, evaluated term by term.
//!
//! A join evaluates its condition as one expression, for all pairs of a step. [`ByTerms`] is such
//! an expression: it asks its terms one after the other, as a filter does, so that a side of an AND
//! guards the others in joins too. The rule puts it into stock joins before they become ours.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use arrow::array::{BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::{
    PhysicalExpr, PhysicalExprRef, conjunction_opt, split_conjunction,
};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder,
};

use super::terms::{Terms, is_silent};
use crate::other_columns::over_read_columns;

/// The plan with conditions of joins that are evaluated term by term.
pub(crate) fn in_joins(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        if let Some(join) = node.downcast_ref::<HashJoinExec>()
            && let Some(filter) = join.filter().and_then(by_terms)
        {
            let join = join.builder().with_filter(Some(filter));
            return Ok(Transformed::yes(join.build_exec()?));
        }
        if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>()
            && let Some(filter) = join.filter().and_then(by_terms)
        {
            let join = NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter));
            return Ok(Transformed::yes(Arc::new(join.build()?)));
        }
        Ok(Transformed::no(node))
    })
    .data()
}

/// The same condition term by term; `None` if it is that already.
fn by_terms(filter: &JoinFilter) -> Option<JoinFilter> {
    let condition = filter.expression();
    if condition.is::<ByTerms>() {
        return None;
    }
    let condition = ByTerms {
        condition: Arc::clone(condition),
        terms: Arc::default(),
    };
    Some(JoinFilter::new(
        Arc::new(condition),
        filter.column_indices().to_vec(),
        Arc::clone(filter.schema()),
    ))
}

/// The terms of a condition that are all to be true, in their order: those before the first one
/// that may warn or fail, and the others.
pub(crate) fn silent_terms(filter: &JoinFilter) -> (Vec<PhysicalExprRef>, Vec<PhysicalExprRef>) {
    let condition = filter.expression();
    let by_terms = condition.downcast_ref::<ByTerms>();
    let condition = by_terms.map_or(condition, |by_terms| &by_terms.condition);
    let mut silent: Vec<PhysicalExprRef> =
        split_conjunction(condition).into_iter().cloned().collect();
    let is_loud = |term: &PhysicalExprRef| !is_silent(term, filter.schema());
    let first_loud = silent.iter().position(is_loud);
    let others = silent.split_off(first_loud.unwrap_or(silent.len()));
    (silent, others)
}

/// The condition that terms of another one are true, with the columns that these have; `None`
/// without terms.
pub(crate) fn all_of(
    terms: Vec<PhysicalExprRef>,
    filter: &JoinFilter,
) -> Result<Option<JoinFilter>> {
    let Some(condition) = conjunction_opt(terms) else {
        return Ok(None);
    };
    let (condition, used) = over_read_columns(&condition)?;
    let columns = used.iter().map(|at| filter.column_indices()[*at].clone());
    let schema = filter.schema().project(&used)?;
    let filter = JoinFilter::new(condition, columns.collect(), Arc::new(schema));
    Ok(by_terms(&filter))
}

/// A condition that is true or not: NULL is not.
#[derive(Debug)]
struct ByTerms {
    condition: PhysicalExprRef,
    /// Made when the first pairs come.
    terms: Arc<OnceLock<Terms>>,
}

// The derived ones cannot look behind the pointer.
impl PartialEq for ByTerms {
    fn eq(&self, other: &Self) -> bool {
        *self.condition == *other.condition
    }
}

impl Eq for ByTerms {}

impl Hash for ByTerms {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl fmt::Display for ByTerms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PhysicalExpr for ByTerms {
    fn return_field(&self, _schema: &Schema) -> Result<FieldRef> {
        let name = self.condition.to_string();
        Ok(Arc::new(Field::new(name, DataType::Boolean, false)))
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        let make = || Terms::of(&self.condition, batch.schema_ref());
        let open = self.terms.get_or_init(make).open_rows(batch)?;
        let rows = batch.num_rows();
        let mask = open.mask(rows);
        let mask = mask.unwrap_or_else(|| BooleanArray::from(BooleanBuffer::new_set(rows)));
        Ok(ColumnarValue::Array(Arc::new(mask)))
    }

    fn children(&self) -> Vec<&PhysicalExprRef> {
        vec![&self.condition]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<PhysicalExprRef>,
    ) -> Result<PhysicalExprRef> {
        let Some(condition) = children.pop() else {
            return internal_err!("a condition by terms has one child");
        };
        Ok(Arc::new(ByTerms {
            condition,
            terms: Arc::default(),
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}
