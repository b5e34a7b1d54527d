//! Texts made of texts.

use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewArray};
use datafusion::error::Result;

use super::characters::{characters, head};
use crate::functions::call::Call;
use crate::functions::define::{Definition, MANY, Returns, pure};
use crate::functions::results::{SHORT_BYTES, Value};

pub(super) static FUNCTIONS: &[Definition] = &[
    pure("concat", &[], (1, MANY), Returns::Text, concat),
    pure("concat_ws", &[], (2, MANY), Returns::Text, concat_ws),
    pure("repeat", &[], (2, 2), Returns::Text, repeat),
    pure("space", &[], (1, 1), Returns::Text, space),
    pure("lpad", &[], (3, 3), Returns::Text, |call| pad(call, true)),
    pure("rpad", &[], (3, 3), Returns::Text, |call| pad(call, false)),
    pure("upper", &["ucase"], (1, 1), Returns::Text, upper),
    pure("lower", &["lcase"], (1, 1), Returns::Text, lower),
    pure("replace", &[], (3, 3), Returns::Text, replace),
    pure("reverse", &[], (1, 1), Returns::Text, reverse),
    pure("insert", &[], (4, 4), Returns::Text, insert),
    pure("make_set", &[], (2, MANY), Returns::Text, make_set),
    pure("export_set", &[], (3, 5), Returns::Text, export_set),
];

fn concat(call: &Call<'_>) -> Result<ArrayRef> {
    let parts = (0..call.count())
        .map(|index| call.texts(index))
        .collect::<Result<Vec<_>>>()?;
    call.make_texts(|row, out| {
        let mut is_long = false;
        for part in &parts {
            let Some(text) = part.at(row) else {
                return Ok(false);
            };
            if !is_long && out.len() + text.len() > SHORT_BYTES {
                is_long = true;
                // Those behind a NULL are not looked at.
                let texts = parts.iter().map_while(|part| part.at(row));
                if !out.expect(texts.map(str::len).sum())? {
                    return Ok(false);
                }
            }
            out.push_str(text);
        }
        Ok(true)
    })
}

/// Appends texts with a separator between them; `false` where that is too long.
fn join<'t, I: Iterator<Item = &'t str>>(
    out: &mut Value<'_, String>,
    separator: &str,
    texts: impl Fn() -> I,
) -> Result<bool> {
    let mut is_long = false;
    for (index, text) in texts().enumerate() {
        if !is_long && out.len() + separator.len() + text.len() > SHORT_BYTES {
            is_long = true;
            let bytes: usize = texts().map(|text| text.len() + separator.len()).sum();
            if !out.expect(bytes - separator.len())? {
                return Ok(false);
            }
        }
        if index > 0 {
            out.push_str(separator);
        }
        out.push_str(text);
    }
    Ok(true)
}

/// NULL only if the separator is; other NULLs are left out.
fn concat_ws(call: &Call<'_>) -> Result<ArrayRef> {
    let parts = (0..call.count())
        .map(|index| call.texts(index))
        .collect::<Result<Vec<_>>>()?;
    call.make_texts(|row, out| {
        let Some(separator) = parts[0].at(row) else {
            return Ok(false);
        };
        join(out, separator, || {
            parts[1..].iter().filter_map(|part| part.at(row))
        })
    })
}

fn repeat(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, counts) = (call.texts(0)?, call.integers(1)?);
    call.make_texts(|row, out| {
        let (Some(text), Some(count)) = (texts.at(row), counts.at(row)) else {
            return Ok(false);
        };
        let count = characters(count);
        if !out.expect(text.len().saturating_mul(count))? {
            return Ok(false);
        }
        for _ in 0..if text.is_empty() { 0 } else { count } {
            out.push_str(text);
        }
        Ok(true)
    })
}

fn space(call: &Call<'_>) -> Result<ArrayRef> {
    let counts = call.integers(0)?;
    call.make_texts(|row, out| {
        let Some(count) = counts.at(row) else {
            return Ok(false);
        };
        let count = characters(count);
        if !out.expect(count)? {
            return Ok(false);
        }
        out.extend(std::iter::repeat_n(' ', count));
        Ok(true)
    })
}

/// NULL if the length is negative or there is nothing to pad with.
fn pad(call: &Call<'_>, at_left: bool) -> Result<ArrayRef> {
    let (texts, lengths, fillers) = (call.texts(0)?, call.integers(1)?, call.texts(2)?);
    let bytes_per_character = if call.is_of_octets { 1 } else { 4 };
    call.make_texts(|row, out| {
        let (Some(text), Some(length), Some(filler)) =
            (texts.at(row), lengths.at(row), fillers.at(row))
        else {
            return Ok(false);
        };
        if length < 0 {
            return Ok(false);
        }
        let length = characters(length);
        let have = text.chars().count();
        if have >= length {
            out.push_str(head(text, length));
            return Ok(true);
        }
        if filler.is_empty() {
            // MySQL 8 gives an empty text.
            return Ok(true);
        }
        // MySQL counts the most bytes that so many characters may take.
        if !out.fits(length.saturating_mul(bytes_per_character))? {
            return Ok(false);
        }
        let filler_length = filler.chars().count();
        let whole = (length - have) / filler_length;
        let rest = head(filler, (length - have) % filler_length);
        if !out.expect(text.len() + filler.len() * whole + rest.len())? {
            return Ok(false);
        }
        if !at_left {
            out.push_str(text);
        }
        for _ in 0..whole {
            out.push_str(filler);
        }
        out.push_str(rest);
        if at_left {
            out.push_str(text);
        }
        Ok(true)
    })
}

fn upper(call: &Call<'_>) -> Result<ArrayRef> {
    letters(call, str::make_ascii_uppercase, |c| {
        let mut upper = c.to_uppercase();
        // MySQL maps one character to one.
        if upper.len() == 1 {
            upper.next().unwrap_or(c)
        } else {
            c
        }
    })
}

fn lower(call: &Call<'_>) -> Result<ArrayRef> {
    letters(call, str::make_ascii_lowercase, |c| {
        let mut lower = c.to_lowercase();
        if lower.len() == 1 {
            lower.next().unwrap_or(c)
        } else {
            c
        }
    })
}

fn letters(call: &Call<'_>, ascii: fn(&mut str), other: fn(char) -> char) -> Result<ArrayRef> {
    if call.column_type(0).is_binary_string() {
        // Bytes have no letters.
        let bytes = call.bytes(0)?;
        let values: BinaryViewArray = (0..call.rows).map(|row| bytes.at(row)).collect();
        return Ok(Arc::new(values));
    }
    let texts = call.texts(0)?;
    call.make_texts(|row, out| {
        let Some(text) = texts.at(row) else {
            return Ok(false);
        };
        if text.is_ascii() {
            out.push_str(text);
            ascii(out);
        } else {
            out.extend(text.chars().map(other));
        }
        Ok(true)
    })
}

fn replace(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, from, to) = (call.texts(0)?, call.texts(1)?, call.texts(2)?);
    call.make_texts(|row, out| {
        let (Some(text), Some(from), Some(to)) = (texts.at(row), from.at(row), to.at(row)) else {
            return Ok(false);
        };
        if from.is_empty() {
            out.push_str(text);
            return Ok(true);
        }
        let growth = to.len().saturating_sub(from.len());
        let grown = |times| text.len().saturating_add(growth.saturating_mul(times));
        // Counting costs what replacing does: only where the result may be long.
        let is_short = grown(text.len() / from.len()) <= SHORT_BYTES;
        if !is_short && !out.expect(grown(text.matches(from).count()))? {
            return Ok(false);
        }
        let mut last = 0;
        for (at, _) in text.match_indices(from) {
            out.push_str(&text[last..at]);
            out.push_str(to);
            last = at + from.len();
        }
        out.push_str(&text[last..]);
        Ok(true)
    })
}

fn reverse(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    call.make_texts(|row, out| {
        let Some(text) = texts.at(row) else {
            return Ok(false);
        };
        out.extend(text.chars().rev());
        Ok(true)
    })
}

fn insert(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, positions) = (call.texts(0)?, call.integers(1)?);
    let (lengths, inserted) = (call.integers(2)?, call.texts(3)?);
    call.make_texts(|row, out| {
        let (Some(text), Some(position), Some(length), Some(inserted)) = (
            texts.at(row),
            positions.at(row),
            lengths.at(row),
            inserted.at(row),
        ) else {
            return Ok(false);
        };
        if position < 1 || characters(position - 1) >= text.chars().count() {
            out.push_str(text);
            return Ok(true);
        }
        let before = head(text, characters(position - 1));
        let rest = &text[before.len()..];
        let length = if length < 0 {
            usize::MAX
        } else {
            characters(length)
        };
        let after = &rest[head(rest, length).len()..];
        if !out.expect(before.len() + inserted.len() + after.len())? {
            return Ok(false);
        }
        out.push_str(before);
        out.push_str(inserted);
        out.push_str(after);
        Ok(true)
    })
}

fn make_set(call: &Call<'_>) -> Result<ArrayRef> {
    let bits = call.bits(0)?;
    let texts = (1..call.count())
        .map(|index| call.texts(index))
        .collect::<Result<Vec<_>>>()?;
    call.make_texts(|row, out| {
        let Some(bits) = bits.at(row) else {
            return Ok(false);
        };
        join(out, ",", || {
            let places = texts.iter().enumerate().take(64);
            let chosen = places.filter(|(index, _)| bits >> index & 1 == 1);
            chosen.filter_map(|(_, text)| text.at(row))
        })
    })
}

/// A text for each bit, the lowest first.
fn export_set(call: &Call<'_>) -> Result<ArrayRef> {
    let (bits, on, off) = (call.bits(0)?, call.texts(1)?, call.texts(2)?);
    let separators = if call.count() > 3 {
        Some(call.texts(3)?)
    } else {
        None
    };
    let counts = if call.count() > 4 {
        Some(call.integers(4)?)
    } else {
        None
    };
    call.make_texts(|row, out| {
        let (Some(bits), Some(on), Some(off)) = (bits.at(row), on.at(row), off.at(row)) else {
            return Ok(false);
        };
        let separator = separators.as_ref().map_or(Some(","), |texts| texts.at(row));
        let count = counts.as_ref().map_or(Some(64), |counts| counts.at(row));
        let (Some(separator), Some(count)) = (separator, count) else {
            return Ok(false);
        };
        let count = if (0..=64).contains(&count) { count } else { 64 };
        // MySQL counts as if each bit took the longer text.
        let bytes = characters(count) * (on.len().max(off.len()) + separator.len());
        if !out.expect(bytes.saturating_sub(separator.len()))? {
            return Ok(false);
        }
        for bit in 0..count {
            if bit > 0 {
                out.push_str(separator);
            }
            out.push_str(if bits >> bit & 1 == 1 { on } else { off });
        }
        Ok(true)
    })
}
