//! One execution of a join: the left side that is read once, and a stream for each partition of the
//! right side.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::{DataFusionError, JoinSide, Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;
use futures::future::{BoxFuture, FutureExt, Shared};
use mayfly_space::{Account, AccountOptions};
use mayfly_table::rows::{JoinKeys, ProbeScratch, SideWriter};

use super::build::{Builder, Built, Left};
use super::columns::rows_without_null;
use super::kinds::Roles;
use super::prober::{Prober, Progress};
use super::report::{Counts, Usage};
use super::spec::Spec;
use super::tables::Snapshot;
use super::wanted_keys::KeysPromise;
use crate::context::StatementContext;
use crate::error::rows_error;
use crate::report::Why;
use crate::shared_run::Unfinished;
use crate::time_slice::TimeSlice;

/// A join claims at most this part of the budget beyond what was admitted for it ...
const CLAIM_SHARE: (u64, u64) = (1, 2);
/// ... and leaves one part in so many of it free: small statements of others find memory beside it.
const HEADROOM_PER_MEMORY: u64 = 4;

/// Rows of tables in a batch of results take at most this ...
const RESULT_BYTES_MAX: u64 = 4 << 20;
/// ... and at most one part in this many of the budget ...
const RESULTS_PER_MEMORY: u64 = 64;
/// ... unless that is less than this.
const RESULT_BYTES_MIN: u64 = 64 << 10;

/// Bytes of rows of tables in a batch of results, with so many bytes of memory.
pub(crate) fn result_bytes(memory_bytes: u64) -> usize {
    let share = memory_bytes / RESULTS_PER_MEMORY;
    share.clamp(RESULT_BYTES_MIN, RESULT_BYTES_MAX) as usize
}

/// What an execution needs of the plan node.
pub(super) struct JoinInputs<'a> {
    pub(super) id: u64,
    pub(super) spec: &'a Arc<Spec>,
    pub(super) left: &'a Arc<dyn ExecutionPlan>,
    pub(super) right: &'a Arc<dyn ExecutionPlan>,
    pub(super) metrics: &'a ExecutionPlanMetricsSet,
    /// Operators on the right side that hold rows while it runs.
    pub(super) memory_users: u64,
    /// What an operator there is told.
    pub(super) promise: Option<&'a Arc<KeysPromise>>,
}

type Building = Shared<BoxFuture<'static, Result<Left, Arc<DataFusionError>>>>;

/// What the streams of one execution share.
pub(super) struct Run {
    pub(super) spec: Arc<Spec>,
    right: Arc<dyn ExecutionPlan>,
    building: Building,
    /// Streams that have not seen the end of their partition of the right side.
    pub(super) unfinished: Unfinished,
    /// Whether the right side has any row, and one whose key is NULL.
    right_has_rows: AtomicBool,
    right_has_null: AtomicBool,
    pub(super) workers: usize,
    pub(super) limits: (usize, usize),
    usage: Usage,
}

impl Run {
    pub(super) fn start(join: JoinInputs<'_>, context: &Arc<TaskContext>) -> Result<Arc<Run>> {
        let statement = StatementContext::of(context)?;
        let memory_bytes = statement.account.space().memory_bytes();
        let (part, whole) = CLAIM_SHARE;
        let claim_max_bytes = memory_bytes / whole * part;
        let options = AccountOptions {
            claim_max_bytes: Some(claim_max_bytes),
            headroom_bytes: memory_bytes / HEADROOM_PER_MEMORY,
            ..AccountOptions::default()
        };
        let account = statement.table_account(Why::Join.text(), 1, options);
        let side = |name| -> Account { account.child(name, AccountOptions::default()) };
        let counts = Counts::new(join.metrics);
        let outputs = join.right.output_partitioning().partition_count();
        let workers = outputs.max(join.left.output_partitioning().partition_count());
        let builder = Builder {
            spec: Arc::clone(join.spec),
            left: Arc::clone(join.left),
            right: Arc::clone(join.right),
            account: side("collected"),
            accounts: [side("left"), side("right")],
            claim_max_bytes,
            memory_users: join.memory_users,
            promise: join.promise.cloned(),
            workers,
            stop: statement.stop.clone(),
            counts: counts.clone(),
        };
        let building = builder.build(Arc::clone(context));
        Ok(Arc::new(Run {
            spec: Arc::clone(join.spec),
            right: Arc::clone(join.right),
            building: building
                .map(|built| built.map_err(Arc::new))
                .boxed()
                .shared(),
            unfinished: Unfinished::new(outputs),
            right_has_rows: AtomicBool::new(false),
            right_has_null: AtomicBool::new(false),
            workers,
            limits: (
                context.session_config().batch_size(),
                result_bytes(memory_bytes),
            ),
            usage: Usage {
                id: join.id,
                account,
                context: statement,
                counts,
            },
        }))
    }

    /// The left side, read when it is asked for the first time.
    pub(super) async fn left(&self) -> Result<Left> {
        let built = self.building.clone().await;
        built.map_err(DataFusionError::Shared)
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.usage.counts
    }

    /// Begins to read a partition of the right side; `None` if the result is known to be empty.
    pub(super) fn probe(&self, built: &Arc<Built>, partition: usize) -> Result<Option<Probing>> {
        let is_empty = built.left.row_count() == 0;
        if is_empty && self.spec.kind.empty_build_side_produces_empty_result() {
            return Ok(None);
        }
        let roles = Roles::new(self.spec.kind, JoinSide::Left);
        Ok(Some(Probing {
            built: Arc::clone(built),
            snapshot: None,
            right: self
                .right
                .execute(partition, Arc::clone(&built.right_context))?,
            keys: JoinKeys::new(&built.left),
            scratch: ProbeScratch::default(),
            prober: Prober::new(&self.spec, roles, self.limits),
            partition,
            writer: None,
            waiting: VecDeque::new(),
            slice: TimeSlice::begin(),
        }))
    }

    /// Whether nothing is returned of a `NOT IN`, because the right side has a NULL.
    pub(super) fn is_void(&self) -> bool {
        self.spec.is_null_aware && self.right_has_null.load(Ordering::Acquire)
    }

    /// Whether a row of a `NOT IN` whose key is NULL is not returned.
    pub(super) fn drops_null_keys(&self) -> bool {
        self.spec.is_null_aware && self.right_has_rows.load(Ordering::Acquire)
    }
}

/// One partition of the right side on its way past the tables.
pub(super) struct Probing {
    built: Arc<Built>,
    /// While it deals with a batch.
    snapshot: Option<Snapshot>,
    right: SendableRecordBatchStream,
    keys: JoinKeys,
    scratch: ProbeScratch,
    prober: Prober,
    partition: usize,
    /// For rows whose partners have no table.
    writer: Option<SideWriter>,
    /// Parts of a batch whose keys are too long to be looked up together.
    waiting: VecDeque<RecordBatch>,
    slice: TimeSlice,
}

impl Probing {
    /// The next results; `None` at the end of the partition.
    pub(super) async fn next(&mut self, run: &Run) -> Result<Option<RecordBatch>> {
        loop {
            let progress = match &self.snapshot {
                Some(snapshot) => {
                    let _timer = run.counts().compute.timer();
                    self.prober.next(&snapshot.tables)?
                }
                None => Progress::Done,
            };
            match progress {
                Progress::Results(results) => return Ok(Some(results)),
                Progress::None => self.slice.share().await,
                Progress::Done => {
                    self.snapshot = None;
                    let next = match self.waiting.pop_front() {
                        Some(part) => Some(Ok(part)),
                        None => self.right.next().await,
                    };
                    let Some(batch) = next else {
                        return Ok(None);
                    };
                    let batch = batch?;
                    if batch.num_rows() > 0 {
                        self.begin(run, batch)?;
                    }
                    self.slice.share().await;
                }
            }
        }
    }

    fn begin(&mut self, run: &Run, batch: RecordBatch) -> Result<()> {
        let _timer = run.counts().compute.timer();
        let spec = &run.spec;
        let rows = batch.num_rows();
        let keys = spec.right.evaluate_keys(&batch)?;
        let cuts = self.keys.cut(rows, &keys).map_err(rows_error)?;
        if cuts.len() > 1 {
            let parts = cuts.iter().map(|rows| batch.slice(rows.start, rows.len()));
            self.waiting.extend(parts);
            return Ok(());
        }
        let counts = run.counts();
        counts.probe_rows.add(rows);
        let matchable = match spec.null_keys_match() {
            true => None,
            false => rows_without_null(&keys, rows),
        };
        if spec.is_null_aware {
            run.right_has_rows.store(true, Ordering::Release);
            if matchable.is_some() {
                run.right_has_null.store(true, Ordering::Release);
            }
            if run.is_void() {
                return Ok(());
            }
        }
        let Some(snapshot) = self.built.tables.snapshot() else {
            return internal_err!("the tables are there until the last stream has ended");
        };
        let Snapshot { tables, partner } = self.snapshot.insert(snapshot);
        let looked = &mut self.prober.looked;
        if tables.find_direct(&keys, looked, &mut self.scratch) {
            self.prober.begin(spec.right.pick(&batch), |_| false);
            return Ok(());
        }
        self.keys.encode(rows, &keys).map_err(rows_error)?;
        let filter = self.built.left.filter();
        let matchable = matchable.as_deref();
        tables.find(&self.keys, matchable, filter, looked, &mut self.scratch);
        self.keys.shrink();
        counts.rows_dropped.add(looked.dropped as usize);
        let columns = spec.right.pick(&batch);
        if let Some(partner) = partner.as_ref().filter(|_| !looked.absent.is_empty()) {
            let writer = { &mut self.writer }
                .get_or_insert_with(|| SideWriter::new(partner, self.partition));
            let payload = spec.right.payload(&columns)?;
            writer
                .push_picked(rows, &keys, &payload, &looked.absent)
                .map_err(rows_error)?;
        }
        self.prober.begin(columns, |_| false);
        Ok(())
    }
}
