//! Parts of texts: results that are borrowed from an argument.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use datafusion::error::Result;

use super::characters::{characters, head, tail};
use crate::functions::call::{Call, Texts};
use crate::functions::define::{Definition, MANY, Returns, pure};
use crate::functions::own::{TRIM_LEADING, TRIM_TRAILING};

pub(super) static FUNCTIONS: &[Definition] = &[
    pure("left", &[], (2, 2), Returns::Text, left),
    pure("right", &[], (2, 2), Returns::Text, right),
    pure(
        "substring",
        &["substr", "mid"],
        (2, 3),
        Returns::Text,
        substring,
    ),
    pure(
        "substring_index",
        &[],
        (3, 3),
        Returns::Text,
        substring_index,
    ),
    pure("trim", &[], (1, 2), Returns::Text, |call| {
        trim(call, true, true)
    }),
    pure("ltrim", &[], (1, 2), Returns::Text, |call| {
        trim(call, true, false)
    }),
    pure("rtrim", &[], (1, 2), Returns::Text, |call| {
        trim(call, false, true)
    }),
    pure(TRIM_LEADING, &[], (2, 2), Returns::Text, |call| {
        trim(call, true, false)
    }),
    pure(TRIM_TRAILING, &[], (2, 2), Returns::Text, |call| {
        trim(call, false, true)
    }),
    pure("elt", &[], (2, MANY), Returns::Text, elt),
];

fn left(call: &Call<'_>) -> Result<ArrayRef> {
    let lengths = call.integers(1)?;
    if let Some(length) = lengths.constant() {
        let Some(length) = length else {
            return Ok(call.make_nulls());
        };
        if !call.is_constant(0)
            && let Some(result) = left_of_integers(call.array(0), characters(length))
        {
            return Ok(result);
        }
        let texts = call.texts(0)?;
        return call.make_parts(|row| Some(head(texts.at(row)?, characters(length))));
    }
    let texts = call.texts(0)?;
    call.make_parts(|row| Some(head(texts.at(row)?, characters(lengths.at(row)?))))
}

/// LEFT of whole numbers without making their texts first.
fn left_of_integers(array: &ArrayRef, length: usize) -> Option<ArrayRef> {
    fn of<T: ArrowPrimitiveType>(array: &ArrayRef, length: usize) -> ArrayRef
    where
        T::Native: itoa::Integer,
    {
        let mut builder = StringViewBuilder::with_capacity(array.len());
        let mut buffer = itoa::Buffer::new();
        let values = array.as_primitive::<T>();
        if values.null_count() == 0 {
            for value in values.values() {
                let digits = buffer.format(*value);
                builder.append_value(&digits[..length.min(digits.len())]);
            }
        } else {
            for value in values {
                match value {
                    Some(value) => {
                        let digits = buffer.format(value);
                        builder.append_value(&digits[..length.min(digits.len())]);
                    }
                    None => builder.append_null(),
                }
            }
        }
        Arc::new(builder.finish())
    }
    Some(match array.data_type() {
        DataType::Int8 => of::<Int8Type>(array, length),
        DataType::Int16 => of::<Int16Type>(array, length),
        DataType::Int32 => of::<Int32Type>(array, length),
        DataType::Int64 => of::<Int64Type>(array, length),
        DataType::UInt8 => of::<UInt8Type>(array, length),
        DataType::UInt16 => of::<UInt16Type>(array, length),
        DataType::UInt32 => of::<UInt32Type>(array, length),
        DataType::UInt64 => of::<UInt64Type>(array, length),
        _ => return None,
    })
}

fn right(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, lengths) = (call.texts(0)?, call.integers(1)?);
    call.make_parts(|row| Some(tail(texts.at(row)?, characters(lengths.at(row)?))))
}

/// The part of a text from a position (from its end if negative) of a length.
fn part(text: &str, position: i64, length: i64) -> &str {
    if position == 0 || length <= 0 {
        return "";
    }
    let rest = if position > 0 {
        &text[head(text, characters(position - 1)).len()..]
    } else {
        let from_end = usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX);
        if from_end > text.len() || from_end > text.chars().count() {
            return "";
        }
        tail(text, from_end)
    };
    head(rest, characters(length))
}

fn substring(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, positions) = (call.texts(0)?, call.integers(1)?);
    if call.count() == 2 {
        return call.make_parts(|row| Some(part(texts.at(row)?, positions.at(row)?, i64::MAX)));
    }
    let lengths = call.integers(2)?;
    call.make_parts(|row| Some(part(texts.at(row)?, positions.at(row)?, lengths.at(row)?)))
}

fn substring_index(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, delimiters, counts) = (call.texts(0)?, call.texts(1)?, call.integers(2)?);
    call.make_parts(|row| {
        let (text, delimiter) = (texts.at(row)?, delimiters.at(row)?);
        let count = counts.at(row)?;
        if delimiter.is_empty() || count == 0 {
            return Some("");
        }
        let skip = usize::try_from(count.unsigned_abs() - 1).unwrap_or(usize::MAX);
        Some(if count > 0 {
            text.match_indices(delimiter)
                .nth(skip)
                .map_or(text, |(at, _)| &text[..at])
        } else {
            text.rmatch_indices(delimiter)
                .nth(skip)
                .map_or(text, |(at, _)| &text[at + delimiter.len()..])
        })
    })
}

/// Removes whole repetitions of a text (spaces without one) from the ends.
fn trim(call: &Call<'_>, leading: bool, trailing: bool) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    let removed: Option<Texts> = if call.count() > 1 {
        Some(call.texts(1)?)
    } else {
        None
    };
    call.make_parts(|row| {
        let mut text = texts.at(row)?;
        let remove = match &removed {
            Some(removed) => removed.at(row)?,
            None => " ",
        };
        if remove.is_empty() {
            return Some(text);
        }
        while leading && let Some(rest) = text.strip_prefix(remove) {
            text = rest;
        }
        while trailing && let Some(rest) = text.strip_suffix(remove) {
            text = rest;
        }
        Some(text)
    })
}

fn elt(call: &Call<'_>) -> Result<ArrayRef> {
    let indexes = call.integers(0)?;
    let texts = (1..call.count())
        .map(|index| call.texts(index))
        .collect::<Result<Vec<_>>>()?;
    call.make_parts(|row| {
        let index = usize::try_from(indexes.at(row)?).ok()?.checked_sub(1)?;
        texts.get(index)?.at(row)
    })
}
