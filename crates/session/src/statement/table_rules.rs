//! What a table computes and enforces, what is asked of rows that are written through views, and
//! the tables that this was made for lately.

use std::sync::{Arc, Weak};

use arrow::datatypes::SchemaRef;
use datafusion::sql::sqlparser::ast::Expr;
use mayfly_sql::compute::Computed;
use mayfly_table::Table;

/// The rules of one table.
pub(crate) struct Rules {
    /// The columns of the table; rows in the making have NULL where something is yet to come.
    pub(super) schema: SchemaRef,
    /// Columns that are computed by their places, in the order in which they depend on each other.
    pub(super) computed: Vec<(usize, Computed)>,
    /// What is enforced, each with what is true where it is violated.
    pub(super) checks: Vec<(Check, Computed)>,
}

/// Something that a row must meet.
#[derive(Debug)]
pub(crate) enum Check {
    /// A constraint of the table, by its name.
    Constraint(String),
    /// The condition of a view, by its database and its name.
    View(String, String),
}

/// WITH CHECK OPTION of the view that a statement writes through.
#[derive(Debug)]
pub(crate) struct ViewCheck {
    /// The database and the name of the view.
    pub(crate) view: (String, String),
    /// The name of the table that is written.
    pub(crate) table: String,
    /// What must be true of its rows.
    pub(crate) condition: Expr,
}

/// What a statement asks of rows that it writes through views.
#[derive(Clone, Default)]
pub(crate) struct ThroughViews {
    /// What these must meet.
    pub(crate) check: Option<Arc<ViewCheck>>,
    /// Whether LAST_INSERT_ID() says nothing of the rows: their numbers are in a column that the
    /// view does not show.
    pub(crate) hides_numbers: bool,
}

/// The rules of tables that a session wrote lately. A table never changes its definition, and what
/// they depend on besides stands with them.
#[derive(Default)]
pub(crate) struct Lately(pub(super) Vec<(Weak<Table>, u8, Arc<Rules>)>);

impl Lately {
    pub(super) const MOST: usize = 16;

    pub(super) fn find(&self, table: &Arc<Table>, division_digits: u8) -> Option<Arc<Rules>> {
        let mut known = self.0.iter();
        let is_it = |(other, digits, _): &&(Weak<Table>, u8, Arc<Rules>)| {
            std::ptr::eq(other.as_ptr(), Arc::as_ptr(table)) && *digits == division_digits
        };
        known.find(is_it).map(|(_, _, rules)| Arc::clone(rules))
    }

    pub(super) fn keep(&mut self, table: &Arc<Table>, division_digits: u8, rules: &Arc<Rules>) {
        self.0.retain(|(other, _, _)| other.strong_count() > 0);
        if self.0.len() >= Self::MOST {
            self.0.remove(0);
        }
        let entry = (Arc::downgrade(table), division_digits, Arc::clone(rules));
        self.0.push(entry);
    }
}
