//! Names without a table in subqueries of values that a row gets, where they mean a column of this
//! row: they get the name of its table, which is put in their place later.
//!
//! ```text
//!   UPDATE t SET b = 7, c = (SELECT MAX(u.x + b) FROM u)
//!                           (SELECT MAX(u.x + t.b) FROM u)      `u` has no `b`
//! ```
//!
//! A name means a column of the nearest select that has one. In GROUP BY, HAVING and ORDER BY it
//! means an item of the select list before it means anything around the select.
//!
//! **Source**: `Item_field::fix_fields` and `fix_outer_field` of MariaDB's `sql/item.cc`.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, Visitor};
use datafusion::sql::sqlparser::tokenizer::Location;

use super::Names;
use super::relations::Relation;
use crate::declared::unit_of;
use crate::walk::{self, counts_depth};

/// The columns of a row whose names may stand alone in subqueries of its values, and mean what is
/// put in their place.
#[derive(Debug, Clone, Default)]
pub struct RowColumns {
    /// Their names in lower case.
    names: HashSet<String>,
}

impl RowColumns {
    /// Columns of these names.
    pub fn of<'c>(names: impl IntoIterator<Item = &'c String>) -> RowColumns {
        RowColumns {
            names: names.into_iter().map(|name| name.to_lowercase()).collect(),
        }
    }

    /// Whether one of their names stands alone in a subquery of a value.
    pub(super) fn may_stand_in(&self, value: &Expr) -> bool {
        let is_meant = &mut |table: Option<&str>, name: &str| {
            table.is_none() && self.names.contains(&name.to_lowercase())
        };
        !self.names.is_empty() && named_in_subqueries(value, is_meant)
    }
}

/// Whether subqueries of a value have a name that is looked for, by its table and its column.
pub fn named_in_subqueries(
    value: &Expr,
    is_meant: &mut dyn FnMut(Option<&str>, &str) -> bool,
) -> bool {
    struct Search<'a> {
        is_meant: &'a mut dyn FnMut(Option<&str>, &str) -> bool,
        depth: usize,
    }
    impl Visitor for Search<'_> {
        type Break = ();

        counts_depth!(&Query);

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            let is_found = self.depth > 0
                && match expr {
                    Expr::Identifier(name) => (self.is_meant)(None, &name.value),
                    Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                        [.., table, name] => (self.is_meant)(Some(&table.value), &name.value),
                        _ => false,
                    },
                    _ => false,
                };
            match is_found {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }
    walk::read(value, &mut Search { is_meant, depth: 0 }).is_break()
}

/// The columns of a row, while its values are walked.
#[derive(Default)]
pub(super) struct Alone {
    pub(super) columns: RowColumns,
    /// Where names stand that mean something else: items of a select list, units of time.
    others: HashSet<Location>,
}

impl Alone {
    fn names(&self, name: &Ident) -> bool {
        self.columns.names.contains(&name.value.to_lowercase())
    }
}

impl Names<'_> {
    /// Notes where names mean items of the list of a select, whose clauses have not been walked.
    pub(super) fn note_items(&mut self, select: &Select) {
        if self.alone.columns.names.is_empty() {
            return;
        }
        let aliases = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } if self.alone.names(alias) => {
                Some(alias.value.to_lowercase())
            }
            _ => None,
        });
        let mut search = Items {
            aliases: aliases.collect(),
            found: HashSet::new(),
        };
        if search.aliases.is_empty() {
            return;
        }
        let orders = self.queries.iter().map(|around| &around.order_by);
        let _always_continues = walk::read(&select.group_by, &mut search);
        let _always_continues = walk::read(&select.having, &mut search);
        for order_by in orders {
            let _always_continues = walk::read(order_by, &mut search);
        }
        self.alone.others.extend(search.found);
    }

    /// A name without a table as the planner is to read it; `None` if it stays as it is: also where
    /// a table around it is not known, which the planner will not find.
    pub(super) fn settled_alone(&mut self, expr: &mut Expr) -> Option<Vec<Ident>> {
        let name = match expr {
            Expr::Function(call) if !self.alone.columns.names.is_empty() => {
                let unit = unit_of(call).map(|unit| unit.span.start);
                self.alone.others.extend(unit);
                return None;
            }
            Expr::Identifier(name) if self.alone.names(name) => &*name,
            _ => return None,
        };
        if self.alone.others.contains(&name.span.start) {
            return None;
        }
        let is_row = |of: &&Relation| of.inner.is_none() && self.targets.contains(&of.name);
        for (depth, scope) in self.nearest_first().enumerate() {
            if let Some(row) = scope.relations.iter().find(is_row) {
                // Outside of subqueries the name is one of the row anyway.
                let is_inside = depth > 0 && !row.lacks(&name.value);
                let table = Ident::with_quote('`', &row.name);
                return is_inside.then(|| row.column(&table, name));
            }
            if scope.seen().any(|of| !of.lacks(&name.value)) {
                return None;
            }
        }
        None
    }
}

/// Looks for names of items where these go before what is around a select.
struct Items {
    aliases: HashSet<String>,
    found: HashSet<Location>,
}

impl Visitor for Items {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && self.aliases.contains(&name.value.to_lowercase())
        {
            self.found.insert(name.span.start);
        }
        ControlFlow::Continue(())
    }
}
