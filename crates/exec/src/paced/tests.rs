use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::catalog::MemTable;
use datafusion::physical_plan::collect;
use datafusion::prelude::SessionContext;
use mayfly_space::Space;

use super::{LENGTH_MAX, Paced, Pairs};
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
        "a.n > b.n + 10000",
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
    let sql = "SELECT COUNT(*), SUM(b.n) FROM a JOIN b ON b.n >= a.n AND b.n <= a.n + 1";
    let joined = plan(&context, sql).await;
    assert_eq!(count_nodes(&joined, |node| node.is::<Paced>()), 1);
    let found = collect(joined, context.task_ctx()).await.unwrap();
    // Each number meets itself and the next one, which the last one has not.
    let (pairs, sum) = (2 * ROWS - 1, ROWS * (ROWS - 1));
    assert_eq!(sorted(&found), [format!("{pairs}|{sum}")]);
}

#[test]
fn pieces_are_as_long_as_a_slice_of_time_allows() {
    let pace = Pairs::OfKeys.pace(8192);
    let next = |length, rows, busy| pace.next_length(length, rows, busy);
    // They grow while the join is done soon, from what it was given.
    assert_eq!(next(16, 16, Duration::ZERO), 32);
    assert_eq!(next(512, 100, Duration::ZERO), 512);
    assert_eq!(next(512, LENGTH_MAX, Duration::ZERO), LENGTH_MAX);
    assert_eq!(next(512, 512, pace.busy), 512);
    // And shrink in one step.
    assert_eq!(next(4096, 4096, pace.busy * 1024), 4);
    assert_eq!(next(4096, 1, pace.busy * 1024), 1);
}

#[test]
fn pieces_for_all_pairs_are_short_only_where_they_must() {
    let pace = Pairs::All.pace(8192);
    let least = 820;
    let next = |length, rows, millis| pace.next_length(length, rows, Duration::from_millis(millis));
    assert_eq!(next(16, 16, 2), least);
    assert_eq!(next(least, least, 80), least);
    assert_eq!(next(8192, 8192, 160), 1024);
    assert_eq!(next(8192, 8192, 800), least);
    assert_eq!(next(least, least, 1640), 10);
    assert_eq!(next(16, 16, 8), 32);
    assert_eq!(next(16, 16, 12), 16);
    assert_eq!(next(16, 16, 1600), 1);
}
