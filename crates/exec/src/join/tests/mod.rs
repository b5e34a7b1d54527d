//! Our join beside DataFusion's, on random rows: all kinds of joins, keys and conditions, in memory
//! and short of it, with faults, and ended before its end.

mod checks;
mod rows;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::common::{JoinType, NullEquality};
use datafusion::execution::TaskContext;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionConfig;
use futures::StreamExt;
use mayfly_space::{AccountOptions, Operation, Space, SpaceOptions};
use mayfly_table::rows::StopFlag;
use mayfly_testkit::{FaultPlan, Random};

use self::checks::{Case, counted, run_ours, run_stock};
use self::rows::{KeyKind, Shape};
use super::replace;
use super::shared_hashes::tests::pairs_of_one_hash;
use crate::tests::{JOIN_KINDS, check_nothing_left, open, sorted};
use crate::{StatementContext, find_space_error, runtime};

/// Compares our rows with the stock ones at each budget. Returns how many partitions had no room at
/// the least.
async fn compare(case: &Case, budgets: &[u64]) -> usize {
    let expected = run_stock(case).await;
    let mut partitions_deferred = 0;
    for &memory_bytes in budgets {
        let space = open(memory_bytes);
        let found = case.run_with(&space, SessionConfig::new()).await;
        let (plan, found) =
            found.unwrap_or_else(|error| panic!("{case:?} at {memory_bytes}: {error}"));
        assert_eq!(found, expected, "{case:?} at {memory_bytes}");
        partitions_deferred = counted(&plan, "partitions_deferred");
        let is_stock = counted(&plan, "stock_joins") == 1;
        let rows = case.left.rows;
        assert!(is_stock || rows > 300, "{case:?} at {memory_bytes}");
        assert!(
            !is_stock || memory_bytes > 2 << 20 || rows < 2_000,
            "{case:?} at {memory_bytes}"
        );
        drop(plan);
        check_nothing_left(&space, "a join").await;
    }
    partitions_deferred
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_join_gives_the_rows_of_the_stock_one() {
    let mut seed = 0;
    for kind in JOIN_KINDS {
        for keys in KeyKind::ALL {
            for null_equality in [
                NullEquality::NullEqualsNothing,
                NullEquality::NullEqualsNull,
            ] {
                for has_filter in [false, true] {
                    seed += 1;
                    let case = Case {
                        kind,
                        keys,
                        null_equality,
                        has_filter,
                        is_null_aware: false,
                        left: Shape {
                            rows: 2_000,
                            distinct: 900,
                            width: 10,
                        },
                        right: Shape {
                            rows: 1_000,
                            distinct: 900,
                            width: 10,
                        },
                        seed,
                    };
                    // Small for the first budget, and in pages but in memory for the second.
                    assert_eq!(compare(&case, &[64 << 20, 2 << 20]).await, 0);
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rows_are_the_same_short_of_memory() {
    let mut seed = 100;
    for kind in JOIN_KINDS {
        for (left_rows, right_rows, distinct) in [(8_000, 6_000, 9_000), (9_000, 2_000, 400)] {
            for has_filter in [false, true] {
                seed += 1;
                let case = Case {
                    kind,
                    keys: KeyKind::ALL[seed as usize % KeyKind::ALL.len()],
                    null_equality: NullEquality::NullEqualsNothing,
                    has_filter,
                    is_null_aware: false,
                    left: Shape {
                        rows: left_rows,
                        distinct,
                        width: 120,
                    },
                    right: Shape {
                        rows: right_rows,
                        distinct,
                        width: 120,
                    },
                    seed,
                };
                let partitions_deferred = compare(&case, &[16 << 20, 2 << 20, 1 << 20]).await;
                // Where no column of the left side is returned there is little to keep.
                let of_right = [
                    JoinType::RightSemi,
                    JoinType::RightAnti,
                    JoinType::RightMark,
                ];
                let is_narrow = seed % 4 == 3 || of_right.contains(&kind);
                assert!(partitions_deferred > 0 || is_narrow, "{case:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_key_with_many_rows_is_joined_by_chunks() {
    for kind in JOIN_KINDS {
        let case = Case {
            kind,
            keys: KeyKind::Int,
            null_equality: NullEquality::NullEqualsNothing,
            has_filter: true,
            is_null_aware: false,
            left: Shape {
                rows: 5_000,
                distinct: 1,
                width: 200,
            },
            right: Shape {
                rows: 900,
                distinct: 2,
                width: 200,
            },
            seed: 7,
        };
        assert!(compare(&case, &[1 << 20]).await > 0, "{kind}");
        let swapped = Case {
            left: case.right,
            right: case.left,
            ..case
        };
        compare(&swapped, &[1 << 20]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn not_in_knows_nulls_of_either_side() {
    for (left_nulls, right_rows, keys) in [
        (true, 300, KeyKind::Int),
        (true, 0, KeyKind::Int),
        (true, 300, KeyKind::NotNull),
    ] {
        for budgets in [[64 << 20, 1 << 20]] {
            let case = Case {
                kind: JoinType::LeftAnti,
                keys,
                null_equality: NullEquality::NullEqualsNothing,
                has_filter: false,
                is_null_aware: true,
                left: Shape {
                    rows: 5_000 * usize::from(left_nulls),
                    distinct: 600,
                    width: 200,
                },
                right: Shape {
                    rows: right_rows,
                    distinct: 600,
                    width: 200,
                },
                seed: 17,
            };
            compare(&case, &budgets).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_side_without_rows_is_joined() {
    for kind in JOIN_KINDS {
        for (left_rows, right_rows) in [(0, 200), (200, 0), (0, 0)] {
            let case = Case {
                kind,
                keys: KeyKind::Text,
                null_equality: NullEquality::NullEqualsNothing,
                has_filter: false,
                is_null_aware: false,
                left: Shape {
                    rows: left_rows,
                    distinct: 50,
                    width: 10,
                },
                right: Shape {
                    rows: right_rows,
                    distinct: 50,
                    width: 10,
                },
                seed: 5,
            };
            compare(&case, &[4 << 20]).await;
        }
    }
}

fn large(kind: JoinType, seed: u64) -> Case {
    Case {
        kind,
        keys: KeyKind::Int,
        null_equality: NullEquality::NullEqualsNothing,
        has_filter: seed.is_multiple_of(2),
        is_null_aware: false,
        left: Shape {
            rows: 5_000,
            distinct: 4_000,
            width: 200,
        },
        right: Shape {
            rows: 5_000,
            distinct: 4_000,
            width: 200,
        },
        seed,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_is_a_typed_error_and_leaves_nothing() {
    for (kind, seed) in [(JoinType::Full, 1), (JoinType::LeftSemi, 2)] {
        let case = large(kind, seed);
        let expected = run_stock(&case).await;
        for operation in [Operation::Read, Operation::Write, Operation::Grant] {
            let plan = FaultPlan::new(&[operation]);
            // Every fault costs a run: they are taken further and further apart.
            let mut n = 1;
            loop {
                let space = Space::open(SpaceOptions {
                    memory_bytes: 1 << 20,
                    faults: Some(plan.clone()),
                    ..SpaceOptions::default()
                })
                .unwrap();
                plan.fail_once(n);
                match run_ours(&case, &space).await {
                    Ok(found) => assert_eq!(found, expected, "{operation:?} {n}"),
                    Err(error) => assert!(
                        find_space_error(&error).is_some(),
                        "{operation:?} {n} untyped: {error}"
                    ),
                }
                check_nothing_left(&space, "a join with a fault").await;
                if plan.fired() == 0 {
                    break;
                }
                n += 1 + n / 8;
            }
            assert!(n > 2, "{operation:?} was met");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_ends_wherever_it_is_stopped() {
    let mut random = Random::new(23);
    for round in 0..60 {
        let kind = JOIN_KINDS[round % JOIN_KINDS.len()];
        let case = large(kind, round as u64);
        let space = open([1 << 20, 16 << 20][round % 2]);
        let flag = Arc::new(AtomicBool::new(false));
        let account = space.root().child("statement", AccountOptions::default());
        let context = StatementContext {
            stop: StopFlag::from(Arc::clone(&flag)),
            ..StatementContext::new(account)
        };
        let config = SessionConfig::new().with_extension(Arc::new(context));
        let (_, mut streams) = case.streams(&space, config).unwrap();
        let batches = random.below(6);
        for _ in 0..batches {
            let _ = streams[0].next().await;
        }
        if random.chance(0.5) {
            flag.store(true, Ordering::Relaxed);
            // The others end by themselves, with an error or because they were at their end.
            while let Some(Ok(_)) = streams[1].next().await {}
        }
        drop(streams);
        check_nothing_left(&space, "a join that was stopped").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_join_took_is_reported() {
    let case = large(JoinType::Inner, 4);
    for (memory_bytes, is_paged) in [(64 << 20, false), (1 << 20, true)] {
        let space = open(memory_bytes);
        let account = space.root().child("statement", AccountOptions::default());
        let context = StatementContext::new(account);
        let report = Arc::clone(&context.report);
        let config = SessionConfig::new().with_extension(Arc::new(context));
        let (plan, rows) = case.run_with(&space, config).await.unwrap();
        assert!(!rows.is_empty());
        let sum = |name: &str| counted(&plan, name);
        assert_eq!(sum("build_rows"), 5_000);
        assert_eq!(sum("probe_rows"), 5_000);
        assert_eq!(sum("partitions_deferred") > 0, is_paged);
        assert_eq!(sum("bytes_written") > 0, is_paged);
        assert_eq!(report.tables().len(), usize::from(is_paged));
    }
}

/// Runs a join whose share of memory becomes small in its midst.
async fn run_with_less(case: &Case, memory_bytes: u64, expected: &[String]) -> usize {
    let space = open(memory_bytes);
    let (plan, streams) = case.streams(&space, SessionConfig::new()).unwrap();
    let mut streams = streams.into_iter();
    let (mut first, mut second) = (streams.next().unwrap(), streams.next().unwrap());
    let mut rows = Vec::new();
    while let Some(batch) = first.next().await {
        rows.push(batch.unwrap());
    }
    drop(first);
    // The second stream is in the midst of a batch, unless its rows can only be told at the end.
    let is_late = [JoinType::LeftAnti, JoinType::LeftMark].contains(&case.kind);
    if !is_late {
        rows.extend(second.next().await.transpose().unwrap());
    }
    let before = counted(&plan, "partitions_deferred");
    let others: Vec<_> = (0..60).map(|_| space.share()).collect();
    for mut stream in [second].into_iter().chain(streams) {
        while let Some(batch) = stream.next().await {
            rows.push(batch.unwrap());
        }
    }
    drop(others);
    assert_eq!(sorted(&rows), expected, "{case:?}");
    let given_up = counted(&plan, "tables_given_up");
    assert_eq!(counted(&plan, "partitions_deferred"), before + given_up);
    drop((plan, rows));
    check_nothing_left(&space, "a join that gave tables up").await;
    given_up
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_given_up_when_others_come() {
    for (at, kind) in JOIN_KINDS.into_iter().enumerate() {
        for distinct in [400, 4_000] {
            for has_filter in [false, true] {
                let mut case = large(kind, 2 * at as u64 + u64::from(!has_filter));
                case.left.distinct = distinct;
                case.right.distinct = distinct;
                if distinct == 400 {
                    // Many rows have one key.
                    (case.left.rows, case.right.rows) = (2_500, 2_500);
                }
                case.keys = KeyKind::ALL[(at + distinct as usize) % KeyKind::ALL.len()];
                let expected = run_stock(&case).await;
                // All tables are in memory at first, or some.
                let all_fit = case.left.rows as u64 * 1_200;
                for memory_bytes in [all_fit, 1 << 20] {
                    let given_up = run_with_less(&case, memory_bytes, &expected).await;
                    // Where no column of the left side is returned there is little to give up.
                    let is_narrow = case.seed % 4 == 3;
                    assert!(
                        given_up > 0 || memory_bytes == 1 << 20 || is_narrow,
                        "{case:?}"
                    );
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn joins_at_a_time_share_memory() {
    let space = open(16 << 20);
    for round in 0..5 {
        let cases = (0..4).map(|n| {
            let mut case = large(JOIN_KINDS[(4 * round + n) % JOIN_KINDS.len()], n as u64);
            (case.left.rows, case.right.rows) = (20_000, 20_000);
            case
        });
        let running: Vec<_> = cases
            .map(|case| {
                let space = space.clone();
                tokio::spawn(async move {
                    let ran = case.run_with(&space, SessionConfig::new()).await;
                    let (_, rows) = ran.unwrap_or_else(|error| panic!("{case:?}: {error}"));
                    (case, rows)
                })
            })
            .collect();
        for task in running {
            let (case, rows) = task.await.unwrap();
            assert_eq!(rows, run_stock(&case).await, "{case:?}");
        }
        check_nothing_left(&space, "joins at a time").await;
    }
}

/// Joins rows of two numbers with themselves: how many rows that are, and whether by the stock
/// join.
async fn join_with_itself(columns: Vec<ArrayRef>) -> (usize, bool) {
    let columns = ["a", "b"].into_iter().zip(columns);
    let rows = RecordBatch::try_from_iter(columns).unwrap();
    let schema = rows.schema();
    let side = || -> Arc<dyn ExecutionPlan> {
        let rows = [vec![rows.clone()]];
        MemorySourceConfig::try_new_exec(&rows, rows[0][0].schema(), None).unwrap()
    };
    let key =
        |name| -> PhysicalExprRef { Arc::new(Column::new_with_schema(name, &schema).unwrap()) };
    let on = ["a", "b"].map(|name| (key(name), key(name))).to_vec();
    let stock = HashJoinExec::try_new(
        side(),
        side(),
        on,
        None,
        &JoinType::Inner,
        None,
        PartitionMode::CollectLeft,
        NullEquality::NullEqualsNothing,
        false,
    );
    let plan = replace(Arc::new(stock.unwrap()), 0).unwrap().data;
    let space = open(64 << 20);
    let task = TaskContext::default().with_runtime(runtime(space.root(), None).unwrap());
    let found = collect(Arc::clone(&plan), Arc::new(task)).await.unwrap();
    let count = found.iter().map(RecordBatch::num_rows).sum();
    drop(found);
    check_nothing_left(&space, "a join with itself").await;
    (count, counted(&plan, "stock_joins") == 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_share_a_hash_of_the_stock_join_are_ours() {
    let number = |of: fn(i64) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..4_000).map(of)))
    };
    let usual = vec![number(|row| row), number(|row| row * 7)];
    assert_eq!(join_with_itself(usual).await, (4_000, true));
    let chosen = pairs_of_one_hash(4_000);
    assert_eq!(join_with_itself(chosen).await, (4_000, false));
}
