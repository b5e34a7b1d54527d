//! Reads a statement for its SELECTs.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Distinct, Expr, GroupByExpr, JoinConstraint, LimitClause, Query, Select,
    SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor, TableWithJoins, UnaryOperator,
    Value,
};

use super::block::{Block, Clause, Exclusion, Kind, Part, Selects, SetResult, Subquery, Window};
use super::found::Found;
use crate::bindings::{Bindings, BoundView};
use crate::from_list::{constraint, tables};
use crate::inner_name;
use crate::references::table_name;
use crate::rewrite::refused::{groups, is_grouped};
use crate::rewrite::relation::{is_dual, table_as_select};
use crate::statement::TableName;
use crate::walk;

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

/// What a query is made of: one SELECT, or several by set operations.
#[derive(Default)]
struct SetParts {
    /// The numbers of the SELECTs.
    ids: Vec<usize>,
    operators: Vec<SetOperator>,
    /// Whether rows of them become one.
    is_distinct: bool,
}

pub(super) struct Reader<'a> {
    bindings: &'a Bindings,
    selects: Selects,
    last_id: usize,
    scopes: Vec<Scope>,
    ctes: Vec<HashMap<String, Cte>>,
}

impl<'a> Reader<'a> {
    pub(super) fn read(query: &Query, bindings: &'a Bindings) -> Selects {
        let mut reader = Reader {
            bindings,
            selects: Selects::default(),
            last_id: 0,
            scopes: Vec::new(),
            ctes: Vec::new(),
        };
        reader.query(query, Kind::Primary);
        reader.selects
    }

    /// Reads a query; the number of its first SELECT.
    fn query(&mut self, query: &Query, kind: Kind) -> usize {
        let mut parts = SetParts::default();
        self.parts(query, kind, &mut parts);
        let SetParts {
            ids,
            operators,
            is_distinct,
        } = parts;
        let first = ids.first().copied().unwrap_or_default();
        if let (true, Some(operator)) = (ids.len() > 1, operators.last().copied()) {
            let (word, short) = match operators.as_slice() {
                [first, rest @ ..] if rest.iter().any(|other| other != first) => {
                    ("UNIT RESULT", "unit")
                }
                [SetOperator::Except | SetOperator::Minus, ..] => ("EXCEPT RESULT", "except"),
                [SetOperator::Intersect, ..] => ("INTERSECT RESULT", "intersect"),
                _ => ("UNION RESULT", "union"),
            };
            let numbers: Vec<String> = ids.iter().map(usize::to_string).collect();
            self.selects.results.push(SetResult {
                word,
                name: format!("<{short}{}>", numbers.join(",")),
                ids,
                operator,
                is_distinct,
                is_ordered: query.order_by.is_some(),
            });
        }
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

    /// Reads the parts of a query, which may be one in parentheses.
    fn parts(&mut self, query: &Query, kind: Kind, parts: &mut SetParts) {
        self.with(query);
        let before = parts.ids.len();
        self.body(&query.body, kind, parts);
        let ids = &parts.ids[before..];
        if let ([only], Some(_)) = (ids, &query.order_by) {
            self.block_mut(*only, |block| block.is_ordered = true);
        }
        self.limits(query, ids);
        self.ctes.pop();
    }

    fn body(&mut self, body: &SetExpr, kind: Kind, parts: &mut SetParts) {
        match body {
            SetExpr::Select(select) => parts.ids.push(self.select(select, kind)),
            SetExpr::Query(query) => self.parts(query, kind, parts),
            SetExpr::SetOperation {
                op,
                set_quantifier,
                left,
                right,
            } => {
                let is_all = *set_quantifier == SetQuantifier::All;
                parts.is_distinct |= !is_all || *op != SetOperator::Union;
                self.body(left, kind, parts);
                parts.operators.push(*op);
                let mut ctes = self.ctes.iter().flat_map(HashMap::values);
                let first = parts.ids.first().copied();
                let is_recursive = ctes.any(|cte| cte.is_open && cte.first == first);
                let kind = match is_recursive {
                    true => Kind::Recursive,
                    false => Kind::Set(*op),
                };
                self.body(right, kind, parts);
            }
            SetExpr::Table(_) => {
                if let Ok(Some(select)) = table_as_select(body) {
                    self.body(&select, kind, parts);
                }
            }
            SetExpr::Values(_) => {
                parts.ids.push(self.begin(kind));
                self.scopes.pop();
            }
            _ => {}
        }
    }

    fn select(&mut self, select: &Select, kind: Kind) -> usize {
        let id = self.begin(kind);
        self.block_mut(id, |block| {
            (block.is_grouped, block.is_distinct) = (is_grouped(select), is_distinct(select));
        });
        self.clauses(select, id);
        self.scopes.pop();
        id
    }

    fn block_mut(&mut self, id: usize, change: impl FnOnce(&mut Block)) {
        // Most often the last one.
        let mut blocks = self.selects.blocks.iter_mut().rev();
        if let Some(block) = blocks.find(|block| block.id == id) {
            change(block);
        }
    }

    /// Notes what can keep out the rows of a SELECT; what works first counts.
    fn excludes(&mut self, id: usize, exclusion: Exclusion) {
        self.block_mut(id, |block| {
            block.exclusion.get_or_insert(exclusion);
        });
    }

    /// Notes whether LIMIT 0 keeps out the rows of the SELECTs of a query.
    fn limits(&mut self, query: &Query, ids: &[usize]) {
        for id in ids.iter().filter(|_| has_zero_limit(query)) {
            self.block_mut(*id, |block| block.exclusion = Some(Exclusion::ZeroLimit));
        }
    }

    /// A new SELECT, whose clauses come next.
    fn begin(&mut self, kind: Kind) -> usize {
        self.last_id += 1;
        let id = self.last_id;
        self.selects.blocks.push(Block::new(id, kind));
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
                self.expression(expr, Clause::List);
            }
        }
        for table in &select.from {
            self.table(table, id);
        }
        if let Some(condition) = &select.selection {
            self.excludes(id, Exclusion::Condition);
            self.condition(condition, id);
        }
        if let GroupByExpr::Expressions(keys, _) = &select.group_by {
            for key in keys {
                self.expression(key, Clause::GroupBy);
            }
        }
        if let Some(having) = &select.having {
            self.excludes(id, Exclusion::Having);
            self.expression(having, Clause::Having);
        }
    }

    fn table(&mut self, table: &TableWithJoins, id: usize) {
        self.factor(&table.relation, id);
        for join in &table.joins {
            self.factor(&join.relation, id);
            if let Some(JoinConstraint::On(condition)) = constraint(&join.join_operator) {
                self.excludes(id, Exclusion::Condition);
                self.condition(condition, id);
            }
        }
    }

    fn factor(&mut self, factor: &TableFactor, id: usize) {
        match factor {
            factor if is_dual(factor, self.bindings) => {}
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
                        let name = called.or_else(|| Some(table.table.clone()));
                        self.add(id, Part::Derived { id: first, name });
                        if is_open {
                            self.selects.recursive.push(table.table);
                        }
                    }
                    Some(cte) => self.derived(&cte.query, Some(&table.table), called, id),
                    None if let Some(view) = self.view(&table) => {
                        let name = called.unwrap_or(table.table);
                        self.view_inside(view, name, id);
                    }
                    None => {
                        let name = called.unwrap_or_else(|| table.table.clone());
                        let table = table.table;
                        self.add(id, Part::Table { table, name });
                    }
                }
            }
            TableFactor::Derived {
                subquery, alias, ..
            } => {
                let called = alias.as_ref().map(|alias| &alias.name.value);
                let called = called.map(|name| inner_name::shown(name).to_owned());
                self.derived(subquery, None, called, id);
            }
            TableFactor::NestedJoin {
                table_with_joins, ..
            } => self.table(table_with_joins, id),
            _ => {}
        }
    }

    /// A derived table: one of its own, or no more than its tables.
    fn derived(&mut self, query: &Query, cte: Option<&str>, called: Option<String>, id: usize) {
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
        let name = called.or_else(|| cte.map(str::to_owned));
        self.add(id, Part::Derived { id: number, name });
    }

    /// The view of a name.
    fn view(&self, name: &TableName) -> Option<&'a BoundView> {
        let bound = self.bindings.table(name.database.as_deref(), &name.table)?;
        bound.view.as_deref()
    }

    /// A view is a derived table, in which names mean what they mean there.
    fn view_inside(&mut self, view: &'a BoundView, called: String, id: usize) {
        let outside = std::mem::replace(&mut self.bindings, &view.bindings);
        let ctes = std::mem::take(&mut self.ctes);
        self.derived(&view.query, None, Some(called), id);
        self.ctes = ctes;
        self.bindings = outside;
    }

    /// The SELECT that a query is, if it has a row for each one of its tables or fewer.
    fn plain<'q>(&self, query: &'q Query) -> Option<&'q Select> {
        let SetExpr::Select(select) = query.body.as_ref() else {
            return None;
        };
        let is_plain = !is_distinct(select)
            && !select.from.is_empty()
            && select.having.is_none()
            && query.limit_clause.is_none()
            && query.fetch.is_none()
            && !groups(select, &self.bindings.aggregates);
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
                    self.expression(expr, Clause::Condition);
                    self.absorbed(subquery, select, id);
                }
                None => self.expression(condition, Clause::Condition),
            },
            Expr::Exists { subquery, .. } => match self.plain(subquery) {
                Some(select) => self.absorbed(subquery, select, id),
                None => self.expression(condition, Clause::Condition),
            },
            other => self.expression(other, Clause::Condition),
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

    fn expression(&mut self, expr: &Expr, clause: Clause) {
        let owner = self.scopes.last().map(|scope| scope.id);
        let mut found = Found::default();
        let _ = walk::read(expr, &mut found);
        for names in &found.columns {
            self.column(names);
        }
        for window in found.windows {
            self.window(window, owner);
        }
        for query in found.queries {
            if self.is_constant(&query) {
                // MySQL takes the value of it for it.
                self.last_id += 1;
                continue;
            }
            let id = self.query(&query, Kind::Subquery);
            if let Some(owner) = owner {
                self.block_mut(owner, |block| {
                    block.subqueries.push(Subquery { clause, id })
                });
            }
        }
    }

    /// Adds a window with a function over it to a SELECT.
    fn window(&mut self, window: Window, owner: Option<usize>) {
        let Some(owner) = owner else {
            return;
        };
        self.block_mut(owner, |block| {
            let is_it =
                |known: &&mut Window| (&known.name, &known.text) == (&window.name, &window.text);
            match block.windows.iter_mut().find(is_it) {
                Some(known) => known.functions.extend(window.functions),
                None => block.windows.push(window),
            }
        });
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
                let database = table.database.as_deref();
                let is_cte = database.is_none() && self.cte(&table.table).is_some();
                let bound = match is_cte {
                    true => None,
                    false => self.bindings.table(database, &table.table),
                };
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
        self.block_mut(id, |block| block.parts.push(part));
    }
}

/// Whether a SELECT shows equal rows once.
fn is_distinct(select: &Select) -> bool {
    !matches!(select.distinct, None | Some(Distinct::All))
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

/// Whether a query is written with LIMIT 0.
fn has_zero_limit(query: &Query) -> bool {
    let limit = match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit, .. }) => limit.as_ref(),
        Some(LimitClause::OffsetCommaLimit { limit, .. }) => Some(limit),
        None => None,
    };
    let Some(Expr::Value(value)) = limit else {
        return false;
    };
    matches!(&value.value, Value::Number(digits, _) if digits == "0")
}
