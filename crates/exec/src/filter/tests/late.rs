//! Our filter above the scan of a table, whose columns are read late, and above the same batches.

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt64Array};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::catalog::memory::MemorySourceConfig;
use datafusion::physical_expr::conjunction;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExecBuilder;
use mayfly_space::Space;
use mayfly_table::{Column, Table};
use mayfly_types::{BlobSize, ColumnType};

use super::{Expr, Random, asked, batch, condition, rows};
use crate::filter::FilterOperator;
use crate::tests::{check_nothing_left, open};
use crate::{TableScan, TableSource};

/// A table of random rows in pages and a tail, some of which were removed.
fn table(space: &Space, random: &mut Random) -> Arc<Table> {
    let column = |name: &str, column_type| Column::new(name, column_type, true);
    let decimal = ColumnType::Decimal {
        precision: 15,
        scale: 2,
        unsigned: false,
    };
    let columns = vec![
        column("int", ColumnType::Int { unsigned: false }),
        column("other_int", ColumnType::Int { unsigned: false }),
        column("long", ColumnType::BigInt { unsigned: false }),
        column("decimal", decimal),
        column("day", ColumnType::Date),
        column("double", ColumnType::DOUBLE),
        column("flag", ColumnType::Bool),
        column("text", ColumnType::Text(BlobSize::Normal)),
        column("word", ColumnType::Text(BlobSize::Normal)),
    ];
    let table = Arc::new(Table::new("t", columns, space.root()));
    let schema = table.schema();
    for _ in 0..random.below(12) {
        let count = random.choose(&[1, 63, 64, 65, 200, 300]);
        let rows = batch(random, count);
        let fields = rows.columns().iter().zip(schema.fields());
        let columns = fields.map(|(column, field)| {
            let texts = match column.data_type() {
                DataType::Dictionary(_, values) => cast(column, values).unwrap(),
                _ => Arc::clone(column),
            };
            cast(&texts, field.data_type()).unwrap()
        });
        let rows = RecordBatch::try_new(Arc::clone(schema), columns.collect()).unwrap();
        table.append(&rows).unwrap();
    }
    let left = random.choose(&[0, 0, 1, 10, 70]);
    if left > 0 {
        let mut change = table.begin_change();
        let snapshot = change.snapshot().clone();
        for index in 0..snapshot.batch_count() {
            let ids = snapshot.row_ids(index);
            let removed = ids.values().iter().filter(|_| random.below(100) >= left);
            let removed: Vec<u64> = removed.copied().collect();
            change.remove(&UInt64Array::from(removed));
        }
        change.commit().unwrap();
    }
    table
}

/// The batches of a table, read as a whole.
fn batches(table: &Table) -> Vec<RecordBatch> {
    let snapshot = table.snapshot();
    let scan = snapshot.scan(0..snapshot.batch_count(), None);
    scan.map(|batch| batch.unwrap()).collect()
}

fn scan(table: &Arc<Table>, copies: bool) -> Arc<dyn ExecutionPlan> {
    let scan = TableSource::new(Arc::clone(table)).scan_now(1, None, &[], None);
    let scan = scan.unwrap();
    match copies {
        true => Arc::new(scan.downcast_ref::<TableScan>().unwrap().copying()),
        false => scan,
    }
}

/// A condition over columns that a table has as they are.
fn condition_of_table(random: &mut Random) -> Expr {
    loop {
        let condition = condition(random, 0);
        let text = condition.to_string();
        if !text.contains("flag@") && !text.contains("word@") {
            return condition;
        }
    }
}

#[tokio::test]
async fn the_same_rows_of_a_table_pass_as_in_the_stock_filter() {
    for seed in 1..300 {
        let mut random = Random(seed * 0x9E37_79B9);
        let space = open(4 << 20);
        let table = table(&space, &mut random);
        let predicate = condition_of_table(&mut random);
        let projections = [None, Some(vec![7, 0, 3]), Some(vec![8]), Some(Vec::new())];
        let projection = random.choose(&projections);
        let batch_rows = random.choose(&[8, 100, 8192]);
        let fetch = random.choose(&[None, None, Some(0), Some(1), Some(70)]);
        let filter = |input: Arc<dyn ExecutionPlan>| {
            FilterExecBuilder::new(Arc::clone(&predicate), input)
                .apply_projection(projection.clone())
                .unwrap()
                .with_batch_size(batch_rows)
                .with_fetch(fetch)
                .build()
                .unwrap()
        };
        let whole =
            MemorySourceConfig::try_new_exec(&[batches(&table)], Arc::clone(table.schema()), None);
        let stock = filter(whole.unwrap());
        let copies = random.below(2) == 0;
        let ours = Arc::new(FilterOperator::of(&filter(scan(&table, copies))));
        let expected = rows(Arc::new(stock)).await.unwrap();
        let found = rows(Arc::clone(&ours) as _).await.unwrap();
        let label = format!("seed {seed}: {predicate}");
        let counts = [&found, &expected].map(|rows| rows.1.iter().sum::<usize>());
        assert_eq!(counts[0], counts[1], "{label}");
        assert_eq!(found.0.columns(), expected.0.columns(), "{label}");
        let counted = ours.metrics().unwrap().output_rows();
        assert_eq!(counted.unwrap_or(0), counts[0], "{label}");
        drop((found, expected, ours, table));
        check_nothing_left(&space, &label).await;
    }
}

#[tokio::test]
async fn terms_that_may_warn_are_asked_for_the_same_rows_of_a_table() {
    for seed in 1..100 {
        let mut random = Random(seed * 0x9E37_79B9);
        let space = open(4 << 20);
        let table = table(&space, &mut random);
        let before = condition_of_table(&mut random);
        let asked_of = condition_of_table(&mut random);
        let behind = condition_of_table(&mut random);
        let mut answers = Vec::new();
        let whole =
            MemorySourceConfig::try_new_exec(&[batches(&table)], Arc::clone(table.schema()), None);
        let inputs: [Arc<dyn ExecutionPlan>; 2] = [whole.unwrap(), scan(&table, false)];
        for input in inputs {
            let (term, rows_asked) = asked(Arc::clone(&asked_of));
            let terms = [Arc::clone(&before), term, Arc::clone(&behind)];
            let stock = FilterExecBuilder::new(conjunction(terms), input).build();
            let ours = FilterOperator::of(&stock.unwrap());
            let found = rows(Arc::new(ours)).await.unwrap();
            let asked_rows = rows_asked.lock().unwrap().clone();
            answers.push((found.0, asked_rows));
        }
        let label = format!("seed {seed}: {before} AND {asked_of} AND {behind}");
        assert_eq!(answers[0], answers[1], "{label}");
    }
}
