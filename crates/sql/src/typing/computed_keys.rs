//! Keys of windows and of ORDER BY that the engine must compute before it sorts by them.
//!
//! A window wants its rows in the order of its keys, and so does who merges sorted partitions. The
//! engine sorts them, and then does not see that they are: it derives the order of an expression
//! from the ranges of its parts, gives up where those have no type, as CASE and functions have, and
//! refuses the plan. A column is in the order that it was sorted by, so such keys become columns
//! below. They are computed once there, where sort, merge and window did so each.
//!
//! ```text
//! Window: SUM(x) OVER (ORDER BY f(a) + 1)       ==>  Projection: the columns as they were
//!   Window: SUM(y) OVER (ORDER BY f(a) + 1, b)         Window: SUM(x) OVER (ORDER BY key 0)
//!                                                        Window: SUM(y) OVER (ORDER BY key 0, b)
//!                                                          Projection: *, f(a) + 1 AS key 0
//! ```
//!
//! The engine asks of each key whether it is constant where another one is: the square of their
//! number, each time that it compares two orders. Beyond some, keys are one column of bytes.
//!
//! Windows that stand above one another have their keys below all of them: two projections
//! whatever their number, where each column of a wide select list is named once for each of them.
//! A key that several windows have is one column, so that the sort for one is that for others.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::compute::SortOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Sort as SortKey, WindowFunctionParams};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Projection, Sort, Window};

use super::except;
use super::nameless::data_type_of;
use crate::functions::one_key::one_key;

/// How such columns are named, before a number.
const KEY: &str = "mayfly computed key";

/// How many keys an order has at most, the one included that stands for all others.
const KEYS_MAX: usize = 32;

/// Keys that are columns below, each once.
#[derive(Default)]
struct Keys {
    list: Vec<Expr>,
    places: HashMap<Expr, usize>,
}

impl Keys {
    /// The column of a key.
    fn column(&mut self, key: Expr) -> Expr {
        let next = self.list.len();
        // Each mention of what varies has values of its own.
        let place = match key.is_volatile() {
            true => next,
            false => *self.places.entry(key.clone()).or_insert(next),
        };
        if place == next {
            self.list.push(key);
        }
        Expr::Column(Column::new_unqualified(name_of(place)))
    }

    /// Puts columns in the places of keys of an order.
    fn take_from_order(&mut self, order: &mut Vec<SortKey>, schema: &DFSchema) -> Result<()> {
        if order.len() > KEYS_MAX {
            let others = { order[KEYS_MAX - 1..].iter() }.map(|key| {
                let options = SortOptions::new(!key.asc, key.nulls_first);
                (key.expr.clone(), options)
            });
            if let Some(key) = one_key(others.collect(), |key| data_type_of(key, schema))? {
                order.truncate(KEYS_MAX - 1);
                order.push(self.column(key).sort(true, true));
            }
        }
        order
            .iter_mut()
            .try_for_each(|key| self.take(&mut key.expr))
    }

    /// The same for the keys of partitions, whose order nobody asks for.
    fn take_from_partition(&mut self, list: &mut Vec<Expr>, schema: &DFSchema) -> Result<()> {
        let mut order = { list.drain(..) }.map(|key| key.sort(true, true)).collect();
        self.take_from_order(&mut order, schema)?;
        list.extend(order.into_iter().map(|key| key.expr));
        Ok(())
    }

    /// Puts a column in the place of a key whose order is lost.
    fn take(&mut self, key: &mut Expr) -> Result<()> {
        if is_lost(key)? {
            *key = self.column(std::mem::take(key));
        }
        Ok(())
    }
}

/// A sort by columns in the places of such keys.
pub(super) fn of_sort(mut sort: Sort, schema: &DFSchema) -> Result<LogicalPlan> {
    let mut keys = Keys::default();
    keys.take_from_order(&mut sort.expr, schema)?;
    if keys.list.is_empty() {
        return Ok(LogicalPlan::Sort(sort));
    }
    let all = sort.input.schema().columns().into_iter().map(Expr::Column);
    let all = all.collect();
    sort.input = Arc::new(with_keys(sort.input, keys)?);
    projected(Arc::new(LogicalPlan::Sort(sort)), all)
}

/// A plan whose windows, where some are its inputs, have keys that the engine sorts by. Those that
/// stand directly above one another are one stack: what they are sorted by is computed below all of
/// them, once for each key.
///
/// A window by itself is left to the node above its stack; one that numbers the rows of a set
/// operation to that, which may still convert them.
pub(super) fn of_windows_below(plan: LogicalPlan) -> Result<LogicalPlan> {
    if matches!(plan, LogicalPlan::Window(_)) || except::numbers_rows(&plan) {
        return Ok(plan);
    }
    let mut has_any = false;
    for input in plan.inputs() {
        has_any |= has_keys_to_compute(input)?;
    }
    if !has_any {
        return Ok(plan);
    }
    plan.map_children(|input| match input {
        LogicalPlan::Window(window) => of_stack(window).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    })
    .data()
}

/// Whether a window of a stack has keys that become columns below.
fn has_keys_to_compute(top: &LogicalPlan) -> Result<bool> {
    let mut plan = top;
    while let LogicalPlan::Window(window) = plan {
        for params in window.window_expr.iter().filter_map(params_of) {
            if becomes_columns(params)? {
                return Ok(true);
            }
        }
        plan = &window.input;
    }
    Ok(false)
}

/// A stack of windows over columns in the places of such keys. No window is sorted by what another
/// one of its stack answers.
fn of_stack(top: Window) -> Result<LogicalPlan> {
    let all = top.schema.columns().into_iter().map(Expr::Column).collect();
    let mut keys = Keys::default();
    let mut levels = Vec::new();
    let mut below = LogicalPlan::Window(top);
    while let LogicalPlan::Window(window) = below {
        let schema = window.input.schema();
        let list = { window.window_expr.into_iter() }
            .map(|expr| with_columns(expr, &mut keys, schema))
            .collect::<Result<Vec<Expr>>>()?;
        levels.push(list);
        below = Arc::unwrap_or_clone(window.input);
    }
    let has_keys = !keys.list.is_empty();
    let mut plan = match has_keys {
        true => with_keys(Arc::new(below), keys)?,
        // None of many has bytes of its order.
        false => below,
    };
    for list in levels.into_iter().rev() {
        plan = LogicalPlan::Window(Window::try_new(list, Arc::new(plan))?);
    }
    match has_keys {
        true => projected(Arc::new(plan), all),
        false => Ok(plan),
    }
}

/// A plan with the keys behind its columns.
fn with_keys(plan: Arc<LogicalPlan>, keys: Keys) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().map(Expr::Column);
    let keys = keys.list.into_iter().enumerate();
    let keys = keys.map(|(place, key)| key.alias(name_of(place)));
    let all = columns.chain(keys).collect();
    projected(plan, all)
}

/// A plan with these columns, which are its own.
fn projected(plan: Arc<LogicalPlan>, list: Vec<Expr>) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Projection(Projection::try_new(list, plan)?))
}

fn name_of(place: usize) -> String {
    format!("{KEY} {place}")
}

/// What a function over a window, under a name or not, is cut and sorted by.
fn params_of(expr: &Expr) -> Option<&WindowFunctionParams> {
    match expr {
        Expr::Alias(alias) => params_of(&alias.expr),
        Expr::WindowFunction(window) => Some(&window.params),
        _ => None,
    }
}

fn params_mut(expr: &mut Expr) -> Option<&mut WindowFunctionParams> {
    match expr {
        Expr::Alias(alias) => params_mut(&mut alias.expr),
        Expr::WindowFunction(window) => Some(&mut window.params),
        _ => None,
    }
}

fn becomes_columns(params: &WindowFunctionParams) -> Result<bool> {
    let (list, order) = (&params.partition_by, &params.order_by);
    if list.len() > KEYS_MAX || order.len() > KEYS_MAX {
        return Ok(true);
    }
    for key in list.iter().chain(order.iter().map(|key| &key.expr)) {
        if is_lost(key)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A function over a window, under its name, with columns in the places of such keys.
fn with_columns(mut expr: Expr, keys: &mut Keys, schema: &DFSchema) -> Result<Expr> {
    match params_of(&expr) {
        Some(params) if becomes_columns(params)? => {}
        _ => return Ok(expr),
    }
    let name = NamePreserver::new_for_projection().save(&expr);
    if let Some(params) = params_mut(&mut expr) {
        keys.take_from_partition(&mut params.partition_by, schema)?;
        keys.take_from_order(&mut params.order_by, schema)?;
    }
    Ok(name.restore(expr))
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

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::config::ConfigOptions;
    use datafusion::common::tree_node::TreeNodeRecursion;
    use datafusion::functions_window::row_number::row_number;
    use datafusion::logical_expr::{ExprFunctionExt, LogicalPlanBuilder, col, lit, table_scan};
    use datafusion::optimizer::AnalyzerRule;

    use super::*;
    use crate::typing::Typing;

    /// ROW_NUMBER() in the order of some keys.
    fn numbered(name: &str, keys: &[Expr]) -> Expr {
        let order = keys.iter().map(|key| key.clone().sort(true, true));
        let window = row_number().order_by(order.collect());
        window.build().unwrap().alias(name)
    }

    /// A table of two columns.
    fn scan() -> LogicalPlan {
        let fields = ["a", "b"].map(|name| Field::new(name, DataType::Int64, true));
        let rows = table_scan(Some("t"), &Schema::new(fields.to_vec()), None);
        rows.unwrap().build().unwrap()
    }

    fn typed(plan: LogicalPlan) -> LogicalPlan {
        Typing.analyze(plan, &ConfigOptions::default()).unwrap()
    }

    /// A select list of windows over it, with its types.
    fn selected(windows: Vec<Expr>) -> LogicalPlan {
        let unnamed = { windows.iter().cloned() }.map(Expr::unalias);
        let plan = LogicalPlanBuilder::window_plan(scan(), unnamed).unwrap();
        let list = windows.into_iter().map(|window| match window {
            Expr::Alias(alias) => {
                Expr::Column(Column::from_name(alias.expr.schema_name().to_string()))
                    .alias(alias.name)
            }
            other => other,
        });
        let plan = LogicalPlanBuilder::from(plan).project(list).unwrap();
        typed(plan.build().unwrap())
    }

    /// How many nodes of a plan are windows, and how many projections.
    fn count(plan: &LogicalPlan) -> (usize, usize) {
        let mut counts = (0, 0);
        let look = |node: &LogicalPlan| {
            match node {
                LogicalPlan::Window(_) => counts.0 += 1,
                LogicalPlan::Projection(_) => counts.1 += 1,
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        };
        plan.apply(look).unwrap();
        counts
    }

    /// The keys of all windows of a plan, from the root to the leaves.
    fn orders(plan: &LogicalPlan) -> Vec<Vec<String>> {
        let mut orders = Vec::new();
        let look = |node: &LogicalPlan| {
            if let LogicalPlan::Window(window) = node {
                let params = window.window_expr.iter().filter_map(params_of);
                let keys = params.flat_map(|params| &params.order_by);
                orders.push(keys.map(|key| key.expr.to_string()).collect());
            }
            Ok(TreeNodeRecursion::Continue)
        };
        plan.apply(look).unwrap();
        orders
    }

    /// A key whose order the engine does not derive.
    fn lost(number: i64) -> Expr {
        (col("t.a") + lit(number)).gt(col("t.b"))
    }

    #[test]
    fn keys_of_all_windows_are_two_projections() {
        for windows in [1_i64, 3, 40] {
            let list = (0..windows).map(|key| numbered(&format!("w{key}"), &[lost(key)]));
            let plan = selected(list.collect());
            let windows = usize::try_from(windows).unwrap();
            // One more is the select list.
            assert_eq!(count(&plan), (windows, 3), "{plan}");
            let names = plan.schema().field_names();
            let expected = (0..windows).map(|key| format!("w{key}"));
            assert_eq!(names, expected.collect::<Vec<_>>());
        }
        let plan = selected(vec![numbered("w", &[col("t.a")])]);
        assert_eq!(count(&plan), (1, 1), "{plan}");
    }

    #[test]
    fn a_key_of_several_windows_is_one_column() {
        let plan = selected(vec![
            numbered("w0", &[lost(1)]),
            numbered("w1", &[lost(1), col("t.b")]),
            numbered("w2", &[col("t.b")]),
        ]);
        assert_eq!(count(&plan), (3, 3), "{plan}");
        let mut orders = orders(&plan);
        orders.sort();
        let (key, b) = (name_of(0), "t.b".to_owned());
        assert_eq!(orders, [vec![key.clone()], vec![key, b.clone()], vec![b]]);
        // The types of a typed plan are those that it has.
        assert_eq!(typed(plan.clone()), plan);
    }

    #[test]
    fn keys_beyond_some_are_one() {
        for (count, expected) in [
            (KEYS_MAX, KEYS_MAX),
            (KEYS_MAX + 1, KEYS_MAX),
            (500, KEYS_MAX),
        ] {
            let keys: Vec<Expr> = { 0_i64.. }
                .take(count)
                .map(|key| col("t.a") + lit(key))
                .collect();
            let plan = selected(vec![numbered("w", &keys)]);
            let order = orders(&plan).pop().unwrap();
            assert_eq!(order.len(), expected, "{order:?}");

            let order = keys.into_iter().map(|key| key.sort(false, false));
            let plan = LogicalPlanBuilder::from(scan()).sort(order).unwrap();
            let columns = plan.schema().columns();
            let plan = typed(plan.build().unwrap());
            assert_eq!(plan.schema().columns(), columns);
            let mut sorted = Vec::new();
            let look = |node: &LogicalPlan| {
                if let LogicalPlan::Sort(sort) = node {
                    sorted.push(sort.expr.len());
                }
                Ok(TreeNodeRecursion::Continue)
            };
            plan.apply(look).unwrap();
            assert_eq!(sorted, [expected]);
            assert_eq!(typed(plan.clone()), plan);
        }
    }
}
