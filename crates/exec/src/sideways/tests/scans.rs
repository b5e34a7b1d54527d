//! Rows that are dropped right above the scan of a table.

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt64Array};
use datafusion::catalog::MemTable;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::SessionContext;
use mayfly_space::Space;
use mayfly_table::{Column as TableColumn, Table};
use mayfly_types::{BlobSize, ColumnType};

use super::{
    KINDS, NULL_EQUALITIES, dropped, numbers, operators, ours_as_written, register, rows_of,
    stock_join, texts,
};
use crate::tests::{check_nothing_left, config, open, sorted};
use crate::window::tests::plan;
use crate::{SwapOperators, TableSource};

/// Rows that `big` has had.
const BIG: i64 = 90_000;
const KEYS: i64 = 9_000;
/// What puts keys too far apart to be told by a bit each.
const FAR: i64 = 100_003;

/// `big (k, v, s, z, f)`, of which every seventh row was removed; `z` is zero where no part with
/// `c = 3` has `k`, and numbers in `f` are `k` times [`FAR`].
fn big(space: &Space) -> Arc<Table> {
    let number = ColumnType::BigInt { unsigned: false };
    let columns = vec![
        TableColumn::new("k", number.clone(), true),
        TableColumn::new("v", number.clone(), true),
        TableColumn::new("s", ColumnType::Text(BlobSize::Normal), true),
        TableColumn::new("z", number.clone(), true),
        TableColumn::new("f", number, true),
    ];
    let table = Arc::new(Table::new("big", columns, space.root()));
    let key = |row: i64| row * 7 % KEYS;
    let columns = vec![
        numbers(BIG, |row| (row % 50 != 9).then(|| key(row))),
        numbers(BIG, |row| Some(row % 1009)),
        texts(BIG, |row| format!("a text that is in no view, {row}")),
        numbers(BIG, |row| Some(i64::from(key(row) % 20 == 3))),
        numbers(BIG, |row| (row % 50 != 9).then(|| key(row) * FAR)),
    ];
    let rows = RecordBatch::try_new(Arc::clone(table.schema()), columns).unwrap();
    for from in (0..rows.num_rows()).step_by(5_000) {
        table.append(&rows.slice(from, 5_000)).unwrap();
    }
    let mut change = table.begin_change();
    let snapshot = change.snapshot().clone();
    for index in 0..snapshot.batch_count() {
        let ids = snapshot.row_ids(index);
        let removed: Vec<u64> = ids.values().iter().step_by(7).copied().collect();
        change.remove(&UInt64Array::from(removed));
    }
    change.commit().unwrap();
    table
}

/// The same rows in batches.
fn batches(table: &Table) -> Arc<MemTable> {
    let snapshot = table.snapshot();
    let scan = snapshot.scan(0..snapshot.batch_count(), None).copying(true);
    let batches = scan.map(|batch| batch.unwrap()).collect();
    Arc::new(MemTable::try_new(Arc::clone(table.schema()), vec![batches]).unwrap())
}

/// Ours, whose `big` is a table, and the stock one with the same rows.
fn both(space: &Space) -> (SessionContext, SessionContext) {
    let table = big(space);
    let stock = SessionContext::new_with_config(config());
    register(&stock);
    stock.register_table("big", batches(&table)).unwrap();
    let ours = ours_as_written(space);
    let source = Arc::new(TableSource::new(table));
    ours.register_table("big", source).unwrap();
    (ours, stock)
}

/// A join of keys that lie far apart.
fn far(join: &str) -> String {
    format!(
        "SELECT p, v FROM (SELECT p, p * {FAR} AS q FROM parts WHERE c = 3) parts \
         {join} big ON q = f"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_those_of_datafusion() {
    for memory_bytes in [64 << 20, 16 << 20] {
        let space = open(memory_bytes);
        let (ours, stock) = both(&space);
        for sql in [
            "SELECT p, v, big.s FROM parts JOIN big ON p = k WHERE c = 3",
            "SELECT p, v, big.s FROM parts JOIN big ON p = k WHERE c = 3 AND v < 20",
            "SELECT p, v, big.s FROM parts JOIN big ON p = k WHERE c = 3 AND big.s LIKE '%77'",
            "SELECT p, v FROM parts JOIN big ON p = k WHERE c = 99",
            "SELECT p, v FROM parts JOIN big ON p = k WHERE c = 7",
            "SELECT p, v FROM parts LEFT JOIN big ON p = k AND v < 500 WHERE c = 7",
            "SELECT COUNT(*) FROM parts JOIN big ON p = k WHERE c < 15",
            "SELECT p, v FROM parts JOIN big ON p = k AND c = v WHERE c = 3",
            "SELECT p FROM parts WHERE c = 3 AND p IN (SELECT k FROM big WHERE v > 900)",
            "SELECT p FROM parts WHERE c = 3 AND p NOT IN (SELECT k FROM big)",
            "SELECT p FROM parts WHERE c = 7 AND NOT EXISTS (SELECT 1 FROM big WHERE k = p)",
            "SELECT p FROM parts WHERE c = 7 AND EXISTS (SELECT 1 FROM big WHERE k = p AND v > c)",
            &far("JOIN"),
            &far("LEFT JOIN"),
        ] {
            let expected = rows_of(&stock, sql).await.unwrap();
            let found = rows_of(&ours, sql).await;
            let found = found.unwrap_or_else(|error| panic!("{sql}: {error}"));
            assert!(found == expected, "{sql} at {memory_bytes} bytes");
        }
        let near = "SELECT p, v, big.s FROM parts JOIN big ON p = k WHERE c = 3 AND v < 900";
        for sql in [near, &far("JOIN")] {
            let plan = plan(&ours, sql).await;
            assert_eq!(operators(&plan), 1);
            collect(Arc::clone(&plan), ours.task_ctx()).await.unwrap();
            assert!(dropped(&plan) > BIG as usize / 2);
        }
        drop(ours);
        check_nothing_left(&space, "joins with a scan").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_that_may_fail_sees_rows_without_partners() {
    let space = open(64 << 20);
    let (ours, _) = both(&space);
    // All rows with a zero are without a partner. Nothing is dropped below the condition: above it,
    // or nowhere, where another node stands between it and the scan.
    for (sql, expected_operators) in [
        (
            "SELECT p, v FROM parts JOIN big ON p = k WHERE c = 3 AND 10 / z > 0",
            0,
        ),
        (
            "SELECT p, n FROM parts JOIN (SELECT k, COUNT(*) AS n FROM big WHERE 10 / z > 0 \
             GROUP BY k) g ON p = k WHERE c = 3",
            1,
        ),
    ] {
        let plan = plan(&ours, sql).await;
        assert_eq!(operators(&plan), expected_operators, "{sql}");
        let shown = displayable(plan.as_ref()).indent(true).to_string();
        let error = collect(plan, ours.task_ctx()).await.expect_err(&shown);
        assert!(error.to_string().contains("zero"), "{sql}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_join_with_a_scan_returns_what_the_stock_one_does() {
    let space = open(64 << 20);
    let table = big(&space);
    let stock = SessionContext::new_with_config(config());
    register(&stock);
    stock.register_table("big", batches(&table)).unwrap();
    let source = TableSource::new(table);
    // Some parts have a NULL as their key.
    let parts = "SELECT p, c, t FROM parts WHERE c < 2 OR c = 7";
    for (kind, expected_operators) in KINDS {
        for null_equality in NULL_EQUALITIES {
            let label = format!("{kind}, {null_equality:?}");
            let whole = plan(&stock, "SELECT k, v FROM big").await;
            let left = plan(&stock, parts).await;
            let join = stock_join(left, whole, kind, null_equality);
            let expected = sorted(&collect(join, stock.task_ctx()).await.unwrap());
            let scan = source.scan_now(2, Some(&vec![0, 1]), &[], None).unwrap();
            let left = plan(&stock, parts).await;
            let join = stock_join(left, scan, kind, null_equality);
            let context = crate::tests::session(&space, config());
            let task = context.task_ctx();
            let rule = SwapOperators::for_budget(64 << 20);
            let plan = rule.optimize(join, task.session_config().options());
            let plan = plan.unwrap();
            assert_eq!(operators(&plan), expected_operators, "{label}");
            let found = collect(Arc::clone(&plan), task).await;
            let found = found.unwrap_or_else(|error| panic!("{label}: {error}"));
            assert!(sorted(&found) == expected, "{label}");
            assert_eq!(dropped(&plan) > 0, expected_operators > 0, "{label}");
        }
    }
}
