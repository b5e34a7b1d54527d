//! Functions over bytes: digests, encodings, number bases.

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use mayfly_types::{CharacterSet, ErrorCode};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512};

use super::call::Call;
use super::define::{Definition, MANY, Returns, pure};
use super::own::CONVERT_USING;
use super::raise::raise;

pub(super) static FUNCTIONS: &[Definition] = &[
    pure("hex", &[], (1, 1), Returns::Text, hex),
    pure("unhex", &[], (1, 1), Returns::Bytes, unhex),
    pure("char", &[], (1, MANY), Returns::Bytes, char),
    pure(CONVERT_USING, &[], (2, 2), Returns::Text, convert_using),
    pure("md5", &[], (1, 1), Returns::Text, |call| {
        digest(call, |b| Md5::digest(b).to_vec())
    }),
    pure("sha1", &["sha"], (1, 1), Returns::Text, |call| {
        digest(call, |b| Sha1::digest(b).to_vec())
    }),
    pure("sha2", &[], (2, 2), Returns::Text, sha2),
    pure("crc32", &[], (1, 1), Returns::Unsigned, crc32),
    pure("to_base64", &[], (1, 1), Returns::Text, to_base64),
    pure("from_base64", &[], (1, 1), Returns::Bytes, from_base64),
    pure("conv", &[], (3, 3), Returns::Text, conv),
    pure("bin", &[], (1, 1), Returns::Text, |call| {
        in_base(call, |_| Some((10, 2)))
    }),
    pure("oct", &[], (1, 1), Returns::Text, |call| {
        in_base(call, |_| Some((10, 8)))
    }),
    pure("inet_aton", &[], (1, 1), Returns::Unsigned, inet_aton),
    pure("inet_ntoa", &[], (1, 1), Returns::Text, inet_ntoa),
];

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// TO_BASE64 breaks lines after so many characters.
const BASE64_LINE: usize = 76;

fn write_hex(bytes: &[u8], digits: &[u8; 16], out: &mut String) {
    for byte in bytes {
        out.push(char::from(digits[usize::from(byte >> 4)]));
        out.push(char::from(digits[usize::from(byte & 15)]));
    }
}

/// The digits of a number's bits, or of the bytes of anything else.
fn hex(call: &Call<'_>) -> Result<ArrayRef> {
    let kind = call.data_type(0);
    if kind.is_floating() || kind.is_decimal() {
        let numbers = call.doubles(0)?;
        return hex_of_bits(call, |row| numbers.at(row).map(rounded_bits));
    }
    if kind.is_numeric() || kind == &DataType::Boolean {
        let bits = call.bits(0)?;
        return hex_of_bits(call, |row| bits.at(row));
    }
    let bytes = call.bytes(0)?;
    call.make_texts(|row, out| {
        let Some(bytes) = bytes.at(row) else {
            return Ok(false);
        };
        if !out.expect(bytes.len() * 2)? {
            return Ok(false);
        }
        write_hex(bytes, b"0123456789ABCDEF", out);
        Ok(true)
    })
}

fn hex_of_bits(call: &Call<'_>, bits: impl Fn(usize) -> Option<u64>) -> Result<ArrayRef> {
    call.make_texts(|row, out| {
        let bits = bits(row);
        if let Some(bits) = bits {
            write_in_base(bits, 16, out);
        }
        Ok(bits.is_some())
    })
}

/// The bits of a number with a fraction, rounded with halves away from zero; all of them beyond
/// what 64 bits count.
///
/// **Source**: `Item_func_hex` of MySQL's `sql/item_strfunc.cc`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the bounds are powers of two, and values within them fit"
)]
fn rounded_bits(number: f64) -> u64 {
    if number <= i64::MIN as f64 || number >= u64::MAX as f64 {
        return u64::MAX;
    }
    match number > 0.0 {
        true => (number + 0.5) as u64,
        false => ((number - 0.5) as i64).cast_unsigned(),
    }
}

/// NULL if anything but hexadecimal digits is in the text.
fn unhex(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    call.make_bytes(|row, out| {
        let Some(text) = texts.at(row) else {
            return Ok(false);
        };
        let digit = |byte: u8| {
            char::from(byte)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        let mut bytes = text.bytes();
        if text.len() % 2 == 1 {
            match bytes.next().and_then(digit) {
                Some(low) => out.push(low),
                None => return Ok(false),
            }
        }
        while let (Some(high), Some(low)) = (bytes.next(), bytes.next()) {
            match (digit(high), digit(low)) {
                (Some(high), Some(low)) => out.push(high << 4 | low),
                _ => return Ok(false),
            }
        }
        Ok(true)
    })
}

/// The bytes of the numbers, most significant first, without leading zeros. NULLs are left out.
fn char(call: &Call<'_>) -> Result<ArrayRef> {
    let numbers = (0..call.count())
        .map(|i| call.integers(i))
        .collect::<Result<Vec<_>>>()?;
    call.make_bytes(|row, out| {
        for number in numbers.iter().filter_map(|numbers| numbers.at(row)) {
            let bytes = number.cast_unsigned().to_be_bytes();
            let bytes = &bytes[4..];
            let first = bytes.iter().position(|byte| *byte != 0).unwrap_or(3);
            out.extend_from_slice(&bytes[first..]);
        }
        Ok(true)
    })
}

/// A text without the characters that a character set does not have, or the text that bytes are in
/// it. Bytes that are none are NULL, with a warning.
fn convert_using(call: &Call<'_>) -> Result<ArrayRef> {
    let set = call.texts(1)?;
    let set = set.constant().flatten();
    let set = CharacterSet::parse(set.unwrap_or_default()).map_err(raise)?;
    let bytes = call.bytes(0)?;
    let is_binary = call.column_type(0).is_binary_string();
    call.make_texts(|row, out| {
        let Some(bytes) = bytes.at(row) else {
            return Ok(false);
        };
        if !is_binary {
            let written = set.encode(bytes);
            // What was written in a set can be read in it.
            out.push_str(&set.decode(&written).map_err(raise)?);
            return Ok(true);
        }
        match set.decode(bytes) {
            Ok(text) => out.push_str(&text),
            Err(_) => {
                let mut shown = String::new();
                write_hex(bytes, b"0123456789ABCDEF", &mut shown);
                call.warn(ErrorCode::InvalidCharacterString, &[&set.name(), &shown]);
                return Ok(false);
            }
        }
        Ok(true)
    })
}

fn digest(call: &Call<'_>, of: fn(&[u8]) -> Vec<u8>) -> Result<ArrayRef> {
    let bytes = call.bytes(0)?;
    call.make_texts(|row, out| {
        let Some(bytes) = bytes.at(row) else {
            return Ok(false);
        };
        write_hex(&of(bytes), b"0123456789abcdef", out);
        Ok(true)
    })
}

fn sha2(call: &Call<'_>) -> Result<ArrayRef> {
    let (bytes, lengths) = (call.bytes(0)?, call.integers(1)?);
    call.make_texts(|row, out| {
        let (Some(bytes), Some(length)) = (bytes.at(row), lengths.at(row)) else {
            return Ok(false);
        };
        let digest = match length {
            224 => Sha224::digest(bytes).to_vec(),
            0 | 256 => Sha256::digest(bytes).to_vec(),
            384 => Sha384::digest(bytes).to_vec(),
            512 => Sha512::digest(bytes).to_vec(),
            _ => return Ok(false),
        };
        write_hex(&digest, b"0123456789abcdef", out);
        Ok(true)
    })
}

fn crc32(call: &Call<'_>) -> Result<ArrayRef> {
    let bytes = call.bytes(0)?;
    call.make_unsigned(|row| Ok(bytes.at(row).map(|bytes| u64::from(crc32fast::hash(bytes)))))
}

fn to_base64(call: &Call<'_>) -> Result<ArrayRef> {
    let bytes = call.bytes(0)?;
    call.make_texts(|row, out| {
        let Some(bytes) = bytes.at(row) else {
            return Ok(false);
        };
        let digits = bytes.len().div_ceil(3) * 4;
        if !out.expect(digits + digits.saturating_sub(1) / BASE64_LINE)? {
            return Ok(false);
        }
        for (index, group) in bytes.chunks(3).enumerate() {
            if index > 0 && index * 4 % BASE64_LINE == 0 {
                out.push('\n');
            }
            let at = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
            let bits = at(0) << 16 | at(1) << 8 | at(2);
            for digit in 0..4 {
                if digit <= group.len() {
                    let index = (bits >> (18 - 6 * digit) & 63) as usize;
                    out.push(char::from(BASE64[index]));
                } else {
                    out.push('=');
                }
            }
        }
        Ok(true)
    })
}

fn from_base64(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    call.make_bytes(|row, out| {
        let Some(text) = texts.at(row) else {
            return Ok(false);
        };
        let (mut bits, mut count, mut padding) = (0_u32, 0, 0);
        for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
            let digit = match byte {
                b'=' => {
                    padding += 1;
                    0
                }
                _ if padding > 0 => return Ok(false),
                _ => match BASE64.iter().position(|digit| *digit == byte) {
                    Some(at) => u32::try_from(at).expect("one of 64 digits"),
                    None => return Ok(false),
                },
            };
            bits = bits << 6 | digit;
            count += 1;
            if count % 4 == 0 {
                let group = bits.to_be_bytes();
                out.extend_from_slice(&group[1..]);
                bits = 0;
            }
        }
        if count % 4 != 0 || padding > 2 {
            return Ok(false);
        }
        let length = out.len() - padding;
        out.truncate(length);
        Ok(true)
    })
}

/// A number in the digits of a base.
fn write_in_base(mut value: u64, base: u64, out: &mut String) {
    let mut digits = [0_u8; 64];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
            [usize::try_from(value % base).expect("a digit below 36")];
        value /= base;
        if value == 0 {
            break;
        }
    }
    out.extend(digits[at..].iter().map(|digit| char::from(*digit)));
}

/// A text of digits from one base to another; a negative base means signed numbers.
fn conv(call: &Call<'_>) -> Result<ArrayRef> {
    let (from, to) = (call.integers(1)?, call.integers(2)?);
    in_base(call, |row| from.at(row).zip(to.at(row)))
}

/// The digits that an argument begins with, from one base of each row to another.
fn in_base(call: &Call<'_>, bases: impl Fn(usize) -> Option<(i64, i64)>) -> Result<ArrayRef> {
    let texts = call.digits(0)?;
    call.make_texts(|row, out| {
        let (Some(text), Some((from, to))) = (texts.at(row), bases(row)) else {
            return Ok(false);
        };
        let allowed = |base: i64| (2..=36).contains(&base.unsigned_abs());
        if text.is_empty() || !allowed(from) || !allowed(to) {
            return Ok(false);
        }
        let trimmed = text.trim_start();
        let (negative, digits) = match trimmed.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
        };
        let radix = u32::try_from(from.unsigned_abs()).expect("a base of at most 36");
        let mut value: u64 = 0;
        for digit in digits.chars().map_while(|digit| digit.to_digit(radix)) {
            value = value
                .saturating_mul(radix.into())
                .saturating_add(digit.into());
        }
        if negative {
            value = value.wrapping_neg();
        }
        if to < 0 && value.cast_signed() < 0 {
            out.push('-');
            value = value.wrapping_neg();
        }
        write_in_base(value, to.unsigned_abs(), out);
        Ok(true)
    })
}

/// Up to four parts; the last part fills the bytes that are left.
fn inet_aton(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    call.make_unsigned(|row| {
        let Some(text) = texts.at(row) else {
            return Ok(None);
        };
        let parts: Option<Vec<u64>> = text
            .split('.')
            .map(|part| part.parse::<u8>().ok().map(u64::from))
            .collect();
        Ok(parts.filter(|parts| parts.len() <= 4).map(|parts| {
            let (last, before) = parts.split_last().expect("split yields a part");
            before
                .iter()
                .enumerate()
                .fold(*last, |value, (index, part)| {
                    value | part << (24 - 8 * index)
                })
        }))
    })
}

fn inet_ntoa(call: &Call<'_>) -> Result<ArrayRef> {
    let numbers = call.integers(0)?;
    call.make_texts(|row, out| {
        let Some(address) = numbers
            .at(row)
            .and_then(|number| u32::try_from(number).ok())
        else {
            return Ok(false);
        };
        out.push_str(&std::net::Ipv4Addr::from(address).to_string());
        Ok(true)
    })
}
