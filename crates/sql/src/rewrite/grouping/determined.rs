//! Columns that have one value in each group, since they depend on what is grouped.
//!
//! A unique key without NULL determines the columns of its table, and an equality of a condition
//! one side by the other (see [`super::dependencies`]). Both are followed until nothing is added.
//!
//! **Source**: "Detection of Functional Dependence" of the MySQL manual. Here an equality counts
//! only between columns of one type and one collation, and derived tables determine nothing.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::rc::Rc;

use datafusion::sql::sqlparser::ast::{Expr, Query, Select, SelectItem, Visit, Visitor};

use super::context::GroupingContext;
use super::dependencies::{Dependency, dependencies};
use super::group_by::{flat_keys, is_rolled_up, position};
use super::tables::{Place, Table, Tables};
use crate::select_list::expression_of;
use crate::walk;

/// The columns of a FROM list, and which of them are grouped or depend on those that are.
pub(super) struct Determined<'a> {
    tables: Tables<'a>,
    grouped: HashSet<Place>,
    /// The names of grouped columns of which it cannot be told whose they are.
    unplaced: HashSet<String>,
    /// The grouped ones among them.
    determined: HashSet<Place>,
}

impl<'a> Determined<'a> {
    /// Follows the dependencies of a select; `aliases` has the expressions of its list by name.
    pub(super) fn of(
        select: &Select,
        context: &GroupingContext<'a>,
        aliases: &HashMap<String, Expr>,
    ) -> Determined<'a> {
        let tables = Tables::of(select, context);
        let mut grouped = HashSet::new();
        let mut unplaced = HashSet::new();
        for expr in flat_keys(select) {
            let item = position(expr).and_then(|at| select.projection.get(at.checked_sub(1)?));
            let (meaning, is_meant) = match expr {
                // A column goes before an alias.
                Expr::Identifier(ident) => (aliases.get(&ident.value), tables.lack(&ident.value)),
                _ => (item.and_then(|item: &SelectItem| expression_of(item)), true),
            };
            let place = tables.find(expr);
            let of_meaning = meaning.filter(|_| is_meant);
            let place = place.or_else(|| tables.find(of_meaning?));
            if place.is_none() {
                let columns = [Some(expr), meaning].into_iter().flatten();
                unplaced.extend(columns.filter_map(column_name));
            }
            grouped.extend(place);
        }
        let mut determined = Determined {
            determined: grouped.clone(),
            grouped,
            unplaced,
            tables,
        };
        // A row that adds up others has NULL for what is grouped, on which nothing depends.
        if !is_rolled_up(select) {
            determined.follow(dependencies(select, &determined.tables));
        }
        determined
    }

    /// Adds what depends on the columns that are known, and on those that are added. Each
    /// dependency counts the columns that it waits for, since there may be thousands.
    fn follow(&mut self, mut dependencies: Vec<Dependency>) {
        for (table, Table { bound, .. }) in self.tables.0.iter().enumerate() {
            let Some(bound) = bound else {
                continue;
            };
            for key in &bound.unique {
                let columns = key.iter().map(|name| self.tables.column(table, name));
                let Some(from) = columns.collect::<Option<Rc<[Place]>>>() else {
                    continue;
                };
                let columns = 0..bound.columns.len();
                dependencies.extend(
                    columns.map(|column| Dependency::of(from.clone(), Place { table, column })),
                );
            }
        }
        let mut next: Vec<Place> = self.determined.drain().collect();
        let mut waiting: HashMap<Place, Vec<usize>> = HashMap::new();
        let mut missing = Vec::with_capacity(dependencies.len());
        for (number, Dependency { from, to, .. }) in dependencies.iter().enumerate() {
            missing.push(from.len());
            if from.is_empty() {
                next.push(*to);
            }
            for place in from.iter() {
                waiting.entry(*place).or_default().push(number);
            }
        }
        while let Some(place) = next.pop() {
            if !self.determined.insert(place) {
                continue;
            }
            for number in waiting.remove(&place).unwrap_or_default() {
                missing[number] -= 1;
                if missing[number] == 0 {
                    next.push(dependencies[number].to);
                }
            }
        }
    }

    /// Whether nothing depends on what is grouped.
    pub(super) fn is_empty(&self) -> bool {
        self.determined.len() == self.grouped.len()
    }

    /// The tables of the select.
    pub(super) fn tables(&self) -> &[Table<'a>] {
        self.tables.all()
    }

    /// Whether a column is of none of the tables of FROM.
    pub(super) fn is_outside(&self, column: &Expr) -> bool {
        self.tables.are_without(column)
    }

    /// Whether a column has one value in each group.
    pub(super) fn has(&self, column: &Expr) -> bool {
        let place = self.tables.find(column);
        place.is_some_and(|place| self.determined.contains(&place))
    }

    /// The columns that subqueries in a part of the select name, with their table, and that depend
    /// on what is grouped without being so.
    pub(super) fn in_subqueries(&self, part: &impl Visit) -> Vec<Expr> {
        let mut named = Named {
            determined: self,
            depth: 0,
            found: Vec::new(),
        };
        let _ = walk::read(part, &mut named);
        named.found
    }

    /// Whether a column is grouped by; `None` if the expression is not known to be a column, or if
    /// a key has its name and may be that column.
    pub(super) fn is_grouped(&self, column: &Expr) -> Option<bool> {
        let place = self.tables.find(column)?;
        let is_grouped = self.grouped.contains(&place);
        let is_told =
            is_grouped || column_name(column).is_some_and(|name| !self.unplaced.contains(&name));
        is_told.then_some(is_grouped)
    }
}

/// The name of a column without its table; `None` if an expression is no column.
fn column_name(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Nested(inner) => column_name(inner),
        Expr::Identifier(ident) => Some(ident.value.clone()),
        Expr::CompoundIdentifier(parts) => parts.last().map(|ident| ident.value.clone()),
        _ => None,
    }
}

/// Collects columns that subqueries name.
struct Named<'a> {
    determined: &'a Determined<'a>,
    depth: usize,
    found: Vec<Expr>,
}

impl Visitor for Named<'_> {
    type Break = ();

    walk::counts_depth!(&Query);

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if self.depth > 0
            && matches!(expr, Expr::CompoundIdentifier(_))
            && self.determined.has(expr)
            && self.determined.is_grouped(expr) == Some(false)
            && !self.found.contains(expr)
        {
            self.found.push(expr.clone());
        }
        ControlFlow::Continue(())
    }
}
