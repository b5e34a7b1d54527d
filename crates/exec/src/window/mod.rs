//! Window functions over sorted rows, within the memory that is granted.
//!
//! Owns: [`WindowOperator`], which stands for DataFusion's `WindowAggExec` and
//! `BoundedWindowAggExec`. Never: holds a partition in memory because a function looks at all of
//! it; fails because one is larger than memory.
//!
//! ```text
//!   sorted batches -> run: keys compared -> rows, in batches or pages -> batches with results
//!                      |                      ^      ^      ^
//!   boundaries  where partitions and peers begin     |      |
//!   frame       which rows a row looks at ---- cursors of functions:
//!   rank        the place of a row             running   sums of frames that grow or slide
//!   value       the value of another row       whole     one value for a partition
//!                                              frame_state  what a frame has come to:
//!                                                totals     sums and counts
//!                                                bits       BIT_AND, BIT_OR of frames that slide
//! ```
//!
//! A function is a few cursors that only move forwards, so a row costs the same however long its
//! frame is, and rows that no cursor comes to any more are forgotten. A rank, a running sum and a
//! LAG need nothing of the rows to come: they answer each batch as it arrives. An average over the
//! partition has to see its end: the rows wait in pages, are written once at most and read once.
//!
//! Windows of one statement with the same partitions are answered in one pass, whatever their
//! orders and frames. What DataFusion keeps is in `spec`.
//!
//! Source: Leis et al., "Efficient Processing of Window Functions in Analytical SQL Queries" (VLDB
//! 2015), for functions by the ends of their frames. Decision: `docs/decisions/0017-window.md`.

mod bits;
mod boundaries;
mod frame;
mod frame_state;
mod function;
mod functions;
mod operator;
mod rank;
mod rows;
mod run;
mod running;
mod spec;
#[cfg(test)]
pub(crate) mod tests;
mod totals;
mod value;
mod whole;

pub use operator::WindowOperator;
pub(crate) use operator::are_same_keys;
pub(crate) use spec::whole_aggregates;
