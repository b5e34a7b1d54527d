//! Columns that `*` and NATURAL JOIN leave out.
//!
//! A table whose invisible columns a query does not name is planned without them. Where one is
//! named, `*` is written out table by table, and NATURAL JOIN with its columns; what cannot be
//! written so is refused.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{
    ExcludeSelectItem, Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart,
    Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor,
    TableWithJoins, Value, Visitor, WildcardAdditionalOptions,
};
use mayfly_types::{ErrorCode, MySqlError};

use super::relation::{constraint, resolve};
use crate::bindings::{Bindings, BoundTable};
use crate::references::table_name;
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

fn has_invisible(bindings: &Bindings) -> bool {
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
        select.from.iter().for_each(|table| self.read_joins(table));
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

impl Search {
    fn read_joins(&mut self, table: &TableWithJoins) {
        let joins = table.joins.iter();
        for factor in std::iter::once(&table.relation).chain(joins.map(|join| &join.relation)) {
            if let TableFactor::NestedJoin {
                table_with_joins, ..
            } = factor
            {
                self.read_joins(table_with_joins);
            }
        }
        for join in &table.joins {
            match constraint_of(join) {
                Some(JoinConstraint::Natural) => self.leaves_out = true,
                Some(JoinConstraint::Using(names)) => {
                    self.named.extend(names.iter().filter_map(last));
                }
                _ => {}
            }
        }
    }
}

fn constraint_of(join: &Join) -> Option<JoinConstraint> {
    constraint(&mut join.join_operator.clone()).cloned()
}

fn last(name: &ObjectName) -> Option<String> {
    let ident = name.0.last()?.as_ident()?;
    Some(ident.value.to_lowercase())
}

fn is_wildcard(item: &SelectItem) -> bool {
    matches!(
        item,
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)
    )
}

/// A table of FROM.
struct Relation<'a> {
    /// How its columns are qualified.
    name: ObjectName,
    /// The table, unless it is a query.
    bound: Option<&'a BoundTable>,
    /// Columns that a join has shown already.
    shown: Vec<String>,
}

impl Relation<'_> {
    fn invisible(&self) -> &[String] {
        self.bound.map_or(&[], |bound| &bound.invisible)
    }

    /// The columns that NATURAL JOIN looks at.
    fn visible(&self) -> Option<Vec<String>> {
        let bound = self.bound?;
        let columns = bound.columns.iter().map(|column| column.to_lowercase());
        Some(
            columns
                .filter(|column| !bound.invisible.contains(column))
                .collect(),
        )
    }

    /// Its visible columns, without those that were shown already.
    fn all(&self) -> SelectItem {
        let mut options = WildcardAdditionalOptions::default();
        exclude(&mut options, self.invisible().iter().chain(&self.shown));
        let kind = SelectItemQualifiedWildcardKind::ObjectName(self.name.clone());
        SelectItem::QualifiedWildcard(kind, options)
    }
}

fn exclude<'a>(options: &mut WildcardAdditionalOptions, names: impl Iterator<Item = &'a String>) {
    let mut seen = HashSet::new();
    let names: Vec<ObjectName> = names
        .filter(|name| seen.insert(name.as_str()))
        .map(|name| ObjectName::from(vec![Ident::with_quote('`', name)]))
        .collect();
    if !names.is_empty() {
        options.opt_exclude = Some(ExcludeSelectItem::Multiple(names));
    }
}

/// Leaves the invisible columns of tables out of a select list and of NATURAL JOIN. `ctes` are the
/// names of common table expressions of the statement.
pub(super) fn leave_out(
    select: &mut Select,
    bindings: &Bindings,
    ctes: &HashSet<String>,
) -> Result<(), MySqlError> {
    if !has_invisible(bindings) {
        return Ok(());
    }
    let mut relations = Vec::new();
    let mut is_simple = true;
    for table in &mut select.from {
        let first = relations.len();
        resolve(&mut table.relation);
        relations.extend(relation(&table.relation, bindings, ctes)?);
        is_simple &= !matches!(table.relation, TableFactor::NestedJoin { .. });
        for join in &mut table.joins {
            resolve(&mut join.relation);
            is_simple &= !matches!(join.relation, TableFactor::NestedJoin { .. });
            let mut right = relation(&join.relation, bindings, ctes)?;
            write_natural(join, &relations[first..], &right)?;
            if let Some(JoinConstraint::Using(names)) = constraint_of(join) {
                is_simple &= !is_right(&join.join_operator);
                if let Some(right) = &mut right {
                    right.shown = names.iter().filter_map(last).collect();
                }
            }
            relations.extend(right);
        }
    }
    if relations
        .iter()
        .all(|relation| relation.invisible().is_empty())
    {
        return Ok(());
    }
    let mut list = Vec::with_capacity(select.projection.len());
    for item in std::mem::take(&mut select.projection) {
        match item {
            SelectItem::Wildcard(_) if is_simple => {
                list.extend(relations.iter().map(Relation::all))
            }
            SelectItem::Wildcard(_) => {
                return Err(refused("* beside an invisible column and such a join"));
            }
            SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                mut options,
            ) => {
                let mut named = relations
                    .iter()
                    .filter(|found| ends_with(&found.name, &name));
                if let Some(relation) = named.next() {
                    exclude(&mut options, relation.invisible().iter());
                }
                let kind = SelectItemQualifiedWildcardKind::ObjectName(name);
                list.push(SelectItem::QualifiedWildcard(kind, options));
            }
            other => list.push(other),
        }
    }
    select.projection = list;
    Ok(())
}

fn refused(what: &str) -> MySqlError {
    MySqlError::new(ErrorCode::NotSupportedYet, &[&what])
}

fn ends_with(whole: &ObjectName, part: &ObjectName) -> bool {
    let values = |name: &ObjectName| -> Vec<String> {
        let parts = name.0.iter().filter_map(ObjectNamePart::as_ident);
        parts.map(|ident| ident.value.clone()).collect()
    };
    values(whole).ends_with(&values(part))
}

fn is_right(operator: &JoinOperator) -> bool {
    matches!(
        operator,
        JoinOperator::Right(_) | JoinOperator::RightOuter(_)
    )
}

/// A table of FROM; `None` for one that has no name of its own.
fn relation<'a>(
    factor: &TableFactor,
    bindings: &'a Bindings,
    ctes: &HashSet<String>,
) -> Result<Option<Relation<'a>>, MySqlError> {
    let (name, alias) = match factor {
        TableFactor::Table { name, alias, .. } => (Some(name), alias),
        TableFactor::Derived { alias, .. } => (None, alias),
        _ => return Ok(None),
    };
    let bound = match name.and_then(table_name) {
        None => None,
        Some(table) => {
            let database = table.database.clone().or_else(|| bindings.database.clone());
            let found = bindings
                .tables
                .get(&(database.unwrap_or_default(), table.table.clone()));
            let may_be_cte = table.database.is_none() && ctes.contains(&table.table);
            match found {
                Some(bound) if may_be_cte && !bound.invisible.is_empty() => {
                    return Err(refused(
                        "WITH under the name of a table with invisible columns",
                    ));
                }
                _ if may_be_cte => None,
                found => found,
            }
        }
    };
    let name = match (alias, name) {
        (Some(alias), _) => ObjectName::from(vec![alias.name.clone()]),
        (None, Some(name)) => name.clone(),
        (None, None) => return Ok(None),
    };
    Ok(Some(Relation {
        name,
        bound,
        shown: Vec::new(),
    }))
}

/// Writes out the columns of a NATURAL JOIN, where one of its tables has invisible ones.
fn write_natural(
    join: &mut Join,
    left: &[Relation<'_>],
    right: &Option<Relation<'_>>,
) -> Result<(), MySqlError> {
    if !matches!(constraint_of(join), Some(JoinConstraint::Natural)) {
        return Ok(());
    }
    let mut all = left.iter().chain(right);
    if all.all(|relation| relation.invisible().is_empty()) {
        return Ok(());
    }
    let unknown = || refused("NATURAL JOIN beside an invisible column");
    let mut on_left = HashSet::new();
    for relation in left {
        on_left.extend(relation.visible().ok_or_else(unknown)?);
    }
    let right = right.as_ref().and_then(Relation::visible);
    let mut common = right.ok_or_else(unknown)?;
    common.retain(|column| on_left.contains(column));
    let names = common.iter().map(|column| Ident::with_quote('`', column));
    let names: Vec<ObjectName> = names.map(|name| ObjectName::from(vec![name])).collect();
    if let Some(constraint) = constraint(&mut join.join_operator) {
        *constraint = match names.is_empty() {
            false => JoinConstraint::Using(names),
            true => JoinConstraint::On(Expr::Value(Value::Boolean(true).into())),
        };
    }
    Ok(())
}
