//! The systems that are measured, all as child processes.
//!
//! Owns: what a job is, what a reply is, and the protocol between the benchmark and its drivers.
//! Never: runs a statement in this process.
//!
//! Protocol: after each statement a driver writes one line of JSON with `elapsed_ms` on standard
//! error (the form of `mayfly sql --stats=json`); rows go to standard output, tab-separated.

mod datafusion;
mod driver;
mod duckdb;
mod mariadb;
mod mayfly;
pub(crate) mod server;
mod sqlite;
mod system;
pub(crate) mod usage;

use std::path::Path;

pub(crate) use datafusion::{count, run_stock};
pub(crate) use driver::first_line;
pub(crate) use mayfly::size_option;
pub(crate) use system::{Failure, Job, Reply, System};

/// All systems, in the order of the tables.
pub(crate) fn all(cache_dir: &Path) -> Vec<Box<dyn System>> {
    vec![
        Box::new(mayfly::Mayfly),
        Box::new(duckdb::DuckDb),
        Box::new(datafusion::StockDataFusion),
        Box::new(sqlite::Sqlite),
        Box::new(mariadb::MariaDb::new(cache_dir)),
    ]
}
