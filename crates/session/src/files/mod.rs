//! Files as tables: `SELECT ... FROM 'file.parquet'`.
//!
//! The name decides the format, unless an option does: `.parquet`, `.csv`, `.tsv` (or `.tab`),
//! `.json` (or `.jsonl`, `.ndjson`: objects one after the other, or an array of them); the text
//! formats also with `.gz`, `.zst`, `.bz2` or `.xz` behind. A name with `*`, `?`, `[...]` or
//! `{...}` means all files that match, and that of a directory all in it. Their columns are matched
//! by name; CSV files must have the same columns, others have NULL for those that they lack.
//!
//! The first line of a CSV or TSV file is its header if no field of it is empty, a number or a
//! date, or if the rows below say so (see `header`); otherwise columns are called `column_1`,
//! `column_2`, ... . Types are those of the first rows, and widen until they hold all of them; what
//! a later row holds and its type does not is an error. An empty field is NULL. Options in
//! parentheses behind the name say otherwise (`mayfly_sql::file_name`).
//!
//! ```text
//!   mod ----> pattern, kind, delimiter    which files, and what they are
//!     \----> sample ----> header          which columns, of which types
//!     \----> type_options, constants      types of an option; columns of names and directories
//!     \----> text_table --> arrays        their rows
//!     \        \--------> text_file --> decompress, mayfly_records
//!      \---> parquet_table               Parquet beside constants
//!      \---> footer, store               Parquet below secure_file_priv
//!      \---> schema_types                the MySQL types that its schema declares
//! ```

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod arrays;
mod constants;
mod decompress;
mod delimiter;
mod footer;
mod header;
mod kind;
mod parquet_table;
mod pattern;
mod sample;
mod schema_types;
mod sign;
mod store;
mod text_file;
mod text_table;
mod type_options;
mod wrong;

use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
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
use datafusion::object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use futures::{StreamExt, TryStreamExt, stream};
use mayfly_exec::TimeSlice;
use mayfly_records::{CsvSyntax, Format, Guess, TextType};
use mayfly_sql::file_name::FileName;
use mayfly_types::{COLUMNS_MAX, ColumnType, ErrorCode, MySqlError, Warning};

use self::arrays::field_of;
use self::constants::Constants;
use self::header::Header;
use self::kind::Kind;
pub use self::kind::is_table_name;
pub(crate) use self::kind::{compression, named};
use self::parquet_table::ParquetTable;
use self::pattern::Found;
use self::sample::Sample;
pub(crate) use self::schema_types::declaring_field;
use self::schema_types::{undeclared, with_declared};
pub(crate) use self::store::FilesBelow;
pub(crate) use self::text_file::RecordMemory;
use self::text_file::{TextFile, TextOptions};
pub(crate) use self::text_table::TEXT_SCAN;
use self::text_table::TextTable;
pub(crate) use self::wrong::{cannot_open, of_record};
use crate::errors;
use crate::file_access::FileAccess;
use crate::spooled::KeptFile;

/// Rows of a file beyond the first of a pattern that are looked at for types, at least: each file
/// has half of the rows of the one before.
const SAMPLE_ROWS_MIN: u64 = 100;

/// What the files of a statement are read with.
pub(crate) struct FileSettings<'a> {
    pub(crate) state: &'a SessionState,
    pub(crate) access: &'a FileAccess,
    /// Pays for long records while their types are looked for.
    pub(crate) pool: Arc<dyn MemoryPool>,
    /// The standard input of the process, if that is the file.
    pub(crate) input: Option<Arc<KeptFile>>,
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
/// not agree, 1060 when a header names a column twice, 1117 when there are more than a table has,
/// 1210 for options that do not fit, 1054 for a type of a column that there is not.
pub(crate) async fn open(
    settings: &FileSettings<'_>,
    file: &FileName,
) -> Result<OpenedFile, MySqlError> {
    let path = file.path.as_str();
    let mut slice = TimeSlice::begin();
    let (kind, found) = match &settings.input {
        Some(input) => {
            let found = Found {
                paths: vec![path.to_owned()],
                bytes: input.bytes(),
                fixed_parts: None,
            };
            (Kind::of_input(file, input)?, found)
        }
        None => {
            let has_format = file.options.kind.is_some();
            let found = pattern::find(settings.access, path, has_format, &mut slice).await?;
            (Kind::of(file, &found.paths)?, found)
        }
    };
    let opening = Opening {
        settings,
        file,
        kind,
        found,
    };
    let opened = match opening.kind.text_format(&file.options) {
        None => OpenedFile {
            table: opening.typed().await?,
            warnings: Vec::new(),
        },
        Some(format) => opening.text(format, slice).await?,
    };
    match opened.table.schema().fields().is_empty() {
        true => Err(is_empty(path)),
        false => Ok(opened),
    }
}

/// The error of files that say of no column.
fn is_empty(path: &str) -> MySqlError {
    let text = format!("The file '{path}' is empty: it has no columns");
    MySqlError::with_message(ErrorCode::FileRead, text)
}

/// A file or a pattern on its way to a table.
struct Opening<'a> {
    settings: &'a FileSettings<'a>,
    file: &'a FileName,
    kind: Kind,
    found: Found,
}

impl Opening<'_> {
    fn state(&self) -> &SessionState {
        self.settings.state
    }

    fn store(&self, url: &ListingTableUrl) -> Result<Arc<dyn ObjectStore>, MySqlError> {
        let store = self.state().runtime_env().object_store(url);
        store.map_err(|error| errors::from_plan(&error))
    }

    /// Parquet files, which know the names and types of their columns.
    async fn typed(&self) -> Result<Arc<dyn TableProvider>, MySqlError> {
        let (mut urls, mut files) = (Vec::new(), Vec::new());
        for path in &self.found.paths {
            footer::check(self.settings.access, path)?;
            let url = url_of(path)?;
            let meta = self.store(&url)?.head(url.prefix()).await;
            files.push(meta.map_err(|error| unreadable(path, &error.into()))?);
            urls.push(url);
        }
        // Empty ones are left out of those that a pattern finds.
        let Some(first) = urls.first() else {
            return Err(is_empty(&self.file.path));
        };
        let schemas = self.schemas_of(&self.store(first)?, &files).await?;
        let schema = with_declared(&merged(&files, &schemas)?, &schemas);
        let format: Arc<dyn FileFormat> = Arc::new(ParquetFormat::default());
        let options = ListingOptions::new(format).with_file_extension("");
        let config = ListingTableConfig::new_with_multi_paths(urls);
        let config = config.with_listing_options(options).with_schema(schema);
        let table = ListingTable::try_new(config).map_err(|error| errors::from_plan(&error))?;
        let constants = self.constants_of(&self.found.paths, &names_of(&table.schema()))?;
        if constants.names.is_empty() {
            return Ok(Arc::new(table));
        }
        let types = constants.types();
        let fields = constants.names.iter().zip(&types);
        let fields = fields.map(|(name, text_type)| Arc::new(field_of(name, *text_type)));
        let locations = files.into_iter().map(|file| file.location);
        let values = locations.zip(constants.values(&types)?).collect();
        let table = ParquetTable::new(table, fields.collect(), values);
        Ok(Arc::new(table))
    }

    /// The columns of each file, with the MySQL types that it declares.
    async fn schemas_of(
        &self,
        store: &Arc<dyn ObjectStore>,
        files: &[ObjectMeta],
    ) -> Result<Vec<SchemaRef>, MySqlError> {
        let state = self.state();
        let format = ParquetFormat::default().with_skip_metadata(false);
        let schemas = stream::iter(files).map(|file| async {
            let schema = format.infer_schema(state, store, std::slice::from_ref(file));
            let schema = schema.await;
            schema.map_err(|error| unreadable(&path_of(file), &error))
        });
        let together = state.config_options().execution.meta_fetch_concurrency;
        // Without a box the compiler does not find it `Send` (Rust issue 64552).
        schemas.boxed().buffered(together.get()).try_collect().await
    }

    /// What is said of files beside their rows; `names` are the columns of these.
    fn constants_of(
        &self,
        paths: &[impl AsRef<str>],
        names: &[String],
    ) -> Result<Constants, MySqlError> {
        let constants = Constants::of(paths, names, &self.file.options, self.found.fixed_parts)?;
        if names.len().saturating_add(constants.names.len()) > COLUMNS_MAX {
            let place = "(with those of names of files)";
            return Err(wrong::too_many_columns(COLUMNS_MAX, place));
        }
        Ok(constants)
    }

    /// Text files: their columns are matched by name, and have types that hold the values of all.
    async fn text(&self, format: Format, mut slice: TimeSlice) -> Result<OpenedFile, MySqlError> {
        let (settings, said) = (self.settings, &self.file.options);
        let nulls = said.nulls.as_ref();
        let mut options = TextOptions {
            format,
            access: settings.access.clone(),
            input: settings.input.clone(),
            record_bytes_max: settings.record_bytes_max,
            header: said.header,
            nulls: nulls.map(|texts| texts.iter().map(|text| text.as_bytes().into()).collect()),
            skip: said.skip.unwrap_or_default(),
        };
        let mut columns = TextColumns::default();
        let mut files: Vec<TextFile> = Vec::with_capacity(self.found.paths.len());
        let mut warnings = Vec::new();
        let sampled = said.sample.unwrap_or(settings.infer_rows);
        let mut rows = match sampled {
            0 => u64::MAX,
            rows => rows,
        };
        for path in &self.found.paths {
            if let Format::Csv(syntax) = options.format
                && files.is_empty()
                && self.kind.guesses_delimiter(said)
            {
                let found = delimiter::guess(&options, syntax, path, &settings.pool, &mut slice);
                let found = found.await?;
                warnings.extend(found.warning);
                options.format = Format::Csv(CsvSyntax {
                    delimiter: found.sign,
                    ..syntax
                });
            }
            let sample = Sample::of(&options, path, rows, &settings.pool, &mut slice).await?;
            let Some(sample) = sample else {
                continue;
            };
            if sampled > 0 {
                let least = SAMPLE_ROWS_MIN.min(sampled);
                rows = (rows / 2).max(least);
            }
            warnings.extend(sample.warning);
            let places = match format {
                Format::Json => columns.add(&sample.header, path)?,
                Format::Csv(_) => columns.same(&sample.header, path)?,
            };
            for (place, guess) in places.iter().zip(&sample.guesses) {
                if let Some(known) = columns.guesses.get_mut(*place) {
                    known.join(guess);
                }
            }
            files.push(TextFile {
                path: path.clone(),
                has_header: sample.header.is_named(),
                columns: places,
                constants: Vec::new(),
            });
        }
        let types = columns.guesses.iter().map(Guess::text_type);
        let mut types: Vec<TextType> = types.collect();
        let names = columns.header.map(|(header, _)| header.names());
        let mut names = names.unwrap_or_default();
        let width = names.len();
        let mut is_declared = Vec::new();
        if width > 0 {
            let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
            let constants = self.constants_of(&paths, &names)?;
            types.extend(constants.types());
            names.extend(constants.names.iter().cloned());
            is_declared = type_options::apply(&said.types, &names, &mut types, &self.file.path)?;
            let values = constants.values(types.get(width..).unwrap_or_default())?;
            for (file, values) in files.iter_mut().zip(values) {
                file.constants = values;
            }
        }
        let fields = names.iter().zip(&types);
        let fields: Vec<Field> = fields.map(|(name, it)| field_of(name, *it)).collect();
        types.truncate(width);
        let table = TextTable {
            options,
            files,
            bytes: self.found.bytes,
            schema: Arc::new(Schema::new(fields)),
            types,
            is_declared,
        };
        Ok(OpenedFile {
            table: Arc::new(table),
            warnings,
        })
    }
}

/// The columns of all files; numbers of different kinds meet in DOUBLE.
fn merged(files: &[ObjectMeta], schemas: &[SchemaRef]) -> Result<Schema, MySqlError> {
    let schemas: Vec<Schema> = schemas.iter().map(|schema| undeclared(schema)).collect();
    if let Ok(merged) = Schema::try_merge(schemas.iter().cloned()) {
        return Ok(merged);
    }
    let mut fields: Vec<(Field, &ObjectMeta)> = Vec::new();
    for (file, schema) in files.iter().zip(&schemas) {
        for field in schema.fields() {
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
    let fields = fields.into_iter().map(|(field, _)| field);
    Ok(Schema::new(fields.collect::<Vec<_>>()))
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

/// The files of a table that is some, if their format knows the names of its columns.
pub(crate) fn listing_of(table: &Arc<dyn TableProvider>) -> Option<&ListingTable> {
    let with_constants = || {
        table
            .downcast_ref::<ParquetTable>()
            .map(ParquetTable::files)
    };
    table.downcast_ref::<ListingTable>().or_else(with_constants)
}

fn names_of(schema: &Schema) -> Vec<String> {
    let fields = schema.fields().iter();
    fields.map(|field| field.name().clone()).collect()
}

/// The path of a file from the root. A link is a file of its own: others may lead to the same one.
/// What `..` is depends on the links above it, so these are followed.
fn absolute(path: &str) -> std::io::Result<PathBuf> {
    let mut below = Vec::new();
    let mut components = Path::new(path).components();
    while let Some(component) = components.next_back() {
        if component == Component::ParentDir {
            let above = components.as_path().join("..");
            let resolved = above.canonicalize()?;
            return Ok(below
                .iter()
                .rev()
                .fold(resolved, |path, part| path.join(part)));
        }
        below.push(component);
    }
    std::path::absolute(path)
}

/// The address of a file, whose name may have any characters.
fn url_of(path: &str) -> Result<ListingTableUrl, MySqlError> {
    let absolute = absolute(path).map_err(|error| cannot_open(path, &error))?;
    let mut url = "file://".to_owned();
    for byte in absolute.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => url.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => url.push(char::from(*byte)),
            byte => url.push_str(&format!("%{byte:02X}")),
        }
    }
    ListingTableUrl::parse(url).map_err(|error| errors::from_plan(&error))
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
        found = wrong::read_error(path, cause);
    }
    found
}
