//! Scans of Parquet files whose readers ask the budget.
//!
//! DataFusion's reader reads the column chunks of a row group at once and decompresses them page by
//! page, and asks nobody for that memory. Here it asks the memory pool of the task: for the chunks
//! before they are read, and for the longest page of each as soon as the headers of their pages are
//! there (`pages`). Row groups that are large beside the budget are read in pieces (`pieces`).
//! Where there is no memory for one in each partition, fewer partitions read at a time (`turns`);
//! where there is none for one alone, the statement ends with an error that names the file and what
//! it needs.
//!
//! **Owns** the source that takes the place of the stock one in a finished plan. **Never** decodes
//! anything: the stock source does that, file by file or part by part (`scan`).
//!
//! A scan whose rows come in an order does not wait: who merges its partitions wants a row of each.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

mod again;
mod pages;
mod pieces;
mod reader;
mod scan;
mod turns;

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics};
use datafusion::datasource::physical_plan::parquet::DefaultParquetFileReaderFactory;
use datafusion::datasource::physical_plan::{
    FileGroup, FileScanConfig, ParquetFileReaderFactory, ParquetSource,
};
use datafusion::datasource::source::{DataSource, DataSourceExec, OpenArgs};
use datafusion::execution::memory_pool::MemoryLimit;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::object_store::path::Path;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan, Partitioning};

pub(crate) use self::again::read_again;
use self::pieces::Sizes;
use self::reader::GrantedFactory;
pub use self::reader::RowGroupRefused;
use self::scan::{Files, Scan};
use self::turns::Turns;

/// Row groups of more than this part of a partition's share of the budget are cut ...
const UNCUT_PER_SHARE: u64 = 2;
/// ... into pieces of about this part: beside what is stored there are the pages that are
/// decompressed, and whatever the rows are read for. Smaller ones would cost time, as each reads
/// the dictionaries of its columns.
const PIECES_PER_SHARE: u64 = 3;

/// Makes the Parquet scans of a plan ask the budget.
pub(crate) fn grant(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let scan = node.downcast_ref::<DataSourceExec>();
        let files = scan.and_then(|scan| GrantedFiles::of(scan.data_source().as_ref()));
        Ok(match files {
            Some(files) => Transformed::yes(DataSourceExec::from_data_source(files)),
            None => Transformed::no(node),
        })
    })
    .data()
}

/// A file that a node reads, where it is one of Parquet.
pub fn first_file(plan: &dyn ExecutionPlan) -> Option<Path> {
    let source = plan.downcast_ref::<DataSourceExec>()?.data_source();
    let config = match source.downcast_ref::<GrantedFiles>() {
        Some(files) => &files.config,
        None => source.downcast_ref::<FileScanConfig>()?,
    };
    let mut files = config.file_groups.iter().flat_map(|group| group.iter());
    files.next().map(|file| file.path().clone())
}

/// Parquet files that are read as there is memory for them.
#[derive(Clone, Debug)]
struct GrantedFiles {
    config: FileScanConfig,
}

/// What the partitions of one run share.
struct Shared {
    stock: Option<Arc<dyn Any + Send + Sync>>,
    turns: Arc<Turns>,
    /// Files that are there for any partition, where they are cut.
    files: OnceLock<Files>,
}

impl GrantedFiles {
    fn of(source: &dyn DataSource) -> Option<GrantedFiles> {
        let config = source.downcast_ref::<FileScanConfig>()?;
        config.file_source().downcast_ref::<ParquetSource>()?;
        let config = config.clone();
        Some(GrantedFiles { config })
    }

    fn turns(&self) -> Arc<Turns> {
        let partitions = self.config.output_partitioning().partition_count();
        let is_ordered = self.config.eq_properties().output_ordering().is_some();
        Arc::new(match is_ordered {
            true => Turns::without_waiting(),
            false => Turns::new(partitions),
        })
    }

    /// The stock source with a factory of readers that ask.
    fn over(
        &self,
        turns: Arc<Turns>,
        stock: Arc<dyn ParquetFileReaderFactory>,
        context: &TaskContext,
    ) -> FileScanConfig {
        let mut config = self.config.clone();
        if let Some(source) = config.file_source().downcast_ref::<ParquetSource>() {
            let factory = Arc::new(GrantedFactory {
                stock,
                pool: Arc::clone(context.memory_pool()),
                turns,
            });
            let source = source.clone().with_parquet_file_reader_factory(factory);
            config.file_source = Arc::new(source);
        }
        config
    }

    /// The files of a partition: any, where the stock source would let it take any.
    fn files(&self, partition: usize, shared: Option<&Shared>) -> Files {
        let queue = |groups: &[FileGroup]| {
            let files = groups.iter().flat_map(|group| group.iter().cloned());
            Arc::new(Mutex::new(files.collect()))
        };
        match shared.filter(|shared| shared.stock.is_some()) {
            Some(shared) => {
                let files = shared.files.get_or_init(|| queue(&self.config.file_groups));
                Arc::clone(files)
            }
            None => queue(
                self.config
                    .file_groups
                    .get(partition..=partition)
                    .unwrap_or(&[]),
            ),
        }
    }

    fn stock_factory(&self, context: &TaskContext) -> Result<Arc<dyn ParquetFileReaderFactory>> {
        let source = self.config.file_source().downcast_ref::<ParquetSource>();
        if let Some(stock) = source.and_then(|source| source.parquet_file_reader_factory()) {
            return Ok(Arc::clone(stock));
        }
        let environment = context.runtime_env();
        let store = environment.object_store(&self.config.object_store_url)?;
        Ok(Arc::new(DefaultParquetFileReaderFactory::new(store)))
    }

    fn sizes(&self, context: &TaskContext) -> Sizes {
        let share_bytes = match context.memory_pool().memory_limit() {
            MemoryLimit::Finite(bytes) => {
                let partitions = self.config.output_partitioning().partition_count();
                bytes as u64 / partitions.max(1) as u64
            }
            _ => u64::MAX,
        };
        Sizes {
            uncut_bytes_max: share_bytes / UNCUT_PER_SHARE,
            piece_bytes: share_bytes / PIECES_PER_SHARE,
        }
    }
}

impl DataSource for GrantedFiles {
    fn open(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.open_with_args(OpenArgs::new(partition, context))
    }

    fn open_with_args(&self, args: OpenArgs) -> Result<SendableRecordBatchStream> {
        let OpenArgs {
            partition,
            context,
            sibling_state,
        } = args;
        let shared = sibling_state
            .as_ref()
            .and_then(|it| it.downcast_ref::<Shared>());
        let (stock, turns) = match shared {
            Some(shared) => (shared.stock.clone(), Arc::clone(&shared.turns)),
            None => (None, self.turns()),
        };
        let readers = self.stock_factory(&context)?;
        let mut config = self.over(turns, Arc::clone(&readers), &context);
        let sizes = self.sizes(&context);
        let Some(columns) = pieces::columns_to_cut(&config, sizes) else {
            let arguments = OpenArgs::new(partition, context).with_shared_state(stock);
            return config.open_with_args(arguments);
        };
        config.file_groups = Vec::new();
        let schema = self.config.projected_schema()?;
        let scan = Scan {
            config,
            partition,
            context,
            files: self.files(partition, shared),
            readers,
            sizes,
            columns,
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, scan.rows())))
    }

    fn create_sibling_state(&self, config: &ConfigOptions) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::new(Shared {
            stock: self.config.create_sibling_state(config),
            turns: self.turns(),
            files: OnceLock::new(),
        }))
    }

    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt_as(t, f)
    }

    fn output_partitioning(&self) -> Partitioning {
        self.config.output_partitioning()
    }

    fn eq_properties(&self) -> EquivalenceProperties {
        self.config.eq_properties()
    }

    fn scheduling_type(&self) -> SchedulingType {
        self.config.scheduling_type()
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.config.partition_statistics(partition)
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn DataSource>> {
        let source = self.config.with_fetch(limit)?;
        Some(match GrantedFiles::of(source.as_ref()) {
            Some(files) => Arc::new(files),
            None => source,
        })
    }

    fn fetch(&self) -> Option<usize> {
        self.config.fetch()
    }

    fn metrics(&self) -> ExecutionPlanMetricsSet {
        DataSource::metrics(&self.config)
    }

    /// Projections were pushed down before.
    fn try_swapping_with_projection(
        &self,
        _projection: &ProjectionExprs,
    ) -> Result<Option<Arc<dyn DataSource>>> {
        Ok(None)
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.config.apply_expressions(f)
    }
}
