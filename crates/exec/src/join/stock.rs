//! DataFusion's hash join over a left side that is small, and its memory.
//!
//! The stock node is kept without inputs in the plan. An execution whose left side was collected
//! gives it those batches as its left input, in one partition, and the right input of ours: each
//! partition of the right side is one of the output, as with ours.
//!
//! **Memory.** All that the stock join can reserve was granted before it begins ([`Collected`]);
//! its memory pool draws on that grant, so it does not fail where others took the rest meanwhile.
//! Its right input runs with the pool of the statement.
//!
//! **No stream waits for another.** A stock join with a dynamic filter lets its streams wait until
//! each of them was polled, and nobody promises that. So each is polled once when the left side is
//! known, while a gate keeps them from reading the right side.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::DynamicFilterPhysicalExpr;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::execution_plan::ReplaceChildrenOptions;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::metrics::Count;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, EmptyRecordBatchStream, ExecutionPlan, ExecutionPlanProperties,
};
use futures::{StreamExt, TryStreamExt, future, stream};
use mayfly_space::Reservation;

use super::collected::Collected;
use crate::error::exhausted;
use crate::lock::lock;
use crate::paced;
use crate::plan_node::pass_through_node;
use crate::replay::{Replay, Rest};

/// A stock join without inputs.
pub(super) fn without_inputs(stock: &HashJoinExec) -> Result<HashJoinExec> {
    let none = |schema: SchemaRef| Arc::new(EmptyExec::new(schema)) as Arc<dyn ExecutionPlan>;
    let inputs = vec![none(stock.left().schema()), none(stock.right().schema())];
    let stock = stock.builder().reset_state().with_new_children(inputs)?;
    stock
        .with_partition_mode(PartitionMode::CollectLeft)
        .build()
}

/// The streams of one execution of a stock join.
pub(super) struct StockJoin {
    /// Of each output partition, until it is asked for.
    streams: Mutex<Vec<Option<SendableRecordBatchStream>>>,
}

/// What a stock join is run with.
pub(super) struct StockInputs<'a> {
    pub(super) stock: &'a HashJoinExec,
    /// The filter that scans on the right side wait for.
    pub(super) dynamic_filter: Option<&'a PhysicalExprRef>,
    pub(super) right: Arc<dyn ExecutionPlan>,
    pub(super) context: Arc<TaskContext>,
    pub(super) probe_rows: Count,
}

impl StockJoin {
    /// Begins a join and builds its table.
    pub(super) async fn start(left: Collected, inputs: StockInputs<'_>) -> Result<StockJoin> {
        let partitions = inputs.right.output_partitioning().partition_count();
        let StockInputs {
            stock,
            dynamic_filter,
            right,
            context,
            probe_rows,
        } = inputs;
        let pool = Arc::new(GrantedPool::new(left.grant));
        let runtime = RuntimeEnv {
            memory_pool: Arc::clone(&pool) as Arc<dyn MemoryPool>,
            ..RuntimeEnv::clone(&context.runtime_env())
        };
        let own_context = TaskContext::new(
            context.task_id(),
            context.session_id(),
            context.session_config().clone(),
            Default::default(),
            Default::default(),
            Default::default(),
            Default::default(),
            Arc::new(runtime),
        );
        let own_context = Arc::new(own_context);
        let gate = Arc::new(AtomicBool::new(false));
        let left_schema = stock.left().schema();
        let left_rows = Rest {
            read: left.batches.into(),
            stream: Box::pin(EmptyRecordBatchStream::new(Arc::clone(&left_schema))),
        };
        let right = ProbeSide {
            input: paced::right_of(stock, right),
            context,
            probe_rows,
            gate: Arc::clone(&gate),
        };
        let join = { stock.builder().reset_state().recompute_properties() }
            .with_new_children(vec![
                Arc::new(Replay::new(left_schema, left_rows)),
                Arc::new(right),
            ])?
            .build()?;
        let join = match dynamic_filter {
            Some(filter) => join.with_dynamic_filter_expr(as_dynamic(filter)?)?,
            None => join,
        };
        let streams = (0..partitions).map(|partition| {
            let stream = join.execute(partition, Arc::clone(&own_context))?;
            Ok(Some(stream))
        });
        let mut streams = streams.collect::<Result<Vec<_>>>()?;
        poll_each(&mut streams).await?;
        gate.store(true, Ordering::Release);
        pool.give_surplus_back();
        Ok(StockJoin {
            streams: Mutex::new(streams),
        })
    }

    /// The stream of an output partition; once.
    pub(super) fn take(&self, partition: usize) -> Result<SendableRecordBatchStream> {
        let mut streams = lock(&self.streams);
        let stream = streams.get_mut(partition).and_then(Option::take);
        stream.ok_or_else(|| internal_datafusion_err!("an output partition is executed once"))
    }
}

fn as_dynamic(filter: &PhysicalExprRef) -> Result<Arc<DynamicFilterPhysicalExpr>> {
    let filter = Arc::downcast::<DynamicFilterPhysicalExpr>(Arc::clone(filter) as _);
    filter.map_err(|_| internal_datafusion_err!("a join promises a dynamic filter"))
}

/// Polls each stream once: all of them have seen the left side then, and wait at the gate.
async fn poll_each(streams: &mut [Option<SendableRecordBatchStream>]) -> Result<()> {
    future::poll_fn(|context| {
        for stream in streams.iter_mut().flatten() {
            match stream.poll_next_unpin(context) {
                Poll::Pending => {}
                Poll::Ready(None) => {
                    // Its result is known to be empty.
                    *stream = Box::pin(EmptyRecordBatchStream::new(stream.schema()));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(Some(Ok(batch))) => {
                    let schema = stream.schema();
                    let rest =
                        std::mem::replace(stream, Box::pin(EmptyRecordBatchStream::new(schema)));
                    let schema = rest.schema();
                    let first = stream::iter([Ok(batch)]);
                    *stream = Box::pin(RecordBatchStreamAdapter::new(schema, first.chain(rest)));
                }
            }
        }
        Poll::Ready(Ok(()))
    })
    .await
}

/// The right side of a stock join: an input that runs with the memory pool of the statement.
struct ProbeSide {
    input: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    probe_rows: Count,
    /// Whether it may be read.
    gate: Arc<AtomicBool>,
}

impl ProbeSide {
    fn with_input(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _options: &ReplaceChildrenOptions,
    ) -> Result<ProbeSide> {
        Ok(ProbeSide {
            input,
            context: Arc::clone(&self.context),
            probe_rows: self.probe_rows.clone(),
            gate: Arc::clone(&self.gate),
        })
    }
}

impl fmt::Debug for ProbeSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProbeSide").finish_non_exhaustive()
    }
}

impl DisplayAs for ProbeSide {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProbeSide")
    }
}

impl ExecutionPlan for ProbeSide {
    pass_through_node!("ProbeSide");

    fn execute(
        &self,
        partition: usize,
        _own: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let mut rows = self.input.execute(partition, Arc::clone(&self.context))?;
        let (gate, probe_rows) = (Arc::clone(&self.gate), self.probe_rows.clone());
        let schema = self.schema();
        let gated = stream::poll_fn(move |context| match gate.load(Ordering::Acquire) {
            true => rows.poll_next_unpin(context),
            // Whoever polled does so without being woken; see `poll_each`.
            false => Poll::Pending,
        });
        let counted = gated.inspect_ok(move |batch| {
            probe_rows.add(batch.num_rows());
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, counted)))
    }
}

/// A memory pool over what was granted beforehand.
struct GrantedPool {
    state: Mutex<Granted>,
}

struct Granted {
    grant: Reservation,
    used_bytes: u64,
}

impl GrantedPool {
    fn new(grant: Reservation) -> GrantedPool {
        GrantedPool {
            state: Mutex::new(Granted {
                grant,
                used_bytes: 0,
            }),
        }
    }

    /// Gives back what was not taken: nothing more is asked for.
    fn give_surplus_back(&self) {
        let mut state = self.state();
        let used_bytes = state.used_bytes;
        state.grant.shrink(used_bytes);
    }

    fn state(&self) -> MutexGuard<'_, Granted> {
        lock(&self.state)
    }
}

impl MemoryPool for GrantedPool {
    fn name(&self) -> &str {
        "granted"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        self.state().used_bytes += additional as u64;
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        let mut state = self.state();
        state.used_bytes = state.used_bytes.saturating_sub(shrink as u64);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut state = self.state();
        let wanted = state.used_bytes + additional as u64;
        if wanted > state.grant.bytes() {
            // More than it can need by our count; what there is, it gets.
            let grown = state.grant.try_resize(wanted);
            grown.map_err(|error| exhausted(reservation.consumer().name(), &error))?;
        }
        state.used_bytes = wanted;
        Ok(())
    }

    fn reserved(&self) -> usize {
        usize::try_from(self.state().used_bytes).unwrap_or(usize::MAX)
    }

    fn memory_limit(&self) -> MemoryLimit {
        let bytes = usize::try_from(self.state().grant.bytes());
        bytes.map_or(MemoryLimit::Infinite, MemoryLimit::Finite)
    }
}

impl fmt::Debug for GrantedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrantedPool").finish_non_exhaustive()
    }
}

impl fmt::Display for GrantedPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(used: {})", self.name(), self.state().used_bytes)
    }
}
