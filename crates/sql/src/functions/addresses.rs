//! Addresses of the internet and universally unique identifiers, as texts and as bytes.
//!
//! Source: MySQL 8.4 reference manual, "Miscellaneous Functions"; how IPv6 addresses are shortened
//! was seen in MariaDB.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryViewBuilder};
use datafusion::error::Result;
use mayfly_types::{ErrorCode, MySqlError};
use uuid::Uuid;

use super::call::Call;
use super::define::{Definition, Returns, pure};
use super::raise::raise;

pub(super) static FUNCTIONS: &[Definition] = &[
    pure("inet6_aton", &[], (1, 1), Returns::Bytes, inet6_aton),
    pure("inet6_ntoa", &[], (1, 1), Returns::Text, inet6_ntoa),
    pure("is_ipv4", &[], (1, 1), Returns::Integer, |call| {
        is_text(call, |text| ipv4(text).is_some())
    }),
    pure("is_ipv6", &[], (1, 1), Returns::Integer, |call| {
        is_text(call, |text| ipv6(text).is_some())
    }),
    pure("is_ipv4_compat", &[], (1, 1), Returns::Integer, |call| {
        is_address(call, |address| {
            // `::` and `::1` are addresses of their own.
            address[..12] == [0; 12] && address[12..] > [0, 0, 0, 1][..]
        })
    }),
    pure("is_ipv4_mapped", &[], (1, 1), Returns::Integer, |call| {
        is_address(call, |address| address[..12] == MAPPED)
    }),
    pure("uuid_to_bin", &[], (1, 2), Returns::Bytes, uuid_to_bin),
    pure("bin_to_uuid", &[], (1, 2), Returns::Text, bin_to_uuid),
    pure("is_uuid", &[], (1, 1), Returns::Integer, |call| {
        is_text(call, |text| identifier(text).is_some())
    }),
];

/// The beginning of an IPv6 address that stands for an IPv4 one.
const MAPPED: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF];
/// The longest text that is read as an IPv6 address.
const IPV6_CHARACTERS_MAX: usize = 39;
const IPV6_WORDS: usize = 8;

/// Four numbers below 256 of at most three digits.
fn ipv4(text: &str) -> Option<[u8; 4]> {
    let mut address = [0; 4];
    let mut parts = text.split('.');
    for byte in &mut address {
        let part = parts.next()?;
        let is_number = (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
        *byte = is_number.then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(address)
}

/// Groups of hexadecimal digits, the last of which may be an IPv4 address.
fn words(text: &str, is_end: bool) -> Option<Vec<u16>> {
    let mut words = Vec::new();
    if text.is_empty() {
        return Some(words);
    }
    let mut groups = text.split(':').peekable();
    while let Some(group) = groups.next() {
        if is_end && groups.peek().is_none() && group.contains('.') {
            let [a, b, c, d] = ipv4(group)?;
            words.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
            break;
        }
        let is_word =
            (1..=4).contains(&group.len()) && group.bytes().all(|b| b.is_ascii_hexdigit());
        words.push(is_word.then(|| u16::from_str_radix(group, 16).ok())??);
    }
    Some(words)
}

fn ipv6(text: &str) -> Option<[u8; 16]> {
    if text.len() > IPV6_CHARACTERS_MAX {
        return None;
    }
    let words = match text.split_once("::") {
        None => words(text, true)?,
        // `::` stands for one group of zeros at least.
        Some((head, tail)) => {
            let (mut all, tail) = (words(head, false)?, words(tail, true)?);
            let zeros = IPV6_WORDS.checked_sub(all.len() + tail.len())?;
            if zeros == 0 {
                return None;
            }
            all.extend(std::iter::repeat_n(0, zeros));
            all.extend(tail);
            all
        }
    };
    let words: [u16; IPV6_WORDS] = words.try_into().ok()?;
    let mut address = [0; 16];
    for (bytes, word) in address.chunks_exact_mut(2).zip(words) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    Some(address)
}

/// The first of the longest runs of zeros: where it begins, and its length.
fn longest_gap(words: &[u16]) -> (usize, usize) {
    let mut longest = (0, 0);
    let mut at = 0;
    for run in words.chunk_by(|left, right| (*left == 0) == (*right == 0)) {
        if run[0] == 0 && run.len() > longest.1 {
            longest = (at, run.len());
        }
        at += run.len();
    }
    longest
}

fn write_ipv4(bytes: &[u8], out: &mut String) {
    for (index, byte) in bytes.iter().enumerate() {
        if index > 0 {
            out.push('.');
        }
        write!(out, "{byte}").expect("a text takes everything");
    }
}

fn write_ipv6(bytes: &[u8], out: &mut String) {
    let words: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|word| u16::from_be_bytes([word[0], word[1]]))
        .collect();
    let (gap, length) = longest_gap(&words);
    let holds_ipv4 = gap == 0 && (length == 6 || length == 5 && words[5] == 0xFFFF);
    let mut at = 0;
    while at < words.len() {
        if length > 0 && at == gap {
            out.push_str(if at == 0 { "::" } else { ":" });
            at += length;
        } else if at == 6 && holds_ipv4 {
            write_ipv4(&bytes[12..], out);
            return;
        } else {
            write!(out, "{:x}", words[at]).expect("a text takes everything");
            at += 1;
            if at < words.len() {
                out.push(':');
            }
        }
    }
}

fn inet6_aton(call: &Call<'_>) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    let mut builder = BinaryViewBuilder::with_capacity(call.rows);
    for row in 0..call.rows {
        let Some(text) = texts.at(row) else {
            builder.append_null();
            continue;
        };
        match (ipv4(text), ipv6(text)) {
            (Some(address), _) => builder.append_value(address),
            (None, Some(address)) => builder.append_value(address),
            (None, None) => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

/// A text is no address, however long it is.
fn inet6_ntoa(call: &Call<'_>) -> Result<ArrayRef> {
    if !call.column_type(0).is_binary() {
        return Ok(call.make_nulls());
    }
    let bytes = call.bytes(0)?;
    call.make_texts(|row, out| {
        match bytes.at(row) {
            Some(bytes) if bytes.len() == 4 => write_ipv4(bytes, out),
            Some(bytes) if bytes.len() == 16 => write_ipv6(bytes, out),
            _ => return Ok(false),
        }
        Ok(true)
    })
}

fn is_text(call: &Call<'_>, is_one: impl Fn(&str) -> bool) -> Result<ArrayRef> {
    let texts = call.texts(0)?;
    call.make_integers(|row| Ok(texts.at(row).map(|text| i64::from(is_one(text)))))
}

/// Whether bytes are an IPv6 address of a kind.
fn is_address(call: &Call<'_>, is_one: impl Fn(&[u8; 16]) -> bool) -> Result<ArrayRef> {
    let bytes = call.bytes(0)?;
    call.make_integers(|row| {
        let found = bytes.at(row);
        Ok(found.map(|bytes| i64::from(<&[u8; 16]>::try_from(bytes).is_ok_and(&is_one))))
    })
}

/// An identifier with all of its dashes, in braces or not, or without any.
fn identifier(text: &str) -> Option<Uuid> {
    let inner = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'));
    let is_one = match inner {
        Some(inner) => inner.len() == 36,
        None => matches!(text.len(), 32 | 36),
    };
    let text = inner.unwrap_or(text);
    is_one.then(|| Uuid::try_parse(text).ok()).flatten()
}

fn incorrect(text: &str, function: &str) -> datafusion::error::DataFusionError {
    let arguments: [&dyn std::fmt::Display; 3] = [&"string", &text, &function];
    raise(MySqlError::new(ErrorCode::WrongValueForType, &arguments))
}

/// Whether the second argument asks for the time in the order of its digits.
fn swaps(call: &Call<'_>) -> Result<impl Fn(usize) -> bool> {
    let flags = call.optional_integers(1)?;
    Ok(move |row| {
        let flag = flags.as_ref().and_then(|flags| flags.at(row));
        flag.is_some_and(|flag| flag != 0)
    })
}

fn uuid_to_bin(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, swaps) = (call.texts(0)?, swaps(call)?);
    let mut builder = BinaryViewBuilder::with_capacity(call.rows);
    for row in 0..call.rows {
        let Some(text) = texts.at(row) else {
            builder.append_null();
            continue;
        };
        let id = identifier(text).ok_or_else(|| incorrect(text, "uuid_to_bin"))?;
        let mut bytes = id.into_bytes();
        if swaps(row) {
            bytes[..2].copy_from_slice(&id.as_bytes()[6..8]);
            bytes[2..4].copy_from_slice(&id.as_bytes()[4..6]);
            bytes[4..8].copy_from_slice(&id.as_bytes()[..4]);
        }
        builder.append_value(bytes);
    }
    Ok(Arc::new(builder.finish()))
}

fn bin_to_uuid(call: &Call<'_>) -> Result<ArrayRef> {
    let (bytes, swaps) = (call.bytes(0)?, swaps(call)?);
    call.make_texts(|row, out| {
        let Some(bytes) = bytes.at(row) else {
            return Ok(false);
        };
        let Ok(mut found) = <[u8; 16]>::try_from(bytes) else {
            return Err(incorrect(&String::from_utf8_lossy(bytes), "bin_to_uuid"));
        };
        if swaps(row) {
            found[..4].copy_from_slice(&bytes[4..8]);
            found[4..6].copy_from_slice(&bytes[2..4]);
            found[6..8].copy_from_slice(&bytes[..2]);
        }
        out.push_str(&Uuid::from_bytes(found).to_string());
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Option<String> {
        let mut out = String::new();
        match (ipv4(text), ipv6(text)) {
            (Some(address), _) => write_ipv4(&address, &mut out),
            (None, Some(address)) => write_ipv6(&address, &mut out),
            (None, None) => return None,
        }
        Some(out)
    }

    #[test]
    fn addresses_are_read_and_shortened() {
        // As MariaDB says INET6_NTOA(INET6_ATON(text)).
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(shown(text).as_deref(), expect, "{text}");
        };
        check("10.0.5.9", Some("10.0.5.9"));
        check("01.2.3.04", Some("1.2.3.4"));
        check("1.2.3", None);
        check("1.2.3.256", None);
        check("0001.2.3.4", None);
        check("1:0:2:3:4:5:6:7", Some("1::2:3:4:5:6:7"));
        check("1:0:0:2:0:0:0:3", Some("1:0:0:2::3"));
        check("::", Some("::"));
        check("::1", Some("::1"));
        check("::1:2", Some("::0.1.0.2"));
        check("0:0:1::", Some("0:0:1::"));
        check("::1.2.3.4", Some("::1.2.3.4"));
        check("::ffff:1.2.3.4", Some("::ffff:1.2.3.4"));
        check("FE80::AB", Some("fe80::ab"));
        check("1:2:3:4:5:6:7::", Some("1:2:3:4:5:6:7::"));
        check("::2:3:4:5:6:7:8", Some("::2:3:4:5:6:7:8"));
        for text in [
            "",
            ":",
            ":::",
            "1::2::3",
            " ::1",
            "1::2%eth0",
            "12345::",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8:",
            "1:2:3:4:5:6:7:8::",
            "1::1.2.3.4:5",
            "0000:0000:0000:0000:0000:ffff:255.255.255.255",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn identifiers_have_all_of_their_dashes_or_none() {
        let id = "6ccd780c-baba-1026-9564-5b8c656024db";
        for (text, is_one) in [
            (id.to_owned(), true),
            (id.to_uppercase(), true),
            (id.replace('-', ""), true),
            (format!("{{{id}}}"), true),
            (format!("{{{}}}", id.replace('-', "")), false),
            (format!("{{{id}"), false),
            (format!("urn:uuid:{id}"), false),
            (id.replacen('-', "", 1), false),
            (String::new(), false),
        ] {
            assert_eq!(identifier(&text).is_some(), is_one, "{text}");
        }
    }
}
