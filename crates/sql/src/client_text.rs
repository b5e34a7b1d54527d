//! The text of statements as clients send it, in their character set, as UTF-8.
//!
//! A literal may hold bytes that are no text: clients put values of BLOB columns into statements
//! so, with `_binary` in front and without. Such a literal is written as `x'...'`.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

use std::borrow::Cow;

use mayfly_types::{CharacterSet, MySqlError};

/// What says that a literal is bytes.
const BINARY: &[u8] = b"_binary";

/// Reads what a client sent.
///
/// # Errors
/// 1300 for bytes outside of literals and comments that are no characters of the set.
pub fn read(bytes: &[u8], set: CharacterSet) -> Result<Cow<'_, str>, MySqlError> {
    match set.decode(bytes) {
        // Text of a set that knows every byte may be no text.
        Ok(Cow::Owned(_)) if has_introducer(bytes) => {}
        Ok(text) => return Ok(text),
        Err(_) => {}
    }
    let mut writer = Writer {
        set,
        out: String::with_capacity(bytes.len() * 2),
    };
    writer.write(bytes)?;
    Ok(Cow::Owned(writer.out))
}

fn has_introducer(bytes: &[u8]) -> bool {
    let mut windows = bytes.windows(BINARY.len());
    windows.any(|window| window.eq_ignore_ascii_case(BINARY))
}

struct Writer {
    set: CharacterSet,
    out: String,
}

impl Writer {
    fn write(&mut self, mut rest: &[u8]) -> Result<(), MySqlError> {
        while !rest.is_empty() {
            let plain = rest.len().min(plain_len(rest));
            let (before, from) = rest.split_at(plain);
            self.out.push_str(&self.set.decode(before)?);
            let len = match from.first() {
                None => return Ok(()),
                Some(quote @ (b'\'' | b'"')) => self.literal(from, *quote)?,
                Some(b'`') => {
                    let len = quoted_len(from, b'`', false).unwrap_or(from.len());
                    self.out.push_str(&self.set.decode(start_of(from, len))?);
                    len
                }
                Some(_) => {
                    let len = comment_len(from);
                    // Nobody reads it, but for hints, which are ASCII.
                    let shown = |byte: &u8| {
                        if byte.is_ascii() {
                            char::from(*byte)
                        } else {
                            '?'
                        }
                    };
                    self.out.extend(start_of(from, len).iter().map(shown));
                    len
                }
            };
            rest = from.get(len..).unwrap_or_default();
        }
        Ok(())
    }

    /// Writes the literal at the beginning of a text; gives its length.
    fn literal(&mut self, from: &[u8], quote: u8) -> Result<usize, MySqlError> {
        let Some(len) = quoted_len(from, quote, true) else {
            // Whoever reads the statement says that it has no end.
            self.out.push_str(&self.set.decode(from)?);
            return Ok(from.len());
        };
        let whole = start_of(from, len);
        let before = self.out.trim_end();
        let word = before.len().checked_sub(BINARY.len());
        let introduced = word.filter(|at| {
            // What stands before is any text: these may be bytes from within a character.
            let Some((other, word)) = before.split_at_checked(*at) else {
                return false;
            };
            let ends_another = { other.chars().next_back() }
                .is_some_and(|last| last.is_alphanumeric() || matches!(last, '_' | '$' | '@'));
            word.as_bytes().eq_ignore_ascii_case(BINARY) && !ends_another
        });
        match (introduced, self.set.decode(whole)) {
            (None, Ok(text)) => self.out.push_str(&text),
            (Some(_), _) if whole.is_ascii() => {
                self.out.push_str(&String::from_utf8_lossy(whole));
            }
            (introduced, _) => {
                if let Some(at) = introduced {
                    self.out.truncate(at);
                }
                self.out.push_str("x'");
                let inside = whole.get(1..len.saturating_sub(1)).unwrap_or_default();
                for byte in unescaped(inside, quote) {
                    self.out.push_str(&format!("{byte:02X}"));
                }
                self.out.push('\'');
            }
        }
        Ok(len)
    }
}

/// The first bytes of a text.
fn start_of(text: &[u8], len: usize) -> &[u8] {
    text.get(..len).unwrap_or(text)
}

/// The bytes in front of the next literal, name in quotes, or comment.
fn plain_len(text: &[u8]) -> usize {
    let begins = |at: usize| match text.get(at..) {
        Some([b'\'' | b'"' | b'`' | b'#', ..] | [b'/', b'*', ..] | [b'-', b'-']) => true,
        Some([b'-', b'-', next, ..]) => *next <= b' ',
        _ => false,
    };
    (0..text.len()).find(|at| begins(*at)).unwrap_or(text.len())
}

fn comment_len(text: &[u8]) -> usize {
    let end: &[u8] = match text.first() {
        // What stands in it is a statement for some versions.
        Some(b'/') if text.starts_with(b"/*!") => return 3,
        Some(b'/') => b"*/",
        _ => b"\n",
    };
    let found = text.windows(end.len()).position(|window| window == end);
    found.map_or(text.len(), |at| at + end.len())
}

/// The length of what begins with a quote, both quotes included; `None` if it has no end.
fn quoted_len(text: &[u8], quote: u8, escapes: bool) -> Option<usize> {
    let mut at = 1;
    while let Some(byte) = text.get(at) {
        match *byte {
            b'\\' if escapes => at += 1,
            byte if byte == quote && text.get(at + 1) == Some(&quote) => at += 1,
            byte if byte == quote => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The bytes that a literal means.
fn unescaped(text: &[u8], quote: u8) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.iter().copied();
    while let Some(byte) = rest.next() {
        match byte {
            b'\\' => match rest.next() {
                Some(b'0') => out.push(0),
                Some(b'b') => out.push(8),
                Some(b'n') => out.push(b'\n'),
                Some(b'r') => out.push(b'\r'),
                Some(b't') => out.push(b'\t'),
                Some(b'Z') => out.push(0x1A),
                Some(pattern @ (b'%' | b'_')) => out.extend([b'\\', pattern]),
                Some(other) => out.push(other),
                None => {}
            },
            // The second of two.
            byte if byte == quote => out.extend(rest.next()),
            byte => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(set: CharacterSet, sent: &[u8], expected: &str) {
        assert_eq!(read(sent, set).expect("a text"), expected);
    }

    #[test]
    fn texts_stay_texts() {
        let text = "SELECT _binary'\u{FC}' -- \u{FC}";
        check(CharacterSet::Utf8mb4, text.as_bytes(), text);
        check(
            CharacterSet::Latin1,
            b"SELECT '\xFC\x80'",
            "SELECT '\u{FC}\u{20AC}'",
        );
    }

    #[test]
    fn literals_that_are_bytes_are_written_as_such() {
        let utf8 = CharacterSet::Utf8mb4;
        for (sent, expected) in [
            (
                &b"SELECT 'a', '\xFF\\0''\\'\\%'"[..],
                "SELECT 'a', x'FF0027275C25'",
            ),
            (
                b"VALUES (_binary'\xFF', _BINARY \"\xFE\"\"\")",
                "VALUES (x'FF', x'FE22')",
            ),
            (b"SELECT a_binary'\xFF'", "SELECT a_binaryx'FF'"),
            (
                b"/* \xFF' */ SELECT '\xFF' # \xFF\n",
                "/* ?' */ SELECT x'FF' # ?\n",
            ),
            (b"SELECT 1-- \xFF", "SELECT 1-- ?"),
            (b"/*!40000 SELECT '\xFF' */", "/*!40000 SELECT x'FF' */"),
            (b"SELECT `a'b`, '\xFF'", "SELECT `a'b`, x'FF'"),
            (
                b"SELECT 'aaaaaaa\xC3\xA9\xC3\xA9\xC3\xA9','\xFF'",
                "SELECT 'aaaaaaa\u{E9}\u{E9}\u{E9}',x'FF'",
            ),
        ] {
            check(utf8, sent, expected);
        }
        let (sent, text) = (
            &b"SELECT '\xFC', _binary '\xFC', _binary'a'"[..],
            "SELECT '\u{FC}', x'FC', _binary'a'",
        );
        check(CharacterSet::Latin1, sent, text);
    }

    #[test]
    fn other_bytes_are_refused() {
        for sent in [
            &b"SELECT \xFF, '\xFF'"[..],
            b"SELECT '\xFF",
            b"SELECT 1 AS `\xFF`",
        ] {
            let refused = read(sent, CharacterSet::Utf8mb4).expect_err("no text");
            assert_eq!(refused.code, 1300);
        }
    }
}
