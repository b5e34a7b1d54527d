//! Tables over pages of the temp space.
//!
//! **Owns** how rows lie in pages: column pages for what is scanned ([`BatchRun`], [`Table`]),
//! B+trees for what is looked up ([`Tree`]), and the dictionary of the tables that users create.
//!
//! **Never** creates a file, chooses a victim of eviction, or waits for an executor: all calls are
//! synchronous and return batches or errors, but for the one future of a turn.
//!
//! ```text
//!   dictionary  names -> tables, views    run   spilled and sorted batches
//!        \                                /
//!         table  snapshots, drafts       /
//!              \                        /
//!               sealed  pages and the writer that fills them, tail  rows that wait for a page
//!                     |
//!               column_page  arrays <-> the bytes of a page
//!
//!   keys        values -> row numbers, by a tree each: the indexes of a table
//!     tree      sorted keys -> payloads
//!
//!   turn        who may change a table that sessions share
//!   journal     is told of each mutation; nobody listens to those of temporary tables
//! ```

// One file is allowed to: `text`.
#![deny(unsafe_code)]
#![warn(missing_docs)]

mod appender;
pub mod change;
mod column_page;
mod compact;
mod content;
pub mod definition;
pub mod dictionary;
mod error;
pub mod journal;
pub mod keys;
mod open_batch;
pub mod owned;
mod patch;
mod removal;
mod replace;
mod row_places;
pub mod rows;
pub mod run;
mod sealed;
mod snapshot;
pub mod table;
mod table_page;
mod tail;
mod text;
pub mod tree;
mod turn;
pub mod view;

pub use appender::Appender;
pub use change::Change;
pub use column_page::DistinctTexts;
pub use definition::{
    Check, Column, Definition, Generated, KEY_BYTES_MAX, Key, KeyKind, KeyPart, TableOption, Using,
};
pub use dictionary::{Dictionary, TemporaryTables};
pub use error::{Error, Result};
pub use journal::{Journal, Mutation, Place, RowChange, Unlogged};
pub use keys::{
    Conflict, Conflicts, Lookup, Place as KeyPlace, Repeats, Search, Step, entry as key_entry,
};
pub use open_batch::OpenBatch;
pub use row_places::{RowPlaces, RowReader};
pub use run::{BatchRun, Drain};
pub use snapshot::{Scan, TableSnapshot};
pub use table::{ByKey, Draft, Saved, Table, TruncatedRows, publish_all};
pub use tree::Tree;
pub use turn::{Purpose, Turn, Turns};
pub use view::{CheckOption, View, ViewAlgorithm, ViewSecurity};
