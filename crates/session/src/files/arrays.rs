//! Columns of text files as Arrow arrays.
//!
//! A value becomes what its column's type is, or is an error: none is rounded, cut or left out.

use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanBuilder, Decimal128Builder, Decimal256Builder, PrimitiveBuilder,
    StringViewBuilder,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Field, Float64Type, Int64Type, TimeUnit,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt64Type, i256,
};
use datafusion::scalar::ScalarValue;
use mayfly_records::{Cells, Kind, TextType, Texts, value, write_json};
use mayfly_types::ColumnType;

/// The field of a column.
pub(super) fn field_of(name: &str, text_type: TextType) -> Field {
    let data_type = match text_type {
        TextType::Json => return ColumnType::Json.to_arrow(name, true),
        TextType::Text => DataType::Utf8View,
        TextType::Boolean => DataType::Boolean,
        TextType::Integer => DataType::Int64,
        TextType::Unsigned => DataType::UInt64,
        TextType::Double => DataType::Float64,
        TextType::Date => DataType::Date32,
        TextType::Decimal { precision, scale } => {
            let column_type = ColumnType::Decimal {
                precision,
                scale,
                unsigned: false,
            };
            column_type.data_type()
        }
        TextType::DateTime { digits } => DataType::Timestamp(
            match digits {
                0 => TimeUnit::Second,
                3 => TimeUnit::Millisecond,
                6 => TimeUnit::Microsecond,
                _ => TimeUnit::Nanosecond,
            },
            None,
        ),
    };
    Field::new(name, data_type, true)
}

/// The row of a value that is none of its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WrongValue {
    pub(super) row: usize,
}

/// The values of a column.
pub(super) fn array_of(
    cells: &Cells,
    column: usize,
    texts: Texts<'_>,
    text_type: TextType,
) -> Result<ArrayRef, WrongValue> {
    let values = cells.column(column).map(|cell| {
        let text = match cell.kind {
            Kind::Null => None,
            _ => Some(texts.get(cell)),
        };
        (text, cell.kind)
    });
    array_of_texts(values, cells.rows(), text_type)
}

/// One value; `None` for a text that is none of its type.
pub(super) fn scalar_of(text: Option<&str>, text_type: TextType) -> Option<ScalarValue> {
    let kind = match text {
        Some(_) => Kind::Plain,
        None => Kind::Null,
    };
    let array = array_of_texts(std::iter::once((text, kind)), 1, text_type).ok()?;
    ScalarValue::try_from_array(&array, 0).ok()
}

fn array_of_texts<'a>(
    values: impl Iterator<Item = (Option<&'a str>, Kind)>,
    rows: usize,
    text_type: TextType,
) -> Result<ArrayRef, WrongValue> {
    let source = Source { values };
    match text_type {
        TextType::Text => {
            let mut builder = StringViewBuilder::with_capacity(rows);
            source.each(|text, _| {
                builder.append_option(text);
                Some(())
            })?;
            Ok(Arc::new(builder.finish()))
        }
        TextType::Json => {
            let mut builder = StringViewBuilder::with_capacity(rows);
            let mut document = String::new();
            source.each(|text, kind| {
                document.clear();
                if let Some(text) = text {
                    match kind {
                        Kind::Nested => write_json(text, &mut document),
                        // A guess from objects and arrays alone.
                        _ => return None,
                    }
                }
                builder.append_option(text.map(|_| document.as_str()));
                Some(())
            })?;
            Ok(Arc::new(builder.finish()))
        }
        TextType::Boolean => {
            let mut builder = BooleanBuilder::with_capacity(rows);
            source.parsed(value::boolean, |value| builder.append_option(value))?;
            Ok(Arc::new(builder.finish()))
        }
        TextType::Integer => source.primitive::<Int64Type>(rows, value::integer),
        TextType::Unsigned => source.primitive::<UInt64Type>(rows, value::unsigned),
        TextType::Double => source.primitive::<Float64Type>(rows, value::double),
        TextType::Date => source.primitive::<Date32Type>(rows, value::date),
        TextType::Decimal { precision, scale } => source.decimals(rows, precision, scale),
        TextType::DateTime { digits } => {
            let parse = |text: &str| value::moment(text)?.in_unit(digits);
            match digits {
                0 => source.primitive::<TimestampSecondType>(rows, parse),
                3 => source.primitive::<TimestampMillisecondType>(rows, parse),
                6 => source.primitive::<TimestampMicrosecondType>(rows, parse),
                _ => source.primitive::<TimestampNanosecondType>(rows, parse),
            }
        }
    }
}

/// The texts of a column.
struct Source<I> {
    values: I,
}

impl<'a, I: Iterator<Item = (Option<&'a str>, Kind)>> Source<I> {
    /// Hands on each text, `None` for NULL; one that is not taken is wrong.
    #[inline]
    fn each(
        self,
        mut take: impl FnMut(Option<&'a str>, Kind) -> Option<()>,
    ) -> Result<(), WrongValue> {
        for (row, (text, kind)) in self.values.enumerate() {
            take(text, kind).ok_or(WrongValue { row })?;
        }
        Ok(())
    }

    #[inline]
    fn parsed<T>(
        self,
        parse: impl Fn(&str) -> Option<T>,
        mut take: impl FnMut(Option<T>),
    ) -> Result<(), WrongValue> {
        self.each(|text, _| {
            match text {
                None => take(None),
                Some(text) => take(Some(parse(text)?)),
            }
            Some(())
        })
    }

    fn primitive<T: ArrowPrimitiveType>(
        self,
        rows: usize,
        parse: impl Fn(&str) -> Option<T::Native>,
    ) -> Result<ArrayRef, WrongValue> {
        let mut builder = PrimitiveBuilder::<T>::with_capacity(rows);
        self.parsed(parse, |value| builder.append_option(value))?;
        Ok(Arc::new(builder.finish()))
    }

    fn decimals(self, rows: usize, precision: u8, scale: u8) -> Result<ArrayRef, WrongValue> {
        let digits = |text: &str| value::decimal_digits(text, precision, scale);
        let field = field_of("", TextType::Decimal { precision, scale });
        match field.data_type() {
            DataType::Decimal128(_, _) => {
                let builder = Decimal128Builder::with_capacity(rows);
                let mut builder = builder.with_data_type(field.data_type().clone());
                let parse = |text: &str| digits(text)?.parse::<i128>().ok();
                self.parsed(parse, |value| builder.append_option(value))?;
                Ok(Arc::new(builder.finish()))
            }
            _ => {
                let builder = Decimal256Builder::with_capacity(rows);
                let mut builder = builder.with_data_type(field.data_type().clone());
                let parse = |text: &str| i256::from_str(&digits(text)?).ok();
                self.parsed(parse, |value| builder.append_option(value))?;
                Ok(Arc::new(builder.finish()))
            }
        }
    }
}
