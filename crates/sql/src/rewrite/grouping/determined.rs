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

use datafusion::arrow::datatypes::FieldRef;
use datafusion::sql::sqlparser::ast::{
    Expr, Query, Select, SelectItem, TableFactor, Visit, Visitor,
};

use super::dependencies::{Dependency, dependencies};
use super::keys::{flat_keys, is_rolled_up, position};
use super::known::Known;
use crate::bindings::BoundTable;
use crate::references::table_name;
use crate::rewrite::relation::base_table;
use crate::select_list::expression_of;
use crate::{from_list, walk};

/// A column of FROM: the number of its table, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) table: usize,
    pub(super) column: usize,
}

/// A table of a FROM list.
pub(super) struct Table<'a> {
    /// What it is called there; nothing if that cannot be told.
    pub(super) alias: Option<String>,
    /// What is known of it; `None` if it is no base table.
    pub(super) bound: Option<&'a BoundTable>,
    /// The numbers of its columns by their names in lower case.
    columns: HashMap<String, usize>,
}

impl<'a> Table<'a> {
    fn of(alias: Option<String>, bound: Option<&'a BoundTable>) -> Table<'a> {
        let names = bound.iter().flat_map(|bound| &bound.columns).enumerate();
        Table {
            columns: names
                .map(|(number, name)| (name.to_lowercase(), number))
                .collect(),
            alias,
            bound,
        }
    }
}

/// The tables of a FROM list, from left to right.
pub(super) struct Tables<'a>(Vec<Table<'a>>);

impl<'a> Tables<'a> {
    /// The tables of the FROM list of a select.
    pub(super) fn of(select: &Select, known: &Known<'a>) -> Tables<'a> {
        let tables = from_list::tables(&select.from).into_iter().map(|factor| {
            // The table of a common table expression may have the name of another.
            let is_common = match factor {
                TableFactor::Table { name, .. } => table_name(name).is_some_and(|name| {
                    name.database.is_none() && known.ctes.iter().any(|cte| cte.name == name.table)
                }),
                _ => false,
            };
            match base_table(factor, known.bindings).filter(|_| !is_common) {
                Some((alias, _, _, bound)) => Table::of(Some(alias), Some(bound)),
                None => Table::of(from_list::alias(factor), None),
            }
        });
        Tables(tables.collect())
    }

    pub(super) fn all(&self) -> &[Table<'a>] {
        &self.0
    }

    /// Which column an expression is; `None` if it is none or several, or if that cannot be told.
    pub(super) fn find(&self, expr: &Expr) -> Option<Place> {
        match expr {
            Expr::Nested(inner) => self.find(inner),
            Expr::Identifier(ident) => {
                if self.0.iter().any(|table| table.bound.is_none()) {
                    return None;
                }
                let mut places =
                    (0..self.0.len()).filter_map(|table| self.column(table, &ident.value));
                places.next().filter(|_| places.next().is_none())
            }
            Expr::CompoundIdentifier(parts) => {
                let [.., table, column] = parts.as_slice() else {
                    return None;
                };
                let is_meant =
                    |number: &usize| self.0[*number].alias.as_ref() == Some(&table.value);
                let mut tables = (0..self.0.len()).filter(is_meant);
                let number = tables.next().filter(|_| tables.next().is_none())?;
                self.column(number, &column.value)
            }
            _ => None,
        }
    }

    /// Whether none has a column of a name, which cannot be told of those that are no base tables.
    pub(super) fn lack(&self, name: &str) -> bool {
        let mut tables = self.0.iter();
        tables.all(|table| table.bound.is_some() && !table.columns.contains_key(name))
    }

    /// Whether a column is of none of the tables: it is one of an outer query, or of no table.
    pub(super) fn are_without(&self, column: &Expr) -> bool {
        match column {
            Expr::Identifier(ident) => self.lack(&ident.value),
            Expr::CompoundIdentifier(parts) => {
                let [table, _] = parts.as_slice() else {
                    return false;
                };
                let mut aliases = self.0.iter().map(|table| table.alias.as_ref());
                aliases.all(|alias| {
                    alias.is_some_and(|alias| !alias.eq_ignore_ascii_case(&table.value))
                })
            }
            _ => false,
        }
    }

    fn column(&self, table: usize, name: &str) -> Option<Place> {
        let column = *self.0[table].columns.get(name)?;
        Some(Place { table, column })
    }

    /// The field of a column.
    pub(super) fn field(&self, place: Place) -> Option<FieldRef> {
        // A view has no types before it is planned.
        let bound = self.0[place.table]
            .bound
            .filter(|bound| bound.view.is_none())?;
        let schema = bound.provider.schema();
        schema.fields().get(place.column).cloned()
    }
}

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
        known: &Known<'a>,
        aliases: &HashMap<String, Expr>,
    ) -> Determined<'a> {
        let tables = Tables::of(select, known);
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
