//! Placeholders for the outer columns of a subquery.
//!
//! The planner writes a column of any query around a subquery as an outer column, and does not say
//! of which. As names are looked up, it is one of the innermost query that has a column of the
//! name: of a query between the subquery and this row, if that has it, and else of this row.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery};
use mayfly_exec::slots::placeholder;
use mayfly_types::ColumnType;

use super::node::field_of;
use crate::planning::check;
use crate::typing::{refused, subquery_of, with_subquery};

/// Whether a plan, or a subquery in it at any depth, has subqueries that name rows around them.
pub(crate) fn has_outer_rows(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        check()?;
        let mut found = is_lateral(node);
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Some(subquery) = subquery_of(expr) {
                    found |= is_correlated(subquery)? || has_outer_rows(&subquery.subquery)?;
                }
                Ok(match found {
                    true => TreeNodeRecursion::Stop,
                    false => TreeNodeRecursion::Continue,
                })
            })
        })?;
        Ok(found)
    })
}

/// Whether a node is a subquery in FROM that names columns of the rows beside it.
pub(crate) fn is_lateral(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Subquery(subquery) if !subquery.outer_ref_columns.is_empty())
}

/// Whether an expression has a subquery that names a row around it, itself or by one of its own.
pub(crate) fn names_outer_row(expr: &Expr) -> Result<bool> {
    expr.exists(|expr| match subquery_of(expr) {
        Some(subquery) => is_correlated(subquery),
        None => Ok(false),
    })
}

pub(super) fn is_correlated(subquery: &Subquery) -> Result<bool> {
    Ok(!subquery.outer_ref_columns.is_empty() || reaches_out(&subquery.subquery, &mut Vec::new())?)
}

/// Whether a plan names rows around the queries that it stands in.
fn reaches_out(plan: &LogicalPlan, between: &mut Vec<DFSchema>) -> Result<bool> {
    check()?;
    for input in plan.inputs() {
        if reaches_out(input, between)? {
            return Ok(true);
        }
    }
    let mut found = false;
    plan.apply_expressions(|expr| {
        expr.apply(|expr| {
            if let Expr::OuterReferenceColumn(_, column) = expr {
                found |= !is_between(between, column);
            } else if let Some(subquery) = subquery_of(expr) {
                between.push(merge_schema(&plan.inputs()));
                let reaches = reaches_out(&subquery.subquery, between);
                between.pop();
                found |= reaches?;
            }
            Ok(match found {
                true => TreeNodeRecursion::Stop,
                false => TreeNodeRecursion::Continue,
            })
        })
    })?;
    Ok(found)
}

/// Whether a column is one of the queries between a subquery and its outer row.
fn is_between(between: &[DFSchema], column: &Column) -> bool {
    let mut queries = between.iter();
    queries.any(|query| field_of(query, column).is_some())
}

/// A number that nothing else in this process has: placeholders of plans inside one another must
/// not be taken for each other.
pub(super) fn next_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The columns of an outer row that have placeholders.
pub(super) struct OuterColumns<'a> {
    /// The columns of the outer row.
    schema: &'a DFSchema,
    found: Vec<(usize, Column)>,
}

/// An aggregate of outer columns alone is one of the query that has these.
fn check_aggregates(aggregates: &[Expr]) -> Result<()> {
    for aggregate in aggregates {
        let is_of_outer = aggregate.exists(|expr| {
            Ok(matches!(expr, Expr::AggregateFunction(_))
                && expr.contains_outer()
                && expr.column_refs().is_empty())
        })?;
        if is_of_outer {
            return Err(refused());
        }
    }
    Ok(())
}

impl<'a> OuterColumns<'a> {
    pub(super) fn of(schema: &'a DFSchema) -> Self {
        Self {
            schema,
            found: Vec::new(),
        }
    }

    /// Those that were found, with the numbers of their placeholders.
    pub(super) fn found(self) -> Vec<(usize, Column)> {
        self.found
    }

    /// The plan of a subquery with placeholders.
    pub(super) fn in_subquery(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        self.in_plan(plan, &mut Vec::new())
    }

    /// An expression of the outer row, to stand in the subquery.
    pub(super) fn in_value(&mut self, value: Expr) -> Result<Expr> {
        let value = value.transform_up(|expr| {
            Ok(match &expr {
                Expr::Column(column) => match self.placeholder(column)? {
                    Some(placeholder) => Transformed::yes(placeholder),
                    None => Transformed::no(expr),
                },
                _ => Transformed::no(expr),
            })
        });
        value.data()
    }

    /// What stands for a column of the outer row; `None` if that has none of this name.
    fn placeholder(&mut self, column: &Column) -> Result<Option<Expr>> {
        let Some(field) = field_of(self.schema, column) else {
            return Ok(None);
        };
        let column_type = ColumnType::from_arrow(&field);
        if matches!(column_type, ColumnType::Enum(_) | ColumnType::Set(_)) {
            // They are numbers too, which only columns know.
            return Err(refused());
        }
        let known = self.found.iter().find(|(_, found)| found == column);
        let number = match known {
            Some((number, _)) => *number,
            None => {
                let number = next_number();
                self.found.push((number, column.clone()));
                number
            }
        };
        Ok(Some(placeholder(number, field)))
    }

    /// `between` are the columns of the queries that the plan stands in, below the outer row.
    fn in_plan(&mut self, plan: LogicalPlan, between: &mut Vec<DFSchema>) -> Result<LogicalPlan> {
        check()?;
        let plan = plan.map_children(|input| self.in_plan(input, between).map(Transformed::yes))?;
        if let LogicalPlan::Aggregate(aggregate) = &plan.data {
            check_aggregates(&aggregate.aggr_expr)?;
        }
        let inputs = merge_schema(&plan.data.inputs());
        // What is computed keeps its name, by which the nodes above know it.
        let names = NamePreserver::new(&plan.data);
        let changed = plan.data.map_expressions(|expr| {
            let name = names.save(&expr);
            let changed = expr.transform_up(|expr| self.in_expression(expr, &inputs, between))?;
            Ok(changed.update_data(|expr| name.restore(expr)))
        })?;
        changed.map_data(LogicalPlan::recompute_schema).data()
    }

    fn in_expression(
        &mut self,
        expr: Expr,
        inputs: &DFSchema,
        between: &mut Vec<DFSchema>,
    ) -> Result<Transformed<Expr>> {
        if let Expr::OuterReferenceColumn(_, column) = &expr {
            if is_between(between, column) {
                return Ok(Transformed::no(expr));
            }
            return Ok(match self.placeholder(column)? {
                Some(placeholder) => Transformed::yes(placeholder),
                None => Transformed::no(expr),
            });
        }
        let Some(subquery) = subquery_of(&expr) else {
            return Ok(Transformed::no(expr));
        };
        between.push(inputs.clone());
        let plan = self.in_plan(subquery.subquery.as_ref().clone(), between);
        between.pop();
        let plan = plan?;
        let subquery = Subquery {
            outer_ref_columns: plan.all_out_ref_exprs(),
            subquery: Arc::new(plan),
            spans: subquery.spans.clone(),
        };
        Ok(Transformed::yes(with_subquery(expr, subquery)))
    }
}
