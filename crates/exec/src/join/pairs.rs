//! What is left of a join when all of its right side went by: pairs of partitions in pages.
//!
//! Pairs are joined by as many tasks as there are workers. The smaller side of a pair becomes a
//! table, the other one streams past it, page by page. A pair whose smaller side has no room is
//! split by the next hash bits; one that would not become smaller by that, because most of its rows
//! have one key, is joined chunk by chunk: the other side is read once for each chunk, and keeps in
//! its pages which of its rows have found a partner.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{JoinSide, Result};
use mayfly_table::rows::{JoinPart, JoinTable, JoinTables, ProbeScratch, SideRows, TableMemory};
use tokio::sync::mpsc;

use super::build::Built;
use super::kinds::{Emit, Roles};
use super::prober::{Prober, Progress};
use super::run::Run;
use super::tables::AbsentPart;
use super::unmatched::Unmatched;
use crate::error::rows_error;
use crate::lock::lock;
use crate::tasks::join_all;
use crate::time_slice::TimeSlice;

/// So many chunks are read without splitting the pair: a split writes and reads both sides once
/// more, a second chunk reads one of them.
const CHUNKS_MAX: u64 = 2;

/// A part that has more than all but one in this many of the rows of what was split was not split.
const UNSPLIT_SHARE: usize = 8;

/// Pages of a pair that are asked for while the one before it is joined.
const PREFETCHED_PAGES: usize = 16;

/// The rows of one partition on both sides.
struct Pair {
    left: JoinPart,
    right: JoinPart,
    /// Whether splitting it would be in vain.
    is_one_key: bool,
}

/// The results of all pairs, in no order.
pub(super) struct Pairs {
    results: mpsc::Receiver<Result<RecordBatch>>,
    tasks: Vec<SpawnedTask<Result<()>>>,
}

impl Pairs {
    /// Begins to join the pairs of a run: partitions of the left side with those of the right one.
    pub(super) fn start(
        run: &Arc<Run>,
        built: &Arc<Built>,
        absent: Vec<AbsentPart>,
        partner: Arc<SideRows>,
    ) -> Result<Pairs> {
        let pair = |(partition, left): AbsentPart| -> Result<Pair> {
            Ok(Pair {
                left,
                right: partner.take_part(partition).map_err(rows_error)?,
                is_one_key: false,
            })
        };
        let pairs: VecDeque<Pair> = absent.into_iter().map(pair).collect::<Result<_>>()?;
        let queue = Arc::new(Mutex::new(pairs));
        let (sender, results) = mpsc::channel(2 * run.workers);
        let tasks = (0..run.workers).map(|_| {
            let joiner = PairJoiner {
                run: Arc::clone(run),
                built: Arc::clone(built),
                sides: [Arc::clone(&built.left), Arc::clone(&partner)],
                queue: Arc::clone(&queue),
                sender: sender.clone(),
                scratch: ProbeScratch::default(),
                slice: TimeSlice::begin(),
            };
            SpawnedTask::spawn(joiner.join_all())
        });
        Ok(Pairs {
            tasks: tasks.collect(),
            results,
        })
    }

    /// The next results; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<RecordBatch>> {
        match self.results.recv().await {
            Some(results) => results.map(Some),
            None => {
                // A task that panicked has sent nothing.
                join_all(std::mem::take(&mut self.tasks)).await?;
                Ok(None)
            }
        }
    }
}

/// A task that joins pairs until none is left.
struct PairJoiner {
    run: Arc<Run>,
    built: Arc<Built>,
    /// Left and right.
    sides: [Arc<SideRows>; 2],
    queue: Arc<Mutex<VecDeque<Pair>>>,
    sender: mpsc::Sender<Result<RecordBatch>>,
    scratch: ProbeScratch,
    slice: TimeSlice,
}

/// The parts of a pair in their roles.
struct Roled {
    roles: Roles,
    table: JoinPart,
    stream: JoinPart,
}

impl PairJoiner {
    async fn join_all(mut self) -> Result<()> {
        while let Some(pair) = self.next_pair() {
            if let Err(error) = self.join(pair).await {
                // Nobody to tell means that nobody wants to know.
                let _ = self.sender.send(Err(error)).await;
                break;
            }
        }
        Ok(())
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, VecDeque<Pair>> {
        lock(&self.queue)
    }

    fn next_pair(&self) -> Option<Pair> {
        let mut queue = self.queue();
        let pair = queue.pop_front();
        if let Some(next) = queue.front() {
            next.left.prefetch(PREFETCHED_PAGES);
            next.right.prefetch(PREFETCHED_PAGES);
        }
        pair
    }

    /// Bytes that the table of one task may take.
    fn share_bytes(&self) -> u64 {
        self.built.tables.share_bytes() / 2 / self.run.workers as u64
    }

    async fn join(&mut self, pair: Pair) -> Result<()> {
        let kind = self.run.spec.kind;
        let as_table = |side| Roles::new(kind, side);
        let bytes_of = |side| {
            let part = match side {
                JoinSide::Left => &pair.left,
                _ => &pair.right,
            };
            part.table_bytes(as_table(side).marks_table())
        };
        // What NULLs of the right side do to a NOT IN is asked of the left side in a table.
        let is_reversed = bytes_of(JoinSide::Right) < bytes_of(JoinSide::Left);
        let table = match is_reversed && !self.run.spec.is_null_aware {
            true => JoinSide::Right,
            false => JoinSide::Left,
        };
        let chunks = bytes_of(table).div_ceil(self.share_bytes());
        if chunks > CHUNKS_MAX && !pair.is_one_key && pair.left.can_split() {
            return self.split(pair, table);
        }
        let (table_part, stream) = match table {
            JoinSide::Left => (pair.left, pair.right),
            _ => (pair.right, pair.left),
        };
        self.join_chunks(Roled {
            roles: as_table(table),
            table: table_part,
            stream,
        })
        .await
    }

    /// Splits a pair into pairs that are joined next.
    fn split(&mut self, pair: Pair, table: JoinSide) -> Result<()> {
        self.run.counts().splits.add(1);
        let rows_of = |left: &JoinPart, right: &JoinPart| match table {
            JoinSide::Left => left.row_count(),
            _ => right.row_count(),
        };
        let rows = rows_of(&pair.left, &pair.right);
        let left = pair.left.split().map_err(rows_error)?;
        let right = pair.right.split().map_err(rows_error)?;
        let mut queue = self.queue();
        for (left, right) in left.into_iter().zip(right).rev() {
            if !left.is_empty() || !right.is_empty() {
                let is_one_key = rows_of(&left, &right) > rows - rows / UNSPLIT_SHARE;
                queue.push_front(Pair {
                    left,
                    right,
                    is_one_key,
                });
            }
        }
        Ok(())
    }

    /// Joins a pair, one chunk of its table after the other.
    async fn join_chunks(&mut self, mut pair: Roled) -> Result<()> {
        let marks_table = pair.roles.marks_table();
        let mut share_bytes = self.share_bytes();
        loop {
            let chunk = pair.table.take_chunk(share_bytes, marks_table);
            let is_last = pair.table.is_empty();
            let tables = match chunk.is_empty() {
                true => JoinTables::empty(self.side(pair.roles.table)),
                false => {
                    let bytes = chunk.page_bytes();
                    match build(chunk, marks_table)? {
                        Ok(table) => JoinTables::of_one(table),
                        Err(chunk) => {
                            // Others hold what was this task's share.
                            pair.table.put_back(chunk);
                            share_bytes = bytes / 2;
                            continue;
                        }
                    }
                }
            };
            self.run.counts().chunks.add(1);
            self.stream_past(&tables, pair.roles, &mut pair.stream, is_last)
                .await?;
            let mut unmatched = Unmatched::new(&self.run, pair.roles);
            while let Some(results) = unmatched.next(&tables)? {
                self.send(results).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn side(&self, side: JoinSide) -> &SideRows {
        match side {
            JoinSide::Left => &self.sides[0],
            _ => &self.sides[1],
        }
    }

    /// Joins all pages of the other side with the tables; frees them if no other table comes.
    async fn stream_past(
        &mut self,
        tables: &JoinTables,
        roles: Roles,
        stream: &mut JoinPart,
        is_last: bool,
    ) -> Result<()> {
        let other = match roles.table {
            JoinSide::Left => JoinSide::Right,
            _ => JoinSide::Left,
        };
        let spec = Arc::clone(&self.run.spec);
        let columns = spec.side(other);
        let mut prober = Prober::new(&spec, roles, self.run.limits);
        prober.is_last = is_last;
        let mut number = 0;
        while number < stream.page_count() {
            self.slice.share().await;
            {
                let page = stream.open_page(number).map_err(rows_error)?;
                tables.find_page(&page, &mut prober.looked, &mut self.scratch);
                let decode = |stored: &[_]| page.decode(stored).map_err(rows_error);
                let needed = columns.restore(&columns.all(), page.row_count(), decode)?;
                prober.begin(needed, |row| page.is_marked(row));
            }
            loop {
                match prober.next(tables)? {
                    Progress::Results(results) => self.send(results).await?,
                    Progress::None => self.slice.share().await,
                    Progress::Done => break,
                }
            }
            if is_last {
                stream.free_first_page();
                continue;
            }
            if roles.of_stream != Emit::Nothing {
                let partnered = prober.partnered_rows();
                if !partnered.is_empty() {
                    let mut page = stream.open_page(number).map_err(rows_error)?;
                    partnered.into_iter().for_each(|row| page.mark(row));
                }
            }
            number += 1;
        }
        Ok(())
    }

    async fn send(&self, results: RecordBatch) -> Result<()> {
        // A receiver that is gone takes this task with it.
        let _ = self.sender.send(Ok(results)).await;
        Ok(())
    }
}

/// A table over a chunk, which comes back where there is no room and it can be made smaller.
fn build(chunk: JoinPart, keeps_marks: bool) -> Result<Result<JoinTable, JoinPart>> {
    let built = JoinTable::build(chunk, keeps_marks, TableMemory::Free).map_err(rows_error)?;
    let Err(chunk) = built else {
        return Ok(built);
    };
    if chunk.page_count() > 1 {
        return Ok(Err(chunk));
    }
    // One page has room in what was admitted.
    let built = JoinTable::build(chunk, keeps_marks, TableMemory::Minimum).map_err(rows_error)?;
    match built {
        Ok(table) => Ok(Ok(table)),
        Err(chunk) => Err(rows_error(chunk.short_of_table(keeps_marks))),
    }
}
