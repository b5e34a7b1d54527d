//! Plans over few rows that run again and again.
//!
//! Owns: [`ShortPlan`], a physical plan as steps over whole batches, made once and run at once on
//! the thread that asks. Never: waits, starts a task, or keeps a page or a table alive, but for the
//! snapshots of a statement; never runs to its end where it finds many rows.
//!
//! ```text
//!   stock plan --of--> steps --run--> rows
//!   (once, over unbound or given rows,   (each time)
//!    or over snapshots)
//! ```
//!
//! An operator of DataFusion is a stream that is opened, polled and counted, over a copy of its
//! plan node. That is little beside thousands of rows, and most of the time of four. Here reading a
//! table, a filter, a projection, a sort, a limit and a join by key are functions from batches to a
//! batch that call the same kernels and expressions. A filter reads a table page by page, and
//! aggregates without groups are a step ([`totals`]). Of a large table, the first rows of an order,
//! the ends of a key and some rows are read without the others ([`first_rows`]); the value of a
//! subquery is told to the steps that ask for it ([`subquery`]). What else a plan has, such as
//! groups or a join without a key, stays the stock operator, and is handed its inputs as batches
//! ([`stock`]).
//!
//! **Cost**: about a microsecond a step, some ten for a stock operator.

mod compile;
mod first_rows;
mod run;
mod size;
mod step;
mod stock;
mod subquery;
mod totals;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;

use crate::filter;
use crate::source::RowsOf;
use crate::subquery_value::without_values;
use run::Run;
pub use run::ShortRun;
pub use size::{Filtered, Size};
use step::Step;

/// A plan as steps over batches.
pub struct ShortPlan {
    root: Step,
    schema: SchemaRef,
}

impl ShortPlan {
    /// The steps of a physical plan of stock operators over
    /// [`UnboundTable`](crate::UnboundTable)s or [`GivenRows`](crate::GivenRows); `None` if it has
    /// a node of a kind that is not known here.
    ///
    /// # Errors
    /// If an index cannot be read.
    pub fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<ShortPlan>> {
        Self::over(plan, RowsOf::Now)
    }

    /// The same of a plan over tables, which reads the rows that these had when it was made.
    ///
    /// # Errors
    /// As [`ShortPlan::of`].
    pub fn of_snapshots(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<ShortPlan>> {
        Self::over(plan, RowsOf::Snapshot)
    }

    fn over(plan: &Arc<dyn ExecutionPlan>, rows: RowsOf) -> Result<Option<ShortPlan>> {
        let plan = filter::in_joins(Arc::clone(plan))?;
        let root = compile::compiled(&plan, rows)?;
        Ok(root.map(|root| ShortPlan {
            root: root.step,
            schema: plan.schema(),
        }))
    }

    /// The columns of the rows.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Runs the plan over the rows of now, and over those that are given to it; `None` if it has
    /// more to do than `most`, would have to wait, or a table is gone. Nothing was done then but
    /// that expressions may have warned.
    ///
    /// # Errors
    /// If a page cannot be read or an expression fails.
    pub fn run(
        &self,
        given: Option<RecordBatch>,
        most: Size,
        context: &Arc<TaskContext>,
    ) -> Result<Option<ShortRun>> {
        let mut run = Run::new(given, most, context);
        let rows = without_values(|| self.root.rows(&mut run))?;
        Ok(rows.map(|rows| run.ended(rows)))
    }
}
