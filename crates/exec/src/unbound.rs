//! Plans that are kept, without the rows that they read.
//!
//! Owns: [`UnboundTable`], a table of a plan that holds no rows of it and does not keep it alive,
//! [`bound`], which makes a plan over the rows of now, and [`size_at_most`]. Never: lets a plan
//! depend on how many rows there are: the number is told as a guess.
//!
//! ```text
//!   kept plan --bound--> plan: scans, rows by key, joins by key --execute--> rows
//!       ^                  each time
//!       |  once: stock rules, without SwapOperators
//!   statement
//! ```

use std::fmt;
use std::sync::{Arc, Weak};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::{Result, Statistics, internal_datafusion_err, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{CrossJoinExec, HashJoinExec, NestedLoopJoinExec};
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
};
use mayfly_table::Table;

use crate::by_key::{self, Access, KeyJoin, KeyScan};
use crate::padding::ForgetConstants;
use crate::plan_node::{leaf_node, leaf_properties, row_statistics};
use crate::provider::{TableScan, TableSource};
use crate::sort::MergeOperator;

/// A `TableProvider` over the rows that a table will have.
#[derive(Debug)]
pub struct UnboundTable {
    table: Weak<Table>,
    schema: SchemaRef,
}

impl UnboundTable {
    /// The provider of a table, which may go away.
    pub fn new(table: &Arc<Table>) -> Self {
        Self {
            table: Arc::downgrade(table),
            schema: Arc::clone(table.schema()),
        }
    }

    fn table(&self) -> Result<Arc<Table>> {
        let table = self.table.upgrade();
        table.ok_or_else(|| internal_datafusion_err!("a table went away while it was planned"))
    }
}

#[async_trait]
impl TableProvider for UnboundTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        TableSource::new(self.table()?).supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        let properties = leaf_properties(schema, 1);
        Ok(Arc::new(UnboundScan {
            rows: usize::try_from(self.table()?.row_count()).unwrap_or(usize::MAX),
            table: Weak::clone(&self.table),
            projection: projection.cloned(),
            filters: filters.to_vec(),
            limit,
            properties,
        }))
    }
}

/// Stands for a scan of a table.
struct UnboundScan {
    table: Weak<Table>,
    projection: Option<Vec<usize>>,
    filters: Vec<Expr>,
    limit: Option<usize>,
    /// The rows of the table when this was planned.
    rows: usize,
    properties: Arc<PlanProperties>,
}

impl UnboundScan {
    /// The scan of the rows of now, or of those that a key finds; `None` if the table is gone.
    fn bound(&self) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(table) = self.table.upgrade() else {
            return Ok(None);
        };
        let source = TableSource::new(table);
        let scan = source.scan_now(1, self.projection.as_ref(), &self.filters, self.limit)?;
        Ok(Some(scan))
    }
}

impl fmt::Debug for UnboundScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnboundScan")
            .field("projection", &self.projection)
            .field("filters", &self.filters)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for UnboundScan {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnboundScan: projection={:?}", self.projection)
    }
}

impl ExecutionPlan for UnboundScan {
    leaf_node!("UnboundScan");

    fn execute(
        &self,
        _partition: usize,
        _context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        internal_err!("a plan without rows runs")
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        row_statistics(self, Precision::Inexact(self.rows))
    }
}

/// A plan over the rows that its tables have now, with joins by key where they pay; `None` if a
/// table is gone. Sorts stay as they are: an order by key is for many rows.
///
/// # Errors
/// If an index cannot be read.
pub fn bound(kept: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if let Some(scan) = kept.downcast_ref::<UnboundScan>() {
        return scan.bound();
    }
    // Nodes share what they learn while they run with those that they were made from.
    let fresh = Arc::clone(kept).reset_state()?;
    let mut inputs = Vec::new();
    for input in kept.children() {
        let Some(input) = bound(input)? else {
            return Ok(None);
        };
        inputs.push(input);
    }
    if inputs.is_empty() {
        return Ok(Some(fresh));
    }
    // A scan of now has the properties of the one that stood for it: one partition in no order.
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
    let node = fresh.replace_children(inputs, options)?;
    Ok(Some(by_key::replace_join(node)?.data))
}

/// How much a plan may have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// The rows of any of its nodes at most.
    pub rows: u64,
    /// The bytes that the rows of its tables take, about.
    pub bytes_read: u64,
}

/// How much a plan may have to do, if all of its nodes are of a kind that is known here; none of
/// those starts a task or reads a file.
pub fn size_at_most(plan: &Arc<dyn ExecutionPlan>) -> Option<Size> {
    bounds(plan).map(|bounds| bounds.all)
}

/// What is known of the rows of a plan.
#[derive(Clone, Copy)]
struct Bounds {
    /// Its own rows at most.
    own: u64,
    /// The plan as a whole.
    all: Size,
}

impl Bounds {
    /// Some rows of a table.
    fn leaf(table: &Table, rows: usize) -> Bounds {
        let rows = rows as u64;
        Bounds {
            own: rows,
            all: Size {
                rows,
                bytes_read: bytes_of(table, rows),
            },
        }
    }

    /// A node above others, with rows of its own.
    fn above(own: u64, inputs: &[Bounds]) -> Bounds {
        let inputs = || inputs.iter().map(|input| input.all);
        Bounds {
            own,
            all: Size {
                rows: inputs().map(|all| all.rows).fold(own, u64::max),
                bytes_read: inputs().map(|all| all.bytes_read).sum(),
            },
        }
    }
}

/// The bytes of some rows of a table, if they are as long as the others.
fn bytes_of(table: &Table, rows: u64) -> u64 {
    let row_bytes = table.bytes() / table.row_count().max(1);
    rows.saturating_mul(row_bytes)
}

fn bounds(plan: &Arc<dyn ExecutionPlan>) -> Option<Bounds> {
    if let Some(scan) = plan.downcast_ref::<TableScan>() {
        return Some(Bounds::leaf(scan.table(), scan.row_count()));
    }
    if let Some(scan) = plan.downcast_ref::<KeyScan>() {
        return Some(Bounds::leaf(&scan.found().table, scan.row_count()));
    }
    let children = plan.children();
    let inputs: Vec<Bounds> = children.into_iter().map(bounds).collect::<Option<_>>()?;
    let rows = || inputs.iter().map(|input| input.own);
    let own = if plan.is::<PlaceholderRowExec>() {
        1
    } else if plan.is::<EmptyExec>() {
        0
    } else if plan.is::<FilterExec>()
        || plan.is::<ProjectionExec>()
        || plan.is::<SortExec>()
        || plan.is::<CooperativeExec>()
        || plan.is::<ForgetConstants>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
    {
        rows().sum()
    } else if plan.is::<CoalescePartitionsExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<MergeOperator>()
    {
        // Several partitions are read by tasks.
        let input = plan.children().into_iter().next()?;
        if input.output_partitioning().partition_count() > 1 {
            return None;
        }
        rows().sum()
    } else if let Some(aggregate) = plan.downcast_ref::<AggregateExec>() {
        // WITH ROLLUP groups the same rows several times.
        let groupings = aggregate.group_expr().groups().len().max(1) as u64;
        rows().sum::<u64>().max(1).saturating_mul(groupings)
    } else if plan.is::<UnionExec>() {
        rows().fold(0, u64::saturating_add)
    } else if plan.is::<HashJoinExec>()
        || plan.is::<NestedLoopJoinExec>()
        || plan.is::<CrossJoinExec>()
    {
        // A row without a partner stands for itself.
        rows().fold(1_u64, |all, rows| {
            all.saturating_mul(rows.saturating_add(1))
        })
    } else if let Some(join) = plan.downcast_ref::<KeyJoin>() {
        let each = match join.found().access {
            Access::EqRef => 1,
            _ => join.found().table.row_count().max(1),
        };
        let own = rows().fold(0, u64::saturating_add).saturating_mul(each);
        let mut bounds = Bounds::above(own, &inputs);
        let bytes = bytes_of(&join.found().table, own);
        bounds.all.bytes_read = bounds.all.bytes_read.saturating_add(bytes);
        return Some(bounds);
    } else {
        return None;
    };
    Some(Bounds::above(own, &inputs))
}
