//! One input partition of a window operator, from batch to batch.
//!
//! Owns: [`Run`]. Never: waits.
//!
//! ```text
//!   push: keys and arguments are computed, partitions and peers found, rows kept
//!   next: the rows that all functions can answer, as far as they lie in one chunk
//!   settle: rows that no function reads again are forgotten, the others become pages if many
//! ```
//!
//! Small partitions that ended are answered together, a batch of them at a time. Of one that goes
//! on, each function says how far it can answer; a running sum answers at once, an average over the
//! whole partition when that has ended.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion::common::{Result, internal_err};
use mayfly_space::{Account, AccountOptions, Admission, PageClass, Reservation};

use super::boundaries::Boundaries;
use super::frame::{Partition, View};
use super::function::{Arrival, Function, Ready, Span};
use super::functions::function_of;
use super::rows::{HELD_PAGES, PartitionRows, Rows};
use super::spec::WindowSpec;
use crate::batches::batch_of;
use crate::context::StatementContext;
use crate::error::space_error;
use crate::page_classes;
use crate::report::{LiveTempTable, Why};

/// Pages that are at hand while functions compute: those that are written, one for each cursor of a
/// function, and those that values are gathered from.
const PAGES_AT_HAND: usize = 16;

/// What one input partition needs to know.
pub(super) struct RunOptions {
    pub spec: Arc<WindowSpec>,
    /// Schema of the output.
    pub schema: SchemaRef,
    pub batch_rows: usize,
    pub temp_table_id: u64,
    /// The partitions that share one temporary table, this one included.
    pub partitions: usize,
}

/// One input partition.
pub(super) struct Run {
    // Fixed.
    options: RunOptions,
    context: Arc<StatementContext>,
    // State.
    partition_bounds: Boundaries,
    peer_bounds: Vec<Boundaries>,
    functions: Vec<Box<dyn Function>>,
    rows: PartitionRows,
    /// Those with rows that are not answered; the last one may go on.
    partitions: VecDeque<Partition>,
    last_peers: Vec<u64>,
    current: Option<Rows>,
    /// Rows before it are answered.
    answered: u64,
    /// Rows before it were counted if they had to be kept.
    counted: u64,
    /// What the temporary table costs, once there is one.
    live: Option<LiveTempTable>,
    // Resources; the admission goes last.
    state: Reservation,
    account: Account,
    _admission: Admission,
}

/// What a step has come to.
pub(super) enum Progress {
    /// Rows are answered.
    Batch(RecordBatch),
    /// There is more to do.
    Worked,
    /// No row can be answered before others arrive.
    Waits,
}

impl Run {
    /// Admits the minimum and begins.
    pub(super) fn new(context: &Arc<StatementContext>, options: RunOptions) -> Result<Self> {
        let spec = Arc::clone(&options.spec);
        let partitions = options.partitions;
        let options_of_account = AccountOptions {
            takes_memory: true,
            ..AccountOptions::default()
        };
        let account = context.table_account("window", partitions, options_of_account);
        let (page_class, admission) = admit(&account, partitions)?;
        let first_flag = spec.first_flag();
        let functions = spec.functions.iter();
        let functions = functions.map(|function| function_of(function, first_flag));
        let live = || {
            let account = account.clone();
            context
                .report
                .begin(options.temp_table_id, Why::Window, account)
        };
        Ok(Self {
            partition_bounds: Boundaries::new(spec.partition_by.clone()),
            peer_bounds: spec.orders.iter().cloned().map(Boundaries::new).collect(),
            functions: functions.collect::<Result<_>>()?,
            rows: PartitionRows::new(
                &account,
                Arc::clone(&spec.inner),
                page_class,
                context.stop.clone(),
            )?,
            partitions: VecDeque::new(),
            last_peers: vec![0; spec.orders.len()],
            current: None,
            answered: 0,
            counted: 0,
            live: spec.keeps_partitions().then(live),
            state: account.reserve(0).map_err(space_error)?,
            context: Arc::clone(context),
            options,
            account,
            _admission: admission,
        })
    }

    /// Takes a batch of the input.
    pub(super) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let count = batch.num_rows();
        if count == 0 {
            return Ok(());
        }
        let spec = &self.options.spec;
        let columns = spec.compute(batch)?;
        let begins = self.partition_bounds.find(&columns, count)?;
        let first = self.rows.end();
        let mut flags = Vec::with_capacity(self.peer_bounds.len());
        for (bounds, last) in self.peer_bounds.iter_mut().zip(&mut self.last_peers) {
            let peers = &bounds.find(&columns, count)? | &begins;
            if let Some(row) = peers.set_indices().last() {
                *last = first + row as u64;
            }
            flags.push(peers);
        }
        let batch = spec.enter(columns, flags, count)?;
        let arrival = Arrival {
            batch: &batch,
            partitions: &begins,
        };
        for function in &mut self.functions {
            function.arrive(&arrival)?;
        }
        for row in begins.set_indices() {
            self.begin_partition(first + row as u64);
        }
        self.rows.push(batch);
        Ok(())
    }

    fn begin_partition(&mut self, start: u64) {
        let last = self.partitions.back().copied();
        let ordinal = last.map_or(0, |last| last.ordinal + 1);
        self.end_partition(start);
        if last.is_some_and(|last| last.start < self.answered && self.answered == start) {
            // All its rows were answered before anybody knew that it ends there.
            for function in &mut self.functions {
                function.finish(start);
            }
            self.partitions.pop_back();
        }
        self.partitions.push_back(Partition {
            ordinal,
            start,
            end: None,
        });
    }

    fn end_partition(&mut self, end: u64) {
        if let Some(last) = self.partitions.back_mut() {
            last.end = Some(end);
        }
    }

    /// Ends the input.
    pub(super) fn end(&mut self) {
        self.end_partition(self.rows.end());
    }

    /// The next rows in their order.
    pub(super) fn next(&mut self) -> Result<Progress> {
        if self.answered == self.rows.end() {
            return Ok(Progress::Waits);
        }
        let current = match self.current.take() {
            Some(current) if self.answered < current.end() => current,
            _ => self.rows.around(self.answered)?,
        };
        let limit = current
            .end()
            .min(self.answered + self.options.batch_rows as u64);
        let view = View {
            rows: &self.rows,
            current: &current,
            last_peers: &self.last_peers,
        };
        let mut spans = ended_spans(&self.partitions, self.answered..limit);
        if spans.is_empty() {
            let Some(&partition) = self.partitions.front() else {
                return internal_err!("rows outside of all partitions");
            };
            let mut span = Span {
                partition,
                rows: self.answered..limit,
            };
            let mut is_working = false;
            let mut to = limit;
            for function in &mut self.functions {
                match function.ready(view, &span)? {
                    Ready::To(ready) => to = to.min(ready),
                    Ready::Again => is_working = true,
                }
            }
            if is_working || to == self.answered {
                self.current = Some(current);
                return Ok(match is_working {
                    true => Progress::Worked,
                    false => Progress::Waits,
                });
            }
            span.rows.end = to;
            spans.push(span);
        }
        let mut results = Vec::with_capacity(self.functions.len());
        for function in &mut self.functions {
            results.push(function.evaluate(view, &spans)?);
        }
        let to = spans.last().map_or(limit, |span| span.rows.end);
        let batch = self.answer(&current, to, results)?;
        self.current = Some(current);
        self.answered = to;
        let is_answered = |partition: &Partition| partition.end.is_some_and(|end| end <= to);
        while self.partitions.front().is_some_and(is_answered) && self.partitions.len() > 1 {
            self.partitions.pop_front();
        }
        self.charge()?;
        Ok(Progress::Batch(batch))
    }

    /// The rows up to a position, with their results.
    fn answer(&self, current: &Rows, to: u64, results: Vec<ArrayRef>) -> Result<RecordBatch> {
        let from = (self.answered - current.first) as usize;
        let count = (to - self.answered) as usize;
        let inputs = &current.batch.columns()[..self.options.spec.input_columns()];
        let mut columns: Vec<ArrayRef> = { inputs.iter() }
            .map(|column| column.slice(from, count))
            .collect();
        columns.extend(results);
        batch_of(&self.options.schema, columns, count)
    }

    /// Charges what the states of the functions have grown to.
    fn charge(&mut self) -> Result<()> {
        let bytes: usize = self.functions.iter().map(|function| function.bytes()).sum();
        self.state.try_resize(bytes as u64).map_err(space_error)
    }

    /// Forgets the rows that are not needed any more. To be called before more rows are waited for.
    pub(super) fn settle(&mut self) -> Result<()> {
        self.current = None;
        let needed = self.functions.iter().map(|function| function.needs_from());
        self.rows.release(needed.fold(self.answered, u64::min))?;
        self.rows.settle()?;
        self.charge()?;
        self.count();
        Ok(())
    }

    /// Counts the rows that had to be kept until others arrived.
    fn count(&mut self) {
        let kept = self.rows.end() - self.counted.max(self.rows.first());
        self.counted = self.rows.end();
        if self.live.is_none() && self.rows.has_pages() {
            let account = self.account.clone();
            let id = self.options.temp_table_id;
            self.live = Some(self.context.report.begin(id, Why::Window, account));
        }
        if let Some(live) = &self.live {
            live.add_rows(kept);
        }
    }

    /// Bytes written to disk so far.
    pub(super) fn bytes_written(&self) -> usize {
        usize::try_from(self.account.counters().bytes_written).unwrap_or(usize::MAX)
    }
}

/// The rows of a range that belong to partitions that end within it.
fn ended_spans(partitions: &VecDeque<Partition>, rows: std::ops::Range<u64>) -> Vec<Span> {
    let mut spans = Vec::new();
    for partition in partitions {
        let start = partition.start.max(rows.start);
        match partition.end {
            Some(end) if end <= rows.end => {
                if start < end {
                    spans.push(Span {
                        partition: *partition,
                        rows: start..end,
                    });
                }
            }
            _ => break,
        }
    }
    spans
}

/// The pages that a partition's share of the budget can afford, and the admission of as many as it
/// cannot do without: smaller ones where memory is short.
fn admit(account: &Account, partitions: usize) -> Result<(PageClass, Admission)> {
    let space = account.space();
    let default_class = space.default_page_class();
    let least = page_classes::usual(default_class);
    let mut refusal = None;
    for class in page_classes::affordable(space.memory_bytes(), default_class, partitions) {
        let minimum_bytes = (HELD_PAGES + PAGES_AT_HAND) * class.bytes();
        // Others give memory up for the least only.
        let admission = match class <= least {
            true => account.admit(minimum_bytes as u64),
            false => account.admit_within_limits(minimum_bytes as u64),
        };
        match admission {
            Ok(admission) => return Ok((class, admission)),
            Err(error) => refusal = Some(space_error(error)),
        }
    }
    match refusal {
        Some(error) => Err(error),
        None => internal_err!("no page is small enough"),
    }
}
