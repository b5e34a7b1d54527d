//! Numbers from texts: lengths, positions, codes, comparisons.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::error::Result;

use super::characters::{characters, count, head};
use crate::functions::call::Call;
use crate::functions::define::{Definition, MANY, Returns, pure};

pub(super) static FUNCTIONS: &[Definition] = &[
    pure(
        "length",
        &["octet_length"],
        (1, 1),
        Returns::Integer,
        length,
    ),
    pure("bit_length", &[], (1, 1), Returns::Integer, bit_length),
    pure(
        "char_length",
        &["character_length"],
        (1, 1),
        Returns::Integer,
        char_length,
    ),
    pure("instr", &[], (2, 2), Returns::Integer, |call| {
        find(call, 1, 0)
    }),
    pure("locate", &[], (2, 3), Returns::Integer, |call| {
        find(call, 0, 1)
    }),
    pure("field", &[], (2, MANY), Returns::Integer, field),
    pure("find_in_set", &[], (2, 2), Returns::Integer, find_in_set),
    pure("ascii", &[], (1, 1), Returns::Integer, ascii),
    pure("ord", &[], (1, 1), Returns::Integer, ord),
    pure("strcmp", &[], (2, 2), Returns::Integer, strcmp),
];

fn length(call: &Call<'_>) -> Result<ArrayRef> {
    let bytes = call.bytes(0)?;
    call.make_integers(|row| Ok(bytes.at(row).map(|bytes| count(bytes.len()))))
}

fn bit_length(call: &Call<'_>) -> Result<ArrayRef> {
    let bytes = call.bytes(0)?;
    call.make_integers(|row| Ok(bytes.at(row).map(|bytes| count(bytes.len()) * 8)))
}

/// Characters of a text, bytes of a binary value.
fn char_length(call: &Call<'_>) -> Result<ArrayRef> {
    if call.column_type(0).is_binary_string() {
        return length(call);
    }
    let texts = call.texts(0)?;
    call.make_integers(|row| Ok(texts.at(row).map(|text| count(text.chars().count()))))
}

/// The position of a text in another, zero if it is not there.
fn find(call: &Call<'_>, needle: usize, haystack: usize) -> Result<ArrayRef> {
    let (needles, texts) = (call.texts(needle)?, call.texts(haystack)?);
    let starts = if call.count() > 2 {
        Some(call.integers(2)?)
    } else {
        None
    };
    call.make_integers(|row| {
        let (Some(needle), Some(text)) = (needles.at(row), texts.at(row)) else {
            return Ok(None);
        };
        let start = match &starts {
            None => 1,
            Some(starts) => match starts.at(row) {
                None => return Ok(None),
                Some(start) => start,
            },
        };
        if start < 1 {
            return Ok(Some(0));
        }
        let before = characters(start - 1);
        let skipped = head(text, before);
        if before > text.len() || skipped.len() == text.len() && skipped.chars().count() < before {
            return Ok(Some(0));
        }
        let rest = &text[skipped.len()..];
        Ok(Some(
            rest.find(needle)
                .map_or(0, |at| start + count(rest[..at].chars().count())),
        ))
    })
}

/// The index of the first argument among the others: as texts if all are, else as numbers.
fn field(call: &Call<'_>) -> Result<ArrayRef> {
    let is_text = |index: usize| {
        matches!(
            call.data_type(index),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null
        )
    };
    if (0..call.count()).all(is_text) {
        let texts = (0..call.count())
            .map(|i| call.texts(i))
            .collect::<Result<Vec<_>>>()?;
        return call.make_integers(|row| {
            let Some(text) = texts[0].at(row) else {
                return Ok(Some(0));
            };
            let found = texts[1..]
                .iter()
                .position(|other| other.at(row) == Some(text));
            Ok(Some(found.map_or(0, |at| count(at + 1))))
        });
    }
    let numbers = (0..call.count())
        .map(|i| call.doubles(i))
        .collect::<Result<Vec<_>>>()?;
    call.make_integers(|row| {
        let Some(number) = numbers[0].at(row) else {
            return Ok(Some(0));
        };
        let found = numbers[1..]
            .iter()
            .position(|other| other.at(row) == Some(number));
        Ok(Some(found.map_or(0, |at| count(at + 1))))
    })
}

fn find_in_set(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, sets) = (call.texts(0)?, call.texts(1)?);
    call.make_integers(|row| {
        let (Some(text), Some(set)) = (texts.at(row), sets.at(row)) else {
            return Ok(None);
        };
        if set.is_empty() || text.contains(',') {
            return Ok(Some(0));
        }
        Ok(Some(
            set.split(',')
                .position(|word| word == text)
                .map_or(0, |at| count(at + 1)),
        ))
    })
}

fn ascii(call: &Call<'_>) -> Result<ArrayRef> {
    let bytes = call.bytes(0)?;
    call.make_integers(|row| {
        Ok(bytes
            .at(row)
            .map(|bytes| bytes.first().copied().map_or(0, i64::from)))
    })
}

/// The bytes of the first character, read as one number.
fn ord(call: &Call<'_>) -> Result<ArrayRef> {
    if call.column_type(0).is_binary_string() {
        return ascii(call);
    }
    let texts = call.texts(0)?;
    call.make_integers(|row| {
        Ok(texts.at(row).map(|text| {
            head(text, 1)
                .bytes()
                .fold(0, |value, byte| value << 8 | i64::from(byte))
        }))
    })
}

fn strcmp(call: &Call<'_>) -> Result<ArrayRef> {
    let (left, right) = (call.texts(0)?, call.texts(1)?);
    call.make_integers(|row| {
        let (Some(left), Some(right)) = (left.at(row), right.at(row)) else {
            return Ok(None);
        };
        Ok(Some(i64::from(left.cmp(right) as i8)))
    })
}
