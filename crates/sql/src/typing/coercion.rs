//! The stock coercion, which is spared what it would leave as it is.
//!
//! At each node of an expression it asks for the types of all that is below, by way of their names:
//! the cube of the length of a sum, the square of that of a condition. Most nodes need nothing once
//! the rule of typing has been there. Our functions take arguments of any type, and comparisons and
//! connectives have sides of one; both can be seen without a walk ([`super::nameless`]). All else
//! is handed to the stock rewriter, node by node.
//!
//! **Never** converts anything itself.

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRewriter};
use datafusion::error::Result;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::type_coercion::{TypeCoercion, TypeCoercionRewriter};

use super::kind::is_truth;
use super::nameless::data_type_of;
use super::node::columns_below;
use crate::functions::{arithmetic, cast, define};
use crate::planning::check;

/// The rule of coercion, in the place of the stock one.
#[derive(Debug)]
pub(crate) struct Coercion;

impl Coercion {
    /// Its name, which is that of the stock rule.
    pub(crate) const NAME: &'static str = "type_coercion";
}

impl AnalyzerRule for Coercion {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        if config.optimizer.expand_views_at_output {
            return TypeCoercion::new().analyze(plan, config);
        }
        Ok(plan.transform_up_with_subqueries(node)?.data)
    }
}

/// One node, whose inputs are done: what `analyze_internal` of the stock rule does, but for MERGE,
/// which MySQL does not have.
fn node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    check()?;
    let schema = columns_below(&plan)?;
    let plan = match plan {
        LogicalPlan::Filter(mut filter) if !is_truth(&filter.predicate) => {
            filter.predicate = filter.predicate.cast_to(&DataType::Boolean, &schema)?;
            LogicalPlan::Filter(filter)
        }
        other => other,
    };
    let mut rewriter = Rewriter {
        stock: TypeCoercionRewriter::new(&schema),
        schema: &schema,
    };
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let coerced = expr.rewrite(&mut rewriter)?;
        Ok(coerced.update_data(|expr| name.restore(expr)))
    })?
    .map_data(|plan| rewriter.stock.coerce_plan(plan))?
    .map_data(LogicalPlan::recompute_schema)
}

struct Rewriter<'a> {
    stock: TypeCoercionRewriter<'a>,
    schema: &'a DFSchema,
}

impl TreeNodeRewriter for Rewriter<'_> {
    type Node = Expr;

    fn f_up(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        check()?;
        match stays(&expr, self.schema) {
            true => Ok(Transformed::no(expr)),
            false => self.stock.f_up(expr),
        }
    }
}

/// Whether the stock rule would leave a node as it is; its parts are done.
fn stays(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::ScalarFunction(call) => takes_any_types(&call.func),
        Expr::BinaryExpr(binary) => {
            let side = |side: &Expr| match is_truth(side) {
                true => Ok(DataType::Boolean),
                false => data_type_of(side, schema),
            };
            let (Ok(left), Ok(right)) = (side(&binary.left), side(&binary.right)) else {
                return false;
            };
            let wanted = BinaryTypeCoercer::new(&left, &binary.op, &right).get_input_types();
            wanted.is_ok_and(|wanted| wanted.0 == left && wanted.1 == right)
        }
        Expr::Not(inner)
        | Expr::IsTrue(inner)
        | Expr::IsFalse(inner)
        | Expr::IsUnknown(inner)
        | Expr::IsNotTrue(inner)
        | Expr::IsNotFalse(inner)
        | Expr::IsNotUnknown(inner) => is_truth(inner),
        _ => false,
    }
}

/// Whether a function is one of ours that converts its arguments itself.
fn takes_any_types(function: &ScalarUDF) -> bool {
    define::name_of(function).is_some()
        || arithmetic::is_operator(function)
        || cast::target(function).is_some()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::functions_aggregate::sum::sum;
    use datafusion::logical_expr::{LogicalPlanBuilder, case, col, exists, lit};
    use datafusion::scalar::ScalarValue;

    use super::*;
    use crate::functions::arithmetic::{Operator, arithmetic};
    use crate::functions::call;
    use crate::typing::Typing;
    use crate::typing::nameless::counted::asked;

    /// A row of a whole number, a DOUBLE and a text.
    fn rows() -> LogicalPlanBuilder {
        let row = vec![lit(1_i64), lit(2.0_f64), lit("3")];
        LogicalPlanBuilder::values(vec![row]).unwrap()
    }

    fn add(left: Expr, right: Expr) -> Expr {
        arithmetic(Operator::Add).call(vec![left, right])
    }

    fn typed(plan: LogicalPlan) -> LogicalPlan {
        Typing.analyze(plan, &ConfigOptions::default()).unwrap()
    }

    #[test]
    fn plans_are_those_of_the_stock_rule() {
        let (a, b, c) = (|| col("column1"), || col("column2"), || col("column3"));
        let null = || lit(ScalarValue::Null);
        let sum_of_all = || add(add(a(), b()), call("concat", vec![c(), a()]));
        let conditions = [
            a().eq(lit(1_i64))
                .and(b().gt(lit(1.5_f64)))
                .or(c().eq(lit("x"))),
            a().eq(b()).and(!a().lt(b())),
            a().eq(lit(1_i32)),
            a().eq(null()).and(null()),
            null(),
            a().eq(lit(1_i64)).eq(b().eq(a())).is_true(),
            a().in_list(vec![lit(1_i32), null()], false).is_not_true(),
            a().between(lit(0_i32), lit(5_i32)),
            c().like(lit("x%")).is_unknown(),
            sum_of_all().gt(lit(1_i64)),
            exists(Arc::new(
                rows().filter(a().eq(lit(1_i32))).unwrap().build().unwrap(),
            )),
        ];
        let mut plans: Vec<LogicalPlan> = { conditions.into_iter() }
            .map(|condition| rows().filter(condition).unwrap().build().unwrap())
            .collect();
        let choice = case(a()).when(lit(1_i32), b()).otherwise(lit(1_i32));
        let list = vec![choice.unwrap(), sum_of_all(), a() + b(), -a()];
        plans.push(rows().project(list).unwrap().build().unwrap());
        let groups = rows().aggregate(vec![add(a(), a())], vec![sum(a())]);
        plans.push(groups.unwrap().build().unwrap());
        let sorted = rows().sort(vec![add(a(), b()).sort(true, true)]);
        plans.push(sorted.unwrap().build().unwrap());
        let both = rows().alias("x").unwrap();
        let both = both.cross_join(rows().alias("y").unwrap().build().unwrap());
        let both = both.unwrap().filter(col("x.column1").eq(col("y.column2")));
        plans.push(both.unwrap().build().unwrap());
        let config = ConfigOptions::default();
        for plan in plans {
            for plan in [typed(plan.clone()), plan] {
                let stock = TypeCoercion::new().analyze(plan.clone(), &config);
                let ours = Coercion.analyze(plan.clone(), &config);
                match (ours, stock) {
                    (Ok(ours), Ok(stock)) => assert_eq!(ours, stock, "{plan}"),
                    (ours, stock) => assert_eq!(
                        ours.map_err(|error| error.to_string()),
                        stock.map_err(|error| error.to_string()),
                        "{plan}"
                    ),
                }
            }
        }
    }

    fn asked_by(rule: &dyn AnalyzerRule, plan: LogicalPlan) -> usize {
        asked(|| drop(rule.analyze(plan, &ConfigOptions::default()).unwrap()))
    }

    #[test]
    fn the_rules_ask_each_operator_of_a_sum_a_few_times() {
        let sum = |length: usize| {
            let sum = (0..length).fold(col("column1"), |sum, _| add(sum, col("column2")));
            rows().project(vec![sum]).unwrap().build().unwrap()
        };
        let of_typing = |length: usize| asked_by(&Typing, sum(length));
        let of_coercion = |length: usize| asked_by(&Coercion, typed(sum(length)));
        for asked in [&of_typing as &dyn Fn(usize) -> usize, &of_coercion] {
            let [short, double, fourfold] = [50, 100, 200].map(asked);
            assert!(short > 50, "each operator is seen");
            assert_eq!(fourfold - double, 2 * (double - short));
        }
    }
}
