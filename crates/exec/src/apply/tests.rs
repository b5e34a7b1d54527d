use std::sync::Arc;

use arrow::array::{AsArray, Int64Array, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Field, Int64Type};
use datafusion::common::{DataFusionError, Result};
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, col, lit};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;

use super::{ApplyOperator, SeveralRows, Yield};
use crate::slots::OuterRow;
use crate::tests::{config, open, session};

/// A session with the tables `outer_rows (k)`, of 1, 2, NULL, 1, 3 and 1, and `inner_rows (k, v)`.
fn tables() -> SessionContext {
    let context = session(&open(16 << 20), config());
    let outer = [Some(1), Some(2), None, Some(1), Some(3), Some(1)];
    let outer = RecordBatch::try_from_iter([("k", Arc::new(Int64Array::from_iter(outer)) as _)]);
    let keys = Int64Array::from_iter_values([1, 2, 2, 5]);
    let values = Int64Array::from_iter_values([10, 20, 21, 50]);
    let columns = [("k", Arc::new(keys) as _), ("v", Arc::new(values) as _)];
    let inner = RecordBatch::try_from_iter(columns);
    context
        .register_batch("outer_rows", outer.unwrap())
        .unwrap();
    context
        .register_batch("inner_rows", inner.unwrap())
        .unwrap();
    context
}

/// What a subquery has for each outer row, of the rows of `inner_rows` with its key.
async fn applied(
    context: &SessionContext,
    subquery: impl FnOnce(LogicalPlanBuilder) -> LogicalPlanBuilder,
    varies: bool,
    yields: Yield,
) -> (Arc<dyn ExecutionPlan>, Result<RecordBatch>) {
    let row = Arc::new(OuterRow::default());
    let key = row.value(0, Arc::new(Field::new("k", DataType::Int64, true)));
    let inner = context.table("inner_rows").await.unwrap();
    let inner = inner.into_unoptimized_plan();
    let found = LogicalPlanBuilder::from(inner).filter(col("k").eq(key));
    let plan = subquery(found.unwrap()).build().unwrap();
    let state = context.state();
    let plan = state.create_physical_plan(&plan).await.unwrap();
    let outer = context.table("outer_rows").await.unwrap();
    let outer = outer.create_physical_plan().await.unwrap();
    let apply = Arc::new(ApplyOperator::new(outer, plan, row, &[0], varies, yields));
    let rows = collect(Arc::clone(&apply) as _, context.task_ctx()).await;
    let rows = rows.and_then(|rows| Ok(concat_batches(&apply.schema(), &rows)?));
    (apply, rows)
}

fn numbers(rows: &RecordBatch, column: usize) -> Vec<Option<i64>> {
    rows.column(column)
        .as_primitive::<Int64Type>()
        .iter()
        .collect()
}

fn counted(plan: LogicalPlanBuilder) -> LogicalPlanBuilder {
    plan.aggregate(Vec::<Expr>::new(), [count(lit(1))]).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_outer_row_has_the_value_of_its_own_run() {
    let context = tables();
    for varies in [false, true] {
        let (_, rows) = applied(&context, counted, varies, Yield::Value).await;
        let expected = [1, 2, 0, 1, 0, 1].map(Some);
        assert_eq!(numbers(&rows.unwrap(), 1), expected, "{varies}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_row_is_null_and_several_are_an_error() {
    let context = tables();
    let below = |most: i64| {
        move |plan: LogicalPlanBuilder| {
            let plan = plan.filter(col("v").lt(lit(most))).unwrap();
            plan.project([col("v")]).unwrap()
        }
    };
    let (_, rows) = applied(&context, below(21), false, Yield::Value).await;
    let expected = [Some(10), Some(20), None, Some(10), None, Some(10)];
    assert_eq!(numbers(&rows.unwrap(), 1), expected);
    context.deregister_table("outer_rows").unwrap();
    let none = RecordBatch::try_from_iter([("k", Arc::new(Int64Array::from(vec![0; 0])) as _)]);
    context.register_batch("outer_rows", none.unwrap()).unwrap();
    let (_, rows) = applied(&context, below(21), false, Yield::Value).await;
    assert_eq!(rows.unwrap().num_rows(), 0);
    let context = tables();
    let (_, rows) = applied(&context, below(100), false, Yield::Value).await;
    let DataFusionError::External(error) = rows.unwrap_err() else {
        panic!("an error of this crate");
    };
    assert!(error.is::<SeveralRows>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_stand_beside_the_outer_row_that_they_were_found_for() {
    let context = tables();
    let values = |plan: LogicalPlanBuilder| plan.project([col("v")]).unwrap();
    let (_, rows) = applied(&context, values, false, Yield::Rows).await;
    let rows = rows.unwrap();
    assert_eq!(numbers(&rows, 0), [1, 2, 2, 1, 1].map(Some));
    assert_eq!(numbers(&rows, 1), [10, 20, 21, 10, 10].map(Some));
    let (apply, rows) = applied(&context, values, false, Yield::RowsOrNull).await;
    let rows = rows.unwrap();
    let outer = [Some(1), Some(2), Some(2), None, Some(1), Some(3), Some(1)];
    assert_eq!(numbers(&rows, 0), outer);
    let found = [Some(10), Some(20), Some(21), None, Some(10), None, Some(10)];
    assert_eq!(numbers(&rows, 1), found);
    let metrics = apply.metrics().unwrap();
    assert_eq!(metrics.output_rows(), Some(7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn temporary_tables_of_all_runs_are_one() {
    let context = tables();
    let sorted = |plan: LogicalPlanBuilder| {
        let plan = plan.sort([col("v").sort(true, true)]).unwrap();
        plan.limit(0, Some(1)).unwrap().project([col("v")]).unwrap()
    };
    let (apply, rows) = applied(&context, sorted, true, Yield::Value).await;
    let expected = [Some(10), Some(20), None, Some(10), None, Some(10)];
    assert_eq!(numbers(&rows.unwrap(), 1), expected);
    assert_eq!(crate::planned_temp_tables(&(apply as _)).len(), 1);
}
