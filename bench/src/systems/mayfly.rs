//! Mayfly itself, driven through its shell like everybody else.

use super::driver::drive;
use super::system::{Failure, Job, Reply, System};
use crate::args::SystemName;

pub(crate) struct Mayfly;

impl System for Mayfly {
    fn name(&self) -> SystemName {
        SystemName::Mayfly
    }

    fn version(&self) -> Result<String, String> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Reply, Failure> {
        let program =
            std::env::current_exe().map_err(|error| Failure::Skipped(error.to_string()))?;
        let mut args = vec![
            "sql".to_owned(),
            "--memory".to_owned(),
            size_option(job.limit_bytes),
            "--threads".to_owned(),
            job.threads.to_string(),
            "--temp-dir".to_owned(),
            job.temp_dir.display().to_string(),
            "--format".to_owned(),
            "tsv".to_owned(),
            "--stats=json".to_owned(),
        ];
        args.extend(job.mayfly_options.iter().cloned());
        for statement in job.settings.iter().chain(&job.setup) {
            args.extend(["-e".to_owned(), statement.clone()]);
        }
        let statement = if job.setup.is_empty() {
            job.over_file()
        } else {
            job.over_table()
        };
        for _ in 0..job.repeats {
            args.extend(["-e".to_owned(), statement.clone()]);
        }
        drive(job, program, args, 1)
    }
}

/// Bytes as `--memory` takes them.
pub(crate) fn size_option(bytes: u64) -> String {
    if bytes.is_multiple_of(1 << 20) {
        format!("{}M", bytes >> 20)
    } else {
        format!("{}K", bytes >> 10)
    }
}
