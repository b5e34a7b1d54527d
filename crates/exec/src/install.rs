//! Puts a DataFusion session on a temp space.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::DiskManagerBuilder;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use mayfly_space::{Account, Space};

use crate::join_order::OrderJoins;
use crate::memory::SpacePool;
use crate::one_partition::ShareOnePartition;
use crate::only_rows::EnsureByRows;
use crate::padding::KnowPadding;
use crate::rule::SwapOperators;
use crate::same_names::PushByNames;
use crate::temp_file::PageFileFactory;
use crate::whole_partitions::JoinWholePartitions;

/// Memory that one more partition should find: below it, fewer partitions with more memory each
/// finish sooner than many that merge in passes.
const PARTITION_BYTES: u64 = 4 << 20;
/// Budget for each row of a batch, so that the batches that are under way between operators stay a
/// small part of a small budget.
const MEMORY_PER_BATCH_ROW: u64 = 8 << 10;
const BATCH_ROWS_MIN: u64 = 512;
/// What a stock sort reserves for its merge is, over all partitions, at most this part of the
/// budget.
const MERGES_PER_MEMORY: u64 = 8;

/// The stock rule that chooses the sides of joins.
const JOIN_SELECTION: &str = "join_selection";

/// The stock rules that push filters down, before and after the others.
const FILTER_PUSHDOWN: &str = "FilterPushdown";

/// Makes every session of a builder run in a temp space.
///
/// The memory pool and the spill files of DataFusion's own operators become part of the space,
/// sorts, aggregates and hash joins are replaced by operators that hold their rows in its pages,
/// and scans of Parquet files reserve the row groups that they read. Inner and semi joins are done
/// in the order that looks at the fewest rows, as far as statistics tell (DataFusion's own option
/// `optimizer.join_reordering` turns it off). Aggregates over whole partitions are joins with their
/// groups where that saves a sort. Outer joins tell no constants of rows that they fill
/// up, and no filter is pushed below columns that share a name. Everything else of the builder is
/// kept; in its configuration
/// - `execution.batch_size` shrinks for budgets below 64 MiB,
/// - `execution.target_partitions` is capped at one per 4 MiB of the budget,
/// - `execution.sort_spill_reservation_bytes` is capped at an eighth of the budget,
/// - dynamic filters of aggregates are off, since the replaced aggregates would never fill them.
///
/// Operators that this crate does not replace run as they are, your own among them: the space
/// bounds what they ask the memory pool for, and knows nothing of the rest. The windows that are
/// left to DataFusion (DISTINCT, IGNORE NULLS, GROUPS with a distance, functions of others) hold a
/// partition without asking. A program that would rather have such a plan refused adds
/// [`OnlyGoverned`](crate::OnlyGoverned) as its last rule, with the names of its own operators.
///
/// Plans run on tokio with its timer (`enable_time`): scans that find little memory wait a little.
///
/// # Errors
/// When the space refuses the empty reservation of the pool, which only fault injection does.
///
/// ```
/// use datafusion::arrow::array::AsArray;
/// use datafusion::arrow::datatypes::Int64Type;
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::prelude::SessionContext;
/// use mayfly_space::{Space, SpaceOptions};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
/// # runtime.block_on(async {
/// let space = Space::open(SpaceOptions { memory_bytes: 8 << 20, ..SpaceOptions::default() })?;
/// let builder = SessionStateBuilder::new().with_default_features();
/// let context = SessionContext::new_with_state(mayfly_exec::install(builder, &space)?.build());
///
/// // 20 MB of keys, sorted within 8 MiB.
/// let batches = context
///     .sql("SELECT value FROM range(2500000) ORDER BY value DESC")
///     .await?
///     .collect()
///     .await?;
/// let first = batches[0].column(0).as_primitive::<Int64Type>().value(0);
/// assert_eq!(first, 2_499_999);
/// assert!(space.counters().pages_allocated > 0);
/// # Ok(())
/// # })
/// # }
/// ```
pub fn install(builder: SessionStateBuilder, space: &Space) -> Result<SessionStateBuilder> {
    let mut builder = builder;
    let mut config = builder.config().take().unwrap_or_default();
    let runtime = runtime(space.root(), builder.runtime_env().as_deref())?;

    let memory_bytes = space.memory_bytes();
    let batch_rows = prev_power_of_two(memory_bytes / MEMORY_PER_BATCH_ROW).max(BATCH_ROWS_MIN);
    let batch_rows = usize::try_from(batch_rows).unwrap_or(usize::MAX);
    let partitions = usize::try_from(memory_bytes / PARTITION_BYTES).unwrap_or(usize::MAX);
    let batch_rows = config.batch_size().min(batch_rows);
    let partitions = config.target_partitions().min(partitions).max(1);
    config = config
        .with_batch_size(batch_rows)
        .with_target_partitions(partitions);
    let options = config.options_mut();
    options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    let merge_bytes = memory_bytes / MERGES_PER_MEMORY / partitions as u64;
    options.execution.sort_spill_reservation_bytes = options
        .execution
        .sort_spill_reservation_bytes
        .min(usize::try_from(merge_bytes).unwrap_or(usize::MAX));

    let mut rules = { builder.physical_optimizers().take() }.unwrap_or_default();
    // Before anything asks what is constant, and when it is clear which side of a join is which.
    let chosen = rules
        .rules
        .iter()
        .position(|rule| rule.name() == JOIN_SELECTION);
    let place = chosen.map_or(0, |place| place + 1);
    rules.rules.insert(place, Arc::new(ShareOnePartition));
    rules.rules.insert(place, Arc::new(KnowPadding));
    let join_partitions = JoinWholePartitions::for_budget(memory_bytes);
    rules.rules.insert(place, Arc::new(join_partitions));
    let place = chosen.unwrap_or(0);
    rules.rules.insert(place, Arc::new(OrderJoins));
    for rule in &mut rules.rules {
        if rule.name().starts_with(FILTER_PUSHDOWN) {
            *rule = Arc::new(PushByNames(Arc::clone(rule)));
        } else if rule.name() == EnsureByRows::STOCK {
            *rule = Arc::new(EnsureByRows(Arc::clone(rule)));
        }
    }
    Ok(builder
        .with_config(config)
        .with_runtime_env(runtime)
        .with_physical_optimizer_rules(rules.rules)
        .with_physical_optimizer_rule(Arc::new(SwapOperators::for_budget(memory_bytes))))
}

/// A runtime environment whose memory and spill files are charged to an account: that of one
/// statement, for example. Caches and object stores are those of `base`.
///
/// # Errors
/// As `Account::reserve`.
pub fn runtime(account: &Account, base: Option<&RuntimeEnv>) -> Result<Arc<RuntimeEnv>> {
    let builder = match base {
        Some(base) => RuntimeEnvBuilder::from_runtime_env(base),
        None => RuntimeEnvBuilder::new(),
    };
    let pool = SpacePool::new(account)?;
    let disk = DiskManagerBuilder::default()
        .with_temp_file_factory(Arc::new(PageFileFactory::new(pool.file_account())));
    builder
        .with_memory_pool(Arc::new(pool))
        .with_disk_manager_builder(disk)
        .build_arc()
}

fn prev_power_of_two(value: u64) -> u64 {
    value.checked_ilog2().map_or(0, |bits| 1 << bits)
}
