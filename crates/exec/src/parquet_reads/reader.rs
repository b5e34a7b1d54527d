//! Readers of Parquet files that ask the memory pool before they read.
//!
//! Owns: [`GrantedFactory`] and its reader. What is read of a row group holds its grant until the
//! last of its bytes is dropped.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::ParquetFileReaderFactory;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::parquet::arrow::arrow_reader::ArrowReaderOptions;
use datafusion::parquet::arrow::async_reader::AsyncFileReader;
use datafusion::parquet::basic::{Compression, Type};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::pages::Pages;
use super::turns::{Turn, Turns};

/// A row group of so many bytes is read although the budget has no room for it, one at a time in
/// the process: small budgets read files with row groups of the usual size.
const BEYOND_BUDGET_BYTES: u64 = 32 << 20;

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
        let stock = &self.stock;
        Ok(Box::new(GrantedReader {
            stock: stock.create_reader(partition_index, file, metadata_size_hint, metrics)?,
            location,
            pool: Arc::clone(&self.pool),
            turns: Arc::clone(&self.turns),
            turn: None,
            metadata: None,
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
}

/// Memory of what was read.
struct Grant {
    reservation: MemoryReservation,
    /// What the budget had no room for.
    beyond_bytes: u64,
    beyond_bytes_max: u64,
}

impl Grant {
    fn of(pool: &Arc<dyn MemoryPool>, beyond_bytes_max: u64) -> Grant {
        Grant {
            reservation: MemoryConsumer::new("row groups of Parquet files").register(pool),
            beyond_bytes: 0,
            beyond_bytes_max,
        }
    }

    fn grow(&mut self, bytes: u64) -> Result<()> {
        let asked = usize::try_from(bytes).unwrap_or(usize::MAX);
        let Err(refused) = self.reservation.try_grow(asked) else {
            return Ok(());
        };
        let beyond_bytes = self.beyond_bytes + bytes;
        if beyond_bytes > self.beyond_bytes_max
            || self.beyond_bytes == 0 && BEYOND_BUDGET.swap(true, Ordering::AcqRel)
        {
            return Err(refused);
        }
        self.beyond_bytes = beyond_bytes;
        Ok(())
    }
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
        loop {
            let turn = match self.turn.take() {
                Some(turn) => turn,
                None => self.turns.take().await,
            };
            let mut tried = self.try_read(&ranges, 0).await?;
            if tried.is_err() && turn.may_try_again() {
                continue;
            }
            if tried.is_err() {
                tried = self.try_read(&ranges, BEYOND_BUDGET_BYTES).await?;
            }
            self.turn = Some(turn);
            return tried.map_err(|refused| ParquetError::External(Box::new(refused)));
        }
    }

    /// Reads a row group if there is memory for it, or for what is more than so many bytes.
    async fn try_read(
        &mut self,
        ranges: &[Range<u64>],
        beyond_bytes_max: u64,
    ) -> ParquetResult<std::result::Result<Vec<Bytes>, RowGroupRefused>> {
        let refused = |needed_bytes, cause| RowGroupRefused {
            file: self.location.clone(),
            needed_bytes,
            cause,
        };
        let lengths = ranges.iter().map(|range| range.end - range.start);
        let stored_bytes: u64 = lengths.sum();
        let mut grant = Grant::of(&self.pool, beyond_bytes_max);
        if let Err(cause) = grant.grow(stored_bytes) {
            return Ok(Err(refused(stored_bytes, cause)));
        }
        let read = self.stock.get_byte_ranges(ranges.to_vec()).await?;
        let metadata = self.metadata.as_deref();
        let chunks = ranges.iter().zip(&read).filter_map(|(range, bytes)| {
            let chunk = metadata.and_then(|metadata| chunk_at(metadata, range.start))?;
            Some(decompressed_bytes(chunk, bytes))
        });
        let page_bytes: u64 = chunks.sum();
        if let Err(cause) = grant.grow(page_bytes) {
            return Ok(Err(refused(stored_bytes + page_bytes, cause)));
        }
        let grant = Arc::new(grant);
        let read = read.into_iter().map(|bytes| {
            let _grant = Arc::clone(&grant);
            Bytes::from_owner(Granted { bytes, _grant })
        });
        Ok(Ok(read.collect()))
    }
}

/// The column chunk that has bytes at a place of the file.
fn chunk_at(metadata: &ParquetMetaData, place: u64) -> Option<&ColumnChunkMetaData> {
    let groups = metadata.row_groups().iter();
    let mut chunks = groups.flat_map(|group| group.columns());
    chunks.find(|chunk| {
        let (start, length) = chunk.byte_range();
        (start..start + length).contains(&place)
    })
}

/// What a column holds of a chunk beside its bytes while it is decoded.
fn decompressed_bytes(chunk: &ColumnChunkMetaData, bytes: &[u8]) -> u64 {
    if chunk.compression() == Compression::UNCOMPRESSED {
        return 0;
    }
    let pages = Pages::of(bytes);
    // Texts are not copied out of their page: where a batch spans two, both are held.
    let is_text = chunk.column_type() == Type::BYTE_ARRAY;
    let held = if is_text { pages.count.min(2) } else { 1 };
    pages.dictionary_bytes + held * pages.longest_bytes
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
            let metadata = self.stock.get_metadata(options).await?;
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
