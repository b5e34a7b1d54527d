//! One call of a function: how its arguments are read and its results are made, row by row.
//!
//! Arguments arrive as they are; each reader converts one by MySQL's own rules to what the body of
//! the function wants. A constant is converted once, whatever the number of rows.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, PrimitiveBuilder, new_null_array};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, DurationMicrosecondType, FieldRef, Float64Type,
    Int64Type, TimestampMicrosecondType, UInt64Type,
};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Volatility};
use mayfly_types::{ColumnType, ErrorCode, MySqlError, Warning};

use super::calendar;
use super::convert;
use super::own::MARK;
use super::raise::raise;
use super::results::{self, Value};
use super::session_values::SessionValues;

/// A result that is longer is not copied where it need not be.
const COPIED_BYTES_MAX: usize = 64 << 10;

/// The function that is called.
pub(crate) struct Callee<'a> {
    /// Its name in warnings.
    pub(crate) name: &'a str,
    pub(crate) volatility: Volatility,
    /// Whether each character of its arguments and of its result stands for a byte.
    pub(crate) is_of_octets: bool,
    /// Whether a statement that refuses to divide by zero does so here.
    pub(crate) refuses_zero: bool,
}

impl<'a> Callee<'a> {
    /// A function that reads characters as such.
    pub(crate) fn of(function: &'a impl ScalarUDFImpl) -> Callee<'a> {
        Callee {
            name: function.name(),
            volatility: function.signature().volatility,
            is_of_octets: false,
            refuses_zero: false,
        }
    }
}

/// Runs a body over the arguments: once if all of them are constants, otherwise over all rows.
pub(crate) fn invoke(
    arguments: &ScalarFunctionArgs,
    callee: &Callee<'_>,
    body: impl FnOnce(&Call<'_>) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let constant = callee.volatility != Volatility::Volatile
        && arguments
            .args
            .iter()
            .all(|value| matches!(value, ColumnarValue::Scalar(_)));
    let rows = if constant { 1 } else { arguments.number_rows };
    let mut arrays = Vec::with_capacity(arguments.args.len());
    for value in &arguments.args {
        arrays.push(match value {
            ColumnarValue::Array(array) => (Arc::clone(array), false),
            ColumnarValue::Scalar(value) => (value.to_array_of_size(1)?, true),
        });
    }
    let call = Call {
        name: callee.name,
        is_of_octets: callee.is_of_octets,
        refuses_zero: callee.refuses_zero,
        arrays,
        fields: &arguments.arg_fields,
        result: &arguments.return_field,
        rows,
        session: arguments.config_options.extensions.get::<SessionValues>(),
    };
    let result = body(&call)?;
    debug_assert_eq!(result.len(), rows, "a body returns one value a row");
    let is_copied = arguments.number_rows != 1
        || result.data_type().is_primitive()
        || result.get_buffer_memory_size() <= COPIED_BYTES_MAX;
    if constant && is_copied {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
            &result, 0,
        )?));
    }
    Ok(ColumnarValue::Array(result))
}

/// One call of a function over a batch of rows.
pub(crate) struct Call<'a> {
    /// The name of the function.
    pub(crate) name: &'a str,
    /// Whether each character of its texts stands for a byte.
    pub(crate) is_of_octets: bool,
    refuses_zero: bool,
    /// The arguments; a constant has one row.
    arrays: Vec<(ArrayRef, bool)>,
    fields: &'a [FieldRef],
    result: &'a FieldRef,
    /// The rows of the result.
    pub(crate) rows: usize,
    /// The session, unless the function runs outside one.
    pub(crate) session: Option<&'a SessionValues>,
}

macro_rules! reader {
    ($reader:ident, $value:ty, $array:ty, $doc:literal) => {
        #[doc = $doc]
        pub(crate) struct $reader {
            array: $array,
            constant: bool,
        }

        #[allow(dead_code, reason = "readers of all types have the same methods")]
        impl $reader {
            /// The value of a row, `None` for NULL.
            pub(crate) fn at(&self, row: usize) -> Option<$value> {
                let row = if self.constant { 0 } else { row };
                self.array.is_valid(row).then(|| self.array.value(row))
            }

            /// The one value of a constant argument.
            pub(crate) fn constant(&self) -> Option<Option<$value>> {
                self.constant.then(|| self.at(0))
            }

            /// The values as one array (of one row for a constant).
            pub(crate) fn array(&self) -> &$array {
                &self.array
            }
        }
    };
}

/// A text, borrowed from its array.
type Borrowed<'a> = &'a str;

pub(crate) struct Texts {
    array: arrow::array::StringViewArray,
    constant: bool,
}

impl Texts {
    pub(crate) fn at(&self, row: usize) -> Option<Borrowed<'_>> {
        let row = if self.constant { 0 } else { row };
        self.array.is_valid(row).then(|| self.array.value(row))
    }

    pub(crate) fn constant(&self) -> Option<Option<Borrowed<'_>>> {
        self.constant.then(|| self.at(0))
    }
}

pub(crate) struct Binaries {
    array: arrow::array::BinaryViewArray,
    constant: bool,
}

impl Binaries {
    pub(crate) fn at(&self, row: usize) -> Option<&[u8]> {
        let row = if self.constant { 0 } else { row };
        self.array.is_valid(row).then(|| self.array.value(row))
    }
}

reader!(
    Integers,
    i64,
    arrow::array::Int64Array,
    "An argument read as whole numbers."
);
reader!(
    Bits,
    u64,
    arrow::array::UInt64Array,
    "An argument read as 64 bits."
);
reader!(
    Doubles,
    f64,
    arrow::array::Float64Array,
    "An argument read as floating-point numbers."
);
reader!(
    Moments,
    i64,
    arrow::array::TimestampMicrosecondArray,
    "Microseconds since 1970."
);
reader!(
    Times,
    i64,
    arrow::array::DurationMicrosecondArray,
    "Signed microseconds."
);

impl Call<'_> {
    /// The number of arguments.
    pub(crate) fn count(&self) -> usize {
        self.arrays.len()
    }

    /// The argument as it came.
    pub(crate) fn array(&self, index: usize) -> &ArrayRef {
        &self.arrays[index].0
    }

    /// Whether the argument is one value for all rows.
    pub(crate) fn is_constant(&self, index: usize) -> bool {
        self.arrays[index].1
    }

    /// The Arrow type of the argument.
    pub(crate) fn data_type(&self, index: usize) -> &DataType {
        self.arrays[index].0.data_type()
    }

    /// The MySQL type of the argument.
    pub(crate) fn column_type(&self, index: usize) -> ColumnType {
        ColumnType::from_arrow(&self.fields[index])
    }

    /// The type of the result.
    pub(crate) fn result_type(&self) -> ColumnType {
        ColumnType::from_arrow(self.result)
    }

    /// The argument as texts, which those of BIT are by their bytes.
    pub(crate) fn texts(&self, index: usize) -> Result<Texts> {
        self.texts_of(index, &self.column_type(index))
    }

    pub(crate) fn bytes(&self, index: usize) -> Result<Binaries> {
        self.bytes_of(index, &self.column_type(index))
    }

    fn texts_of(&self, index: usize, column_type: &ColumnType) -> Result<Texts> {
        let (array, constant) = &self.arrays[index];
        Ok(Texts {
            array: convert::to_text(array, column_type)?,
            constant: *constant,
        })
    }

    fn bytes_of(&self, index: usize, column_type: &ColumnType) -> Result<Binaries> {
        let (array, constant) = &self.arrays[index];
        Ok(Binaries {
            array: convert::to_bytes(array, column_type)?,
            constant: *constant,
        })
    }

    /// The type of an argument whose values are compared or computed with: BIT is a number there.
    fn number_type(&self, index: usize) -> ColumnType {
        match self.column_type(index) {
            ColumnType::Bit { .. } => ColumnType::BigInt { unsigned: true },
            other => other,
        }
    }

    /// As [`Call::texts`], but the number of a BIT is spelled in digits.
    pub(crate) fn digits(&self, index: usize) -> Result<Texts> {
        self.texts_of(index, &self.number_type(index))
    }

    /// As [`Call::bytes`], but the number of a BIT is spelled in digits.
    pub(crate) fn digits_as_bytes(&self, index: usize) -> Result<Binaries> {
        self.bytes_of(index, &self.number_type(index))
    }

    pub(crate) fn integers(&self, index: usize) -> Result<Integers> {
        let (array, constant) = &self.arrays[index];
        Ok(Integers {
            array: convert::to_integer(array, self.session)?,
            constant: *constant,
        })
    }

    pub(crate) fn bits(&self, index: usize) -> Result<Bits> {
        let (array, constant) = &self.arrays[index];
        Ok(Bits {
            array: convert::to_bits(array, self.session)?,
            constant: *constant,
        })
    }

    /// An argument that may be left out.
    pub(crate) fn optional_integers(&self, index: usize) -> Result<Option<Integers>> {
        (index < self.count())
            .then(|| self.integers(index))
            .transpose()
    }

    pub(crate) fn doubles(&self, index: usize) -> Result<Doubles> {
        let (array, constant) = &self.arrays[index];
        Ok(Doubles {
            array: convert::to_double(array, self.session)?,
            constant: *constant,
        })
    }

    pub(crate) fn moments(&self, index: usize) -> Result<Moments> {
        let (array, constant) = &self.arrays[index];
        Ok(Moments {
            array: convert::to_moment(array, self.session)?,
            constant: *constant,
        })
    }

    pub(crate) fn times(&self, index: usize) -> Result<Times> {
        let (array, constant) = &self.arrays[index];
        Ok(Times {
            array: convert::to_time(array, self.session)?,
            constant: *constant,
        })
    }

    /// The name of the function as users know it.
    pub(crate) fn shown_name(&self) -> &str {
        self.name.trim_start_matches(MARK)
    }

    /// Adds a warning to the statement's, if there is a session.
    pub(crate) fn warn(&self, code: ErrorCode, arguments: &[&dyn std::fmt::Display]) {
        if let Some(session) = self.session {
            session.warn(Warning::new(code, arguments));
        }
    }

    /// Tells of a division by zero, whose result is NULL.
    ///
    /// # Errors
    /// 1365 in a statement that refuses it.
    pub(crate) fn division_by_zero(&self) -> Result<()> {
        let Some(session) = self.session else {
            return Ok(());
        };
        let (warns, refuses) = {
            let values = session.lock();
            (
                values.warn_on_division_by_zero,
                values.refuses_division_by_zero,
            )
        };
        if warns && refuses && self.refuses_zero {
            return Err(raise(MySqlError::new(ErrorCode::DivisionByZero, &[])));
        }
        if warns {
            self.warn(ErrorCode::DivisionByZero, &[]);
        }
        Ok(())
    }

    /// A text for each row: `write` appends it, or returns `false` for NULL.
    pub(crate) fn make_texts(
        &self,
        write: impl FnMut(usize, &mut Value<'_, String>) -> Result<bool>,
    ) -> Result<ArrayRef> {
        results::make(self, write)
    }

    /// Bytes for each row: `write` appends them, or returns `false` for NULL.
    pub(crate) fn make_bytes(
        &self,
        write: impl FnMut(usize, &mut Value<'_, Vec<u8>>) -> Result<bool>,
    ) -> Result<ArrayRef> {
        results::make(self, write)
    }

    /// A part of an argument for each row.
    pub(crate) fn make_parts<'t>(
        &self,
        part: impl FnMut(usize) -> Option<Borrowed<'t>>,
    ) -> Result<ArrayRef> {
        results::make_parts(self, part)
    }

    /// A whole number for each row.
    pub(crate) fn make_integers(
        &self,
        value: impl FnMut(usize) -> Result<Option<i64>>,
    ) -> Result<ArrayRef> {
        self.make::<Int64Type>(value)
    }

    /// An unsigned number for each row.
    pub(crate) fn make_unsigned(
        &self,
        value: impl FnMut(usize) -> Result<Option<u64>>,
    ) -> Result<ArrayRef> {
        self.make::<UInt64Type>(value)
    }

    /// A floating-point number for each row; NULL where it is not finite.
    pub(crate) fn make_doubles(
        &self,
        mut value: impl FnMut(usize) -> Option<f64>,
    ) -> Result<ArrayRef> {
        self.try_doubles(|row| Ok(value(row)))
    }

    /// As [`Call::make_doubles`], of values that may fail.
    pub(crate) fn try_doubles(
        &self,
        mut value: impl FnMut(usize) -> Result<Option<f64>>,
    ) -> Result<ArrayRef> {
        self.make::<Float64Type>(|row| Ok(value(row)?.filter(|value| value.is_finite())))
    }

    /// A truth value for each row.
    pub(crate) fn make_booleans(
        &self,
        mut value: impl FnMut(usize) -> Result<Option<bool>>,
    ) -> Result<ArrayRef> {
        let mut builder = arrow::array::BooleanBuilder::with_capacity(self.rows);
        for row in 0..self.rows {
            builder.append_option(value(row)?);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// A day for each row, counted from 1970.
    pub(crate) fn make_dates(
        &self,
        value: impl FnMut(usize) -> Result<Option<i32>>,
    ) -> Result<ArrayRef> {
        self.make::<Date32Type>(value)
    }

    /// A moment for each row, in microseconds since 1970; NULL where it lies beyond MySQL's years.
    pub(crate) fn make_moments(
        &self,
        mut value: impl FnMut(usize) -> Result<Option<i64>>,
    ) -> Result<ArrayRef> {
        self.make::<TimestampMicrosecondType>(|row| {
            Ok(value(row)?.filter(|moment| calendar::is_moment(*moment)))
        })
    }

    /// A signed time for each row, in microseconds.
    pub(crate) fn make_times(
        &self,
        value: impl FnMut(usize) -> Result<Option<i64>>,
    ) -> Result<ArrayRef> {
        self.make::<DurationMicrosecondType>(value)
    }

    fn make<T: ArrowPrimitiveType>(
        &self,
        mut value: impl FnMut(usize) -> Result<Option<T::Native>>,
    ) -> Result<ArrayRef> {
        let mut builder = PrimitiveBuilder::<T>::with_capacity(self.rows);
        for row in 0..self.rows {
            builder.append_option(value(row)?);
        }
        Ok(Arc::new(builder.finish()))
    }

    /// NULL in every row.
    pub(crate) fn make_nulls(&self) -> ArrayRef {
        new_null_array(self.result.data_type(), self.rows)
    }
}
