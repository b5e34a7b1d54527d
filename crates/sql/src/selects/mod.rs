//! The SELECTs of a statement, numbered as EXPLAIN shows them.
//!
//! Owns: which SELECT a table is read by, and what MySQL calls that one. Never: looks at a plan,
//! which has no SELECTs any more.
//!
//! A derived table that is no more than rows and columns of others is not there for MySQL either:
//! its tables belong to the SELECT around it. So do those of IN and EXISTS in a condition, which
//! become joins.

mod block;
mod found;
mod reader;

use datafusion::sql::sqlparser::ast::{Query, SetOperator};

use self::reader::Reader;
use crate::bindings::Bindings;

pub use block::{Block, Clause, Exclusion, Kind, Part, Selects, SetResult, Subquery, Window};

impl Selects {
    /// The SELECTs of a query.
    pub fn of(query: &Query, bindings: &Bindings) -> Selects {
        let mut selects = Reader::read(query, bindings);
        selects.blocks.sort_by_key(|block| block.id);
        selects
    }

    /// What EXPLAIN calls a SELECT.
    pub fn word(&self, block: &Block) -> &'static str {
        match (block.kind, block.is_dependent) {
            (Kind::Primary, _) if self.blocks.len() == 1 && self.results.is_empty() => "SIMPLE",
            (Kind::Primary, _) => "PRIMARY",
            (Kind::Subquery, false) => "SUBQUERY",
            (Kind::Subquery, true) => "DEPENDENT SUBQUERY",
            (Kind::Derived, _) => "DERIVED",
            (Kind::Recursive, _) => "RECURSIVE UNION",
            (Kind::Set(SetOperator::Except | SetOperator::Minus), _) => "EXCEPT",
            (Kind::Set(SetOperator::Intersect), _) => "INTERSECT",
            (Kind::Set(SetOperator::Union), false) => "UNION",
            (Kind::Set(SetOperator::Union), true) => "DEPENDENT UNION",
        }
    }
}
