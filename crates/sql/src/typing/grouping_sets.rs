//! Keys of WITH ROLLUP that are computed.
//!
//! What stands above an aggregate finds its keys by their names. The names of typed expressions are
//! kept by aliases around them, which the keys inside of a grouping set cannot have; so those are
//! computed below it:
//!
//! ```text
//! Aggregate: ROLLUP (if(b > 1, ...))  ==>  Aggregate: ROLLUP ("if(b > 1, ...)")
//!                                            Projection: *, if(b > 1, ...) AS "if(b > 1, ...)"
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, Projection};

/// The aggregate with columns for keys in its grouping sets; its expressions are not typed yet.
/// `typed` types what is below it.
pub(super) fn over_columns(
    plan: LogicalPlan,
    typed: &dyn Fn(LogicalPlan) -> Result<LogicalPlan>,
) -> Result<LogicalPlan> {
    let LogicalPlan::Aggregate(aggregate) = &plan else {
        return Ok(plan);
    };
    let [Expr::GroupingSet(GroupingSet::Rollup(keys))] = aggregate.group_expr.as_slice() else {
        return Ok(plan);
    };
    let mut list: Vec<Expr> = { aggregate.input.schema().columns().into_iter() }
        .map(Expr::Column)
        .collect();
    let mut columns: HashMap<&Expr, Expr> = HashMap::new();
    for key in keys {
        if matches!(key, Expr::Column(_)) || columns.contains_key(key) {
            continue;
        }
        let name = key.schema_name().to_string();
        list.push(key.clone().alias(&name));
        columns.insert(key, Expr::Column(Column::from_name(name)));
    }
    if columns.is_empty() {
        return Ok(plan);
    }
    let column_of = |key: &Expr| columns.get(key).cloned().unwrap_or_else(|| key.clone());
    let group_expr = GroupingSet::Rollup(keys.iter().map(column_of).collect());
    let of_columns = |expr: Expr| match expr {
        Expr::AggregateFunction(mut function) if function.func.name() == "grouping" => {
            function.params.args = function.params.args.iter().map(column_of).collect();
            Transformed::yes(Expr::AggregateFunction(function))
        }
        other => Transformed::no(other),
    };
    let aggr_expr = aggregate.aggr_expr.iter().cloned();
    let aggr_expr = aggr_expr.map(|expr| Ok(expr.transform_up(|expr| Ok(of_columns(expr)))?.data));
    let projection = Projection::try_new(list, Arc::clone(&aggregate.input))?;
    Ok(LogicalPlan::Aggregate(Aggregate::try_new(
        Arc::new(typed(LogicalPlan::Projection(projection))?),
        vec![Expr::GroupingSet(group_expr)],
        aggr_expr.collect::<Result<_>>()?,
    )?))
}
