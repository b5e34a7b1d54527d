//! Rules of physical plans that ask the watch before they begin.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;

use super::watch::check;

/// Makes all physical rules of a builder ask the watch of their thread.
pub fn watch_rules(mut builder: SessionStateBuilder) -> SessionStateBuilder {
    if let Some(rules) = builder.physical_optimizers() {
        for rule in &mut rules.rules {
            *rule = Arc::new(WatchedRule(Arc::clone(rule)));
        }
    }
    builder
}

#[derive(Debug)]
struct WatchedRule(Arc<dyn PhysicalOptimizerRule + Send + Sync>);

impl PhysicalOptimizerRule for WatchedRule {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        check()?;
        self.0.optimize(plan, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}
