//! How each aggregate function of a statement is computed: states in the row, values carried by the
//! row, or accumulators over kept rows.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use mayfly_table::rows::{Number, PayloadColumn, PayloadRule, StateInput, StateKind};

type Expr = Arc<dyn PhysicalExpr>;

/// Where the result of an inline aggregate comes from.
#[derive(Debug, Clone)]
pub(super) enum Output {
    /// A state, converted to the result type.
    State(usize),
    /// The quotient of a sum and a count.
    Average { sum: usize, count: usize },
    /// A statistic of moments.
    Moments { state: usize, statistic: Statistic },
    /// A carried value.
    Payload(usize),
}

/// What is made of count, mean and squares.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statistic {
    /// Divide by `n - 1` and not by `n`.
    pub(super) sample: bool,
    /// Take the square root.
    pub(super) root: bool,
}

/// The argument of a state.
#[derive(Debug, Clone)]
struct Argument {
    expr: Option<Expr>,
    filter: Option<Expr>,
    kind: StateKind,
}

/// Aggregates that all have inline states.
#[derive(Debug, Clone, Default)]
pub(super) struct InlineRecipe {
    arguments: Vec<Argument>,
    /// State kinds with "may see no value".
    pub(super) states: Vec<(StateKind, bool)>,
    payload_exprs: Vec<Expr>,
    pub(super) payload: Vec<PayloadColumn>,
    pub(super) outputs: Vec<Output>,
}

impl InlineRecipe {
    /// The recipe for these aggregates over input of `schema`; `None` where one has no inline
    /// state.
    pub(super) fn try_new(
        aggregates: &[Arc<AggregateFunctionExpr>],
        filters: &[Option<Expr>],
        schema: &Schema,
    ) -> Result<Option<InlineRecipe>> {
        let mut recipe = InlineRecipe::default();
        for (aggregate, filter) in aggregates.iter().zip(filters) {
            if !recipe.add(aggregate, filter.as_ref(), schema)? {
                return Ok(None);
            }
        }
        Ok(Some(recipe))
    }

    fn add(
        &mut self,
        aggregate: &AggregateFunctionExpr,
        filter: Option<&Expr>,
        schema: &Schema,
    ) -> Result<bool> {
        let plain = !aggregate.is_distinct() && aggregate.order_bys().is_empty();
        let mut arguments = aggregate.expressions();
        if !plain || arguments.len() != 1 {
            return Ok(false);
        }
        let expr = arguments.remove(0);
        let data_type = expr.data_type(schema)?;
        let result_type = aggregate.field().data_type().clone();
        let name = aggregate.fun().name();
        match name {
            "count" => {
                let expr = if expr.nullable(schema)? {
                    Some(expr)
                } else {
                    None
                };
                let state = self.state(StateKind::Count, expr, filter, schema)?;
                self.outputs.push(Output::State(state));
            }
            "sum" => {
                let Some(number) = exact_number(&data_type) else {
                    return Ok(false);
                };
                if exact_number(&result_type) != Some(number) {
                    return Ok(false);
                }
                let state = self.state(StateKind::Sum(number), Some(expr), filter, schema)?;
                self.outputs.push(Output::State(state));
            }
            "avg" if data_type == DataType::Float64 && result_type == DataType::Float64 => {
                let sum = StateKind::Sum(Number::Float);
                let sum = self.state(sum, Some(Arc::clone(&expr)), filter, schema)?;
                let count = self.state(StateKind::Count, Some(expr), filter, schema)?;
                self.outputs.push(Output::Average { sum, count });
            }
            "min" | "max" => return self.extreme(name == "min", expr, data_type, filter, schema),
            "bit_and" | "bit_or" | "bit_xor" if data_type == DataType::UInt64 => {
                let kind = match name {
                    "bit_and" => StateKind::BitAnd,
                    "bit_or" => StateKind::BitOr,
                    _ => StateKind::BitXor,
                };
                let state = self.state(kind, Some(expr), filter, schema)?;
                self.outputs.push(Output::State(state));
            }
            "var" | "var_pop" | "stddev" | "stddev_pop" if data_type == DataType::Float64 => {
                let state = self.state(StateKind::Moments, Some(expr), filter, schema)?;
                let statistic = Statistic {
                    sample: !name.ends_with("_pop"),
                    root: name.starts_with("stddev"),
                };
                self.outputs.push(Output::Moments { state, statistic });
            }
            // Any row may stand for its group, one whose value is NULL included: MySQL's words.
            // All such columns of a group come from one row.
            "any_value" if filter.is_none() && holds(&data_type) => {
                self.carry(expr, data_type, PayloadRule::First, schema)?;
            }
            "first_value" if filter.is_none() && holds(&data_type) => {
                let rule = if aggregate.ignore_nulls() {
                    PayloadRule::FirstNotNull
                } else {
                    PayloadRule::First
                };
                self.carry(expr, data_type, rule, schema)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn extreme(
        &mut self,
        smallest: bool,
        expr: Expr,
        data_type: DataType,
        filter: Option<&Expr>,
        schema: &Schema,
    ) -> Result<bool> {
        if let Some(number) = widened_number(&data_type) {
            let kind = if smallest {
                StateKind::Min(number)
            } else {
                StateKind::Max(number)
            };
            let state = self.state(kind, Some(expr), filter, schema)?;
            self.outputs.push(Output::State(state));
            return Ok(true);
        }
        let is_bytes = matches!(
            data_type,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
        );
        if is_bytes && filter.is_none() {
            let rule = if smallest {
                PayloadRule::Min
            } else {
                PayloadRule::Max
            };
            self.carry(expr, data_type, rule, schema)?;
            return Ok(true);
        }
        Ok(false)
    }

    fn state(
        &mut self,
        kind: StateKind,
        expr: Option<Expr>,
        filter: Option<&Expr>,
        schema: &Schema,
    ) -> Result<usize> {
        let nullable = match &expr {
            Some(expr) => expr.nullable(schema)?,
            None => false,
        };
        // `count(1)` counts rows: there is nothing to evaluate. `count(NULL)` counts none.
        let counts_rows = |expr: &Expr| {
            let literal = expr.downcast_ref::<Literal>();
            kind == StateKind::Count && literal.is_some_and(|of| !of.value().is_null())
        };
        let expr = expr.filter(|expr| !counts_rows(expr));
        self.arguments.push(Argument {
            expr,
            filter: filter.cloned(),
            kind,
        });
        self.states.push((kind, nullable || filter.is_some()));
        Ok(self.states.len() - 1)
    }

    fn carry(
        &mut self,
        expr: Expr,
        data_type: DataType,
        rule: PayloadRule,
        schema: &Schema,
    ) -> Result<()> {
        let nullable = expr.nullable(schema)?;
        self.payload_exprs.push(expr);
        self.payload.push(PayloadColumn {
            data_type,
            nullable,
            rule,
        });
        self.outputs.push(Output::Payload(self.payload.len() - 1));
        Ok(())
    }

    /// The arguments of all states for one batch.
    pub(super) fn state_inputs(&self, batch: &RecordBatch) -> Result<Vec<StateInput>> {
        self.arguments
            .iter()
            .map(|argument| {
                let values = match &argument.expr {
                    Some(expr) => {
                        let array = expr.evaluate(batch)?.into_array(batch.num_rows())?;
                        Some(widen(array, argument.kind)?)
                    }
                    None => None,
                };
                let filter = match &argument.filter {
                    Some(filter) => {
                        let array = filter.evaluate(batch)?.into_array(batch.num_rows())?;
                        Some(array.as_boolean().clone())
                    }
                    None => None,
                };
                Ok(StateInput { values, filter })
            })
            .collect()
    }

    /// The carried columns for one batch.
    pub(super) fn payload_columns(&self, batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
        self.payload_exprs
            .iter()
            .map(|expr| expr.evaluate(batch)?.into_array(batch.num_rows()))
            .collect()
    }
}

fn holds(data_type: &DataType) -> bool {
    mayfly_table::rows::RowLayout::supports(data_type)
}

/// The number a sum computes with, for types that are summed as they are.
fn exact_number(data_type: &DataType) -> Option<Number> {
    match data_type {
        DataType::Int64 => Some(Number::Int),
        DataType::UInt64 => Some(Number::UInt),
        DataType::Float64 => Some(Number::Float),
        DataType::Decimal128(_, _) => Some(Number::Decimal),
        DataType::Decimal256(_, _) => Some(Number::Wide),
        _ => None,
    }
}

/// The number that orders values of a type.
fn widened_number(data_type: &DataType) -> Option<Number> {
    use DataType::*;
    match data_type {
        Int8 | Int16 | Int32 | Int64 | Date32 | Date64 | Time32(_) | Time64(_) => Some(Number::Int),
        Timestamp(_, _) | Duration(_) => Some(Number::Int),
        UInt8 | UInt16 | UInt32 | UInt64 => Some(Number::UInt),
        Float32 | Float64 => Some(Number::Float),
        Decimal128(_, _) => Some(Number::Decimal),
        Decimal256(_, _) => Some(Number::Wide),
        // FALSE is before TRUE.
        Boolean => Some(Number::UInt),
        _ => None,
    }
}

/// An argument in the array type of its state.
fn widen(array: ArrayRef, kind: StateKind) -> Result<ArrayRef> {
    let number = match kind {
        StateKind::Sum(n) | StateKind::Min(n) | StateKind::Max(n) => n,
        // An array of the type of NULL does not say that its values are.
        _ if array.data_type() == &DataType::Null => {
            return Ok(new_null_array(&DataType::Boolean, array.len()));
        }
        _ => return Ok(array),
    };
    Ok(match (number, array.data_type()) {
        (Number::Int, DataType::Int64) => array,
        (Number::Int, DataType::Date32 | DataType::Time32(_)) => {
            cast(&cast(&array, &DataType::Int32)?, &DataType::Int64)?
        }
        (Number::Int, _) => cast(&array, &DataType::Int64)?,
        (Number::UInt, _) => cast(&array, &DataType::UInt64)?,
        (Number::Float, _) => cast(&array, &DataType::Float64)?,
        (Number::Decimal, _) => {
            // The digits are what is compared and added; the scale is the same for all of them.
            let digits = array.as_primitive::<Decimal128Type>().clone();
            Arc::new(digits.with_precision_and_scale(38, 0)?)
        }
        (Number::Wide, _) => {
            let digits = array.as_primitive::<Decimal256Type>().clone();
            Arc::new(digits.with_precision_and_scale(76, 0)?)
        }
    })
}
