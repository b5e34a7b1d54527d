//! Conditions that stay above an aggregate, a window or the name of a table.
//!
//! DataFusion's rule pushes a term below an aggregate where all its columns are keys, which a term
//! without columns fulfils: `HAVING (SELECT MAX(id) FROM t) > 100`, or `NULL = 1` of a derived
//! table whose column is NULL. Below an aggregate without keys it drops the rows that are counted,
//! not the count. It pushes RAND() below keys and windows as well, where it sees other rows.
//!
//! A term with outer columns stays above `FROM u q`: below the name, `q.i = u.i` would be
//! `u.i = u.i`, and what ends correlation there could not tell the column of the subquery from that
//! of the outer row.
//!
//! **Never** changes which terms a condition has. **Cost**: a look at each term.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan};

use super::filter_terms::filter_terms;

/// Applies the rule that pushes filters down to a node, without the terms that must stay where they
/// are.
///
/// # Errors
/// Those of the rule.
pub(super) fn with_terms_above(
    node: LogicalPlan,
    push: impl FnOnce(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<Transformed<LogicalPlan>> {
    let (terms, below) = filter_terms(&node);
    let stays = |term: &&Expr| must_stay(term, below);
    if !terms.iter().any(stays) {
        return push(node);
    }
    let (above, others): (Vec<&Expr>, Vec<&Expr>) = terms.into_iter().partition(stays);
    let pushed = match conjunction(others.into_iter().cloned()) {
        Some(others) => {
            let filter = Filter::try_new(others, Arc::new(below.clone()))?;
            push(LogicalPlan::Filter(filter))?
        }
        None => Transformed::no(below.clone()),
    };
    let above = conjunction(above.into_iter().cloned());
    pushed.map_data(|plan| {
        Ok(match above {
            Some(above) => LogicalPlan::Filter(Filter::try_new(above, Arc::new(plan))?),
            None => plan,
        })
    })
}

/// Whether a term of a filter must stay above the node that the filter reads.
fn must_stay(term: &Expr, below: &LogicalPlan) -> bool {
    match below {
        LogicalPlan::Aggregate(aggregate) if has_row_of_its_own(aggregate) => {
            term.is_volatile() || term.column_refs().is_empty()
        }
        LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => term.is_volatile(),
        LogicalPlan::SubqueryAlias(_) => term.contains_outer(),
        _ => false,
    }
}

/// Whether an aggregate has a row where its input has none.
fn has_row_of_its_own(aggregate: &Aggregate) -> bool {
    let mut keys = aggregate.group_expr.iter();
    aggregate.group_expr.is_empty() || keys.any(|key| matches!(key, Expr::GroupingSet(_)))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::DataType;
    use datafusion::functions_aggregate::expr_fn::count;
    use datafusion::logical_expr::{LogicalPlanBuilder, lit, out_ref_col};
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

    #[test]
    fn terms_with_outer_columns_stay_above_the_name_of_a_table() {
        let named = |condition: Expr| {
            let plan = LogicalPlanBuilder::values(vec![vec![lit(1)]]).unwrap();
            let plan = plan.alias("q").unwrap().filter(condition);
            plan.unwrap().build().unwrap()
        };
        let outer = || out_ref_col(DataType::Int64, "u.i");
        assert!(!is_pushed(named(col("q.column1").eq(outer()))));
        assert!(is_pushed(named(col("q.column1").eq(lit(1)))));
    }
}
