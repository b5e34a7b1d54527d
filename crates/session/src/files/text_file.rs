//! One text file: how its chunks are read.

use std::io::Read;
use std::sync::Arc;

use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::scalar::ScalarValue;
use mayfly_records::{
    Chunk, ChunkReader, CsvReader, CsvSyntax, Error, Format, JsonReader, Limits, NullTexts, Reserve,
};
use mayfly_types::MySqlError;

use super::wrong::cannot_open;
use super::{decompress, kind, wrong};
use crate::file_access::FileAccess;
use crate::spooled::KeptFile;

/// Bytes that are reserved for each byte of a long record: itself, and its value in a column.
const COPIES: usize = 2;

/// How the text files of one table are read.
#[derive(Clone, Debug)]
pub(super) struct TextOptions {
    pub(super) format: Format,
    pub(super) access: FileAccess,
    /// The standard input of the process, if that is the file.
    pub(super) input: Option<Arc<KeptFile>>,
    /// Bytes of the longest record.
    pub(super) record_bytes_max: usize,
    /// Whether the first line of a CSV file names its columns, where that was said.
    pub(super) header: Option<bool>,
    /// The fields of a CSV file that are NULL, where that was said.
    pub(super) nulls: Option<NullTexts>,
    /// Lines in front of the first one of a CSV file.
    pub(super) skip: u64,
}

/// The file, and what its fields are.
#[derive(Clone, Debug)]
pub(super) struct TextFile {
    pub(super) path: String,
    /// Whether the first line is no row.
    pub(super) has_header: bool,
    /// For each field of a record of CSV, the column of the table that it is.
    pub(super) columns: Vec<usize>,
    /// The values of the columns that are the same for all rows.
    pub(super) constants: Vec<ScalarValue>,
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
        let reader: Box<dyn Read + Send> = match &self.input {
            Some(input) => Box::new(input.reader()),
            None => {
                let file = self.access.open_regular(path);
                let reader = file.and_then(|file| {
                    let compression = kind::compression(path);
                    decompress::reader(file, compression, path, pool)
                });
                reader.map_err(|error| cannot_open(path, &error))?
            }
        };
        let limits = Limits {
            record_bytes_max: self.record_bytes_max,
            copies: COPIES,
        };
        let memory = RecordMemory::of(pool);
        let chunks = ChunkReader::new(reader, self.format, limits, memory);
        Ok(chunks.without_lines(self.skip))
    }

    /// A reader of the fields of CSV records, which become these columns.
    pub(super) fn csv(&self, syntax: CsvSyntax, columns: Vec<Option<usize>>) -> FieldReader {
        let reader = CsvReader::new(syntax, columns);
        FieldReader::Csv(reader.with_nulls(self.nulls.clone()))
    }

    /// Whether a field of a CSV file is NULL.
    pub(super) fn is_null(&self, field: &[u8]) -> bool {
        match &self.nulls {
            None => field.is_empty(),
            Some(nulls) => nulls.iter().any(|null| null.as_ref() == field),
        }
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
