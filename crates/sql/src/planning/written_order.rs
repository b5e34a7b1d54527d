//! Filters that are pushed down without a change of their order.
//!
//! DataFusion's rule sorts the terms of a condition: comparisons of columns with constants by the
//! names of their columns, those that call functions last. Where functions warn, the order shows.
//! MySQL divides by zero in `8 / a > 2 AND a <> 0`, and does not in `a <> 0 AND 8 / a > 2`.
//!
//! Owns: the order of conditions that have terms of both kinds, and of those that a plan below may
//! give them: a column may be the name of a quotient there. Functions that never warn do not count.
//! Never: decides where a term goes.
//!
//! Where the rule leaves columns as they are, terms are put back by what they are. Where it writes
//! them in terms of other columns, that tells nothing: there each term that cannot warn is within
//! a wrapper that the rule does not sort.
//!
//! **Cost**: linear in the terms; conditions of one kind of terms are only looked at. Where no term
//! of several may warn, the expressions of the plan below are looked at, too.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, ExprSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{ScalarFunction, Unnest};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, lit};
use mayfly_exec::{Kind, SilentFunction};

use super::filter_terms::filter_terms;
use super::watch::check;

/// Applies the rule that pushes filters down to a node.
///
/// # Errors
/// Those of the rule.
pub(super) fn in_written_order(
    node: LogicalPlan,
    push: impl FnOnce(LogicalPlan) -> Result<Transformed<LogicalPlan>>,
) -> Result<Transformed<LogicalPlan>> {
    let (terms, below) = filter_terms(&node);
    if terms.len() < 2 {
        return push(node);
    }
    let schema = below.schema();
    let warning = terms.iter().filter(|term| may_warn(term, schema)).count();
    let is_of_one_kind = warning == terms.len() || (warning == 0 && !computes_what_warns(below)?);
    if is_of_one_kind {
        return push(node);
    }
    if renames_columns(below) {
        let mut seen = HashSet::new();
        let once = terms.into_iter().filter(|term| seen.insert(*term));
        let wrapped = once.map(|term| wrapped(term.clone(), schema));
        let wrapped = conjunction(wrapped).unwrap_or_else(|| lit(true));
        let filter = Filter::new(wrapped, Arc::new(below.clone()));
        let unwrap = |terms: Vec<Expr>| -> Vec<Expr> { terms.into_iter().map(unwrapped).collect() };
        return push(LogicalPlan::Filter(filter))?.map_data(|plan| with_terms(plan, &unwrap));
    }
    let mut places = HashMap::new();
    for (place, term) in terms.into_iter().enumerate() {
        places.entry(term.clone()).or_insert(place);
    }
    let schema = Arc::clone(schema);
    // What others have put there stays behind, in its order.
    let put_back = |mut terms: Vec<Expr>| {
        if warning == 0 || terms.iter().any(|term| may_warn(term, &schema)) {
            terms.sort_by_cached_key(|term| places.get(term).copied().unwrap_or(usize::MAX));
        }
        terms
    };
    push(node)?.map_data(|plan| with_terms(plan, &put_back))
}

/// Nothing but functions warns; arithmetic is functions too.
fn may_warn(term: &Expr, schema: &DFSchema) -> bool {
    let is_loud =
        |part: &Expr| Ok(matches!(part, Expr::ScalarFunction(call) if !is_silent(call, schema)));
    term.exists(is_loud).unwrap_or(true)
}

/// Whether a function never warns of values of the kinds that it is called with. Its arguments may.
fn is_silent(call: &ScalarFunction, schema: &DFSchema) -> bool {
    let Some(function) = SilentFunction::named(call.func.name()) else {
        return false;
    };
    function.is_silent(call.args.iter().map(|argument| kind(argument, schema)))
}

/// The kind of a value, where it shows at once: nobody asks long expressions for their types here.
fn kind(value: &Expr, schema: &DFSchema) -> Option<Kind> {
    match value {
        Expr::Column(column) => Kind::of(schema.field_from_column(column).ok()?),
        Expr::Literal(value, _) => Kind::of_type(&value.data_type()),
        Expr::Placeholder(of) => Kind::of_type(of.field.as_ref()?.data_type()),
        Expr::Cast(cast) => Kind::of(&cast.field),
        Expr::ScalarFunction(call) => {
            let function = SilentFunction::named(call.func.name())?;
            function.answer(|| kind(call.args.first()?, schema))
        }
        _ => None,
    }
}

/// Whether a plan computes, below the conditions on it, what may warn. Filters pass all of its
/// nodes but those with a limit.
fn computes_what_warns(plan: &LogicalPlan) -> Result<bool> {
    let mut waiting = vec![plan];
    while let Some(node) = waiting.pop() {
        check()?;
        let computed = match node {
            LogicalPlan::Projection(projection) => projection.expr.as_slice(),
            LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.as_slice(),
            LogicalPlan::Limit(_) => continue,
            _ => &[],
        };
        let inputs = node.inputs();
        if let [input] = inputs.as_slice() {
            let schema = input.schema();
            if computed.iter().any(|expr| may_warn(expr, schema)) {
                return Ok(true);
            }
        }
        waiting.extend(inputs);
    }
    Ok(false)
}

/// Whether the rule writes a condition on a node in terms of the columns below the node.
fn renames_columns(node: &LogicalPlan) -> bool {
    matches!(
        node,
        LogicalPlan::Projection(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::Aggregate(_)
    )
}

/// A term that the rule takes for a costly one, as it takes those with functions. UNNEST is not
/// known to MySQL, and nobody asks it for its type: it is gone when the rule has run.
fn wrapped(term: Expr, schema: &DFSchema) -> Expr {
    match may_warn(&term, schema) {
        true => term,
        false => Expr::Unnest(Unnest::new(term)),
    }
}

fn unwrapped(term: Expr) -> Expr {
    match term {
        Expr::Unnest(wrapper) => *wrapper.expr,
        term => term,
    }
}

/// A plan with the conditions changed that a rule may have written: of the filter that it left,
/// of the node that this one is over, and of the filters over its inputs.
fn with_terms(plan: LogicalPlan, change: &impl Fn(Vec<Expr>) -> Vec<Expr>) -> Result<LogicalPlan> {
    let levels = match plan {
        LogicalPlan::Filter(_) => 2,
        _ => 1,
    };
    at_levels(plan, levels, change)
}

fn at_levels(
    plan: LogicalPlan,
    levels: usize,
    change: &impl Fn(Vec<Expr>) -> Vec<Expr>,
) -> Result<LogicalPlan> {
    let changed = |condition: Expr| {
        let terms = change(split_conjunction_owned(condition));
        conjunction(terms).unwrap_or_else(|| lit(true))
    };
    let plan = match plan {
        LogicalPlan::Filter(mut filter) => {
            filter.predicate = changed(filter.predicate);
            LogicalPlan::Filter(filter)
        }
        LogicalPlan::Join(mut join) => {
            join.filter = join.filter.map(changed);
            LogicalPlan::Join(join)
        }
        LogicalPlan::TableScan(mut scan) => {
            scan.filters = change(scan.filters);
            LogicalPlan::TableScan(scan)
        }
        plan => plan,
    };
    if levels == 0 {
        return Ok(plan);
    }
    plan.map_children(|input| at_levels(input, levels - 1, change).map(Transformed::yes))
        .data()
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::common::tree_node::TreeNodeRecursion;
    use datafusion::logical_expr::{
        ColumnarValue, JoinType, LogicalPlanBuilder, Volatility, col, create_udf, table_scan,
    };
    use datafusion::optimizer::push_down_filter::PushDownFilter;
    use datafusion::optimizer::{OptimizerContext, OptimizerRule};

    use super::*;

    /// A call of a function that has a name and nothing else.
    fn call(name: &str, arguments: Vec<Expr>) -> Expr {
        let first = |values: &[ColumnarValue]| -> Result<_> { Ok(values[0].clone()) };
        let function = create_udf(
            name,
            vec![DataType::Int32; arguments.len()],
            DataType::Int32,
            Volatility::Immutable,
            Arc::new(first),
        );
        function.call(arguments)
    }

    /// A term that may warn.
    fn asked(of: Expr) -> Expr {
        call("f", vec![of]).gt(lit(2))
    }

    fn table(name: &str) -> LogicalPlanBuilder {
        let fields = ["a", "b", "c"].map(|name| Field::new(name, DataType::Int32, true));
        table_scan(Some(name), &Schema::new(fields.to_vec()), None).unwrap()
    }

    /// The conditions of a plan when all filters are pushed down, from the root to the leaves.
    fn pushed(plan: LogicalPlanBuilder) -> Vec<String> {
        let rule = PushDownFilter::new();
        let mut plan = plan.build().unwrap();
        // Another pass leaves the order of the first one.
        for _ in 0..2 {
            let pushed = plan.transform_down(|node| {
                in_written_order(node, |node| rule.rewrite(node, &OptimizerContext::new()))
            });
            plan = pushed.unwrap().data;
        }
        let mut conditions = Vec::new();
        let list = |node: &LogicalPlan| {
            match node {
                LogicalPlan::Filter(filter) => conditions.push(filter.predicate.to_string()),
                LogicalPlan::TableScan(scan) => {
                    let taken = conjunction(scan.filters.clone());
                    conditions.extend(taken.map(|terms| terms.to_string()));
                }
                _ => {}
            }
            Ok(TreeNodeRecursion::Continue)
        };
        plan.apply(list).unwrap();
        conditions
    }

    #[test]
    fn terms_stay_where_they_are_written_if_one_may_warn() {
        let condition = asked(col("a"))
            .and(col("b").not_eq(lit(0)))
            .and(col("a").gt(lit(1)))
            .and(asked(col("b")));
        let expected = "f(t.a) > Int32(2) AND t.b != Int32(0) AND t.a > Int32(1) \
                        AND f(t.b) > Int32(2)";
        let filtered = |plan: LogicalPlanBuilder| plan.filter(condition.clone()).unwrap();
        assert_eq!(pushed(filtered(table("t"))), [expected]);

        let sorted = table("t").sort(vec![col("a").sort(true, true)]).unwrap();
        assert_eq!(pushed(filtered(sorted)), [expected]);

        let named = table("t").alias("x").unwrap();
        assert_eq!(pushed(filtered(named)), [expected]);

        // Where columns get other names, and where some are computed.
        let columns = vec![col("a").alias("b"), (col("b") + lit(1)).alias("a")];
        let computed = table("t").project(columns).unwrap().alias("x").unwrap();
        let expected = "f(t.b + Int32(1)) > Int32(2) AND t.a != Int32(0) \
                        AND t.b + Int32(1) > Int32(1) AND f(t.a) > Int32(2)";
        assert_eq!(pushed(filtered(computed)), [expected]);

        let both = table("t").union(table("u").build().unwrap()).unwrap();
        let expected = |name: &str| {
            format!(
                "f({name}.a) > Int32(2) AND {name}.b != Int32(0) AND {name}.a > Int32(1) \
                 AND f({name}.b) > Int32(2)"
            )
        };
        assert_eq!(pushed(filtered(both)), [expected("t"), expected("u")]);
    }

    #[test]
    fn terms_of_several_filters_are_asked_from_the_inner_one_on() {
        let inner = table("t").filter(asked(col("a"))).unwrap();
        let outer = inner.filter(col("a").gt(lit(1))).unwrap();
        assert_eq!(pushed(outer), ["f(t.a) > Int32(2) AND t.a > Int32(1)"]);
    }

    #[test]
    fn terms_go_to_their_sides_of_a_join_in_their_order() {
        let on = (vec!["t.a"], vec!["u.a"]);
        let right = table("u").build().unwrap();
        let join = table("t").join(right, JoinType::Inner, on, None).unwrap();
        let condition = asked(col("t.b"))
            .and(asked(col("u.b")))
            .and(col("u.b").gt(lit(1)))
            .and(col("t.b").gt(lit(1)));
        let expected = [
            "f(t.b) > Int32(2) AND t.b > Int32(1)",
            "f(u.b) > Int32(2) AND u.b > Int32(1)",
        ];
        assert_eq!(pushed(join.filter(condition).unwrap()), expected);
    }

    #[test]
    fn terms_that_become_functions_below_stay_where_they_are_written() {
        let computed = || {
            let columns = vec![
                col("b").alias("z"),
                call("/", vec![lit(8), col("b")]).alias("q"),
            ];
            table("t").project(columns).unwrap().alias("d").unwrap()
        };
        let (z, q) = (|| col("d.z").gt(lit(0)), || col("d.q").gt(lit(2)));
        let quotient = "/(Int32(8), t.b) > Int32(2)";
        let z_first = format!("t.b > Int32(0) AND {quotient}");
        let q_first = format!("{quotient} AND t.b > Int32(0)");
        let on = || vec![col("d.z").eq(col("u.a"))];
        for (condition, expected) in [(z().and(q()), z_first), (q().and(z()), q_first)] {
            let filtered = computed().filter(condition.clone()).unwrap();
            assert_eq!(pushed(filtered), [expected.as_str()]);

            let named_again = computed().alias("x").unwrap().alias("d").unwrap();
            let filtered = named_again.filter(condition.clone()).unwrap();
            assert_eq!(pushed(filtered), [expected.as_str()]);

            let right = table("u").build().unwrap();
            let join = { computed().join_on(right, JoinType::Inner, on()) }.unwrap();
            let conditions = pushed(join.filter(condition).unwrap());
            assert!(conditions.contains(&expected), "{conditions:?}");
        }
        // What is not sorted by its column keeps its place, too.
        let other = z().and(col("d.q").not_eq(lit(2)));
        let expected = ["t.b > Int32(0) AND /(Int32(8), t.b) != Int32(2)"];
        assert_eq!(pushed(computed().filter(other).unwrap()), expected);
    }

    #[test]
    fn terms_that_cannot_warn_are_sorted_by_the_rule() {
        let filtered = |condition: Expr| pushed(table("t").filter(condition).unwrap());
        let after = col("a").gt(lit(1));
        let like = col("b").like(lit("1%"));
        let expected = ["t.a > Int32(1) AND t.b LIKE Utf8(\"1%\")"];
        assert_eq!(filtered(like.and(after.clone())), expected);

        let first = call("left", vec![col("b"), lit(1)]).not_eq(lit("1"));
        let expected = ["t.a > Int32(1) AND left(t.b, Int32(1)) != Utf8(\"1\")"];
        assert_eq!(filtered(first.and(after.clone())), expected);

        // What it is called with may warn.
        let of_quotient = vec![call("/", vec![lit(8), col("b")]), lit(1)];
        let first = call("left", of_quotient).not_eq(lit("1"));
        let expected = ["left(/(Int32(8), t.b), Int32(1)) != Utf8(\"1\") AND t.a > Int32(1)"];
        assert_eq!(filtered(first.and(after.clone())), expected);
        let first = call("left", vec![col("b"), lit("1x")]).not_eq(lit("1"));
        let expected = ["left(t.b, Utf8(\"1x\")) != Utf8(\"1\") AND t.a > Int32(1)"];
        assert_eq!(filtered(first.and(after)), expected);
    }

    #[test]
    fn silent_functions_are_those_of_the_table() {
        for name in mayfly_exec::silent_names() {
            let function = crate::functions::scalar_function(name);
            let found = function.as_ref().map(|function| function.name());
            assert_eq!(found, Some(name), "by its name, not by another one");
        }
    }
}
