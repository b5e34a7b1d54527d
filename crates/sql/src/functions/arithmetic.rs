//! The operators on numbers: `+ - * / DIV % & | ^ << >> ~` and the sign.
//!
//! Exact numbers stay exact and fail with error 1690 where MySQL does, instead of wrapping; a
//! division by zero is NULL. Texts are numbers by their prefix, times are numbers by their digits.
//!
//! **Cost**: whole numbers run through Arrow's kernels; DECIMAL runs on 128 bits as long as the
//! declared digits fit, otherwise on 256.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Decimal128Builder, Decimal256Array,
    Decimal256Builder, Int64Array, Scalar, UInt64Builder,
};
use arrow::compute::cast;
use arrow::compute::kernels::numeric;
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Field, FieldRef, Int64Type, UInt64Type, i256,
};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::convert;
use super::define::{Call, invoke, raise};
use super::unify::{decimal, exact_digits};

/// An operator on numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    IntegerDivide,
    Modulo,
    Negate,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    BitNot,
}

impl Operator {
    fn symbol(self) -> &'static str {
        match self {
            Operator::Add => "+",
            Operator::Subtract | Operator::Negate => "-",
            Operator::Multiply => "*",
            Operator::Divide => "/",
            Operator::IntegerDivide => "DIV",
            Operator::Modulo => "%",
            Operator::BitAnd => "&",
            Operator::BitOr => "|",
            Operator::BitXor => "^",
            Operator::ShiftLeft => "<<",
            Operator::ShiftRight => ">>",
            Operator::BitNot => "~",
        }
    }

    /// The name in the table of functions.
    fn name(self) -> &'static str {
        match self {
            Operator::Modulo => "mod",
            Operator::Negate => "negate",
            other => other.symbol(),
        }
    }
}

/// The digits that `/` adds behind the point.
const DIVISION_DIGITS: u8 = 4;

#[derive(Debug, PartialEq, Eq, Hash)]
struct Arithmetic {
    operator: Operator,
    /// The expression for the text of an error; empty until the plan is typed.
    text: String,
    /// The result type once the plan is typed: constants may be folded later, types must stay.
    decided: Option<ColumnType>,
    /// Digits that the result has behind the point for the operator around it, cut off instead of
    /// rounded: MySQL rounds a division only when it is shown.
    intermediate: bool,
    signature: Signature,
}

/// The operator as a function of the plan.
pub(crate) fn arithmetic(operator: Operator) -> ScalarUDF {
    make(operator, String::new(), None)
}

fn make(operator: Operator, text: String, decided: Option<ColumnType>) -> ScalarUDF {
    let signature = Signature::user_defined(Volatility::Immutable);
    let intermediate = false;
    ScalarUDF::new_from_impl(Arithmetic {
        operator,
        text,
        decided,
        intermediate,
        signature,
    })
}

/// Whether the function is an operator whose result is a DECIMAL.
pub(crate) fn is_exact(function: &ScalarUDF) -> bool {
    let operator = function.inner().downcast_ref::<Arithmetic>();
    operator.is_some_and(|of| matches!(of.decided, Some(ColumnType::Decimal { .. })))
}

/// The expression of a call as an error shows it; empty for what is no operator.
pub(crate) fn text(function: &ScalarUDF, arguments: &[Expr]) -> String {
    let operator = function.inner().downcast_ref::<Arithmetic>();
    operator.map_or(String::new(), |operator| {
        let shown: Vec<String> = arguments.iter().map(shown).collect();
        match shown.as_slice() {
            [argument] => format!("{}({argument})", operator.operator.symbol()),
            [left, right] => format!("({left} {} {right})", operator.operator.symbol()),
            _ => String::new(),
        }
    })
}

/// An operand as an error shows it: columns in backquotes, constants as they were written.
fn shown(expr: &Expr) -> String {
    match expr {
        Expr::Literal(value, _) => match value.try_as_str() {
            Some(Some(text)) => format!("'{text}'"),
            _ => value.to_string(),
        },
        Expr::Column(column) => match &column.relation {
            Some(table) => {
                let schema = table
                    .schema()
                    .map_or(String::new(), |name| format!("`{name}`."));
                format!("{schema}`{}`.`{}`", table.table(), column.name)
            }
            None => format!("`{}`", column.name),
        },
        Expr::Alias(alias) => shown(&alias.expr),
        Expr::Cast(cast) => shown(&cast.expr),
        Expr::ScalarFunction(call) => match text(&call.func, &call.args) {
            text if text.is_empty() => expr.schema_name().to_string(),
            text => text,
        },
        other => other.schema_name().to_string(),
    }
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
    let whole = |digits: u8| digits.div_ceil(WORD_DIGITS) * WORD_DIGITS;
    let (left, right) = (whole(scales.0), whole(scales.1));
    let more = DIVISION_DIGITS.saturating_sub(left - scales.0 + right - scales.1);
    let kept = whole(left + right + more);
    Some(ScalarUDF::new_from_impl(Arithmetic {
        operator: Operator::Divide,
        text: division.text.clone(),
        decided: Some(decimal(precision - scale, kept)),
        intermediate: true,
        signature: division.signature.clone(),
    }))
}

/// The decimal digits that MySQL keeps in one word of an exact number.
const WORD_DIGITS: u8 = 9;

/// The same operator with its result type decided, and the text that its errors show; `None` if
/// the function is no operator or decided already.
pub(crate) fn decide(function: &ScalarUDF, of: &ColumnType, text: String) -> Option<ScalarUDF> {
    let operator = function.inner().downcast_ref::<Arithmetic>()?;
    operator
        .decided
        .is_none()
        .then(|| make(operator.operator, text, Some(of.clone())))
}

/// The type that an argument of an operator counts as.
fn counted(of: &ColumnType) -> ColumnType {
    match of {
        ColumnType::Bool | ColumnType::Null => ColumnType::BigInt { unsigned: false },
        ColumnType::Date => ColumnType::BigInt { unsigned: false },
        ColumnType::DateTime { digits }
        | ColumnType::Timestamp { digits }
        | ColumnType::Time { digits } => match digits {
            0 => ColumnType::BigInt { unsigned: false },
            digits => decimal(14, *digits),
        },
        numeric if numeric.is_numeric() => numeric.clone(),
        _ => ColumnType::Double { unsigned: false },
    }
}

/// The digits of a constant before and after its point.
fn constant_digits(value: &ScalarValue) -> Option<(u8, u8)> {
    let digits = |value: i128| {
        let mut rest = value.unsigned_abs();
        let mut count = 1;
        while rest >= 10 {
            rest /= 10;
            count += 1;
        }
        count
    };
    match value {
        ScalarValue::Int64(Some(value)) => Some((digits(i128::from(*value)), 0)),
        ScalarValue::UInt64(Some(value)) => Some((digits(i128::from(*value)), 0)),
        ScalarValue::Int32(Some(value)) => Some((digits(i128::from(*value)), 0)),
        _ => None,
    }
}

impl Arithmetic {
    fn result(
        &self,
        fields: &[FieldRef],
        constants: &[Option<&ScalarValue>],
    ) -> Result<ColumnType> {
        use Operator::{
            Add, BitAnd, BitNot, BitOr, BitXor, Divide, IntegerDivide, Modulo, Multiply, Negate,
            ShiftLeft, ShiftRight, Subtract,
        };
        if let Some(of) = &self.decided {
            return Ok(of.clone());
        }
        let unary = matches!(self.operator, Negate | BitNot);
        if fields.len() != if unary { 1 } else { 2 } {
            let error = MySqlError::new(ErrorCode::ParameterCount, &[&self.operator.name()]);
            return Err(raise(error));
        }
        let types: Vec<ColumnType> = fields
            .iter()
            .map(|field| counted(&ColumnType::from_arrow(field)))
            .collect();
        if matches!(
            self.operator,
            BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight | BitNot
        ) {
            return Ok(ColumnType::BigInt { unsigned: true });
        }
        let is_double = types
            .iter()
            .any(|of| matches!(of, ColumnType::Double { .. } | ColumnType::Float { .. }));
        let is_decimal = types
            .iter()
            .any(|of| matches!(of, ColumnType::Decimal { .. }));
        let is_unsigned = |of: &ColumnType| {
            matches!(
                of,
                ColumnType::TinyInt { unsigned: true }
                    | ColumnType::SmallInt { unsigned: true }
                    | ColumnType::MediumInt { unsigned: true }
                    | ColumnType::Int { unsigned: true }
                    | ColumnType::BigInt { unsigned: true }
                    | ColumnType::Bit { .. }
                    | ColumnType::Year
            )
        };
        let unsigned = types.iter().any(is_unsigned);
        let digits = |index: usize| {
            let constant = constants
                .get(index)
                .copied()
                .flatten()
                .and_then(constant_digits);
            constant
                .or_else(|| exact_digits(&types[index]))
                .unwrap_or((19, 0))
        };
        let double = ColumnType::Double { unsigned: false };
        Ok(match self.operator {
            Negate if is_double => double,
            Negate if is_decimal => types[0].clone(),
            Negate => ColumnType::BigInt { unsigned: false },
            IntegerDivide => ColumnType::BigInt { unsigned },
            _ if is_double => double,
            Divide => {
                let ((left, left_scale), (_, right_scale)) = (digits(0), digits(1));
                decimal(left + right_scale, left_scale + DIVISION_DIGITS)
            }
            Add | Subtract if is_decimal => {
                let ((left, left_scale), (right, right_scale)) = (digits(0), digits(1));
                decimal(left.max(right) + 1, left_scale.max(right_scale))
            }
            Multiply if is_decimal => {
                let ((left, left_scale), (right, right_scale)) = (digits(0), digits(1));
                decimal(left + right, left_scale + right_scale)
            }
            Modulo if is_decimal => {
                let ((left, left_scale), (right, right_scale)) = (digits(0), digits(1));
                decimal(left.max(right), left_scale.max(right_scale))
            }
            Modulo => ColumnType::BigInt {
                unsigned: is_unsigned(&types[0]),
            },
            _ => ColumnType::BigInt { unsigned },
        })
    }

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

    fn division_by_zero(&self, call: &Call<'_>) {
        if call
            .session
            .is_some_and(|session| session.lock().warn_on_division_by_zero)
        {
            call.warn(ErrorCode::DivisionByZero, &[]);
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
                    self.division_by_zero(call);
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

    /// Signed whole numbers of up to 64 bits.
    fn integers(&self, call: &Call<'_>) -> Result<ArrayRef> {
        let left = call.integers(0)?;
        if self.operator == Operator::Negate {
            let negated = left.array().try_unary::<_, Int64Type, _>(|value| {
                value.checked_neg().ok_or_else(|| self.out_of_range(call))
            })?;
            return Ok(Arc::new(negated));
        }
        let right = call.integers(1)?;
        if self.operator == Operator::Modulo {
            return self.integer_modulo(call, left.array(), right.array());
        }
        let kernel = match self.operator {
            Operator::Add => numeric::add,
            Operator::Subtract => numeric::sub,
            _ => numeric::mul,
        };
        let (left_array, right_array) = (left.array(), right.array());
        let result = match (call.is_constant(0), call.is_constant(1)) {
            (true, false) => kernel(&Scalar::new(left_array), right_array),
            (false, true) => kernel(left_array, &Scalar::new(right_array)),
            _ => kernel(left_array, right_array),
        };
        result.map_err(|_| self.out_of_range(call))
    }

    fn integer_modulo(
        &self,
        call: &Call<'_>,
        left: &Int64Array,
        right: &Int64Array,
    ) -> Result<ArrayRef> {
        if call.is_constant(1) && !call.is_constant(0) && right.is_valid(0) && right.value(0) != 0 {
            return Ok(Arc::new(remainders(left, right.value(0))));
        }
        let (constant_left, constant_right) = (call.is_constant(0), call.is_constant(1));
        call.make_integers(|row| {
            let at_left = if constant_left { 0 } else { row };
            let at_right = if constant_right { 0 } else { row };
            if left.is_null(at_left) || right.is_null(at_right) {
                return Ok(None);
            }
            if right.value(at_right) == 0 {
                self.division_by_zero(call);
                return Ok(None);
            }
            Ok(Some(
                left.value(at_left).wrapping_rem(right.value(at_right)),
            ))
        })
    }

    /// The numbers of an argument in 128 bits, with their scale.
    fn exact(call: &Call<'_>, index: usize) -> Result<(Exact, i8)> {
        let array = convert::plain(call.array(index))?;
        let constant = call.is_constant(index);
        Ok(match array.data_type() {
            DataType::Decimal128(_, scale) => {
                let scale = *scale;
                (
                    Exact::Narrow(array.as_primitive::<Decimal128Type>().clone(), constant),
                    scale,
                )
            }
            DataType::Decimal256(_, scale) => {
                let scale = *scale;
                (
                    Exact::Wide(array.as_primitive::<Decimal256Type>().clone(), constant),
                    scale,
                )
            }
            DataType::UInt64 => {
                let values = array.as_primitive::<UInt64Type>();
                (
                    Exact::Narrow(values.unary::<_, Decimal128Type>(i128::from), constant),
                    0,
                )
            }
            DataType::Timestamp(_, _) | DataType::Duration(_)
                if call.column_type(index).second_digits() > 0 =>
            {
                let digits = call.column_type(index).second_digits();
                let of = decimal(14, digits);
                let doubles: ArrayRef = Arc::new(convert::to_double(&array, call.session)?);
                let double = ColumnType::Double { unsigned: false };
                let values = super::cast::convert_array(&doubles, &double, &of, call.session)?;
                let scale = digits.cast_signed();
                (
                    Exact::Narrow(values.as_primitive::<Decimal128Type>().clone(), constant),
                    scale,
                )
            }
            _ => {
                let values = convert::to_integer(&array, call.session)?;
                (
                    Exact::Narrow(values.unary::<_, Decimal128Type>(i128::from), constant),
                    0,
                )
            }
        })
    }

    /// Whole numbers of which one is unsigned.
    fn wide_integers(&self, call: &Call<'_>, of: &ColumnType) -> Result<ArrayRef> {
        let left = Self::exact(call, 0)?.0;
        let right = if call.count() > 1 {
            Some(Self::exact(call, 1)?.0)
        } else {
            None
        };
        let value = |row: usize| -> Result<Option<i128>> {
            let Some(left) = left.narrow(row) else {
                return Ok(None);
            };
            let Some(right) = right.as_ref().map_or(Some(0), |right| right.narrow(row)) else {
                return Ok(None);
            };
            let value = match self.operator {
                Operator::Add => left + right,
                Operator::Subtract => left - right,
                Operator::Multiply => left
                    .checked_mul(right)
                    .ok_or_else(|| self.out_of_range(call))?,
                Operator::Negate => -left,
                _ if right == 0 => {
                    self.division_by_zero(call);
                    return Ok(None);
                }
                _ => left % right,
            };
            Ok(Some(value))
        };
        if *of == (ColumnType::BigInt { unsigned: true }) {
            return call.make_unsigned(|row| {
                value(row)?
                    .map(|value| u64::try_from(value).map_err(|_| self.out_of_range(call)))
                    .transpose()
            });
        }
        call.make_integers(|row| {
            value(row)?
                .map(|value| i64::try_from(value).map_err(|_| self.out_of_range(call)))
                .transpose()
        })
    }

    fn integer_division(&self, call: &Call<'_>) -> Result<ArrayRef> {
        let is_double = |index: usize| {
            let of = counted(&call.column_type(index));
            matches!(of, ColumnType::Double { .. } | ColumnType::Float { .. })
        };
        let unsigned = call.result_type() == ColumnType::BigInt { unsigned: true };
        let quotient: Box<dyn Fn(usize) -> Result<Option<i128>> + '_> =
            if is_double(0) || is_double(1) {
                let (left, right) = (call.doubles(0)?, call.doubles(1)?);
                Box::new(move |row| {
                    let (Some(left), Some(right)) = (left.at(row), right.at(row)) else {
                        return Ok(None);
                    };
                    if right == 0.0 {
                        self.division_by_zero(call);
                        return Ok(None);
                    }
                    #[expect(clippy::cast_possible_truncation, reason = "truncation is meant")]
                    let value = (left / right).trunc() as i128;
                    Ok(Some(value))
                })
            } else {
                let (left, left_scale) = Self::exact(call, 0)?;
                let (right, right_scale) = Self::exact(call, 1)?;
                let scale = left_scale.max(right_scale);
                Box::new(move |row| {
                    let (Some(left), Some(right)) = (left.wide(row), right.wide(row)) else {
                        return Ok(None);
                    };
                    let left = convert::rescale(left, left_scale, scale);
                    let right = convert::rescale(right, right_scale, scale);
                    if right == i256::ZERO {
                        self.division_by_zero(call);
                        return Ok(None);
                    }
                    let value = left.checked_div(right).and_then(i256::to_i128);
                    value.map(Some).ok_or_else(|| self.out_of_range(call))
                })
            };
        if unsigned {
            return call.make_unsigned(|row| {
                quotient(row)?
                    .map(|value| u64::try_from(value).map_err(|_| self.out_of_range(call)))
                    .transpose()
            });
        }
        call.make_integers(|row| {
            quotient(row)?
                .map(|value| i64::try_from(value).map_err(|_| self.out_of_range(call)))
                .transpose()
        })
    }

    fn decimals(&self, call: &Call<'_>, precision: u8, scale: i8) -> Result<ArrayRef> {
        let (left, left_scale) = Self::exact(call, 0)?;
        let (right, right_scale) = if call.count() > 1 {
            Self::exact(call, 1)?
        } else {
            (Exact::Narrow(Decimal128Array::from(vec![0_i128]), true), 0)
        };
        let scales = Scales {
            left: left_scale,
            right: right_scale,
            result: scale,
            cut: self.intermediate,
        };
        let narrow_result = matches!(call.result_type().data_type(), DataType::Decimal128(_, _));
        if let (true, Exact::Narrow(..), Exact::Narrow(..)) = (narrow_result, &left, &right) {
            let mut builder = Decimal128Builder::with_capacity(call.rows);
            for row in 0..call.rows {
                let (Some(left), Some(right)) = (left.narrow(row), right.narrow(row)) else {
                    builder.append_null();
                    continue;
                };
                match narrow(self.operator, left, right, scales) {
                    Step::Value(value) => builder.append_value(value),
                    Step::Null => {
                        self.division_by_zero(call);
                        builder.append_null();
                    }
                    Step::Overflow => {
                        // An intermediate step may need more bits than the result.
                        let (left, right) = (i256::from_i128(left), i256::from_i128(right));
                        match wide(self.operator, left, right, scales).and_then(i256::to_i128) {
                            Some(value) => builder.append_value(value),
                            None => return Err(self.out_of_range(call)),
                        }
                    }
                }
            }
            return Ok(Arc::new(
                builder
                    .finish()
                    .with_precision_and_scale(precision, scale)?,
            ));
        }
        let mut values = Vec::with_capacity(call.rows);
        for row in 0..call.rows {
            let (Some(left), Some(right)) = (left.wide(row), right.wide(row)) else {
                values.push(None);
                continue;
            };
            let divides = matches!(self.operator, Operator::Divide | Operator::Modulo);
            if divides && right == i256::ZERO {
                self.division_by_zero(call);
                values.push(None);
                continue;
            }
            let value = wide(self.operator, left, right, scales);
            values.push(Some(value.ok_or_else(|| self.out_of_range(call))?));
        }
        if narrow_result {
            let mut builder = Decimal128Builder::with_capacity(call.rows);
            for value in values {
                let value = value.map(|value| value.to_i128());
                match value {
                    Some(None) => return Err(self.out_of_range(call)),
                    Some(Some(value)) => builder.append_value(value),
                    None => builder.append_null(),
                }
            }
            return Ok(Arc::new(
                builder
                    .finish()
                    .with_precision_and_scale(precision, scale)?,
            ));
        }
        let mut builder = Decimal256Builder::with_capacity(call.rows);
        values
            .into_iter()
            .for_each(|value| builder.append_option(value));
        Ok(Arc::new(
            builder
                .finish()
                .with_precision_and_scale(precision, scale)?,
        ))
    }

    fn bits(&self, call: &Call<'_>) -> Result<ArrayRef> {
        let unsigned = |index: usize| -> Result<(ArrayRef, bool)> {
            let of = ColumnType::BigInt { unsigned: true };
            let from = call.column_type(index);
            let array = super::cast::convert_array(call.array(index), &from, &of, call.session)?;
            Ok((array, call.is_constant(index)))
        };
        let (left, left_constant) = unsigned(0)?;
        let left = left.as_primitive::<UInt64Type>();
        let mut builder = UInt64Builder::with_capacity(call.rows);
        if self.operator == Operator::BitNot {
            return Ok(Arc::new(left.unary::<_, UInt64Type>(|value| !value)));
        }
        let (right, right_constant) = unsigned(1)?;
        let right = right.as_primitive::<UInt64Type>();
        for row in 0..call.rows {
            let at_left = if left_constant { 0 } else { row };
            let at_right = if right_constant { 0 } else { row };
            if left.is_null(at_left) || right.is_null(at_right) {
                builder.append_null();
                continue;
            }
            let (left, right) = (left.value(at_left), right.value(at_right));
            let places = u32::try_from(right).unwrap_or(u32::MAX);
            builder.append_value(match self.operator {
                Operator::BitAnd => left & right,
                Operator::BitOr => left | right,
                Operator::BitXor => left ^ right,
                Operator::ShiftLeft => left.checked_shl(places).unwrap_or(0),
                _ => left.checked_shr(places).unwrap_or(0),
            });
        }
        Ok(Arc::new(builder.finish()))
    }
}

/// Remainders by one divisor. Numbers of 32 bits take the faster division.
fn remainders(values: &Int64Array, divisor: i64) -> Int64Array {
    if let Ok(small) = u32::try_from(divisor) {
        return values.unary(|value| match u32::try_from(value) {
            Ok(value) => i64::from(value % small),
            Err(_) => value.wrapping_rem(divisor),
        });
    }
    values.unary(|value| value.wrapping_rem(divisor))
}

/// Exact numbers, in as few bits as they came.
enum Exact {
    Narrow(Decimal128Array, bool),
    Wide(Decimal256Array, bool),
}

impl Exact {
    fn narrow(&self, row: usize) -> Option<i128> {
        match self {
            Exact::Narrow(array, constant) => {
                let row = if *constant { 0 } else { row };
                array.is_valid(row).then(|| array.value(row))
            }
            Exact::Wide(..) => self.wide(row).and_then(i256::to_i128),
        }
    }

    fn wide(&self, row: usize) -> Option<i256> {
        match self {
            Exact::Narrow(..) => self.narrow(row).map(i256::from_i128),
            Exact::Wide(array, constant) => {
                let row = if *constant { 0 } else { row };
                array.is_valid(row).then(|| array.value(row))
            }
        }
    }
}

/// Digits behind the point of both sides and of the result.
#[derive(Clone, Copy)]
struct Scales {
    left: i8,
    right: i8,
    result: i8,
    /// Whether a quotient is cut off instead of rounded.
    cut: bool,
}

enum Step {
    Value(i128),
    Null,
    Overflow,
}

fn power(exponent: i8) -> Option<i128> {
    10_i128.checked_pow(u32::try_from(exponent).ok()?)
}

/// One operation on 128 bits.
fn narrow(operator: Operator, left: i128, right: i128, scales: Scales) -> Step {
    let aligned = scales.left.max(scales.right);
    let align = |value: i128, scale: i8| value.checked_mul(power(aligned - scale)?);
    let value = match operator {
        Operator::Negate => left.checked_neg(),
        Operator::Divide | Operator::Modulo if right == 0 => return Step::Null,
        // (left / 10^l) / (right / 10^r) = left * 10^(result - l + r) / right / 10^result.
        Operator::Divide => power(scales.result - scales.left + scales.right)
            .and_then(|factor| left.checked_mul(factor))
            .map(|dividend| {
                let (quotient, rest) = (dividend / right, dividend % right);
                let up = !scales.cut
                    && rest.unsigned_abs() >= right.unsigned_abs() - rest.unsigned_abs();
                let away = if (dividend < 0) == (right < 0) { 1 } else { -1 };
                quotient + if up && rest != 0 { away } else { 0 }
            }),
        Operator::Multiply if scales.result == scales.left + scales.right => {
            left.checked_mul(right)
        }
        Operator::Multiply => None,
        _ if aligned != scales.result => None,
        _ => match (align(left, scales.left), align(right, scales.right)) {
            (Some(left), Some(right)) => match operator {
                Operator::Add => left.checked_add(right),
                Operator::Subtract => left.checked_sub(right),
                _ => Some(left % right),
            },
            _ => None,
        },
    };
    value.map_or(Step::Overflow, Step::Value)
}

/// One operation on 256 bits; the divisor is not zero.
fn wide(operator: Operator, left: i256, right: i256, scales: Scales) -> Option<i256> {
    let ten = i256::from_i128(10);
    let aligned = scales.left.max(scales.right);
    let align = |value: i256, scale: i8| {
        value.checked_mul(ten.checked_pow(u32::try_from(aligned - scale).ok()?)?)
    };
    match operator {
        Operator::Negate => left.checked_neg(),
        Operator::Divide => {
            let exponent =
                i32::from(scales.result) - i32::from(scales.left) + i32::from(scales.right);
            let factor = ten.checked_pow(exponent.unsigned_abs())?;
            let (dividend, divisor) = if exponent >= 0 {
                (left.checked_mul(factor)?, right)
            } else {
                (left, right.checked_mul(factor)?)
            };
            let quotient = dividend.checked_div(divisor)?;
            let rest = dividend
                .checked_sub(quotient.checked_mul(divisor)?)?
                .wrapping_abs();
            let away = if dividend.is_negative() == divisor.is_negative() {
                i256::ONE
            } else {
                i256::MINUS_ONE
            };
            let up = !scales.cut
                && rest != i256::ZERO
                && rest >= divisor.wrapping_abs().checked_sub(rest)?;
            if up {
                quotient.checked_add(away)
            } else {
                Some(quotient)
            }
        }
        Operator::Multiply => {
            let product = left.checked_mul(right)?;
            let scale = scales.left + scales.right;
            Some(convert::rescale(product, scale, scales.result))
        }
        _ => {
            let (left, right) = (align(left, scales.left)?, align(right, scales.right)?);
            let value = match operator {
                Operator::Add => left.checked_add(right)?,
                Operator::Subtract => left.checked_sub(right)?,
                _ => left.checked_rem(right)?,
            };
            Some(convert::rescale(value, aligned, scales.result))
        }
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
        let names: Vec<String> = arguments
            .iter()
            .map(|argument| argument.schema_name().to_string())
            .collect();
        Ok(match names.as_slice() {
            [argument] => format!("{}{argument}", self.operator.symbol()),
            [left, right] => format!("({left} {} {right})", self.operator.symbol()),
            _ => self.operator.symbol().to_owned(),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let fields: Vec<FieldRef> = types
            .iter()
            .map(|of| Arc::new(Field::new("", of.clone(), true)))
            .collect();
        Ok(self.result(&fields, &[])?.data_type())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let of = self.result(arguments.arg_fields, arguments.scalar_arguments)?;
        Ok(Arc::new(of.to_arrow(self.name(), true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        invoke(&arguments, Volatility::Immutable, |call| {
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
    let signature = Signature::user_defined(Volatility::Immutable);
    let operator = Operator::Divide;
    let division = Arithmetic {
        operator,
        text: String::new(),
        decided: None,
        intermediate: false,
        signature,
    };
    match call.result_type() {
        ColumnType::Decimal {
            precision, scale, ..
        } => division.decimals(call, precision, scale.cast_signed()),
        _ => division.doubles(call),
    }
}
