//! The loop over the rules of a session: analyzer, optimizer, physical planner.

use std::collections::HashSet;
use std::future::poll_fn;
use std::hash::BuildHasher;
use std::pin::pin;
use std::sync::Arc;

use datafusion::common::hash_utils::QualityRandomState;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::error::Result;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{InvariantLevel, LogicalPlan, assert_expected_schema};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_plan::ExecutionPlan;

use super::above_aggregates::with_terms_above;
use super::aggregate_types::with_aggregate_types;
use super::checks::{check_subqueries, has_subqueries};
use super::column_types::with_types_of;
use super::comparisons::{hide_meeting_comparisons, with_plain_constants};
use super::copies::{check_simplified, grows_below};
use super::hidden_expressions::simplified_around;
use super::leaning::without_leaning;
use super::one_branch::with_one_branch;
use super::size::hold;
use super::watch::check;
use super::written_order::in_written_order;
use crate::long_values::without_long_values;

/// The rule that writes filters below what computes their columns.
const PUSH_FILTERS: &str = "push_down_filter";
/// The rule that simplifies expressions.
const SIMPLIFY: &str = "simplify_expressions";
/// The rule that drops what has no rows.
const DROP_EMPTY: &str = "propagate_empty_relation";

/// Gives a plan its types.
///
/// # Errors
/// Those of the rules, and those of the watch.
pub fn analyzed(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.check_invariants(InvariantLevel::Always)
        .map_err(|error| error.context("Invalid input plan passed to Analyzer"))?;
    debug_assert!(
        state.analyzer().function_rewrites().is_empty(),
        "functions are rewritten by the rule of typing"
    );
    let mut plan = plan;
    for rule in &state.analyzer().rules {
        check()?;
        plan = without_long_values(|| rule.analyze(plan, state.config_options()))
            .map_err(|error| error.context(rule.name()))?;
    }
    check_subqueries(&plan)
        .map_err(|error| error.context("Invalid (non-executable) plan after Analyzer"))?;
    check_simplified(&plan)?;
    Ok(plan)
}

/// The plan that a session makes of one that has no types yet.
///
/// # Errors
/// Those of the rules, and those of the watch.
pub fn optimized(state: &SessionState, plan: LogicalPlan) -> Result<LogicalPlan> {
    hold(&plan)?;
    with_rules(state, analyzed(state, plan)?)
}

/// Applies the optimizer rules to a plan that has its types.
///
/// # Errors
/// Those of the rules, and those of the watch.
pub fn with_rules(state: &SessionState, mut plan: LogicalPlan) -> Result<LogicalPlan> {
    let schema = Arc::clone(plan.schema());
    let mut seen = HashSet::from([fingerprint(&plan)]);
    for _ in 0..state.config_options().optimizer.max_passes {
        let mut nests = has_subqueries(&plan);
        for rule in state.optimizers() {
            let before = Arc::clone(plan.schema());
            let applied = apply(rule.as_ref(), plan, state, nests).and_then(|applied| {
                assert_expected_schema(&before, &applied.data)?;
                Ok(applied)
            });
            let applied = applied.map_err(|error| {
                error.context(format!("Optimizer rule '{}' failed", rule.name()))
            })?;
            plan = applied.data;
            if applied.transformed {
                nests = has_subqueries(&plan);
            }
        }
        hold(&plan)?;
        if !seen.insert(fingerprint(&plan)) {
            break;
        }
    }
    assert_expected_schema(&schema, &plan)?;
    check_subqueries(&plan)
        .map_err(|error| error.context("Invalid (non-executable) plan after LP Optimizers"))?;
    Ok(plan)
}

/// The operators of an optimized plan.
///
/// # Errors
/// Those of the planner and of the rules for operators, and those of the watch.
pub async fn physical(state: &SessionState, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    let planner = Arc::clone(state.query_planner());
    without_long_values_in(planner.create_physical_plan(plan, state)).await
}

/// What is made while no function makes a long value.
pub(crate) async fn without_long_values_in<T>(made: impl Future<Output = T>) -> T {
    let mut made = pin!(made);
    poll_fn(|context| without_long_values(|| made.as_mut().poll(context))).await
}

/// A state whose plans have one partition, but for what says otherwise itself.
pub fn in_one_partition(state: &SessionState) -> SessionStateBuilder {
    let config = state.config().clone().with_target_partitions(1);
    SessionStateBuilder::new_from_existing(state.clone()).with_config(config)
}

/// What tells a plan from those of the passes before.
fn fingerprint(plan: &LogicalPlan) -> u64 {
    // A plan is hashed after each pass: a faster hash than that of the standard library.
    QualityRandomState::with_seed(0).hash_one(plan)
}

/// Applies one rule to a whole plan.
fn apply(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
    nests: bool,
) -> Result<Transformed<LogicalPlan>> {
    match rule.apply_order() {
        Some(order) if nests => plan.rewrite_with_subqueries(&mut WithSubqueries {
            rule,
            config,
            order,
        }),
        Some(order) => rewritten(rule, plan, config, order),
        None => {
            check()?;
            without_long_values(|| rule.rewrite(plan, config))
        }
    }
}

/// Applies a rule to a node.
fn at_node(
    rule: &dyn OptimizerRule,
    node: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<Transformed<LogicalPlan>> {
    check()?;
    let node = without_leaning(node);
    let before = Arc::clone(node.schema());
    let rewrite = |node| without_long_values(|| rule.rewrite(node, config));
    let made = match rule.name() {
        SIMPLIFY => {
            let simplify = |node| with_aggregate_types(node, rewrite);
            simplified_around(node, hide_meeting_comparisons, simplify)
        }
        PUSH_FILTERS if grows_below(&node) => Ok(Transformed::no(node)),
        PUSH_FILTERS => with_terms_above(node, |node| {
            in_written_order(with_plain_constants(node)?, rewrite)
        }),
        DROP_EMPTY => with_one_branch(node, rewrite),
        _ => rewrite(node),
    };
    with_types_of(&before, made?)
}

/// Applies a rule to each node of a plan and of its subqueries.
struct WithSubqueries<'a> {
    rule: &'a dyn OptimizerRule,
    config: &'a dyn OptimizerConfig,
    order: ApplyOrder,
}

impl TreeNodeRewriter for WithSubqueries<'_> {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        match self.order {
            ApplyOrder::TopDown => at_node(self.rule, node, self.config),
            ApplyOrder::BottomUp => Ok(Transformed::no(node)),
        }
    }

    fn f_up(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        match self.order {
            ApplyOrder::BottomUp => at_node(self.rule, node, self.config),
            ApplyOrder::TopDown => Ok(Transformed::no(node)),
        }
    }
}

/// Applies a rule to each node of a plan without subqueries. Where the columns of an input change,
/// those above take their own from it: later rules know columns by their place.
fn rewritten(
    rule: &dyn OptimizerRule,
    plan: LogicalPlan,
    config: &dyn OptimizerConfig,
    order: ApplyOrder,
) -> Result<Transformed<LogicalPlan>> {
    let mut plan = plan;
    let mut transformed = false;
    if order == ApplyOrder::TopDown {
        let node = at_node(rule, plan, config)?;
        if node.tnr == TreeNodeRecursion::Stop {
            return Ok(node);
        }
        (plan, transformed) = (node.data, node.transformed);
    }
    let mut changes_columns = false;
    let inputs = plan.map_children(|input| {
        let before = Arc::clone(input.schema());
        let input = rewritten(rule, input, config, order)?;
        changes_columns |= input.transformed && before != *input.data.schema();
        Ok(Transformed::new_transformed(input.data, input.transformed))
    })?;
    (plan, transformed) = (inputs.data, transformed || inputs.transformed);
    if changes_columns {
        plan = plan.recompute_schema()?;
    }
    if order == ApplyOrder::BottomUp {
        let node = at_node(rule, plan, config)?;
        (plan, transformed) = (node.data, transformed || node.transformed);
    }
    Ok(Transformed::new_transformed(plan, transformed))
}
