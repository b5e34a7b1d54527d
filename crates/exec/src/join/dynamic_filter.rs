//! What a scan on the right side may leave out, because the left side has no such key.
//!
//! A stock join promises scans below its right side a filter that it fills in when the left side is
//! known. Ours keeps the promise with the least and the greatest value of each key.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{MaxAccumulator, MinAccumulator};
use datafusion::logical_expr::{Accumulator, Operator};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{BinaryExpr, DynamicFilterPhysicalExpr, is_null, lit};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::HashJoinExec;

/// The filter that a stock join has promised, if anybody waits for it.
pub(super) fn awaited(stock: &HashJoinExec) -> Result<Option<PhysicalExprRef>> {
    let promised = stock.dynamic_expressions_produced().into_iter().next();
    Ok(match promised {
        Some(filter) if is_awaited(stock.right(), &filter)? => Some(filter),
        _ => None,
    })
}

/// Whether a node of a plan has the filter.
fn is_awaited(plan: &Arc<dyn ExecutionPlan>, filter: &PhysicalExprRef) -> Result<bool> {
    let Some(id) = filter.expression_id() else {
        return Ok(false);
    };
    let mut is_found = false;
    plan.apply(|node| {
        node.apply_expressions(&mut |root| {
            root.apply(|expr| {
                is_found |= expr.expression_id() == Some(id);
                Ok(match is_found {
                    true => TreeNodeRecursion::Stop,
                    false => TreeNodeRecursion::Continue,
                })
            })
        })?;
        Ok(match is_found {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    Ok(is_found)
}

/// The least and the greatest value of each key so far.
#[derive(Debug)]
pub(super) struct Bounds {
    /// `None` for keys of which they say little, or would have to be told by another order.
    keys: Vec<Option<(MinAccumulator, MaxAccumulator)>>,
    has_rows: bool,
}

impl Bounds {
    /// The bounds of keys of these types.
    pub(super) fn new<'a>(types: impl Iterator<Item = &'a DataType>) -> Result<Bounds> {
        let bound = |data_type: &DataType| -> Result<Option<_>> {
            if data_type.is_floating() || data_type.is_nested() {
                return Ok(None);
            }
            let least = MinAccumulator::try_new(data_type)?;
            Ok(Some((least, MaxAccumulator::try_new(data_type)?)))
        };
        Ok(Bounds {
            keys: types.map(bound).collect::<Result<_>>()?,
            has_rows: false,
        })
    }

    /// Takes the keys of some rows in.
    pub(super) fn add(&mut self, keys: &[ArrayRef]) -> Result<()> {
        self.has_rows |= keys.first().is_some_and(|key| !key.is_empty());
        for (bound, key) in self.keys.iter_mut().zip(keys) {
            if let Some((least, greatest)) = bound {
                least.update_batch(std::slice::from_ref(key))?;
                greatest.update_batch(std::slice::from_ref(key))?;
            }
        }
        Ok(())
    }

    /// Takes the bounds of other rows in.
    pub(super) fn merge(&mut self, mut other: Bounds) -> Result<()> {
        self.has_rows |= other.has_rows;
        for (bound, other) in self.keys.iter_mut().zip(&mut other.keys) {
            if let (Some((least, greatest)), Some((other_least, other_greatest))) = (bound, other) {
                least.update_batch(&[other_least.evaluate()?.to_array()?])?;
                greatest.update_batch(&[other_greatest.evaluate()?.to_array()?])?;
            }
        }
        Ok(())
    }

    /// Fills in the filter of a join whose left side has these bounds. `keys` are those of the
    /// right side, whose columns are `schema`; `keeps_null` says whether rows with a NULL among
    /// them may come through.
    pub(super) fn fulfil(
        &mut self,
        filter: &PhysicalExprRef,
        keys: &[PhysicalExprRef],
        schema: &Schema,
        keeps_null: bool,
    ) -> Result<()> {
        let Some(filter) = filter.downcast_ref::<DynamicFilterPhysicalExpr>() else {
            return Ok(());
        };
        let mut all: PhysicalExprRef = lit(self.has_rows);
        for (bound, key) in self.keys.iter_mut().zip(keys) {
            let Some((least, greatest)) = bound else {
                continue;
            };
            let (least, greatest) = (least.evaluate()?, greatest.evaluate()?);
            let data_type = key.data_type(schema)?;
            let is_told = |value: &ScalarValue| !value.is_null() && value.data_type() == data_type;
            if !is_told(&least) || !is_told(&greatest) {
                continue;
            }
            let compare = |operator, value| -> PhysicalExprRef {
                Arc::new(BinaryExpr::new(Arc::clone(key), operator, lit(value)))
            };
            let join = |one, operator, other| -> PhysicalExprRef {
                Arc::new(BinaryExpr::new(one, operator, other))
            };
            let mut within = join(
                compare(Operator::GtEq, least),
                Operator::And,
                compare(Operator::LtEq, greatest),
            );
            if keeps_null {
                within = join(within, Operator::Or, is_null(Arc::clone(key))?);
            }
            all = join(all, Operator::And, within);
        }
        filter.update(all)?;
        filter.mark_complete();
        Ok(())
    }
}
