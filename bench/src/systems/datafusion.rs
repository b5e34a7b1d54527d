//! DataFusion as it comes: no operator of ours, its own fair pool, its own temporary files.
//!
//! It runs in a child process, which is this program again: `mayfly bench --stock-datafusion`.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Array, AsArray};
use arrow::csv::WriterBuilder;
use arrow::datatypes::Int64Type;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use futures::StreamExt;
use serde_json::json;

use super::driver::drive;
use super::system::{Failure, Job, Reply, Request, System};
use crate::args::SystemName;
use crate::error::{BenchError, data_error};

pub(crate) struct StockDataFusion;

impl System for StockDataFusion {
    fn name(&self) -> SystemName {
        SystemName::Datafusion
    }

    fn version(&self) -> Result<String, String> {
        Ok(datafusion::DATAFUSION_VERSION.to_owned())
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Reply, Failure> {
        let program =
            std::env::current_exe().map_err(|error| Failure::Skipped(error.to_string()))?;
        let request = Request::new(job, job.over_table());
        let args = vec![
            "bench".to_owned(),
            "--stock-datafusion".to_owned(),
            request.json(),
        ];
        drive(job, program, args, 0)
    }
}

/// Carries out one request in this process: the child's side.
///
/// # Errors
/// What DataFusion answered.
pub(crate) fn run_stock(request: &str) -> Result<(), BenchError> {
    let request: Request =
        serde_json::from_str(request).map_err(data_error("reading the request"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(request.threads)
        .enable_all()
        .build()
        .map_err(data_error("starting threads"))?;
    runtime.block_on(statements(&request))
}

async fn statements(request: &Request) -> Result<(), BenchError> {
    let failed = || data_error("DataFusion");
    let memory = usize::try_from(request.memory_bytes).expect("a limit fits the address space");
    let disk = DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![request.temp_dir.clone()]));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(FairSpillPool::new(memory)))
        .with_disk_manager_builder(disk)
        .build_arc()
        .map_err(failed())?;
    let config = SessionConfig::new().with_target_partitions(request.threads);
    let context = SessionContext::new_with_config_rt(config, runtime);
    if request.setup.is_empty() {
        for (table, file) in &request.files {
            let options = ParquetReadOptions::default();
            context
                .register_parquet(table.as_str(), &file.to_string_lossy(), options)
                .await
                .map_err(failed())?;
        }
    }
    for statement in request.settings.iter().chain(&request.setup) {
        let frame = context.sql(statement).await.map_err(failed())?;
        frame.collect().await.map_err(failed())?;
    }
    for _ in 0..request.repeats {
        let start = Instant::now();
        let frame = context.sql(&request.statement).await.map_err(failed())?;
        let mut rows = frame.execute_stream().await.map_err(failed())?;
        let mut count = 0;
        let mut writer = request.emit.then(|| {
            WriterBuilder::new()
                .with_header(false)
                .with_delimiter(b'\t')
                .with_null("NULL".to_owned())
                .build(std::io::stdout().lock())
        });
        while let Some(batch) = rows.next().await {
            let batch = batch.map_err(failed())?;
            count += batch.num_rows();
            if let Some(writer) = &mut writer {
                writer.write(&batch).map_err(data_error("writing rows"))?;
            }
        }
        drop(writer);
        let elapsed_ms = start.elapsed().as_secs_f64() * 1000.0;
        let line = json!({ "elapsed_ms": elapsed_ms, "rows": count });
        writeln!(std::io::stderr(), "{line}").map_err(data_error("writing statistics"))?;
    }
    Ok(())
}

/// The number that a statement over one file returns; `{t}` stands for the table.
///
/// # Errors
/// What DataFusion answered.
pub(crate) fn count(parquet: &Path, sql: &str, threads: usize) -> Result<u64, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(data_error("starting threads"))?;
    runtime.block_on(async {
        let failed = || data_error("counting groups");
        let config = SessionConfig::new().with_target_partitions(threads);
        let context = SessionContext::new_with_config(config);
        let options = ParquetReadOptions::default();
        let file = parquet.to_string_lossy();
        context
            .register_parquet("t", &file, options)
            .await
            .map_err(failed())?;
        let frame = context
            .sql(&sql.replace("{t}", "t"))
            .await
            .map_err(failed())?;
        let batches = frame.collect().await.map_err(failed())?;
        let column = batches
            .first()
            .map(|batch| batch.column(0).as_primitive::<Int64Type>());
        let number = column
            .filter(|column| !column.is_empty())
            .map_or(0, |column| column.value(0));
        Ok(u64::try_from(number).expect("a count is not negative"))
    })
}
