//! Engine and connections: what a front end holds.
//!
//! Owns the engine (temp space, workers, shared tables, global variables) and the sessions
//! (variables, temporary tables, warnings, statistics). Never speaks the wire protocol and never
//! prints.

#![forbid(unsafe_code)]

mod connection;
mod delimited;
mod engine;
mod errors;
mod files;
mod listing;
mod lowered;
mod meaning;
mod names;
mod outcome;
mod progress;
pub mod render;
mod running;
mod session;
mod statement;
mod stats;
mod status;
mod transaction;
mod variables;
mod yielding;

pub use engine::{DEFAULT_DATABASE, Engine, EngineOptions, TestFaults, VERSION};
pub use mayfly_space::{Compression, IoMode, PageClass};
pub use outcome::{ColumnInfo, Outcome, RowStream};
pub use progress::Progress;
pub use running::CancelHandle;
pub use session::{ProgressHandle, Session};
pub use stats::StatementStats;
