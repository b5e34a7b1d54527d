//! EXPLAIN FORMAT=TREE and EXPLAIN ANALYZE: the operators of a plan, a line each.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::display::DisplayableExecutionPlan;
use mayfly_exec::{ApplyOperator, JoinOperator, SidewaysOperator};
use mayfly_sql::inner_name::shown_in;

use super::target::Target;

/// Longest line of a plan; expressions of generated statements can be very long.
const LINE_LENGTH: usize = 400;

/// What the lines tell of each operator.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// What it is to do.
    Plan,
    /// What it did as well.
    Run,
}

/// The lines of a statement; without a plan for one that has none.
pub(super) fn lines(
    plan: Option<&Arc<dyn ExecutionPlan>>,
    target: &Target,
    told: Told,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut depth = 0;
    if let Target::Filled { word, table } = target {
        let word = match *word {
            "REPLACE" => "Replace",
            _ => "Insert",
        };
        lines.push(format!("-> {word} into {table}"));
        depth = 1;
    }
    if let Some(plan) = plan {
        add(plan, depth, told, &mut lines);
    }
    lines
}

fn add(plan: &Arc<dyn ExecutionPlan>, depth: usize, told: Told, lines: &mut Vec<String>) {
    let text = DisplayableExecutionPlan::new(plan.as_ref())
        .one_line()
        .to_string();
    let text = shown_in(text.replace(mayfly_sql::functions::own::MARK, ""));
    let mut line = format!("{}-> {}", "    ".repeat(depth), text.trim());
    if line.chars().count() > LINE_LENGTH {
        line = line.chars().take(LINE_LENGTH).collect();
        line.push_str("...");
    }
    if told == Told::Run {
        add_counted(plan, &mut line);
    }
    lines.push(line);
    for child in plan.children() {
        add(child, depth + 1, told, lines);
    }
    if let Some(apply) = plan.downcast_ref::<ApplyOperator>() {
        // Each run has operators of its own, so that these have counted nothing.
        add(apply.subquery(), depth + 1, Told::Plan, lines);
    }
}

/// What an operator counted while it ran.
fn add_counted(plan: &Arc<dyn ExecutionPlan>, line: &mut String) {
    if let Some(metrics) = plan.metrics()
        && let Some(rows) = metrics.output_rows()
    {
        line.push_str(&format!("  (actual rows={rows}"));
        if let Some(nanos) = metrics.elapsed_compute() {
            line.push_str(&format!(" compute={:.3}ms", nanos as f64 / 1e6));
        }
        line.push(')');
    }
    if let Some(join) = plan.downcast_ref::<JoinOperator>() {
        let counted = join
            .counted()
            .map(|(name, value)| format!("{name}={value}"));
        line.push_str(&format!("  ({})", counted.collect::<Vec<_>>().join(" ")));
    }
    if let Some(sideways) = plan.downcast_ref::<SidewaysOperator>()
        && let Some(dropped) = sideways.rows_dropped()
    {
        line.push_str(&format!("  (rows_dropped={dropped})"));
    }
}
