//! From MySQL text to its meaning and to a plan.
//!
//! Owns the dialect, the statements, the rewrites, the functions and the typing. Never keeps
//! state between statements and never touches the temp space.

#![forbid(unsafe_code)]

pub mod bindings;
pub mod change;
pub mod clause;
pub mod client_text;
pub mod compute;
pub mod declared;
pub mod defaults;
pub mod dialect;
mod from_list;
pub mod functions;
mod keyed;
pub mod literal;
pub mod origin;
pub mod parse;
pub mod pieces;
pub mod plan;
pub mod references;
pub mod repeatable;
mod rewrite;
mod select_list;
pub mod source;
pub mod statement;
pub mod stored;
pub mod table_text;
pub mod template;
pub mod typing;
pub mod untyped;
mod visible;
pub mod walk;
