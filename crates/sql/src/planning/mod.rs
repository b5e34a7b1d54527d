//! From a logical plan to a physical one: DataFusion's rules, run by us.
//!
//! **Owns** the loop over analyzer and optimizer rules, the choice of tables that are computed
//! once, and what watches a plan while it is made.
//! **Never** has a rule of its own: those of MySQL's types are in `typing`.
//!
//! DataFusion has such a loop too. It checks the plan before and behind its rules, and that check
//! visits each subquery once for itself and once more for each query around it: 2^n visits for n
//! queries inside one another, in one call that nobody can end. Here each node is checked once
//! (`checks`), and before each node that a rule sees the [`Watch`] of the thread is asked whether
//! to go on (`watch`): a statement that was killed, is out of time or out of memory ends there.
//!
//! **Cost**: a pass of the rules is linear in the nodes of a plan and their columns, short of what
//! single rules do with long conditions; those are kept shallow (`leaning`). `mayfly bench
//! planning` measures it.

mod above_aggregates;
mod aggregate_types;
mod checks;
mod column_types;
mod comparisons;
mod copied_syntax;
mod copies;
mod expansion;
mod filter_terms;
mod hidden_expressions;
mod leaning;
mod materialized;
mod one_branch;
mod optimize;
mod size;
mod text;
mod unnested;
mod watch;
mod watched_rule;
mod written_order;

pub use copied_syntax::check_syntax;
pub(crate) use copies::check_grown;
pub(crate) use expansion::extent_of_view;
pub use expansion::hold_tables;
pub use materialized::{Optimized, is_materialized, planned_with_tables};
pub(crate) use optimize::without_long_values_in;
pub use optimize::{analyzed, in_one_partition, optimized, physical, with_rules};
pub use size::hold;
pub use text::text_bytes;
pub(crate) use unnested::unnested;
pub(crate) use watch::ask_watch;
pub use watch::{Watch, check, watched};
pub use watched_rule::watch_rules;
