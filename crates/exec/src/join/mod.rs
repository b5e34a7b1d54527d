//! Hash joins: one operator in the place of DataFusion's, with the exchanges below it.
//!
//! ```text
//!  stock:  HashJoin <- Repartition <- left      ours:  Join <- left
//!                   <- Repartition <- right                 <- right
//! ```
//!
//! **How.** Every partition of the left side is read by a task. As long as its rows are few they
//! stay the batches that they are; if no more come, DataFusion's join does the rest. Otherwise they
//! go to radix partitions of pages by the hash of their keys. Over as many of those as the join may
//! pin, hash tables are built, of the size of a cache each, and given up again where other joins
//! come. The right side streams past them, each of its partitions on its way to one of the output:
//! where all tables are there, no row of it is written. Rows whose partners have no table are kept
//! in pages, unless a filter over the keys of the left side knows that they have no partner at all;
//! later the pairs of partitions are joined one by one.
//!
//! ```text
//!  build:    left  -> Collector -> StockJoin <- right -> results    (few rows)
//!                  \-> SideRows -> JoinTables                 (whole partitions, pinned)
//!                             \-> JoinPart 3, 5, ...          (pages that may leave memory)
//!  run:      right -> Prober(JoinTables) -> results
//!                             \-> SideRows of the right side
//!  pairs:    JoinPart 3 x JoinPart 3 -> the smaller one: table -> Prober -> results
//! ```
//!
//! **Never** decides what rows are equal: `mayfly_table::rows` does. Never sorts, but for
//! `ordered`.
//!
//! **Source.** Hybrid hash join (DeWitt et al., "Implementation Techniques for Main Memory Database
//! Systems", SIGMOD 1984), with roles that change by the pair (Graefe, Bunker, Cooper, "Hash Joins
//! and Hash Teams in Microsoft SQL Server", VLDB 1998) and adaptive partitioning after Kuschewski
//! et al., "Spilling without Killing Performance" (SIGMOD 2025).

mod bloom;
mod build;
mod collected;
mod columns;
mod dynamic_filter;
mod key_bits;
mod kinds;
mod operator;
mod ordered;
mod output;
mod pairs;
mod prober;
mod report;
mod rule;
mod run;
mod shared_hashes;
mod spec;
mod stock;
mod stream;
mod tables;
#[cfg(test)]
mod tests;
mod unmatched;
mod wanted_keys;

pub(crate) use columns::{columns_of_side, result_columns};
pub(crate) use kinds::{Emit, Roles};
pub(crate) use operator::EitherJoin;
pub use operator::JoinOperator;
pub(crate) use output::Output;
pub use rule::replace;
pub(crate) use rule::{is_supported, ours};
pub(crate) use run::result_bytes;
pub(crate) use wanted_keys::{KeysPromise, WantedKeys, is_hashed_by_value, told};
