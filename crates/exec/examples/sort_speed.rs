//! Times the sort of this crate beside DataFusion's own, in memory and below it.
//!
//! `cargo run --release -p mayfly-exec --example sort_speed -- [rows] [MiB]...`
//!
//! One partition, one thread; medians of five runs in turn. With budgets given, our sort runs at
//! each of them as well.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow::compute::SortOptions;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::sorts::sort::SortExec;
use futures::StreamExt;
use mayfly_exec::sort::SortOperator;
use mayfly_exec::{runtime, space_error};
use mayfly_space::{Space, SpaceOptions};

const BATCH_ROWS: usize = 8192;
const RUNS: usize = 5;

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Columns: a 64-bit integer, an integer of a thousand values, a text of 32 digits.
fn batches(rows: usize) -> Result<Vec<RecordBatch>> {
    let mut state = 0x1234_5678_9ABC_DEF1_u64;
    (0..rows)
        .step_by(BATCH_ROWS)
        .map(|start| {
            let len = BATCH_ROWS.min(rows - start);
            let wide: Int64Array = (0..len)
                .map(|_| Some((random(&mut state) >> 1) as i64))
                .collect();
            let narrow: Int64Array = (0..len)
                .map(|_| Some((random(&mut state) % 1000) as i64))
                .collect();
            let text: StringViewArray = (0..len)
                .map(|_| Some(format!("{:032x}", random(&mut state) >> 2)))
                .collect();
            let columns: Vec<(&str, ArrayRef)> = vec![
                ("wide", Arc::new(wide)),
                ("narrow", Arc::new(narrow)),
                ("text", Arc::new(text)),
            ];
            Ok(RecordBatch::try_from_iter(columns)?)
        })
        .collect()
}

async fn time(plan: Arc<dyn ExecutionPlan>, task: Arc<TaskContext>) -> Result<f64> {
    let start = Instant::now();
    let mut stream = plan.execute(0, task)?;
    let mut rows = 0;
    while let Some(batch) = stream.next().await {
        rows += batch?.num_rows();
    }
    assert!(rows > 0);
    Ok(start.elapsed().as_secs_f64())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let rows = arguments.first().map_or(1_000_000, |rows| *rows as usize);
    let budgets = arguments.get(1..).unwrap_or_default();
    let batches = batches(rows)?;
    let schema = batches[0].schema();
    for (name, keys, fetch) in [
        ("wide", vec!["wide"], None),
        ("narrow", vec!["narrow"], None),
        ("text", vec!["text"], None),
        ("narrow, text", vec!["narrow", "text"], None),
        ("wide limit 10", vec!["wide"], Some(10)),
        ("wide limit 100000", vec!["wide"], Some(100_000)),
    ] {
        let sorts = keys
            .iter()
            .map(|key| {
                let column = Arc::new(Column::new_with_schema(key, &schema)?);
                Ok(PhysicalSortExpr::new(column, SortOptions::default()))
            })
            .collect::<Result<Vec<_>>>()?;
        let ordering = LexOrdering::new(sorts).expect("at least one key");
        let stock = || -> Result<SortExec> {
            let scan = MemorySourceConfig::try_new_exec(
                std::slice::from_ref(&batches),
                Arc::clone(&schema),
                None,
            )?;
            Ok(SortExec::new(ordering.clone(), scan).with_fetch(fetch))
        };
        let open = |memory_bytes| {
            Space::open(SpaceOptions {
                memory_bytes,
                ..SpaceOptions::default()
            })
            .map_err(space_error)
        };
        let ours = async |memory_bytes| -> Result<f64> {
            let space = open(memory_bytes)?;
            let task = TaskContext::default().with_runtime(runtime(space.root(), None)?);
            let plan = SortOperator::try_from_stock(&stock()?)?.expect("a supported key");
            time(Arc::new(plan), Arc::new(task)).await
        };
        let (mut stock_times, mut our_times) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            stock_times.push(time(Arc::new(stock()?), Arc::default()).await?);
            our_times.push(ours(8 << 30).await?);
        }
        let (stock_time, our_time) = (median(stock_times), median(our_times));
        print!(
            "{name:18} stock {:4.0} ns/row, ours {:4.0} ns/row, ratio {:.2}",
            stock_time * 1e9 / rows as f64,
            our_time * 1e9 / rows as f64,
            our_time / stock_time,
        );
        for &budget in budgets {
            let mut times = Vec::new();
            for _ in 0..3 {
                times.push(ours(budget << 20).await?);
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
