//! JSON_VALID: whether a text is JSON.
//!
//! Source: RFC 8259, and MySQL 8.4 where that leaves a choice: a number that no DOUBLE can be near
//! to is refused, and so is half of a surrogate pair.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use super::call::Call;
use super::define::{Definition, Returns, pure};
use super::raise::raise;

pub(super) static FUNCTIONS: &[Definition] = &[pure(
    "json_valid",
    &[],
    (1, 1),
    Returns::Integer,
    json_valid,
)];

/// The most values that lie in each other.
const DEPTH_MAX: usize = 100;

fn json_valid(call: &Call<'_>) -> Result<ArrayRef> {
    let of = call.column_type(0);
    // A number or a date is no text of JSON.
    let is_text = of.is_text() || of.is_binary_string() || of == ColumnType::Json;
    let bytes = call.bytes(0)?;
    call.make_integers(|row| {
        let Some(text) = bytes.at(row) else {
            return Ok(None);
        };
        match is_text.then(|| check(text)) {
            Some(Ok(())) => Ok(Some(1)),
            Some(Err(Fault::Depth)) => Err(raise(MySqlError::new(ErrorCode::JsonTooDeep, &[]))),
            Some(Err(Fault::Syntax)) | None => Ok(Some(0)),
        }
    })
}

/// Whether bytes are one value of JSON, as JSON_VALID has it, that is not nested too deep for it.
pub fn is_json(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok() && check(text).is_ok()
}

/// Why a text is not taken.
#[derive(Debug, PartialEq, Eq)]
enum Fault {
    Syntax,
    /// Too many values lie in each other.
    Depth,
}

/// Whether bytes are one value of JSON, without recursion.
fn check(text: &[u8]) -> std::result::Result<(), Fault> {
    let mut reader = Reader { text, at: 0 };
    // What is open, from the outside in: whether it is an object.
    let mut open: Vec<bool> = Vec::new();
    loop {
        // A value begins here.
        if open.len() >= DEPTH_MAX {
            return Err(Fault::Depth);
        }
        reader.skip_space();
        let opened = match reader.next().ok_or(Fault::Syntax)? {
            b'{' => Some((true, b'}')),
            b'[' => Some((false, b']')),
            first => {
                reader.scalar(first).ok_or(Fault::Syntax)?;
                None
            }
        };
        if let Some((is_object, end)) = opened {
            reader.skip_space();
            if !reader.takes(end) {
                open.push(is_object);
                if is_object {
                    reader.member().ok_or(Fault::Syntax)?;
                }
                continue;
            }
        }
        // A value has ended, and with it what it is the last of.
        loop {
            reader.skip_space();
            let Some(is_object) = open.last() else {
                return match reader.next() {
                    None => Ok(()),
                    Some(_) => Err(Fault::Syntax),
                };
            };
            match (reader.next(), is_object) {
                (Some(b','), true) => reader.member().ok_or(Fault::Syntax)?,
                (Some(b','), false) => {}
                (Some(b'}'), true) | (Some(b']'), false) => {
                    open.pop();
                    continue;
                }
                _ => return Err(Fault::Syntax),
            }
            break;
        }
    }
}

/// Reads from left to right; `None` where the text goes on otherwise.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn takes(&mut self, byte: u8) -> bool {
        let takes = self.peek() == Some(byte);
        self.at += usize::from(takes);
        takes
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The name of a member and the colon behind it.
    fn member(&mut self) -> Option<()> {
        self.skip_space();
        self.expect(b"\"")?;
        self.string()?;
        self.skip_space();
        self.expect(b":")
    }

    fn expect(&mut self, word: &[u8]) -> Option<()> {
        let has_it = self.text[self.at..].starts_with(word);
        self.at += word.len();
        has_it.then_some(())
    }

    /// The rest of a value that holds no others, behind its first byte.
    fn scalar(&mut self, first: u8) -> Option<()> {
        match first {
            b'"' => self.string(),
            b't' => self.expect(b"rue"),
            b'f' => self.expect(b"alse"),
            b'n' => self.expect(b"ull"),
            b'-' | b'0'..=b'9' => self.number(first),
            _ => None,
        }
    }

    fn string(&mut self) -> Option<()> {
        loop {
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => self.escape()?,
                0..b' ' => return None,
                _ => {}
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        if self.takes(b'u') {
            return match self.unit()? {
                0xD800..=0xDBFF => {
                    self.expect(b"\\u")?;
                    (0xDC00..=0xDFFF).contains(&self.unit()?).then_some(())
                }
                0xDC00..=0xDFFF => None,
                _ => Some(()),
            };
        }
        let known = matches!(
            self.next()?,
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't'
        );
        known.then_some(())
    }

    /// Four hexadecimal digits.
    fn unit(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |unit, digit| {
            Some(unit * 16 + char::from(*digit).to_digit(16)?)
        })
    }

    fn number(&mut self, first: u8) -> Option<()> {
        let start = self.at - 1;
        let first = match first {
            b'-' => self.next()?,
            digit => digit,
        };
        match first {
            b'0' => {}
            b'1'..=b'9' => {
                self.digits();
            }
            _ => return None,
        }
        if self.takes(b'.') {
            self.digits().then_some(())?;
        }
        if self.takes(b'e') || self.takes(b'E') {
            let _ = self.takes(b'+') || self.takes(b'-');
            self.digits().then_some(())?;
        }
        let digits = std::str::from_utf8(&self.text[start..self.at]).ok()?;
        digits.parse::<f64>().ok()?.is_finite().then_some(())
    }

    /// Skips digits; whether there were any.
    fn digits(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at > start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_json_are_told_from_others() {
        for text in [
            "{}",
            "[]",
            "null",
            " true\t",
            "\r\nfalse\n",
            "0",
            "-0.0e-5",
            "1E+2",
            "123456789012345678901234567890",
            r#""""#,
            r#""\u00e4\n\"\\\/\uD83D\uDE00""#,
            "\"\u{e4}\u{1f600}\"",
            r#"{"a": [1, {"b": null}, []], "a": {}}"#,
            "[[],[[]],{}]",
        ] {
            assert_eq!(check(text.as_bytes()), Ok(()), "{text}");
        }
        for text in [
            "",
            " ",
            "nul",
            "True",
            "{} {}",
            "[1,]",
            "[,1]",
            "[1 2]",
            "[",
            "]",
            "[1}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{'a':1}",
            "'a'",
            "\"a",
            "\"\t\"",
            r#""\x""#,
            r#""\u12""#,
            r#""\u12G4""#,
            r#""\uD800""#,
            r#""\uD800\u0041""#,
            r#""\uDC00""#,
            "01",
            "-",
            "+1",
            "1.",
            ".5",
            "1e",
            "1e999",
            "0x1",
            "NaN",
            "1\0",
            "// 1\n1",
        ] {
            assert_eq!(check(text.as_bytes()), Err(Fault::Syntax), "{text}");
        }
    }

    #[test]
    fn a_hundred_values_may_lie_in_each_other() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(check(nested(100).as_bytes()), Ok(()));
        assert_eq!(check(nested(101).as_bytes()), Err(Fault::Depth));
        assert_eq!(check("[".repeat(1 << 20).as_bytes()), Err(Fault::Depth));
        let members = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert_eq!(check(members(99).as_bytes()), Ok(()));
        assert_eq!(check(members(100).as_bytes()), Err(Fault::Depth));
    }
}
