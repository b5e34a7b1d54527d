//! Files as tables: `SELECT ... FROM 'file.parquet'`.
//!
//! The name decides the format: `.parquet`, `.csv`, `.tsv` (or `.tab`), `.json` (or `.jsonl`,
//! `.ndjson`: one object a line); the text formats also with `.gz`, `.zst`, `.bz2` or `.xz`
//! behind. A name with `*`, `?` or `[...]` means all files that match; they must agree in their
//! columns.
//!
//! The first line of a CSV or TSV file is its header if no field of it is empty, a number or a
//! date, and all fields differ; otherwise columns are called `column_1`, `column_2`, ... . Types
//! are inferred from the first thousand rows. An empty field is NULL.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::json::JsonFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::session_state::SessionState;
use futures::StreamExt;
use mayfly_types::{ErrorCode, MySqlError};

use crate::errors;

/// Bytes of a text file that are looked at for a header.
const SNIFF_BYTES: u64 = 64 << 10;
/// Rows from which the types of a text file are inferred.
const INFER_ROWS: usize = 1000;
const ENOENT: i32 = 2;

/// Opens a file or a pattern of files as a table.
///
/// # Errors
/// 1017 when there is no such file, 1235 when its name says no known format.
pub(crate) async fn open(
    state: &SessionState,
    path: &str,
) -> Result<Arc<dyn TableProvider>, MySqlError> {
    let is_pattern = path.contains(['*', '?', '[']) && !Path::new(path).exists();
    if !is_pattern {
        let found = std::fs::metadata(path).map_err(|error| cannot_open(path, &error))?;
        if found.is_dir() {
            let error = std::io::Error::from(std::io::ErrorKind::IsADirectory);
            return Err(cannot_open(path, &error));
        }
        File::open(path).map_err(|error| cannot_open(path, &error))?;
    }
    let plan = |error| errors::from_plan(&error);
    let url = ListingTableUrl::parse(path).map_err(plan)?;
    let kind = Kind::of(path)?;
    let first = if is_pattern {
        let store = state.runtime_env().object_store(&url).map_err(plan)?;
        let mut files = url
            .list_all_files(state, store.as_ref(), &kind.suffix)
            .await
            .map_err(plan)?;
        match files.next().await {
            Some(file) => format!("/{}", file.map_err(plan)?.location),
            None => {
                let error = std::io::Error::from_raw_os_error(ENOENT);
                return Err(cannot_open(path, &error));
            }
        }
    } else {
        path.to_owned()
    };
    let format = kind
        .format(&first)
        .map_err(|error| cannot_open(&first, &error))?;
    let options = ListingOptions::new(format).with_file_extension(kind.suffix.clone());
    let config = ListingTableConfig::new(url).with_listing_options(options);
    let schema = config
        .options
        .as_ref()
        .expect("set in the line above")
        .infer_schema(state, &config.table_paths[0])
        .await
        .map_err(|error| unreadable(path, &error))?;
    if schema.fields().is_empty() {
        let text = format!("The file '{path}' is empty: it has no columns");
        return Err(MySqlError::with_message(ErrorCode::FileRead, text));
    }
    let table = ListingTable::try_new(config.with_schema(schema)).map_err(plan)?;
    Ok(Arc::new(table))
}

fn unreadable(path: &str, error: &datafusion::error::DataFusionError) -> MySqlError {
    let mut found = errors::from_plan(error);
    if found.is(ErrorCode::Unknown) || found.is(ErrorCode::FileRead) {
        let cause = found.message.trim_start_matches("Arrow error: ");
        let text = format!("Error reading file '{path}': {cause}");
        found = MySqlError::with_message(ErrorCode::FileRead, text);
    }
    found
}

/// The error for a file that is missing or may not be read.
pub(crate) fn cannot_open(path: &str, error: &std::io::Error) -> MySqlError {
    let number = error.raw_os_error().unwrap_or(0);
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text).to_owned();
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorCode::FileNotFound,
        _ => ErrorCode::FileRead,
    };
    MySqlError::new(code, &[&path, &number, &text])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Parquet,
    Csv,
    Tsv,
    Json,
}

struct Kind {
    shape: Shape,
    compression: FileCompressionType,
    /// The end of the name, as it is written.
    suffix: String,
}

impl Kind {
    fn of(path: &str) -> Result<Kind, MySqlError> {
        let lower = path.to_ascii_lowercase();
        let (rest, compression) = [
            (".gz", FileCompressionType::GZIP),
            (".zst", FileCompressionType::ZSTD),
            (".bz2", FileCompressionType::BZIP2),
            (".xz", FileCompressionType::XZ),
        ]
        .into_iter()
        .find_map(|(end, compression)| Some((lower.strip_suffix(end)?, compression)))
        .unwrap_or((lower.as_str(), FileCompressionType::UNCOMPRESSED));
        let shape = match rest.rsplit_once('.').map(|(_, extension)| extension) {
            Some("parquet" | "pq") if !compression.is_compressed() => Shape::Parquet,
            Some("csv") => Shape::Csv,
            Some("tsv" | "tab") => Shape::Tsv,
            Some("json" | "jsonl" | "ndjson") => Shape::Json,
            _ => {
                let what = format!(
                    "a table from '{path}': its name does not end in .parquet, .csv, .tsv or .json"
                );
                return Err(errors::not_supported(&what));
            }
        };
        let start = rest.rfind('.').unwrap_or(0);
        Ok(Kind {
            shape,
            compression,
            suffix: path[start..].to_owned(),
        })
    }

    fn format(&self, first: &str) -> std::io::Result<Arc<dyn FileFormat>> {
        let text = |delimiter: u8| -> std::io::Result<Arc<dyn FileFormat>> {
            let has_header = has_header(&self.head(first)?, delimiter);
            Ok(Arc::new(
                CsvFormat::default()
                    .with_has_header(has_header)
                    .with_delimiter(delimiter)
                    .with_schema_infer_max_rec(INFER_ROWS)
                    .with_newlines_in_values(true)
                    .with_file_compression_type(self.compression),
            ))
        };
        Ok(match self.shape {
            Shape::Parquet => Arc::new(ParquetFormat::default()),
            Shape::Csv => text(b',')?,
            Shape::Tsv => text(b'\t')?,
            Shape::Json => Arc::new(
                JsonFormat::default()
                    .with_schema_infer_max_rec(INFER_ROWS)
                    .with_file_compression_type(self.compression),
            ),
        })
    }

    /// The beginning of a file, decompressed.
    fn head(&self, path: &str) -> std::io::Result<String> {
        let file = File::open(path)?;
        let reader: Box<dyn Read> = self
            .compression
            .convert_read(file)
            .map_err(|error| std::io::Error::other(error.to_string()))?;
        let mut bytes = Vec::new();
        reader.take(SNIFF_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Whether the first line names the columns.
fn has_header(head: &str, delimiter: u8) -> bool {
    let Some(line) = head.lines().next() else {
        return false;
    };
    let fields: Vec<&str> = line
        .split(char::from(delimiter))
        .map(|field| field.trim().trim_matches('"'))
        .collect();
    let distinct: HashSet<&str> = fields.iter().copied().collect();
    distinct.len() == fields.len()
        && fields.iter().all(|field| {
            let looks_like_value = field.parse::<f64>().is_ok()
                || field.starts_with(|c: char| c.is_ascii_digit())
                    && field
                        .bytes()
                        .all(|byte| byte.is_ascii_digit() || b"-:/ .T".contains(&byte));
            !field.is_empty() && !looks_like_value
        })
}
