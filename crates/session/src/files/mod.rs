//! Files as tables: `SELECT ... FROM 'file.parquet'`.
//!
//! The name decides the format: `.parquet`, `.csv`, `.tsv` (or `.tab`), `.json` (or `.jsonl`,
//! `.ndjson`: one object a line); the text formats also with `.gz`, `.zst`, `.bz2` or `.xz`
//! behind. A name with `*`, `?` or `[...]` means all files that match. Their columns are matched by
//! name; CSV files must have the same columns, others have NULL for those that they lack.
//!
//! The first line of a CSV or TSV file is its header if no field of it is empty, a number or a
//! date, or if the rows below say so (see `header`); otherwise columns are called `column_1`,
//! `column_2`, ... . Types are those of the first rows, and widen until they hold all of them; what
//! a later row holds and its type does not is an error. An empty field is NULL.
//!
//! ```text
//!   mod ----> sample ----> header        which columns, of which types
//!     \----> text_table --> arrays       their rows
//!     \        \--------> text_file --> decompress, mayfly_records
//!      \---> footer, store, declared    Parquet below secure_file_priv, and its MySQL types
//! ```

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod arrays;
mod declared;
mod decompress;
mod footer;
mod header;
mod kind;
mod sample;
mod store;
mod text_file;
mod text_table;
mod wrong;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::session_state::SessionState;
use datafusion::object_store::{ObjectMeta, ObjectStore};
use futures::TryStreamExt;
use mayfly_exec::TimeSlice;
use mayfly_records::{Format, Guess};
use mayfly_types::{COLUMNS_MAX, ColumnType, ErrorCode, MySqlError, Warning};

use self::arrays::field_of;
pub(crate) use self::declared::declaration;
use self::declared::{Declarations, of_one};
use self::header::Header;
pub(crate) use self::kind::{Kind, Shape, compression_of};
use self::sample::Sample;
pub(crate) use self::store::FilesBelow;
pub(crate) use self::text_file::RecordMemory;
use self::text_file::{TextFile, TextOptions};
pub(crate) use self::text_table::TEXT_SCAN;
use self::text_table::TextTable;
pub(crate) use self::wrong::of_record;
use crate::errors;
use crate::file_access::FileAccess;

/// Rows of a file beyond the first of a pattern that are looked at for types, at least: each file
/// has half of the rows of the one before.
const SAMPLE_ROWS_MIN: u64 = 100;
const ENOENT: i32 = 2;

/// What the files of a statement are read with.
pub(crate) struct FileSettings<'a> {
    pub(crate) state: &'a SessionState,
    pub(crate) access: &'a FileAccess,
    /// Pays for long records while their types are looked for.
    pub(crate) pool: Arc<dyn MemoryPool>,
    /// `mayfly_infer_rows`; 0 is all.
    pub(crate) infer_rows: u64,
    /// `mayfly_max_record_bytes`.
    pub(crate) record_bytes_max: usize,
}

/// A file, or the files of a pattern, as a table.
pub(crate) struct OpenedFile {
    pub(crate) table: Arc<dyn TableProvider>,
    pub(crate) warnings: Vec<Warning>,
}

/// Opens a file or a pattern of files as a table.
///
/// # Errors
/// 1017 when there is no such file, 1235 when its name says no known format, 1024 when files do
/// not agree, 1060 when a header names a column twice, 1117 when there are more than a table has.
pub(crate) async fn open(
    settings: &FileSettings<'_>,
    path: &str,
) -> Result<OpenedFile, MySqlError> {
    let access = settings.access;
    access.check(path)?;
    let is_pattern = path.contains(['*', '?', '[']) && !Path::new(path).exists();
    let mut bytes = 0;
    if !is_pattern {
        let opened = access.open_regular(path);
        let found = opened.and_then(|file| file.metadata());
        bytes = found.map_err(|error| cannot_open(path, &error))?.len();
    }
    let opening = Opening {
        settings,
        path,
        url: ListingTableUrl::parse(path).map_err(|error| errors::from_plan(&error))?,
        kind: Kind::of(path).ok_or_else(|| nameless(path))?,
    };
    let files = match is_pattern {
        true => opening.matching().await?,
        false => Vec::new(),
    };
    // A link may lead away from where the pattern looks.
    for file in &files {
        access.check(&path_of(file))?;
    }
    let opened = match opening.kind.text_format() {
        None => {
            match is_pattern {
                true => files
                    .iter()
                    .try_for_each(|file| footer::check(access, &path_of(file)))?,
                false => footer::check(access, path)?,
            }
            OpenedFile {
                table: Arc::new(opening.typed(&files).await?),
                warnings: Vec::new(),
            }
        }
        Some(format) if is_pattern => {
            bytes = files.iter().map(|file| file.size).sum();
            let paths = files.iter().map(path_of).collect();
            opening.text(format, paths, bytes).await?
        }
        Some(format) => opening.text(format, vec![path.to_owned()], bytes).await?,
    };
    if opened.table.schema().fields().is_empty() {
        let text = format!("The file '{path}' is empty: it has no columns");
        return Err(MySqlError::with_message(ErrorCode::FileRead, text));
    }
    Ok(opened)
}

/// A file or a pattern on its way to a table.
struct Opening<'a> {
    settings: &'a FileSettings<'a>,
    path: &'a str,
    url: ListingTableUrl,
    kind: Kind,
}

impl Opening<'_> {
    fn state(&self) -> &SessionState {
        self.settings.state
    }

    fn store(&self) -> Result<Arc<dyn ObjectStore>, MySqlError> {
        let store = self.state().runtime_env().object_store(&self.url);
        store.map_err(|error| errors::from_plan(&error))
    }

    /// The files of the pattern that hold anything, in the order of their names.
    async fn matching(&self) -> Result<Vec<ObjectMeta>, MySqlError> {
        let store = self.store()?;
        let plan = |error| errors::from_plan(&error);
        // What the directory held for an earlier statement does not count.
        let listed = self
            .state()
            .runtime_env()
            .cache_manager
            .get_list_files_cache();
        if let Some(listed) = listed {
            listed.clear();
        }
        let files = self
            .url
            .list_all_files(self.state(), store.as_ref(), &self.kind.suffix)
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
            .infer_schema(self.state(), &self.url)
            .await
            .map_err(|error| unreadable(self.path, &error))
    }

    /// Parquet files, which know the names and types of their columns.
    async fn typed(&self, files: &[ObjectMeta]) -> Result<ListingTable, MySqlError> {
        let format: Arc<dyn FileFormat> = Arc::new(ParquetFormat::default());
        let declaring: Arc<dyn FileFormat> =
            Arc::new(ParquetFormat::default().with_skip_metadata(false));
        let options = self.options(Arc::clone(&format));
        let schema = if files.is_empty() {
            // One file, which agrees with itself.
            of_one(self.inferred(&self.options(declaring)).await?.as_ref())
        } else {
            let schema = match self.inferred(&options).await {
                Ok(schema) => schema,
                Err(error) if files.len() < 2 => return Err(error),
                Err(_) => self.merged(&format, files).await?,
            };
            self.declared(&declaring, files, schema).await?
        };
        let config = ListingTableConfig::new(self.url.clone());
        listing(config, options, schema)
    }

    /// The columns of files with the MySQL types that all of them declare.
    async fn declared(
        &self,
        format: &Arc<dyn FileFormat>,
        files: &[ObjectMeta],
        schema: SchemaRef,
    ) -> Result<SchemaRef, MySqlError> {
        let mut declarations = Declarations::default();
        for file in files {
            let file = self.of_file(format, file).await?;
            if !declarations.add(&file) {
                return Ok(schema);
            }
        }
        Ok(declarations.apply(&schema))
    }

    /// Text files: their columns are matched by name, and have types that hold the values of all.
    async fn text(
        &self,
        format: Format,
        paths: Vec<String>,
        bytes: u64,
    ) -> Result<OpenedFile, MySqlError> {
        let settings = self.settings;
        let options = TextOptions {
            format,
            compression: self.kind.compression,
            access: settings.access.clone(),
            record_bytes_max: settings.record_bytes_max,
        };
        let mut columns = TextColumns::default();
        let mut files = Vec::with_capacity(paths.len());
        let mut warnings = Vec::new();
        let mut rows = match settings.infer_rows {
            0 => u64::MAX,
            rows => rows,
        };
        let mut slice = TimeSlice::begin();
        for path in paths {
            let sample = Sample::of(&options, &path, rows, &settings.pool, &mut slice).await?;
            let Some(sample) = sample else {
                continue;
            };
            if settings.infer_rows > 0 {
                let least = SAMPLE_ROWS_MIN.min(settings.infer_rows);
                rows = (rows / 2).max(least);
            }
            warnings.extend(sample.warning);
            let places = match format {
                Format::Json => columns.add(&sample.header, &path)?,
                Format::Csv { .. } => columns.same(&sample.header, &path)?,
            };
            for (place, guess) in places.iter().zip(&sample.guesses) {
                if let Some(known) = columns.guesses.get_mut(*place) {
                    known.join(guess);
                }
            }
            files.push(TextFile {
                path,
                has_header: sample.header.is_named(),
                columns: places,
            });
        }
        let types = columns.guesses.iter().map(Guess::text_type);
        let types: Vec<_> = types.collect();
        let names = columns.header.map(|(header, _)| header.names());
        let names = names.unwrap_or_default();
        let fields = names.iter().zip(&types);
        let fields: Vec<Field> = fields.map(|(name, it)| field_of(name, *it)).collect();
        let table = TextTable {
            options,
            files,
            bytes,
            schema: Arc::new(Schema::new(fields)),
            types,
        };
        Ok(OpenedFile {
            table: Arc::new(table),
            warnings,
        })
    }

    async fn of_file(
        &self,
        format: &Arc<dyn FileFormat>,
        file: &ObjectMeta,
    ) -> Result<SchemaRef, MySqlError> {
        format
            .infer_schema(self.state(), &self.store()?, std::slice::from_ref(file))
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
                    let (this, that) = (describe(field), describe(known));
                    return Err(unlike(&path_of(file), &this, &path_of(from), &that));
                };
                *known = known.clone().with_data_type(data_type).with_nullable(true);
            }
        }
        let fields: Vec<Field> = fields.into_iter().map(|(field, _)| field).collect();
        Ok(Arc::new(Schema::new(fields)))
    }
}

/// The columns of some text files.
#[derive(Default)]
struct TextColumns {
    /// Their names, and the file that they are from.
    header: Option<(Header, String)>,
    guesses: Vec<Guess>,
}

impl TextColumns {
    /// The places of the columns of one more file, which must be the same.
    fn same(&mut self, header: &Header, path: &str) -> Result<Vec<usize>, MySqlError> {
        let width = header.names().len();
        self.guesses
            .resize(width.max(self.guesses.len()), Guess::default());
        let (first, from) = self
            .header
            .get_or_insert_with(|| (header.clone(), path.to_owned()));
        let places = header.places_in(first);
        places.ok_or_else(|| unlike(path, &header.describe(), from, &first.describe()))
    }

    /// The places of the columns of one more file, which may have new ones: 1117 for too many.
    fn add(&mut self, header: &Header, path: &str) -> Result<Vec<usize>, MySqlError> {
        let known = self.header.take().map(|(header, _)| header.names());
        let mut names = known.unwrap_or_default();
        let places = { names.iter().cloned().enumerate() }.map(|(place, name)| (name, place));
        let mut places_by_name: HashMap<String, usize> = places.collect();
        let mut places = Vec::new();
        for name in header.names() {
            let place = *places_by_name.entry(name.clone()).or_insert(names.len());
            if place == names.len() {
                names.push(name);
            }
            places.push(place);
        }
        if names.len() > COLUMNS_MAX {
            let place = format!("(with those of file '{path}')");
            return Err(wrong::too_many_columns(COLUMNS_MAX, &place));
        }
        self.guesses.resize(names.len(), Guess::default());
        self.header = Some((Header::Names(names), String::new()));
        Ok(places)
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

/// The error of two files that are not of one table.
fn unlike(file: &str, this: &str, other: &str, that: &str) -> MySqlError {
    let text = format!(
        "The file '{file}' has {this}, but '{other}' has {that}: they cannot be read together"
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

/// The error of a file whose name says no format.
fn nameless(path: &str) -> MySqlError {
    let what =
        format!("a table from '{path}': its name does not end in .parquet, .csv, .tsv or .json");
    errors::not_supported(&what)
}

/// The error for a file that is missing or may not be read.
pub(crate) fn cannot_open(path: &str, error: &std::io::Error) -> MySqlError {
    let told = error.get_ref().and_then(|inner| inner.downcast_ref());
    if let Some(told) = told {
        return MySqlError::clone(told);
    }
    let number = error.raw_os_error().unwrap_or(0);
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorCode::FileNotFound,
        _ => ErrorCode::FileRead,
    };
    MySqlError::new(code, &[&path, &number, &errors::reason(error)])
}
