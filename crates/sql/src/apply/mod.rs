//! Correlated subqueries that no rule makes a join of, as columns that run them row by row.
//!
//! Owns: `with_applied`, which puts a node `Apply` below what asks for such a subquery, and
//! [`PlanApplies`], which makes its operator. Never: takes a subquery that the rules can unnest: a
//! join is faster by far.
//!
//! ```text
//!   Filter (SELECT ... WHERE u.b = t.a) > 1    ->    Filter value > 1
//!     t                                                Apply value = (... WHERE u.b = <a>)
//!                                                        t
//! ```
//!
//! The subquery becomes a plan of its own, in which a column of the outer row is a placeholder (see
//! [`mayfly_exec::slots`]). EXISTS, IN, ANY and ALL become subqueries of one value first
//! (`tests_of_rows`). So the plan of an Apply has types, rules and operators as any other, and what
//! it contains may be an Apply again.
//!
//! Source: Galindo-Legaria and Joshi, "Orthogonal Optimization of Subqueries and Aggregation",
//! SIGMOD 2001.

mod node;
mod outer;
mod planner;
mod rewrite;
mod tests_of_rows;

pub use node::applied_subquery;
pub(crate) use outer::{has_outer_rows, is_lateral, names_outer_row};
pub use planner::PlanApplies;
pub(crate) use rewrite::with_applied;
