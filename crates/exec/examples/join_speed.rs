//! Times the join of this crate beside DataFusion's own, in memory and below it.
//!
//! `cargo run --release -p mayfly-exec --example join_speed -- [probe rows] [MiB]...`
//!
//! One partition on either side, one thread; medians of five runs in turn. With budgets given, our
//! join runs at each of them as well.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::common::{JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use mayfly_exec::{SwapOperators, runtime, space_error};
use mayfly_space::{Space, SpaceOptions};

const BATCH_ROWS: usize = 8192;
const RUNS: usize = 5;

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// What keys look like.
#[derive(Clone, Copy)]
enum Keys {
    /// Numbers that follow one another.
    Dense,
    /// Numbers far from one another.
    Sparse,
    /// Texts of 24 bytes.
    Texts,
}

/// Rows `(key, number, text)` with keys out of `distinct` ones: each once, or drawn at random.
fn rows(
    name: &str,
    keys: Keys,
    count: usize,
    distinct: u64,
    seed: u64,
) -> Result<Vec<RecordBatch>> {
    let mut state = seed;
    let batch = |start: usize| {
        let len = BATCH_ROWS.min(count - start);
        let mut number = |at: u64| match seed % 2 {
            0 => random(&mut state) % distinct,
            _ => at.wrapping_mul(0x9E37_79B1) % distinct,
        };
        let numbers: Vec<u64> = (start..start + len).map(|at| number(at as u64)).collect();
        let key: ArrayRef = match keys {
            Keys::Dense => Arc::new(Int64Array::from_iter_values(
                numbers.iter().map(|n| *n as i64),
            )),
            Keys::Sparse => {
                let spread = |n: &u64| (n.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 1) as i64;
                Arc::new(Int64Array::from_iter_values(numbers.iter().map(spread)))
            }
            Keys::Texts => {
                let text = |n: &u64| format!("customer {n:015}");
                Arc::new(StringViewArray::from_iter_values(numbers.iter().map(text)))
            }
        };
        let number: ArrayRef = Arc::new(Int64Array::from_iter_values(0..len as i64));
        let text = |n: &u64| format!("{n:032x}");
        let text: ArrayRef = Arc::new(StringViewArray::from_iter_values(numbers.iter().map(text)));
        let names = ["k", "n", "s"].map(|column| format!("{name}{column}"));
        Ok(RecordBatch::try_from_iter(
            names.into_iter().zip([key, number, text]),
        )?)
    };
    (0..count).step_by(BATCH_ROWS).map(batch).collect()
}

async fn time(plan: Arc<dyn ExecutionPlan>, task: Arc<TaskContext>) -> Result<(f64, usize)> {
    let start = Instant::now();
    let mut stream = plan.execute(0, task)?;
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch?.num_rows();
    }
    Ok((start.elapsed().as_secs_f64(), rows))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A join to be timed.
struct Case {
    name: &'static str,
    keys: Keys,
    kind: JoinType,
    build_rows: usize,
    build_keys: u64,
    /// Of how many keys those on the probe side are.
    probe_keys: u64,
    projection: Vec<usize>,
}

impl Case {
    fn new(name: &'static str, keys: Keys, kind: JoinType, build_rows: usize) -> Case {
        Case {
            name,
            keys,
            kind,
            build_rows,
            build_keys: build_rows as u64,
            probe_keys: build_rows as u64,
            projection: vec![1, 4],
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = std::env::args().skip(1);
    let arguments: Vec<u64> = arguments
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let probe_rows = arguments.first().map_or(4_000_000, |rows| *rows as usize);
    let budgets = arguments.get(1..).unwrap_or_default();
    use Keys::*;
    let cases = [
        Case::new("dense, 1 K", Dense, JoinType::Inner, 1_000),
        Case::new("dense, 100 K", Dense, JoinType::Inner, 100_000),
        Case::new("dense, 1 M", Dense, JoinType::Inner, 1_000_000),
        Case::new("sparse, 1 K", Sparse, JoinType::Inner, 1_000),
        Case::new("sparse, 100 K", Sparse, JoinType::Inner, 100_000),
        Case::new("sparse, 1 M", Sparse, JoinType::Inner, 1_000_000),
        Case::new("sparse, 4 M", Sparse, JoinType::Inner, 4_000_000),
        Case {
            probe_keys: 10_000_000,
            ..Case::new("sparse, 1 M, few match", Sparse, JoinType::Inner, 1_000_000)
        },
        Case {
            build_keys: 100_000,
            probe_keys: 1_000_000,
            ..Case::new("sparse, 10 a key", Sparse, JoinType::Inner, 1_000_000)
        },
        Case {
            projection: vec![1, 2, 4, 5],
            ..Case::new("sparse, 1 M, texts", Sparse, JoinType::Inner, 1_000_000)
        },
        Case {
            projection: Vec::new(),
            ..Case::new("sparse, 1 M, count", Sparse, JoinType::Inner, 1_000_000)
        },
        Case::new("text keys, 1 M", Texts, JoinType::Inner, 1_000_000),
        Case {
            projection: vec![1],
            ..Case::new("sparse, 1 M, semi", Sparse, JoinType::RightSemi, 1_000_000)
        },
        Case {
            projection: vec![1],
            probe_keys: 500_000,
            ..Case::new("sparse, 1 M, anti", Sparse, JoinType::LeftAnti, 1_000_000)
        },
        Case::new("sparse, 1 M, full", Sparse, JoinType::Full, 1_000_000),
    ];
    for case in cases {
        let left = rows(
            "l",
            case.keys,
            case.build_rows,
            case.build_keys,
            0x1234_5679,
        )?;
        let right = rows("r", case.keys, probe_rows, case.probe_keys, 0x9876_5432)?;
        let scan = |batches: &Vec<RecordBatch>| -> Result<Arc<dyn ExecutionPlan>> {
            let schema = batches[0].schema();
            let parts = std::slice::from_ref(batches);
            Ok(MemorySourceConfig::try_new_exec(parts, schema, None)?)
        };
        let stock = || -> Result<Arc<dyn ExecutionPlan>> {
            let on = (
                Arc::new(Column::new("lk", 0)) as _,
                Arc::new(Column::new("rk", 0)) as _,
            );
            Ok(Arc::new(HashJoinExec::try_new(
                scan(&left)?,
                scan(&right)?,
                vec![on],
                None,
                &case.kind,
                Some(case.projection.clone()),
                PartitionMode::CollectLeft,
                NullEquality::NullEqualsNothing,
                false,
            )?))
        };
        let config = || SessionConfig::new().with_batch_size(BATCH_ROWS);
        let task = || Arc::new(TaskContext::default().with_session_config(config()));
        let ours = async |memory_bytes| -> Result<(f64, usize)> {
            let options = SpaceOptions {
                memory_bytes,
                ..SpaceOptions::default()
            };
            let space = Space::open(options).map_err(space_error)?;
            let task = TaskContext::default()
                .with_session_config(config())
                .with_runtime(runtime(space.root(), None)?);
            let plan = SwapOperators::default().optimize(stock()?, config().options())?;
            assert_eq!(plan.name(), "JoinOperator");
            time(plan, Arc::new(task)).await
        };
        let (mut stock_times, mut our_times) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            let (stock_time, stock_rows) = time(stock()?, task()).await?;
            let (our_time, our_rows) = ours(8 << 30).await?;
            assert_eq!(our_rows, stock_rows, "{}", case.name);
            stock_times.push(stock_time);
            our_times.push(our_time);
        }
        let (stock_time, our_time) = (median(stock_times), median(our_times));
        let per_row = |time: f64| time * 1e9 / (probe_rows + case.build_rows) as f64;
        print!(
            "{:24} stock {:4.0} ns/row, ours {:4.0} ns/row, ratio {:.2}",
            case.name,
            per_row(stock_time),
            per_row(our_time),
            our_time / stock_time,
        );
        for &budget in budgets {
            let mut times = Vec::new();
            for _ in 0..3 {
                times.push(ours(budget << 20).await?.0);
            }
            print!(
                "; {budget} MiB: {:.2} of our own in memory",
                median(times) / our_time
            );
        }
        println!();
    }
    Ok(())
}
