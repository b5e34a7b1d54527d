//! Values of any type as values of a declared type: CAST, the quiet conversions of the typing,
//! and the assignment of a value to a column.
//!
//! These differ in what happens to a value that does not fit. CAST takes the nearest and
//! warns; the quiet conversion does the same; an assignment in strict mode is an error that names
//! column and row, otherwise the nearest value and a warning.

mod column_value;
mod decimals;
mod numbers;
mod texts;
mod times;

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{ArrayRef, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use mayfly_types::{BlobSize, ColumnType, ErrorCode, MySqlError, Warning};

use super::call::{Call, Callee, invoke};
use super::convert;
use super::define::unbounded;
use super::listed;
use super::number;
use super::raise::raise;
use super::session_values::{SessionValues, aside};

pub use column_value::zero;
pub(crate) use column_value::{Nulls, keeping, keeping_name};

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
    /// What becomes of NULL where the value is kept for what reads it before it is assigned. Nobody
    /// hears of values that do not fit then: they are told where they are assigned.
    keeps: Option<Nulls>,
    signature: Signature,
    /// Rows assigned so far, to name the row in an error.
    rows: AtomicU64,
}

impl PartialEq for Conversion {
    fn eq(&self, other: &Self) -> bool {
        self.target == other.target && self.purpose == other.purpose && self.keeps == other.keeps
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
    make(target, Purpose::Cast, None)
}

/// Values as CAST makes them of others, without its warnings.
///
/// # Errors
/// None but for a bug: what does not fit has a nearest value, or is NULL.
pub fn converted(values: &ArrayRef, target: ColumnType) -> Result<ArrayRef> {
    let field = |of: DataType| Arc::new(Field::new("value", of, true));
    let arguments = ScalarFunctionArgs {
        args: vec![ColumnarValue::Array(Arc::clone(values))],
        arg_fields: vec![field(values.data_type().clone())],
        number_rows: values.len(),
        return_field: field(target.data_type()),
        config_options: Arc::default(),
    };
    let converted = conversion(target).invoke_with_args(arguments)?;
    converted.into_array(values.len())
}

/// The texts that values of a type are shown as.
///
/// # Errors
/// None but for a bug.
pub fn shown_texts(values: &ArrayRef, of: &ColumnType) -> Result<ArrayRef> {
    Ok(Arc::new(convert::to_text(values, of)?))
}

/// What a function converts to, if that is what it does.
pub(crate) fn target(function: &ScalarUDF) -> Option<&ColumnType> {
    let conversion = function.inner().downcast_ref::<Conversion>()?;
    Some(&conversion.target)
}

/// The function that converts its argument for a column of a table.
///
/// In strict mode a value that does not fit is an error that names the column and the row, which
/// is counted from the first row that this function sees: make one for each statement.
pub fn assignment(target: ColumnType, column: &str, strict: bool) -> ScalarUDF {
    let column = column.to_owned();
    make(target, Purpose::Assign { column, strict }, None)
}

/// Notes that a function made by [`assignment`] need not look at some rows, which count all the
/// same.
pub fn skip_rows(function: &ScalarUDF, rows: usize) {
    if let Some(conversion) = function.inner().downcast_ref::<Conversion>() {
        conversion.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }
}

/// How many rows a function made by [`assignment`] has counted.
pub fn rows_seen(function: &ScalarUDF) -> u64 {
    let conversion = function.inner().downcast_ref::<Conversion>();
    conversion.map_or(0, |conversion| conversion.rows.load(Ordering::Relaxed))
}

/// Lets such a function count again from some row on: those behind it come a second time.
pub fn see_again(function: &ScalarUDF, from: u64) {
    if let Some(conversion) = function.inner().downcast_ref::<Conversion>() {
        conversion.rows.store(from, Ordering::Relaxed);
    }
}

fn make(target: ColumnType, purpose: Purpose, keeps: Option<Nulls>) -> ScalarUDF {
    let volatility = match purpose {
        // The row in the message makes a difference.
        Purpose::Assign { .. } if keeps.is_none() => Volatility::Volatile,
        _ => Volatility::Immutable,
    };
    let verb = keeps.map_or("cast", Nulls::verb);
    ScalarUDF::new_from_impl(Conversion {
        name: format!("{verb}_as_{}", target.to_string().replace(' ', "_")),
        target,
        purpose,
        keeps,
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

    fn evaluate_bounds(&self, arguments: &[&Interval]) -> Result<Interval> {
        unbounded(|types| self.return_type(types), arguments)
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
            // The planner takes a cast for nullable as far as its argument is.
            let is_nullable = context.nullable(&argument)?;
            let field = Arc::new(self.target.to_arrow("", is_nullable));
            let cast = datafusion::logical_expr::Cast::new_from_field(Box::new(argument), field);
            return Ok(ExprSimplifyResult::Simplified(Expr::Cast(cast)));
        }
        Ok(ExprSimplifyResult::Original(arguments))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        invoke(&arguments, &Callee::of(self), |call| {
            let before = match self.purpose {
                Purpose::Cast => 0,
                Purpose::Assign { .. } => self.rows.fetch_add(call.rows as u64, Ordering::Relaxed),
            };
            let values = || convert_to(call, 0, &self.target, &self.purpose, before);
            let array = match self.keeps {
                Some(nulls) => nulls.filled(aside(values).0?, &self.target)?,
                None => values()?,
            };
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
        &ColumnType::DOUBLE => {
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
        if !self.is_cast() && self.from.is_list() && self.target.is_numeric() {
            // A column of numbers takes the place of a word.
            let places = listed::places(&array, self.from)?;
            let from = listed::number_type(self.from);
            return Conversions {
                array: &places,
                from: &from,
                ..*self
            }
            .run();
        }
        if let ColumnType::Bit { .. } = self.from {
            let (array, from) = match self.takes_bytes_of_bits() {
                true => {
                    let bytes: ArrayRef = Arc::new(convert::to_bytes(&array, self.from)?);
                    (bytes, ColumnType::Blob(BlobSize::Tiny))
                }
                false => (array, ColumnType::BigInt { unsigned: true }),
            };
            return Conversions {
                array: &array,
                from: &from,
                ..*self
            }
            .run();
        }
        if let Some(from) = self.copied_number() {
            let numbers: ArrayRef = match from {
                ColumnType::DOUBLE => Arc::new(convert::to_double(&array, self.session)?),
                _ => array,
            };
            return Conversions {
                array: &numbers,
                from: &from,
                ..*self
            }
            .run();
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
            | ColumnType::BigInt { .. } => self.integer(&array),
            ColumnType::Bit { .. } => self.bits(&array),
            ColumnType::Year => self.year(&array),
            ColumnType::Decimal {
                precision,
                scale,
                unsigned,
            } => self.decimal(&array, (*precision, scale.cast_signed()), *unsigned),
            ColumnType::Float { unsigned, digits } | ColumnType::Double { unsigned, digits } => {
                self.double(&array, *unsigned, *digits)
            }
            ColumnType::Date => self.temporal(&array, 0),
            ColumnType::DateTime { digits }
            | ColumnType::Timestamp { digits }
            | ColumnType::Time { digits } => self.temporal(&array, *digits),
            ColumnType::Null => Ok(new_null_array(&to, array.len())),
        }
    }

    /// Whether the target takes the bytes of a BIT, not its number. A column does if it is one of
    /// TEXT or BLOB: to the others MySQL copies a number.
    ///
    /// **Source**: `field_conv` of MySQL's `sql/field_conv.cc`.
    fn takes_bytes_of_bits(&self) -> bool {
        match self.target {
            ColumnType::Text(_) | ColumnType::Blob(_) => true,
            ColumnType::Enum(_) | ColumnType::Set(_) => false,
            of => self.is_cast() && (of.is_text() || of.is_binary()),
        }
    }

    /// The type of the number that a column of short texts copies, where that shows other digits
    /// than the column that the number comes from: a FLOAT is the DOUBLE nearest to it. TEXT and
    /// BLOB take what the column shows.
    ///
    /// **Source**: as for BIT.
    fn copied_number(&self) -> Option<ColumnType> {
        let is_short = matches!(
            self.target,
            ColumnType::Char { .. }
                | ColumnType::VarChar { .. }
                | ColumnType::Binary { .. }
                | ColumnType::VarBinary { .. }
        );
        match self.from {
            _ if self.is_cast() || !is_short => None,
            ColumnType::Year => Some(ColumnType::SmallInt { unsigned: true }),
            &ColumnType::DOUBLE => None,
            ColumnType::Float { .. } | ColumnType::Double { .. } => Some(ColumnType::DOUBLE),
            _ => None,
        }
    }

    fn is_cast(&self) -> bool {
        *self.purpose == Purpose::Cast
    }

    /// Reports a value of a row that does not fit: an error in strict mode, else a warning.
    fn misfit(&self, code: ErrorCode, row: usize, what: &str, value: &str) -> Result<()> {
        let row = self.before + row as u64 + 1;
        let (error, strict) = match self.purpose {
            Purpose::Cast => {
                let error = match (code, self.target) {
                    (ErrorCode::OutOfRange, of @ ColumnType::Decimal { .. }) => {
                        let column = format!("cast({value} as {of})");
                        MySqlError::new(code, &[&column, &row])
                    }
                    _ => MySqlError::new(ErrorCode::TruncatedValue, &[&what, &value]),
                };
                (error, false)
            }
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
                    ErrorCode::TruncatedValue if !strict => {
                        MySqlError::new(ErrorCode::DataTruncated, &[column, &row])
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
        self.report(error, strict)
    }

    /// Reports a value of a row that is wrong from its first byte on.
    fn wrong_for_field(&self, row: usize, what: &str, value: &str) -> Result<()> {
        let row = self.before + row as u64 + 1;
        let code = ErrorCode::TruncatedWrongValueForField;
        match self.purpose {
            Purpose::Cast => Ok(()),
            Purpose::Assign { column, strict } => {
                let error = MySqlError::new(code, &[&what, &value, column, &row]);
                self.report(error, *strict)
            }
        }
    }

    /// Notes that a column keeps less of a value, as is usual there.
    fn note_cut(&self, row: usize) {
        let row = self.before + row as u64 + 1;
        if let (Purpose::Assign { column, .. }, Some(session)) = (self.purpose, self.session) {
            session.warn(Warning::note(ErrorCode::DataTruncated, &[column, &row]));
        }
    }

    fn report(&self, error: MySqlError, strict: bool) -> Result<()> {
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
}

/// A value of an ENUM or SET as a text that nobody counts as its place.
pub(crate) fn as_text(value: Expr, of: &ColumnType) -> Expr {
    conversion(listed::text_type(of)).call(vec![value])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_widen_as_arrow_casts_them() {
        use arrow::array::{Int64Array, UInt8Array, UInt64Array};
        let arrays: [ArrayRef; 3] = [
            Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(i64::MAX)])),
            Arc::new(UInt64Array::from(vec![Some(0), Some(u64::MAX), None])),
            Arc::new(UInt8Array::from(vec![Some(255), None])),
        ];
        for (array, scale) in arrays.iter().zip([0, 18, 35]) {
            let target = crate::functions::unify::decimal(20, scale);
            let widened = converted(array, target.clone()).unwrap();
            let cast = arrow::compute::cast(array, &target.data_type()).unwrap();
            assert_eq!(&widened, &cast);
            assert_eq!(widened.data_type(), cast.data_type());
        }
    }
}
