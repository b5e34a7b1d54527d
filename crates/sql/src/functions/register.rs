//! MySQL's functions, operators and typing for a session.

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::optimizer::Analyzer;

use super::aggregate_functions;
use super::session_values::SessionValues;
use crate::typing::Coercion;

/// Gives a session MySQL's functions, operators and typing.
///
/// Scalar functions are looked up with [`scalar_function`](super::scalar_function); a name that
/// MySQL does not know is an error, whatever other dialects call by it. The rule of typing stands
/// before all other analyzer rules, and a rule of ours hands the stock coercion what it has
/// something to do with. If the configuration holds [`SessionValues`], GROUP_CONCAT keeps their
/// limit.
pub fn register(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    let session = builder
        .config()
        .as_ref()
        .and_then(|config| config.options().extensions.get::<SessionValues>())
        .cloned();
    let mut rules: Vec<Arc<dyn datafusion::optimizer::AnalyzerRule + Send + Sync>> =
        vec![Arc::new(crate::typing::Typing)];
    for rule in Analyzer::new().rules {
        let is_coercion = rule.name() == Coercion::NAME;
        rules.push(match is_coercion {
            true => Arc::new(Coercion),
            false => rule,
        });
    }
    let mut planners: Vec<Arc<dyn datafusion::logical_expr::planner::ExprPlanner>> =
        vec![Arc::new(crate::typing::Operators::new(session))];
    planners.extend(builder.expr_planners().take().unwrap_or_default());
    builder
        // Shared: they know no session, and a table of them would take 40 KiB of each.
        .with_scalar_functions(Vec::new())
        .with_aggregate_functions(aggregate_functions())
        .with_expr_planners(planners)
        .with_analyzer_rules(rules)
}
