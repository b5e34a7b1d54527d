//! From MySQL text to its meaning and to a plan.
//!
//! **Owns** the dialect, the statements, the rewrites, the functions and the typing. **Never**
//! keeps state between statements, and never touches the temp space.
//!
//! ```text
//!   text
//!     | dialect, source, parse       what stands in it; climbing, constructs, effort: read once
//!   statement
//!     | references -> bindings       names that it has, tables that the session has for them
//!     | change, defaults, rewrite,
//!     | source_columns               the syntax tree as DataFusion's planner is to read it
//!     | plan, typing, functions      MySQL's operators, conversions and functions in it
//!     | planning                     DataFusion's rules, each node of a plan under a watch
//!   selects                          the numbers of SELECTs in EXPLAIN
//!   plan --> origin, stored          tables that its columns are from, columns that take its rows
//!
//!   view, view_mark, updatable_view  queries in the places of tables, changes of their rows
//!   handed_on                        columns that plans hand on as they are
//!   file_name                        files as tables, with options behind their names
//!   inner_name                       what the planner calls tables that go by one name
//!   in_turn, by_row                  conditions and values of what writes, asked for as MySQL does
//!   template, literal, repeatable,
//!   table_text                       statements that come again, known by their text
//!   scanner                          words, literals and comments of a text, without a copy of it
//!   spelling                         names in errors as the text writes them
//!   pieces                           several statements in one text, statements with parameters
//!   long_values                  constants that are not folded; functions/long_text: long literals
//!   declared, compute                expressions of tables: their text, and their values
//!   constants                        constant expressions of one shape, planned once
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod ansi;
pub mod apply;
pub mod assigned;
pub mod bindings;
pub mod by_row;
pub mod call;
pub mod change;
mod changed_names;
pub mod clause;
pub mod client_text;
mod climbing;
pub mod comparison;
pub mod compute;
pub mod constants;
mod constructs;
pub mod declared;
pub mod defaults;
pub mod dialect;
pub mod digest;
mod effort;
mod file_kind;
pub mod file_name;
mod from_list;
pub mod functions;
mod handed_on;
pub mod in_turn;
pub mod inner_name;
mod keyed;
pub mod literal;
pub mod long_values;
pub mod origin;
pub mod parse;
pub mod pieces;
pub mod plan;
pub mod planning;
pub mod references;
pub mod repeatable;
mod rewrite;
mod scanner;
pub mod select_list;
pub mod selects;
mod shallow;
pub mod slot_labels;
pub mod slots;
pub mod source;
pub mod source_columns;
pub mod spelling;
pub mod statement;
pub mod statement_values;
pub mod stored;
pub mod table_text;
pub mod template;
mod text_places;
pub mod typing;
pub mod untyped;
pub mod updatable_view;
pub mod view;
pub mod view_mark;
mod visible;
pub mod walk;

pub use from_list::constraint as join_constraint;
pub use rewrite::qualifiers::changes as names_of_changes;
