//! Values as texts, words of a list and bytes.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewBuilder, Float64Array, StringViewArray, StringViewBuilder,
};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use mayfly_types::spelling::{fitted_double, shown_bytes};
use mayfly_types::{ColumnType, ErrorCode};

use super::{Conversions, Purpose};
use crate::functions::convert;

impl Conversions<'_> {
    /// Bytes for a column of texts: those that are no character become question marks.
    fn text_of_bytes(&self, array: &ArrayRef) -> Result<StringViewArray> {
        let values = array.as_binary_view();
        let mut builder = StringViewBuilder::with_capacity(values.len());
        for (row, value) in values.iter().enumerate() {
            let Some(value) = value else {
                builder.append_null();
                continue;
            };
            let mut text = String::with_capacity(value.len());
            for chunk in value.utf8_chunks() {
                text.push_str(chunk.valid());
                text.extend(chunk.invalid().iter().map(|_| '?'));
            }
            if let Err(error) = std::str::from_utf8(value) {
                let wrong = shown_bytes(&value[error.valid_up_to()..]);
                self.wrong_for_field(row, "string", &wrong)?;
            }
            builder.append_value(text);
        }
        Ok(builder.finish())
    }

    pub(super) fn text(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let texts = match array.data_type() {
            DataType::BinaryView if !self.is_cast() => self.text_of_bytes(array)?,
            _ => convert::to_text(array, self.from)?,
        };
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
        let doubles = self.doubles_to_fit(array)?;
        let mut builder = StringViewBuilder::with_capacity(texts.len());
        for (row, text) in texts.iter().enumerate() {
            let Some(text) = text else {
                builder.append_null();
                continue;
            };
            if let Some(doubles) = &doubles
                && !fits(text)
            {
                builder.append_value(self.double_within(row, doubles.value(row), limit)?);
                continue;
            }
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
                    Purpose::Assign { .. } => self.note_cut(row),
                }
            }
            // What is cut may end with spaces that were not the last.
            builder.append_value(match strip {
                true => text[..end].trim_end_matches(' '),
                false => &text[..end],
            });
        }
        Ok(Arc::new(builder.finish()))
    }

    /// Floating-point numbers that a column of texts rounds to its length, where it cuts all else.
    fn doubles_to_fit(&self, array: &ArrayRef) -> Result<Option<Float64Array>> {
        let are_doubles = matches!(array.data_type(), DataType::Float32 | DataType::Float64);
        (are_doubles && !self.is_cast())
            .then(|| convert::to_double(array, self.session))
            .transpose()
    }

    fn double_within(&self, row: usize, value: f64, limit: usize) -> Result<String> {
        let (text, fits) = fitted_double(value, limit);
        if !fits {
            let code = match self.purpose {
                Purpose::Assign { strict: false, .. } => ErrorCode::DataTruncated,
                _ => ErrorCode::DataTooLong,
            };
            self.misfit(code, row, "", &text)?;
        }
        Ok(text)
    }

    /// ENUM and SET: the words of the list, or numbers that stand for them.
    pub(super) fn words(&self, array: &ArrayRef, words: &[String], many: bool) -> Result<ArrayRef> {
        let texts = convert::to_text(array, self.from)?;
        let is_number = self.from.is_numeric();
        let mut builder = StringViewBuilder::with_capacity(texts.len());
        for (row, text) in texts.iter().enumerate() {
            let Some(text) = text else {
                builder.append_null();
                continue;
            };
            let text = text.trim_end_matches(' ');
            let fits = match many {
                false => {
                    let word = word_of(text, words, is_number);
                    builder.append_value(word.unwrap_or_default());
                    word.is_some()
                }
                true => {
                    let (set, fits) = set_of(text, words, is_number);
                    builder.append_value(set);
                    fits
                }
            };
            if !fits {
                self.misfit(ErrorCode::DataTruncated, row, "enum", text)?;
            }
        }
        Ok(Arc::new(builder.finish()))
    }

    pub(super) fn bytes(&self, array: &ArrayRef) -> Result<ArrayRef> {
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
        let doubles = self.doubles_to_fit(array)?;
        let mut builder = BinaryViewBuilder::with_capacity(values.len());
        for (row, value) in values.iter().enumerate() {
            let Some(value) = value else {
                builder.append_null();
                continue;
            };
            if let Some(doubles) = &doubles
                && value.len() > limit
            {
                let mut kept = self
                    .double_within(row, doubles.value(row), limit)?
                    .into_bytes();
                if padded {
                    kept.resize(limit, 0);
                }
                builder.append_value(kept);
                continue;
            }
            if value.len() > limit {
                let what = format!("BINARY({limit})");
                let shown = String::from_utf8_lossy(value);
                let code = match self.purpose {
                    Purpose::Assign { strict: false, .. } => ErrorCode::DataTruncated,
                    _ => ErrorCode::DataTooLong,
                };
                self.misfit(code, row, &what, &shown)?;
            }
            let mut kept = value[..value.len().min(limit)].to_vec();
            if padded {
                kept.resize(limit, 0);
            }
            builder.append_value(kept);
        }
        Ok(Arc::new(builder.finish()))
    }
}

/// The word of an ENUM that a text or a number stands for. A text that is none may spell a number,
/// as in files.
fn word_of<'words>(text: &str, words: &'words [String], is_number: bool) -> Option<&'words str> {
    let known = words.iter().find(|word| !is_number && *word == text);
    let place = |number: u64| words.get(usize::try_from(number).ok()?.checked_sub(1)?);
    let word = known.or_else(|| whole_number(text, is_number).and_then(place));
    word.map(String::as_str)
}

/// The words of a SET that a text or the bits of a number stand for, in the order of the list; and
/// whether that is all that they say.
fn set_of(text: &str, words: &[String], is_number: bool) -> (String, bool) {
    let mut bits = 0_u64;
    let mut fits = true;
    if !is_number && !text.is_empty() {
        for part in text.split(',') {
            match words
                .iter()
                .zip(0..u64::BITS)
                .find(|(word, _)| *word == part)
            {
                Some((_, bit)) => bits |= 1 << bit,
                None => fits = false,
            }
        }
    }
    if is_number || bits == 0 && !fits {
        let unused = u64::BITS.saturating_sub(u32::try_from(words.len()).unwrap_or(u64::BITS));
        let all = u64::MAX.checked_shr(unused).unwrap_or(0);
        let number = whole_number(text, is_number);
        bits = number.unwrap_or(0) & all;
        fits = number == Some(bits);
    }
    let chosen = words.iter().zip(0..u64::BITS);
    let chosen = chosen.filter(|(_, bit)| bits >> bit & 1 == 1);
    let chosen: Vec<&str> = chosen.map(|(word, _)| word.as_str()).collect();
    (chosen.join(","), fits)
}

/// The whole number that a text spells; digits behind the point are cut off if it was a number.
/// What is negative has all the bits that it has in two's complement.
fn whole_number(text: &str, is_number: bool) -> Option<u64> {
    let digits = match is_number {
        true => text.split('.').next()?,
        false => text.trim(),
    };
    let negative = || digits.parse().ok().map(i64::cast_unsigned);
    digits
        .parse()
        .ok()
        .or_else(|| is_number.then(negative).flatten())
}
