//! The left side of a join: read into batches as long as it is small, otherwise into partitions,
//! and those into tables.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{JoinSide, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;
use mayfly_space::{Account, Admission};
use mayfly_table::rows::{
    JoinTable, JoinTables, SideOptions, SideRows, SideWriter, StopFlag, TableMemory,
};

use super::collected::{Collected, Collector};
use super::columns::rows_without_null;
use super::dynamic_filter::Bounds;
use super::kinds::Roles;
use super::report::Counts;
use super::shared_hashes::are_shared;
use super::spec::Spec;
use super::stock::{StockInputs, StockJoin};
use super::tables::{AbsentPart, TableLimits, Tables};
use super::wanted_keys::{KeysPromise, LeftKeys, WantedKeys, telling};
use crate::error::rows_error;
use crate::lock::lock;
use crate::tasks::join_all;
use crate::time_slice::TimeSlice;

/// The left side, when all of it was read.
#[derive(Clone)]
pub(super) enum Left {
    /// It is small: the stock join does the rest.
    Small(Arc<StockJoin>),
    Paged(Arc<Built>),
}

/// A left side in pages, with tables over them.
pub(super) struct Built {
    pub(super) left: Arc<SideRows>,
    pub(super) tables: Arc<Tables>,
    /// Whether some rows come later than in their turn.
    pub(super) is_late: bool,
    /// What the right side is executed with.
    pub(super) right_context: Arc<TaskContext>,
    _admission: Option<Admission>,
}

/// What the left side is built with.
pub(super) struct Builder {
    pub(super) spec: Arc<Spec>,
    pub(super) left: Arc<dyn ExecutionPlan>,
    pub(super) right: Arc<dyn ExecutionPlan>,
    /// The account of the join, and those of its two sides.
    pub(super) account: Account,
    pub(super) accounts: [Account; 2],
    /// What all joins may claim together.
    pub(super) claim_max_bytes: u64,
    /// Operators on the right side that hold rows while it runs.
    pub(super) memory_users: u64,
    /// What one of them is told.
    pub(super) promise: Option<Arc<KeysPromise>>,
    pub(super) workers: usize,
    pub(super) stop: StopFlag,
    pub(super) counts: Counts,
}

impl Builder {
    /// Reads the left side. If it is not small, builds tables over as many of its partitions as
    /// there is memory for.
    pub(super) async fn build(self, context: Arc<TaskContext>) -> Result<Left> {
        let [left_account, _] = &self.accounts;
        let space = left_account.space();
        let page_class = space.default_page_class();
        let options = SideOptions {
            keeps_filter: true,
            ..SideOptions::for_budget(space.memory_bytes(), page_class, self.workers)
        };
        let layout = self.spec.left.layout.clone();
        let side = SideRows::new(layout, left_account, options, self.stop.clone());
        let (collected, wanted) = self.fill(&side, &context).await?;
        let context = match (&self.promise, wanted) {
            (Some(promise), Some(wanted)) => telling(&context, promise, wanted),
            _ => context,
        };
        if let Some(collected) = collected {
            self.counts.stock_joins.add(1);
            let inputs = StockInputs {
                stock: &self.spec.stock,
                dynamic_filter: self.spec.dynamic_filter.as_ref(),
                right: Arc::clone(&self.right),
                context,
                probe_rows: self.counts.probe_rows.clone(),
            };
            let join = StockJoin::start(collected, inputs).await?;
            return Ok(Left::Small(Arc::new(join)));
        }
        self.build_paged(side, context).await
    }

    async fn build_paged(
        &self,
        side: Arc<SideRows>,
        right_context: Arc<TaskContext>,
    ) -> Result<Left> {
        let [left_account, right_account] = &self.accounts;
        let partner = || {
            let layout = self.spec.right.layout.clone();
            SideRows::partner_of(&side, layout, right_account).map_err(rows_error)
        };
        // What its partitions need is admitted before tables take the memory that there is.
        let mut right = match side.partition_bits() > 0 {
            true => Some(partner()?),
            false => None,
        };
        let limits = TableLimits {
            share: side.space().share(),
            all_bytes: self.claim_max_bytes,
            bytes_max: self.claim_max_bytes / (1 + self.memory_users),
        };
        let (tables, absent) = self.build_tables(&side, limits.bytes()).await?;
        let mut admission = None;
        if absent.is_empty() && self.spec.ordering.is_some() {
            right = None;
        } else if right.is_none() && !absent.is_empty() {
            admission = side.admit().map_err(rows_error)?;
            right = Some(partner()?);
        }
        self.counts.partitions_deferred.add(absent.len());
        let is_late = !absent.is_empty();
        // Rows that must come in order are sorted from the first one on or not at all.
        let may_give_up = right.is_some();
        let counts = self.counts.clone();
        let tables = Tables::new(tables, absent, right, limits, may_give_up, counts);
        let tables = Arc::new(tables);
        left_account.may_take_from(Arc::downgrade(&tables) as _);
        Ok(Left::Paged(Arc::new(Built {
            tables,
            left: side,
            is_late,
            right_context,
            _admission: admission,
        })))
    }

    /// Reads all rows; returns them if they are few, or else has them in pages. With the keys that
    /// an operator below the right side is told.
    async fn fill(
        &self,
        side: &Arc<SideRows>,
        context: &Arc<TaskContext>,
    ) -> Result<(Option<Collected>, Option<WantedKeys>)> {
        let options = &context.session_config().options().execution;
        let collector = Arc::new(Collector::new(&self.account, options)?);
        let left_keys = match &self.promise {
            Some(promise) => {
                let schema = self.left.schema();
                let keys = LeftKeys::new(promise, &schema, &self.account).await?;
                keys.map(Arc::new)
            }
            None => None,
        };
        let mut tasks = Vec::new();
        for partition in 0..self.left.output_partitioning().partition_count() {
            let input = self.left.execute(partition, Arc::clone(context))?;
            let writer = SideWriter::new(side, partition);
            let filler = Filler::new(&self.spec, writer, left_keys.clone(), &self.counts)?;
            let collector = Arc::clone(&collector);
            tasks.push(SpawnedTask::spawn(filler.consume(input, collector)));
        }
        let mut found = join_all(tasks).await?;
        let mut collected = collector.finish();
        let spec = &self.spec;
        let keys = spec.left.keys();
        let is_shared = match &collected {
            Some(collected) => are_shared(&collected.batches, keys)?,
            None => false,
        };
        if let Some(collected) = collected.take_if(|_| is_shared) {
            let filler = Filler::new(spec, SideWriter::new(side, 0), None, &self.counts)?;
            found.push(filler.write(collected).await?);
        }
        let mut all: Option<Bounds> = None;
        for bounds in found.into_iter().flatten() {
            match &mut all {
                Some(all) => all.merge(bounds)?,
                None => all = Some(bounds),
            }
        }
        if let (Some(mut bounds), Some(filter), None) = (all, &spec.dynamic_filter, &collected) {
            let keeps_null = spec.is_null_aware || spec.null_keys_match();
            bounds.fulfil(filter, spec.right.keys(), &self.right.schema(), keeps_null)?;
        }
        // The tasks that shared them have ended.
        let wanted = match left_keys.and_then(Arc::into_inner) {
            Some(left_keys) => left_keys.finish().await,
            None => None,
        };
        Ok((collected, wanted))
    }

    async fn build_tables(
        &self,
        side: &Arc<SideRows>,
        bytes_max: u64,
    ) -> Result<(JoinTables, Vec<AbsentPart>)> {
        let tables = Arc::new(TableBuilder {
            left: Arc::clone(side),
            keeps_marks: Roles::new(self.spec.kind, JoinSide::Left).marks_table(),
            next: AtomicUsize::new(0),
            is_short: AtomicBool::new(false),
            bytes_max,
            bytes: AtomicU64::new(0),
            built: Mutex::new((JoinTables::new(side), Vec::new())),
        });
        let workers = self.workers.min(1 << side.partition_bits());
        let tasks = (0..workers).map(|_| {
            let tables = Arc::clone(&tables);
            SpawnedTask::spawn(async move {
                let mut slice = TimeSlice::begin();
                while tables.build_next()? {
                    slice.share().await;
                }
                Ok(())
            })
        });
        join_all(tasks.collect()).await?;
        let tables = Arc::into_inner(tables).expect("all tasks have ended");
        let (mut tables, mut absent) = { tables.built }
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        absent.sort_unstable_by_key(|(partition, _)| *partition);
        tables.address_directly().map_err(rows_error)?;
        Ok((tables, absent))
    }
}

/// Builds tables, one partition at a time.
struct TableBuilder {
    left: Arc<SideRows>,
    keeps_marks: bool,
    next: AtomicUsize,
    /// Whether a partition was met that there was no memory for. Those behind it are further from
    /// their turn.
    is_short: AtomicBool,
    /// What the tables may pin, and what they have or will have.
    bytes_max: u64,
    bytes: AtomicU64,
    built: Mutex<(JoinTables, Vec<AbsentPart>)>,
}

impl TableBuilder {
    /// Builds the table of the next partition; false at the end.
    fn build_next(&self) -> Result<bool> {
        let partition = self.next.fetch_add(1, Ordering::Relaxed);
        if partition >= 1 << self.left.partition_bits() {
            return Ok(false);
        }
        let part = self.left.take_part(partition).map_err(rows_error)?;
        if part.is_empty() {
            return Ok(true);
        }
        let bytes = part.table_bytes(self.keeps_marks);
        let all_bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let built = match all_bytes > self.bytes_max || self.is_short.load(Ordering::Relaxed) {
            true => Err(part),
            false => {
                let free = TableMemory::Free;
                JoinTable::build(part, self.keeps_marks, free).map_err(rows_error)?
            }
        };
        let mut all = lock(&self.built);
        let (tables, absent) = &mut *all;
        match built {
            Ok(table) => tables.set_table(partition, table),
            Err(part) => {
                self.is_short.store(true, Ordering::Relaxed);
                tables.set_absent(partition, &part);
                absent.push((partition, part));
            }
        }
        Ok(true)
    }
}

/// One task that reads a partition of the left input.
struct Filler {
    spec: Arc<Spec>,
    writer: SideWriter,
    /// Whether rows that can have no partner are returned all the same.
    keeps_unmatchable: bool,
    bounds: Option<Bounds>,
    left_keys: Option<Arc<LeftKeys>>,
    counts: Counts,
}

impl Filler {
    fn new(
        spec: &Arc<Spec>,
        writer: SideWriter,
        left_keys: Option<Arc<LeftKeys>>,
        counts: &Counts,
    ) -> Result<Filler> {
        let of_left = Roles::new(spec.kind, JoinSide::Left).of_table;
        let bounds = match spec.dynamic_filter {
            Some(_) => Some(Bounds::new(spec.left.key_types())?),
            None => None,
        };
        Ok(Filler {
            keeps_unmatchable: of_left.is_late() || spec.null_keys_match(),
            spec: Arc::clone(spec),
            writer,
            bounds,
            left_keys,
            counts: counts.clone(),
        })
    }

    async fn consume(
        mut self,
        mut input: SendableRecordBatchStream,
        collector: Arc<Collector>,
    ) -> Result<Option<Bounds>> {
        let mut slice = TimeSlice::begin();
        while let Some(batch) = input.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                self.counts.build_rows.add(batch.num_rows());
                if let Some(left_keys) = &self.left_keys {
                    left_keys.add(&batch)?;
                }
                for batch in collector.keep(batch)? {
                    self.push(&batch)?;
                    slice.share().await;
                }
            }
            slice.share().await;
        }
        Ok(self.bounds)
    }

    /// Writes what was collected, which is counted already.
    async fn write(mut self, collected: Collected) -> Result<Option<Bounds>> {
        let Collected { batches, grant, .. } = collected;
        // The pages take its place.
        drop(grant);
        let mut slice = TimeSlice::begin();
        for batch in batches {
            self.push(&batch)?;
            slice.share().await;
        }
        Ok(self.bounds)
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let compute = self.counts.compute.clone();
        let _timer = compute.timer();
        let side = &self.spec.left;
        let rows = batch.num_rows();
        let keys = side.evaluate_keys(batch)?;
        if let Some(bounds) = &mut self.bounds {
            bounds.add(&keys)?;
        }
        let payload = side.payload(&side.pick(batch))?;
        let matchable = match self.keeps_unmatchable {
            true => None,
            false => rows_without_null(&keys, rows),
        };
        match matchable {
            Some(picked) => { &mut self.writer }.push_picked(rows, &keys, &payload, &picked),
            None => self.writer.push(rows, &keys, &payload),
        }
        .map_err(rows_error)
    }
}
