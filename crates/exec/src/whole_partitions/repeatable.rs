//! Which parts of a plan may be read twice, and are cheap to.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr,
    Literal, NegativeExpr, NotExpr,
};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::estimate::Estimates;
use crate::materialized::MaterializedScan;
use crate::parquet_reads::read_again;
use crate::plan_node::over_input;
use crate::table_scan::TableScan;

/// To sort a row costs about as much as to read so many: few rows out of many are sorted.
const READ_PER_ROW_MAX: f64 = 8.0;

/// Whether a plan, of which `rows` are expected, gives the same rows twice, and reads them rather
/// than computes them. Rows that come in an order are worth more as they are.
pub(super) fn is_cheap_to_repeat(
    plan: &Arc<dyn ExecutionPlan>,
    rows: f64,
    estimates: &Estimates,
) -> Result<bool> {
    let Some(scan) = scan_of(plan) else {
        return Ok(false);
    };
    let read = estimates.rows(scan.as_ref())?;
    let is_much = read.is_none_or(|read| read > READ_PER_ROW_MAX * rows);
    Ok(!is_much && plan.output_ordering().is_none() && scan_again(scan)?.is_some())
}

/// The same plan with counters of its own; `None` if it is none that [`is_cheap_to_repeat`].
pub(super) fn repeated(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(input) = input_of(plan) else {
        return scan_again(plan);
    };
    match repeated(input)? {
        Some(input) => over_input(plan, input).map(Some),
        None => Ok(None),
    }
}

/// The scan that a plan has its rows from, if it only drops some and computes columns.
fn scan_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    match (input_of(plan), plan.children().is_empty()) {
        (Some(input), _) => scan_of(input),
        (None, true) => Some(plan),
        (None, false) => None,
    }
}

/// The input of a node that drops some of its rows or computes columns.
fn input_of(plan: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    if let Some(filter) = plan.downcast_ref::<FilterExec>() {
        let is_same = filter.fetch().is_none() && is_repeatable(filter.predicate());
        return is_same.then_some(filter.input());
    }
    let projection = plan.downcast_ref::<ProjectionExec>()?;
    let mut columns = projection.expr().iter();
    let is_same = columns.all(|column| is_repeatable(&column.expr));
    is_same.then_some(projection.input())
}

/// Whether nobody notices how often, and for which rows, an expression is computed: it compares and
/// casts, and calls no function, which might warn or refuse a value. Filters and limits above a
/// join reach one reading and not the other, so it is neither once nor twice for all rows.
pub(super) fn is_repeatable(expr: &PhysicalExprRef) -> bool {
    let is_plain = expr.is::<Column>()
        || expr.is::<Literal>()
        || expr.is::<BinaryExpr>()
        || expr.is::<CastExpr>()
        || expr.is::<CaseExpr>()
        || expr.is::<InListExpr>()
        || expr.is::<IsNotNullExpr>()
        || expr.is::<IsNullExpr>()
        || expr.is::<LikeExpr>()
        || expr.is::<NegativeExpr>()
        || expr.is::<NotExpr>();
    is_plain && expr.children().into_iter().all(is_repeatable)
}

/// The same scan with counters of its own; `None` where it may read other rows: from a pipe, as
/// text that is costly to read, or as many rows as are wanted of more.
fn scan_again(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = plan.downcast_ref::<TableScan>() {
        return Ok(scan.source().is_some().then(|| Arc::new(scan.again()) as _));
    }
    if let Some(scan) = plan.downcast_ref::<MaterializedScan>() {
        return Ok(Some(Arc::new(scan.again())));
    }
    let Some(scan) = plan.downcast_ref::<DataSourceExec>() else {
        return Ok(None);
    };
    if scan.fetch().is_some() {
        return Ok(None);
    }
    if scan.data_source().is::<MemorySourceConfig>() {
        return Ok(Some(Arc::clone(plan)));
    }
    let again = match scan.data_source().downcast_ref::<FileScanConfig>() {
        Some(files) => read_again(files)?,
        None => None,
    };
    Ok(again.map(|files| DataSourceExec::from_data_source(files) as _))
}
