//! Which statements have names that are to be settled, and which tables need an inner name because
//! a column hides them.
//!
//! The planner looks a name `a.b` up from the inside to the outside. In each select it takes it for
//! a field `b` of a column `a` where no table `a` has a column `b`:
//!
//! ```text
//!   FROM t AS a WHERE EXISTS (SELECT 1 FROM u WHERE u.a = a.b)      `u` has a column `a`
//! ```

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Query, Select, Visit, Visitor};

use super::super::relation::name_of;
use super::columns::Catalog;
use super::relations::column_of;
use crate::select_list::table_of_star;
use crate::{from_list, walk};

/// Whether something has names that are to be settled, with tables of these names around it.
pub(super) fn is_needed(node: &impl Visit, around: &HashSet<String>) -> bool {
    let mut search = Search::new(around);
    let _always_continues = walk::read(node, &mut search);
    search.is_needed
}

/// The same for a whole query, with the names of the tables that a column hides.
pub(super) fn of_query(query: &Query, catalog: Catalog<'_>) -> (bool, HashSet<String>) {
    let around = HashSet::new();
    let mut search = Search::new(&around);
    let _always_continues = walk::read(query, &mut search);
    if search.outward.is_empty() {
        return (search.is_needed, HashSet::new());
    }
    let mut hiding = Hiding {
        outward: search.outward,
        catalog,
        hidden: HashSet::new(),
    };
    let _always_continues = walk::read(query, &mut hiding);
    (search.is_needed, hiding.hidden)
}

struct Search<'a> {
    around: &'a HashSet<String>,
    /// The tables of the selects around, the innermost last.
    selects: Vec<HashSet<String>>,
    /// Tables of selects around that a name in another select means.
    outward: HashSet<String>,
    is_needed: bool,
}

impl<'a> Search<'a> {
    fn new(around: &'a HashSet<String>) -> Search<'a> {
        Search {
            around,
            selects: Vec::new(),
            outward: HashSet::new(),
            is_needed: false,
        }
    }
}

impl Visitor for Search<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let mut names = HashSet::new();
        let tables = from_list::tables(&select.from).into_iter();
        for name in tables.filter_map(name_of) {
            self.is_needed |= self.around.contains(&name);
            self.is_needed |= !names.insert(name);
        }
        let mut stars = select.projection.iter().filter_map(table_of_star);
        self.is_needed |= stars.any(|name| name.0.len() > 1);
        self.selects.push(names);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _select: &Select) -> ControlFlow<()> {
        self.selects.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match column_of(expr) {
            Some([_, _, _]) => self.is_needed = true,
            Some([table, _]) => {
                if let Some((own, around)) = self.selects.split_last()
                    && !own.contains(&table.value)
                    && around.iter().any(|names| names.contains(&table.value))
                {
                    self.outward.insert(table.value.clone());
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

struct Hiding<'a> {
    outward: HashSet<String>,
    catalog: Catalog<'a>,
    hidden: HashSet<String>,
}

impl Visitor for Hiding<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        let tables = from_list::tables(&select.from);
        let own = tables.iter().filter_map(|table| name_of(table));
        let own: HashSet<String> = own.collect();
        let asked = self.outward.iter().filter(|name| !own.contains(*name));
        let asked: HashMap<String, &String> =
            asked.map(|name| (name.to_lowercase(), name)).collect();
        if asked.is_empty() {
            return ControlFlow::Continue(());
        }
        for table in tables {
            let columns = self
                .catalog
                .table(table, &[])
                .and_then(|(_, columns)| columns);
            let hiding = columns
                .iter()
                .flatten()
                .filter_map(|column| asked.get(column));
            self.hidden.extend(hiding.map(|name| String::clone(name)));
        }
        ControlFlow::Continue(())
    }
}
