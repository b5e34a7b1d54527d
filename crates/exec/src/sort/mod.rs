//! ORDER BY: a sort whose runs are pages.
//!
//! Owns: [`SortOperator`], the replacement of DataFusion's `SortExec`, with and without a limit,
//! and [`MergeOperator`], that of its `SortPreservingMergeExec`. Never: fails because the input is
//! larger than memory.
//!
//! ```text
//!   stream of batches -> sorter -> runs in pages -> merge -> stream of sorted batches
//!                          |
//!   spec    which columns travel            pending  rows of the next run
//!   keys    rows as comparable bytes        order    sorts them by prefix and row index
//!   deciding_bytes  which bytes of keys differ among the rows of a run
//!   cutoff  what a limit rules out          merge    k runs into one stream
//! ```
//!
//! Runs of one partition and partitions of one sort are merged alike: `merge` and `merge_operator`
//! read the batches, `picker` holds one of each and says which rows are next, `losers` is its tree.
//!
//! Each partition sorts on its own, below a [`MergeOperator`] where the plan wants one stream. The
//! sort is stable within a partition.
//!
//! Cost: the example `sort_speed` times it beside the stock sort, in memory and below.

mod cutoff;
mod deciding_bytes;
mod keys;
mod losers;
mod merge;
mod merge_operator;
mod operator;
mod order;
mod pending;
mod picker;
mod sorter;
mod spec;
#[cfg(test)]
mod tests;

pub use merge_operator::MergeOperator;
pub use operator::SortOperator;
