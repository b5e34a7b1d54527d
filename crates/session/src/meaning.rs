//! A DataFusion session with MySQL's meaning: functions, typing, options, operators.

use std::sync::Arc;

use datafusion::datasource::listing::ListingTableUrl;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::prelude::SessionConfig;
use mayfly_exec::OnlyGoverned;
use mayfly_sql::apply::PlanApplies;
use mayfly_sql::functions::SessionValues;

use crate::engine::Engine;
use crate::file_access::FileAccess;
use crate::files::{FilesBelow, TEXT_SCAN};
use crate::yielding::YieldInJoins;

/// Rows of a batch when memory is plenty; `mayfly_exec::install` takes fewer when it is not.
const BATCH_ROWS: usize = 8192;
/// The part of the budget that cached file metadata may take.
const METADATA_SHARE: u64 = 64;
const METADATA_BYTES_MAX: u64 = 8 << 20;

/// Operators of this floor: a text file is read a chunk at a time, long records are reserved.
const OPERATORS: [&str; 1] = [TEXT_SCAN];

/// The state that all statements of a session plan with.
pub(crate) fn state(engine: &Engine, values: &SessionValues) -> Result<SessionState> {
    let space = engine.space();
    let mut config = SessionConfig::new()
        .with_batch_size(BATCH_ROWS)
        .with_target_partitions(engine.threads())
        .with_information_schema(false)
        .with_create_default_catalog_and_schema(false);
    let options = config.options_mut();
    options.sql_parser.parse_float_as_decimal = true;
    options.sql_parser.enable_ident_normalization = false;
    options.sql_parser.default_null_ordering = "nulls_min".to_owned();
    options.sql_parser.map_string_types_to_utf8view = true;
    // Common table expressions keep one identity, see the rule that materialises them.
    options.sql_parser.enable_subquery_sort_elimination = false;
    options.execution.parquet.schema_force_view_types = true;
    options.execution.parquet.binary_as_string = true;
    options.execution.collect_statistics = true;
    // What is known of an input when it is planned may be less than what a rule had found out: a
    // column that is never NULL, a type of MySQL.
    options.execution.skip_physical_aggregate_schema_check = true;
    // An interleave needs inputs that are partitioned by hash, which ours are not.
    options.optimizer.prefer_existing_union = true;
    options.extensions.insert(values.clone());
    let metadata_bytes = (space.memory_bytes() / METADATA_SHARE).min(METADATA_BYTES_MAX);
    let runtime = RuntimeEnvBuilder::new()
        .with_metadata_cache_limit(usize::try_from(metadata_bytes).unwrap_or(usize::MAX))
        .build_arc()?;
    let files = &engine.shared().options.files;
    if *files != FileAccess::All {
        let all = ListingTableUrl::parse("file:///")?.object_store();
        runtime.register_object_store(all.as_ref(), Arc::new(FilesBelow::new(files.clone())));
    }
    let builder = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features();
    let builder = mayfly_sql::functions::register(builder);
    let builder = mayfly_exec::install(builder, space)?;
    let builder = builder
        .with_query_planner(Arc::new(PlanApplies))
        .with_physical_optimizer_rule(Arc::new(YieldInJoins))
        .with_physical_optimizer_rule(Arc::new(OnlyGoverned::with_operators(OPERATORS)));
    let mut state = mayfly_sql::planning::watch_rules(builder).build();
    state.register_udf(Arc::new(mayfly_sql::untyped::function()))?;
    // Hands the options, and with them the session's values, to functions while they run.
    state.mark_start_execution();
    Ok(state)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::physical_expr::expressions::col;
    use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
    use datafusion::physical_plan::ExecutionPlan;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::sorts::partial_sort::PartialSortExec;
    use mayfly_types::ErrorCode;

    use super::*;
    use crate::engine::EngineOptions;
    use crate::errors;

    #[test]
    fn a_plan_that_could_exceed_the_budget_is_refused_at_last() {
        let engine = Engine::open(EngineOptions {
            memory_bytes: 16 << 20,
            threads: 1,
            ..EngineOptions::default()
        });
        let state = state(&engine.unwrap(), &SessionValues::default()).unwrap();
        let rule = state.physical_optimizers().last().unwrap();
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
        let key = PhysicalSortExpr::new_default(col("a", &schema).unwrap());
        let leaf: Arc<dyn ExecutionPlan> = Arc::new(EmptyExec::new(schema));
        let options = state.config_options();
        rule.optimize(Arc::clone(&leaf), options).unwrap();
        let order = LexOrdering::new([key]).unwrap();
        let sort = Arc::new(PartialSortExec::new(order, leaf, 1));
        let error = rule.optimize(sort, options).unwrap_err();
        let error = errors::from_plan(&error);
        assert!(error.is(ErrorCode::NotSupportedYet), "{error}");
        assert!(
            error.message.contains("the operator PartialSortExec"),
            "{error}"
        );
    }
}
