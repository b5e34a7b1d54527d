//! How a function is defined, and how a definition becomes a function of the plan.
//!
//! A definition is one line of a table: name, aliases, number of arguments, result type,
//! implementation. Arguments arrive as they are: each implementation reads them as text, number
//! or time by MySQL's own conversions, so no cast is ever planned in front of a function.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, PrimitiveBuilder, StringViewBuilder, new_null_array};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, DurationMicrosecondType, Field, FieldRef,
    Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt64Type,
};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use mayfly_types::{ColumnType, ErrorCode, MySqlError, Warning};

use super::calendar;
use super::convert;
use super::octets;
use super::session_values::SessionValues;

/// Wraps an error of MySQL so that it passes through DataFusion whole.
pub fn raise(error: MySqlError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The result type of a function.
#[derive(Clone, Copy)]
pub(crate) enum Returns {
    Text,
    Bytes,
    Integer,
    Unsigned,
    Double,
    Boolean,
    Date,
    Time(u8),
    /// Decided by the fields and the constant values of the arguments.
    By(fn(&[FieldRef], &[Option<&ScalarValue>]) -> Result<ColumnType>),
}

/// One line of the table of functions.
pub(crate) struct Definition {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// The least and the most arguments.
    pub(crate) arguments: (usize, usize),
    pub(crate) volatility: Volatility,
    pub(crate) returns: Returns,
    pub(crate) body: fn(&Call<'_>) -> Result<ArrayRef>,
}

/// As many arguments as the caller likes.
pub(crate) const MANY: usize = usize::MAX;

/// A line whose result depends on nothing but its arguments.
pub(crate) const fn pure(
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: (usize, usize),
    returns: Returns,
    body: fn(&Call<'_>) -> Result<ArrayRef>,
) -> Definition {
    Definition {
        name,
        aliases,
        arguments,
        volatility: Volatility::Immutable,
        returns,
        body,
    }
}

/// A line whose result depends on the session, but not on the row.
pub(crate) const fn stable(
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: (usize, usize),
    returns: Returns,
    body: fn(&Call<'_>) -> Result<ArrayRef>,
) -> Definition {
    Definition {
        name,
        aliases,
        arguments,
        volatility: Volatility::Stable,
        returns,
        body,
    }
}

/// A line whose result differs from row to row.
pub(crate) const fn volatile(
    name: &'static str,
    aliases: &'static [&'static str],
    arguments: (usize, usize),
    returns: Returns,
    body: fn(&Call<'_>) -> Result<ArrayRef>,
) -> Definition {
    Definition {
        name,
        aliases,
        arguments,
        volatility: Volatility::Volatile,
        returns,
        body,
    }
}

impl Returns {
    fn resolve(
        self,
        fields: &[FieldRef],
        constants: &[Option<&ScalarValue>],
    ) -> Result<ColumnType> {
        Ok(match self {
            Returns::Text => ColumnType::Text(mayfly_types::BlobSize::Long),
            Returns::Bytes => ColumnType::Blob(mayfly_types::BlobSize::Long),
            Returns::Integer => ColumnType::BigInt { unsigned: false },
            Returns::Unsigned => ColumnType::BigInt { unsigned: true },
            Returns::Double => ColumnType::DOUBLE,
            Returns::Boolean => ColumnType::Bool,
            Returns::Date => ColumnType::Date,
            Returns::Time(digits) => ColumnType::Time { digits },
            Returns::By(decide) => decide(fields, constants)?,
        })
    }
}

/// The field that a result of MySQL type `of` has: booleans stay Arrow booleans, so that they
/// can filter.
pub(crate) fn result_field(name: &str, of: &ColumnType) -> FieldRef {
    let field = of.to_arrow(name, true);
    Arc::new(if *of == ColumnType::Bool {
        field.with_data_type(DataType::Boolean)
    } else {
        field
    })
}

/// A function of the plan made from a definition.
#[derive(Clone)]
pub(crate) struct Function {
    definition: &'static Definition,
    /// The result type once the plan is typed: constants may be folded later, types must stay.
    decided: Option<ColumnType>,
    aliases: Vec<String>,
    signature: Signature,
}

/// The same function with its result type decided; `None` if its type never varies, if it is
/// decided already or is no function of this table.
pub(crate) fn decide(function: &ScalarUDF, of: &ColumnType) -> Option<ScalarUDF> {
    let inner = function.inner().downcast_ref::<Function>()?;
    let varies = matches!(inner.definition.returns, Returns::By(_)) && inner.decided.is_none();
    varies.then(|| {
        ScalarUDF::new_from_impl(Function {
            decided: Some(of.clone()),
            ..inner.clone()
        })
    })
}

impl Function {
    pub(crate) fn new(definition: &'static Definition) -> Self {
        Self {
            definition,
            decided: None,
            aliases: definition
                .aliases
                .iter()
                .map(|alias| (*alias).to_owned())
                .collect(),
            signature: Signature::user_defined(definition.volatility),
        }
    }
}

impl Function {
    /// The type of a result whose arguments may have bytes for characters.
    fn of_bytes(&self, of: ColumnType, fields: &[FieldRef]) -> ColumnType {
        octets::result_type(self.definition.name, fields, of)
    }
}

/// The name of a function that is one line of the table.
pub(crate) fn name_of(function: &ScalarUDF) -> Option<&'static str> {
    function
        .inner()
        .downcast_ref::<Function>()
        .map(|function| function.definition.name)
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.definition.name)
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.definition.name == other.definition.name && self.decided == other.decided
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.name.hash(state);
    }
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.definition.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let (least, most) = self.definition.arguments;
        if types.len() < least || types.len() > most {
            let error = MySqlError::new(ErrorCode::ParameterCount, &[&self.definition.name]);
            return Err(raise(error));
        }
        Ok(types.to_vec())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let fields = nameless(types);
        let constants = vec![None; fields.len()];
        let of = self.of_bytes(
            self.definition.returns.resolve(&fields, &constants)?,
            &fields,
        );
        Ok(result_field("", &of).data_type().clone())
    }

    fn return_field_from_args(&self, arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.coerce_types(&vec![DataType::Null; arguments.arg_fields.len()])?;
        let of = match &self.decided {
            Some(of) => of.clone(),
            None => {
                let (returns, fields) = (self.definition.returns, arguments.arg_fields);
                self.of_bytes(returns.resolve(fields, arguments.scalar_arguments)?, fields)
            }
        };
        Ok(result_field(self.name(), &of))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let definition = self.definition;
        if octets::applies(definition.name, &arguments.arg_fields) {
            let arguments = octets::arguments(&arguments)?;
            let value = invoke(&arguments, definition.volatility, definition.body)?;
            return octets::result(value);
        }
        invoke(&arguments, definition.volatility, definition.body)
    }
}

/// Runs a body over the arguments: once if all of them are constants, otherwise over all rows.
pub(crate) fn invoke(
    arguments: &ScalarFunctionArgs,
    volatility: Volatility,
    body: impl FnOnce(&Call<'_>) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let constant = volatility != Volatility::Volatile
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
        arrays,
        fields: &arguments.arg_fields,
        result: &arguments.return_field,
        rows,
        session: arguments.config_options.extensions.get::<SessionValues>(),
    };
    let result = body(&call)?;
    debug_assert_eq!(result.len(), rows, "a body returns one value a row");
    if constant {
        return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
            &result, 0,
        )?));
    }
    Ok(ColumnarValue::Array(result))
}

/// One call of a function over a batch of rows.
pub(crate) struct Call<'a> {
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

    pub(crate) fn texts(&self, index: usize) -> Result<Texts> {
        let (array, constant) = &self.arrays[index];
        Ok(Texts {
            array: convert::to_text(array, &self.column_type(index))?,
            constant: *constant,
        })
    }

    pub(crate) fn bytes(&self, index: usize) -> Result<Binaries> {
        let (array, constant) = &self.arrays[index];
        Ok(Binaries {
            array: convert::to_bytes(array, &self.column_type(index))?,
            constant: *constant,
        })
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

    /// Adds a warning to the statement's, if there is a session.
    pub(crate) fn warn(&self, code: ErrorCode, arguments: &[&dyn std::fmt::Display]) {
        if let Some(session) = self.session {
            session.warn(Warning::new(code, arguments));
        }
    }

    /// A text for each row: `write` appends it, or returns `false` for NULL.
    pub(crate) fn make_texts(
        &self,
        mut write: impl FnMut(usize, &mut String) -> Result<bool>,
    ) -> Result<ArrayRef> {
        let mut builder = StringViewBuilder::with_capacity(self.rows);
        let mut text = String::new();
        for row in 0..self.rows {
            text.clear();
            if write(row, &mut text)? {
                builder.append_value(&text);
            } else {
                builder.append_null();
            }
        }
        Ok(Arc::new(builder.finish()))
    }

    /// A borrowed text for each row.
    pub(crate) fn make_parts<'t>(
        &self,
        mut part: impl FnMut(usize) -> Option<Borrowed<'t>>,
    ) -> ArrayRef {
        let mut builder = StringViewBuilder::with_capacity(self.rows);
        for row in 0..self.rows {
            builder.append_option(part(row));
        }
        Arc::new(builder.finish())
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
        self.make::<Float64Type>(|row| Ok(value(row).filter(|value| value.is_finite())))
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

/// Columns of some types that nothing else is known of.
pub(crate) fn nameless(types: &[DataType]) -> Vec<FieldRef> {
    let columns = types.iter();
    let columns = columns.map(|of| Arc::new(Field::new("", of.clone(), true)));
    columns.collect()
}

/// The Arrow type of moments.
pub(crate) const MOMENT: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);
