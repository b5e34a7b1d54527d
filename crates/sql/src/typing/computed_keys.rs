//! Keys of windows and of ORDER BY that the engine must compute before it sorts by them.
//!
//! A window wants its rows in the order of its keys, and so does who merges sorted partitions. The
//! engine sorts them, and then does not see that they are: it derives the order of an expression
//! from the ranges of its parts, gives up where those have no type, as CASE and functions have, and
//! refuses the plan. A column is in the order that it was sorted by, so such keys become columns
//! below. They are computed once there, where sort, merge and window did so each.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::TreeNode;
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Sort, Window};

/// How such columns are named, before a number.
const KEY: &str = "mayfly computed key";

/// A sort by columns in the places of such keys.
pub(super) fn of_sort(mut sort: Sort) -> Result<LogicalPlan> {
    let mut keys: Vec<Expr> = Vec::new();
    for key in &mut sort.expr {
        compute_below(&mut key.expr, &mut keys)?;
    }
    if keys.is_empty() {
        return Ok(LogicalPlan::Sort(sort));
    }
    let all = sort.input.schema().columns().into_iter().map(Expr::Column);
    let all: Vec<Expr> = all.collect();
    sort.input = Arc::new(with_keys(sort.input, keys)?);
    LogicalPlanBuilder::from(LogicalPlan::Sort(sort))
        .project(all)?
        .build()
}

/// A window whose keys the engine sorts by.
pub(super) fn of_window(window: Window) -> Result<LogicalPlan> {
    let mut keys: Vec<Expr> = Vec::new();
    let list = { window.window_expr.iter().cloned() }
        .map(|expr| {
            let name = NamePreserver::new_for_projection().save(&expr);
            Ok(name.restore(with_columns(expr, &mut keys)?))
        })
        .collect::<Result<Vec<Expr>>>()?;
    if keys.is_empty() {
        return Ok(LogicalPlan::Window(window));
    }
    let all = window.schema.columns().into_iter().map(Expr::Column);
    let input = with_keys(window.input, keys)?;
    let window = LogicalPlan::Window(Window::try_new(list, Arc::new(input))?);
    LogicalPlanBuilder::from(window).project(all)?.build()
}

/// A plan with the keys behind its columns.
fn with_keys(plan: Arc<LogicalPlan>, keys: Vec<Expr>) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().map(Expr::Column);
    let keys = { keys.into_iter().enumerate() }.map(|(index, key)| key.alias(name_of(index)));
    let all: Vec<Expr> = columns.chain(keys).collect();
    LogicalPlanBuilder::from(Arc::unwrap_or_clone(plan))
        .project(all)?
        .build()
}

fn name_of(index: usize) -> String {
    format!("{KEY} {index}")
}

/// A function over a window with columns in the places of such keys, which it adds to `keys`.
fn with_columns(expr: Expr, keys: &mut Vec<Expr>) -> Result<Expr> {
    let mut window = match expr {
        Expr::Alias(mut alias) => {
            *alias.expr = with_columns(*alias.expr, keys)?;
            return Ok(Expr::Alias(alias));
        }
        Expr::WindowFunction(window) => window,
        other => return Ok(other),
    };
    let params = &mut window.params;
    let order = params.order_by.iter_mut().map(|key| &mut key.expr);
    for key in params.partition_by.iter_mut().chain(order) {
        compute_below(key, keys)?;
    }
    Ok(Expr::WindowFunction(window))
}

/// Puts a column in the place of a key whose order is lost, and adds that to `keys`.
fn compute_below(key: &mut Expr, keys: &mut Vec<Expr>) -> Result<()> {
    if !is_lost(key)? {
        return Ok(());
    }
    let known = keys.iter().position(|known| known == key);
    let index = known.unwrap_or(keys.len());
    let column = Expr::Column(Column::new_unqualified(name_of(index)));
    let key = std::mem::replace(key, column);
    if known.is_none() {
        keys.push(key);
    }
    Ok(())
}

/// Whether the order of a key may not be derived: it computes or compares more than columns and
/// constants.
fn is_lost(key: &Expr) -> Result<bool> {
    let is_leaf = |expr: &Expr| matches!(expr, Expr::Column(_) | Expr::Literal(..));
    key.exists(|part| {
        Ok(match part {
            Expr::BinaryExpr(BinaryExpr { left, right, .. }) => !is_leaf(left) || !is_leaf(right),
            Expr::Between(_) | Expr::Negative(_) => true,
            _ => false,
        })
    })
}
