//! DuckDB, through its Python package.

use std::path::PathBuf;

use super::driver::{drive, first_line};
use super::system::{Failure, Job, Reply, Request, System};
use crate::args::SystemName;

const DRIVER: &str = include_str!("../../drivers/duckdb.py");

pub(crate) struct DuckDb;

impl System for DuckDb {
    fn name(&self) -> SystemName {
        SystemName::Duckdb
    }

    fn version(&self) -> Result<String, String> {
        first_line(
            "python3",
            &["-c", "import duckdb; print(duckdb.__version__)"],
        )
        .map_err(|_| "the Python package `duckdb` is not installed".to_owned())
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Reply, Failure> {
        let statement = if job.setup.is_empty() {
            job.over_file()
        } else {
            job.over_table()
        };
        let request = Request::new(job, statement);
        let args = vec!["-c".to_owned(), DRIVER.to_owned(), request.json()];
        drive(job, PathBuf::from("python3"), args, 0)
    }
}
