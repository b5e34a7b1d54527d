//! Values as texts, words of a list and bytes.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryViewBuilder, StringViewBuilder};
use datafusion::error::Result;
use mayfly_types::{ColumnType, ErrorCode};

use super::{Conversions, Purpose};
use crate::functions::convert;

impl Conversions<'_> {
    pub(super) fn text(&self, array: &ArrayRef) -> Result<ArrayRef> {
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
    pub(super) fn words(&self, array: &ArrayRef, words: &[String], many: bool) -> Result<ArrayRef> {
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
}
