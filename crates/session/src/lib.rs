//! Engine and connections: what a front end holds.
//!
//! **Owns** the engine (temp space, workers, shared tables, global variables) and the sessions
//! (variables, temporary tables, warnings, statistics). **Never** speaks the wire protocol and
//! never prints.
//!
//! ```text
//!   session, prepared, named      what a user holds; outcome comes back: rows or counts
//!      |-- execution              at once, on the workers, or again when memory is short
//!      |
//!   connection, local, settings,  the state of one connection
//!   variables, transaction, status
//!      |-- plan_owner             one that nobody speaks on: it plans for all that are alike
//!      |
//!   running, profile, stats       one statement while it runs, and what it cost
//!      |-- abandoned              what is left of one that nobody waits for any more
//!      |
//!   statement                     a module for each kind of them, point for those on few rows
//!      |-- meaning                DataFusion with MySQL's functions, rules and our operators
//!      |-- files, standard_input  what may stand in FROM beside tables
//!      |-- lowered                the same under names in small letters
//!      |
//!   planning                      the threads that plan, and the bounds of one statement's plan
//!      |
//!   engine                        temp space, workers, shared tables, global variables
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod abandoned;
mod answered;
mod client_files;
mod client_memory;
mod clients;
mod column_info;
mod commands;
mod connection;
mod crash;
mod digests;
mod engine;
mod errors;
mod execution;
mod export;
mod file_access;
mod files;
mod gone_tables;
mod kept;
mod listing;
mod local;
mod lock;
mod lowered;
mod meaning;
mod named;
mod names;
mod new_file;
mod outcome;
mod pending;
mod plan_owner;
mod planning;
mod plugins;
mod prepare;
mod prepared;
mod prepared_database;
mod privileges;
mod profile;
mod progress;
mod reads;
pub mod render;
pub mod row_text;
mod running;
mod runtimes;
mod session;
mod settings;
mod shortage;
mod slow_log;
mod spare_threads;
mod spooled;
mod standard_input;
mod statement;
mod stats;
mod status;
mod tracking;
mod tracks;
mod transaction;
mod variables;
mod verified;
mod version;
mod waiting;
mod watchdog;
mod yielding;

pub use client_files::{FileRequest, FileRequests};
pub use client_memory::ClientMemory;
pub use clients::Clients;
pub use column_info::{ColumnInfo, ColumnOrigin, KeyRole};
pub use engine::{Accounts, Endpoints, Engine, EngineOptions, TestFaults};
pub use file_access::FileAccess;
pub use files::is_table_name;
pub use kept::KeptRows;
pub use local::DEFAULT_DATABASE;
pub use outcome::{Outcome, RowStream};
pub use prepared::{Parameter, Prepared, PreparedCommand};
pub use progress::Progress;
pub use running::{CancelHandle, EndHandle};
pub use session::{ProgressHandle, Session, State};
pub use standard_input::is_named as is_standard_input;
pub use stats::StatementStats;
pub use tracking::SessionChange;
pub use version::VERSION;

pub use mayfly_space::{Compression, FileStatus, IoMode, PageClass, limit_heaps, shorten_slices};
pub use mayfly_sql::client_text::read as client_text;
pub use mayfly_sql::pieces::{Cut, Statements, statements};
