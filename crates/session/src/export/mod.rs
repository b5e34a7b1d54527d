//! The rows of a query as a file: SELECT ... INTO OUTFILE.
//!
//! The statement says the format, or the name of the file does: a name that ends as those of files
//! that can be read as tables (see `files`) means what is written there to be read so. CHARACTER
//! SET, FIELDS and LINES mean MySQL's text, whatever the name.
//!
//! Rows are written as they come: what is held is a buffer, or one row group of Parquet that the
//! budget has room for.
//!
//! ```text
//!   mod ----> text -----> delimited     what LOAD DATA reads
//!     |          \------> sink          compressed, or not
//!     \-----> parquet                   row groups and their memory
//! ```

mod delimited;
mod parquet;
mod sink;
mod text;

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::execution::memory_pool::MemoryPool;
use mayfly_sql::file_name::FileKind;
use mayfly_sql::statement::{CsvOptions, FileFormat, OutFileFormat, ParquetOptions, RowFormat};
use mayfly_types::{CharacterSet, ErrorCode, Level, MySqlError, Warning};

use self::delimited::DelimitedRows;
use self::parquet::ParquetWriter;
use self::sink::Sink;
use self::text::{TextRows, TextWriter};
use crate::column_info::ColumnInfo;
use crate::errors;
use crate::files::{compression, named};
use crate::new_file::NewFile;
use crate::row_text::JsonRows;

/// How a statement writes its rows.
pub(crate) struct Export {
    layout: Layout,
    compression: FileCompressionType,
    /// Where the name alone said so, and MySQL would have written its text: the format.
    told_by_name: Option<&'static str>,
}

enum Layout {
    Delimited(CharacterSet, FileFormat),
    Rows(RowFormat),
}

impl Export {
    /// What a statement asks for.
    ///
    /// # Errors
    /// 1235 for what cannot be written.
    pub(crate) fn of(path: &str, asked: OutFileFormat) -> Result<Export, MySqlError> {
        let delimited = |set, format| Export {
            layout: Layout::Delimited(set, format),
            compression: FileCompressionType::UNCOMPRESSED,
            told_by_name: None,
        };
        let export = match asked {
            OutFileFormat::Delimited {
                character_set,
                format,
            } => delimited(character_set.unwrap_or_default(), format),
            OutFileFormat::Named(format) => Export {
                layout: Layout::Rows(format),
                compression: compression(path),
                told_by_name: None,
            },
            OutFileFormat::OfName => match named(path) {
                None if is_compressed_parquet(path) => return Err(compressed_parquet()),
                None => delimited(CharacterSet::default(), FileFormat::default()),
                Some(kind) => {
                    let (format, told_by_name) = match kind {
                        FileKind::Parquet => (RowFormat::Parquet(ParquetOptions::default()), None),
                        FileKind::Csv => (RowFormat::Csv(CsvOptions::COMMAS), Some("CSV")),
                        FileKind::Tsv => (RowFormat::Csv(CsvOptions::TABS), Some("TSV")),
                        FileKind::Json => (RowFormat::Json, Some("JSON")),
                    };
                    Export {
                        layout: Layout::Rows(format),
                        compression: compression(path),
                        told_by_name,
                    }
                }
            },
        };
        export.check()?;
        Ok(export)
    }

    fn check(&self) -> Result<(), MySqlError> {
        match &self.layout {
            Layout::Delimited(_, format)
                if format.field_terminator.is_empty() && format.enclosure.is_none() =>
            {
                let what = "INTO OUTFILE with fields of fixed size";
                Err(errors::not_supported(what))
            }
            Layout::Delimited(..) => Ok(()),
            Layout::Rows(RowFormat::Parquet(_)) if self.compression.is_compressed() => {
                Err(compressed_parquet())
            }
            Layout::Rows(_) => sink::check(self.compression),
        }
    }

    /// A note where a script that was written for MySQL would be surprised.
    pub(crate) fn note(&self, path: &str) -> Option<Warning> {
        let name = self.told_by_name?;
        let text = format!(
            "The file '{path}' is written as {name}, as its name says; FIELDS or LINES write \
             what LOAD DATA reads"
        );
        Some(Warning {
            level: Level::Note,
            error: MySqlError::with_message(ErrorCode::Unknown, text),
        })
    }

    /// Checks the names of the columns, which a format with names keeps apart.
    ///
    /// # Errors
    /// 1060 for a name that comes twice, 1113 where there is no column.
    pub(crate) fn check_columns(&self, columns: &[ColumnInfo]) -> Result<(), MySqlError> {
        if let Layout::Delimited(..) = self.layout {
            return Ok(());
        }
        if columns.is_empty() {
            return Err(MySqlError::new(ErrorCode::TableMustHaveColumns, &[]));
        }
        let is_nameless = matches!(
            &self.layout,
            Layout::Rows(RowFormat::Csv(options)) if !options.has_header
        );
        let mut seen = HashSet::new();
        let mut names = columns.iter().map(|column| &column.name);
        match names.find(|name| !seen.insert(name.to_lowercase())) {
            Some(name) if !is_nameless => Err(MySqlError::new(ErrorCode::DuplicateColumn, &[name])),
            _ => Ok(()),
        }
    }

    /// Begins to write a file.
    ///
    /// # Errors
    /// 1038 without memory for what compresses it, 1235 for a column that the format has no type
    /// for.
    pub(crate) fn begin(
        self,
        file: NewFile,
        columns: Vec<ColumnInfo>,
        schema: &Schema,
        pool: &Arc<dyn MemoryPool>,
    ) -> Result<FileWriter, MySqlError> {
        let (rows, has_header) = match self.layout {
            Layout::Rows(RowFormat::Parquet(options)) => {
                let writer = ParquetWriter::new(file, options, &columns, schema, pool)?;
                return Ok(FileWriter::Parquet(Box::new(writer)));
            }
            Layout::Rows(RowFormat::Csv(options)) => {
                let delimiter = options.delimiter;
                let rows = TextRows::Csv { columns, delimiter };
                (rows, options.has_header)
            }
            Layout::Rows(RowFormat::Json) => {
                let rows = JsonRows::new(&columns);
                (TextRows::Json { columns, rows }, false)
            }
            Layout::Delimited(set, format) => {
                let rows = DelimitedRows::new(&format, set, columns);
                (TextRows::Delimited(rows), false)
            }
        };
        let path = file.path().to_owned();
        let sink = Sink::new(file, self.compression, pool)?;
        let writer = TextWriter::new(&path, sink, rows, has_header, pool);
        Ok(FileWriter::Text(Box::new(writer)))
    }
}

/// Whether a name is that of Parquet but for an ending of compressed files behind it.
fn is_compressed_parquet(path: &str) -> bool {
    let inner = path.rsplit_once('.').map(|(inner, _)| inner);
    compression(path).is_compressed() && inner.and_then(named) == Some(FileKind::Parquet)
}

fn compressed_parquet() -> MySqlError {
    errors::not_supported("Parquet in a file that is compressed as a whole")
}

/// A file that is being written. It goes if it is dropped before it is finished.
pub(crate) enum FileWriter {
    Text(Box<TextWriter>),
    Parquet(Box<ParquetWriter>),
}

impl FileWriter {
    /// Whether fields may hold what ends them, unescaped.
    pub(crate) fn is_end_ambiguous(&self) -> bool {
        match self {
            FileWriter::Text(writer) => writer.is_end_ambiguous(),
            FileWriter::Parquet(_) => false,
        }
    }

    /// Writes some rows.
    ///
    /// # Errors
    /// 1026 where the file takes no more, 1038 where there is no memory for them.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), MySqlError> {
        match self {
            FileWriter::Text(writer) => writer.write(batch),
            FileWriter::Parquet(writer) => writer.write(batch),
        }
    }

    /// Ends the file, which then is whole.
    ///
    /// # Errors
    /// 1026 where the file takes no more.
    pub(crate) fn finish(self) -> Result<NewFile, MySqlError> {
        match self {
            FileWriter::Text(writer) => writer.finish(),
            FileWriter::Parquet(writer) => writer.finish(),
        }
    }
}
