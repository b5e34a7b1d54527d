//! Files as tables: `SELECT ... FROM 'file.parquet'`.
//!
//! The name decides the format: `.parquet`, `.csv`, `.tsv` (or `.tab`), `.json` (or `.jsonl`,
//! `.ndjson`: one object a line); the text formats also with `.gz`, `.zst`, `.bz2` or `.xz`
//! behind. A name with `*`, `?` or `[...]` means all files that match. Their columns are matched by
//! name; text files must have the same columns, others have NULL for those that they lack.
//!
//! The first line of a CSV or TSV file is its header if no field of it is empty, a number or a
//! date; otherwise columns are called `column_1`, `column_2`, ... . Types are inferred from the
//! first thousand rows. An empty field is NULL.

mod header;
mod misread;
mod together;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
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
use datafusion::object_store::{ObjectMeta, ObjectStore};
use futures::TryStreamExt;
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use self::header::Header;
use self::misread::TextTable;
use self::together::{Part, Together};
use crate::errors;
use crate::file_access::FileAccess;

/// Bytes of a text file that are looked at for a header.
const SNIFF_BYTES: u64 = 64 << 10;
/// Rows of a file from which its types are inferred.
const INFER_ROWS: usize = 1000;
/// Text files of a pattern whose rows are looked at for types; headers are read in all.
const INFER_FILES: usize = 64;
const ENOENT: i32 = 2;

/// Opens a file or a pattern of files as a table.
///
/// # Errors
/// 1017 when there is no such file, 1235 when its name says no known format, 1024 when files do
/// not agree, 1060 when a header names a column twice.
pub(crate) async fn open(
    state: &SessionState,
    access: &FileAccess,
    path: &str,
) -> Result<Arc<dyn TableProvider>, MySqlError> {
    access.check(path)?;
    let is_pattern = path.contains(['*', '?', '[']) && !Path::new(path).exists();
    if !is_pattern {
        let found = std::fs::metadata(path).map_err(|error| cannot_open(path, &error))?;
        if found.is_dir() {
            let error = std::io::Error::from(std::io::ErrorKind::IsADirectory);
            return Err(cannot_open(path, &error));
        }
        File::open(path).map_err(|error| cannot_open(path, &error))?;
    }
    let opening = Opening {
        state,
        path,
        url: ListingTableUrl::parse(path).map_err(|error| errors::from_plan(&error))?,
        kind: Kind::of(path)?,
    };
    let files = match is_pattern {
        true => {
            let files = opening.matching().await?;
            // A link may lead away from where the pattern looks.
            for file in &files {
                access.check(&format!("/{}", file.location))?;
            }
            files
        }
        false => Vec::new(),
    };
    let table = match (opening.kind.delimiter(), files.as_slice()) {
        (None, files) => Arc::new(opening.typed(files).await?),
        (Some(delimiter), []) => opening.text(delimiter).await?,
        (Some(delimiter), files) => opening.texts(delimiter, files).await?,
    };
    if table.schema().fields().is_empty() {
        let text = format!("The file '{path}' is empty: it has no columns");
        return Err(MySqlError::with_message(ErrorCode::FileRead, text));
    }
    Ok(table)
}

/// A file or a pattern on its way to a table.
struct Opening<'a> {
    state: &'a SessionState,
    path: &'a str,
    url: ListingTableUrl,
    kind: Kind,
}

impl Opening<'_> {
    fn store(&self) -> Result<Arc<dyn ObjectStore>, MySqlError> {
        let store = self.state.runtime_env().object_store(&self.url);
        store.map_err(|error| errors::from_plan(&error))
    }

    /// The files of the pattern that hold anything, in the order of their names.
    async fn matching(&self) -> Result<Vec<ObjectMeta>, MySqlError> {
        let store = self.store()?;
        let plan = |error| errors::from_plan(&error);
        // What the directory held for an earlier statement does not count.
        let listed = self
            .state
            .runtime_env()
            .cache_manager
            .get_list_files_cache();
        if let Some(listed) = listed {
            listed.clear();
        }
        let files = self
            .url
            .list_all_files(self.state, store.as_ref(), &self.kind.suffix)
            .await
            .map_err(plan)?;
        let mut files: Vec<ObjectMeta> = files.try_collect().await.map_err(plan)?;
        if files.is_empty() {
            let error = std::io::Error::from_raw_os_error(ENOENT);
            return Err(cannot_open(self.path, &error));
        }
        files.retain(|file| file.size > 0);
        files.sort_by(|a, b| a.location.cmp(&b.location));
        Ok(files)
    }

    fn options(&self, format: Arc<dyn FileFormat>) -> ListingOptions {
        ListingOptions::new(format).with_file_extension(self.kind.suffix.clone())
    }

    async fn inferred(&self, options: &ListingOptions) -> Result<SchemaRef, MySqlError> {
        options
            .infer_schema(self.state, &self.url)
            .await
            .map_err(|error| unreadable(self.path, &error))
    }

    /// Files that know the names of their columns: Parquet and JSON.
    async fn typed(&self, files: &[ObjectMeta]) -> Result<ListingTable, MySqlError> {
        let format = self.kind.format(false);
        let options = self.options(Arc::clone(&format));
        let schema = match self.inferred(&options).await {
            Ok(schema) => schema,
            Err(error) if files.len() < 2 => return Err(error),
            Err(_) => self.merged(&format, files).await?,
        };
        let config = ListingTableConfig::new(self.url.clone());
        listing(config, options, schema)
    }

    /// One text file.
    async fn text(&self, delimiter: u8) -> Result<Arc<dyn TableProvider>, MySqlError> {
        let has_header = self.header(self.path, delimiter)?.is_named();
        let options = self.options(self.kind.format(has_header));
        let schema = self.inferred(&options).await?;
        let config = ListingTableConfig::new(self.url.clone());
        Ok(Arc::new(TextTable {
            inner: listing(config, options, schema)?,
            has_header,
        }))
    }

    /// Text files whose columns are matched by the names in their headers.
    async fn texts(
        &self,
        delimiter: u8,
        files: &[ObjectMeta],
    ) -> Result<Arc<dyn TableProvider>, MySqlError> {
        let first = self.header(&path_of(&files[0]), delimiter)?;
        let has_header = first.is_named();
        let format = self.kind.format(has_header);
        let options = self.options(Arc::clone(&format));
        let schema = self.of_file(&format, &files[0]).await?;
        let mut types: Vec<DataType> = data_types(&schema);
        let mut groups: Vec<(Vec<usize>, Vec<ListingTableUrl>)> = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let header = self.header(&path_of(file), delimiter)?;
            let Some(places) = header.places_in(&first) else {
                let (this, that) = (header.describe(), first.describe());
                return Err(unlike(file, &this, &files[0], &that));
            };
            if (1..INFER_FILES).contains(&index) {
                let found = data_types(&*self.of_file(&format, file).await?);
                for (place, data_type) in places.iter().zip(&found) {
                    let known = &mut types[*place];
                    *known = widened(known, data_type).unwrap_or(DataType::Utf8);
                }
            }
            let url = url_of(file)?;
            match groups.iter_mut().find(|(known, _)| *known == places) {
                Some((_, urls)) => urls.push(url),
                None => groups.push((places, vec![url])),
            }
        }
        let fields: Vec<Field> = schema
            .fields()
            .iter()
            .zip(types)
            .map(|(field, data_type)| Field::new(field.name(), data_type, true))
            .collect();
        let whole = Arc::new(Schema::new(fields));
        if groups.len() == 1 {
            let config = ListingTableConfig::new(self.url.clone());
            return Ok(Arc::new(TextTable {
                inner: listing(config, options, whole)?,
                has_header,
            }));
        }
        let mut parts = Vec::with_capacity(groups.len());
        for (order, urls) in groups {
            let fields: Vec<Field> = order
                .iter()
                .map(|place| whole.field(*place).clone())
                .collect();
            let config = ListingTableConfig::new_with_multi_paths(urls);
            let inner = listing(config, options.clone(), Arc::new(Schema::new(fields)))?;
            let mut places = vec![0; order.len()];
            for (here, place) in order.into_iter().enumerate() {
                places[place] = here;
            }
            let table = Arc::new(TextTable { inner, has_header });
            parts.push(Part { table, places });
        }
        Ok(Arc::new(Together {
            schema: whole,
            parts,
        }))
    }

    fn header(&self, path: &str, delimiter: u8) -> Result<Header, MySqlError> {
        let head = self
            .kind
            .head(path)
            .map_err(|error| cannot_open(path, &error))?;
        Header::read(&head, char::from(delimiter))
    }

    async fn of_file(
        &self,
        format: &Arc<dyn FileFormat>,
        file: &ObjectMeta,
    ) -> Result<SchemaRef, MySqlError> {
        format
            .infer_schema(self.state, &self.store()?, std::slice::from_ref(file))
            .await
            .map_err(|error| unreadable(&path_of(file), &error))
    }

    /// The columns of all files; numbers of different kinds meet in DOUBLE.
    async fn merged(
        &self,
        format: &Arc<dyn FileFormat>,
        files: &[ObjectMeta],
    ) -> Result<SchemaRef, MySqlError> {
        let mut fields: Vec<(Field, &ObjectMeta)> = Vec::new();
        for file in files {
            for field in self.of_file(format, file).await?.fields() {
                let Some((known, from)) = fields.iter_mut().find(|(f, _)| f.name() == field.name())
                else {
                    fields.push((field.as_ref().clone(), file));
                    continue;
                };
                let Some(data_type) = widened(known.data_type(), field.data_type()) else {
                    let describe = |field: &Field| {
                        let column_type = ColumnType::from_arrow(field);
                        format!("column {} of type {column_type}", field.name())
                    };
                    return Err(unlike(file, &describe(field), from, &describe(known)));
                };
                *known = known.clone().with_data_type(data_type).with_nullable(true);
            }
        }
        let fields: Vec<Field> = fields.into_iter().map(|(field, _)| field).collect();
        Ok(Arc::new(Schema::new(fields)))
    }
}

fn listing(
    config: ListingTableConfig,
    options: ListingOptions,
    schema: SchemaRef,
) -> Result<ListingTable, MySqlError> {
    let config = config.with_listing_options(options).with_schema(schema);
    ListingTable::try_new(config).map_err(|error| errors::from_plan(&error))
}

fn data_types(schema: &Schema) -> Vec<DataType> {
    let types = schema
        .fields()
        .iter()
        .map(|field| field.data_type().clone());
    types.collect()
}

/// The type that holds the values of both, if there is one other than text.
fn widened(a: &DataType, b: &DataType) -> Option<DataType> {
    match (a, b) {
        _ if a == b => Some(a.clone()),
        (DataType::Null, other) | (other, DataType::Null) => Some(other.clone()),
        (DataType::Int64, DataType::Float64) | (DataType::Float64, DataType::Int64) => {
            Some(DataType::Float64)
        }
        _ => None,
    }
}

fn path_of(file: &ObjectMeta) -> String {
    format!("/{}", file.location)
}

/// The address of one file, whatever characters its name has.
fn url_of(file: &ObjectMeta) -> Result<ListingTableUrl, MySqlError> {
    let path = path_of(file)
        .replace('%', "%25")
        .replace('#', "%23")
        .replace('?', "%3F");
    ListingTableUrl::parse(format!("file://{path}")).map_err(|error| errors::from_plan(&error))
}

/// The error of two files that are not of one table.
fn unlike(file: &ObjectMeta, this: &str, other: &ObjectMeta, that: &str) -> MySqlError {
    let text = format!(
        "The file '{}' has {this}, but '{}' has {that}: they cannot be read together",
        path_of(file),
        path_of(other)
    );
    MySqlError::with_message(ErrorCode::FileRead, text)
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

    /// What separates the fields of a text file.
    fn delimiter(&self) -> Option<u8> {
        match self.shape {
            Shape::Csv => Some(b','),
            Shape::Tsv => Some(b'\t'),
            Shape::Parquet | Shape::Json => None,
        }
    }

    fn format(&self, has_header: bool) -> Arc<dyn FileFormat> {
        let text = |delimiter: u8| {
            CsvFormat::default()
                .with_has_header(has_header)
                .with_delimiter(delimiter)
                .with_schema_infer_max_rec(INFER_ROWS)
                .with_newlines_in_values(true)
                .with_file_compression_type(self.compression)
        };
        match self.shape {
            Shape::Parquet => Arc::new(ParquetFormat::default()),
            Shape::Csv => Arc::new(text(b',')),
            Shape::Tsv => Arc::new(text(b'\t')),
            Shape::Json => Arc::new(
                JsonFormat::default()
                    .with_schema_infer_max_rec(INFER_ROWS)
                    .with_file_compression_type(self.compression),
            ),
        }
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
