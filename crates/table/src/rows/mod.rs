//! Rows in pages: the heart of GROUP BY, DISTINCT, UNION and joins.
//!
//! **Owns** the byte layout of a row, the hash tables over pages of rows, and the radix partitions
//! that give memory up and take it back. **Never** knows about plans, SQL or threads: a caller
//! brings batches in through [`GroupWorker`]s and takes finished groups out of [`GroupReader`]s.
//! Joins keep their rows in the same pages, partitions and tables: see [`SideRows`].
//!
//! ```text
//!  batch -> encode -> own table (hit) -> partition 0 | table over pages    (merge)
//!                                     -> partition 1 | pages               (bypass, or withdrawn)
//!                                        ...
//!           reader <- partition 0, 1, ...: a table as it is | pages indexed in place | split
//! ```
//!
//! The rows in memory are the rows on disk: nothing is converted when a page leaves, nothing is
//! repaired when it comes back. Start with [`layout`](self) (what a row is), then `row_table` (one
//! hash table), then `group_set` (all of them together).

mod compact;
mod decode;
mod direct;
mod directory;
mod drain;
mod encode;
mod estimate;
mod group_runs;
mod group_set;
mod group_worker;
mod hash;
mod join;
mod kept_rows;
mod layout;
mod numbered_row;
mod numbering;
mod numbers;
mod partition;
mod payload;
mod read_ahead;
mod reader;
mod row_table;
mod scatter;
mod segment;
mod short_keys;
mod slices;
mod split;
mod state;
mod state_update;
mod stop;
#[cfg(test)]
mod tests;
mod walked;

pub use decode::GroupColumns;
pub use encode::GroupInput;
pub use group_set::{GroupOptions, GroupSet};
pub use group_worker::GroupWorker;
pub use hash::Level;
pub use join::{
    JoinKeys, JoinPage, JoinPart, JoinTable, JoinTables, KeyFilter, LeavingTable, Looked,
    MatchCursor, Matches, ProbeScratch, RowCursor, RowRef, SideOptions, SideRows, SideWriter,
    Stored, TableMemory,
};
pub use kept_rows::{KeptBatch, KeptRows};
pub use layout::{KeyColumn, PayloadColumn, PayloadRule, RowLayout};
pub use numbering::{GroupKeys, GroupNumbering};
pub use reader::{GroupReader, ReadStep};
pub use state::{Number, StateInput, StateKind};
pub use stop::StopFlag;

/// Why rows could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The temp space failed: memory, quota, disk or I/O.
    #[error(transparent)]
    Space(#[from] mayfly_space::Error),
    /// Arrow refused the values of a column.
    #[error(transparent)]
    Arrow(#[from] arrow_schema::ArrowError),
    /// Nobody wants the rows any more: see [`StopFlag`].
    #[error("stopped")]
    Stopped,
}
