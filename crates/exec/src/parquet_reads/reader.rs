//! Readers of Parquet files that ask the memory pool before they read.
//!
//! Owns: [`GrantedFactory`] and its reader. What is read of a row group holds its grant until the
//! last of its bytes is dropped.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use datafusion::common::{DataFusionError, Result, resources_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::basic::{Compression, Type};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, RowGroupMetaData};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::pages::Pages;
use super::pieces::Known;
use super::turns::{Turn, Turns};
use crate::memory::SpacePool;

/// A row group of so many bytes is read although the budget has no room for it, one at a time in
/// the process: small budgets read files with row groups of the usual size.
const BEYOND_BUDGET_BYTES: u64 = 32 << 20;

/// Readers that hold more than this part of the budget together with other stock operators ...
const READERS_PER_MEMORY: u64 = 2;
/// ... leave so much of it to the operators that they feed, and that begin with their first rows.
const HEADROOM_PER_MEMORY: u64 = 8;

/// How long a reader waits until it looks again whether there is room.
const PATIENCE_STEP: Duration = Duration::from_millis(1);

/// Whether one is read so.
static BEYOND_BUDGET: AtomicBool = AtomicBool::new(false);

/// A row group that finds no memory.
#[derive(Debug, thiserror::Error)]
#[error("{needed_bytes} bytes of {file} are read at once: {cause}")]
pub struct RowGroupRefused {
    /// The location of the file in its store.
    pub file: String,
    /// What its columns need together.
    pub needed_bytes: u64,
    /// The refusal of the memory pool.
    #[source]
    pub cause: DataFusionError,
}

/// Makes readers that ask a pool.
#[derive(Debug)]
pub(super) struct GrantedFactory {
    pub(super) stock: Arc<dyn ParquetFileReaderFactory>,
    pub(super) pool: Arc<dyn MemoryPool>,
    pub(super) turns: Arc<Turns>,
}

impl ParquetFileReaderFactory for GrantedFactory {
    fn create_reader(
        &self,
        partition_index: usize,
        file: PartitionedFile,
        metadata_size_hint: Option<usize>,
        metrics: &ExecutionPlanMetricsSet,
    ) -> Result<Box<dyn AsyncFileReader + Send>> {
        let location = file.object_meta.location.to_string();
        let known = file.extensions.get::<Arc<Known>>().cloned();
        let stock = &self.stock;
        Ok(Box::new(GrantedReader {
            stock: stock.create_reader(partition_index, file, metadata_size_hint, metrics)?,
            location,
            pool: Arc::clone(&self.pool),
            turns: Arc::clone(&self.turns),
            turn: None,
            metadata: None,
            known,
        }))
    }
}

struct GrantedReader {
    stock: Box<dyn AsyncFileReader + Send>,
    location: String,
    pool: Arc<dyn MemoryPool>,
    turns: Arc<Turns>,
    /// Held from the first row group on.
    turn: Option<Turn>,
    metadata: Option<Arc<ParquetMetaData>>,
    /// What is known of the file that this is a part of.
    known: Option<Arc<Known>>,
}

/// What a reader asks the budget for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// What leaves room for others.
    Modest,
    AllThatIsFree,
    /// More than there is, up to [`BEYOND_BUDGET_BYTES`].
    BeyondBudget,
}

/// Memory of what was read.
struct Grant {
    pool: Arc<dyn MemoryPool>,
    reservation: MemoryReservation,
    claim: Claim,
    /// What the budget had no room for.
    beyond_bytes: u64,
}

impl Grant {
    fn of(pool: &Arc<dyn MemoryPool>, claim: Claim) -> Grant {
        Grant {
            pool: Arc::clone(pool),
            reservation: MemoryConsumer::new("row groups of Parquet files").register(pool),
            claim,
            beyond_bytes: 0,
        }
    }

    fn grow(&mut self, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        if self.claim == Claim::Modest && leaves_too_little(self.pool.as_ref(), bytes) {
            return resources_err!("operators need what {bytes} bytes would leave");
        }
        let asked = usize::try_from(bytes).unwrap_or(usize::MAX);
        let Err(refused) = self.reservation.try_grow(asked) else {
            return Ok(());
        };
        let beyond_bytes = self.beyond_bytes + bytes;
        if self.claim != Claim::BeyondBudget
            || beyond_bytes > BEYOND_BUDGET_BYTES
            || self.beyond_bytes == 0 && BEYOND_BUDGET.swap(true, Ordering::AcqRel)
        {
            return Err(refused);
        }
        self.beyond_bytes = beyond_bytes;
        Ok(())
    }
}

/// Whether stock operators, most of them readers, would leave too little of the budget if one took
/// so many bytes more. Where nobody else holds anything there is nobody to wait for.
fn leaves_too_little(pool: &dyn MemoryPool, bytes: u64) -> bool {
    let Some(pool) = pool.downcast_ref::<SpacePool>() else {
        return false;
    };
    let space = pool.account().space();
    let (memory_bytes, held_bytes) = (space.memory_bytes(), pool.reserved() as u64);
    let left_bytes = memory_bytes.saturating_sub(space.memory_claimed_bytes() + bytes);
    held_bytes > 0
        && held_bytes + bytes > memory_bytes / READERS_PER_MEMORY
        && left_bytes < memory_bytes / HEADROOM_PER_MEMORY
}

impl Drop for Grant {
    fn drop(&mut self) {
        if self.beyond_bytes > 0 {
            BEYOND_BUDGET.store(false, Ordering::Release);
        }
    }
}

/// Bytes with the grant of all that was read with them.
struct Granted {
    bytes: Bytes,
    _grant: Arc<Grant>,
}

impl AsRef<[u8]> for Granted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl GrantedReader {
    /// Reads a row group as soon as there is memory for it.
    async fn read(&mut self, ranges: Vec<Range<u64>>) -> ParquetResult<Vec<Bytes>> {
        // Known once it has been read in vain.
        let mut page_bytes = 0;
        loop {
            let turn = match self.turn.take() {
                Some(turn) => turn,
                None => self.turns.take().await,
            };
            let mut tried = self
                .try_read(&ranges, &mut page_bytes, Claim::Modest)
                .await?;
            if tried.is_err() && turn.may_try_again() {
                continue;
            }
            if tried.is_err() && self.turns.has_patience() {
                self.turn = Some(turn);
                tokio::time::sleep(PATIENCE_STEP).await;
                continue;
            }
            for claim in [Claim::AllThatIsFree, Claim::BeyondBudget] {
                if tried.is_err() {
                    tried = self.try_read(&ranges, &mut page_bytes, claim).await?;
                }
            }
            self.turn = Some(turn);
            return tried.map_err(|refused| ParquetError::External(Box::new(refused)));
        }
    }

    /// Reads a row group if there is memory for it and its pages.
    async fn try_read(
        &mut self,
        ranges: &[Range<u64>],
        page_bytes: &mut u64,
        claim: Claim,
    ) -> ParquetResult<std::result::Result<Vec<Bytes>, RowGroupRefused>> {
        let refused = |needed_bytes, cause| RowGroupRefused {
            file: self.location.clone(),
            needed_bytes,
            cause,
        };
        let lengths = ranges.iter().map(|it| it.end.saturating_sub(it.start));
        let stored_bytes = lengths.fold(0, u64::saturating_add);
        let mut grant = Grant::of(&self.pool, claim);
        if let Err(cause) = grant.grow(stored_bytes + *page_bytes) {
            return Ok(Err(refused(stored_bytes + *page_bytes, cause)));
        }
        let read = self.stock.get_byte_ranges(ranges.to_vec()).await?;
        let more_bytes = self
            .decompressed_bytes(ranges, &read)
            .saturating_sub(*page_bytes);
        *page_bytes += more_bytes;
        if let Err(cause) = grant.grow(more_bytes) {
            return Ok(Err(refused(stored_bytes + *page_bytes, cause)));
        }
        let grant = Arc::new(grant);
        let read = read.into_iter().map(|bytes| {
            let _grant = Arc::clone(&grant);
            Bytes::from_owner(Granted { bytes, _grant })
        });
        Ok(Ok(read.collect()))
    }

    /// What columns hold beside the bytes that were read while they are decoded.
    fn decompressed_bytes(&self, ranges: &[Range<u64>], read: &[Bytes]) -> u64 {
        let Some(metadata) = self.metadata.as_deref() else {
            return 0;
        };
        // All of them lie in one row group. Of a piece, the pages of a column come one by one.
        let mut columns: HashMap<u64, (&ColumnChunkMetaData, Pages)> = HashMap::new();
        let first = ranges.first().map_or(0, |range| range.start);
        let mut groups = metadata.row_groups().iter();
        let Some(group) = groups.find(|group| chunk_at(group, first).is_some()) else {
            return 0;
        };
        for (range, bytes) in ranges.iter().zip(read) {
            if let Some(chunk) = chunk_at(group, range.start) {
                let of_column = columns.entry(chunk.byte_range().0);
                let (_, pages) = of_column.or_insert((chunk, Pages::default()));
                pages.add(&Pages::of(bytes));
            }
        }
        let columns = columns.into_values();
        let held = columns.map(|(chunk, pages)| held_bytes(chunk, pages));
        held.fold(0, u64::saturating_add)
    }
}

/// The column chunk that has bytes at a place of the file.
fn chunk_at(group: &RowGroupMetaData, place: u64) -> Option<&ColumnChunkMetaData> {
    group.columns().iter().find(|chunk| {
        let (start, length) = chunk.byte_range();
        (start..start.saturating_add(length)).contains(&place)
    })
}

/// What a column holds of its pages while they are decoded.
fn held_bytes(chunk: &ColumnChunkMetaData, pages: Pages) -> u64 {
    if chunk.compression() == Compression::UNCOMPRESSED {
        return 0;
    }
    // Texts are not copied out of their page: where a batch spans two, both are held.
    let is_text = chunk.column_type() == Type::BYTE_ARRAY;
    let held = if is_text { pages.count.min(2) } else { 1 };
    let longest_bytes = held.saturating_mul(pages.longest_bytes);
    pages.dictionary_bytes.saturating_add(longest_bytes)
}

impl AsyncFileReader for GrantedReader {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, ParquetResult<Bytes>> {
        self.stock.get_bytes(range)
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, ParquetResult<Vec<Bytes>>> {
        self.read(ranges).boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, ParquetResult<Arc<ParquetMetaData>>> {
        async move {
            let metadata = match &self.known {
                Some(known) => Arc::clone(&known.metadata),
                None => self.stock.get_metadata(options).await?,
            };
            self.metadata = Some(Arc::clone(&metadata));
            Ok(metadata)
        }
        .boxed()
    }
}

impl fmt::Debug for GrantedReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrantedReader")
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}
