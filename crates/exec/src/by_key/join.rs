//! The join that looks rows up: an index nested-loop join, in batches.
//!
//! **Owns** the plan node and the decision between lookups and a hash join. **Never** knows how a
//! chunk of rows is joined (`chunk`) or when the node pays (`join_rule`).
//!
//! The outer side is read in chunks. The values of a chunk are sorted and looked up together, the
//! rows that they find are read page by page, and conditions that the key does not know are checked
//! last. How many rows the outer side has is often not known before: once as many rows have been
//! found as a scan of the table would cost, the stock hash join goes on with the rest; it may,
//! since each outer row is joined for itself. Of the table's own rows in a semi-join (`IN` of a
//! small subquery) each is shown once; there all outer rows are read before the first is shown.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{JoinSide, Result, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::joins::HashJoinExec;
use datafusion::physical_plan::metrics::{
    BaselineMetrics, Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet,
};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan, Partitioning,
    PlanProperties,
};
use futures::StreamExt;
use mayfly_space::{Admission, Reservation};
use mayfly_table::ByKey;

use super::choice::Access;
use super::chunk::{Chunk, Kind, Spec};
use super::scan::Found;
use super::stock::{in_one_partition, join_all};
use crate::context::StatementContext;
use crate::error::{space_error, table_error};
use crate::kept_rows::copied;
use crate::reads::Searched;
use crate::replay::{Replay, Rest};
use crate::source::Source;
use crate::time_slice::TimeSlice;

/// Outer rows that are looked up together.
const CHUNK_ROWS: usize = 8192;
/// A chunk takes at most this part of the budget.
pub(super) const CHUNKS_PER_MEMORY: u64 = 32;
pub(super) const CHUNK_BYTES_MAX: u64 = 4 << 20;
/// An outer side that takes more than this part of the budget is not kept for a hash join.
const KEPT_PER_MEMORY: u64 = 4;
/// More rows than any join finds.
pub(super) const UNLIMITED: u64 = u64::MAX / 16;
/// The place of an outer row and the number of a row that it finds, with what sorting them needs.
const PAIR_BYTES: u64 = 32;

/// Joins rows with those of a table that a key finds.
pub struct KeyJoin {
    spec: Arc<Spec>,
    /// The table.
    source: Source,
    found: Found,
    /// How many rows of the table one outer row finds, about.
    rows_each: u64,
    /// The rows that are found before a hash join takes over.
    limit: u64,
    /// Whether a hash join may find no room.
    is_tight: bool,
    stock: Arc<HashJoinExec>,
    outer: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl KeyJoin {
    pub(super) fn new(
        spec: Spec,
        source: Source,
        found: Found,
        rows_each: u64,
        limit: u64,
        stock: &HashJoinExec,
        outer: Arc<dyn ExecutionPlan>,
    ) -> Result<Self> {
        let children = vec![copied(stock.left())?, Arc::clone(stock.right())];
        let properties = PlanProperties::new(
            stock.properties().eq_properties.clone(),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            spec: Arc::new(spec),
            source,
            found,
            rows_each,
            limit,
            is_tight: false,
            stock: Arc::new(
                stock
                    .builder()
                    .reset_state()
                    .with_new_children(children)?
                    .build()?,
            ),
            outer,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        })
    }

    /// The same join where a hash join may find no room: it goes on by key unless the hash join
    /// keeps the outer side, and that is seen to be short.
    pub(super) fn instead_of_all(self) -> Result<Self> {
        Ok(Self {
            is_tight: true,
            outer: copied(&self.outer)?,
            ..self
        })
    }

    /// The key that is used.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// The expressions over the outer side that the key is asked for, in its order.
    pub fn values(&self) -> impl Iterator<Item = &Arc<dyn PhysicalExpr>> {
        self.spec.values.expressions()
    }

    /// The outer side.
    pub fn outer(&self) -> &Arc<dyn ExecutionPlan> {
        &self.outer
    }

    /// How many rows of the table one outer row finds, about.
    pub fn rows_each(&self) -> u64 {
        self.rows_each
    }

    /// Whether rows that the key finds are checked further.
    pub fn has_filter(&self) -> bool {
        self.spec.is_checked()
    }
}

impl fmt::Debug for KeyJoin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyJoin")
            .field("found", &self.found)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

impl DisplayAs for KeyJoin {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = self.found.table.name();
        let key = &self.found.key().name;
        if matches!(t, DisplayFormatType::TreeRender) {
            return writeln!(f, "table={table}\nkey={key}");
        }
        let values: Vec<String> = self.values().map(|value| value.to_string()).collect();
        write!(
            f,
            "KeyJoin: join_type={:?}, table={table}",
            self.stock.join_type()
        )?;
        write!(f, ", key={key}, values=[{}]", values.join(", "))
    }
}

impl ExecutionPlan for KeyJoin {
    fn name(&self) -> &'static str {
        "KeyJoin"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.outer]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.stock.apply_expressions(f)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let outer = children
            .pop()
            .ok_or_else(|| internal_datafusion_err!("a join by key has an outer side"))?;
        Ok(Arc::new(Self {
            spec: Arc::clone(&self.spec),
            source: self.source.clone(),
            found: self.found.clone(),
            rows_each: self.rows_each,
            limit: self.limit,
            is_tight: self.is_tight,
            stock: Arc::clone(&self.stock),
            outer: in_one_partition(outer),
            properties: Arc::clone(&self.properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    crate::plan_node::with_new_children!();

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let statement = StatementContext::of(&context)?;
        let memory_bytes = statement.account.space().memory_bytes();
        let chunk_bytes = (memory_bytes / CHUNKS_PER_MEMORY).min(CHUNK_BYTES_MAX);
        let source = &self.source;
        let batch_rows = context.session_config().batch_size() as u64;
        let output_rows = (chunk_bytes / source.row_bytes()).clamp(1, batch_rows);
        // The page that it reads may not be taken by the operators that it feeds.
        let admission = source.snapshot.account().admit(source.page_bytes_max());
        let run = Run {
            spec: Arc::clone(&self.spec),
            source: source.clone(),
            stock: Arc::clone(&self.stock),
            statement,
            chunk_bytes,
            output_rows: output_rows as usize,
            is_unique: self.found.access == Access::EqRef,
            limit: usize::try_from(self.limit).unwrap_or(usize::MAX),
            small_rows: self.is_tight.then(|| {
                let rows = chunk_bytes / PAIR_BYTES / self.rows_each.max(1);
                usize::try_from(rows).unwrap_or(usize::MAX).max(1)
            }),
            may_fit: self.is_tight && self.spec.outer == JoinSide::Left,
            kept_bytes: memory_bytes / KEPT_PER_MEMORY,
            kept: None,
            ahead: VecDeque::new(),
            left: self.stock.fetch().unwrap_or(usize::MAX),
            outer: Some(self.outer.execute(0, Arc::clone(&context))?),
            context,
            chunk: None,
            slice: TimeSlice::begin(),
            rest: None,
            reservation: None,
            _admission: admission.map_err(space_error)?,
            baseline: BaselineMetrics::new(&self.metrics, partition),
            lookups: MetricBuilder::new(&self.metrics).counter("lookups", partition),
        };
        let batches = futures::stream::try_unfold(run, |mut run| async move {
            let batch = run.next().await?;
            Ok(batch.map(|batch| (batch, run)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            self.schema(),
            batches,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn fetch(&self) -> Option<usize> {
        self.stock.fetch()
    }
}

/// A join that runs.
struct Run {
    // Fixed.
    spec: Arc<Spec>,
    source: Source,
    stock: Arc<HashJoinExec>,
    statement: Arc<StatementContext>,
    context: Arc<TaskContext>,
    chunk_bytes: u64,
    /// Rows of a batch that is shown.
    output_rows: usize,
    /// Whether an outer row finds one row at most.
    is_unique: bool,
    /// Outer rows that are looked up together at most, where a hash join may find no room.
    small_rows: Option<usize>,
    /// Bytes of an outer side that is left to a hash join.
    kept_bytes: u64,
    // State.
    /// Whether the outer side may be one that a hash join finds room for.
    may_fit: bool,
    /// Rows that may still be found by key.
    limit: usize,
    /// Rows that may still be shown.
    left: usize,
    outer: Option<SendableRecordBatchStream>,
    /// Outer rows that were read and come next.
    ahead: VecDeque<RecordBatch>,
    chunk: Option<Chunk>,
    slice: TimeSlice,
    /// The hash join that does what is left.
    rest: Option<SendableRecordBatchStream>,
    // Resources.
    /// Memory of the chunk.
    reservation: Option<Reservation>,
    /// Memory of rows that come next.
    kept: Option<Reservation>,
    _admission: Admission,
    baseline: BaselineMetrics,
    lookups: Count,
}

impl Run {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.left == 0 {
            return Ok(None);
        }
        loop {
            let batch = if let Some(rest) = &mut self.rest {
                match rest.next().await.transpose()? {
                    Some(batch) => batch,
                    None => return Ok(None),
                }
            } else if let Some(chunk) = &mut self.chunk {
                self.slice.share().await;
                let timer = self.baseline.elapsed_compute().timer();
                let batch = chunk.next(&self.spec, &self.source, self.output_rows)?;
                timer.done();
                match batch {
                    Some(batch) => batch,
                    None => {
                        self.chunk = None;
                        self.reservation = None;
                        continue;
                    }
                }
            } else {
                match self.begin_chunk().await? {
                    true => continue,
                    false => return Ok(None),
                }
            };
            if batch.num_rows() > 0 {
                let batch = batch.slice(0, batch.num_rows().min(self.left));
                self.left -= batch.num_rows();
                self.baseline.record_output(batch.num_rows());
                return Ok(Some(batch));
            }
        }
    }

    /// Reads outer rows and looks them up; whether there were any.
    async fn begin_chunk(&mut self) -> Result<bool> {
        let Some(mut outer) = self.outer.take() else {
            return Ok(false);
        };
        let needs_all = self.spec.kind == Kind::InnerSemi;
        let rows_max = match needs_all {
            true => self.limit,
            false => self.limit.min(CHUNK_ROWS),
        };
        let mut read = VecDeque::new();
        let (mut rows, mut bytes, mut has_ended) = (0, 0, false);
        if self.ahead.is_empty() {
            self.kept = None;
        }
        // An outer side that ends exactly at the limit ends there.
        let (small_rows, chunk_bytes) = (self.small_rows.unwrap_or(usize::MAX), self.chunk_bytes);
        while rows == 0 || (rows <= rows_max && rows < small_rows && bytes < chunk_bytes) {
            let next = match self.ahead.pop_front() {
                Some(batch) => Some(batch),
                None => outer.next().await.transpose()?,
            };
            match next {
                Some(batch) => {
                    let batch = self.cut(batch, rows);
                    rows += batch.num_rows();
                    bytes += batch.get_array_memory_size() as u64;
                    read.push_back(batch);
                }
                None => {
                    has_ended = true;
                    break;
                }
            }
        }
        let schema = outer.schema();
        // Of a stream that has ended nothing more may be asked.
        let mut outer: SendableRecordBatchStream = match has_ended {
            true => Box::pin(EmptyRecordBatchStream::new(Arc::clone(&schema))),
            false => outer,
        };
        if rows == 0 {
            return Ok(false);
        }
        let is_worth = rows <= self.limit && (has_ended || !needs_all);
        if is_worth {
            let mut rows = concat_batches(&schema, &read)?;
            loop {
                if let Some(chunk) = self.look_up(rows.clone())? {
                    self.chunk = Some(chunk);
                    self.outer = (!has_ended || !self.ahead.is_empty()).then_some(outer);
                    return Ok(true);
                }
                let half = rows.num_rows() / 2;
                if self.small_rows.is_none() || self.may_fit || half == 0 {
                    break;
                }
                self.small_rows = Some(half);
                self.ahead
                    .push_front(rows.slice(half, rows.num_rows() - half));
                rows = rows.slice(0, half);
            }
            read = VecDeque::from([rows]);
        }
        read.append(&mut self.ahead);
        if std::mem::replace(&mut self.may_fit, false) && self.keep(&mut read, &mut outer).await? {
            self.limit = usize::try_from(UNLIMITED).unwrap_or(usize::MAX);
            self.ahead = read;
            self.outer = Some(outer);
            return Ok(true);
        }
        let rest = Rest {
            read,
            stream: outer,
        };
        self.rest = Some(self.go_over(schema, rest)?);
        Ok(true)
    }

    /// Reads on in the outer side that a hash join would keep; whether it is too long for that.
    async fn keep(
        &mut self,
        read: &mut VecDeque<RecordBatch>,
        outer: &mut SendableRecordBatchStream,
    ) -> Result<bool> {
        let bytes_of = |batch: &RecordBatch| batch.get_array_memory_size() as u64;
        let mut bytes: u64 = read.iter().map(bytes_of).sum();
        let mut kept = self.statement.account.reserve(0).map_err(space_error)?;
        loop {
            if bytes > self.kept_bytes || kept.try_resize(bytes).is_err() {
                self.kept = Some(kept);
                return Ok(true);
            }
            let Some(batch) = outer.next().await.transpose()? else {
                *outer = Box::pin(EmptyRecordBatchStream::new(outer.schema()));
                return Ok(false);
            };
            bytes += bytes_of(&batch);
            read.push_back(batch);
        }
    }

    /// The part of a batch that belongs to a chunk that has some rows already.
    fn cut(&mut self, batch: RecordBatch, rows: usize) -> RecordBatch {
        let room = self
            .small_rows
            .map_or(usize::MAX, |most| most.saturating_sub(rows));
        let room = room.max(usize::from(rows == 0));
        if batch.num_rows() <= room {
            return batch;
        }
        self.ahead
            .push_front(batch.slice(room, batch.num_rows() - room));
        batch.slice(0, room)
    }

    /// The rows that a chunk finds; `None` if a hash join is to find them.
    fn look_up(&mut self, outer: RecordBatch) -> Result<Option<Chunk>> {
        let timer = self.baseline.elapsed_compute().timer();
        let count = outer.num_rows();
        let values = self.spec.values.evaluate(&outer)?;
        let Ok(mut reservation) = self.statement.account.reserve(self.chunk_bytes) else {
            return Ok(None);
        };
        let source = &self.source;
        let found = source
            .table
            .lookup(&source.snapshot, self.spec.key, &values, self.limit)
            .map_err(table_error)?;
        let ByKey::Found(found) = found else {
            return Ok(None);
        };
        let bytes = self.chunk_bytes + found.numbers.len() as u64 * PAIR_BYTES;
        if reservation.try_resize(bytes).is_err() {
            return Ok(None);
        }
        self.reservation = Some(reservation);
        self.lookups.add(count);
        let searched = Searched::for_each(count, self.is_unique);
        let reads = searched.reads(found.numbers.len());
        self.statement.report.add_reads(reads);
        // A lookup that finds nothing costs as well.
        let cost = found.numbers.len().max(count);
        self.limit = self.limit.saturating_sub(cost);
        let chunk = Chunk::new(&self.spec, outer, found)?;
        timer.done();
        Ok(Some(chunk))
    }

    /// Leaves the rest of the outer side to the stock hash join.
    fn go_over(&self, schema: SchemaRef, rest: Rest) -> Result<SendableRecordBatchStream> {
        let outer = Arc::new(Replay::new(schema, rest));
        let inner = match self.spec.outer {
            JoinSide::Left => self.stock.right(),
            _ => self.stock.left(),
        };
        let (inner, context) = (Arc::clone(inner), Arc::clone(&self.context));
        join_all(&self.stock, self.spec.outer, outer, inner, context)
    }
}
