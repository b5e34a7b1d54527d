//! The shape of a statement, with its constants taken out.
//!
//! Clients send the same statement over and over with other numbers and texts in it. Its shape is
//! what stays the same; what was found out about one statement serves all of its shape.
//!
//! **Never** guesses: text that could be read in two ways (comments, escapes, variables) has no
//! shape, and is read by the parser every time.
//!
//! **Cost**: one pass over the bytes, one allocation for the shape.

use crate::literal::Literal;

/// Bytes of a statement that are worth a look: longer ones take their time elsewhere.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// What stands for a number and for a text in a shape. No statement has these bytes.
const NUMBER: u8 = 1;
const TEXT: u8 = 2;

/// A statement without its constants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template<'a> {
    /// What all statements of the shape have in common.
    pub shape: Vec<u8>,
    /// The constants, in the order of the text. A minus in front of one belongs to the shape.
    pub constants: Vec<Literal<'a>>,
}

impl<'a> Template<'a> {
    /// Takes a statement apart; `None` where the statement is not one on rows, or has no shape.
    pub fn read(text: &'a str) -> Option<Template<'a>> {
        let bytes = text.as_bytes();
        if bytes.len() > TEXT_BYTES_MAX || !begins_well(bytes) {
            return None;
        }
        let mut shape = Vec::with_capacity(bytes.len());
        let mut constants = Vec::with_capacity(8);
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            let end = match byte {
                b'0'..=b'9' => {
                    let end = end_of_number(bytes, at)?;
                    constants.push(Literal::number(&text[at..end]));
                    shape.push(NUMBER);
                    at = end;
                    continue;
                }
                b'\'' | b'"' => {
                    let end = end_of_text(bytes, at)?;
                    constants.push(Literal::text(&text[at + 1..end - 1]));
                    shape.push(TEXT);
                    at = end;
                    continue;
                }
                b'`' => at + 2 + bytes[at + 1..].iter().position(|byte| *byte == b'`')?,
                _ if is_of_word(byte) => end_of_word(bytes, at),
                b'@' | b'#' | b'?' | b'\\' => return None,
                b'-' if bytes.get(at + 1) == Some(&b'-') => return None,
                b'/' if bytes.get(at + 1) == Some(&b'*') => return None,
                b'.' if bytes.get(at + 1).is_some_and(u8::is_ascii_digit) => return None,
                0..=8 => return None,
                _ => at + 1,
            };
            shape.extend_from_slice(&bytes[at..end]);
            at = end;
        }
        Some(Template { shape, constants })
    }
}

/// Whether a statement is one on rows, by its first letters.
fn begins_well(bytes: &[u8]) -> bool {
    let rows = ["insert", "select", "update", "delete"];
    let first = bytes.get(..rows[0].len()).unwrap_or_default();
    rows.iter()
        .any(|word| first.eq_ignore_ascii_case(word.as_bytes()))
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn end_of_word(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start..];
    let length = rest.iter().position(|byte| !is_of_word(*byte));
    start + length.unwrap_or(rest.len())
}

/// The end of `12`, `1.5` or `2e-3`; `None` for what goes on as a word does (`0x41`, `1a`).
fn end_of_number(bytes: &[u8], start: usize) -> Option<usize> {
    let digits = |from: usize| {
        let rest = &bytes[from..];
        let length = rest.iter().position(|byte| !byte.is_ascii_digit());
        from + length.unwrap_or(rest.len())
    };
    let mut end = digits(start);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let first = end + 1 + sign;
        end = digits(first);
        if end == first {
            return None;
        }
    }
    match bytes.get(end) {
        Some(byte) if is_of_word(*byte) || *byte == b'.' => None,
        _ => Some(end),
    }
}

/// The end of a text behind its closing quote; `None` where one is escaped or missing.
fn end_of_text(bytes: &[u8], start: usize) -> Option<usize> {
    let quote = bytes[start];
    let inside = &bytes[start + 1..];
    let length = inside
        .iter()
        .position(|byte| *byte == quote || *byte == b'\\')?;
    let end = start + 1 + length;
    let is_escape = bytes[end] == b'\\' || bytes.get(end + 1) == Some(&quote);
    (!is_escape).then_some(end + 1)
}
