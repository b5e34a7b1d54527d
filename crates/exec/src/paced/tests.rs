use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::catalog::MemTable;
use datafusion::physical_plan::collect;
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::prelude::SessionContext;
use mayfly_space::Space;

use super::{BUSY, LENGTH_MAX, Paced, next_length, pace_joins};
use crate::tests::{config, count_nodes, open, session, sorted};
use crate::window::tests::plan;

/// Rows of a table: one batch is compared with all of them for a tenth of a second and more.
const ROWS: i64 = 10_000;

fn context(space: &Space) -> SessionContext {
    let context = session(space, config().with_target_partitions(1));
    let numbers = |of: fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..ROWS).map(of)))
    };
    let columns = [("n", numbers(|n| n)), ("few", numbers(|n| n % 2))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for name in ["a", "b"] {
        let table = MemTable::try_new(batch.schema(), vec![vec![batch.clone()]]).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
    context
}

/// The rows of a query, and how often another task of its only thread ran meanwhile.
async fn beside_another(sql: &str) -> (Vec<String>, u64) {
    let space = open(64 << 20);
    let context = context(&space);
    let plan = plan(&context, sql).await;
    let has_ended = Arc::new(AtomicBool::new(false));
    let turns = Arc::new(AtomicU64::new(0));
    let other = tokio::spawn({
        let (has_ended, turns) = (Arc::clone(&has_ended), Arc::clone(&turns));
        async move {
            while !has_ended.load(Ordering::Relaxed) {
                turns.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        }
    });
    let found = collect(plan, context.task_ctx()).await.unwrap();
    has_ended.store(true, Ordering::Relaxed);
    other.await.unwrap();
    (sorted(&found), turns.load(Ordering::Relaxed))
}

#[tokio::test]
async fn joins_that_find_no_pair_leave_their_thread_to_others() {
    for condition in [
        "a.n + b.n < 0",
        "a.n * b.few > 20000",
        "a.few = b.few AND a.n + b.n < 0",
    ] {
        for join in ["JOIN", "LEFT JOIN"] {
            let sql = format!("SELECT COUNT(b.n) FROM a {join} b ON {condition}");
            let (found, turns) = beside_another(&sql).await;
            assert_eq!(found, ["0"], "{sql}");
            // Two batches are read of either side: without pieces there are about as many turns.
            assert!(turns > 8, "{sql}: {turns} turns");
        }
    }
}

#[tokio::test]
async fn pieces_are_all_rows_in_their_order() {
    let space = open(64 << 20);
    let context = context(&space);
    let sql = "SELECT COUNT(*), SUM(b.n) FROM a JOIN b ON b.n = a.n AND b.few + a.few > 0";
    let joined = plan(&context, sql).await;
    assert_eq!(count_nodes(&joined, |node| node.is::<Paced>()), 1);
    let found = collect(joined, context.task_ctx()).await.unwrap();
    let odd = ROWS / 2;
    assert_eq!(sorted(&found), [format!("{odd}|{}", odd * odd)]);
}

/// What has nothing to pace stays the plan that it is.
#[tokio::test]
async fn joins_without_a_condition_are_left_alone() {
    let space = open(64 << 20);
    let context = context(&space);
    let joined = plan(&context, "SELECT COUNT(*) FROM a JOIN b ON b.n = a.n").await;
    assert_eq!(count_nodes(&joined, |node| node.is::<HashJoinExec>()), 1);
    let paced = pace_joins(Arc::clone(&joined)).unwrap();
    assert!(Arc::ptr_eq(&paced, &joined));
}

#[test]
fn pieces_are_as_long_as_a_slice_of_time_allows() {
    // They grow while the join is done soon, from what it was given.
    assert_eq!(next_length(16, 16, Duration::ZERO), 32);
    assert_eq!(next_length(512, 100, Duration::ZERO), 512);
    assert_eq!(next_length(512, LENGTH_MAX, Duration::ZERO), LENGTH_MAX);
    assert_eq!(next_length(512, 512, BUSY), 512);
    // And shrink in one step.
    assert_eq!(next_length(4096, 4096, BUSY * 1024), 4);
    assert_eq!(next_length(4096, 1, BUSY * 1024), 1);
}
