//! Values of subqueries whose condition compares with the outer row in another way than by `=`:
//! `(SELECT COUNT(*) FROM b WHERE b.x < a.x)`.
//!
//! The stock rules turn only equalities into joins, and that is right only where values that are
//! equal are one value, since they group by it. Here each outer row gets a number, is joined with
//! the rows that belong to it, and is put together again by that number:
//!
//! ```text
//! SELECT any_value(a.*), COUNT(b.x) FROM numbered a LEFT JOIN b ON b.x < a.x GROUP BY a.number
//! ```
//!
//! The outer rows are computed once. **Cost**: one step of the join for each pair of rows.

use std::collections::HashMap;

use datafusion::common::metadata::FieldMetadata;
use datafusion::common::{Column, JoinType};
use datafusion::error::Result;
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Aggregate, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Subquery, lit,
};

use super::joined::{Renamed, as_columns, equal_column, inlined, replaced};
use super::subquery_expressions::has_subquery;
use crate::functions::any_value;

/// The table name of the inner rows.
const INNER: &str = "mayfly inner";
/// The column that is true in a row that has a partner.
const MATCHED: &str = "matched";

/// A SELECT list or a condition without dependent values.
pub(super) fn unnest(plan: LogicalPlan) -> Result<LogicalPlan> {
    as_columns(plan, &|subquery, outer| {
        Dependent::of(subquery)
            .map(|dependent| dependent.joined(outer))
            .transpose()
    })?
    .restored()
}

/// A value that is an aggregate over the rows that belong to an outer row.
struct Dependent<'a> {
    /// The value over the aggregates, by the names of their columns.
    value: Expr,
    aggregate: &'a Aggregate,
    /// What the columns of the aggregate's input are over the table.
    columns: HashMap<Column, Expr>,
    filter: &'a Filter,
    /// The conditions of the filter that name outer columns.
    of_both: Vec<Expr>,
}

impl<'a> Dependent<'a> {
    /// Takes a subquery apart; `None` if the stock rules take it, or if it has another shape.
    fn of(subquery: &'a Subquery) -> Option<Dependent<'a>> {
        if subquery.outer_ref_columns.is_empty() {
            return None;
        }
        let mut plan = subquery.subquery.as_ref();
        let mut value = Expr::Column(plan.schema().columns().first()?.clone());
        while let LogicalPlan::Projection(projection) = plan {
            value = inlined(value, projection)?;
            plan = &projection.input;
        }
        let LogicalPlan::Aggregate(aggregate) = plan else {
            return None;
        };
        if !aggregate.group_expr.is_empty() {
            return None;
        }
        let mut plan = aggregate.input.as_ref();
        let mut columns: HashMap<Column, Expr> = plan
            .schema()
            .columns()
            .into_iter()
            .map(|column| (column.clone(), Expr::Column(column)))
            .collect();
        while let LogicalPlan::Projection(projection) = plan {
            for expr in columns.values_mut() {
                *expr = inlined(expr.clone(), projection)?;
            }
            plan = &projection.input;
        }
        let LogicalPlan::Filter(filter) = plan else {
            return None;
        };
        let of_both: Vec<Expr> = split_conjunction(&filter.predicate)
            .into_iter()
            .filter(|expr| expr.contains_outer())
            .cloned()
            .collect();
        let is_stock =
            { of_both.iter() }.all(|expr| equal_column(expr, filter.input.schema()).is_some());
        // The names of the columns change, and a subquery would not know it.
        let is_taken = of_both
            .iter()
            .all(|expr| has_subquery(expr).is_ok_and(|has| !has));
        if is_stock || !is_taken || !filter.input.all_out_ref_exprs().is_empty() {
            return None;
        }
        Some(Dependent {
            value,
            aggregate,
            columns,
            filter,
            of_both,
        })
    }

    /// The outer rows with the value in a column of its own.
    fn joined(&self, outer: &LogicalPlan) -> Result<(LogicalPlan, Expr)> {
        let outer_columns = outer.schema().columns();
        let name = format!("mayfly value {}", outer_columns.len());
        let number = row_number();
        let number_column = Column::new_unqualified(number.schema_name().to_string());
        let numbered = LogicalPlanBuilder::from(outer.clone()).window(vec![number])?;
        let (inner, renamed) = self.inner()?;
        let conditions: Vec<Expr> = { self.of_both.iter() }
            .map(|condition| renamed.apply(condition.clone()))
            .collect::<Result<_>>()?;
        let joined = numbered.join_on(inner, JoinType::Left, conditions)?;
        let kept = outer_columns.iter().enumerate().map(|(index, column)| {
            any_value::any_value()
                .call(vec![Expr::Column(column.clone())])
                .alias(format!("mayfly kept {index}"))
        });
        let mut aggregates: Vec<Expr> = kept.collect();
        let mut results = HashMap::new();
        let schema = &self.aggregate.schema;
        for (index, expr) in self.aggregate.aggr_expr.iter().enumerate() {
            let result = format!("mayfly result {index}");
            let column = schema.columns()[index].clone();
            results.insert(column, Expr::Column(Column::new_unqualified(&result)));
            let (expr, metadata) = bare(expr);
            let expr = self.of_matched(expr.clone(), &renamed)?;
            aggregates.push(expr.alias_with_metadata(result, metadata.cloned()));
        }
        let mut list: Vec<Expr> = outer_columns
            .iter()
            .enumerate()
            .map(|(index, column)| {
                let kept = Column::new_unqualified(format!("mayfly kept {index}"));
                Expr::Column(kept).alias_qualified(column.relation.clone(), &column.name)
            })
            .collect();
        list.push(replaced(self.value.clone(), &results)?.alias(&name));
        let plan = joined
            .aggregate(vec![Expr::Column(number_column)], aggregates)?
            .project(list)?
            .build()?;
        Ok((plan, Expr::Column(Column::new_unqualified(name))))
    }

    /// The table under names that no other has, with a column that is true.
    fn inner(&self) -> Result<(LogicalPlan, Renamed)> {
        let columns = self.filter.input.schema().columns();
        let mut list = Vec::with_capacity(columns.len() + 1);
        let mut names = HashMap::new();
        for (index, column) in columns.into_iter().enumerate() {
            let name = format!("column {index}");
            list.push(Expr::Column(column.clone()).alias(&name));
            names.insert(column, Expr::Column(Column::new(Some(INNER), name)));
        }
        list.push(lit(true).alias(MATCHED));
        let mut rows = LogicalPlanBuilder::from(self.filter.input.as_ref().clone());
        let of_inner = split_conjunction(&self.filter.predicate);
        let of_inner = of_inner.into_iter().filter(|expr| !expr.contains_outer());
        if let Some(condition) = of_inner.cloned().reduce(Expr::and) {
            rows = rows.filter(condition)?;
        }
        let plan = rows.project(list)?.alias(INNER)?.build()?;
        Ok((plan, Renamed(names)))
    }

    /// An aggregate over the rows that have a partner.
    fn of_matched(&self, aggregate: Expr, renamed: &Renamed) -> Result<Expr> {
        let matched = Expr::Column(Column::new(Some(INNER), MATCHED));
        let Expr::AggregateFunction(mut function) = aggregate else {
            return Ok(aggregate);
        };
        for (index, argument) in function.params.args.iter_mut().enumerate() {
            let over_table = replaced(argument.clone(), &self.columns)?;
            let value = renamed.apply(over_table)?;
            *argument = if index == 0 {
                let branch = (Box::new(matched.clone()), Box::new(value));
                Expr::Case(Case::new(None, vec![branch], None))
            } else {
                value
            };
        }
        for by in &mut function.params.order_by {
            let over_table = replaced(by.expr.clone(), &self.columns)?;
            by.expr = renamed.apply(over_table)?;
        }
        Ok(Expr::AggregateFunction(function))
    }
}

/// An expression without its name, and what is said of its type.
fn bare(mut expr: &Expr) -> (&Expr, Option<&FieldMetadata>) {
    let mut metadata = None;
    while let Expr::Alias(alias) = expr {
        metadata = metadata.or(alias.metadata.as_ref());
        expr = &alias.expr;
    }
    (expr, metadata)
}
