//! One text file: how its chunks are read.

use std::io::Read;
use std::sync::Arc;

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use mayfly_records::{Chunk, ChunkReader, CsvReader, Error, Format, JsonReader, Limits, Reserve};
use mayfly_types::MySqlError;

use super::{cannot_open, decompress, wrong};
use crate::file_access::FileAccess;

/// Bytes that are reserved for each byte of a long record: itself, and its value in a column.
const COPIES: usize = 2;

/// How the text files of one table are read.
#[derive(Clone, Debug)]
pub(super) struct TextOptions {
    pub(super) format: Format,
    pub(super) compression: FileCompressionType,
    pub(super) access: FileAccess,
    /// Bytes of the longest record.
    pub(super) record_bytes_max: usize,
}

/// The file, and what its fields are.
#[derive(Clone, Debug)]
pub(super) struct TextFile {
    pub(super) path: String,
    /// Whether the first line is no row.
    pub(super) has_header: bool,
    /// For each field of a record of CSV, the column of the table that it is.
    pub(super) columns: Vec<usize>,
}

/// Memory of long records, out of a statement's.
#[derive(Debug)]
pub(crate) struct RecordMemory(MemoryReservation);

impl RecordMemory {
    pub(crate) fn of(pool: &Arc<dyn MemoryPool>) -> RecordMemory {
        RecordMemory(MemoryConsumer::new("records of text files").register(pool))
    }
}

impl Reserve for RecordMemory {
    fn grow(&mut self, bytes: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.0
            .try_grow(bytes)
            .map_err(|error: DataFusionError| error.into())
    }

    fn take(&mut self) -> RecordMemory {
        RecordMemory(self.0.take())
    }
}

pub(super) type FileChunk = Chunk<RecordMemory>;
pub(super) type FileReader = ChunkReader<Box<dyn Read + Send>, RecordMemory>;

impl TextOptions {
    /// Opens a file.
    pub(super) fn open(
        &self,
        path: &str,
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<FileReader, MySqlError> {
        let unopened = |error: &std::io::Error| cannot_open(path, error);
        let file = self
            .access
            .open_regular(path)
            .map_err(|error| unopened(&error))?;
        let reader = decompress::reader(file, self.compression, path, pool);
        let reader = reader.map_err(|error| unopened(&error))?;
        let limits = Limits {
            record_bytes_max: self.record_bytes_max,
            copies: COPIES,
        };
        Ok(ChunkReader::new(
            reader,
            self.format,
            limits,
            RecordMemory::of(pool),
        ))
    }
}

/// Reads the fields of records.
pub(super) enum FieldReader {
    Csv(CsvReader),
    Json(JsonReader),
}

impl FieldReader {
    pub(super) fn read(
        &mut self,
        chunk: &mut FileChunk,
        cells: &mut mayfly_records::Cells,
        rows_max: usize,
    ) -> Result<(), Error> {
        match self {
            FieldReader::Csv(reader) => reader.read(chunk, cells, rows_max),
            FieldReader::Json(reader) => reader.read(chunk, cells, rows_max),
        }
    }
}

/// The error of a record of a file.
pub(super) fn of_file<'a>(path: &'a str) -> impl Fn(Error) -> MySqlError + 'a {
    move |error| wrong::of_record(error, path)
}
