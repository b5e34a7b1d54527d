//! The analyzer rule that gives a plan MySQL's implicit conversions.
//!
//! It runs before the stock coercion, bottom-up over plan and expressions, and is idempotent:
//! what it leaves needs nothing more. Names of columns stay what they were.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Alias, Case, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, Operator, Projection};
use datafusion::optimizer::AnalyzerRule;
use mayfly_types::{ColumnType, TYPE_KEY};

use super::case::{case_of, with_digits};
use super::compare::{comparable, compare, compare_now, truth};
use super::kind::{Kind, kind_of};
use super::listed::metadata_of_value;
use super::nameless::{data_type_of, field_of, type_of};
use super::node::columns_below;
use super::operators::repair;
use super::{
    branches, computed_keys, correlated, dependent, except, grouping_sets, listed, looked_up,
    outer_keys, outer_types, outside, predicates, quantified, same_names, subquery, union, zero,
};
use crate::functions::own::{COMPARE, MARK, SUM_ARGUMENT, SUM_RESULT, TO_BOOLEAN, TO_DOUBLE};
use crate::functions::{arithmetic, cast, define, seeded};
use crate::planning::check;

/// The rule of typing.
#[derive(Debug)]
pub struct Typing;

impl AnalyzerRule for Typing {
    fn name(&self) -> &'static str {
        "mysql_typing"
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let found = correlated::check(&plan)?;
        let plan = match found.outer_joins {
            true => correlated::above_joins(plan)?,
            false => plan,
        };
        let plan = match found.outer_keys {
            true => outer_keys::as_constants(plan)?,
            false => plan,
        };
        let plan = same_names::told_apart(plan)?;
        let mut typed = outer_types::renewed(plan.transform_up_with_subqueries(node)?.data)?;
        if typed.transformed {
            typed = typed.data.transform_up_with_subqueries(node)?;
        }
        branches::in_plan(typed.data, config)
    }
}

fn node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    check()?;
    if let Some(moved) = outside::moved(&plan, &|plan| Ok(node(plan)?.data))? {
        return Ok(Transformed::yes(moved));
    }
    // Before a value that is looked up stands between the windows and the node above them.
    let plan = computed_keys::of_windows_below(plan)?;
    // What is joined keeps its condition, which is typed with the columns that it has gained.
    let joined = looked_up::joined(plan)?;
    let typed = joined.map(|plan| Ok(typed(plan)?.data))?;
    typed.restored().map(Transformed::yes)
}

fn typed(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let plan = grouping_sets::over_columns(plan, &|plan| Ok(typed(plan)?.data))?;
    let schema = columns_below(&plan)?;
    let names = NamePreserver::new(&plan);
    let typed = plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(|expr| expression(expr, &schema))?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })?;
    typed
        .map_data(|plan| whole(plan, &schema))?
        .map_data(dependent::unnest)?
        .map_data(LogicalPlan::recompute_schema)
}

/// What concerns a node as a whole.
fn whole(plan: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    Ok(match plan {
        LogicalPlan::Filter(mut filter) => {
            let predicate = condition(filter.predicate, schema)?;
            filter.predicate = quantified::condition(predicate, schema)?;
            LogicalPlan::Filter(filter)
        }
        LogicalPlan::Join(join) if except::is_set_operation(&join) => except::typed(join)?,
        LogicalPlan::Join(mut join) => {
            join.filter = join
                .filter
                .map(|filter| condition(filter, schema))
                .transpose()?;
            join.on = join
                .on
                .into_iter()
                .map(|(left, right)| comparable(left, right, schema))
                .collect::<Result<_>>()?;
            LogicalPlan::Join(join)
        }
        LogicalPlan::Aggregate(mut aggregate) => {
            let is_grouped = !aggregate.group_expr.is_empty();
            aggregate.aggr_expr = aggregate
                .aggr_expr
                .into_iter()
                .map(|expr| with_type_of_argument(expr, is_grouped, schema))
                .collect::<Result<_>>()?;
            LogicalPlan::Aggregate(aggregate)
        }
        LogicalPlan::Sort(mut sort) => {
            sort.expr = zero::in_keys(listed::in_keys(sort.expr, schema), schema)?;
            computed_keys::of_sort(sort, schema)?
        }
        LogicalPlan::Union(union) => union::typed(union)?,
        LogicalPlan::RecursiveQuery(recursion) => union::in_recursion(recursion)?,
        LogicalPlan::Projection(projection) => select_list(projection, schema)?,
        other => other,
    })
}

/// The tests of a select list are values.
fn select_list(projection: Projection, schema: &DFSchema) -> Result<LogicalPlan> {
    let is_test = |expr: &Expr| {
        matches!(
            expr,
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_)
        )
    };
    let has_test = |expr: &Expr| expr.exists(|expr| Ok(is_test(expr)));
    for expr in &projection.expr {
        if has_test(expr)? {
            let list = projection
                .expr
                .into_iter()
                .map(|expr| {
                    let name = NamePreserver::new_for_projection().save(&expr);
                    Ok(name.restore(subquery::tests_as_values(expr, schema)?))
                })
                .collect::<Result<Vec<_>>>()?;
            let projection = Projection::try_new(list, projection.input)?;
            return Ok(LogicalPlan::Projection(projection));
        }
    }
    Ok(LogicalPlan::Projection(projection))
}

/// A condition: only what is true passes, so a test for truth around it says nothing.
fn condition(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    match expr {
        Expr::IsTrue(inner) => condition(*inner, schema),
        other => truth(other, schema),
    }
}

/// MIN and MAX have the MySQL type of their argument, which the engine forgets, and SUM has the
/// digits of a DOUBLE.
fn with_type_of_argument(expr: Expr, is_grouped: bool, schema: &DFSchema) -> Result<Expr> {
    let (inner, name) = match &expr {
        Expr::Alias(alias) if alias.metadata.is_none() => (alias.expr.as_ref(), alias.name.clone()),
        other => (other, other.schema_name().to_string()),
    };
    let Expr::AggregateFunction(function) = inner else {
        return Ok(expr);
    };
    let [argument] = function.params.args.as_slice() else {
        return Ok(expr);
    };
    let field = field_of(argument, schema)?;
    let keeps = match function.func.name() {
        "min" | "max" => true,
        "sum" => ColumnType::from_arrow(&field).shown_digits().is_some(),
        _ => false,
    };
    if !keeps {
        return Ok(expr);
    }
    let Some(metadata) = metadata_of_value(&field, is_grouped) else {
        return Ok(expr);
    };
    let metadata = Some(metadata);
    let inner = inner.clone();
    Ok(Expr::Alias(Alias {
        expr: Box::new(inner),
        relation: None,
        name,
        metadata,
    }))
}

/// One expression, whose parts are done.
fn expression(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    check()?;
    Ok(Transformed::yes(match expr {
        Expr::BinaryExpr(binary) => repair(binary, schema)?,
        Expr::Not(inner) => Expr::Not(Box::new(truth(*inner, schema)?)),
        Expr::IsTrue(inner) => Expr::IsTrue(Box::new(truth(*inner, schema)?)),
        Expr::IsFalse(inner) => Expr::IsFalse(Box::new(truth(*inner, schema)?)),
        Expr::IsUnknown(inner) => Expr::IsUnknown(Box::new(truth(*inner, schema)?)),
        Expr::IsNotTrue(inner) => Expr::IsNotTrue(Box::new(truth(*inner, schema)?)),
        Expr::IsNotFalse(inner) => Expr::IsNotFalse(Box::new(truth(*inner, schema)?)),
        Expr::IsNotUnknown(inner) => Expr::IsNotUnknown(Box::new(truth(*inner, schema)?)),
        Expr::Between(between) => predicates::between_of(between, schema)?,
        Expr::InList(list) => match predicates::in_list(list, schema)? {
            Expr::InList(list) => Expr::InList(zero::in_list(list, schema)?),
            other => other,
        },
        Expr::InSubquery(query) => predicates::in_subquery(query, schema)?,
        Expr::Exists(exists) => quantified::existing(exists)?,
        Expr::Like(like) => predicates::like_of(like, schema)?,
        Expr::Case(case) => case_of(case, schema)?,
        Expr::Cast(cast) => cast_of(cast, schema)?,
        Expr::ScalarFunction(call) if arithmetic::is_chain(&call.func) => chain_of(call, schema)?,
        Expr::ScalarFunction(function) => function_of(function, schema)?,
        Expr::ScalarSubquery(query) => subquery::value(query)?,
        Expr::WindowFunction(window) => {
            let window = listed::in_window(*window, schema)?;
            Expr::WindowFunction(Box::new(zero::in_window(window, schema)?))
        }
        Expr::AggregateFunction(function) if function.func.name() == "group_concat" => {
            Expr::AggregateFunction(listed::in_group_concat(function, schema))
        }
        Expr::SetComparison(comparison) => subquery::quantified(comparison, schema)?,
        other => return Ok(Transformed::no(other)),
    }))
}

/// The argument of a function, which is to see the digits of a subquery's value.
fn seen(argument: Expr, schema: &DFSchema) -> Result<Expr> {
    if !matches!(argument, Expr::ScalarSubquery(_)) {
        return Ok(argument);
    }
    let of = type_of(&argument, schema)?;
    Ok(with_digits(argument, of))
}

fn cast_of(cast: Cast, schema: &DFSchema) -> Result<Expr> {
    let from = data_type_of(&cast.expr, schema)?;
    let to = cast.field.data_type();
    if to.is_numeric()
        && let Some(number) = listed::as_number(&cast.expr, schema)
    {
        let number = Box::new(number);
        return cast_of(
            Cast {
                expr: number,
                ..cast
            },
            schema,
        );
    }
    let declared = cast.field.metadata().contains_key(TYPE_KEY);
    if !declared && (from == *to || matches!(to, DataType::Boolean)) {
        return Ok(Expr::Cast(cast));
    }
    let numbers = |of: &DataType| of.is_numeric() || *of == DataType::Boolean;
    if !declared && (numbers(&from) && numbers(to) || kind_of(to) == Kind::Other) {
        return Ok(Expr::Cast(cast));
    }
    if from == DataType::Null {
        return Ok(Expr::Cast(cast));
    }
    let target = ColumnType::from_arrow(&cast.field);
    let value = seen(*cast.expr, schema)?;
    Ok(crate::functions::cast::conversion(target).call(vec![value]))
}

fn function_of(function: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let ScalarFunction { func, args } = function;
    let text = arithmetic::text(&func, &args);
    let mut args = listed::arguments(&func, args, schema)?;
    if define::name_of(&func).is_some_and(|name| !name.starts_with(MARK)) {
        args = { args.into_iter() }
            .map(|argument| seen(argument, schema))
            .collect::<Result<_>>()?;
    }
    match (define::name_of(&func), args.len()) {
        (Some("if"), 3) => {
            let otherwise = Box::new(args.remove(2));
            let then = Box::new(args.remove(1));
            let when = Box::new(args.remove(0));
            return case_of(Case::new(None, vec![(when, then)], Some(otherwise)), schema);
        }
        (Some("nullif"), 2) if !args[0].is_volatile() => {
            let same = compare(args[0].clone(), Operator::Eq, args.remove(1), schema)?;
            let null = Expr::Literal(ScalarValue::Null, None);
            let branches = vec![(Box::new(same), Box::new(null))];
            return case_of(
                Case::new(None, branches, Some(Box::new(args.remove(0)))),
                schema,
            );
        }
        (Some(COMPARE), 3) => return compare_now(args, schema),
        (Some(TO_BOOLEAN), 1) => return truth(args.remove(0), schema),
        (Some("find_in_set"), 2) => {
            if let Some(place) = listed::find_in_set(&args, schema) {
                return Ok(place);
            }
        }
        (Some("isnull"), 1) => return Ok(Expr::IsNull(Box::new(args.remove(0)))),
        (Some(TO_DOUBLE), 1) => match data_type_of(&args[0], schema)? {
            DataType::Float64 => return Ok(args.remove(0)),
            of if of.is_integer() || of == DataType::Float32 => {
                let argument = Box::new(args.remove(0));
                return Ok(Expr::Cast(Cast::new(argument, DataType::Float64)));
            }
            _ => {}
        },
        (Some("rand"), 1) => {
            if let Expr::Literal(seed, _) = &args[0] {
                let seed = match seed.cast_to(&DataType::Int64) {
                    Ok(ScalarValue::Int64(seed)) => seed.unwrap_or(0),
                    _ => 0,
                };
                return Ok(seeded::seeded_rand(seed).call(Vec::new()));
            }
        }
        (Some(SUM_ARGUMENT | SUM_RESULT), 1) => {
            let data_type = data_type_of(&args[0], schema)?;
            let call = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&func), args));
            let of = type_of(&call, schema)?;
            let Expr::ScalarFunction(ScalarFunction {
                args: mut given, ..
            }) = call
            else {
                return Ok(call);
            };
            if data_type == of.data_type() {
                return Ok(given.remove(0));
            }
            // A conversion of whole numbers would become the engine's cast, which looks at each
            // digit. The function itself knows that all of them fit.
            if !(data_type.is_integer() && matches!(of.data_type(), DataType::Decimal128(_, _))) {
                return Ok(cast::conversion(of).call(given));
            }
            args = given;
        }
        _ => {}
    }
    let call = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&func), args));
    let of = type_of(&call, schema)?;
    let decided = define::decide(&func, &of).or_else(|| arithmetic::decide(&func, &of, text));
    Ok(match (call, decided) {
        (Expr::ScalarFunction(call), Some(decided)) => {
            let rounds = matches!(
                define::name_of(&decided),
                Some("ceil" | "floor" | "round" | "truncate")
            );
            let args = if rounds || arithmetic::is_exact(&decided) {
                call.args
                    .into_iter()
                    .map(|arg| intermediate(arg, schema))
                    .collect::<Result<_>>()?
            } else {
                call.args
            };
            Expr::ScalarFunction(ScalarFunction::new_udf(Arc::new(decided), args))
        }
        (call, _) => call,
    })
}

/// A long sum, whose steps have types of their own.
fn chain_of(call: ScalarFunction, schema: &DFSchema) -> Result<Expr> {
    let ScalarFunction { func, args } = call;
    let texts = arithmetic::operand_texts(&args);
    let mut args = listed::arguments(&func, args, schema)?;
    let fields = args.iter().map(|argument| field_of(argument, schema));
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let decided = arithmetic::decide_chain(&func, &fields, &args, texts)?;
    let Some((decided, is_exact)) = decided else {
        return Ok(Expr::ScalarFunction(ScalarFunction::new_udf(func, args)));
    };
    // No other step has a division for an operand.
    if is_exact && let Some(first) = args.first_mut() {
        *first = intermediate(std::mem::take(first), schema)?;
    }
    let call = ScalarFunction::new_udf(Arc::new(decided), args);
    Ok(Expr::ScalarFunction(call))
}

/// A division inside another operator keeps more digits than it shows.
fn intermediate(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let Expr::ScalarFunction(function) = &expr else {
        return Ok(expr);
    };
    if let [operand] = function.args.as_slice() {
        let negation = arithmetic::intermediate_negation(&function.func, type_of(operand, schema)?);
        return Ok(match negation {
            Some(negation) => negation.call(function.args.clone()),
            None => expr,
        });
    }
    let [left, right] = function.args.as_slice() else {
        return Ok(expr);
    };
    let scale = |expr: &Expr| -> Result<u8> {
        Ok(match type_of(expr, schema)? {
            ColumnType::Decimal { scale, .. } => scale,
            _ => 0,
        })
    };
    let scales = (scale(left)?, scale(right)?);
    Ok(match arithmetic::intermediate(&function.func, scales) {
        Some(division) => division.call(function.args.clone()),
        None => expr,
    })
}
