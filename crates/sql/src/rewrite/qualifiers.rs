//! Names of columns behind a table and its database: which table of FROM each of them means.
//!
//! DataFusion's planner compares databases only where FROM has them too, and knows a table by one
//! name. To it `nosuch.t.a` is a column of any `t`, and `d.t.a` one of the first `t` of two. So
//! tables that share a name get others ([`crate::inner_name`]), and names are settled before it
//! sees them:
//!
//! ```text
//!   FROM t         FROM t             no other table goes by this name
//!   d.t.a          t.a
//!
//!   FROM t, e.t    FROM t AS `t<0>`, e.t AS `t<1>`
//!   e.t.a          `t<1>`.a
//!   t.b            `t<0>`.b           that table alone has the column; 1052 if both have it
//!   t.*            `t<0>`.*, `t<1>`.*
//!   x.t.a          1054               no table of this name stands in `x`
//! ```
//!
//! ON sees only the tables that it joins. HAVING and ORDER BY see the select list before FROM
//! (`outputs`).
//!
//! It looks only at statements that have a database before a table, tables of one name in one FROM,
//! or a table whose name a column in a subquery hides (`needed`), and at changes whose values read
//! another table of that name (`changes`), or their row by a name alone in a subquery (`alone`).
//! Where it cannot tell which of several tables has a column, a name without a database is refused.
//!
//! **Source**: `find_field_in_table_ref` of MariaDB's `sql/sql_base.cc`. An alias stands in the
//! database of its table; derived tables and common table expressions stand in none. Of tables that
//! are joined by name, the last one that has a column goes first. Behind a WITH, a table that is
//! named without its database may be a common table expression: [`check_unique`] has it in no
//! database, as MariaDB when it parses (`add_table_to_list` of `sql/sql_parse.cc`).

mod alone;
pub mod changes;
mod columns;
mod joined;
mod needed;
mod outputs;
mod relations;
mod stars;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, OrderBy, OrderByKind, Query, Select, SetExpr, TableFactor, TableWithJoins,
    VisitMut, VisitorMut, With,
};
use datafusion::sql::sqlparser::tokenizer::Location;
use mayfly_types::MySqlError;

use self::alone::Alone;
pub(crate) use self::columns::{Catalog, Columns, Named};
use self::outputs::Outputs;
use self::relations::{
    Refused, Relation, Scope, check_unique, column_of, first_with, is_chain, may_be_cte,
};
use super::relation::name_of;
use crate::bindings::Bindings;
use crate::inner_name::{inner, is_inner, rename, shown};
use crate::source::Source;
use crate::{clause, from_list, walk};

/// Settles the names of a query. Returns the texts of its select lists if some have become longer.
///
/// # Errors
/// 1054 and 1052 for those that mean no table, or columns of several; 1066 for tables that nothing
/// tells apart; 1235 where it cannot be told which table has a column.
pub(super) fn settle(
    query: &mut Query,
    source: &Source,
    bindings: &Bindings,
) -> Result<Option<Source>, MySqlError> {
    let (is_needed, hidden) = needed::of_query(query, Catalog { bindings, source });
    if !is_needed && hidden.is_empty() {
        return Ok(None);
    }
    let mut names = Names::new(source, bindings);
    names.hidden_names = hidden;
    names.settle([&mut *query]);
    let clause = |column: &str| clause::of_column(query, column);
    match names.refused {
        Some(refused) => Err(refused.error(clause)),
        None => Ok(names.written),
    }
}

/// A query, while its body is walked.
struct Around {
    /// How many common table expressions could be named outside of it.
    outside: usize,
    /// Settled before its body.
    with: Option<With>,
    /// Settled behind its body, whose select list it sees.
    order_by: Option<OrderBy>,
}

/// Settles names, with the tables that they can mean.
struct Names<'a> {
    // fixed
    source: &'a Source,
    bindings: &'a Bindings,
    // state
    /// The texts of select lists, from the first change on.
    written: Option<Source>,
    /// How many tables have got an inner name.
    count: usize,
    /// Names of tables whose columns are put into the expression: one of such a name gets another
    /// one wherever it stands.
    targets: HashSet<String>,
    /// Names of tables that a column of a select inside hides.
    hidden_names: HashSet<String>,
    alone: Alone,
    /// Common table expressions that can be named, with their columns; the nearest last.
    ctes: Vec<Named>,
    /// Where the first WITH of the statement stands.
    first_with: Option<Location>,
    /// The queries around.
    queries: Vec<Around>,
    /// FROM and HAVING of the selects around: these are walked by themselves.
    clauses: Vec<(Vec<TableWithJoins>, Option<Expr>)>,
    /// The tables of the selects around, the innermost last; `None` behind a set operation, where
    /// no name is settled.
    scopes: Vec<Option<Scope>>,
    /// The scopes around derived tables, which do not see them.
    hidden: Vec<Vec<Option<Scope>>>,
    refused: Option<Refused>,
}

impl<'a> Names<'a> {
    fn new(source: &'a Source, bindings: &'a Bindings) -> Names<'a> {
        Names {
            source,
            bindings,
            written: None,
            count: 0,
            targets: HashSet::new(),
            hidden_names: HashSet::new(),
            alone: Alone::default(),
            ctes: Vec::new(),
            first_with: None,
            queries: Vec::new(),
            clauses: Vec::new(),
            scopes: Vec::new(),
            hidden: Vec::new(),
            refused: None,
        }
    }

    /// Settles names until one is refused.
    fn settle<'n, N: VisitMut + 'n>(&mut self, nodes: impl IntoIterator<Item = &'n mut N>) {
        for node in nodes {
            if self.refused.is_none() {
                let _ = walk::write(node, self);
            }
        }
    }

    /// Goes on unless something is refused.
    fn goes_on(&mut self, checked: Result<(), Refused>) -> ControlFlow<()> {
        match checked {
            Ok(()) if self.refused.is_none() => ControlFlow::Continue(()),
            Ok(()) => ControlFlow::Break(()),
            Err(refused) => {
                self.refused = Some(refused);
                ControlFlow::Break(())
            }
        }
    }

    /// The tables of the FROM list of a select. Those that go by the name of another one, there or
    /// around it, get an inner name.
    fn scope(&mut self, at: Location, from: &mut [TableWithJoins]) -> Scope {
        let mut found: Vec<(&mut TableFactor, Relation)> = Vec::new();
        let mut place = 0;
        for (number, item) in from.iter_mut().enumerate() {
            let chain = is_chain(item).then_some(number);
            for factor in from_list::tables_mut(std::slice::from_mut(item)) {
                if let Some(relation) = self.relation(factor) {
                    let relation = Relation {
                        chain,
                        place,
                        ..relation
                    };
                    found.push((factor, relation));
                }
                place += 1;
            }
        }
        let checked = check_unique(found.iter().map(|(factor, relation)| {
            let may_be_cte = may_be_cte(factor, self.first_with);
            let database = relation.database.as_deref();
            (relation, database.filter(|_| !may_be_cte))
        }));
        if let Err(refused) = checked {
            self.refused = Some(refused);
        }
        let mut counts: HashMap<String, usize> = HashMap::new();
        for (_, relation) in &found {
            *counts.entry(relation.name.clone()).or_default() += 1;
        }
        let mut relations = Vec::with_capacity(found.len());
        for (factor, mut relation) in found {
            let is_shared = || {
                counts.get(&relation.name).is_some_and(|count| *count > 1)
                    || self.targets.contains(&relation.name)
                    || self.hidden_names.contains(&relation.name)
                    || self.around(at).any(|other| other.name == relation.name)
            };
            if relation.inner.is_none() && is_shared() {
                let name = inner(&relation.name, self.count);
                self.count += 1;
                rename(factor, &name);
                relation.inner = Some(name);
            }
            relations.push(relation);
        }
        Scope {
            at,
            relations,
            joined: None,
        }
    }

    /// The tables of all selects but for one.
    fn around(&self, at: Location) -> impl Iterator<Item = &Relation> {
        let scopes = self.scopes.iter().flatten();
        let scopes = scopes.filter(move |scope| scope.at != at);
        scopes.flat_map(|scope| &scope.relations)
    }

    /// The tables that ORDER BY of a query can name.
    fn scope_of_body(&mut self, body: &mut SetExpr) -> Option<Scope> {
        match body {
            SetExpr::Select(select) => {
                let at = select.select_token.0.span.start;
                Some(self.scope(at, &mut select.from))
            }
            SetExpr::Query(query) => {
                let outside = self.ctes.len();
                for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
                    let columns = self.catalog().cte(cte, &self.ctes);
                    self.ctes.push((cte.alias.name.value.clone(), columns));
                }
                let scope = self.scope_of_body(&mut query.body);
                self.ctes.truncate(outside);
                scope
            }
            SetExpr::SetOperation { .. } => None,
            _ => Some(Scope {
                at: Location::empty(),
                relations: Vec::new(),
                joined: None,
            }),
        }
    }

    /// Settles common table expressions, which see no select around, and from then on knows them.
    fn with(&mut self, with: &mut With) -> ControlFlow<()> {
        let around = std::mem::take(&mut self.scopes);
        for cte in &mut with.cte_tables {
            let name = cte.alias.name.value.clone();
            let columns = self.catalog().cte(cte, &self.ctes);
            let before = self.ctes.len();
            if with.recursive {
                self.ctes.push((name.clone(), columns.clone()));
            }
            walk::write(cte.query.as_mut(), self)?;
            self.ctes.truncate(before);
            self.ctes.push((name, columns));
        }
        self.scopes = around;
        ControlFlow::Continue(())
    }

    fn relation(&self, factor: &TableFactor) -> Option<Relation> {
        let called = name_of(factor)?;
        let (database, columns) = self.catalog().table(factor, &self.ctes)?;
        Some(Relation {
            name: shown(&called).to_owned(),
            inner: is_inner(&called).then_some(called),
            database,
            columns,
            chain: None,
            place: 0,
        })
    }

    /// Settles the names in HAVING that mean what a select shows or groups by.
    fn in_having(&self, condition: &mut Expr, select: &Select) -> Result<(), Refused> {
        let Some(Some(scope)) = self.scopes.last() else {
            return Ok(());
        };
        let outputs = Outputs::new(select, &scope.relations);
        outputs.choose(condition, &self.bindings.aggregates)
    }

    /// Settles ORDER BY of a query whose body is settled.
    fn walk_order_by(&mut self, order_by: &mut OrderBy, body: &SetExpr) -> ControlFlow<()> {
        if let OrderByKind::Expressions(list) = &mut order_by.kind {
            for by in list {
                let Some(Some(scope)) = self.scopes.last() else {
                    break;
                };
                let outputs = outputs::of_body(body, &scope.relations);
                let checked = outputs.map_or(Ok(()), |outputs| {
                    outputs.order(&mut by.expr, &|parts| self.settled(parts))
                });
                self.goes_on(checked)?;
            }
        }
        walk::write(order_by, self)
    }

    fn catalog(&self) -> Catalog<'_> {
        Catalog {
            bindings: self.bindings,
            source: self.written.as_ref().unwrap_or(self.source),
        }
    }

    /// The scopes of the selects around a name, the nearest first. A select has a second one, for
    /// ORDER BY, which sees what its ON does not.
    fn nearest_first(&self) -> impl Iterator<Item = &Scope> {
        let mut last = None;
        let scopes = self.scopes.iter().flatten().rev();
        scopes.filter(move |scope| last.replace(scope.at) != Some(scope.at))
    }

    /// The parts of a name as the planner is to read them; `None` if it stays as it is.
    fn settled(&self, parts: &[Ident]) -> Result<Option<Vec<Ident>>, Refused> {
        let written = || {
            let parts: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
            parts.join(".")
        };
        match parts {
            [table, column] => self.of_any_database(table, column, written),
            [database, table, column] => {
                let meant = self.nearest_first().find_map(|scope| {
                    let mut relations = scope.seen();
                    let is_it = |relation: &&Relation| {
                        relation.is(&table.value, &database.value) && !relation.lacks(&column.value)
                    };
                    relations.find(is_it)
                });
                let meant = meant.ok_or_else(|| Refused::Unknown(written()))?;
                Ok(Some(meant.column(table, column)))
            }
            _ => Ok(None),
        }
    }

    /// The same for a name without a database: it means the table of the nearest select that has
    /// the column.
    fn of_any_database(
        &self,
        table: &Ident,
        column: &Ident,
        written: impl Fn() -> String,
    ) -> Result<Option<Vec<Ident>>, Refused> {
        if is_inner(&table.value) {
            return Ok(None);
        }
        let may_have =
            |relation: &&Relation| relation.name == table.value && !relation.lacks(&column.value);
        for scope in self.nearest_first() {
            let found: Vec<&Relation> = scope.seen().filter(may_have).collect();
            let (Some(first), Some(last)) = (found.first(), found.last()) else {
                continue;
            };
            let are_told = found.iter().all(|relation| relation.columns.is_some());
            let is_only = found.len() == 1
                && (are_told || !self.around(scope.at).any(|other| may_have(&other)));
            let are_joined_by_name =
                first.chain.is_some() && found.iter().all(|relation| relation.chain == first.chain);
            if !is_only && !are_told {
                return Err(Refused::Untold(written()));
            }
            if !is_only && !are_joined_by_name {
                return Err(Refused::Ambiguous(written()));
            }
            return Ok(last.inner.is_some().then(|| last.column(table, column)));
        }
        Ok(None)
    }
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if self.queries.is_empty() && self.first_with.is_none() {
            self.first_with = first_with(query);
        }
        let outside = self.ctes.len();
        // It is walked here, and put back behind the query.
        let mut with = query.with.take();
        if let Some(settled) = &mut with
            && self.with(settled).is_break()
        {
            query.with = with;
            return ControlFlow::Break(());
        }
        self.queries.push(Around {
            outside,
            with,
            order_by: query.order_by.take(),
        });
        // For ORDER BY, which stands behind the select.
        let scope = self.scope_of_body(&mut query.body);
        self.scopes.push(scope);
        self.goes_on(Ok(()))
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let mut settled = ControlFlow::Continue(());
        if let Some(around) = self.queries.pop() {
            query.with = around.with;
            query.order_by = around.order_by;
            if let Some(order_by) = &mut query.order_by {
                settled = self.walk_order_by(order_by, &query.body);
            }
            self.ctes.truncate(around.outside);
        }
        self.scopes.pop();
        settled
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if is_set_apart(factor) {
            self.hidden.push(std::mem::take(&mut self.scopes));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if is_set_apart(factor)
            && let Some(scopes) = self.hidden.pop()
        {
            self.scopes = scopes;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let scope = self.scope(select.select_token.0.span.start, &mut select.from);
        self.write_stars(select, &scope.relations);
        self.note_items(select);
        self.scopes.push(Some(scope));
        self.goes_on(Ok(()))?;
        self.walk_from(&mut select.from)?;
        // They are put back behind the select.
        let from = std::mem::take(&mut select.from);
        self.clauses.push((from, select.having.take()));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let mut settled = ControlFlow::Continue(());
        if let Some((from, having)) = self.clauses.pop() {
            select.from = from;
            if let Some(mut condition) = having {
                let checked = self.in_having(&mut condition, select);
                settled = self.goes_on(checked);
                if settled.is_continue() {
                    settled = walk::write(&mut condition, self);
                }
                select.having = Some(condition);
            }
        }
        self.scopes.pop();
        settled
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Some(None) = self.scopes.last() {
            return ControlFlow::Continue(());
        }
        let settled = match column_of(expr) {
            Some(parts) => self.settled(parts),
            None => Ok(self.settled_alone(expr)),
        };
        let checked = settled.map(|parts| {
            if let Some(parts) = parts {
                *expr = Expr::CompoundIdentifier(parts);
            }
        });
        self.goes_on(checked)
    }
}

/// Whether it is a derived table that does not see the tables beside it.
fn is_set_apart(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Derived { lateral: false, .. })
}
