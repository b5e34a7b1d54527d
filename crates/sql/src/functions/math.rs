//! Functions over numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, FieldRef, i256};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use mayfly_types::spelling::write_digits;
use mayfly_types::{ColumnType, Digits, ErrorCode, MySqlError};

use super::call::Call;
use super::cast::convert_array;
use super::convert;
use super::define::{Definition, Returns, pure, volatile};
use super::raise::raise;
use super::unify::{decimal, double, exact_digits, shown_digits};

pub(super) static FUNCTIONS: &[Definition] = &[
    pure("abs", &[], (1, 1), Returns::By(same_number), abs),
    pure("sign", &[], (1, 1), Returns::Integer, sign),
    pure(
        "ceil",
        &["ceiling"],
        (1, 1),
        Returns::By(whole_number),
        |call| whole(call, f64::ceil, 1),
    ),
    pure("floor", &[], (1, 1), Returns::By(whole_number), |call| {
        whole(call, f64::floor, -1)
    }),
    pure("round", &[], (1, 2), Returns::By(rounded_number), |call| {
        round(call, true)
    }),
    pure(
        "truncate",
        &[],
        (2, 2),
        Returns::By(rounded_number),
        |call| round(call, false),
    ),
    pure("pow", &["power"], (2, 2), Returns::Double, pow),
    pure("sqrt", &[], (1, 1), Returns::Double, |call| {
        one(call, |x| (x >= 0.0).then(|| x.sqrt()))
    }),
    pure("exp", &[], (1, 1), Returns::Double, |call| {
        finite(call, f64::exp)
    }),
    pure("ln", &[], (1, 1), Returns::Double, |call| {
        logarithm(call, f64::ln)
    }),
    pure("log", &[], (1, 2), Returns::Double, log),
    pure("log2", &[], (1, 1), Returns::Double, |call| {
        logarithm(call, f64::log2)
    }),
    pure("log10", &[], (1, 1), Returns::Double, |call| {
        logarithm(call, f64::log10)
    }),
    pure("sin", &[], (1, 1), Returns::Double, |call| {
        one(call, |x| Some(x.sin()))
    }),
    pure("cos", &[], (1, 1), Returns::Double, |call| {
        one(call, |x| Some(x.cos()))
    }),
    pure("tan", &[], (1, 1), Returns::Double, |call| {
        one(call, |x| Some(x.tan()))
    }),
    pure("cot", &[], (1, 1), Returns::Double, |call| {
        finite(call, |x| 1.0 / x.tan())
    }),
    pure("asin", &[], (1, 1), Returns::Double, |call| {
        one(call, |x| Some(x.asin()))
    }),
    pure("acos", &[], (1, 1), Returns::Double, |call| {
        one(call, |x| Some(x.acos()))
    }),
    pure("atan", &["atan2"], (1, 2), Returns::Double, atan),
    pure("degrees", &[], (1, 1), Returns::Double, |call| {
        finite(call, f64::to_degrees)
    }),
    pure("radians", &[], (1, 1), Returns::Double, |call| {
        one(call, |x| Some(x.to_radians()))
    }),
    pure("pi", &[], (0, 0), Returns::By(|_, _| Ok(PI)), |call| {
        call.make_doubles(|_| Some(std::f64::consts::PI))
    }),
    pure("bit_count", &[], (1, 1), Returns::Integer, bit_count),
    volatile("rand", &[], (0, 1), Returns::Double, rand),
];

/// PI() shows six digits and has more.
const PI: ColumnType = ColumnType::Double {
    unsigned: false,
    digits: Some(Digits {
        total: 8,
        fraction: 6,
    }),
};

fn field_type(fields: &[FieldRef]) -> ColumnType {
    fields
        .first()
        .map_or(ColumnType::Null, |field| ColumnType::from_arrow(field))
}

/// Exact types stay exact, everything else is a DOUBLE.
fn numeric(of: &ColumnType) -> ColumnType {
    match of {
        ColumnType::Decimal { .. } => of.clone(),
        _ if of.is_integer() || matches!(of, ColumnType::Date | ColumnType::Null) => {
            let unsigned = matches!(
                of,
                ColumnType::BigInt { unsigned: true } | ColumnType::Bit { .. }
            );
            ColumnType::BigInt { unsigned }
        }
        _ => double(shown_digits(of)),
    }
}

fn same_number(fields: &[FieldRef], _: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    Ok(numeric(&field_type(fields)))
}

fn whole_number(fields: &[FieldRef], _: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    Ok(match numeric(&field_type(fields)) {
        ColumnType::Decimal {
            precision, scale, ..
        } if precision - scale < 18 => ColumnType::BigInt { unsigned: false },
        ColumnType::Decimal {
            precision, scale, ..
        } => decimal((precision - scale).saturating_add(1), 0),
        ColumnType::Double { .. } => double(0),
        other => other,
    })
}

/// The digits behind the point that a rounded number keeps, if they are constant.
fn kept_digits(constants: &[Option<&ScalarValue>]) -> Option<i64> {
    match constants {
        [_] => Some(0),
        [_, Some(value)] => match value {
            ScalarValue::Int64(Some(digits)) => Some(*digits),
            ScalarValue::Int32(Some(digits)) => Some(i64::from(*digits)),
            ScalarValue::UInt64(Some(digits)) => i64::try_from(*digits).ok(),
            ScalarValue::Int8(Some(digits)) => Some(i64::from(*digits)),
            _ => None,
        },
        _ => None,
    }
}

fn rounded_number(fields: &[FieldRef], constants: &[Option<&ScalarValue>]) -> Result<ColumnType> {
    Ok(match numeric(&field_type(fields)) {
        of @ ColumnType::Decimal { .. } => {
            let (before, scale) = exact_digits(&of).unwrap_or((38, 0));
            let kept = kept_digits(constants).unwrap_or(i64::from(scale));
            let kept = u8::try_from(kept.clamp(0, 30)).unwrap_or(scale);
            decimal(before + u8::from(kept < scale), kept)
        }
        ColumnType::Double { .. } => match kept_digits(constants) {
            Some(kept) => double(u8::try_from(kept.max(0)).unwrap_or(u8::MAX)),
            None => double(shown_digits(&field_type(fields))),
        },
        other => other,
    })
}

fn out_of_range(of: &str, what: &str) -> datafusion::error::DataFusionError {
    raise(MySqlError::new(ErrorCode::ValueOutOfRange, &[&of, &what]))
}

fn one(call: &Call<'_>, of: impl Fn(f64) -> Option<f64>) -> Result<ArrayRef> {
    let values = call.doubles(0)?;
    call.make_doubles(|row| of(values.at(row)?))
}

fn abs(call: &Call<'_>) -> Result<ArrayRef> {
    match call.result_type() {
        ColumnType::Double { .. } => one(call, |value| Some(value.abs())),
        ColumnType::BigInt { unsigned: false } => {
            let values = call.integers(0)?;
            call.make_integers(|row| match values.at(row) {
                None => Ok(None),
                Some(value) => match value.checked_abs() {
                    Some(value) => Ok(Some(value)),
                    None => Err(out_of_range("BIGINT", &format!("abs({value})"))),
                },
            })
        }
        of => exact(call, &of, |value, _| value.wrapping_abs()),
    }
}

/// Applies a function to exact numbers; it sees the unscaled number and its scale.
fn exact(call: &Call<'_>, of: &ColumnType, map: impl Fn(i256, i8) -> i256) -> Result<ArrayRef> {
    let mut array = match call.column_type(0) {
        // The number that its digits spell.
        ColumnType::Date => Arc::new(call.integers(0)?.array().clone()),
        _ => convert::plain(call.array(0))?,
    };
    let scale = match array.data_type() {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => *scale,
        DataType::Boolean => {
            array = arrow::compute::cast(&array, &DataType::Int8)?;
            0
        }
        _ => 0,
    };
    let to = match of {
        ColumnType::Decimal { scale, .. } => scale.cast_signed(),
        _ => 0,
    };
    let wide = DataType::Decimal256(76, scale);
    let values = arrow::compute::cast(&array, &wide)?;
    let values = arrow::array::AsArray::as_primitive::<arrow::datatypes::Decimal256Type>(&values);
    let mapped = values.unary::<_, arrow::datatypes::Decimal256Type>(|value| map(value, scale));
    let mapped: ArrayRef = Arc::new(mapped.with_precision_and_scale(76, to)?);
    let from = ColumnType::Decimal {
        precision: 65,
        scale: to.cast_unsigned(),
        unsigned: false,
    };
    let result = convert_array(&mapped, &from, of, call.session)?;
    if call.is_constant(0) && call.rows != result.len() {
        return ScalarValue::try_from_array(&result, 0)?.to_array_of_size(call.rows);
    }
    Ok(result)
}

fn sign(call: &Call<'_>) -> Result<ArrayRef> {
    let values = call.doubles(0)?;
    call.make_integers(|row| {
        Ok(values
            .at(row)
            .map(|value| i64::from(value > 0.0) - i64::from(value < 0.0)))
    })
}

/// CEIL and FLOOR: `away` is the direction in which a fraction is rounded.
fn whole(call: &Call<'_>, double: fn(f64) -> f64, away: i8) -> Result<ArrayRef> {
    match call.result_type() {
        ColumnType::Double { .. } => one(call, |value| Some(double(value))),
        of => exact(call, &of, |value, scale| {
            let unit = i256::from_i128(10).wrapping_pow(u32::from(scale.unsigned_abs()));
            let quotient = value.checked_div(unit).unwrap_or_default();
            let rest = value.wrapping_sub(quotient.wrapping_mul(unit));
            let upwards = away > 0 && rest > i256::ZERO;
            let downwards = away < 0 && rest < i256::ZERO;
            if upwards {
                quotient.wrapping_add(i256::ONE)
            } else if downwards {
                quotient.wrapping_sub(i256::ONE)
            } else {
                quotient
            }
        }),
    }
}

/// Source: `my_double_round` of MySQL's `sql/item_func.cc`.
fn round_double(value: f64, digits: i64, nearest: bool) -> f64 {
    let digits = i32::try_from(digits.clamp(-400, 400)).expect("clamped");
    let power = 10_f64.powi(digits.abs());
    let scaled = if digits < 0 {
        value / power
    } else {
        value * power
    };
    if digits < 0 && power.is_infinite() {
        return 0.0;
    }
    if digits >= 0 && scaled.is_infinite() || power.is_infinite() {
        return value;
    }
    let whole = if nearest {
        scaled.round_ties_even()
    } else {
        scaled.trunc()
    };
    if digits < 0 {
        whole * power
    } else {
        whole / power
    }
}

fn round(call: &Call<'_>, nearest: bool) -> Result<ArrayRef> {
    let digits = call.optional_integers(1)?;
    let kept = |row: usize| digits.as_ref().map_or(Some(0), |digits| digits.at(row));
    match call.result_type() {
        ColumnType::Double { .. } => {
            let values = call.doubles(0)?;
            call.make_doubles(|row| Some(round_double(values.at(row)?, kept(row)?, nearest)))
        }
        ColumnType::BigInt { unsigned: false } => {
            let values = call.integers(0)?;
            call.make_integers(|row| {
                let (Some(value), Some(kept)) = (values.at(row), kept(row)) else {
                    return Ok(None);
                };
                let rounded = round_exact(i256::from_i128(value.into()), 0, 0, kept, nearest);
                let rounded = rounded
                    .to_i128()
                    .and_then(|value| i64::try_from(value).ok());
                rounded
                    .map(Some)
                    .ok_or_else(|| out_of_range("BIGINT", "round"))
            })
        }
        of => {
            let to = match of {
                ColumnType::Decimal { scale, .. } => scale.cast_signed(),
                _ => 0,
            };
            if let Some(digits) = &digits
                && digits.constant().is_none()
            {
                // The digits differ from row to row: round through text, one row at a time.
                let texts = call.digits(0)?;
                let rounded = call.make_texts(|row, out| {
                    let (Some(text), Some(kept)) = (texts.at(row), kept(row)) else {
                        return Ok(false);
                    };
                    let (value, _) = super::number::read_decimal(text, to);
                    let value = value.unwrap_or_default();
                    let value = round_exact(value, to, to, kept, nearest);
                    write_digits(&value.to_string(), to, &mut **out);
                    Ok(true)
                })?;
                let from = ColumnType::Text(mayfly_types::BlobSize::Long);
                return convert_array(&rounded, &from, &of, call.session);
            }
            let Some(kept) = kept(0) else {
                return Ok(call.make_nulls());
            };
            exact(call, &of, |value, scale| {
                round_exact(value, scale, to, kept, nearest)
            })
        }
    }
}

/// Rounds or cuts an exact number at a digit (negative: before the point), halves away from zero.
fn round_exact(value: i256, from: i8, to: i8, kept: i64, nearest: bool) -> i256 {
    let kept = i8::try_from(kept.clamp(-70, 70)).expect("clamped");
    if kept >= from {
        return convert::rescale(value, from, to);
    }
    let ten = i256::from_i128(10);
    let places = u32::from(from.abs_diff(kept));
    let Some(unit) = ten.checked_pow(places) else {
        return i256::ZERO;
    };
    let cut = if nearest {
        convert::rescale(value, from, kept)
    } else {
        value.checked_div(unit).unwrap_or_default()
    };
    convert::rescale(cut.wrapping_mul(unit), from, to)
}

fn pow(call: &Call<'_>) -> Result<ArrayRef> {
    let (bases, exponents) = (call.doubles(0)?, call.doubles(1)?);
    let mut error = None;
    let result = call.make_doubles(|row| {
        let value = bases.at(row)?.powf(exponents.at(row)?);
        if !value.is_finite() {
            error = Some(format!("pow({},{})", bases.at(row)?, exponents.at(row)?));
        }
        Some(value)
    })?;
    error.map_or(Ok(result), |what| Err(out_of_range("DOUBLE", &what)))
}

/// A function that fails where its value is beyond DOUBLE.
fn finite(call: &Call<'_>, of: fn(f64) -> f64) -> Result<ArrayRef> {
    let values = call.doubles(0)?;
    let mut error = None;
    let result = call.make_doubles(|row| {
        let argument = values.at(row)?;
        let value = of(argument);
        if !value.is_finite() {
            error = Some(format!("{}({argument})", call.name));
        }
        Some(value)
    })?;
    error.map_or(Ok(result), |what| Err(out_of_range("DOUBLE", &what)))
}

/// A logarithm of one argument. What has none is told of as a division by zero.
///
/// Source: `signal_divide_by_null` of MariaDB's `sql/item_func.cc`. MySQL 8 has an error of its own
/// for it, 3020.
fn logarithm(call: &Call<'_>, of: fn(f64) -> f64) -> Result<ArrayRef> {
    let values = call.doubles(0)?;
    call.try_doubles(|row| match values.at(row) {
        None => Ok(None),
        Some(value) if value > 0.0 => Ok(Some(of(value))),
        Some(_) => call.division_by_zero().map(|()| None),
    })
}

fn log(call: &Call<'_>) -> Result<ArrayRef> {
    if call.count() == 1 {
        return logarithm(call, f64::ln);
    }
    let (bases, values) = (call.doubles(0)?, call.doubles(1)?);
    call.try_doubles(|row| {
        let base = match bases.at(row) {
            None => return Ok(None),
            // It is told of whether there is a value or not.
            Some(base) if base <= 0.0 => return call.division_by_zero().map(|()| None),
            Some(base) => base,
        };
        let Some(value) = values.at(row) else {
            return Ok(None);
        };
        #[expect(clippy::float_cmp, reason = "a base of exactly one has no logarithm")]
        let is_valid = base != 1.0 && value > 0.0;
        match is_valid {
            true => Ok(Some(value.ln() / base.ln())),
            false => call.division_by_zero().map(|()| None),
        }
    })
}

fn atan(call: &Call<'_>) -> Result<ArrayRef> {
    if call.count() == 1 {
        return one(call, |x| Some(x.atan()));
    }
    let (y, x) = (call.doubles(0)?, call.doubles(1)?);
    call.make_doubles(|row| Some(y.at(row)?.atan2(x.at(row)?)))
}

fn bit_count(call: &Call<'_>) -> Result<ArrayRef> {
    let of = ColumnType::BigInt { unsigned: true };
    let bits = convert_array(call.array(0), &call.column_type(0), &of, call.session)?;
    let bits = arrow::array::AsArray::as_primitive::<arrow::datatypes::UInt64Type>(&bits);
    let constant = call.is_constant(0);
    call.make_integers(|row| {
        let row = if constant { 0 } else { row };
        let bits = arrow::array::Array::is_valid(bits, row).then(|| bits.value(row));
        Ok(bits.map(|bits| i64::from(bits.count_ones())))
    })
}

/// The generator of RAND.
///
/// Source: `my_rnd` of MySQL's `mysys/my_rnd.cc`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Generator {
    first: u32,
    second: u32,
}

const GENERATOR_MODULUS: u32 = 0x3FFF_FFFF;

impl Generator {
    pub(crate) fn new(seed: i64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "as MySQL"
        )]
        let seed = seed as u32;
        Self {
            first: seed.wrapping_mul(0x10001).wrapping_add(55_555_555) % GENERATOR_MODULUS,
            second: seed.wrapping_mul(0x1000_0001) % GENERATOR_MODULUS,
        }
    }

    pub(crate) fn next(&mut self) -> f64 {
        let first = u64::from(self.first) * 3 + u64::from(self.second);
        self.first = u32::try_from(first % u64::from(GENERATOR_MODULUS)).expect("below 2^30");
        self.second = (self.first + self.second + 33) % GENERATOR_MODULUS;
        f64::from(self.first) / f64::from(GENERATOR_MODULUS)
    }
}

/// Distinguishes the calls of RAND() without a seed.
static UNSEEDED_CALLS: AtomicU64 = AtomicU64::new(0);

/// Without a seed, numbers that differ in every row and call; with one, the first number of the
/// seed's sequence in each row (a constant seed runs through its sequence: the typing puts a
/// function with a state in its place).
fn rand(call: &Call<'_>) -> Result<ArrayRef> {
    if call.count() == 0 {
        let nanos = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_nanos() as u64);
        let turn = UNSEEDED_CALLS.fetch_add(1, Ordering::Relaxed);
        let mixed = (nanos ^ turn.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut generator = Generator::new((mixed >> 16).cast_signed());
        generator.second =
            u32::try_from((mixed >> 34) % u64::from(GENERATOR_MODULUS)).expect("below 2^30");
        return call.make_doubles(|_| Some(generator.next()));
    }
    let seeds = call.integers(0)?;
    call.make_doubles(|row| Some(Generator::new(seeds.at(row).unwrap_or(0)).next()))
}
