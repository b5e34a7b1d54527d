//! The operators on numbers: `+ - * / DIV % & | ^ << >> ~` and the sign.
//!
//! Exact numbers stay exact and fail with error 1690 where MySQL does, instead of wrapping; a
//! division by zero is NULL, and an error in a strict statement that stores it. Texts are numbers
//! by their prefix, times are numbers by their digits.
//!
//! **Cost**: whole numbers run through Arrow's kernels; DECIMAL runs on 128 bits as long as the
//! values fit, otherwise on 256.

mod batch;
mod chain;
mod exact;
mod exact_values;
mod named;
mod operator;
mod refusing;
mod shown;
mod shown_text;
mod types;
mod whole;

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

pub(crate) use chain::{applied, decide as decide_chain, decided, is_chain, is_operator};
pub use refusing::refusing_zero;
pub(crate) use refusing::refusing_zero_in;
pub(crate) use shown::{in_databases, operand_texts, text};

use super::call::{Call, Callee, invoke};
use super::define::{nameless, unbounded};
use super::raise::raise;
use super::unify::decimal;
use crate::planning;
pub(crate) use operator::Operator;
use shown_text::ShownText;

/// The digits that `/` adds behind the point, unless `div_precision_increment` says otherwise.
pub(crate) const DIVISION_DIGITS: u8 = 4;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    operator: Operator,
    /// The expression for the text of an error; empty until the plan is typed.
    text: ShownText,
    /// The result type once the plan is typed: constants may be folded later, types must stay.
    decided: Option<ColumnType>,
    /// Digits that the result has behind the point for the operator around it, cut off instead of
    /// rounded: MySQL rounds a division only when it is shown.
    intermediate: bool,
    /// The digits that a division adds behind the point.
    more_digits: u8,
    /// Whether a statement that refuses to divide by zero does so here.
    refuses_zero: bool,
    signature: Signature,
}

/// The operator as a function of the plan.
pub(crate) fn arithmetic(operator: Operator) -> ScalarUDF {
    arithmetic_with(operator, DIVISION_DIGITS)
}

/// The operator as a function of the plan; a division adds so many digits behind the point.
pub(crate) fn arithmetic_with(operator: Operator, more_digits: u8) -> ScalarUDF {
    ScalarUDF::new_from_impl(Arithmetic::new(operator, more_digits))
}

impl Arithmetic {
    fn new(operator: Operator, more_digits: u8) -> Self {
        Self {
            operator,
            text: ShownText::default(),
            decided: None,
            intermediate: false,
            more_digits,
            refuses_zero: false,
            signature: Signature::user_defined(Volatility::Immutable),
        }
    }
}

/// Whether a function is an operator that never warns: its numbers fit, or it fails.
pub(crate) fn is_sum(function: &ScalarUDF) -> bool {
    use Operator::{Add, Multiply, Negate, Subtract};
    let function = function.inner().downcast_ref::<Arithmetic>();
    function.is_some_and(|of| matches!(of.operator, Add | Subtract | Multiply | Negate))
}

/// Whether the function is an operator whose result is a DECIMAL.
pub(crate) fn is_exact(function: &ScalarUDF) -> bool {
    let operator = function.inner().downcast_ref::<Arithmetic>();
    operator.is_some_and(|of| matches!(of.decided, Some(ColumnType::Decimal { .. })))
}

/// A decided division as an argument of another operator: with the digits that MySQL keeps, a
/// multiple of nine. `None` if the function is no exact division. `scales` are the digits behind
/// the point of its two sides.
pub(crate) fn intermediate(function: &ScalarUDF, scales: (u8, u8)) -> Option<ScalarUDF> {
    let division = function.inner().downcast_ref::<Arithmetic>()?;
    let Some(ColumnType::Decimal {
        precision, scale, ..
    }) = &division.decided
    else {
        return None;
    };
    if division.operator != Operator::Divide || division.intermediate {
        return None;
    }
    let kept = kept_digits(scales, division.more_digits);
    Some(ScalarUDF::new_from_impl(Arithmetic {
        decided: Some(decimal(precision - scale, kept)),
        intermediate: true,
        ..division.clone()
    }))
}

/// A decided negation as an argument of another operator: with the digits of its operand. `None`
/// if the function is none.
pub(crate) fn intermediate_negation(function: &ScalarUDF, of: ColumnType) -> Option<ScalarUDF> {
    let negation = function.inner().downcast_ref::<Arithmetic>()?;
    let is_exact = matches!(of, ColumnType::Decimal { .. })
        && matches!(negation.decided, Some(ColumnType::Decimal { .. }));
    (negation.operator == Operator::Negate && is_exact).then(|| {
        ScalarUDF::new_from_impl(Arithmetic {
            decided: Some(of),
            ..negation.clone()
        })
    })
}

/// The digits behind the point that MySQL computes of a quotient, whose sides have so many: whole
/// words of them.
///
/// Source: `do_div_mod` of MySQL's `strings/decimal.cc`.
fn kept_digits(scales: (u8, u8), more_digits: u8) -> u8 {
    let whole = |digits: u8| digits.div_ceil(WORD_DIGITS) * WORD_DIGITS;
    let (left, right) = (whole(scales.0), whole(scales.1));
    let added = left - scales.0 + right - scales.1;
    whole(left + right + more_digits.saturating_sub(added))
}

/// The decimal digits that MySQL keeps in one word of an exact number.
const WORD_DIGITS: u8 = 9;

/// The same operator with its result type decided, and the text that its errors show; `None` if
/// the function is no operator or decided already.
pub(crate) fn decide(function: &ScalarUDF, of: &ColumnType, text: String) -> Option<ScalarUDF> {
    let operator = function.inner().downcast_ref::<Arithmetic>()?;
    operator.decided.is_none().then(|| {
        ScalarUDF::new_from_impl(Arithmetic {
            text: text.into(),
            decided: Some(of.clone()),
            ..operator.clone()
        })
    })
}

impl Arithmetic {
    fn out_of_range(&self, call: &Call<'_>) -> datafusion::error::DataFusionError {
        let of = match call.result_type() {
            ColumnType::Double { .. } => "DOUBLE",
            ColumnType::Decimal { .. } => "DECIMAL",
            ColumnType::BigInt { unsigned: true } => "BIGINT UNSIGNED",
            _ => "BIGINT",
        };
        raise(MySqlError::new(
            ErrorCode::ValueOutOfRange,
            &[&of, &self.text],
        ))
    }

    fn run(&self, call: &Call<'_>) -> Result<ArrayRef> {
        use Operator::{BitAnd, BitNot, BitOr, BitXor, IntegerDivide, ShiftLeft, ShiftRight};
        match (self.operator, call.result_type()) {
            (BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight | BitNot, _) => self.bits(call),
            (_, ColumnType::Double { .. }) => self.doubles(call),
            (IntegerDivide, _) => self.integer_division(call),
            (
                _,
                ColumnType::Decimal {
                    precision, scale, ..
                },
            ) => self.decimals(call, precision, scale.cast_signed()),
            (_, ColumnType::BigInt { unsigned: false })
                if !(0..call.count()).any(|i| call.data_type(i) == &DataType::UInt64) =>
            {
                self.integers(call)
            }
            (_, of) => self.wide_integers(call, &of),
        }
    }

    fn doubles(&self, call: &Call<'_>) -> Result<ArrayRef> {
        let left = call.doubles(0)?;
        if self.operator == Operator::Negate {
            return call.make_doubles(|row| left.at(row).map(|value| -value));
        }
        let right = call.doubles(1)?;
        let mut builder = arrow::array::Float64Builder::with_capacity(call.rows);
        for row in 0..call.rows {
            let (Some(left), Some(right)) = (left.at(row), right.at(row)) else {
                builder.append_null();
                continue;
            };
            let value = match self.operator {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                Operator::Multiply => left * right,
                _ if right == 0.0 => {
                    call.division_by_zero()?;
                    builder.append_null();
                    continue;
                }
                Operator::Modulo => left % right,
                _ => left / right,
            };
            if !value.is_finite() {
                return Err(self.out_of_range(call));
            }
            builder.append_value(value);
        }
        Ok(Arc::new(builder.finish()))
    }
}

impl ScalarUDFImpl for Arithmetic {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn display_name(&self, arguments: &[Expr]) -> Result<String> {
        Ok(match arguments {
            [argument] => format!("{}{argument}", self.operator.symbol()),
            [left, right] => format!("({left} {} {right})", self.operator.symbol()),
            _ => self.operator.symbol().to_owned(),
        })
    }

    fn schema_name(&self, arguments: &[Expr]) -> Result<String> {
        Ok(named::name(self.operator, arguments))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(self.result(&nameless(types), &[])?.data_type())
    }

    fn evaluate_bounds(&self, arguments: &[&Interval]) -> Result<Interval> {
        unbounded(|types| self.return_type(types), arguments)
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        // Rules ask for the types of long expressions again and again.
        planning::check()?;
        let of = self.result(arguments.arg_fields, arguments.scalar_arguments)?;
        Ok(Arc::new(of.to_arrow(self.name(), true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let callee = Callee {
            refuses_zero: self.refuses_zero,
            ..Callee::of(self)
        };
        invoke(&arguments, &callee, |call| {
            let array = self.run(call)?;
            let to = call.result_type().data_type();
            if array.data_type() == &to {
                Ok(array)
            } else {
                Ok(cast(&array, &to)?)
            }
        })
    }
}

/// The first argument divided by the second, as exact numbers of the result's type.
pub(crate) fn divide(call: &Call<'_>) -> Result<ArrayRef> {
    match call.result_type() {
        ColumnType::Decimal {
            precision, scale, ..
        } => {
            let before = match call.column_type(0) {
                ColumnType::Decimal { scale, .. } => scale,
                _ => 0,
            };
            let more_digits = scale.saturating_sub(before);
            let division = Arithmetic::new(Operator::Divide, more_digits);
            division.decimals(call, precision, scale.cast_signed())
        }
        _ => Arithmetic::new(Operator::Divide, DIVISION_DIGITS).doubles(call),
    }
}
