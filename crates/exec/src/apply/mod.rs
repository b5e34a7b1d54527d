//! Subqueries that run once for each of the outer rows that differ.
//!
//! Owns: [`ApplyOperator`], which puts what a subquery has beside the rows of its input. The plan
//! of the subquery sees the row that it runs for through an `OuterRow` (`crate::slots`). Never:
//! decides that a subquery is to run so: most are joins, which is faster by far.
//!
//! ```text
//!   rows of the input --columns that the subquery names--> known? --no--> OuterRow
//!          |                                                 |               | plan, begun anew
//!          +----------------- with the value <---------------+<-- its row ---+
//! ```
//!
//! Source: the "apply" operator (Galindo-Legaria and Joshi, "Orthogonal Optimization of Subqueries
//! and Aggregation", SIGMOD 2001), with the values that it has found kept as far as memory goes, as
//! MySQL's server does for subqueries that it cannot unnest.
//!
//! A run over few rows goes through the steps of a [`ShortPlan`](crate::ShortPlan)
//! (`short_runs`); any other one begins the plan anew. Its scans ask keys for the values of the row
//! (`by_key/late_rule.rs`).
//!
//! **Cost**: a run for each combination of outer values: some ten microseconds and what it reads,
//! some thirty where it is begun as a plan (`docs/decisions/0032-subqueries-row-by-row.md`).

mod lateral;
mod operator;
mod runs;
mod short_runs;
mod subquery;
#[cfg(test)]
mod tests;

pub use operator::ApplyOperator;
pub use runs::SeveralRows;
pub use subquery::Yield;
