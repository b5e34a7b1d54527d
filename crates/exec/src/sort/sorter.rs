//! Sorts the rows of one partition within the memory that it is granted.
//!
//! Owns: [`Sorter`]. Never: waits, or holds more than a run in memory outside of pages.
//!
//! ```text
//!   push: rows wait ---- run full, or memory refused ----> sort, write as a run of pages
//!   end:  nothing written: sort and emit;  else: merge runs until one merge can take them all,
//!         and emit that merge as it goes
//! ```
//!
//! A run has a fixed size, a part of the budget, whether or not the input will fit, so nothing
//! changes at the point where memory ends: runs are pages like all others, and those that the
//! budget has room for are never written. With a limit, rows beyond the limit are dropped from
//! every run, and rows beyond the cutoff before they wait. A small limit needs no runs: waiting
//! rows are cut back to the limit again and again.
//!
//! Source: replacement of "sort all of memory" by fixed runs as in DuckDB's external sort
//! (Kuiper and Muehleisen, ICDE 2023).

use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::row::Rows;
use datafusion::common::{Result, ScalarValue};
use mayfly_space::{Account, AccountOptions, Admission, NextUse, PageClass, Reservation};
use mayfly_table::BatchRun;

use super::cutoff::{Cutoff, SharedCutoff};
use super::keys::{HEAD_BYTES, KeyEncoder};
use super::merge::{MergeOptions, Merger, Opening, Run};
use super::pending::{BATCH_ROWS_MAX, Pending};
use super::spec::SortSpec;
use crate::compact::{batch_bytes, compact, detach};
use crate::context::StatementContext;
use crate::error::{space_error, table_error};
use crate::page_classes;
use crate::report::{LiveTempTable, Why};

/// Waiting rows above twice the limit that make cutting back worth a sort.
const LIMIT_SLACK_ROWS: usize = 4096;

/// How much memory a sort uses for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub page_class: PageClass,
    /// What the operator cannot do without.
    pub minimum_bytes: usize,
    /// Waiting rows at most.
    pub run_bytes: usize,
    /// A merge at most.
    pub merge_bytes: usize,
    /// An output batch at most.
    pub output_bytes: usize,
    /// Rows of an output batch at most.
    pub batch_rows: usize,
}

/// Pages in the minimum: two runs to merge with their keys, an output and the page that takes it,
/// and rows enough to fill a few pages of a first run.
const MINIMUM_PAGES: usize = 16;
const MINIMUM_BYTES: usize = 256 << 10;
/// Waiting rows take at most this part of a partition's share, and at most so many bytes: sorting
/// more at once misses the caches and keeps a cancelled statement waiting.
const RUNS_PER_SHARE: usize = 4;
const RUN_BYTES_MAX: usize = 256 << 20;
const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// Ended batches that a merge may keep pinned beside the current ones, in at most this part of its
/// memory.
const HELD_EXTRA: usize = 8;
const HELD_SHARE: usize = 4;

/// Bytes of the frame that a page of so many bytes takes.
fn frame_bytes(page_bytes: usize) -> usize {
    let of_class = PageClass::holding(page_bytes).map(PageClass::bytes);
    of_class.unwrap_or_else(|| page_bytes.next_multiple_of(PageClass::M1.bytes()))
}

fn minimum_bytes(page_class: PageClass) -> usize {
    (MINIMUM_PAGES * page_class.bytes()).max(MINIMUM_BYTES)
}

impl Sizes {
    pub(super) fn new(
        memory_bytes: u64,
        default_class: PageClass,
        partitions: usize,
        batch_rows: usize,
    ) -> Self {
        let mut affordable = page_classes::affordable(memory_bytes, default_class, partitions);
        let largest = affordable.next();
        let page_class = largest.unwrap_or_else(|| page_classes::usual(default_class));
        let memory_bytes = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
        let share = memory_bytes / partitions.max(1);
        let minimum_bytes = minimum_bytes(page_class);
        Self {
            page_class,
            minimum_bytes,
            run_bytes: (share / RUNS_PER_SHARE).clamp(minimum_bytes / 2, RUN_BYTES_MAX),
            merge_bytes: (share / 2).max(minimum_bytes),
            output_bytes: (share / 64).clamp(2 * page_class.bytes(), OUTPUT_BYTES_MAX),
            batch_rows,
        }
    }

    /// The same with smaller pages, where those take less to begin with: for many sorts at a time,
    /// few of which will need more than their minimum.
    pub(super) fn smaller(&self) -> Option<Self> {
        let page_class = *PageClass::ALL.get(self.page_class.index().checked_sub(1)?)?;
        let minimum_bytes = minimum_bytes(page_class);
        (minimum_bytes < self.minimum_bytes).then_some(Self {
            page_class,
            minimum_bytes,
            ..*self
        })
    }

    fn output_rows(&self, row_bytes: usize) -> usize {
        (self.output_bytes / row_bytes.max(1)).clamp(1, self.batch_rows)
    }
}

/// What one partition of a sort needs to know.
pub(super) struct SorterOptions {
    pub spec: Arc<SortSpec>,
    pub sizes: Sizes,
    pub fetch: Option<usize>,
    pub shared: Option<Arc<SharedCutoff>>,
    pub temp_table_id: u64,
    /// The partitions that share one temporary table, this one included.
    pub partitions: usize,
}

/// The sort of one partition.
pub(super) struct Sorter {
    // Fixed.
    spec: Arc<SortSpec>,
    encoder: Arc<KeyEncoder>,
    sizes: Sizes,
    fetch: Option<usize>,
    // State.
    pending: Pending,
    runs: Vec<Run>,
    merger: Option<Merger>,
    limit: Option<Limit>,
    /// Rows and bytes that entered, for the size of a row.
    entered_rows: usize,
    entered_bytes: usize,
    emitted_rows: usize,
    // Resources; the admissions go last.
    reservation: Reservation,
    accounts: Accounts,
    live: LiveTempTable,
    /// Pages that merges may pin beyond the minimum.
    merge_admission: Option<Admission>,
    _admissions: [Admission; 2],
}

/// What a sort holds.
///
/// Each part has a minimum of its own: rows that wait may take all memory that there is, and become
/// a run only if its pages find some.
struct Accounts {
    all: Account,
    /// Rows that wait, and the keys of a merge.
    rows: Account,
    /// Pages of runs.
    runs: Account,
}

impl Accounts {
    fn new(context: &StatementContext, partitions: usize) -> Self {
        let all = context.table_account("sort", partitions, AccountOptions::default());
        let part = |name| all.child(name, AccountOptions::default());
        Self {
            rows: part("waiting rows"),
            runs: part("runs"),
            all,
        }
    }

    fn admit(&self, sizes: &Sizes) -> Result<[Admission; 2]> {
        let half_bytes = sizes.minimum_bytes as u64 / 2;
        // Others give memory up for the least only.
        let admit = |account: &Account| match sizes.smaller() {
            Some(_) => account.admit_within_limits(half_bytes),
            None => account.admit(half_bytes),
        };
        let admitted = admit(&self.rows).and_then(|rows| Ok([rows, admit(&self.runs)?]));
        admitted.map_err(space_error)
    }
}

/// What a partition knows about the limit.
struct Limit {
    cutoff: Cutoff,
    shared: Arc<SharedCutoff>,
}

impl Drop for Limit {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl Sorter {
    /// Admits the minimum and begins.
    pub(super) fn new(context: &StatementContext, options: SorterOptions) -> Result<Self> {
        let SorterOptions {
            spec,
            sizes,
            fetch,
            shared,
            temp_table_id,
            partitions,
        } = options;
        let accounts = Accounts::new(context, partitions);
        let admissions = accounts.admit(&sizes)?;
        let reservation = accounts.rows.reserve(0).map_err(space_error)?;
        let encoder = Arc::new(KeyEncoder::new(&spec)?);
        let why = if fetch.is_some() {
            Why::OrderByLimit
        } else {
            Why::OrderBy
        };
        let limit = match (fetch, shared) {
            (Some(fetch), Some(shared)) => {
                shared.begin()?;
                Some(Limit {
                    cutoff: Cutoff::new(fetch as u64),
                    shared,
                })
            }
            _ => None,
        };
        Ok(Self {
            pending: Pending::new(Arc::clone(&spec.inner), &encoder),
            spec,
            encoder,
            sizes,
            fetch,
            runs: Vec::new(),
            merger: None,
            limit,
            entered_rows: 0,
            entered_bytes: 0,
            emitted_rows: 0,
            reservation,
            live: context
                .report
                .begin(temp_table_id, why, accounts.all.clone()),
            accounts,
            merge_admission: None,
            _admissions: admissions,
        })
    }

    /// Takes a batch of the input.
    pub(super) fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        let batch = match &self.limit {
            Some(limit) => limit.shared.filter(batch)?,
            None => batch.clone(),
        };
        let rows = batch.num_rows();
        if rows == 0 || self.fetch == Some(0) {
            return Ok(());
        }
        let batch = compact(self.spec.enter(&batch)?)?;
        let bytes = batch_bytes(&batch);
        self.entered_rows += rows;
        self.entered_bytes += bytes;
        self.live.add_rows(rows as u64);
        let pieces = (bytes / (self.sizes.run_bytes / 4).max(1) + 1).min(rows);
        let piece_rows = rows.div_ceil(pieces).min(BATCH_ROWS_MAX);
        for start in (0..rows).step_by(piece_rows) {
            self.push_piece(batch.slice(start, piece_rows.min(rows - start)))?;
        }
        Ok(())
    }

    fn push_piece(&mut self, piece: RecordBatch) -> Result<()> {
        let Some((piece, keys)) = self.cut(piece)? else {
            return Ok(());
        };
        let cost = self.pending.cost(&piece, &keys);
        let is_full = self.pending.bytes() + cost > self.sizes.run_bytes
            || !self.pending.has_room_for_batch();
        if is_full && self.pending.rows() > 0 {
            self.make_room()?;
        }
        if let Err(error) = self.reserve_pending(cost) {
            if self.pending.rows() > 0 {
                self.write_run()?;
                if self.reserve_pending(cost).is_err() {
                    return self.push_halves(&piece, error);
                }
            } else {
                return self.push_halves(&piece, error);
            }
        }
        self.pending.push(piece, keys);
        if let Some(fetch) = self.fetch
            && self.pending.rows() > 2 * fetch.min(usize::MAX / 4) + LIMIT_SLACK_ROWS
        {
            self.cut_back(fetch)?;
        }
        Ok(())
    }

    /// Takes a piece that no memory is granted for in two parts; a single row fails.
    fn push_halves(
        &mut self,
        piece: &RecordBatch,
        error: datafusion::common::DataFusionError,
    ) -> Result<()> {
        let half = piece.num_rows() / 2;
        if half == 0 {
            return Err(error);
        }
        self.push_piece(piece.slice(0, half))?;
        self.push_piece(piece.slice(half, piece.num_rows() - half))
    }

    fn reserve_pending(&mut self, more: usize) -> Result<()> {
        let bytes = self.pending.bytes() + more;
        self.reservation
            .try_resize(bytes as u64)
            .map_err(space_error)
    }

    /// The keys of a piece, and its rows that lie before the cutoff; none when no row does.
    fn cut(&self, piece: RecordBatch) -> Result<Option<(RecordBatch, Rows)>> {
        let keys = self.encoder.encode(&piece)?;
        let cutoff = match &self.limit {
            // Plain columns were compared with the cutoff before.
            Some(limit) if !self.spec.keys_are_columns() => limit.shared.key(),
            _ => None,
        };
        let Some(cutoff) = cutoff else {
            return Ok(Some((piece, keys)));
        };
        let kept: BooleanArray = keys.iter().map(|key| Some(key.data() < &*cutoff)).collect();
        match kept.true_count() {
            0 => Ok(None),
            count if count == piece.num_rows() => Ok(Some((piece, keys))),
            _ => {
                let piece = compact(filter_record_batch(&piece, &kept)?)?;
                let keys = self.encoder.encode(&piece)?;
                Ok(Some((piece, keys)))
            }
        }
    }

    /// Makes room for more waiting rows: by the limit when that is enough, else by a run.
    fn make_room(&mut self) -> Result<()> {
        if let Some(fetch) = self.fetch {
            self.cut_back(fetch)?;
            if self.pending.bytes() < self.sizes.run_bytes / 2 {
                return Ok(());
            }
        }
        self.write_run()
    }

    /// Forgets waiting rows beyond the limit, when the rows left are few enough to be copied.
    fn cut_back(&mut self, fetch: usize) -> Result<()> {
        let rows = self.pending.rows();
        if rows <= fetch
            || (self.pending.bytes() / rows.max(1)).saturating_mul(fetch) > self.sizes.run_bytes / 4
        {
            return Ok(());
        }
        self.pending.sort(Some(fetch));
        self.offer(&self.pending.key(fetch - 1))?;
        let mut kept = Pending::new(Arc::clone(&self.spec.inner), &self.encoder);
        for start in (0..fetch).step_by(BATCH_ROWS_MAX) {
            let end = (start + BATCH_ROWS_MAX).min(fetch);
            let batch = detach(self.pending.gather(start..end)?)?;
            let keys = self.encoder.encode(&batch)?;
            kept.push(batch, keys);
        }
        self.pending = kept;
        self.reservation.shrink(self.pending.bytes() as u64);
        Ok(())
    }

    fn offer(&self, key: &[u8]) -> Result<()> {
        let Some(limit) = &self.limit else {
            return Ok(());
        };
        limit.shared.offer(key, || self.scalars(key))
    }

    /// The values of a key, when the keys are columns that can be compared outside.
    fn scalars(&self, key: &[u8]) -> Result<Option<Vec<ScalarValue>>> {
        if !self.spec.keys_are_columns() {
            return Ok(None);
        }
        let columns = self.encoder.decode(key)?;
        let types = self
            .spec
            .keys
            .iter()
            .map(|(index, _)| self.spec.outer.field(*index));
        columns
            .iter()
            .zip(types)
            .map(|(column, field)| {
                ScalarValue::try_from_array(column, 0)?.cast_to(field.data_type())
            })
            .collect::<Result<_>>()
            .map(Some)
    }

    /// Sorts what waits and writes it to pages.
    fn write_run(&mut self) -> Result<()> {
        self.pending.sort(self.fetch);
        let rows = self.pending.rows();
        if rows == 0 {
            return Ok(());
        }
        let mut data = self.new_run();
        let chunk_rows = self.chunk_rows();
        for start in (0..rows).step_by(chunk_rows) {
            let end = (start + chunk_rows).min(rows);
            data.append(&self.pending.gather(start..end)?)
                .map_err(table_error)?;
            if let Some(limit) = &mut self.limit {
                let key = self.pending.key(end - 1);
                let cutoff = limit
                    .cutoff
                    .add(key, (end - start) as u64)
                    .map(<[u8]>::to_vec);
                if let Some(cutoff) = cutoff {
                    self.offer(&cutoff)?;
                }
            }
        }
        data.finish().map_err(table_error)?;
        self.runs.push(Run {
            data,
            rows: rows as u64,
            level: 0,
        });
        self.pending.clear();
        self.reservation.shrink(0);
        Ok(())
    }

    fn new_run(&self) -> BatchRun {
        BatchRun::new(
            &self.accounts.runs,
            Arc::clone(&self.spec.inner),
            NextUse::At(0),
        )
        .with_page_class(self.sizes.page_class)
    }

    fn row_bytes(&self) -> usize {
        self.entered_bytes / self.entered_rows.max(1) + 1
    }

    /// Rows that are gathered for a run at a time: a few pages.
    fn chunk_rows(&self) -> usize {
        (2 * self.sizes.page_class.bytes() / self.row_bytes()).clamp(1, BATCH_ROWS_MAX)
    }

    /// Ends the input: after it, [`Self::next_batch`] gives the rows in order.
    pub(super) async fn finish(&mut self) -> Result<()> {
        if self.runs.is_empty() {
            self.pending.sort(self.fetch);
            return Ok(());
        }
        self.write_run()?;
        let mut fan_in = self.fan_in();
        loop {
            while self.runs.len() > fan_in {
                self.merge_some(fan_in).await?;
            }
            let options = self.merge_options(self.sizes.output_rows(self.row_bytes()));
            let runs = std::mem::take(&mut self.runs);
            let level = runs.iter().map(|run| run.level).max().unwrap_or_default();
            match Merger::open(&self.encoder, runs, options) {
                Ok(merger) => {
                    self.merger = Some(merger);
                    self.live.set_passes(2 + level);
                    return Ok(());
                }
                Err(Opening::Failed(error)) => return Err(error),
                Err(Opening::Refused(refused)) => {
                    if refused.opened < 2 {
                        return Err(refused.error);
                    }
                    self.runs = refused.runs;
                    fan_in = (refused.opened - 1).max(2);
                }
            }
        }
    }

    /// How many runs one merge can take; admits their pages and reserves the memory of their keys.
    ///
    /// A merge lets the page of a run go before it takes the next one, and cannot go on without
    /// that: whoever waits for memory meanwhile must not get it.
    fn fan_in(&mut self) -> usize {
        // Long rows have pages of their own.
        let page_bytes = self.longest_page_bytes();
        let frame_bytes = frame_bytes(page_bytes);
        // Keys that the heads do not hold may be as long as the rows.
        let key_bytes = if self.encoder.fits(HEAD_BYTES) {
            page_bytes / 2
        } else {
            page_bytes
        };
        let held_bytes = self.held_extra() * frame_bytes;
        let beside = self.sizes.output_bytes + held_bytes;
        let for_runs = self.sizes.merge_bytes.saturating_sub(beside);
        let mut fan_in = (for_runs / (frame_bytes + key_bytes)).max(2);
        fan_in = fan_in.min(self.runs.len().max(2));
        loop {
            let pages_bytes =
                fan_in * frame_bytes + held_bytes + BatchRun::APPEND_PAGES * frame_bytes;
            let keys_bytes = fan_in * key_bytes + self.sizes.output_bytes;
            let has_pages = self.admit_merge(pages_bytes);
            let has_keys = self.reserve_keys(keys_bytes);
            // Two runs are tried without: the minimum has pages for them if rows are not long.
            if has_pages && has_keys || fan_in == 2 {
                return fan_in;
            }
            fan_in = fan_in.div_ceil(2);
        }
    }

    fn admit_merge(&mut self, bytes: usize) -> bool {
        self.merge_admission = None;
        let more_bytes = bytes.saturating_sub(self.sizes.minimum_bytes / 2);
        let admitted = self.accounts.runs.admit_within_limits(more_bytes as u64);
        self.merge_admission = admitted.ok();
        self.merge_admission.is_some()
    }

    fn reserve_keys(&mut self, bytes: usize) -> bool {
        self.reservation.try_resize(bytes as u64).is_ok()
    }

    fn longest_page_bytes(&self) -> usize {
        let longest = self.runs.iter().map(|run| run.data.longest_page_bytes());
        longest.fold(self.sizes.page_class.bytes(), usize::max)
    }

    /// Ended batches that a merge may keep pinned: few where pages are long beside the memory of a
    /// merge.
    fn held_extra(&self) -> usize {
        let share = self.sizes.merge_bytes / HELD_SHARE;
        (share / frame_bytes(self.longest_page_bytes())).clamp(1, HELD_EXTRA)
    }

    fn merge_options(&self, batch_rows: usize) -> MergeOptions {
        MergeOptions {
            batch_rows,
            rows_max: self.fetch.map_or(u64::MAX, |fetch| fetch as u64),
            held_extra: self.held_extra(),
        }
    }

    /// Merges neighbouring runs into one: the shortest, and as few as make the rest fit, so that
    /// few rows pass once more.
    async fn merge_some(&mut self, fan_in: usize) -> Result<()> {
        let mut count = (self.runs.len() - fan_in + 1).clamp(2, fan_in);
        loop {
            let first = (0..=self.runs.len() - count)
                .min_by_key(|&first| {
                    self.runs[first..first + count]
                        .iter()
                        .map(|run| run.rows)
                        .sum::<u64>()
                })
                .unwrap_or_default();
            let options = self.merge_options(self.chunk_rows());
            let behind = self.runs.split_off(first + count);
            let runs = self.runs.split_off(first);
            let level = 1 + runs.iter().map(|run| run.level).max().unwrap_or_default();
            match Merger::open(&self.encoder, runs, options) {
                Ok(mut merger) => {
                    let mut data = self.new_run();
                    while let Some(batch) = merger.next_batch()? {
                        data.append(&batch).map_err(table_error)?;
                        drop(batch);
                        tokio::task::yield_now().await;
                    }
                    data.finish().map_err(table_error)?;
                    let rows = data.row_count();
                    self.runs.push(Run { data, rows, level });
                    self.runs.extend(behind);
                    return Ok(());
                }
                Err(Opening::Failed(error)) => return Err(error),
                Err(Opening::Refused(refused)) => {
                    if refused.opened < 2 {
                        return Err(refused.error);
                    }
                    self.runs.extend(refused.runs);
                    self.runs.extend(behind);
                    // One page less than what fitted is left for the page that is written.
                    count = (refused.opened - 1).max(2);
                }
            }
        }
    }

    /// The next rows in order, as the consumer expects them.
    pub(super) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(merger) = &mut self.merger {
            return match merger.next_batch()? {
                Some(batch) => self.spec.leave(&detach(batch)?).map(Some),
                None => Ok(None),
            };
        }
        let rows = self.pending.rows();
        if self.emitted_rows >= rows {
            return Ok(None);
        }
        let start = self.emitted_rows;
        self.emitted_rows = (start + self.sizes.output_rows(self.row_bytes())).min(rows);
        self.spec
            .leave(&self.pending.gather(start..self.emitted_rows)?)
            .map(Some)
    }

    /// Runs written so far.
    pub(super) fn run_count(&self) -> usize {
        self.runs.len()
    }

    /// Times that the rows are passed over, known after [`Self::finish`].
    pub(super) fn passes(&self) -> usize {
        usize::try_from(self.live.passes()).unwrap_or(usize::MAX)
    }

    /// Bytes written to disk so far.
    pub(super) fn bytes_written(&self) -> usize {
        usize::try_from(self.accounts.all.counters().bytes_written).unwrap_or(usize::MAX)
    }
}
