//! Text files as a table: CSV, TSV and JSON.
//!
//! One reader cuts the files into chunks of whole records, one file after the other. A scan of one
//! partition takes them all, so its rows come in the order of the files; where more are worth it,
//! each partition takes the next chunk when it has read its last. What is read from the chunks is
//! typed while it is read: a value that its column cannot hold ends the statement.
//!
//! **Cost**: a chunk and its batch for each partition (a quarter of a MiB of text), beyond the
//! budget; longer records are reserved from it before they are read.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use datafusion::scalar::ScalarValue;
use futures::Stream;
use mayfly_exec::TimeSlice;
use mayfly_records::{Cells, ChunkStep, CsvReader, CsvSyntax, Format, JsonReader, TextType};
use mayfly_types::{COLUMNS_MAX, MySqlError};

use super::arrays::array_of;
use super::sign;
use super::text_file::{FieldReader, FileChunk, FileReader, TextFile, TextOptions, of_file};
use super::wrong;

/// Values of a batch at most: rows of JSON may be much shorter than they are wide.
const VALUES_MAX: usize = 256 << 10;

/// The name of the operator in plans.
pub(crate) const TEXT_SCAN: &str = "TextScan";

/// Text files with the same columns.
#[derive(Debug)]
pub(super) struct TextTable {
    pub(super) options: TextOptions,
    pub(super) files: Vec<TextFile>,
    /// Bytes of the files, as they lie on disk.
    pub(super) bytes: u64,
    /// The columns of the records, and behind them those that are the same for all rows of a file.
    pub(super) schema: SchemaRef,
    /// The types of the columns of the records.
    pub(super) types: Vec<TextType>,
    /// For each column, whether its type was said and not guessed.
    pub(super) is_declared: Vec<bool>,
}

#[async_trait::async_trait]
impl TableProvider for TextTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = || (0..self.schema.fields().len()).collect();
        let projection: Vec<usize> = projection.cloned().unwrap_or_else(all);
        let table_names = self.schema.fields().iter().take(self.types.len());
        let schema = Arc::new(self.schema.project(&projection)?);
        let (mut read, mut output) = (Vec::new(), Vec::new());
        for column in projection {
            output.push(match column.checked_sub(self.types.len()) {
                Some(constant) => Output::Constant(constant),
                None => {
                    read.push(column);
                    Output::Read(read.len().saturating_sub(1))
                }
            });
        }
        let projection = read;
        let layout = Layout {
            options: self.options.clone(),
            files: self.files.clone(),
            bytes: self.bytes,
            table_columns: table_names.map(|field| field.name().clone()).collect(),
            schema,
            output,
            types: projection
                .iter()
                .filter_map(|column| self.types.get(*column).copied())
                .collect(),
            is_declared: projection
                .iter()
                .filter_map(|column| self.is_declared.get(*column).copied())
                .collect(),
            projection,
            limit,
        };
        Ok(Arc::new(TextScan::new(Arc::new(layout), 1)))
    }
}

/// What a scan reads.
#[derive(Debug)]
struct Layout {
    options: TextOptions,
    files: Vec<TextFile>,
    bytes: u64,
    /// The names of all columns of the records.
    table_columns: Vec<String>,
    /// The columns that are read: their places in the table, and their types.
    projection: Vec<usize>,
    types: Vec<TextType>,
    /// What becomes of them.
    schema: SchemaRef,
    output: Vec<Output>,
    is_declared: Vec<bool>,
    limit: Option<usize>,
}

/// Where a column of the rows is from.
#[derive(Debug)]
enum Output {
    /// The n-th one that is read.
    Read(usize),
    /// The n-th one that is the same for all rows of a file.
    Constant(usize),
}

impl Layout {
    /// A reader of the fields of a file.
    fn fields_of(&self, file: &TextFile) -> FieldReader {
        let mut places = vec![None; self.table_columns.len()];
        for (place, column) in self.projection.iter().enumerate() {
            if let Some(known) = places.get_mut(*column) {
                known.get_or_insert(place);
            }
        }
        let place = |column: usize| places.get(column).copied().flatten();
        match self.options.format {
            Format::Csv(syntax) => {
                let columns = file.columns.iter().map(|column| place(*column));
                self.options.csv(syntax, columns.collect())
            }
            Format::Json => {
                let keys = self.table_columns.iter().enumerate();
                let keys = keys.map(|(column, name)| (name.clone(), place(column)));
                FieldReader::Json(JsonReader::new(keys.collect()))
            }
        }
    }
}

/// Reads text files.
struct TextScan {
    layout: Arc<Layout>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    /// The chunks that partitions share, and which of them have begun to take some.
    shared: Mutex<(Option<Arc<Chunks>>, Vec<bool>)>,
}

impl TextScan {
    fn new(layout: Arc<Layout>, partitions: usize) -> TextScan {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&layout.schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        TextScan {
            layout,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            shared: Mutex::default(),
        }
    }

    fn partitions(&self) -> usize {
        self.properties.partitioning.partition_count()
    }

    /// The chunks that a partition takes from: those of the partitions that run with it. One that
    /// begins once more begins another run.
    fn chunks(&self, partition: usize, pool: &Arc<dyn MemoryPool>) -> Arc<Chunks> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let (chunks, begun) = &mut *shared;
        begun.resize(self.partitions(), false);
        let has_begun = begun.get(partition).copied().unwrap_or(true);
        if has_begun {
            begun.fill(false);
            *chunks = None;
        }
        if let Some(begun) = begun.get_mut(partition) {
            *begun = true;
        }
        let chunks = chunks.get_or_insert_with(|| {
            Arc::new(Chunks {
                layout: Arc::clone(&self.layout),
                pool: Arc::clone(pool),
                place: Mutex::default(),
            })
        });
        Arc::clone(chunks)
    }
}

impl ExecutionPlan for TextScan {
    fn name(&self) -> &'static str {
        TEXT_SCAN
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        let partitions = self.partitions();
        Ok(Arc::new(TextScan::new(
            Arc::clone(&self.layout),
            partitions,
        )))
    }

    fn repartitioned(
        &self,
        target_partitions: usize,
        config: &ConfigOptions,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let is_small = self.layout.bytes < config.optimizer.repartition_file_min_size as u64;
        if is_small || target_partitions <= self.partitions() {
            return Ok(None);
        }
        let scan = TextScan::new(Arc::clone(&self.layout), target_partitions);
        Ok(Some(Arc::new(scan)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let width = self.layout.projection.len().max(1);
        let rows_max = VALUES_MAX.checked_div(width).unwrap_or(VALUES_MAX).max(1);
        let rows = Rows {
            chunks: self.chunks(partition, context.memory_pool()),
            rows_max: context.session_config().batch_size().min(rows_max),
            left: self.layout.limit.unwrap_or(usize::MAX),
            current: None,
            fields: None,
            cells: Cells::new(self.layout.projection.len()),
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let schema = Arc::clone(&self.layout.schema);
        let batches = rows.batches();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

impl DisplayAs for TextScan {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = &self.layout;
        let names = layout
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str());
        let names: Vec<&str> = names.collect();
        write!(f, "{TEXT_SCAN}: files={}", layout.files.len())?;
        if let [file] = layout.files.as_slice() {
            write!(f, " ({})", file.path)?;
        }
        write!(f, ", columns=[{}]", names.join(", "))?;
        if let Format::Csv(CsvSyntax { delimiter, .. }) = layout.options.format
            && !b",\t".contains(&delimiter)
        {
            write!(f, ", delimiter={}", sign::named(delimiter))?;
        }
        if let Some(limit) = layout.limit {
            write!(f, ", limit={limit}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for TextScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(TEXT_SCAN)
            .field("files", &self.layout.files)
            .finish_non_exhaustive()
    }
}

/// The chunks of all files, one after the other.
struct Chunks {
    layout: Arc<Layout>,
    pool: Arc<dyn MemoryPool>,
    place: Mutex<ReadPlace>,
}

/// How far the files were read.
#[derive(Default)]
struct ReadPlace {
    /// The file that is read, or is read next.
    file: usize,
    reader: Option<FileReader>,
    /// Whether the header of the file is still to be read.
    is_before_header: bool,
    /// Whether nothing more is read: all was, or it failed.
    has_ended: bool,
}

/// What a step through the files has brought.
enum Taken {
    /// A chunk, and the number of its file.
    Chunk(usize, FileChunk),
    /// Nothing yet.
    Reading,
    End,
}

impl Chunks {
    /// Reads on towards the next chunk, which goes to whoever comes when it is there.
    fn step(&self, used: Option<FileChunk>) -> Result<Taken, MySqlError> {
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((reader, used)) = place.reader.as_mut().zip(used) {
            reader.recycle(used.into_buffer());
        }
        if place.has_ended {
            return Ok(Taken::End);
        }
        let taken = self.step_of(&mut place);
        place.has_ended = matches!(taken, Ok(Taken::End) | Err(_));
        if place.has_ended {
            place.reader = None;
        }
        taken
    }

    fn step_of(&self, place: &mut ReadPlace) -> Result<Taken, MySqlError> {
        let Some(file) = self.layout.files.get(place.file) else {
            return Ok(Taken::End);
        };
        let failed = of_file(&file.path);
        let reader = match &mut place.reader {
            Some(reader) => reader,
            None => {
                let opened = self.layout.options.open(&file.path, &self.pool)?;
                place.is_before_header = file.has_header;
                place.reader.insert(opened)
            }
        };
        let mut chunk = match reader.step().map_err(&failed)? {
            ChunkStep::Chunk(chunk) => chunk,
            ChunkStep::Reading => return Ok(Taken::Reading),
            ChunkStep::End => {
                place.reader = None;
                place.file = place.file.saturating_add(1);
                return Ok(Taken::Reading);
            }
        };
        if let Format::Csv(syntax) = self.layout.options.format
            && place.is_before_header
        {
            let header = CsvReader::header(syntax, &mut chunk, COLUMNS_MAX);
            // Blank lines may fill the chunks in front of it.
            place.is_before_header = header.map_err(&failed)?.is_none();
        }
        Ok(Taken::Chunk(place.file, chunk))
    }
}

/// The rows of one partition.
struct Rows {
    chunks: Arc<Chunks>,
    rows_max: usize,
    /// Rows that are still wanted; none at the end.
    left: usize,
    /// The chunk that is read, and the number of its file.
    current: Option<(usize, FileChunk)>,
    /// What reads the fields of that file.
    fields: Option<(usize, FieldReader)>,
    cells: Cells,
    metrics: BaselineMetrics,
}

impl Rows {
    /// The rows in batches. Others have their turn between two steps, also where a file has
    /// nothing but blank lines or a record of many chunks; a statement that was cancelled ends
    /// there.
    fn batches(self) -> impl Stream<Item = Result<RecordBatch>> + Send {
        let state = (self, TimeSlice::begin());
        futures::stream::try_unfold(state, |(mut rows, mut slice)| async move {
            while rows.left > 0 {
                slice.share().await;
                let stepped = rows.timed_step();
                let stepped = stepped.map_err(|error| DataFusionError::External(Box::new(error)));
                if let Some(batch) = stepped? {
                    return Ok(Some((batch, (rows, slice))));
                }
            }
            Ok(None)
        })
    }

    fn timed_step(&mut self) -> Result<Option<RecordBatch>, MySqlError> {
        let timer = self.metrics.elapsed_compute().clone();
        let _timed = timer.timer();
        let batch = self.step()?;
        if let Some(batch) = &batch {
            self.metrics.record_output(batch.num_rows());
        }
        Ok(batch)
    }

    /// Reads a batch from the current chunk, or on towards the next one.
    fn step(&mut self) -> Result<Option<RecordBatch>, MySqlError> {
        let layout = &self.chunks.layout;
        let (Some((file, chunk)), Some((_, fields))) = (&mut self.current, &mut self.fields) else {
            self.take_chunk()?;
            return Ok(None);
        };
        if chunk.is_read() {
            self.take_chunk()?;
            return Ok(None);
        }
        let Some(file) = layout.files.get(*file) else {
            return Ok(None);
        };
        let path = &file.path;
        let rows_max = self.rows_max.min(self.left);
        let read = fields.read(chunk, &mut self.cells, rows_max);
        read.map_err(of_file(path))?;
        if self.cells.rows() == 0 {
            return Ok(None);
        }
        self.left = self.left.saturating_sub(self.cells.rows());
        batch_of(layout, &self.cells, chunk, file).map(Some)
    }

    /// Gives the chunk back that was read, and reads on towards the next one.
    fn take_chunk(&mut self) -> Result<(), MySqlError> {
        let used = self.current.take().map(|(_, chunk)| chunk);
        match self.chunks.step(used)? {
            Taken::End => self.left = 0,
            Taken::Reading => {}
            Taken::Chunk(file, chunk) => {
                if self.fields.as_ref().is_none_or(|(of, _)| *of != file) {
                    let layout = &self.chunks.layout;
                    let opened = layout.files.get(file);
                    self.fields = opened.map(|opened| (file, layout.fields_of(opened)));
                }
                self.current = Some((file, chunk));
            }
        }
        Ok(())
    }
}

fn batch_of(
    layout: &Layout,
    cells: &Cells,
    chunk: &FileChunk,
    file: &TextFile,
) -> Result<RecordBatch, MySqlError> {
    let path = &file.path;
    let texts = cells.texts(chunk).map_err(of_file(path))?;
    let schema: &Schema = &layout.schema;
    let columns = layout.output.iter().zip(schema.fields());
    let arrays = columns.map(|(output, field)| {
        let column = match output {
            Output::Read(column) => *column,
            Output::Constant(constant) => {
                let value = file.constants.get(*constant).unwrap_or(&ScalarValue::Null);
                let repeated = value.to_array_of_size(cells.rows());
                return repeated.map_err(|error| crate::errors::from_plan(&error));
            }
        };
        let text_type = layout.types.get(column).copied().unwrap_or(TextType::Text);
        array_of(cells, column, texts, text_type).map_err(|wrong| {
            let line = cells.line(wrong.row);
            let is_declared = layout.is_declared.get(column) == Some(&true);
            let value = cells.column(column).nth(wrong.row);
            let value = value.map_or("", |cell| texts.get(cell));
            wrong::of_value(value, text_type, field, is_declared, line, path)
        })
    });
    let arrays = arrays.collect::<Result<Vec<_>, MySqlError>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(cells.rows()));
    let schema = Arc::clone(&layout.schema);
    RecordBatch::try_new_with_options(schema, arrays, &options)
        .map_err(|error| crate::errors::from_plan(&error.into()))
}
