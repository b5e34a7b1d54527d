//! Files of Parquet: rows are gathered into row groups, which the budget pays for.
//!
//! The encoder holds the pages of a row group until it is written. What it holds, and what the next
//! rows may add, is reserved before they are encoded. A row group ends at a part of the budget, or
//! earlier where nothing more is granted: less memory makes more and smaller row groups. What a
//! small row group takes is reserved from the beginning to the end: whoever computes the rows takes
//! all that is given back in between.
//!
//! A column has the type of Parquet that is nearest to its own; a number, a day or a time whose
//! MySQL type that does not tell keeps it in the schema of Arrow that the file carries (see
//! `files::schema_types`, which reads it). TIME is a signed number of microseconds that Arrow calls
//! a duration: Parquet's own time ends after a day.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use bytes::Bytes;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::arrow::arrow_writer::{
    ArrowWriterOptions, InMemoryPageStore, PageKey, PageStore, PageStoreArgs, PageStoreFactory,
};
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::errors::{ParquetError, Result as ParquetResult};
use datafusion::parquet::file::properties::WriterProperties;
use mayfly_sql::statement::{ParquetCompression, ParquetOptions};
use mayfly_table::owned::own_bytes;
use mayfly_types::{ErrorCode, MySqlError};

use crate::column_info::ColumnInfo;
use crate::errors;
use crate::files::declaring_field;
use crate::new_file::{NewFile, cannot_write};

/// The row groups of a file have numbers of 16 bits with a sign, the first 0.
const ROW_GROUPS_MAX: usize = 1 << 15;
/// The most rows of a row group, unless the statement says another number.
const ROW_GROUP_ROWS: usize = 1 << 20;
/// A row group holds at most this part of the budget, and not more than ...
const ROW_GROUPS_PER_BUDGET: usize = 4;
const ROW_GROUP_BYTES_MAX: usize = 128 << 20;
const ROW_GROUP_BYTES_MIN: usize = 1 << 20;
/// Pages are at most this part of the budget, and not more than ...
const PAGES_PER_BUDGET: usize = 64;
const PAGE_BYTES_MAX: usize = 1 << 20;
const PAGE_BYTES_MIN: usize = 64 << 10;
/// Rows that are encoded together have about so many bytes, and where memory is short not less than
/// the half of ...
const PIECE_BYTES: usize = 512 << 10;
const PIECE_BYTES_MIN: usize = 32 << 10;
/// Bytes that are reserved for each byte of rows that are encoded: in a page, and compressed.
const COPIES: usize = 3;
/// What a column takes before it has a value: its encoder, and a context to decompress, which comes
/// with that to compress.
const COLUMN_BYTES: usize = 8 << 10;
const ZSTD_COLUMN_BYTES: usize = 128 << 10;
/// The table of a dictionary, which is as large when it is empty.
const DICTIONARY_BYTES: usize = 80 << 10;
/// What a column takes to compress pages by zstd, from the first of a row group to its end.
const ZSTD_CONTEXT_BYTES: usize = 640 << 10;
/// What is known of a column of a row group, and of a page, until the file ends.
const COLUMN_CHUNK_BYTES: usize = 1 << 10;
const PAGE_INDEX_BYTES: usize = 256;

/// A file of Parquet that is being written.
pub(crate) struct ParquetWriter {
    // fixed
    file: NewFile,
    schema: SchemaRef,
    sizes: Sizes,
    // state
    writer: ArrowWriter<File>,
    pages: Arc<PageCount>,
    memory: MemoryReservation,
    floor: Floor,
}

/// What is reserved as long as the file is written.
#[derive(Clone, Copy, Debug)]
struct Floor {
    bytes: usize,
    /// The columns whose contexts of zstd it pays for.
    contexts: usize,
}

/// How large the parts of a file become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    columns: usize,
    row_group_bytes: usize,
    page_bytes: usize,
    compression: ParquetCompression,
    has_dictionaries: bool,
}

impl Sizes {
    /// Sizes that a budget has room for. Where zstd was not asked for, and columns are so many that
    /// its contexts are not a small part of the budget, pages are compressed by Snappy.
    fn of(budget_bytes: usize, columns: usize, asked: Option<ParquetCompression>) -> Sizes {
        let row_group_bytes = budget_bytes / ROW_GROUPS_PER_BUDGET;
        let row_group_bytes = row_group_bytes.clamp(ROW_GROUP_BYTES_MIN, ROW_GROUP_BYTES_MAX);
        let page_bytes = budget_bytes / PAGES_PER_BUDGET;
        // What columns may take that hold nothing.
        let spare_bytes = row_group_bytes / 2;
        let has_room = |bytes: usize| columns.saturating_mul(bytes) <= spare_bytes;
        let compression = asked.unwrap_or(match has_room(ZSTD_CONTEXT_BYTES) {
            true => ParquetCompression::Zstd,
            false => ParquetCompression::Snappy,
        });
        Sizes {
            columns,
            row_group_bytes,
            page_bytes: page_bytes.clamp(PAGE_BYTES_MIN, PAGE_BYTES_MAX),
            compression,
            has_dictionaries: has_room(column_bytes(compression) + DICTIONARY_BYTES),
        }
    }

    /// What all columns take before they hold anything, and the page that one is compressing; but
    /// for contexts of zstd.
    fn base_bytes(&self) -> usize {
        let dictionary_bytes = match self.has_dictionaries {
            true => DICTIONARY_BYTES,
            false => 0,
        };
        let columns = self
            .columns
            .saturating_mul(column_bytes(self.compression) + dictionary_bytes);
        columns + 2 * self.page_bytes
    }

    /// What columns take that have compressed a page of the row group.
    fn context_bytes(&self, columns: usize) -> usize {
        match self.compression {
            ParquetCompression::Zstd => columns.saturating_mul(ZSTD_CONTEXT_BYTES),
            ParquetCompression::Snappy | ParquetCompression::None => 0,
        }
    }

    /// What may be reserved from the beginning, the best first: a small row group, what is known of
    /// those in front of it, and the contexts of all columns; or what encodes a few rows. A row
    /// group of a few rows is compressed one column after the other.
    fn floors(&self) -> [Floor; 3] {
        let floor = |contexts, more_bytes| Floor {
            bytes: self.base_bytes() + self.context_bytes(contexts) + more_bytes,
            contexts,
        };
        let piece_bytes = COPIES * PIECE_BYTES;
        [
            floor(
                self.columns,
                piece_bytes + self.page_bytes + self.row_group_bytes / 4,
            ),
            floor(self.columns, piece_bytes + self.page_bytes),
            floor(1, COPIES * PIECE_BYTES_MIN),
        ]
    }

    /// Reserves the best of what is granted.
    fn reserve(&self, memory: &MemoryReservation) -> Result<Floor, DataFusionError> {
        let [best, small, smallest] = self.floors();
        for floor in [best, small] {
            if memory.try_resize(floor.bytes).is_ok() {
                return Ok(floor);
            }
        }
        memory.try_resize(smallest.bytes).map(|()| smallest)
    }

    fn properties(&self, row_group_rows: usize) -> WriterProperties {
        let compression = match self.compression {
            ParquetCompression::Zstd => Compression::ZSTD(ZstdLevel::default()),
            ParquetCompression::Snappy => Compression::SNAPPY,
            ParquetCompression::None => Compression::UNCOMPRESSED,
        };
        WriterProperties::builder()
            .set_created_by(format!("Mayfly version {}", env!("CARGO_PKG_VERSION")))
            .set_compression(compression)
            .set_dictionary_enabled(self.has_dictionaries)
            .set_dictionary_page_size_limit(self.page_bytes)
            .set_data_page_size_limit(self.page_bytes)
            .set_max_row_group_row_count(Some(row_group_rows))
            .build()
    }
}

/// What a column takes before it has a value.
fn column_bytes(compression: ParquetCompression) -> usize {
    match compression {
        ParquetCompression::Zstd => ZSTD_COLUMN_BYTES,
        ParquetCompression::Snappy | ParquetCompression::None => COLUMN_BYTES,
    }
}

impl ParquetWriter {
    /// Begins a file.
    ///
    /// # Errors
    /// 1038 without memory for a row group of a few rows.
    pub(super) fn new(
        file: NewFile,
        options: ParquetOptions,
        columns: &[ColumnInfo],
        schema: &Schema,
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<ParquetWriter, MySqlError> {
        let budget_bytes = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes,
            _ => usize::MAX,
        };
        let schema = schema_of(columns, schema);
        let sizes = Sizes::of(budget_bytes, columns.len(), options.compression);
        let rows = options.row_group_rows.map(usize::try_from);
        let rows = rows.and_then(Result::ok).unwrap_or(ROW_GROUP_ROWS);
        let memory = MemoryConsumer::new("row groups of written files").register(pool);
        let floor = sizes.reserve(&memory);
        let floor = floor.map_err(|error| shortage(file.path(), &error))?;
        let pages = Arc::new(PageCount::default());
        let stores: Arc<dyn PageStoreFactory> = Arc::new(CountedPages(Arc::clone(&pages)));
        let settings = ArrowWriterOptions::new()
            .with_properties(sizes.properties(rows))
            .with_page_store_factory(stores);
        let writer =
            ArrowWriter::try_new_with_options(file.writer()?, Arc::clone(&schema), settings);
        Ok(ParquetWriter {
            writer: writer.map_err(|error| failed(file.path(), error, 0))?,
            file,
            schema,
            sizes,
            pages,
            memory,
            floor,
        })
    }

    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<(), MySqlError> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        let batch = self.conformed(batch)?;
        let pieces = bytes_of(&batch).div_ceil(PIECE_BYTES).max(1);
        let piece_rows = rows.div_ceil(pieces);
        let mut start = 0;
        while start < rows {
            let piece = batch.slice(start, piece_rows.min(rows - start));
            self.write_piece(&piece)?;
            start += piece.num_rows();
        }
        Ok(())
    }

    /// A batch with the types and names of the file.
    fn conformed(&self, batch: &RecordBatch) -> Result<RecordBatch, MySqlError> {
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| match column.data_type() {
            same if same == field.data_type() => Ok(Arc::clone(column)),
            _ => cast(column, field.data_type()),
        });
        let columns = columns.collect::<Result<Vec<ArrayRef>, _>>();
        let conformed =
            columns.and_then(|columns| RecordBatch::try_new(Arc::clone(&self.schema), columns));
        conformed.map_err(|error| errors::from_plan(&error.into()))
    }

    /// Encodes some rows. Where memory is short the row group ends, and then they are encoded by
    /// halves.
    fn write_piece(&mut self, piece: &RecordBatch) -> Result<(), MySqlError> {
        let bytes = bytes_of(piece);
        let more_bytes = COPIES.saturating_mul(bytes);
        if self.reserve(more_bytes).is_err() {
            self.end_row_group()?;
            if let Err(error) = self.reserve(more_bytes) {
                let rows = piece.num_rows();
                if rows < 2 || bytes <= PIECE_BYTES_MIN {
                    return Err(shortage(self.file.path(), &error));
                }
                let half = rows / 2;
                self.write_piece(&piece.slice(0, half))?;
                return self.write_piece(&piece.slice(half, rows - half));
            }
        }
        let written = self.writer.write(piece);
        written.map_err(|error| self.failed(error))?;
        if self.writer.memory_size() >= self.sizes.row_group_bytes {
            self.end_row_group()?;
        }
        Ok(())
    }

    /// Reserves what is held and that many bytes more.
    fn reserve(&self, more_bytes: usize) -> Result<(), DataFusionError> {
        let bytes = self.held_bytes().saturating_add(more_bytes);
        self.memory.try_resize(bytes.max(self.floor.bytes))
    }

    fn end_row_group(&mut self) -> Result<(), MySqlError> {
        let ended = self.writer.flush();
        ended.map_err(|error| self.failed(error))
    }

    /// What the file holds in memory, with what its next row group takes from its beginning.
    fn held_bytes(&self) -> usize {
        let row_groups = self.writer.flushed_row_groups().len();
        let described = row_groups * self.sizes.columns * COLUMN_CHUNK_BYTES
            + self.pages.pages.load(Ordering::Relaxed) * PAGE_INDEX_BYTES;
        let contexts = self.pages.contexts.load(Ordering::Relaxed);
        let contexts = contexts.max(self.floor.contexts);
        described
            + self.sizes.base_bytes()
            + self.sizes.context_bytes(contexts)
            + self.writer.memory_size()
    }

    fn failed(&self, error: ParquetError) -> MySqlError {
        let row_groups = self.writer.flushed_row_groups().len();
        failed(self.file.path(), error, row_groups)
    }

    pub(super) fn finish(mut self) -> Result<NewFile, MySqlError> {
        let finished = self.writer.finish();
        finished.map_err(|error| self.failed(error))?;
        Ok(self.file)
    }
}

/// The fields of the file: any may be NULL, and each tells its MySQL type if its Arrow type does
/// not.
fn schema_of(columns: &[ColumnInfo], schema: &Schema) -> SchemaRef {
    let fields = columns.iter().zip(schema.fields()).map(|(column, field)| {
        declaring_field(&column.name, &column.column_type, field.data_type())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Bytes of the values of a batch.
fn bytes_of(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter();
    columns.map(|column| own_bytes(column)).sum()
}

/// The error of a row group that finds no memory.
fn shortage(path: &str, error: &DataFusionError) -> MySqlError {
    let mut error = errors::from_plan(error);
    let place = format!("; a row group of file '{path}' is being written");
    error.message.push_str(&place);
    error
}

/// The error of the encoder, which may be that of the file, or that it has all row groups that a
/// file can have.
fn failed(path: &str, error: ParquetError, row_groups: usize) -> MySqlError {
    if let ParquetError::External(cause) = &error
        && let Some(cause) = cause.downcast_ref::<io::Error>()
    {
        return cannot_write(path, cause);
    }
    if row_groups >= ROW_GROUPS_MAX {
        let text = format!(
            "Error writing file '{path}': Parquet has at most {row_groups} row groups a file; a \
             larger ROW_GROUP_SIZE, or more memory, makes fewer"
        );
        return MySqlError::with_message(ErrorCode::FileWrite, text);
    }
    errors::from_plan(&DataFusionError::ParquetError(Box::new(error)))
}

/// Counts the pages of a file, and the columns that have some in the row group.
#[derive(Debug, Default)]
struct PageCount {
    pages: AtomicUsize,
    contexts: AtomicUsize,
}

/// Makes the places where columns keep the pages of a row group.
#[derive(Debug)]
struct CountedPages(Arc<PageCount>);

impl PageStoreFactory for CountedPages {
    fn create(&self, _: &PageStoreArgs<'_>) -> ParquetResult<Box<dyn PageStore>> {
        Ok(Box::new(ColumnPages {
            count: Arc::clone(&self.0),
            pages: InMemoryPageStore::default(),
            is_used: false,
        }))
    }
}

/// The pages of a column. They are in memory; what compressed the first of them is, too, and is
/// counted beside them: it is no part of what the row group holds.
struct ColumnPages {
    count: Arc<PageCount>,
    pages: InMemoryPageStore,
    is_used: bool,
}

impl PageStore for ColumnPages {
    fn put(&mut self, value: Bytes) -> ParquetResult<PageKey> {
        if !self.is_used {
            self.is_used = true;
            self.count.contexts.fetch_add(1, Ordering::Relaxed);
        }
        self.count.pages.fetch_add(1, Ordering::Relaxed);
        self.pages.put(value)
    }

    fn take(&mut self, key: PageKey) -> ParquetResult<Bytes> {
        self.pages.take(key)
    }

    fn memory_size(&self) -> usize {
        self.pages.memory_size()
    }
}

impl Drop for ColumnPages {
    fn drop(&mut self) {
        if self.is_used {
            self.count.contexts.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::datatypes::{DataType, Field};
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::parquet::file::reader::{FileReader, SerializedFileReader};
    use mayfly_types::ColumnType;

    use super::*;
    use crate::file_access::FileAccess;

    #[test]
    fn parts_of_a_file_fit_its_budget() {
        let of = |budget_bytes, columns| Sizes::of(budget_bytes, columns, None);
        for (budget_bytes, columns) in [
            (16 << 20, 1),
            (16 << 20, 12),
            (16 << 20, 500),
            (64 << 20, 40),
            (1 << 30, 200),
            (usize::MAX, 4096),
        ] {
            let sizes = of(budget_bytes, columns);
            assert!(sizes.row_group_bytes <= budget_bytes / 4);
            let [best, small, smallest] = sizes.floors().map(|floor| floor.bytes);
            assert!(smallest < small && small < best, "{sizes:?}");
            assert!(best <= budget_bytes / 2, "{sizes:?}");
        }
        // Few columns have dictionaries and zstd, more have dictionaries alone, and many neither.
        let parts = |columns| {
            let sizes = of(16 << 20, columns);
            (sizes.compression, sizes.has_dictionaries)
        };
        assert_eq!(parts(3), (ParquetCompression::Zstd, true));
        assert_eq!(parts(4), (ParquetCompression::Snappy, true));
        assert_eq!(parts(20), (ParquetCompression::Snappy, true));
        assert_eq!(parts(100), (ParquetCompression::Snappy, false));
        let asked = Sizes::of(16 << 20, 100, Some(ParquetCompression::Zstd));
        assert_eq!(asked.compression, ParquetCompression::Zstd);
        assert!(!asked.has_dictionaries);
    }

    /// Whoever computes the rows takes all memory that there is, and all that is given back.
    #[test]
    fn rows_are_written_while_others_take_all_memory() {
        let directory = std::env::temp_dir();
        let path = directory.join(format!("mayfly-row-groups-{}", std::process::id()));
        let path = path.display().to_string();
        let file = NewFile::create(&FileAccess::All, &path).expect("a new file");
        let columns = ["a", "b", "c", "d"].map(|name| ColumnInfo {
            name: name.to_owned(),
            column_type: ColumnType::BigInt { unsigned: false },
            nullable: true,
            origin: None,
        });
        let fields = columns.iter().map(|column| {
            let name = column.name.as_str();
            Field::new(name, DataType::Int64, true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(16 << 20));
        let options = ParquetOptions::default();
        let writer = ParquetWriter::new(file, options, &columns, &schema, &pool);
        let mut writer = writer.expect("memory for a row group");
        let taken = MemoryConsumer::new("others").register(&pool);
        let mut state = 1_u64;
        for _ in 0..100 {
            while taken.try_grow(64 << 10).is_ok() {}
            // No two values are alike, so that they stay as long as they are.
            let column = (0..8192).map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                state.cast_signed()
            });
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(column));
            let columns = vec![column; 4];
            let batch = RecordBatch::try_new(Arc::clone(&schema), columns);
            let written = writer.write(&batch.expect("columns of the schema"));
            written.expect("memory for the next rows");
        }
        // Memory was short, and yet no batch was torn.
        let row_groups = writer.writer.flushed_row_groups();
        assert!((2..=100).contains(&row_groups.len()));
        let done = writer.finish().expect("a file");
        let read = SerializedFileReader::new(File::open(&path).expect("it is there"));
        let read = read.expect("a file of Parquet");
        assert_eq!(read.metadata().file_metadata().num_rows(), 819_200);
        drop(done);
        assert!(!std::path::Path::new(&path).exists());
    }
}
