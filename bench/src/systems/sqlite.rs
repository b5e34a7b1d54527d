//! SQLite, through Python's `sqlite3`. Its table is loaded once into a file of the cache.

use std::path::PathBuf;

use serde_json::json;

use super::driver::{drive, first_line};
use super::system::{Failure, Job, Reply, Request, System};
use crate::args::SystemName;

const DRIVER: &str = include_str!("../../drivers/sqlite.py");

pub(crate) struct Sqlite;

impl System for Sqlite {
    fn name(&self) -> SystemName {
        SystemName::Sqlite
    }

    fn version(&self) -> Result<String, String> {
        first_line(
            "python3",
            &["-c", "import sqlite3; print(sqlite3.sqlite_version)"],
        )
    }

    fn run(&mut self, job: &Job<'_>) -> Result<Reply, Failure> {
        let Some(tsv) = &job.dataset.tsv else {
            return Err(Failure::Skipped(
                "its table is not loaded for this benchmark".to_owned(),
            ));
        };
        let database = job.cache_dir.join(format!("{}.sqlite", job.dataset.table));
        let mut request = json!(Request {
            setup: Vec::new(),
            ..Request::new(job, job.over_table())
        });
        request["database"] = json!(database);
        request["tsv"] = json!(tsv);
        request["columns"] = json!(job.dataset.columns);
        let mut args = vec!["-c".to_owned(), DRIVER.to_owned(), request.to_string()];
        if !database.exists() {
            let mut load = args.clone();
            load.push("load".to_owned());
            let job = Job {
                repeats: 0,
                capped: false,
                setup: Vec::new(),
                ..*job
            };
            drive(&job, PathBuf::from("python3"), load, 0)?;
        }
        args.push("run".to_owned());
        drive(job, PathBuf::from("python3"), args, 0)
    }
}
