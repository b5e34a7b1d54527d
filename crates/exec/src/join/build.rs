//! The left side of a join: read into partitions, and those into tables.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{JoinSide, NullEquality, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures::StreamExt;
use mayfly_space::{Account, Admission};
use mayfly_table::rows::{
    JoinPart, JoinTable, JoinTables, SideOptions, SideRows, SideWriter, StopFlag,
};

use super::columns::rows_without_null;
use super::dynamic_filter::Bounds;
use super::kinds::Roles;
use super::report::Counts;
use super::spec::Spec;
use crate::error::rows_error;
use crate::tasks::join_all;
use crate::time_slice::TimeSlice;

/// The left side, when all of it was read.
pub(super) struct Built {
    pub(super) left: Arc<SideRows>,
    /// Taken by the stream that ends last.
    pub(super) tables: Mutex<Option<Arc<JoinTables>>>,
    /// Partitions without a table.
    pub(super) absent: Mutex<Vec<(usize, JoinPart)>>,
    /// Where rows of the right side go whose partners have no table.
    pub(super) partner: Option<Arc<SideRows>>,
    _admission: Option<Admission>,
}

impl Built {
    pub(super) fn tables(&self) -> Option<Arc<JoinTables>> {
        let tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        tables.clone()
    }
}

/// What the left side is built with.
pub(super) struct Builder {
    pub(super) spec: Arc<Spec>,
    pub(super) left: Arc<dyn ExecutionPlan>,
    pub(super) right: Arc<dyn ExecutionPlan>,
    /// The accounts of the two sides.
    pub(super) accounts: [Account; 2],
    pub(super) workers: usize,
    pub(super) stop: StopFlag,
    pub(super) counts: Counts,
}

impl Builder {
    /// Reads the left side and builds tables over as many of its partitions as there is memory for.
    pub(super) async fn build(self, context: Arc<TaskContext>) -> Result<Arc<Built>> {
        let [left_account, right_account] = &self.accounts;
        let space = left_account.space();
        let page_class = space.default_page_class();
        let options = SideOptions {
            keeps_filter: true,
            ..SideOptions::for_budget(space.memory_bytes(), page_class, self.workers)
        };
        let layout = self.spec.left.layout.clone();
        let side = SideRows::new(layout, left_account, options, self.stop.clone());
        self.fill(&side, &context).await?;

        let partner = || {
            let layout = self.spec.right.layout.clone();
            SideRows::partner_of(&side, layout, right_account).map_err(rows_error)
        };
        // What its partitions need is admitted before tables take the memory that there is.
        let mut right = match side.partition_bits() > 0 {
            true => Some(partner()?),
            false => None,
        };
        let (tables, absent) = self.build_tables(&side).await?;
        let mut admission = None;
        if absent.is_empty() {
            right = None;
        } else if right.is_none() {
            admission = side.admit().map_err(rows_error)?;
            right = Some(partner()?);
        }
        self.counts.partitions_on_disk.add(absent.len());
        Ok(Arc::new(Built {
            left: side,
            tables: Mutex::new(Some(Arc::new(tables))),
            absent: Mutex::new(absent),
            partner: right,
            _admission: admission,
        }))
    }

    async fn fill(&self, side: &Arc<SideRows>, context: &Arc<TaskContext>) -> Result<()> {
        let mut tasks = Vec::new();
        for partition in 0..self.left.output_partitioning().partition_count() {
            let input = self.left.execute(partition, Arc::clone(context))?;
            let filler = Filler::new(&self.spec, side.writer(partition), &self.counts)?;
            tasks.push(SpawnedTask::spawn(filler.consume(input)));
        }
        let mut all: Option<Bounds> = None;
        for bounds in join_all(tasks).await?.into_iter().flatten() {
            match &mut all {
                Some(all) => all.merge(bounds)?,
                None => all = Some(bounds),
            }
        }
        match all {
            Some(mut bounds) => bounds.fulfil(&self.spec, &self.right.schema()),
            None => Ok(()),
        }
    }

    async fn build_tables(
        &self,
        side: &Arc<SideRows>,
    ) -> Result<(JoinTables, Vec<(usize, JoinPart)>)> {
        let tables = Arc::new(TableBuilder {
            left: Arc::clone(side),
            keeps_marks: Roles::new(self.spec.kind, JoinSide::Left).marks_table(),
            next: AtomicUsize::new(0),
            is_short: AtomicBool::new(false),
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
    built: Mutex<(JoinTables, Vec<(usize, JoinPart)>)>,
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
        let built = match self.is_short.load(Ordering::Relaxed) {
            true => Err(part),
            false => JoinTable::build(part, self.keeps_marks).map_err(rows_error)?,
        };
        let mut all = self.built.lock().unwrap_or_else(PoisonError::into_inner);
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
    counts: Counts,
}

impl Filler {
    fn new(spec: &Arc<Spec>, writer: SideWriter, counts: &Counts) -> Result<Filler> {
        let of_left = Roles::new(spec.kind, JoinSide::Left).of_table;
        let bounds = match spec.dynamic_filter {
            Some(_) => Some(Bounds::new(spec.left.key_types())?),
            None => None,
        };
        Ok(Filler {
            keeps_unmatchable: of_left.is_late()
                || spec.null_equality == NullEquality::NullEqualsNull,
            spec: Arc::clone(spec),
            writer,
            bounds,
            counts: counts.clone(),
        })
    }

    async fn consume(mut self, mut input: SendableRecordBatchStream) -> Result<Option<Bounds>> {
        let mut slice = TimeSlice::begin();
        while let Some(batch) = input.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                self.push(&batch)?;
            }
            slice.share().await;
        }
        Ok(self.bounds)
    }

    fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let side = &self.spec.left;
        let rows = batch.num_rows();
        self.counts.build_rows.add(rows);
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
