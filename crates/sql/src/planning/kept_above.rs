//! Conditions that stay above an aggregate or a window.
//!
//! DataFusion's rule pushes a term below an aggregate where all its columns are keys, which a term
//! without columns fulfils: `HAVING (SELECT MAX(id) FROM t) > 100`, or `NULL = 1` of a derived
//! table whose column is NULL. Below an aggregate without keys it drops the rows that are counted,
//! not the count. It pushes RAND() below keys and windows as well, where it sees other rows.
//!
//! **Never** changes which terms a condition has. **Cost**: a look at each term.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan};

/// Applies the rule that pushes filters down to a node, without the terms that must stay where they
/// are.
///
/// # Errors
/// Those of the rule.
pub(super) fn with_terms_above(
    node: LogicalPlan,
    push: impl FnOnce(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<Transformed<LogicalPlan>> {
    let Some(stays) = staying(&node) else {
        return push(node);
    };
    let (mut above, mut others) = (Vec::new(), Vec::new());
    let mut below = Arc::new(node);
    while let LogicalPlan::Filter(filter) = below.as_ref() {
        let terms = split_conjunction_owned(filter.predicate.clone());
        let (staying, pushed): (Vec<_>, Vec<_>) = terms.into_iter().partition(&stays);
        // The inner filter is asked first.
        above.splice(0..0, staying);
        others.splice(0..0, pushed);
        below = Arc::clone(&filter.input);
    }
    let pushed = match conjunction(others) {
        Some(others) => push(LogicalPlan::Filter(Filter::try_new(others, below)?))?,
        None => Transformed::no(Arc::unwrap_or_clone(below)),
    };
    pushed.map_data(|plan| {
        Ok(match conjunction(above) {
            Some(above) => LogicalPlan::Filter(Filter::try_new(above, Arc::new(plan))?),
            None => plan,
        })
    })
}

/// Which terms of a filter must stay above what it reads; `None` where none of its terms must.
fn staying(node: &LogicalPlan) -> Option<fn(&Expr) -> bool> {
    let LogicalPlan::Filter(_) = node else {
        return None;
    };
    let mut terms = Vec::new();
    let mut below = node;
    while let LogicalPlan::Filter(filter) = below {
        terms.push(&filter.predicate);
        below = &filter.input;
    }
    let stays: fn(&Expr) -> bool = match below {
        LogicalPlan::Aggregate(aggregate) if has_row_of_its_own(aggregate) => {
            |term| term.is_volatile() || term.column_refs().is_empty()
        }
        LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => Expr::is_volatile,
        _ => return None,
    };
    let is_met = |predicate: &&Expr| split_conjunction(predicate).into_iter().any(stays);
    terms.iter().any(is_met).then_some(stays)
}

/// Whether an aggregate has a row where its input has none.
fn has_row_of_its_own(aggregate: &Aggregate) -> bool {
    let mut keys = aggregate.group_expr.iter();
    aggregate.group_expr.is_empty() || keys.any(|key| matches!(key, Expr::GroupingSet(_)))
}

#[cfg(test)]
mod tests {
    use datafusion::functions_aggregate::expr_fn::count;
    use datafusion::logical_expr::{LogicalPlanBuilder, lit};
    use datafusion::prelude::col;

    use super::*;

    fn over_groups(keys: Vec<Expr>, condition: Expr) -> LogicalPlan {
        let rows = vec![vec![lit(1), lit(2)]];
        let plan = LogicalPlanBuilder::values(rows).unwrap();
        let plan = plan.aggregate(keys, vec![count(lit(1)).alias("n")]);
        plan.unwrap().filter(condition).unwrap().build().unwrap()
    }

    /// Whether the rule gets to see a condition.
    fn is_pushed(plan: LogicalPlan) -> bool {
        let mut is_pushed = false;
        let kept = with_terms_above(plan.clone(), |node| {
            is_pushed = true;
            Ok(Transformed::no(node))
        });
        assert_eq!(kept.unwrap().data, plan);
        is_pushed
    }

    #[test]
    fn terms_without_columns_stay_above_the_one_row() {
        let nothing = || lit(1).gt(lit(2));
        assert!(!is_pushed(over_groups(vec![], nothing())));
        assert!(is_pushed(over_groups(vec![col("column1")], nothing())));
        assert!(is_pushed(over_groups(vec![], col("n").gt(lit(2)))));
    }
}
