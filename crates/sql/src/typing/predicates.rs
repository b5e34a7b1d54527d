//! BETWEEN, IN and LIKE: both sides of each become of one kind, as MySQL compares them.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, InList, InSubquery, Like};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, LogicalPlanBuilder, Operator, lit};
use mayfly_types::{BlobSize, ColumnType};

use super::compare::{
    beside_year, comparable, compare, constant_text, double, is_caseless, is_year, without_case,
};
use super::kind::{Kind, kind, kind_of};
use super::nameless::{data_type_of, type_of};
use super::subquery_expressions::is_correlated;
use super::{listed, subquery};
use crate::functions::own::LIKE;
use crate::functions::{call, cast, has_parts};
use crate::shallow;

pub(super) fn between_of(mut between: Between, schema: &DFSchema) -> Result<Expr> {
    let bounds = [between.low.as_ref(), between.high.as_ref()];
    if is_caseless(&between.expr, bounds, schema)? {
        for part in [&mut between.expr, &mut between.low, &mut between.high] {
            **part = without_case(std::mem::take(part.as_mut()));
        }
    }
    let parts = [&between.expr, &between.low, &between.high];
    if listed::any_number(parts.into_iter().map(AsRef::as_ref), schema)? {
        for part in [&mut between.expr, &mut between.low, &mut between.high] {
            if let Some(number) = listed::as_number(part, schema) {
                **part = number;
            }
        }
    }
    if is_year(&between.expr, schema)? {
        for bound in [&mut between.low, &mut between.high] {
            **bound = beside_year(std::mem::take(bound.as_mut()));
        }
    }
    let value = kind(&between.expr, schema)?;
    let plain = |bound: &Expr| -> Result<bool> {
        let bound = kind(bound, schema)?;
        Ok(bound == value || bound == Kind::Null)
    };
    if plain(&between.low)? && plain(&between.high)? {
        return Ok(Expr::Between(between));
    }
    let has_number =
        kind(&between.low, schema)?.is_number() || kind(&between.high, schema)?.is_number();
    if value == Kind::Text && has_number {
        // All three are numbers then.
        between.expr = Box::new(double(*between.expr));
    }
    let Between {
        expr,
        negated,
        low,
        high,
    } = between;
    let above = compare(expr.as_ref().clone(), Operator::GtEq, *low, schema)?;
    let below = compare(*expr, Operator::LtEq, *high, schema)?;
    let inside = Expr::BinaryExpr(BinaryExpr::new(
        Box::new(above),
        Operator::And,
        Box::new(below),
    ));
    Ok(if negated {
        Expr::Not(Box::new(inside))
    } else {
        inside
    })
}

pub(super) fn in_list(mut list: InList, schema: &DFSchema) -> Result<Expr> {
    let value = kind(&list.expr, schema)?;
    if value == Kind::Null {
        // Whatever the items are, which the engine would convert to one type.
        return Ok(Expr::Literal(ScalarValue::Boolean(None), None));
    }
    if is_caseless(&list.expr, &list.list, schema)? {
        for item in std::iter::once(list.expr.as_mut()).chain(&mut list.list) {
            *item = without_case(std::mem::take(item));
        }
    }
    if is_year(&list.expr, schema)? {
        for item in &mut list.list {
            *item = beside_year(std::mem::take(item));
        }
    }
    let mut same = value != Kind::Other;
    for item in &list.list {
        let item = kind(item, schema)?;
        same &= item == value || item == Kind::Null;
    }
    if same || value == Kind::Other {
        return Ok(Expr::InList(list));
    }
    let InList {
        expr,
        list,
        negated,
    } = list;
    // If converting changes only the items, a list remains; otherwise each is compared by itself.
    let pairs = list
        .into_iter()
        .map(|item| comparable(expr.as_ref().clone(), item, schema))
        .collect::<Result<Vec<_>>>()?;
    if let Some((first, _)) = pairs.first()
        && pairs.iter().all(|(left, _)| left == first)
    {
        let left = Box::new(first.clone());
        let items = pairs.into_iter().map(|(_, item)| item).collect();
        return Ok(Expr::InList(InList::new(left, items, negated)));
    }
    let binary = |left: Expr, operator: Operator, right: Expr| {
        Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right)))
    };
    let equal = pairs.into_iter();
    let equal = equal.map(|(left, right)| binary(left, Operator::Eq, right));
    let any = shallow::joined(equal.collect(), |any, one| binary(any, Operator::Or, one));
    let any = any.unwrap_or_else(|| lit(false));
    Ok(if negated {
        Expr::Not(Box::new(any))
    } else {
        any
    })
}

/// Converts one side of `value IN (SELECT ...)`, the subquery by a projection over it.
pub(super) fn in_subquery(query: InSubquery, schema: &DFSchema) -> Result<Expr> {
    if let Some(value) = subquery::value_of_row(&query.subquery, schema)? {
        let operator = match query.negated {
            true => Operator::NotEq,
            false => Operator::Eq,
        };
        return compare(*query.expr, operator, value, schema);
    }
    let plan = Arc::clone(&query.subquery.subquery);
    let [field] = plan.schema().fields().as_ref() else {
        return Ok(Expr::InSubquery(query));
    };
    let mut query = query;
    let (left, right) = (kind(&query.expr, schema)?, kind_of(field.data_type()));
    if left == Kind::Null && right == Kind::Null && query.negated {
        // A join of columns without a type does not see that all their values are NULL.
        query.expr = Box::new(Expr::Cast(Cast::new(query.expr, DataType::Int64)));
    }
    if left == right || left == Kind::Null || right == Kind::Null {
        let is_same = data_type_of(&query.expr, schema)? == *field.data_type();
        return match !is_same && is_correlated(&query.subquery) {
            // The stock coercion gives what it casts the name of the column, which the conditions
            // of the subquery may ask for as well.
            true => subquery::with_own_name(query),
            false => Ok(Expr::InSubquery(query)),
        };
    }
    let column = Expr::Column(plan.schema().columns()[0].clone());
    let mut both = schema.clone();
    both.merge(plan.schema());
    let Ok((left, right)) = comparable(query.expr.as_ref().clone(), column.clone(), &both) else {
        return Ok(Expr::InSubquery(query));
    };
    let InSubquery {
        mut subquery,
        negated,
        ..
    } = query;
    if right != column {
        let projected = LogicalPlanBuilder::from(plan.as_ref().clone())
            .project(vec![right.alias(subquery::COMPARED)])?
            .build()?;
        subquery.subquery = Arc::new(projected);
    }
    Ok(Expr::InSubquery(InSubquery::new(
        Box::new(left),
        subquery,
        negated,
    )))
}

pub(super) fn like_of(like: Like, schema: &DFSchema) -> Result<Expr> {
    let text = |expr: Box<Expr>| -> Result<Box<Expr>> {
        Ok(match kind(&expr, schema)? {
            Kind::Text | Kind::Null => expr,
            _ => {
                let of = ColumnType::Text(BlobSize::Long);
                Box::new(cast::conversion(of).call(vec![*expr]))
            }
        })
    };
    let Like {
        negated,
        expr,
        pattern,
        escape_char,
        case_insensitive,
    } = like;
    // A pattern in lower case escapes the same, unless it escapes with a letter.
    let has_no_case = escape_char.is_none_or(|escape| !escape.is_alphabetic());
    let (expr, pattern) = match has_no_case && is_caseless(&expr, [pattern.as_ref()], schema)? {
        true => [expr, pattern]
            .map(|part| Box::new(without_case(*part)))
            .into(),
        false => (expr, pattern),
    };
    let of_bytes =
        type_of(&expr, schema)?.is_binary_string() || type_of(&pattern, schema)?.is_binary_string();
    let (expr, pattern) = match of_bytes {
        true => (expr, pattern),
        false => (text(expr)?, text(pattern)?),
    };
    match escape_char {
        escape
            if of_bytes
                || escape.is_some_and(|escape| escape != '\\')
                || constant_text(&pattern).is_some_and(has_parts) =>
        {
            let escape = escape.unwrap_or('\\');
            let arguments = vec![*expr, *pattern, lit(escape.to_string())];
            let matched = call(LIKE, arguments);
            Ok(if negated {
                Expr::Not(Box::new(matched))
            } else {
                matched
            })
        }
        _ => Ok(Expr::Like(Like::new(
            negated,
            expr,
            pattern,
            None,
            case_insensitive,
        ))),
    }
}
