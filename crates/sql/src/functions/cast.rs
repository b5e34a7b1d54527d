//! Values of any type as values of a declared type: CAST, the quiet conversions of the typing,
//! and the assignment of a value to a column.
//!
//! The three differ in what happens to a value that does not fit. CAST takes the nearest and
//! warns; the quiet conversion does the same; an assignment in strict mode is an error that names
//! column and row, otherwise the nearest value and a warning.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, Decimal128Builder, Decimal256Builder,
    StringViewBuilder, new_null_array,
};
use arrow::compute::cast as arrow_cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, FieldRef, Float64Type, Int64Type, UInt64Type, i256,
};
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use mayfly_types::{ColumnType, ErrorCode, MySqlError, Warning};

use super::convert;
use super::define::{Call, invoke, raise};
use super::number;
use super::session_values::SessionValues;

/// What happens to a value that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Purpose {
    Cast,
    Assign { column: String, strict: bool },
}

/// A conversion to a declared type, as a function of the plan.
#[derive(Debug)]
struct Conversion {
    name: String,
    target: ColumnType,
    purpose: Purpose,
    signature: Signature,
    /// Rows assigned so far, to name the row in an error.
    rows: AtomicU64,
}

impl PartialEq for Conversion {
    fn eq(&self, other: &Self) -> bool {
        self.target == other.target && self.purpose == other.purpose
    }
}

impl Eq for Conversion {}

impl Hash for Conversion {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.target.hash(state);
        self.purpose.hash(state);
    }
}

/// The function that converts its argument as CAST does.
pub(crate) fn conversion(target: ColumnType) -> ScalarUDF {
    make(target, Purpose::Cast)
}

/// The function that converts its argument for a column of a table.
///
/// In strict mode a value that does not fit is an error that names the column and the row, which
/// is counted from the first row that this function sees: make one for each statement.
pub fn assignment(target: ColumnType, column: &str, strict: bool) -> ScalarUDF {
    make(
        target,
        Purpose::Assign {
            column: column.to_owned(),
            strict,
        },
    )
}

fn make(target: ColumnType, purpose: Purpose) -> ScalarUDF {
    let volatility = match purpose {
        Purpose::Cast => Volatility::Immutable,
        // The row in the message makes a difference.
        Purpose::Assign { .. } => Volatility::Volatile,
    };
    ScalarUDF::new_from_impl(Conversion {
        name: format!("cast_as_{}", target.to_string().replace(' ', "_")),
        target,
        purpose,
        signature: Signature::user_defined(volatility),
        rows: AtomicU64::new(0),
    })
}

impl ScalarUDFImpl for Conversion {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(types.to_vec())
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.target.data_type())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(self.target.to_arrow(&self.name, true)))
    }

    /// A conversion that cannot fail or round is the engine's own cast, which the optimizer
    /// understands.
    fn simplify(
        &self,
        mut arguments: Vec<Expr>,
        context: &SimplifyContext,
    ) -> Result<ExprSimplifyResult> {
        if self.purpose == Purpose::Cast
            && let [argument] = arguments.as_slice()
            && is_widening(&context.get_data_type(argument)?, &self.target)
        {
            let argument = arguments.swap_remove(0);
            let field = Arc::new(self.target.to_arrow("", true));
            let cast = datafusion::logical_expr::Cast::new_from_field(Box::new(argument), field);
            return Ok(ExprSimplifyResult::Simplified(Expr::Cast(cast)));
        }
        Ok(ExprSimplifyResult::Original(arguments))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        invoke(&arguments, self.signature.volatility, |call| {
            let before = match self.purpose {
                Purpose::Cast => 0,
                Purpose::Assign { .. } => self.rows.fetch_add(call.rows as u64, Ordering::Relaxed),
            };
            let array = convert_to(call, 0, &self.target, &self.purpose, before)?;
            if array.len() == call.rows {
                return Ok(array);
            }
            // A constant in a volatile function: one row for all.
            let first = datafusion::common::ScalarValue::try_from_array(&array, 0)?;
            first.to_array_of_size(call.rows)
        })
    }
}

/// Whether every value fits, without rounding, in a number of the target type.
fn is_widening(from: &DataType, target: &ColumnType) -> bool {
    use DataType::{Boolean, Float32, Int8, Int16, Int32, UInt8, UInt16, UInt32};
    match target {
        ColumnType::BigInt { unsigned: false } => {
            matches!(
                from,
                Boolean | Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32
            )
        }
        ColumnType::BigInt { unsigned: true } => matches!(from, UInt8 | UInt16 | UInt32),
        ColumnType::Double { unsigned: false } => {
            matches!(
                from,
                Float32 | Int8 | Int16 | Int32 | UInt8 | UInt16 | UInt32
            )
        }
        ColumnType::Decimal {
            precision, scale, ..
        } => {
            let before = precision - scale;
            match from {
                Int8 | UInt8 => before >= 3,
                Int16 | UInt16 => before >= 5,
                Int32 | UInt32 => before >= 10,
                DataType::Int64 => before >= 19,
                DataType::UInt64 => before >= 20,
                _ => false,
            }
        }
        _ => false,
    }
}

/// Converts an array without a call, as CAST does.
pub(crate) fn convert_array(
    array: &ArrayRef,
    from: &ColumnType,
    target: &ColumnType,
    session: Option<&SessionValues>,
) -> Result<ArrayRef> {
    Conversions {
        array,
        from,
        target,
        purpose: &Purpose::Cast,
        before: 0,
        session,
    }
    .run()
}

/// One argument of a call as values of the target type. A constant yields one row.
fn convert_to(
    call: &Call<'_>,
    index: usize,
    target: &ColumnType,
    purpose: &Purpose,
    before: u64,
) -> Result<ArrayRef> {
    let from = call.column_type(index);
    let session = call.session;
    Conversions {
        array: call.array(index),
        from: &from,
        target,
        purpose,
        before,
        session,
    }
    .run()
}

struct Conversions<'a> {
    array: &'a ArrayRef,
    from: &'a ColumnType,
    target: &'a ColumnType,
    purpose: &'a Purpose,
    before: u64,
    session: Option<&'a SessionValues>,
}

impl Conversions<'_> {
    fn run(&self) -> Result<ArrayRef> {
        let array = convert::plain(self.array)?;
        let to = self.target.data_type();
        if array.data_type() == &DataType::Null {
            return Ok(new_null_array(&to, array.len()));
        }
        match self.target {
            ColumnType::Char { .. }
            | ColumnType::VarChar { .. }
            | ColumnType::Text(_)
            | ColumnType::Json => self.text(&array),
            ColumnType::Enum(words) => self.words(&array, words, false),
            ColumnType::Set(words) => self.words(&array, words, true),
            ColumnType::Binary { .. } | ColumnType::VarBinary { .. } | ColumnType::Blob(_) => {
                self.bytes(&array)
            }
            ColumnType::BigInt { unsigned: false } if self.is_cast() => self.signed(&array),
            ColumnType::BigInt { unsigned: true } if self.is_cast() => self.unsigned(&array),
            ColumnType::Bool
            | ColumnType::TinyInt { .. }
            | ColumnType::SmallInt { .. }
            | ColumnType::MediumInt { .. }
            | ColumnType::Int { .. }
            | ColumnType::BigInt { .. }
            | ColumnType::Bit { .. }
            | ColumnType::Year => self.integer(&array),
            ColumnType::Decimal {
                precision,
                scale,
                unsigned,
            } => self.decimal(&array, *precision, scale.cast_signed(), *unsigned),
            ColumnType::Float { unsigned } | ColumnType::Double { unsigned } => {
                self.double(&array, *unsigned)
            }
            ColumnType::Date => self.temporal(&array, 0),
            ColumnType::DateTime { digits }
            | ColumnType::Timestamp { digits }
            | ColumnType::Time { digits } => self.temporal(&array, *digits),
            ColumnType::Null => Ok(new_null_array(&to, array.len())),
        }
    }

    fn is_cast(&self) -> bool {
        *self.purpose == Purpose::Cast
    }

    /// Reports a value of a row that does not fit: an error in strict mode, else a warning.
    fn misfit(&self, code: ErrorCode, row: usize, what: &str, value: &str) -> Result<()> {
        let row = self.before + row as u64 + 1;
        let (error, strict) = match self.purpose {
            Purpose::Cast => (
                MySqlError::new(ErrorCode::TruncatedValue, &[&what, &value]),
                false,
            ),
            Purpose::Assign { column, strict } => {
                let of_field = ErrorCode::TruncatedWrongValueForField;
                let error = match code {
                    // A text that begins with a number is cut, one that does not is wrong.
                    code if code == of_field && number::begins_with_number(value) => {
                        MySqlError::new(ErrorCode::DataTruncated, &[column, &row])
                    }
                    code if code == of_field => {
                        MySqlError::new(code, &[&what, &value, column, &row])
                    }
                    ErrorCode::TruncatedValue => MySqlError::with_message(
                        code,
                        format!(
                            "Incorrect {what} value: '{value}' for column '{column}' at row {row}"
                        ),
                    ),
                    _ => MySqlError::new(code, &[column, &row]),
                };
                (error, *strict)
            }
        };
        if strict {
            return Err(raise(error));
        }
        if let Some(session) = self.session {
            session.warn(Warning {
                level: mayfly_types::Level::Warning,
                error,
            });
        }
        Ok(())
    }

    fn text(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let texts = convert::to_text(array, self.from)?;
        let limit = match self.target {
            ColumnType::Char { length } | ColumnType::VarChar { length } => *length as usize,
            ColumnType::Text(size) => usize::try_from(size.max_bytes()).unwrap_or(usize::MAX),
            _ => usize::MAX,
        };
        let in_bytes = matches!(self.target, ColumnType::Text(_));
        let strip = matches!(self.target, ColumnType::Char { .. }) && !self.is_cast();
        let fits = |text: &str| {
            (text.len() <= limit || !in_bytes && text.chars().count() <= limit)
                && !(strip && text.ends_with(' '))
        };
        if texts.iter().flatten().all(fits) {
            return Ok(Arc::new(texts));
        }
        let mut builder = StringViewBuilder::with_capacity(texts.len());
        for (row, text) in texts.iter().enumerate() {
            let Some(text) = text else {
                builder.append_null();
                continue;
            };
            let text = if strip {
                text.trim_end_matches(' ')
            } else {
                text
            };
            let end = if in_bytes {
                text.floor_char_boundary(limit.min(text.len()))
            } else {
                text.char_indices()
                    .nth(limit)
                    .map_or(text.len(), |(at, _)| at)
            };
            if end < text.len() {
                let only_spaces = text[end..].bytes().all(|byte| byte == b' ');
                match self.purpose {
                    Purpose::Assign { strict: true, .. } if !only_spaces => {
                        self.misfit(ErrorCode::DataTooLong, row, "", text)?;
                    }
                    Purpose::Assign { .. } if !only_spaces => {
                        self.misfit(ErrorCode::DataTruncated, row, "", text)?;
                    }
                    Purpose::Cast => {
                        let what = format!("CHAR({limit})");
                        self.misfit(ErrorCode::TruncatedValue, row, &what, text)?;
                    }
                    Purpose::Assign { .. } => {}
                }
            }
            builder.append_value(&text[..end]);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// ENUM and SET: the words of the list, or numbers that stand for them.
    fn words(&self, array: &ArrayRef, words: &[String], many: bool) -> Result<ArrayRef> {
        let texts = convert::to_text(array, self.from)?;
        let is_number = self.from.is_numeric();
        let mut builder = StringViewBuilder::with_capacity(texts.len());
        for (row, text) in texts.iter().enumerate() {
            let Some(text) = text else {
                builder.append_null();
                continue;
            };
            let find = |word: &str| words.iter().find(|known| known.as_str() == word);
            let number = text.parse::<u64>().ok().filter(|_| is_number);
            let found = match (number, many) {
                (Some(number), false) => usize::try_from(number)
                    .ok()
                    .and_then(|number| words.get(number.checked_sub(1)?))
                    .cloned(),
                (Some(bits), true) => {
                    let chosen = words.iter().enumerate();
                    let chosen = chosen.filter(|(index, _)| bits >> index & 1 == 1);
                    Some(
                        chosen
                            .map(|(_, word)| word.as_str())
                            .collect::<Vec<_>>()
                            .join(","),
                    )
                }
                (None, false) => find(text).cloned(),
                (None, true) if text.is_empty() => Some(String::new()),
                (None, true) => text.split(',').all(|word| find(word).is_some()).then(|| {
                    let chosen = words
                        .iter()
                        .filter(|word| text.split(',').any(|t| t == **word));
                    chosen.map(String::as_str).collect::<Vec<_>>().join(",")
                }),
            };
            if found.is_none() {
                self.misfit(ErrorCode::DataTruncated, row, "enum", text)?;
            }
            builder.append_value(found.unwrap_or_default());
        }
        Ok(Arc::new(builder.finish()))
    }

    fn bytes(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let values = convert::to_bytes(array, self.from)?;
        let (limit, padded) = match self.target {
            ColumnType::Binary { length } => (*length as usize, true),
            ColumnType::VarBinary { length } => (*length as usize, false),
            ColumnType::Blob(size) => (
                usize::try_from(size.max_bytes()).unwrap_or(usize::MAX),
                false,
            ),
            _ => (usize::MAX, false),
        };
        if values
            .iter()
            .flatten()
            .all(|v| v.len() <= limit && !(padded && v.len() < limit))
        {
            return Ok(Arc::new(values));
        }
        let mut builder = BinaryViewBuilder::with_capacity(values.len());
        for (row, value) in values.iter().enumerate() {
            let Some(value) = value else {
                builder.append_null();
                continue;
            };
            if value.len() > limit {
                let what = format!("BINARY({limit})");
                let shown = String::from_utf8_lossy(value);
                self.misfit(ErrorCode::DataTooLong, row, &what, &shown)?;
            }
            let mut kept = value[..value.len().min(limit)].to_vec();
            if padded {
                kept.resize(limit, 0);
            }
            builder.append_value(kept);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// CAST AS SIGNED: an unsigned number keeps its bits.
    fn signed(&self, array: &ArrayRef) -> Result<ArrayRef> {
        Ok(match array.data_type() {
            DataType::UInt64 => Arc::new(
                array
                    .as_primitive::<UInt64Type>()
                    .unary::<_, Int64Type>(u64::cast_signed),
            ),
            _ => Arc::new(convert::to_integer(array, self.session)?),
        })
    }

    /// CAST AS UNSIGNED: a negative number keeps its bits.
    fn unsigned(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let wrap = |value: i128| -> u64 {
            u64::try_from(value).unwrap_or_else(|_| {
                if value < 0 {
                    i64::try_from(value).unwrap_or(i64::MIN).cast_unsigned()
                } else {
                    u64::MAX
                }
            })
        };
        let exact = |value: i256| wrap(value.to_i128().unwrap_or(i128::MAX));
        Ok(match array.data_type() {
            DataType::UInt64 => Arc::clone(array),
            DataType::Utf8View | DataType::BinaryView => {
                let texts = convert::to_text(array, self.from)?;
                let mut builder = arrow::array::UInt64Builder::with_capacity(texts.len());
                for (row, text) in texts.iter().enumerate() {
                    match text.map(|text| (text, number::read_integer(text))) {
                        None => builder.append_null(),
                        Some((text, (value, whole))) => {
                            if !whole {
                                self.misfit(ErrorCode::TruncatedValue, row, "INTEGER", text)?;
                            }
                            builder.append_value(wrap(value));
                        }
                    }
                }
                Arc::new(builder.finish())
            }
            DataType::Decimal128(_, scale) => {
                let scale = *scale;
                Arc::new(
                    array
                        .as_primitive::<Decimal128Type>()
                        .unary::<_, UInt64Type>(|value| {
                            exact(convert::rescale(i256::from_i128(value), scale, 0))
                        }),
                )
            }
            DataType::Decimal256(_, scale) => {
                let scale = *scale;
                Arc::new(
                    array
                        .as_primitive::<Decimal256Type>()
                        .unary::<_, UInt64Type>(|value| exact(convert::rescale(value, scale, 0))),
                )
            }
            #[expect(clippy::cast_possible_truncation, reason = "clipping is meant")]
            DataType::Float32 | DataType::Float64 => {
                let doubles = convert::to_double(array, self.session)?;
                Arc::new(
                    doubles.unary::<_, UInt64Type>(|value| wrap(value.round_ties_even() as i128)),
                )
            }
            _ => {
                let integers = convert::to_integer(array, self.session)?;
                Arc::new(integers.unary::<_, UInt64Type>(i64::cast_unsigned))
            }
        })
    }

    /// The least and the greatest number of an integer type.
    fn bounds(&self) -> (i128, i128) {
        let of = |bits: u32, unsigned: bool| {
            if unsigned {
                (0, (1_i128 << bits) - 1)
            } else {
                (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
            }
        };
        match self.target {
            ColumnType::TinyInt { unsigned } => of(8, *unsigned),
            ColumnType::SmallInt { unsigned } => of(16, *unsigned),
            ColumnType::MediumInt { unsigned } => of(24, *unsigned),
            ColumnType::Int { unsigned } => of(32, *unsigned),
            ColumnType::BigInt { unsigned } => of(64, *unsigned),
            ColumnType::Bit { length } => of(u32::from(*length), true),
            ColumnType::Year => (0, 2155),
            _ => of(8, false),
        }
    }

    fn integer(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let to = self.target.data_type();
        let (least, greatest) = self.bounds();
        // Exact numbers of 38 digits hold every integer; fractions are rounded on the way.
        let exact = Conversions {
            target: &super::unify::decimal(38, 0),
            ..*self
        };
        let values = match array.data_type() {
            DataType::Float32 | DataType::Float64 => {
                let doubles = convert::to_double(array, self.session)?;
                #[expect(clippy::cast_possible_truncation, reason = "clipping is meant")]
                let rounded =
                    doubles.unary::<_, Decimal128Type>(|value| value.round_ties_even() as i128);
                Arc::new(rounded) as ArrayRef
            }
            _ => exact.decimal(array, 38, 0, false)?,
        };
        let values = values.as_primitive::<Decimal128Type>();
        let mut adjusted: Option<Vec<Option<i128>>> = None;
        for (row, value) in values.iter().enumerate() {
            let Some(mut value) = value else { continue };
            if *self.target == ColumnType::Year && (1..100).contains(&value) {
                value += if value < 70 { 2000 } else { 1900 };
                adjusted.get_or_insert_with(|| values.iter().collect())[row] = Some(value);
            }
            if value < least || value > greatest {
                self.misfit(ErrorCode::OutOfRange, row, "INTEGER", &value.to_string())?;
                let clipped = value.clamp(least, greatest);
                adjusted.get_or_insert_with(|| values.iter().collect())[row] = Some(clipped);
            }
        }
        let adjusted = match adjusted {
            Some(values) => values
                .into_iter()
                .collect::<arrow::array::Decimal128Array>()
                .with_precision_and_scale(38, 0)?,
            None => values.clone().with_precision_and_scale(38, 0)?,
        };
        // An unsigned BIGINT beyond the signed range still fits: it was clipped to its own bounds.
        Ok(arrow_cast(&adjusted, &to)?)
    }

    fn decimal(
        &self,
        array: &ArrayRef,
        precision: u8,
        scale: i8,
        unsigned: bool,
    ) -> Result<ArrayRef> {
        let to = self.target.data_type();
        if is_widening(array.data_type(), self.target) && !unsigned {
            return Ok(arrow_cast(array, &to)?);
        }
        let limit = i256::from_i128(10)
            .checked_pow(u32::from(precision))
            .map_or(i256::MAX, |power| power.wrapping_sub(i256::ONE));
        let floor = if unsigned {
            i256::ZERO
        } else {
            limit.wrapping_neg()
        };
        let rows = array.len();
        let mut values: Vec<Option<i256>> = Vec::with_capacity(rows);
        match array.data_type() {
            DataType::Decimal128(_, from) => {
                values.extend(array.as_primitive::<Decimal128Type>().iter().map(|value| {
                    value.map(|value| convert::rescale(i256::from_i128(value), *from, scale))
                }))
            }
            DataType::Decimal256(_, from) => values.extend(
                array
                    .as_primitive::<Decimal256Type>()
                    .iter()
                    .map(|value| value.map(|value| convert::rescale(value, *from, scale))),
            ),
            DataType::Utf8View | DataType::BinaryView => {
                let texts = convert::to_text(array, self.from)?;
                for (row, text) in texts.iter().enumerate() {
                    let Some(text) = text else {
                        values.push(None);
                        continue;
                    };
                    let (value, whole) = number::read_decimal(text, scale);
                    if !whole {
                        let code = ErrorCode::TruncatedWrongValueForField;
                        let what = if scale == 0 && !self.is_cast() {
                            "integer"
                        } else {
                            "DECIMAL"
                        };
                        self.misfit(code, row, what, text)?;
                    }
                    let negative = text.trim_start().starts_with('-');
                    values.push(Some(value.unwrap_or(if negative {
                        i256::MIN
                    } else {
                        i256::MAX
                    })));
                }
            }
            DataType::Float32 | DataType::Float64 => {
                let texts = convert::to_text(array, self.from)?;
                values.extend(texts.iter().map(|text| {
                    text.map(|text| {
                        number::read_decimal(text, scale)
                            .0
                            .unwrap_or(if text.starts_with('-') {
                                i256::MIN
                            } else {
                                i256::MAX
                            })
                    })
                }));
            }
            DataType::UInt64 => {
                values.extend(array.as_primitive::<UInt64Type>().iter().map(|value| {
                    value.map(|v| convert::rescale(i256::from_i128(v.into()), 0, scale))
                }));
            }
            _ => {
                let integers = convert::to_integer(array, self.session)?;
                values.extend(integers.iter().map(|value| {
                    value.map(|v| convert::rescale(i256::from_i128(v.into()), 0, scale))
                }));
            }
        }
        for (row, value) in values.iter_mut().enumerate() {
            let Some(value) = value else { continue };
            if *value > limit || *value < floor {
                self.misfit(ErrorCode::OutOfRange, row, "DECIMAL", &value.to_string())?;
                *value = (*value).clamp(floor, limit);
            }
        }
        if let DataType::Decimal256(_, _) = to {
            let mut builder = Decimal256Builder::with_capacity(rows);
            values
                .into_iter()
                .for_each(|value| builder.append_option(value));
            return Ok(Arc::new(
                builder
                    .finish()
                    .with_precision_and_scale(precision, scale)?,
            ));
        }
        let mut builder = Decimal128Builder::with_capacity(rows);
        for value in values {
            builder.append_option(value.map(|value| value.as_i128()));
        }
        Ok(Arc::new(
            builder
                .finish()
                .with_precision_and_scale(precision, scale)?,
        ))
    }

    fn double(&self, array: &ArrayRef, unsigned: bool) -> Result<ArrayRef> {
        let is_text = matches!(array.data_type(), DataType::Utf8View | DataType::BinaryView);
        if is_text && !self.is_cast() {
            for (row, text) in convert::to_text(array, self.from)?.iter().enumerate() {
                if let Some(text) = text
                    && !number::read_double(text).1
                {
                    let code = ErrorCode::TruncatedWrongValueForField;
                    self.misfit(code, row, "double", text)?;
                }
            }
        }
        let session = if self.is_cast() { self.session } else { None };
        let mut doubles = convert::to_double(array, session)?;
        if unsigned && doubles.iter().flatten().any(|value| value < 0.0) {
            let negative = doubles
                .iter()
                .position(|v| v.is_some_and(|v| v < 0.0))
                .unwrap_or(0);
            self.misfit(ErrorCode::OutOfRange, negative, "DOUBLE", "negative")?;
            doubles = doubles.unary::<_, Float64Type>(|value| value.max(0.0));
        }
        Ok(arrow_cast(&doubles, &self.target.data_type())?)
    }

    /// Days, moments and times; moments and times rounded to the digits of a second.
    fn temporal(&self, array: &ArrayRef, digits: u8) -> Result<ArrayRef> {
        let unit = 10_i64.pow(u32::from(6 - digits.min(6)));
        let round = |micros: i64| {
            if unit == 1 {
                return micros;
            }
            (micros + if micros < 0 { -(unit / 2) } else { unit / 2 }) / unit * unit
        };
        let round_moment = |micros: i64| (micros + unit / 2).div_euclid(unit) * unit;
        // Values that are no time warn in a cast and are an error in a strict assignment.
        let session = if self.is_cast() { self.session } else { None };
        let result: ArrayRef = match self.target {
            ColumnType::Date => Arc::new(convert::to_day(array, session)?),
            ColumnType::Time { .. } => Arc::new(
                convert::to_time(array, session)?
                    .unary::<_, arrow::datatypes::DurationMicrosecondType>(round),
            ),
            _ if unit == 1 => Arc::new(convert::to_moment(array, session)?),
            _ => Arc::new(
                convert::to_moment(array, session)?
                    .unary::<_, arrow::datatypes::TimestampMicrosecondType>(round_moment),
            ),
        };
        if !self.is_cast() && result.null_count() > array.null_count() {
            let texts = convert::to_text(array, self.from)?;
            let what = match self.target {
                ColumnType::Date => "date",
                ColumnType::Time { .. } => "time",
                _ => "datetime",
            };
            for row in (0..array.len()).filter(|row| result.is_null(*row)) {
                if texts.is_valid(row) {
                    let value = texts.value(row);
                    self.misfit(ErrorCode::TruncatedValue, row, what, value)?;
                }
            }
        }
        Ok(result)
    }
}
