//! Values of subqueries whose condition names a whole unique key of their table:
//! `(SELECT b.x FROM b WHERE b.id = a.b_id)`.
//!
//! No outer row has more than one value, so a left join gives them, and where the outer rows are
//! few the key finds their partners. Other subqueries must be grouped, to tell whether a row has
//! more than one value.
//!
//! **Cost**: a lookup for each outer row, or a scan of the table.

use std::collections::HashMap;

use datafusion::common::tree_node::TreeNode;
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Subquery, lit};

use super::joined::{Joined, Renamed, as_columns, equal_column, inlined};
use super::listed::list_of;
use crate::functions::cast::as_text;
use crate::keyed::Keyed;

/// How the other sides of such joins are named, before a number.
pub const LOOKED_UP: &str = "mayfly looked up";
/// The column that is true in a row that has a partner.
const MATCHED: &str = "matched";

/// A SELECT list or a condition without such values.
pub(super) fn joined(plan: LogicalPlan) -> Result<Joined> {
    as_columns(plan, &|subquery, outer| {
        LookedUp::of(subquery, outer)
            .map(|looked_up| looked_up.joined(outer))
            .transpose()
    })
}

/// A value over the row of a table that a key finds.
struct LookedUp<'a> {
    value: Expr,
    filter: &'a Filter,
}

impl<'a> LookedUp<'a> {
    /// Takes a subquery apart; `None` if it has another shape.
    fn of(subquery: &'a Subquery, outer: &LogicalPlan) -> Option<LookedUp<'a>> {
        let mut plan = subquery.subquery.as_ref();
        let [column] = plan.schema().columns().try_into().ok()?;
        let mut value = Expr::Column(column);
        while let LogicalPlan::Projection(projection) = plan {
            value = inlined(value, projection)?;
            plan = &projection.input;
        }
        let LogicalPlan::Filter(filter) = plan else {
            return None;
        };
        let exprs = [&value, &filter.predicate];
        if !exprs.into_iter().all(|expr| is_plain(expr, outer)) {
            return None;
        }
        let (table, unique) = keys_of(&filter.input)?;
        let conditions = split_conjunction_owned(filter.predicate.clone());
        let equal: Vec<&Column> = conditions
            .iter()
            .filter_map(|condition| equal_column(condition, table))
            .collect();
        let is_equal = |name: &String| equal.iter().any(|column| column.name == *name);
        let is_found = unique.iter().any(|key| key.iter().all(is_equal));
        is_found.then_some(LookedUp { value, filter })
    }

    /// The outer rows with what belongs to them, and the value over both.
    fn joined(&self, outer: &LogicalPlan) -> Result<(LogicalPlan, Expr)> {
        let table = format!("{LOOKED_UP} {}", outer.schema().fields().len());
        let (of_both, of_inner): (Vec<Expr>, Vec<Expr>) =
            split_conjunction_owned(self.filter.predicate.clone())
                .into_iter()
                .partition(Expr::contains_outer);
        let mut list = Vec::new();
        let mut names = HashMap::new();
        for (index, column) in self.filter.input.schema().columns().into_iter().enumerate() {
            let name = format!("column {index}");
            list.push(Expr::Column(column.clone()).alias(&name));
            names.insert(
                column,
                Expr::Column(Column::new(Some(table.as_str()), name)),
            );
        }
        let renamed = Renamed(names);
        let is_column = matches!(self.value, Expr::Column(_));
        if !is_column {
            list.push(lit(true).alias(MATCHED));
        }
        let mut inner = LogicalPlanBuilder::from(self.filter.input.as_ref().clone());
        if let Some(condition) = of_inner.into_iter().reduce(Expr::and) {
            inner = inner.filter(condition)?;
        }
        let inner = inner.project(list)?.alias(table.as_str())?.build()?;
        let conditions: Vec<Expr> = of_both
            .into_iter()
            .map(|condition| renamed.apply(condition))
            .collect::<Result<_>>()?;
        let plan = LogicalPlanBuilder::from(outer.clone())
            .join_on(inner, JoinType::Left, conditions)?
            .build()?;
        let value = renamed.apply(self.value.clone())?;
        if is_column {
            // The value of a subquery is no column.
            let value = match list_of(&value, plan.schema()) {
                Some(list) => as_text(value, &list),
                None => value,
            };
            return Ok((plan, value));
        }
        // What is computed of no row is NULL, and a row that nobody asks for computes nothing.
        let matched = Expr::Column(Column::new(Some(table), MATCHED));
        let branch = (Box::new(matched), Box::new(value));
        Ok((plan, Expr::Case(Case::new(None, vec![branch], None))))
    }
}

/// Whether an expression has the same value each time, no subquery, and of the rows around it those
/// of one query only.
fn is_plain(expr: &Expr, outer: &LogicalPlan) -> bool {
    let is_else = |expr: &Expr| match expr {
        Expr::OuterReferenceColumn(_, column) => !outer.schema().has_column(column),
        Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) => true,
        Expr::SetComparison(_) => true,
        _ => false,
    };
    !expr.is_volatile() && !expr.exists(|expr| Ok(is_else(expr))).unwrap_or(true)
}

/// The schema and the unique keys of a table, under its own name or another one.
fn keys_of(plan: &LogicalPlan) -> Option<(&DFSchema, &[Vec<String>])> {
    let mut table = plan;
    if let LogicalPlan::SubqueryAlias(alias) = table {
        table = &alias.input;
    }
    match table {
        LogicalPlan::TableScan(scan) if scan.filters.is_empty() && scan.fetch.is_none() => {
            Some((plan.schema().as_ref(), Keyed::unique_of(&scan.source)))
        }
        _ => None,
    }
}
