//! Values in a written shape: as literals, as sounds, as numbers for people.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use mayfly_types::spelling::{write_digits, write_fixed};

use crate::functions::call::Call;
use crate::functions::define::{Definition, Returns, pure};
use crate::functions::number;
use crate::functions::results::SHORT_BYTES;

pub(super) static FUNCTIONS: &[Definition] = &[
    pure("quote", &[], (1, 1), Returns::Text, quote),
    pure("soundex", &[], (1, 1), Returns::Text, soundex),
    pure("format", &[], (2, 3), Returns::Text, format),
];

/// `'it\'s'`, and the word NULL for NULL.
fn quote(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    call.make_texts(|row, out| {
        let Some(text) = texts.at(row) else {
            out.push_str("NULL");
            return Ok(true);
        };
        let is_escaped = |byte: &u8| matches!(byte, b'\'' | b'\\' | b'\0' | b'\x1a');
        let bytes = text.len() + 2;
        let escapes = || text.bytes().filter(|byte| is_escaped(byte)).count();
        if bytes + text.len() > SHORT_BYTES && !out.expect(bytes + escapes())? {
            return Ok(false);
        }
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
            let code = sound(letter);
            if code.is_some() && code != last {
                out.extend(code);
                codes += 1;
                // What has no code does not part letters of the same.
                last = code;
            }
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
    let texts = if exact { Some(call.digits(0)?) } else { None };
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
                let (value, _) = number::read_decimal(text, scale);
                write_digits(&value.unwrap_or_default().to_string(), scale, &mut rounded);
                rounded
            }
            None => {
                let scale = u8::try_from(scale).expect("a scale of at most 30");
                let mut rounded = String::new();
                write_fixed(number, scale, &mut rounded);
                rounded
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
