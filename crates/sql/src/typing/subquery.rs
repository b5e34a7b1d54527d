//! Subqueries that the planner refuses, in a form that it takes.
//!
//! - A correlated value that is no aggregate, `(SELECT x FROM t WHERE t.k = u.k)`, becomes one: any
//!   value of the group with the number of its rows, which must be one when it is used.
//! - EXISTS and IN in a select list become counts, ANY and ALL become EXISTS before.
//! - The subquery of ANY and ALL gets a name of its own: the planner compares its column with one
//!   of the outer query, and takes them for the same one when both tables have the same name.
//! - A value of a subquery without rows is NULL, whatever its column says.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::first_last::first_value_udaf;
use datafusion::logical_expr::expr::{
    AggregateFunction, Case, Exists, InSubquery, SetComparison, SetQuantifier, Sort as SortExpr,
};
use datafusion::logical_expr::utils::find_out_reference_exprs;
use datafusion::logical_expr::{
    Expr, ExprSchemable, Filter, Limit, LogicalPlan, LogicalPlanBuilder, Operator, Sort, Subquery,
    lit,
};

use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::case::case_of;
use super::compare::{comparable, compare, truth};
use super::joined::{inlined, replaced};
use super::listed::metadata_of_value;
use super::nameless::field_of;
use super::subquery_expressions::{has_subquery, is_correlated};
use super::{listed, quantified};
use crate::functions::cast::as_text;
use crate::functions::{any_value, raise, single};

/// The value of a subquery; its plan is typed.
pub(super) fn value(subquery: Subquery) -> Result<Expr> {
    let plan = &subquery.subquery;
    let [field] = plan.schema().fields().as_ref() else {
        return Ok(Expr::ScalarSubquery(subquery));
    };
    let list = listed::list_of_field(field);
    // The value of a subquery is no column: of ENUM and SET it is a text.
    let value_of = |value: Expr| match &list {
        Some(list) => as_text(value, list),
        None => value,
    };
    if subquery.outer_ref_columns.is_empty() {
        if list.is_none() && (stays_nullable(plan, 0) || single::is_nullable_value(plan)) {
            return Ok(Expr::ScalarSubquery(subquery));
        }
        let name = field.name().clone();
        let column = value_of(Expr::Column(plan.schema().columns()[0].clone()));
        let column = single::nullable().call(vec![column]).alias(name);
        let plan = LogicalPlanBuilder::from(plan.as_ref().clone())
            .project(vec![column])?
            .build()?;
        return Ok(Expr::ScalarSubquery(with_plan(subquery, plan)));
    }
    if let Some(row) = row_of_aggregate(plan)? {
        return Ok(Expr::ScalarSubquery(with_plan(subquery, row)));
    }
    if is_aggregated(plan) {
        // Its row may be missing, whatever its column says.
        let is_nullable = field.is_nullable();
        let value = Expr::ScalarSubquery(subquery);
        return Ok(match is_nullable {
            true => value,
            false => single::nullable().call(vec![value]),
        });
    }
    if let Some(plan) = first_row(plan, value_of)? {
        return Ok(Expr::ScalarSubquery(with_plan(subquery, plan)));
    }
    let column = value_of(Expr::Column(plan.schema().columns()[0].clone()));
    let metadata = shown_type(&column, plan.schema())?;
    let found = { any_value::any_value() }
        .call(vec![column])
        .alias_with_metadata(VALUE, metadata);
    let plan = LogicalPlanBuilder::from(plan.as_ref().clone())
        .aggregate(Vec::<Expr>::new(), vec![found, rows().alias(ROWS)])?
        .project(vec![
            single::pair()
                .call(vec![named(VALUE), named(ROWS)])
                .alias(PAIR),
        ])?
        .build()?;
    let pair = Expr::ScalarSubquery(with_plan(subquery, plan));
    Ok(single::single().call(vec![pair]))
}

/// What says the MySQL type of a value, which the engine may forget; BIT is a number as a value.
fn shown_type(value: &Expr, schema: &DFSchema) -> Result<Option<FieldMetadata>> {
    let field = field_of(value, schema)?;
    let is_bit = matches!(ColumnType::from_arrow(&field), ColumnType::Bit { .. });
    Ok(metadata_of_value(&field, false).filter(|_| !is_bit))
}

/// Whether a column may be NULL whatever the optimizer makes of its plan: it is one of a table, or
/// an aggregate. What is computed may become a constant, and an outer join an inner one.
fn stays_nullable(plan: &LogicalPlan, index: usize) -> bool {
    if !plan.schema().field(index).is_nullable() {
        return false;
    }
    match plan {
        LogicalPlan::Projection(projection) => match projection.expr[index].clone().unalias() {
            Expr::Column(column) => {
                let input = projection.input.as_ref();
                let index = input.schema().maybe_index_of_column(&column);
                index.is_some_and(|index| stays_nullable(input, index))
            }
            _ => false,
        },
        LogicalPlan::SubqueryAlias(alias) => stays_nullable(&alias.input, index),
        LogicalPlan::Filter(filter) => stays_nullable(&filter.input, index),
        LogicalPlan::Sort(sort) => stays_nullable(&sort.input, index),
        LogicalPlan::Limit(limit) => stays_nullable(&limit.input, index),
        LogicalPlan::Aggregate(aggregate) => index >= aggregate.group_expr.len(),
        LogicalPlan::TableScan(_) => true,
        _ => false,
    }
}

fn with_plan(subquery: Subquery, plan: LogicalPlan) -> Subquery {
    Subquery {
        subquery: Arc::new(plan),
        ..subquery
    }
}

fn named(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn rows() -> Expr {
    count_udaf().call(vec![lit(1_i64)])
}

/// Whether a plan has at most one row because it aggregates without groups.
fn is_aggregated(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Aggregate(aggregate) => {
            !aggregate.aggr_expr.is_empty() && aggregate.group_expr.is_empty()
        }
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Filter(_) => {
            plan.inputs().into_iter().all(is_aggregated)
        }
        LogicalPlan::EmptyRelation(empty) => empty.produce_one_row,
        _ => false,
    }
}

/// The one row of an aggregate without groups, without the order and the limit that leave it as it
/// is; its value is NULL if HAVING does not let it pass. `None` for any other plan.
fn row_of_aggregate(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let mut value = Expr::Column(plan.schema().columns()[0].clone());
    let mut conditions = Vec::new();
    let mut row = plan;
    loop {
        row = match row {
            LogicalPlan::Aggregate(_) | LogicalPlan::EmptyRelation(_) => break,
            LogicalPlan::Projection(projection) => {
                for expr in conditions.iter_mut().chain([&mut value]) {
                    let Some(inner) = inlined(expr.clone(), projection) else {
                        return Ok(None);
                    };
                    *expr = inner;
                }
                projection.input.as_ref()
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let outside = alias.schema.columns().into_iter();
                let inside = alias.input.schema().columns().into_iter();
                let meaning: HashMap<Column, Expr> =
                    outside.zip(inside.map(Expr::Column)).collect();
                for expr in conditions.iter_mut().chain([&mut value]) {
                    *expr = replaced(expr.clone(), &meaning)?;
                }
                alias.input.as_ref()
            }
            LogicalPlan::Sort(sort) => sort.input.as_ref(),
            LogicalPlan::Limit(limit) if first_rows(limit).is_some_and(|rows| rows > 0) => {
                limit.input.as_ref()
            }
            // What stands in a select list can neither name outer columns nor be a test.
            LogicalPlan::Filter(Filter {
                predicate, input, ..
            }) if !predicate.contains_outer() && !has_subquery(predicate)? => {
                conditions.push(predicate.clone());
                input.as_ref()
            }
            _ => return Ok(None),
        };
    }
    if !is_aggregated(row) {
        return Ok(None);
    }
    if conditions.is_empty() && is_aggregated(plan) {
        return Ok(Some(plan.clone()));
    }
    // A value that varies would not be the one that has passed.
    let is_varying = conditions.iter().any(Expr::is_volatile);
    if let Some(condition) = conditions.into_iter().reduce(Expr::and) {
        if is_varying || !matches!(row, LogicalPlan::Aggregate(_)) {
            return Ok(None);
        }
        let branch = (Box::new(condition), Box::new(value));
        value = case_of(Case::new(None, vec![branch], None), row.schema())?;
    }
    let metadata = metadata_of_value(plan.schema().field(0), false);
    LogicalPlanBuilder::from(row.clone())
        .project(vec![value.alias_with_metadata(VALUE, metadata)])?
        .build()
        .map(Some)
}

/// How many rows a limit takes from the first one on.
fn first_rows(limit: &Limit) -> Option<i64> {
    let number = |expr: &Expr| match expr {
        Expr::Literal(ScalarValue::Int64(number), _) => *number,
        _ => None,
    };
    let skipped = limit.skip.as_deref().map_or(Some(0), number);
    let fetched = limit.fetch.as_deref().and_then(number);
    fetched.filter(|_| skipped == Some(0))
}

/// `... ORDER BY k LIMIT 1` as an aggregate: the value of the first row in that order.
fn first_row(
    plan: &LogicalPlan,
    value_of: impl FnOnce(Expr) -> Expr,
) -> Result<Option<LogicalPlan>> {
    let value = Expr::Column(plan.schema().columns()[0].clone());
    let Some((value, LogicalPlan::Limit(limit))) = below_projections(value, plan) else {
        return Ok(None);
    };
    if first_rows(limit) != Some(1) {
        return Ok(None);
    }
    // What is selected stands above the order where that has columns of its own.
    let sorted = below_projections(value.clone(), &limit.input);
    let (value, order, input): (Expr, Vec<SortExpr>, &LogicalPlan) = match sorted {
        Some((value, LogicalPlan::Sort(Sort { expr, input, .. }))) => (value, expr.clone(), input),
        _ => (value, Vec::new(), &limit.input),
    };
    let Some(order) = order_of_values(order, input)? else {
        return Ok(None);
    };
    let value = value_of(value);
    let metadata = shown_type(&value, input.schema())?;
    let first = if order.is_empty() {
        any_value::any_value().call(vec![value])
    } else {
        let function = first_value_udaf();
        Expr::AggregateFunction(AggregateFunction::new_udf(
            function,
            vec![value],
            false,
            None,
            order,
            None,
        ))
    };
    let plan = LogicalPlanBuilder::from(input.clone())
        .aggregate(
            Vec::<Expr>::new(),
            vec![first.alias_with_metadata(VALUE, metadata)],
        )?
        .build()?;
    Ok(Some(plan))
}

/// An order without the keys that say nothing more: those that came before, and those that are the
/// same for all rows of a value. The engine counts such keys wrongly. `None` if another one names
/// an outer column, which an aggregate may not.
fn order_of_values(order: Vec<SortExpr>, input: &LogicalPlan) -> Result<Option<Vec<SortExpr>>> {
    let mut seen: Vec<Expr> = Vec::new();
    let mut kept = Vec::with_capacity(order.len());
    for key in order {
        let meant = match below_projections(key.expr.clone(), input) {
            Some((meant, _)) => meant,
            None => key.expr.clone(),
        };
        let is_same = !meant.any_column_refs() && !meant.is_volatile() && !has_subquery(&meant)?;
        // Nor may a projection below, which computes it.
        if meant.contains_outer() && !(is_same && key.expr == meant) {
            return Ok(None);
        }
        if is_same || seen.contains(&meant) {
            continue;
        }
        seen.push(meant);
        kept.push(key);
    }
    Ok(Some(kept))
}

/// A value over the plan below projections, and that plan; `None` if they cannot be told.
fn below_projections(mut value: Expr, mut plan: &LogicalPlan) -> Option<(Expr, &LogicalPlan)> {
    while let LogicalPlan::Projection(projection) = plan {
        value = inlined(value, projection)?;
        plan = &projection.input;
    }
    Some((value, plan))
}

/// A plan whose columns nobody else can name.
fn apart(plan: LogicalPlan) -> Result<LogicalPlan> {
    LogicalPlanBuilder::from(plan).alias(APART)?.build()
}

const APART: &str = "mayfly subquery";
/// The value of a subquery, the number of its rows, and both: no column of a table has such a name.
const VALUE: &str = "mayfly found";
const ROWS: &str = "mayfly rows";
const PAIR: &str = "mayfly pair";
/// The column of a subquery that is compared with values of another type.
pub(super) const COMPARED: &str = "mayfly compared";

/// The value of a subquery that is one row without a FROM, as an expression of the outer query:
/// what is compared with it needs no subquery. `None` for any other.
pub(super) fn value_of_row(subquery: &Subquery, outer: &DFSchema) -> Result<Option<Expr>> {
    let LogicalPlan::Projection(projection) = subquery.subquery.as_ref() else {
        return Ok(None);
    };
    let is_row = matches!(projection.input.as_ref(),
        LogicalPlan::EmptyRelation(empty) if empty.produce_one_row);
    let ([value], true) = (projection.expr.as_slice(), is_row) else {
        return Ok(None);
    };
    let has_subquery = value.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
        ))
    })?;
    if has_subquery {
        return Ok(None);
    }
    let value = value.clone().unalias().transform_up(|expr| {
        Ok(match expr {
            Expr::OuterReferenceColumn(_, column) if outer.has_column(&column) => {
                Transformed::yes(Expr::Column(column))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(Some(value.data))
}

/// `value > ANY (SELECT ...)` and its like, both sides as what they are compared as.
pub(super) fn quantified(comparison: SetComparison, schema: &DFSchema) -> Result<Expr> {
    let SetComparison {
        expr,
        mut subquery,
        op,
        quantifier,
    } = comparison;
    let plan = subquery.subquery.as_ref();
    let columns = plan.schema().fields().len();
    if columns != 1 {
        return Err(raise(MySqlError::new(
            ErrorCode::OperandColumns,
            &[&columns.min(1)],
        )));
    }
    if listed::list_of(&expr, schema).is_none()
        && let Some(value) = value_of_row(&subquery, schema)?
    {
        return compare(*expr, op, value, schema);
    }
    // Its column and one of the outer rows may have the same name, and not the same type.
    let column = Expr::Column(plan.schema().columns()[0].clone());
    let plan = LogicalPlanBuilder::from(plan.clone())
        .project(vec![column.alias(COMPARED)])?
        .build()?;
    let column = named(COMPARED);
    let mut both = schema.clone();
    both.merge(plan.schema());
    // `= ANY` is IN and `<> ALL` is NOT IN; under the others MariaDB has ENUM and SET as texts.
    let is_in = matches!(
        (op, quantifier),
        (Operator::Eq, SetQuantifier::Any) | (Operator::NotEq, SetQuantifier::All)
    );
    let value = match listed::list_of(&expr, schema).filter(|_| !is_in) {
        Some(list) => as_text(*expr, &list),
        None => *expr,
    };
    let (left, right) = comparable(value, column.clone(), &both)?;
    let plan = if right == column {
        plan
    } else {
        LogicalPlanBuilder::from(plan)
            .project(vec![right.alias(COMPARED)])?
            .build()?
    };
    // The planner knows nothing of a derived table with outer columns.
    subquery.subquery = Arc::new(match is_correlated(&subquery) {
        true => plan,
        false => apart(plan)?,
    });
    Ok(Expr::SetComparison(SetComparison::new(
        Box::new(left),
        subquery,
        op,
        quantifier,
    )))
}

/// EXISTS and IN of a select list, as values.
pub(super) fn tests_as_values(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let changed = quantified::values(expr, true, schema)?.transform_up(|expr| {
        Ok(match expr {
            Expr::Exists(exists) => Transformed::yes(exists_as_count(exists)?),
            Expr::InSubquery(query) => Transformed::yes(in_as_counts(query, schema)?),
            other => Transformed::no(other),
        })
    })?;
    Ok(changed.data)
}

/// The number of rows of a subquery, those that pass a filter.
pub(super) fn count_of(
    subquery: &Subquery,
    filter: Option<Expr>,
    outer: Vec<Expr>,
) -> Result<Expr> {
    let mut plan = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone());
    if let Some(filter) = filter {
        plan = plan.filter(filter)?;
    }
    let plan = plan
        .aggregate(Vec::<Expr>::new(), vec![rows().alias(ROWS)])?
        .build()?;
    Ok(Expr::ScalarSubquery(Subquery {
        subquery: Arc::new(plan),
        outer_ref_columns: outer,
        spans: subquery.spans.clone(),
    }))
}

/// IN whose subquery gives its column a name that no table has.
pub(super) fn with_own_name(mut query: InSubquery) -> Result<Expr> {
    let plan = query.subquery.subquery.as_ref().clone();
    let column = Expr::Column(plan.schema().columns()[0].clone());
    let named = LogicalPlanBuilder::from(plan).project(vec![column.alias(COMPARED)])?;
    query.subquery.subquery = Arc::new(named.build()?);
    Ok(Expr::InSubquery(query))
}

/// IN that is a part of a condition. The stock rules make a join of it that asks for the column of
/// the subquery both by the name that it has there and by the one that it has in the join; if it
/// has no table, as `max(r.a)` or what UNION returns, both find it, and it would be named twice.
pub(super) fn in_part_of_condition(query: InSubquery) -> Result<Expr> {
    let schema = query.subquery.subquery.schema();
    let is_found_twice = match schema.iter().next() {
        // One that was converted has a name of its own already.
        Some((None, column)) => column.name() != COMPARED,
        _ => false,
    };
    match is_found_twice && schema.fields().len() == 1 {
        true => with_own_name(query),
        false => Ok(Expr::InSubquery(query)),
    }
}

/// NOT IN of a value that all rows have, and that may be NULL. The stock rules join the rows with
/// those of the subquery, and there NULL is equal to none.
pub(super) fn not_in_of_all(query: InSubquery) -> Result<Expr> {
    let InSubquery {
        expr: value,
        mut subquery,
        ..
    } = query;
    subquery.subquery = Arc::new(apart(subquery.subquery.as_ref().clone())?);
    let inner = subquery.subquery.schema();
    let item = Expr::Column(inner.columns()[0].clone());
    let equal = compare(item.clone(), Operator::Eq, value.as_ref().clone(), inner)?;
    let unknown = item.is_null().or(value.is_null());
    let rows = count_of(&subquery, Some(equal.or(unknown)), Vec::new())?;
    Ok(is_positive(rows, true))
}

fn is_positive(count: Expr, negated: bool) -> Expr {
    let operator = if negated { Operator::Eq } else { Operator::Gt };
    datafusion::logical_expr::binary_expr(count, operator, lit(0_i64))
}

fn exists_as_count(exists: Exists) -> Result<Expr> {
    let Exists {
        mut subquery,
        negated,
    } = exists;
    let outer = subquery.outer_ref_columns.clone();
    if outer.is_empty() {
        let one = LogicalPlanBuilder::from(subquery.subquery.as_ref().clone())
            .limit(0, Some(1))?
            .build()?;
        subquery.subquery = Arc::new(one);
    }
    Ok(is_positive(count_of(&subquery, None, outer)?, negated))
}

/// TRUE for a row that is equal, NULL if one could be, FALSE otherwise.
fn in_as_counts(query: InSubquery, schema: &DFSchema) -> Result<Expr> {
    let InSubquery {
        expr,
        mut subquery,
        negated,
    } = query;
    subquery.subquery = Arc::new(apart(subquery.subquery.as_ref().clone())?);
    let outer = quantified::as_outer(expr.as_ref().clone(), schema)?;
    let columns = find_out_reference_exprs(&outer);
    let inner = subquery.subquery.schema();
    let item = Expr::Column(inner.columns()[0].clone());
    let equal = compare(item.clone(), Operator::Eq, outer, inner)?;
    let equals = is_positive(count_of(&subquery, Some(equal), columns)?, false);
    let unknowns = count_of(&subquery, Some(item.is_null()), Vec::new())?;
    let mut unknown = is_positive(unknowns, false);
    if expr.nullable(schema)? {
        let rows = is_positive(count_of(&subquery, None, Vec::new())?, false);
        unknown = unknown.or(expr.as_ref().clone().is_null().and(rows));
    }
    let null = Expr::Literal(ScalarValue::Boolean(None), None);
    let value = Expr::Case(Case::new(
        None,
        vec![
            (Box::new(equals), Box::new(lit(true))),
            (Box::new(unknown), Box::new(null)),
        ],
        Some(Box::new(lit(false))),
    ));
    if negated {
        Ok(Expr::Not(Box::new(truth(value, schema)?)))
    } else {
        Ok(value)
    }
}
