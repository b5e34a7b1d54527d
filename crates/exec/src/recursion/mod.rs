//! `WITH RECURSIVE`: a query that runs again over the rows that its last run returned.
//!
//! Owns: [`RecursionOperator`], which stands for DataFusion's `RecursiveQueryExec`, and the rows
//! between two of its runs ([`level`]). Never: holds the rows of a level in memory if they are
//! many, or all rows of a recursion, but for the keys of one that drops duplicates.
//!
//! ```text
//!   first term --rows--> level 0 --recursive term--> level 1 --recursive term--> ... --> no rows
//!                           |                           |
//!                           +------ rows of the node ---+
//! ```
//!
//! Most recursions count, or climb from row to row: a level has one row, and there are thousands
//! of them. A plan that is reset and started for each takes thirty times as long as the row, so a
//! term without tables runs as a [`ShortPlan`] over levels of few rows.
//!
//! Rows come in the order in which they were made, and no exchange deals them out by turns: behind
//! one, `GROUP_CONCAT(n)` of the numbers from 1 to 10 began with 1,4,5,6,7. What groups or joins
//! them by hash spreads over threads as ever.
//!
//! **Cost**: about a microsecond for each expression and filter of a short level, some thirty for a
//! level that runs as a plan.

mod dedup;
mod level;
mod run;
mod work_rows;

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, Partitioning, PlanProperties,
};

use crate::exchange;
use crate::given_rows::GivenRowsScan;
use crate::plan_node::leaf_properties;
use crate::report::next_temp_table_id;
use crate::short_plan::ShortPlan;
use level::{Levels, WorkRowsScan};
use run::{Run, Terms};
use work_rows::UnboundRowsScan;

#[cfg(doc)]
use crate::context::StatementContext;

pub use run::RecursionTooDeep;
pub use work_rows::WorkRows;

/// A recursion over the temp space.
///
/// Its first child is the first term, its second one the term that reads the rows of the level
/// before. Both have one partition, as it has itself. [`StatementContext::recursion_depth_max`]
/// bounds the levels.
pub struct RecursionOperator {
    name: String,
    id: u64,
    is_distinct: bool,
    first: Arc<dyn ExecutionPlan>,
    recursive: Arc<dyn ExecutionPlan>,
    /// What the recursive term reads.
    levels: Arc<Levels>,
    properties: Arc<PlanProperties>,
}

/// Replaces DataFusion's node, and takes away an exchange that deals its rows out by turns.
pub(crate) fn replace(plan: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let (plan, was_dealt) = match dealt(&plan) {
        Some(input) => (input, true),
        None => (plan, false),
    };
    let Some(stock) = plan.downcast_ref::<RecursiveQueryExec>() else {
        return Ok(Transformed::new_transformed(plan, was_dealt));
    };
    let levels = Arc::<Levels>::default();
    let recursive = over_levels(stock, &levels)?;
    Ok(Transformed::yes(Arc::new(RecursionOperator {
        name: stock.name().to_owned(),
        id: next_temp_table_id(),
        is_distinct: stock.is_distinct(),
        first: Arc::clone(stock.static_term()),
        recursive,
        levels,
        properties: leaf_properties(stock.schema(), 1),
    })))
}

/// What an exchange reads that deals the rows of a recursion out by turns, whole or filtered and
/// projected; `None` for any other node.
fn dealt(plan: &Arc<dyn ExecutionPlan>) -> Option<Arc<dyn ExecutionPlan>> {
    let exchange = plan.downcast_ref::<RepartitionExec>()?;
    if !matches!(exchange.partitioning(), Partitioning::RoundRobinBatch(_)) {
        return None;
    }
    let mut below = exchange.input();
    while !below.is::<RecursiveQueryExec>() {
        let is_row_by_row = below.is::<ProjectionExec>()
            || below.is::<FilterExec>()
            || below.is::<CooperativeExec>();
        match below.children().as_slice() {
            [input] if is_row_by_row => below = *input,
            _ => return None,
        }
    }
    Some(Arc::clone(exchange.input()))
}

/// The recursive term with a scan of our levels in the place of the work table.
fn over_levels(stock: &RecursiveQueryExec, levels: &Arc<Levels>) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = stock.schema();
    let replaced = Arc::clone(stock.recursive_term()).transform_down(|node| {
        let is_inner = |inner: &RecursiveQueryExec| inner.name() == stock.name();
        if node.downcast_ref().is_some_and(is_inner) {
            return Ok(Transformed::new(node, false, TreeNodeRecursion::Jump));
        }
        let of_stock = node.downcast_ref().map(WorkTableExec::name);
        let of_ours = node.downcast_ref().map(UnboundRowsScan::recursion);
        if of_stock.or(of_ours) != Some(stock.name()) {
            return Ok(Transformed::no(node));
        }
        let columns = columns_of(&node.schema(), &schema)?;
        let scan = WorkRowsScan::new(node.schema(), columns, Arc::clone(levels));
        Ok(Transformed::yes(Arc::new(scan)))
    });
    replaced.data()
}

/// The places of columns among all, by their names, which differ.
fn columns_of(read: &SchemaRef, all: &SchemaRef) -> Result<Vec<usize>> {
    let place = |name: &String| {
        let mut places = (0..all.fields().len()).filter(|place| all.field(*place).name() == name);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            _ => internal_err!("a recursion reads {name}, which is none of its columns"),
        }
    };
    read.fields()
        .iter()
        .map(|field| place(field.name()))
        .collect()
}

impl RecursionOperator {
    /// The identity of its temporary table.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// The recursive term over rows that are handed to it, where that has no tables, and the
    /// columns of a level that it reads.
    fn short(&self) -> Result<(Option<ShortPlan>, Vec<usize>)> {
        let mut scans = 0;
        let given = Arc::clone(&self.recursive).transform_up(|node| {
            if let Some(scan) = node.downcast_ref::<WorkRowsScan>()
                && scan.reads(&self.levels)
            {
                scans += 1;
                let scan = GivenRowsScan::of(scan.schema(), scan.columns());
                return Ok(Transformed::yes(Arc::new(scan)));
            }
            // Few rows are not worth being dealt out to threads.
            Ok(match exchange::input_of(&node) {
                Some(input) if input.output_partitioning().partition_count() == 1 => {
                    Transformed::yes(Arc::clone(input))
                }
                _ => Transformed::no(node),
            })
        });
        let given = given.data()?;
        if scans > 1 {
            // Each may read other columns, and rows are handed to one.
            return Ok((None, Vec::new()));
        }
        let Some(read) = GivenRowsScan::find(&given) else {
            // The optimizer has found that the term has no rows, whatever it reads.
            return Ok((None, Vec::new()));
        };
        Ok((ShortPlan::of(&given)?, read.columns().to_vec()))
    }
}

impl fmt::Debug for RecursionOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecursionOperator")
            .field("name", &self.name)
            .field("is_distinct", &self.is_distinct)
            .field("first", &self.first)
            .field("recursive", &self.recursive)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for RecursionOperator {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name, is_distinct, ..
        } = self;
        write!(
            f,
            "RecursionOperator: name={name}, is_distinct={is_distinct}"
        )
    }
}

impl ExecutionPlan for RecursionOperator {
    crate::plan_node::without_expressions!();
    crate::plan_node::with_new_children!();

    fn name(&self) -> &'static str {
        "RecursionOperator"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![
            Distribution::SinglePartition,
            Distribution::SinglePartition,
        ])
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.first, &self.recursive]
    }

    /// The new node has levels of its own, so that it may run beside this one.
    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([first, recursive]) = <[_; 2]>::try_from(children) else {
            return internal_err!("a recursion has two terms");
        };
        let levels = Arc::<Levels>::default();
        let recursive = recursive.transform_down(|node: Arc<dyn ExecutionPlan>| {
            Ok(match node.downcast_ref::<WorkRowsScan>() {
                Some(scan) if scan.reads(&self.levels) => {
                    Transformed::yes(Arc::new(scan.over(&levels)))
                }
                _ => Transformed::no(node),
            })
        });
        Ok(Arc::new(Self {
            name: self.name.clone(),
            id: self.id,
            is_distinct: self.is_distinct,
            first,
            recursive: recursive.data()?,
            levels,
            properties: Arc::clone(&self.properties),
        }))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("a recursion has one partition");
        }
        let (short, columns) = self.short()?;
        let terms = Terms {
            id: self.id,
            is_distinct: self.is_distinct,
            schema: self.schema(),
            first: Arc::clone(&self.first),
            recursive: Arc::clone(&self.recursive),
            short,
            columns,
            levels: Arc::clone(&self.levels),
        };
        let run = Run::begin(terms, context)?;
        let rows = futures::stream::try_unfold(run, |mut run| async move {
            let batch = run.next().await?;
            Ok(batch.map(|batch| (batch, run)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
