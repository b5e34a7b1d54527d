//! Columns that `*` and NATURAL JOIN leave out.
//!
//! A table whose invisible columns a query does not name is planned without them. Where one is
//! named, [`super::common_columns`] writes out what leaves it out.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{Expr, JoinConstraint, Query, Select, SetExpr, Visitor};

use crate::bindings::Bindings;
use crate::from_list::{self, constraint, using};
use crate::select_list::is_wildcard;
use crate::walk;

/// The bindings without the invisible columns of tables of which none is named; `None` for a query
/// that leaves no columns out.
pub(crate) fn narrowed(query: &Query, bindings: &Bindings) -> Result<Option<Bindings>> {
    if !has_invisible(bindings) {
        return Ok(None);
    }
    let mut search = Search::default();
    let _ = walk::read(query, &mut search);
    if !search.leaves_out {
        return Ok(None);
    }
    let mut bindings = bindings.clone();
    for table in bindings.tables.values_mut() {
        if !table
            .invisible
            .iter()
            .any(|name| search.named.contains(name))
        {
            table.leave_out_invisible()?;
        }
    }
    Ok(Some(bindings))
}

/// Whether there are tables with invisible columns.
pub(crate) fn has_invisible(bindings: &Bindings) -> bool {
    let mut tables = bindings.tables.values();
    tables.any(|table| !table.invisible.is_empty())
}

/// What a query names, and whether it has `*` or NATURAL JOIN.
#[derive(Default)]
struct Search {
    /// Names that may be columns, in lower case.
    named: HashSet<String>,
    leaves_out: bool,
}

impl Visitor for Search {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        self.leaves_out |= matches!(query.body.as_ref(), SetExpr::Table(_));
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.leaves_out |= select.projection.iter().any(is_wildcard);
        for join in from_list::joins(&select.from) {
            match constraint(join) {
                Some(JoinConstraint::Natural) => self.leaves_out = true,
                Some(JoinConstraint::Using(names)) => {
                    self.named.extend(using(names).map(str::to_lowercase));
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last(),
            _ => None,
        };
        self.named
            .extend(name.map(|name| name.value.to_lowercase()));
        ControlFlow::Continue(())
    }
}
