//! The types of MySQL's expressions.
//!
//! **Owns** what operators mean ([`Operators`], asked while a statement is planned), what implicit
//! conversions a plan needs ([`Typing`], the first analyzer rule), what the types of CAST are
//! ([`type_planner`]), and the rewrites of syntax that make a statement plannable at all
//! ([`syntax`]). After the rule no conversion is left that the stock coercion would do in another
//! sense.
//!
//! Three ideas carry it. Functions take any arguments, so most conversions happen inside them.
//! Comparisons are planned with both sides converted to what MySQL compares them as, constants
//! once and for all. Truth values stay Arrow booleans as long as they are only tested, stored or
//! shown; in arithmetic they count as 0 and 1.
//!
//! **Source**: "Type Conversion in Expression Evaluation" of the MySQL manual.

mod branches;
mod case;
mod coercion;
pub(crate) mod compare;
mod computed_keys;
mod correlated;
mod dependent;
pub(crate) mod except;
mod frames;
mod grouping_sets;
mod joined;
mod kind;
mod listed;
mod looked_up;
mod nameless;
mod node;
mod operators;
mod outer_keys;
mod outer_types;
mod outside;
mod partners;
mod predicates;
mod quantified;
mod rule;
mod same_names;
mod subquery;
mod subquery_expressions;
pub mod syntax;
mod types;
pub(crate) mod union;
mod zero;

pub(crate) use coercion::Coercion;
pub(crate) use correlated::refused;
pub use looked_up::LOOKED_UP;
pub use operators::Operators;
pub use rule::Typing;
pub(crate) use subquery_expressions::{has_subquery, subquery_of, with_subquery};
pub use types::type_planner;
