//! Functions over texts. Positions and lengths count characters, from one; NULL in, NULL out,
//! unless a function says otherwise.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use datafusion::error::Result;
use mayfly_types::ErrorCode;

use super::define::{Call, Definition, MANY, Returns, Texts, pure};

pub(super) static FUNCTIONS: &[Definition] = &[
    pure("concat", &[], (1, MANY), Returns::Text, concat),
    pure("concat_ws", &[], (2, MANY), Returns::Text, concat_ws),
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
    pure("repeat", &[], (2, 2), Returns::Text, repeat),
    pure("space", &[], (1, 1), Returns::Text, space),
    pure("lpad", &[], (3, 3), Returns::Text, |call| pad(call, true)),
    pure("rpad", &[], (3, 3), Returns::Text, |call| pad(call, false)),
    pure("upper", &["ucase"], (1, 1), Returns::Text, upper),
    pure("lower", &["lcase"], (1, 1), Returns::Text, lower),
    pure("trim", &["btrim"], (1, 2), Returns::Text, |call| {
        trim(call, true, true)
    }),
    pure("ltrim", &[], (1, 2), Returns::Text, |call| {
        trim(call, true, false)
    }),
    pure("rtrim", &[], (1, 2), Returns::Text, |call| {
        trim(call, false, true)
    }),
    pure("trim_leading", &[], (2, 2), Returns::Text, |call| {
        trim(call, true, false)
    }),
    pure("trim_trailing", &[], (2, 2), Returns::Text, |call| {
        trim(call, false, true)
    }),
    pure("replace", &[], (3, 3), Returns::Text, replace),
    pure("reverse", &[], (1, 1), Returns::Text, reverse),
    pure("instr", &[], (2, 2), Returns::Integer, |call| {
        find(call, 1, 0)
    }),
    pure("locate", &["position"], (2, 3), Returns::Integer, |call| {
        find(call, 0, 1)
    }),
    pure("insert", &[], (4, 4), Returns::Text, insert),
    pure("field", &[], (2, MANY), Returns::Integer, field),
    pure("elt", &[], (2, MANY), Returns::Text, elt),
    pure("find_in_set", &[], (2, 2), Returns::Integer, find_in_set),
    pure("make_set", &[], (2, MANY), Returns::Text, make_set),
    pure("export_set", &[], (3, 5), Returns::Text, export_set),
    pure("ascii", &[], (1, 1), Returns::Integer, ascii),
    pure("ord", &[], (1, 1), Returns::Integer, ord),
    pure("strcmp", &[], (2, 2), Returns::Integer, strcmp),
    pure("quote", &[], (1, 1), Returns::Text, quote),
    pure("soundex", &[], (1, 1), Returns::Text, soundex),
    pure("format", &[], (2, 3), Returns::Text, format),
    pure("like", &[], (2, 3), Returns::Boolean, like),
];

fn concat(call: &Call<'_>) -> Result<ArrayRef> {
    let parts = (0..call.count())
        .map(|index| call.texts(index))
        .collect::<Result<Vec<_>>>()?;
    call.make_texts(|row, out| {
        for part in &parts {
            let Some(text) = part.at(row) else {
                return Ok(false);
            };
            out.push_str(text);
        }
        Ok(true)
    })
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
        for (index, text) in parts[1..]
            .iter()
            .filter_map(|part| part.at(row))
            .enumerate()
        {
            if index > 0 {
                out.push_str(separator);
            }
            out.push_str(text);
        }
        Ok(true)
    })
}

fn count(value: usize) -> i64 {
    i64::try_from(value).expect("a text has fewer than 2^63 bytes")
}

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
    if call.column_type(0).is_binary() {
        return length(call);
    }
    let texts = call.texts(0)?;
    call.make_integers(|row| Ok(texts.at(row).map(|text| count(text.chars().count()))))
}

/// The first characters of a text.
fn head(text: &str, characters: usize) -> &str {
    if characters >= text.len() {
        return text;
    }
    let bytes = text.as_bytes();
    if bytes[..characters].is_ascii() {
        return text.get(..characters).unwrap_or(text);
    }
    text.char_indices()
        .nth(characters)
        .map_or(text, |(at, _)| &text[..at])
}

/// The last characters of a text.
fn tail(text: &str, characters: usize) -> &str {
    if characters >= text.len() {
        return text;
    }
    let start = match characters {
        0 => text.len(),
        _ => text
            .char_indices()
            .nth_back(characters - 1)
            .map_or(0, |(at, _)| at),
    };
    &text[start..]
}

/// A count of characters: nothing below zero.
fn characters(value: i64) -> usize {
    usize::try_from(value.max(0)).unwrap_or(usize::MAX)
}

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
        return Ok(call.make_parts(|row| Some(head(texts.at(row)?, characters(length)))));
    }
    let texts = call.texts(0)?;
    Ok(call.make_parts(|row| Some(head(texts.at(row)?, characters(lengths.at(row)?)))))
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
    Ok(call.make_parts(|row| Some(tail(texts.at(row)?, characters(lengths.at(row)?)))))
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
        return Ok(call.make_parts(|row| Some(part(texts.at(row)?, positions.at(row)?, i64::MAX))));
    }
    let lengths = call.integers(2)?;
    Ok(call.make_parts(|row| Some(part(texts.at(row)?, positions.at(row)?, lengths.at(row)?))))
}

fn substring_index(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, delimiters, counts) = (call.texts(0)?, call.texts(1)?, call.integers(2)?);
    Ok(call.make_parts(|row| {
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
    }))
}

/// Whether a result of that many bytes is allowed; otherwise warns, and the result is NULL.
fn fits(call: &Call<'_>, function: &str, bytes: usize) -> bool {
    let limit = call
        .session
        .map_or(64 << 20, |session| session.lock().max_packet_bytes);
    let fits = u64::try_from(bytes).is_ok_and(|bytes| bytes <= limit);
    if !fits {
        call.warn(ErrorCode::ResultTooLarge, &[&function, &limit]);
    }
    fits
}

/// Results below this need no look at the session's limit.
const ALWAYS_FITS_BYTES: usize = 1024;

fn repeat(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, counts) = (call.texts(0)?, call.integers(1)?);
    call.make_texts(|row, out| {
        let (Some(text), Some(count)) = (texts.at(row), counts.at(row)) else {
            return Ok(false);
        };
        let count = characters(count);
        let bytes = text.len().saturating_mul(count);
        if bytes > ALWAYS_FITS_BYTES && !fits(call, "repeat", bytes) {
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
        if !fits(call, "space", count) {
            return Ok(false);
        }
        out.extend(std::iter::repeat_n(' ', count));
        Ok(true)
    })
}

/// NULL if the length is negative or there is nothing to pad with.
fn pad(call: &Call<'_>, at_left: bool) -> Result<ArrayRef> {
    let (texts, lengths, fillers) = (call.texts(0)?, call.integers(1)?, call.texts(2)?);
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
        if !fits(call, if at_left { "lpad" } else { "rpad" }, length) {
            return Ok(false);
        }
        let padding = filler.chars().cycle().take(length - have);
        if at_left {
            out.extend(padding);
            out.push_str(text);
        } else {
            out.push_str(text);
            out.extend(padding);
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

/// Removes whole repetitions of a text (spaces without one) from the ends.
fn trim(call: &Call<'_>, leading: bool, trailing: bool) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    let removed: Option<Texts> = if call.count() > 1 {
        Some(call.texts(1)?)
    } else {
        None
    };
    Ok(call.make_parts(|row| {
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
    }))
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
        out.push_str(before);
        out.push_str(inserted);
        out.push_str(&rest[head(rest, length).len()..]);
        Ok(true)
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

fn elt(call: &Call<'_>) -> Result<ArrayRef> {
    let indexes = call.integers(0)?;
    let texts = (1..call.count())
        .map(|index| call.texts(index))
        .collect::<Result<Vec<_>>>()?;
    Ok(call.make_parts(|row| {
        let index = usize::try_from(indexes.at(row)?).ok()?.checked_sub(1)?;
        texts.get(index)?.at(row)
    }))
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

fn make_set(call: &Call<'_>) -> Result<ArrayRef> {
    let bits = call.integers(0)?;
    let texts = (1..call.count())
        .map(|index| call.texts(index))
        .collect::<Result<Vec<_>>>()?;
    call.make_texts(|row, out| {
        let Some(bits) = bits.at(row) else {
            return Ok(false);
        };
        for (index, text) in texts.iter().enumerate().take(64) {
            if bits >> index & 1 == 1
                && let Some(text) = text.at(row)
            {
                if !out.is_empty() {
                    out.push(',');
                }
                out.push_str(text);
            }
        }
        Ok(true)
    })
}

/// A text for each bit, the lowest first.
fn export_set(call: &Call<'_>) -> Result<ArrayRef> {
    let (bits, on, off) = (call.integers(0)?, call.texts(1)?, call.texts(2)?);
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
        for bit in 0..count {
            if bit > 0 {
                out.push_str(separator);
            }
            out.push_str(if bits >> bit & 1 == 1 { on } else { off });
        }
        Ok(true)
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

/// `'it\'s'`, and the word NULL for NULL.
fn quote(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    call.make_texts(|row, out| {
        let Some(text) = texts.at(row) else {
            out.push_str("NULL");
            return Ok(true);
        };
        out.push('\'');
        for character in text.chars() {
            match character {
                '\'' | '\\' => out.extend(['\\', character]),
                '\0' => out.push_str("\\0"),
                '\x1a' => out.push_str("\\Z"),
                other => out.push(other),
            }
        }
        out.push('\'');
        Ok(true)
    })
}

/// The code of a letter; `None` for vowels and what is not heard.
fn sound(letter: char) -> Option<char> {
    match letter.to_ascii_uppercase() {
        'B' | 'F' | 'P' | 'V' => Some('1'),
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => Some('2'),
        'D' | 'T' => Some('3'),
        'L' => Some('4'),
        'M' | 'N' => Some('5'),
        'R' => Some('6'),
        _ => None,
    }
}

fn soundex(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    call.make_texts(|row, out| {
        let Some(text) = texts.at(row) else {
            return Ok(false);
        };
        let mut letters = text.chars().filter(|c| c.is_alphabetic());
        let Some(first) = letters.next() else {
            return Ok(true);
        };
        out.extend(first.to_uppercase());
        let mut last = sound(first);
        let mut codes = 1;
        for letter in letters {
            if matches!(letter.to_ascii_uppercase(), 'H' | 'W') {
                continue;
            }
            let code = sound(letter);
            if code.is_some() && code != last {
                out.extend(code);
                codes += 1;
            }
            last = code;
        }
        out.extend(std::iter::repeat_n('0', 4_usize.saturating_sub(codes)));
        Ok(true)
    })
}

/// A number with thousands separated and that many digits after the point.
fn format(call: &Call<'_>) -> Result<ArrayRef> {
    let scales = call.integers(1)?;
    let exact = !matches!(
        call.data_type(0),
        DataType::Float32 | DataType::Float64 | DataType::Utf8 | DataType::Utf8View
    );
    let texts = if exact { Some(call.texts(0)?) } else { None };
    let numbers = call.doubles(0)?;
    call.make_texts(|row, out| {
        let (Some(number), Some(scale)) = (numbers.at(row), scales.at(row)) else {
            return Ok(false);
        };
        let scale = scale.clamp(0, 30);
        let digits = match texts.as_ref().and_then(|texts| texts.at(row)) {
            Some(text) => {
                let scale = i8::try_from(scale).expect("a scale of at most 30");
                let mut rounded = String::new();
                let (value, _) = super::number::read_decimal(text, scale);
                super::number::write_decimal256(value.unwrap_or_default(), scale, &mut rounded);
                rounded
            }
            None => {
                let scale = usize::try_from(scale).expect("a scale of at most 30");
                format!("{number:.scale$}")
            }
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
        let (sign, whole) = whole
            .strip_prefix('-')
            .map_or(("", whole), |rest| ("-", rest));
        out.push_str(sign);
        for (index, digit) in whole.chars().enumerate() {
            if index > 0 && (whole.len() - index) % 3 == 0 {
                out.push(',');
            }
            out.push(digit);
        }
        if !fraction.is_empty() {
            out.push('.');
            out.push_str(fraction);
        }
        Ok(true)
    })
}

/// LIKE with any escape character; `%` is any text, `_` any character.
fn like(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
    let escapes = if call.count() > 2 {
        Some(call.texts(2)?)
    } else {
        None
    };
    let mut pattern: Vec<Token> = Vec::new();
    let mut compiled: Option<(&str, Option<char>)> = None;
    let mut characters: Vec<char> = Vec::new();
    call.make_booleans(|row| {
        let (Some(text), Some(source)) = (texts.at(row), patterns.at(row)) else {
            return Ok(None);
        };
        let escape = match &escapes {
            None => Some('\\'),
            Some(escapes) => escapes.at(row).and_then(|escape| escape.chars().next()),
        };
        if compiled != Some((source, escape)) {
            pattern = compile(source, escape);
            compiled = Some((source, escape));
        }
        characters.clear();
        characters.extend(text.chars());
        Ok(Some(matches_tokens(&characters, &pattern)))
    })
}

/// A part of a LIKE pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    /// `%`.
    Any,
    /// `_`.
    One,
    Exactly(char),
}

fn compile(pattern: &str, escape: Option<char>) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            _ if Some(character) == escape => {
                Token::Exactly(characters.next().unwrap_or(character))
            }
            '%' if tokens.last() == Some(&Token::Any) => continue,
            '%' => Token::Any,
            '_' => Token::One,
            other => Token::Exactly(other),
        });
    }
    tokens
}

/// Matches with one point to come back to: the last `%`.
fn matches_tokens(text: &[char], pattern: &[Token]) -> bool {
    let (mut at, mut token) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(token) {
            Some(Token::Any) => {
                retry = Some((at, token + 1));
                token += 1;
            }
            Some(Token::One) => (at, token) = (at + 1, token + 1),
            Some(Token::Exactly(character)) if *character == text[at] => {
                (at, token) = (at + 1, token + 1);
            }
            _ => match retry {
                Some((from, back)) => {
                    retry = Some((from + 1, back));
                    (at, token) = (from + 1, back);
                }
                None => return false,
            },
        }
    }
    pattern[token..].iter().all(|token| *token == Token::Any)
}
