//! The rows of a join: both sides in radix partitions of pages, and hash tables over them.
//!
//! **Owns** how the rows of one side reach pages ([`SideRows`], [`SideWriter`]), the tables that
//! find partners ([`JoinTable`], [`JoinTables`]), and the pages that stream past such tables
//! ([`JoinPart`], [`JoinPage`]). **Never** knows what kind of join it is, or what is made of two
//! rows that found each other.
//!
//! ```text
//!  build batch -> SideWriter -> partition 0 | pages -> JoinTable  (pinned)
//!                               partition 1 | pages               (may leave memory)
//!                               ...
//!  probe batch -> JoinKeys -> JoinTables::find -> heads -> matches -> pairs of rows
//!                      \-> SideWriter: rows whose build partition has no table
//!  later: JoinPart (build) -> JoinTable;  JoinPart (probe) -> JoinPage -> find -> ...
//! ```
//!
//! Pages, partitions, hashes and hash tables are those of aggregates; a table of a join links the
//! rows of one key in the place of merging them. What a table knows of rows that found a partner
//! is a bit a row beside the pages, so that several threads may probe it at once.

mod direct;
mod extra;
mod filter;
mod keys;
mod marks;
mod page;
mod part;
mod row_ref;
mod side;
mod stored;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod writer;

pub use filter::KeyFilter;
pub use keys::JoinKeys;
pub use page::JoinPage;
pub use part::JoinPart;
pub use row_ref::RowRef;
pub use side::{SideOptions, SideRows};
pub use stored::Stored;
pub use table::{JoinTable, RowCursor, TableMemory};
pub use tables::{JoinTables, LeavingTable, Looked, MatchCursor, Matches, ProbeScratch};
pub use writer::SideWriter;
