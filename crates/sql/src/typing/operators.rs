//! What operators and aggregates mean, decided while a statement is planned.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, DFSchema, ScalarValue, TableReference};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{
    AggregateFunction, Case, WindowFunction, WindowFunctionParams,
};
use datafusion::logical_expr::planner::{
    ExprPlanner, PlannerResult, RawAggregateExpr, RawBinaryExpr, RawWindowExpr,
};
use datafusion::logical_expr::{
    AggregateUDF, BinaryExpr, Cast, Expr, Operator, WindowFunctionDefinition, lit,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::compare::{compare, compare_later, truth};
use super::kind::{Kind, is_truth, kind};
use super::listed;
use super::nameless::data_type_of;
use crate::functions::arithmetic::{self, DIVISION_DIGITS};
use crate::functions::own::{
    AVG_RESULT, SUM_ARGUMENT, SUM_RESULT, TO_BOOLEAN, TO_DOUBLE, TUPLE_KEY,
};
use crate::functions::{SessionValues, call, cast, group_concat, has_waiting, raise, window};
use crate::planning;

/// The meaning of operators in MySQL.
#[derive(Debug)]
pub struct Operators {
    session: Option<SessionValues>,
}

impl Operators {
    /// `div_precision_increment`.
    fn division_digits(&self) -> u8 {
        self.session
            .as_ref()
            .map_or(DIVISION_DIGITS, |session| session.lock().division_digits)
    }

    /// Operators for a session, whose limits GROUP_CONCAT keeps.
    pub fn new(session: Option<SessionValues>) -> Self {
        Self { session }
    }
}

fn logic(left: Expr, operator: Operator, right: Expr, schema: &DFSchema) -> Result<Expr> {
    let (left, right) = (truth(left, schema)?, truth(right, schema)?);
    if has_waiting(&right) && matches!(operator, Operator::And | Operator::Or) {
        return Ok(in_turn(left, operator == Operator::Or, right));
    }
    Ok(Expr::BinaryExpr(BinaryExpr::new(
        Box::new(left),
        operator,
        Box::new(right),
    )))
}

/// A connective whose right side is asked only where the left one does not decide: a value of
/// `deciding` does. The engine asks both for all rows of a batch.
///
/// Truth is written as numbers in between: of a CASE of truth values the simplifier makes
/// connectives again.
fn in_turn(left: Expr, deciding: bool, right: Expr) -> Expr {
    let case = |of: Expr, whens: Vec<(Expr, Expr)>, other: Expr| {
        let whens = { whens.into_iter() }.map(|(when, then)| (Box::new(when), Box::new(then)));
        let of = Some(Box::new(of));
        Expr::Case(Case::new(of, whens.collect(), Some(Box::new(other))))
    };
    let number = |truth: bool| lit(i64::from(truth));
    let right = Expr::Cast(Cast::new(Box::new(right), DataType::Int64));
    let of_unknown = case(
        right.clone(),
        vec![(number(deciding), number(deciding))],
        lit(ScalarValue::Int64(None)),
    );
    let whens = vec![(lit(!deciding), right), (lit(deciding), number(deciding))];
    call(TO_BOOLEAN, vec![case(left, whens, of_unknown)])
}

/// A hexadecimal literal counts as a number where a number is needed.
fn number_of_bytes(expr: Expr) -> Expr {
    match &expr {
        Expr::Literal(ScalarValue::Binary(Some(bytes)), _)
        | Expr::Literal(ScalarValue::BinaryView(Some(bytes)), _)
            if bytes.len() <= 8 =>
        {
            lit(bytes
                .iter()
                .fold(0_u64, |value, byte| value << 8 | u64::from(*byte)))
        }
        _ => expr,
    }
}

/// Whether an expression is a number by its form: what an operator makes of two operands.
fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => {
            arithmetic::is_chain(&call.func)
                || call.args.len() == 2 && arithmetic::is_operator(&call.func)
        }
        _ => false,
    }
}

/// Whether a column or a constant is a number wherever it stands.
fn is_plain_number(expr: &Expr, schema: &DFSchema) -> bool {
    let data_type = data_type_of(expr, schema);
    data_type.is_ok_and(|of| of.is_numeric()) && listed::list_of(expr, schema).is_none()
}

/// The comparison that an operator is.
fn comparison_of(op: &BinaryOperator) -> Option<Operator> {
    match op {
        BinaryOperator::Eq => Some(Operator::Eq),
        BinaryOperator::NotEq => Some(Operator::NotEq),
        BinaryOperator::Lt => Some(Operator::Lt),
        BinaryOperator::LtEq => Some(Operator::LtEq),
        BinaryOperator::Gt => Some(Operator::Gt),
        BinaryOperator::GtEq => Some(Operator::GtEq),
        BinaryOperator::Spaceship => Some(Operator::IsNotDistinctFrom),
        _ => None,
    }
}

/// What an operator computes, if it does.
fn arithmetic_of(op: &BinaryOperator) -> Option<arithmetic::Operator> {
    use arithmetic::Operator as On;
    match op {
        BinaryOperator::Plus => Some(On::Add),
        BinaryOperator::Minus => Some(On::Subtract),
        BinaryOperator::Multiply => Some(On::Multiply),
        BinaryOperator::Divide => Some(On::Divide),
        BinaryOperator::MyIntegerDivide => Some(On::IntegerDivide),
        BinaryOperator::Modulo => Some(On::Modulo),
        BinaryOperator::BitwiseAnd => Some(On::BitAnd),
        BinaryOperator::BitwiseOr => Some(On::BitOr),
        BinaryOperator::BitwiseXor => Some(On::BitXor),
        BinaryOperator::PGBitwiseShiftLeft => Some(On::ShiftLeft),
        BinaryOperator::PGBitwiseShiftRight => Some(On::ShiftRight),
        _ => None,
    }
}

impl ExprPlanner for Operators {
    fn plan_binary_op(
        &self,
        raw: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        use arithmetic::Operator as On;
        planning::check()?;
        let comparison = comparison_of(&raw.op);
        let on = arithmetic_of(&raw.op);
        let typed = |expr: &Expr| is_truth(expr) || data_type_of(expr, schema).is_ok();
        // A sum is planned operator by operator: who asked for the type of its beginning each time
        // would take the square of its length.
        let is_operand = |expr: &Expr| on.is_some() && is_number(expr) || typed(expr);
        if !is_operand(&raw.left) || !is_operand(&raw.right) {
            return Ok(PlannerResult::Original(raw));
        }
        let RawBinaryExpr { op, left, right } = raw;
        if let Some(comparison) = comparison {
            return Ok(PlannerResult::Planned(compare_later(
                left, comparison, right, schema,
            )?));
        }
        if let Some(on) = on {
            let interval = |expr: &Expr| -> Result<bool> {
                let is_one = |of: DataType| matches!(of, DataType::Interval(_));
                Ok(!is_number(expr) && is_one(data_type_of(expr, schema)?))
            };
            let (left, right) = (number_of_bytes(left), number_of_bytes(right));
            return Ok(PlannerResult::Planned(match on {
                On::Add if interval(&right)? => call("date_add", vec![left, right]),
                On::Add if interval(&left)? => call("date_add", vec![right, left]),
                On::Subtract if interval(&right)? => call("date_sub", vec![left, right]),
                _ => {
                    let is_number = |expr: &Expr| is_plain_number(expr, schema);
                    arithmetic::applied(on, self.division_digits(), left, right, &is_number)
                }
            }));
        }
        // What a column of a list counts is known when the statement is typed.
        let later = |expr: Expr| match listed::list_of(&expr, schema) {
            Some(_) => call(TO_BOOLEAN, vec![expr]),
            None => expr,
        };
        Ok(match op {
            BinaryOperator::And => {
                let (left, right) = (later(left), later(right));
                PlannerResult::Planned(logic(left, Operator::And, right, schema)?)
            }
            BinaryOperator::Or => {
                let (left, right) = (later(left), later(right));
                PlannerResult::Planned(logic(left, Operator::Or, right, schema)?)
            }
            BinaryOperator::Xor => {
                let (left, right) = (later(left), later(right));
                PlannerResult::Planned(logic(left, Operator::NotEq, right, schema)?)
            }
            BinaryOperator::StringConcat => {
                PlannerResult::Planned(call("concat", vec![left, right]))
            }
            op => PlannerResult::Original(RawBinaryExpr { op, left, right }),
        })
    }

    /// Behind the name of a column stands no field of it: before the dot is a table, which there is
    /// not, and the planner says so.
    fn plan_compound_identifier(
        &self,
        field: &Field,
        _qualifier: Option<&TableReference>,
        nested_names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let mut parts = vec![field.name().as_str()];
        parts.extend(nested_names.iter().map(String::as_str));
        let name = parts.pop().unwrap_or_default();
        let table = match parts.as_slice() {
            [database, table] => TableReference::partial(*database, *table),
            parts => TableReference::bare(parts.join(".")),
        };
        let column = Column::new(Some(table), name);
        Ok(PlannerResult::Planned(Expr::Column(column)))
    }

    fn plan_aggregate(&self, raw: RawAggregateExpr) -> Result<PlannerResult<RawAggregateExpr>> {
        let make = |func: Arc<AggregateUDF>, args: Vec<Expr>| {
            Expr::AggregateFunction(AggregateFunction::new_udf(
                func,
                args,
                raw.distinct,
                raw.filter.clone(),
                raw.order_by.clone(),
                raw.null_treatment,
            ))
        };
        let name = raw.func.name().to_owned();
        if name == "group_concat" {
            return self.group_concat(raw).map(PlannerResult::Planned);
        }
        let digits = self.division_digits();
        match meaning(&name, &raw.func, &raw.args, raw.distinct, digits, &make)? {
            Some(expr) => Ok(PlannerResult::Planned(expr)),
            None => Ok(PlannerResult::Original(raw)),
        }
    }

    fn plan_window(&self, raw: RawWindowExpr) -> Result<PlannerResult<RawWindowExpr>> {
        check_window_arguments(raw.func_def.name(), raw.args.len())?;
        let WindowFunctionDefinition::AggregateUDF(function) = &raw.func_def else {
            return Ok(PlannerResult::Original(raw));
        };
        let make = |func: Arc<AggregateUDF>, args: Vec<Expr>| {
            let func = match func.name() {
                "min" | "max" | "sum" => window::of_window(&func),
                _ => func,
            };
            Expr::WindowFunction(Box::new(WindowFunction {
                fun: WindowFunctionDefinition::AggregateUDF(func),
                params: WindowFunctionParams {
                    args,
                    partition_by: raw.partition_by.clone(),
                    order_by: raw.order_by.clone(),
                    window_frame: raw.window_frame.clone(),
                    filter: raw.filter.clone(),
                    null_treatment: raw.null_treatment,
                    distinct: raw.distinct,
                },
            }))
        };
        let (name, digits) = (function.name(), self.division_digits());
        if matches!(name, "min" | "max") {
            let typed = make(Arc::clone(function), raw.args.clone());
            return Ok(PlannerResult::Planned(typed));
        }
        match meaning(name, function, &raw.args, raw.distinct, digits, &make)? {
            Some(expr) => Ok(PlannerResult::Planned(expr)),
            None => Ok(PlannerResult::Original(raw)),
        }
    }
}

/// The only argument of an aggregate.
fn only<'a>(name: &str, arguments: &'a [Expr]) -> Result<&'a Expr> {
    match arguments {
        [argument] => Ok(argument),
        _ => Err(raise(MySqlError::with_message(
            ErrorCode::Syntax,
            format!("Incorrect parameter count in the call to aggregate function '{name}'"),
        ))),
    }
}

/// MySQL's grammar says how many arguments these have, and which ones an aggregate has, its rule.
fn check_window_arguments(name: &str, count: usize) -> Result<()> {
    let is_allowed = match name {
        "row_number" | "rank" | "dense_rank" | "percent_rank" | "cume_dist" => count == 0,
        "first_value" | "last_value" | "ntile" | "min" | "max" => count == 1,
        "nth_value" => count == 2,
        "lag" | "lead" => (1..=3).contains(&count),
        _ => true,
    };
    match is_allowed {
        true => Ok(()),
        false => Err(raise(MySqlError::with_message(
            ErrorCode::Syntax,
            format!("Incorrect parameter count in the call to window function '{name}'"),
        ))),
    }
}

/// An aggregate as stock aggregates over converted arguments; `None` if it is one as it stands.
fn meaning(
    name: &str,
    function: &Arc<AggregateUDF>,
    arguments: &[Expr],
    distinct: bool,
    division_digits: u8,
    make: &dyn Fn(Arc<AggregateUDF>, Vec<Expr>) -> Expr,
) -> Result<Option<Expr>> {
    let one = || only(name, arguments).cloned();
    let unsigned =
        |expr: Expr| cast::conversion(ColumnType::BigInt { unsigned: true }).call(vec![expr]);
    let bits = |nothing: u64| -> Result<Expr> {
        let of_rows = make(Arc::clone(function), vec![unsigned(one()?)]);
        Ok(call("coalesce", vec![of_rows, lit(nothing)]))
    };
    Ok(Some(match name {
        "sum" => {
            let sum = make(Arc::clone(function), vec![call(SUM_ARGUMENT, vec![one()?])]);
            call(SUM_RESULT, vec![sum])
        }
        "avg" => {
            let sum = datafusion::functions_aggregate::sum::sum_udaf();
            let count = datafusion::functions_aggregate::count::count_udaf();
            let argument = one()?;
            let sum = make(sum, vec![call(SUM_ARGUMENT, vec![argument.clone()])]);
            let count = make(count, vec![argument]);
            call(AVG_RESULT, vec![sum, count, lit(division_digits)])
        }
        "count" if distinct && arguments.len() > 1 => make(
            Arc::clone(function),
            vec![call(TUPLE_KEY, arguments.to_vec())],
        ),
        "stddev" | "stddev_pop" | "var" | "var_pop" => {
            make(Arc::clone(function), vec![call(TO_DOUBLE, vec![one()?])])
        }
        "min" | "max" => {
            only(name, arguments)?;
            return Ok(None);
        }
        "bit_and" => bits(u64::MAX)?,
        "bit_or" | "bit_xor" => bits(0)?,
        _ => return Ok(None),
    }))
}

impl Operators {
    /// The values are texts, the separator is an option, the order keys are arguments.
    fn group_concat(&self, raw: RawAggregateExpr) -> Result<Expr> {
        let mut arguments = raw.args.into_iter();
        let value = arguments.next().ok_or_else(|| {
            raise(MySqlError::new(
                ErrorCode::ParameterCount,
                &[&"group_concat"],
            ))
        })?;
        let separator = match arguments.next() {
            Some(Expr::Literal(separator, _)) => separator,
            _ => ScalarValue::Utf8(Some(",".to_owned())),
        };
        let max_bytes = self
            .session
            .as_ref()
            .map_or(1024, |session| session.lock().group_concat_max_bytes);
        let options = group_concat::Options {
            distinct: raw.distinct,
            separator: separator.try_as_str().flatten().unwrap_or(",").to_owned(),
            descending: raw.order_by.iter().map(|by| !by.asc).collect(),
            max_bytes,
            session: self.session.clone(),
        };
        let mut keyed = vec![call("concat", vec![value])];
        keyed.extend(raw.order_by.into_iter().map(|by| by.expr));
        let function = Arc::new(group_concat::group_concat(options));
        let aggregate =
            AggregateFunction::new_udf(function, keyed, false, raw.filter, Vec::new(), None);
        Ok(Expr::AggregateFunction(aggregate))
    }
}

/// Repairs a comparison or a connective whose sides are of different kinds.
pub(super) fn repair(expr: BinaryExpr, schema: &DFSchema) -> Result<Expr> {
    let BinaryExpr { left, op, right } = expr;
    match op {
        Operator::And | Operator::Or => logic(*left, op, *right, schema),
        Operator::Eq
        | Operator::NotEq
        | Operator::Lt
        | Operator::LtEq
        | Operator::Gt
        | Operator::GtEq
        | Operator::IsDistinctFrom
        | Operator::IsNotDistinctFrom
            if kind(&left, schema)? != Kind::Other =>
        {
            compare(*left, op, *right, schema)
        }
        _ => Ok(Expr::BinaryExpr(BinaryExpr::new(left, op, right))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use datafusion::logical_expr::col;

    use super::*;
    use crate::typing::nameless::counted::asked;

    /// `left + right` as it is planned; `None` where it is left to the engine.
    fn plus(left: Expr, right: Expr) -> Option<Expr> {
        let column = |name: &str| Field::new(name, DataType::Int64, true);
        let fields = vec![column("a"), column("b")].into();
        let schema = DFSchema::from_unqualified_fields(fields, HashMap::new()).unwrap();
        let op = BinaryOperator::Plus;
        let raw = RawBinaryExpr { op, left, right };
        match Operators::new(None).plan_binary_op(raw, &schema).unwrap() {
            PlannerResult::Planned(planned) => Some(planned),
            PlannerResult::Original(_) => None,
        }
    }

    #[test]
    fn a_sum_is_planned_without_a_look_at_its_beginning() {
        let sum = |length: usize| {
            asked(|| {
                let sum = (0..length).try_fold(col("a"), |sum, _| plus(sum, col("b")));
                assert!(sum.is_some_and(|sum| is_number(&sum)));
            })
        };
        // Once for each operator.
        assert_eq!([1, 100, 400].map(sum), [1, 100, 400]);
    }

    #[test]
    fn operands_without_a_type_are_left_to_the_engine() {
        assert_eq!(plus(col("none"), col("a")), None);
        let sum = plus(col("a"), col("b")).unwrap();
        assert_eq!(plus(sum.clone(), col("none")), None);
        assert_eq!(plus(lit(1_i64), sum.clone() + col("none")), None);
        assert!(plus(lit(1_i64), sum).is_some());
    }
}
