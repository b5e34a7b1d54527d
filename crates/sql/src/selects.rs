//! The SELECTs of a statement, numbered as EXPLAIN shows them.
//!
//! Owns: which SELECT a table is read by, and what MySQL calls that one. Never: looks at a plan,
//! which has no SELECTs any more.
//!
//! A derived table that is no more than rows and columns of others is not there for MySQL either:
//! its tables belong to the SELECT around it. So do those of IN and EXISTS in a condition, which
//! become joins.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Distinct, Expr, GroupByExpr, JoinConstraint, Query, Select, SelectItem,
    SetExpr, SetOperator, SetQuantifier, TableFactor, TableWithJoins, UnaryOperator, Visitor,
};

use crate::bindings::Bindings;
use crate::from_list::{constraint, tables};
use crate::inner_name;
use crate::references::{table_name, variable};
use crate::rewrite::relation::table_as_select;
use crate::walk::{self, finds};

/// The SELECTs of a statement.
#[derive(Debug, Default)]
pub struct Selects {
    /// Those that are shown, in the order of their numbers.
    pub blocks: Vec<Block>,
    /// What is made of several.
    pub results: Vec<SetResult>,
    /// The names of those that read their own rows.
    pub recursive: Vec<String>,
}

/// One SELECT.
#[derive(Debug)]
pub struct Block {
    /// Its number.
    pub id: usize,
    /// What MySQL calls it.
    pub kind: Kind,
    /// Whether it reads rows of the SELECT around it.
    pub is_dependent: bool,
    /// What it reads, in the order of the text.
    pub parts: Vec<Part>,
}

/// What a SELECT reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A table, by its name and by what the SELECT calls it.
    Table {
        /// The name of the table.
        table: String,
        /// The alias, or the same.
        name: String,
    },
    /// The rows of another SELECT, by its number.
    Derived(usize),
}

/// A kind of SELECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The outermost one.
    Primary,
    /// One of a subquery in an expression.
    Subquery,
    /// One of a derived table.
    Derived,
    /// A second part.
    Set(SetOperator),
    /// A second part that reads what it has given.
    Recursive,
}

/// The rows of several SELECTs together.
#[derive(Debug)]
pub struct SetResult {
    /// `UNION RESULT`.
    pub word: &'static str,
    /// `<union1,2>`.
    pub name: String,
}

impl Selects {
    /// The SELECTs of a query.
    pub fn of(query: &Query, bindings: &Bindings) -> Selects {
        let mut reader = Reader {
            bindings,
            selects: Selects::default(),
            last_id: 0,
            scopes: Vec::new(),
            ctes: Vec::new(),
        };
        reader.query(query, Kind::Primary);
        reader.selects.blocks.sort_by_key(|block| block.id);
        reader.selects
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

/// The names that expressions of a SELECT may mean.
struct Scope {
    /// The SELECT, by its number.
    id: usize,
    /// What it calls its tables, and their columns where they are known.
    tables: Vec<(String, Option<Vec<String>>)>,
}

/// A common table expression.
#[derive(Clone)]
struct Cte {
    query: Query,
    /// The number of its first SELECT, from where that begins.
    first: Option<usize>,
    /// Whether that SELECT is being read.
    is_open: bool,
}

struct Reader<'a> {
    bindings: &'a Bindings,
    selects: Selects,
    last_id: usize,
    scopes: Vec<Scope>,
    ctes: Vec<HashMap<String, Cte>>,
}

impl Reader<'_> {
    /// Reads a query; the number of its first SELECT.
    fn query(&mut self, query: &Query, kind: Kind) -> usize {
        self.with(query);
        let mut ids = Vec::new();
        let mut operators = Vec::new();
        let mut is_kept = query.order_by.is_some();
        self.body(&query.body, kind, &mut ids, &mut operators, &mut is_kept);
        let first = ids.first().copied().unwrap_or_default();
        if ids.len() > 1 && is_kept {
            let (word, short) = match operators.as_slice() {
                [first, rest @ ..] if rest.iter().any(|other| other != first) => {
                    ("UNIT RESULT", "unit")
                }
                [SetOperator::Except | SetOperator::Minus, ..] => ("EXCEPT RESULT", "except"),
                [SetOperator::Intersect, ..] => ("INTERSECT RESULT", "intersect"),
                _ => ("UNION RESULT", "union"),
            };
            let ids: Vec<String> = ids.iter().map(usize::to_string).collect();
            self.selects.results.push(SetResult {
                word,
                name: format!("<{short}{}>", ids.join(",")),
            });
        }
        self.ctes.pop();
        first
    }

    fn with(&mut self, query: &Query) {
        let tables = query.with.iter().flat_map(|with| &with.cte_tables);
        let tables = tables.map(|cte| {
            let name = cte.alias.name.value.to_lowercase();
            let query = cte.query.as_ref().clone();
            let cte = Cte {
                query,
                first: None,
                is_open: false,
            };
            (name, cte)
        });
        self.ctes.push(tables.collect());
    }

    /// Reads the parts of a query; `is_kept` becomes whether their rows are kept before they are
    /// shown.
    fn body(
        &mut self,
        body: &SetExpr,
        kind: Kind,
        ids: &mut Vec<usize>,
        operators: &mut Vec<SetOperator>,
        is_kept: &mut bool,
    ) {
        match body {
            SetExpr::Select(select) => ids.push(self.select(select, kind)),
            SetExpr::Query(query) => {
                self.with(query);
                self.body(&query.body, kind, ids, operators, is_kept);
                self.ctes.pop();
            }
            SetExpr::SetOperation {
                op,
                set_quantifier,
                left,
                right,
            } => {
                let is_all = *set_quantifier == SetQuantifier::All;
                *is_kept |= !is_all || *op != SetOperator::Union;
                self.body(left, kind, ids, operators, is_kept);
                operators.push(*op);
                let mut ctes = self.ctes.iter().flat_map(HashMap::values);
                let first = ids.first().copied();
                let is_recursive = ctes.any(|cte| cte.is_open && cte.first == first);
                let kind = match is_recursive {
                    true => Kind::Recursive,
                    false => Kind::Set(*op),
                };
                self.body(right, kind, ids, operators, is_kept);
            }
            SetExpr::Table(_) => {
                if let Ok(Some(select)) = table_as_select(body) {
                    self.body(&select, kind, ids, operators, is_kept);
                }
            }
            SetExpr::Values(_) => {
                ids.push(self.begin(kind));
                self.scopes.pop();
            }
            _ => {}
        }
    }

    fn select(&mut self, select: &Select, kind: Kind) -> usize {
        let id = self.begin(kind);
        self.clauses(select, id);
        self.scopes.pop();
        id
    }

    /// A new SELECT, whose clauses come next.
    fn begin(&mut self, kind: Kind) -> usize {
        self.last_id += 1;
        let id = self.last_id;
        self.selects.blocks.push(Block {
            id,
            kind,
            is_dependent: false,
            parts: Vec::new(),
        });
        self.scopes.push(Scope {
            id,
            tables: Vec::new(),
        });
        id
    }

    /// Reads the clauses of a SELECT whose tables belong to the one with a number.
    fn clauses(&mut self, select: &Select, id: usize) {
        // Names of tables are known before expressions are read, but numbers follow the text.
        let names = tables(&select.from).into_iter();
        let names: Vec<_> = names.filter_map(|factor| self.named(factor)).collect();
        if let Some(scope) = self.scopes.last_mut() {
            scope.tables.extend(names);
        }
        for item in &select.projection {
            if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
                self.expression(expr);
            }
        }
        for table in &select.from {
            self.table(table, id);
        }
        if let Some(condition) = &select.selection {
            self.condition(condition, id);
        }
        if let GroupByExpr::Expressions(keys, _) = &select.group_by {
            for key in keys {
                self.expression(key);
            }
        }
        if let Some(having) = &select.having {
            self.expression(having);
        }
    }

    fn table(&mut self, table: &TableWithJoins, id: usize) {
        self.factor(&table.relation, id);
        for join in &table.joins {
            self.factor(&join.relation, id);
            if let Some(JoinConstraint::On(condition)) = constraint(&join.join_operator) {
                self.condition(condition, id);
            }
        }
    }

    fn factor(&mut self, factor: &TableFactor, id: usize) {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                let Some(table) = table_name(name) else {
                    return;
                };
                let found = self.cte(&table.table).filter(|_| table.database.is_none());
                let called = alias.as_ref().map(|alias| &alias.name.value);
                let called = called.map(|name| inner_name::shown(name).to_owned());
                match found {
                    // Its rows are there once, for itself and for all others.
                    Some(Cte {
                        first: Some(first),
                        is_open,
                        ..
                    }) => {
                        self.add(id, Part::Derived(first));
                        if is_open {
                            self.selects.recursive.push(table.table);
                        }
                    }
                    Some(cte) => self.derived(&cte.query, Some(&table.table), id),
                    None => {
                        let name = called.unwrap_or_else(|| table.table.clone());
                        let table = table.table;
                        self.add(id, Part::Table { table, name });
                    }
                }
            }
            TableFactor::Derived { subquery, .. } => self.derived(subquery, None, id),
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => self.table(table_with_joins, id),
            _ => {}
        }
    }

    /// A derived table: one of its own, or no more than its tables.
    fn derived(&mut self, query: &Query, cte: Option<&str>, id: usize) {
        if let Some(select) = self.plain(query) {
            self.absorbed(query, select, id);
            return;
        }
        let number = self.last_id + 1;
        if let Some(cte) = cte.and_then(|name| self.cte_mut(name)) {
            (cte.first, cte.is_open) = (Some(number), true);
        }
        // Derived tables do not see the tables beside them.
        let beside = self.scopes.pop();
        self.query(query, Kind::Derived);
        self.scopes.extend(beside);
        if let Some(cte) = cte.and_then(|name| self.cte_mut(name)) {
            cte.is_open = false;
        }
        self.add(id, Part::Derived(number));
    }

    /// The SELECT that a query is, if it has a row for each one of its tables or fewer.
    fn plain<'q>(&self, query: &'q Query) -> Option<&'q Select> {
        let SetExpr::Select(select) = query.body.as_ref() else {
            return None;
        };
        let groups = match &select.group_by {
            GroupByExpr::Expressions(keys, with) => !keys.is_empty() || !with.is_empty(),
            GroupByExpr::All(_) => true,
        };
        let is_distinct = !matches!(select.distinct, None | Some(Distinct::All));
        let computes = |expr: &Expr| match expr {
            Expr::Function(function) => {
                let name = function.name.to_string().to_ascii_lowercase();
                function.over.is_some() || self.bindings.aggregates.contains(&name)
            }
            _ => false,
        };
        let is_plain = !groups
            && !is_distinct
            && !select.from.is_empty()
            && select.having.is_none()
            && query.limit_clause.is_none()
            && query.fetch.is_none()
            && !select.projection.iter().any(|item| match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                    finds(expr, &mut { computes })
                }
                _ => false,
            });
        is_plain.then_some(select.as_ref())
    }

    /// Reads a condition whose parts must all hold.
    fn condition(&mut self, condition: &Expr, id: usize) {
        match condition {
            Expr::Nested(inner) => self.condition(inner, id),
            Expr::BinaryOp {
                left,
                op: BinaryOperator::And,
                right,
            } => {
                self.condition(left, id);
                self.condition(right, id);
            }
            Expr::UnaryOp {
                op: UnaryOperator::Not,
                expr,
            } if matches!(expr.as_ref(), Expr::Exists { .. }) => self.condition(expr, id),
            Expr::InSubquery { expr, subquery, .. } => match self.plain(subquery) {
                Some(select) => {
                    self.expression(expr);
                    self.absorbed(subquery, select, id);
                }
                None => self.expression(condition),
            },
            Expr::Exists { subquery, .. } => match self.plain(subquery) {
                Some(select) => self.absorbed(subquery, select, id),
                None => self.expression(condition),
            },
            other => self.expression(other),
        }
    }

    /// Reads a query whose tables belong to the SELECT around it.
    fn absorbed(&mut self, query: &Query, select: &Select, id: usize) {
        self.with(query);
        // It has a number all the same.
        self.last_id += 1;
        self.scopes.push(Scope {
            id,
            tables: Vec::new(),
        });
        self.clauses(select, id);
        self.scopes.pop();
        self.ctes.pop();
    }

    fn expression(&mut self, expr: &Expr) {
        let mut found = Found::default();
        let _ = walk::read(expr, &mut found);
        for names in &found.columns {
            self.column(names);
        }
        for query in found.queries {
            if self.is_constant(&query) {
                // MySQL takes the value of it for it.
                self.last_id += 1;
                continue;
            }
            self.query(&query, Kind::Subquery);
        }
    }

    /// Whether a subquery is a value without a table.
    fn is_constant(&self, query: &Query) -> bool {
        match query.body.as_ref() {
            SetExpr::Select(select) => {
                let list = select.projection.as_slice();
                let plain = match list {
                    [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] => {
                        !matches!(expr, Expr::Function(_))
                    }
                    _ => false,
                };
                plain && select.from.is_empty() && select.selection.is_none()
            }
            _ => false,
        }
    }

    /// Notes which SELECTs a column comes from beyond.
    fn column(&mut self, names: &[String]) {
        let Some((column, qualifier)) = names.split_last() else {
            return;
        };
        let table = qualifier.last();
        let has = |scope: &Scope| {
            scope.tables.iter().any(|(name, columns)| match table {
                Some(table) => name == table,
                None => columns
                    .as_ref()
                    .is_none_or(|columns| columns.contains(column)),
            })
        };
        let Some(place) = self.scopes.iter().rposition(has) else {
            return;
        };
        let owner = self.scopes[place].id;
        let beyond: Vec<usize> = self.scopes[place + 1..]
            .iter()
            .map(|scope| scope.id)
            .collect();
        for block in &mut self.selects.blocks {
            block.is_dependent |= block.id != owner && beyond.contains(&block.id);
        }
    }

    /// What a table is called, and its columns.
    fn named(&self, factor: &TableFactor) -> Option<(String, Option<Vec<String>>)> {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                let table = table_name(name)?;
                let database = table.database.clone();
                let database = database.or_else(|| self.bindings.database.clone());
                let is_cte = table.database.is_none() && self.cte(&table.table).is_some();
                let bound = database.filter(|_| !is_cte).and_then(|database| {
                    self.bindings.tables.get(&(database, table.table.clone()))
                });
                let columns = bound.map(|bound| {
                    bound
                        .columns
                        .iter()
                        .map(|name| name.to_lowercase())
                        .collect()
                });
                let name = alias
                    .as_ref()
                    .map_or(table.table, |alias| alias.name.value.clone());
                Some((name.to_lowercase(), columns))
            }
            TableFactor::Derived {
                alias, subquery, ..
            } => {
                let name = alias.as_ref()?.name.value.to_lowercase();
                Some((name, columns_of(subquery)))
            }
            _ => None,
        }
    }

    fn cte(&self, name: &str) -> Option<Cte> {
        let name = name.to_lowercase();
        self.ctes
            .iter()
            .rev()
            .find_map(|of_query| of_query.get(&name))
            .cloned()
    }

    fn cte_mut(&mut self, name: &str) -> Option<&mut Cte> {
        let name = name.to_lowercase();
        self.ctes
            .iter_mut()
            .rev()
            .find_map(|of_query| of_query.get_mut(&name))
    }

    fn add(&mut self, id: usize, part: Part) {
        let mut blocks = self.selects.blocks.iter_mut();
        if let Some(block) = blocks.find(|block| block.id == id) {
            block.parts.push(part);
        }
    }
}

/// The names of a query's columns, if its list tells them.
fn columns_of(query: &Query) -> Option<Vec<String>> {
    let SetExpr::Select(select) = query.body.as_ref() else {
        return None;
    };
    let names = select.projection.iter().map(|item| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.to_lowercase()),
        SelectItem::UnnamedExpr(Expr::Identifier(name)) => Some(name.value.to_lowercase()),
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(names)) => {
            names.last().map(|name| name.value.to_lowercase())
        }
        SelectItem::UnnamedExpr(_) => Some(String::new()),
        _ => None,
    });
    names.collect()
}

/// What an expression mentions outside of its subqueries, and those.
#[derive(Default)]
struct Found {
    depth: usize,
    queries: Vec<Query>,
    columns: Vec<Vec<String>>,
}

impl Visitor for Found {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        if self.depth == 0 {
            self.queries.push(query.clone());
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let names = match expr {
            Expr::Identifier(name) => std::slice::from_ref(name),
            Expr::CompoundIdentifier(names) => names,
            _ => &[],
        };
        if self.depth == 0 && !names.is_empty() && variable(expr).is_none() {
            let names = names.iter().map(|name| name.value.to_lowercase());
            self.columns.push(names.collect());
        }
        ControlFlow::Continue(())
    }
}
