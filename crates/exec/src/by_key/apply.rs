//! A join of few rows with groups of the rows that belong to them: what is left of
//! `SELECT (SELECT COUNT(*) FROM b WHERE b.k = n.i) FROM n`.
//!
//! **Owns** the plan node and the decision between the rows that a key finds and all rows.
//! **Never** joins or groups: the stock join does so over what it is given.
//!
//! Groups that no outer row asks for are of no use to the join, so that their rows need not be
//! read. The outer side is read first; where it is short, its values are looked up together, and
//! the scan below the groups hears which rows to read ([`LateScan`]).
//!
//! ```text
//!   outer --values--> key --rows--> LateScan -> groups --+
//!     +----------------------------------------------- stock join -> rows
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow::compute::concat_batches;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinSide, Result, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan, ExecutionPlanProperties,
    Partitioning, PlanProperties,
};
use futures::{StreamExt, TryStreamExt};
use mayfly_space::Reservation;

use super::join::{CHUNK_BYTES_MAX, CHUNKS_PER_MEMORY};
use super::join_key::KeyValues;
use super::late_scan::LateScan;
use super::stock::{by_hash, in_one_partition, join_all, keys_of};
use crate::context::StatementContext;
use crate::kept_rows::copied;
use crate::replay::{Replay, Rest};

/// Joins rows with groups of rows that a key finds.
pub struct KeyApply {
    stock: Arc<HashJoinExec>,
    side: JoinSide,
    outer: Arc<dyn ExecutionPlan>,
    inner: Arc<dyn ExecutionPlan>,
    /// What the key is asked for.
    values: KeyValues,
    /// The rows that are read by key before a scan is cheaper.
    limit: u64,
    properties: Arc<PlanProperties>,
}

impl KeyApply {
    /// The join whose outer side is `side`, and whose other side is `inner`, with a [`LateScan`].
    pub(super) fn new(
        stock: &HashJoinExec,
        side: JoinSide,
        inner: Arc<dyn ExecutionPlan>,
        values: KeyValues,
        limit: u64,
    ) -> Result<Self> {
        // Rows of the left side are kept by the join.
        let outer = match side {
            JoinSide::Left => copied(stock.left())?,
            _ => Arc::clone(stock.right()),
        };
        let properties = PlanProperties::new(
            stock.properties().eq_properties.clone(),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        Ok(Self {
            stock: Arc::new(stock.builder().reset_state().build()?),
            side,
            outer: in_one_partition(outer),
            inner,
            values,
            limit,
            properties: Arc::new(properties),
        })
    }

    /// The side that is read first.
    pub fn outer(&self) -> &Arc<dyn ExecutionPlan> {
        &self.outer
    }

    /// The side with the groups.
    pub fn inner(&self) -> &Arc<dyn ExecutionPlan> {
        &self.inner
    }

    /// The expressions over the outer side that the key is asked for, in its order.
    pub fn values(&self) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
        self.values.expressions()
    }

    fn run(&self, context: Arc<TaskContext>) -> Result<Run> {
        let statement = StatementContext::of(&context)?;
        let memory_bytes = statement.account.space().memory_bytes();
        Ok(Run {
            stock: Arc::clone(&self.stock),
            side: self.side,
            inner: Arc::clone(&self.inner),
            outer: self.outer.execute(0, Arc::clone(&context))?,
            values: self.values.clone(),
            limit: usize::try_from(self.limit).unwrap_or(usize::MAX),
            kept_bytes: (memory_bytes / CHUNKS_PER_MEMORY).min(CHUNK_BYTES_MAX),
            statement,
            context,
        })
    }
}

impl fmt::Debug for KeyApply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyApply")
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for KeyApply {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.values().map(|value| value.to_string()).collect();
        let values = values.join(", ");
        if matches!(t, DisplayFormatType::TreeRender) {
            return writeln!(f, "values={values}");
        }
        let join_type = self.stock.join_type();
        write!(f, "KeyApply: join_type={join_type:?}, values=[{values}]")
    }
}

impl ExecutionPlan for KeyApply {
    fn name(&self) -> &'static str {
        "KeyApply"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.outer, &self.inner]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.stock.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok([outer, inner]) = <[_; 2]>::try_from(children) else {
            return Err(internal_datafusion_err!("a join has two sides"));
        };
        Ok(Arc::new(Self {
            stock: Arc::clone(&self.stock),
            side: self.side,
            outer: in_one_partition(outer),
            inner,
            values: self.values.clone(),
            limit: self.limit,
            properties: Arc::clone(&self.properties),
        }))
    }

    crate::plan_node::with_new_children!();

    fn execute(
        &self,
        _partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let run = self.run(context)?;
        let joined = futures::stream::once(run.joined()).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            joined,
        )))
    }

    fn fetch(&self) -> Option<usize> {
        self.stock.fetch()
    }
}

/// A join that begins.
struct Run {
    stock: Arc<HashJoinExec>,
    side: JoinSide,
    inner: Arc<dyn ExecutionPlan>,
    outer: SendableRecordBatchStream,
    values: KeyValues,
    limit: usize,
    /// The bytes of outer rows that are kept at most.
    kept_bytes: u64,
    statement: Arc<StatementContext>,
    context: Arc<TaskContext>,
}

impl Run {
    /// The rows of the join.
    async fn joined(mut self) -> Result<SendableRecordBatchStream> {
        let late = late_scan(&self.inner)
            .ok_or_else(|| internal_datafusion_err!("groups without a scan that waits"))?;
        let schema = self.outer.schema();
        let mut read = VecDeque::new();
        let (mut rows, mut bytes) = (0, 0);
        let mut has_ended = false;
        while rows <= self.limit && bytes <= self.kept_bytes {
            let Some(batch) = self.outer.next().await.transpose()? else {
                has_ended = true;
                break;
            };
            rows += batch.num_rows();
            bytes += batch.get_array_memory_size() as u64;
            read.push_back(batch);
        }
        let mut kept: Option<Reservation> = None;
        if has_ended && rows <= self.limit {
            kept = self.statement.account.reserve(bytes).ok();
        }
        match kept {
            Some(_) => {
                let rows = concat_batches(&schema, &read)?;
                late.tell(Some(&self.values.evaluate(&rows)?), self.limit)?;
                read = VecDeque::from([rows]);
            }
            None => late.tell(None, 0)?,
        }
        if has_ended {
            // Of a stream that has ended nothing more may be asked.
            self.outer = Box::pin(EmptyRecordBatchStream::new(Arc::clone(&schema)));
        }
        let rest = Rest {
            read,
            stream: self.outer,
        };
        let outer = Arc::new(Replay::new(schema, rest));
        let inner = match (self.stock.partition_mode(), self.side) {
            (PartitionMode::Partitioned, side) => {
                let partitions = self.inner.output_partitioning().partition_count();
                by_hash(self.inner, keys_of(&self.stock, side.negate()), partitions)?
            }
            // The side that the join keeps.
            (_, JoinSide::Right) => in_one_partition(self.inner),
            _ => self.inner,
        };
        let joined = join_all(&self.stock, self.side, outer, inner, self.context)?;
        let schema = joined.schema();
        let joined = joined.inspect(move |_| {
            // The outer rows stay as long as the join.
            let _kept = &kept;
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, joined)))
    }
}

/// The scan below the groups.
fn late_scan(plan: &Arc<dyn ExecutionPlan>) -> Option<&LateScan> {
    let mut plan = plan;
    loop {
        if let Some(late) = plan.downcast_ref::<LateScan>() {
            return Some(late);
        }
        let children = plan.children();
        let [below] = children.as_slice() else {
            return None;
        };
        plan = below;
    }
}
