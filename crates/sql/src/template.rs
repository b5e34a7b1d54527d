//! The shape of a statement, with its constants taken out.
//!
//! Clients send the same statement over and over with other numbers and texts in it. Its shape is
//! what stays the same; what was found out about one statement serves all of its shape. The rows
//! of VALUES are all of one form, and a shape has this form once: INSERTs of one row and of a
//! thousand have the same shape.
//!
//! **Never** guesses: text that could be read in two ways (comments, escapes, variables) has no
//! shape, and is read by the parser every time.
//!
//! **Cost**: one pass over the bytes, and two allocations: shape and constants.

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
use std::ops::Range;

use crate::literal::Literal;

/// Bytes of a statement that are taken apart: the constants of short rows take eight times as much.
pub const TEXT_BYTES_MAX: usize = 16 << 20;
/// Constants for which there is room before they are read.
const RESERVED_MAX: usize = 1 << 14;
/// What stands in a shape for a number, a text, any constant among the rows of VALUES, and more
/// rows like the one before. No statement has these bytes.
const NUMBER: u8 = 1;
const TEXT: u8 = 2;
const VALUE: u8 = 3;
const ROWS: u8 = 4;

/// A statement without its constants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template<'a> {
    /// What all statements of the shape have in common.
    pub shape: Vec<u8>,
    /// The constants, in the order of the text; `None` is NULL, which is a constant among the rows
    /// of VALUES only.
    pub constants: Vec<Option<Literal<'a>>>,
    /// How many rows VALUES has; 1 without it.
    pub rows: usize,
}

impl<'a> Template<'a> {
    /// Takes a statement apart; `None` where the statement is not one on rows, or has no shape.
    pub fn read(text: &'a str) -> Option<Template<'a>> {
        Template::read_with(bare(text), None)
    }

    /// The same, of a statement without anything around it, and where its constants stand in it.
    pub fn placed(bare: &'a str) -> Option<(Template<'a>, Vec<Range<usize>>)> {
        let mut places = Vec::new();
        let template = Template::read_with(bare, Some(&mut places))?;
        Some((template, places))
    }

    fn read_with(text: &'a str, places: Option<&mut Vec<Range<usize>>>) -> Option<Template<'a>> {
        let bytes = text.as_bytes();
        if bytes.len() > TEXT_BYTES_MAX || !begins_well(bytes) {
            return None;
        }
        let mut reader = Reader {
            text,
            at: 0,
            copied: 0,
            depth: 0,
            is_among_rows: false,
            shape: Vec::with_capacity(bytes.len().min(256)),
            constants: Vec::with_capacity(8),
            places,
        };
        let mut may_have_rows = matches!(bytes.first(), Some(b'i' | b'I' | b'r' | b'R'));
        let mut rows = 1;
        while reader.at < bytes.len() {
            let start = reader.at;
            reader.token()?;
            if may_have_rows
                && reader.depth == 0
                && bytes.get(start..reader.at).is_some_and(begins_rows)
                // There it is the name of a table.
                && start.checked_sub(1).and_then(|before| bytes.get(before)) != Some(&b'.')
                && let Some(count) = reader.rows()?
            {
                rows = count;
                may_have_rows = false;
            }
        }
        reader.copy();
        Some(Template {
            shape: reader.shape,
            constants: reader.constants,
            rows,
        })
    }
}

/// A statement without the spaces and comments around it, as templates are indented and as tracing
/// adds who asks: `SELECT 1 /* trace: 7 */`. A comment inside of it stays: it belongs to labels.
pub fn bare(text: &str) -> &str {
    let mut bare = text.trim_ascii();
    while let Some((inside, behind)) =
        { bare.strip_prefix("/*") }.and_then(|bare| bare.split_once("*/"))
    {
        if !is_passed_over(inside) {
            break;
        }
        bare = behind.trim_ascii_start();
    }
    while let Some((before, inside)) =
        { bare.strip_suffix("*/") }.and_then(|bare| bare.rsplit_once("/*"))
    {
        if !is_passed_over(inside) {
            break;
        }
        // Where it is no comment but ends a text in quotes, the text has no end now, which nobody
        // takes for a statement.
        bare = before.trim_ascii_end();
    }
    bare
}

/// Whether what stands behind `/*` means nothing: no hint, and no statement for some versions.
fn is_passed_over(inside: &str) -> bool {
    !inside.starts_with(['!', '+']) && !inside.starts_with("M!")
}

/// Whether a statement is one on rows, by its first letters.
fn begins_well(bytes: &[u8]) -> bool {
    // REPLACE has a letter more.
    let rows = ["insert", "select", "update", "delete", "replac"];
    let first = bytes.get(..rows[0].len()).unwrap_or_default();
    rows.iter()
        .any(|word| first.eq_ignore_ascii_case(word.as_bytes()))
}

fn begins_rows(token: &[u8]) -> bool {
    token.eq_ignore_ascii_case(b"values") || token.eq_ignore_ascii_case(b"value")
}

/// Where the reading of a statement has come to.
struct Reader<'a, 'p> {
    text: &'a str,
    at: usize,
    /// How much of the text is in the shape, or stands there as something else.
    copied: usize,
    /// Parentheses that are open.
    depth: usize,
    is_among_rows: bool,
    shape: Vec<u8>,
    constants: Vec<Option<Literal<'a>>>,
    /// Where the constants stand, if that is asked for.
    places: Option<&'p mut Vec<Range<usize>>>,
}

impl<'a> Reader<'a, '_> {
    /// Reads one token.
    #[inline]
    fn token(&mut self) -> Option<()> {
        let text = self.text;
        let bytes = text.as_bytes();
        let at = self.at;
        let byte = *bytes.get(at)?;
        let next = bytes.get(at + 1).copied().unwrap_or_default();
        match class_of(byte) {
            Class::Word => {
                let end = end_of_word(bytes, at);
                let word = bytes.get(at..end)?;
                if self.is_among_rows && word.eq_ignore_ascii_case(b"null") {
                    self.constant(None, VALUE, end);
                }
                self.at = end;
            }
            Class::Digit => self.number(at, false)?,
            Class::Minus if next == b'-' => return None,
            // Behind anything else it may be an operator.
            Class::Minus if next.is_ascii_digit() && !has_value_before(bytes, at) => {
                self.number(at + 1, true)?;
            }
            Class::Quote => {
                let (end, has_quotes) = end_of_text(bytes, at)?;
                let inside = text.get(at + 1..end - 1)?;
                let inside = match has_quotes {
                    true => Cow::Owned(unquoted(inside, byte)),
                    false => Cow::Borrowed(inside),
                };
                self.constant(Some(Literal::text(inside)), TEXT, end);
            }
            Class::Name => {
                let length = bytes.get(at + 1..)?.iter().position(|byte| *byte == b'`')?;
                self.at = at + length + 2;
            }
            Class::Slash if next == b'*' => return None,
            Class::Dot if next.is_ascii_digit() => return None,
            Class::Refused => return None,
            class => {
                match class {
                    Class::Open => self.depth += 1,
                    Class::Close => self.depth = self.depth.checked_sub(1)?,
                    _ => {}
                }
                self.at = at + 1;
            }
        }
        Some(())
    }

    /// Takes a number whose digits begin at `start`, behind its sign if it has one.
    #[inline]
    fn number(&mut self, start: usize, is_negative: bool) -> Option<()> {
        let end = end_of_number(self.text.as_bytes(), start)?;
        let number = Literal {
            is_negative,
            ..Literal::number(self.text.get(start..end)?)
        };
        self.constant(Some(number), NUMBER, end);
        Some(())
    }

    /// Takes a constant from here to `end`. Among rows its kind makes no difference.
    #[inline]
    fn constant(&mut self, constant: Option<Literal<'a>>, kind: u8, end: usize) {
        self.copy();
        let kind = if self.is_among_rows { VALUE } else { kind };
        self.shape.push(kind);
        self.constants.push(constant);
        if let Some(places) = &mut self.places {
            places.push(self.at..end);
        }
        self.at = end;
        self.copied = end;
    }

    /// Copies to the shape what was read since the last constant.
    #[inline]
    fn copy(&mut self) {
        let read = self.text.as_bytes().get(self.copied..self.at);
        let read = read.unwrap_or_default();
        match read {
            [one] => self.shape.push(*one),
            _ => self.shape.extend_from_slice(read),
        }
        self.copied = self.at;
    }

    /// Reads rows and how many there are, if there are some; `None` where they are not all of one
    /// form.
    fn rows(&mut self) -> Option<Option<usize>> {
        let bytes = self.text.as_bytes();
        let start = behind_spaces(bytes, self.at);
        if bytes.get(start) != Some(&b'(') {
            return Some(None);
        }
        self.copy();
        let (form, constants) = (self.shape.len(), self.constants.len());
        self.is_among_rows = true;
        self.row(start)?;
        let end = self.shape.len();
        let more = (bytes.len() - self.at) / (self.at - start);
        let width = self.constants.len() - constants;
        // A guess, which a short first row would make too large.
        self.constants.reserve((more * width).min(RESERVED_MAX));
        let mut count = 1;
        loop {
            let comma = behind_spaces(bytes, self.at);
            if bytes.get(comma) != Some(&b',') {
                break;
            }
            self.row(behind_spaces(bytes, comma + 1))?;
            if self.shape.get(end..) != self.shape.get(form..end) {
                return None;
            }
            self.shape.truncate(end);
            count += 1;
        }
        self.shape.push(ROWS);
        self.is_among_rows = false;
        Some(Some(count))
    }

    /// Reads what is in the parentheses that open at `start`.
    fn row(&mut self, start: usize) -> Option<()> {
        if self.text.as_bytes().get(start) != Some(&b'(') {
            return None;
        }
        self.at = start;
        self.copied = start;
        loop {
            self.token()?;
            if self.depth == 0 {
                self.copy();
                return Some(());
            }
        }
    }
}

/// What a byte begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Digit,
    /// A word; digits may go on in it.
    Word,
    Quote,
    Name,
    Open,
    Close,
    Minus,
    Slash,
    Dot,
    /// Something that is left to the parser.
    Refused,
    Other,
}

#[allow(clippy::indexing_slicing, reason = "the compiler runs it")]
static CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'0'..=b'9' => Class::Digit,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$' | 0x80.. => Class::Word,
            b'\'' | b'"' => Class::Quote,
            b'`' => Class::Name,
            b'(' => Class::Open,
            b')' => Class::Close,
            b'-' => Class::Minus,
            b'/' => Class::Slash,
            b'.' => Class::Dot,
            b'@' | b'#' | b'?' | b'\\' | 0..=8 => Class::Refused,
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
};

fn class_of(byte: u8) -> Class {
    // It has all bytes; the compiler knows.
    CLASSES
        .get(usize::from(byte))
        .copied()
        .unwrap_or(Class::Refused)
}

/// Whether a value may stand before a place; not where one must come.
fn has_value_before(bytes: &[u8], at: usize) -> bool {
    let mut before = bytes.get(..at).unwrap_or_default().iter().rev();
    let last = before.find(|byte| !byte.is_ascii_whitespace());
    !matches!(last, Some(b'(' | b',' | b'=' | b'<' | b'>'))
}

fn behind_spaces(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let length = rest.iter().position(|byte| !byte.is_ascii_whitespace());
    start + length.unwrap_or(rest.len())
}

fn is_of_word(byte: u8) -> bool {
    matches!(class_of(byte), Class::Word | Class::Digit)
}

fn end_of_word(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let length = rest.iter().position(|byte| !is_of_word(*byte));
    start + length.unwrap_or(rest.len())
}

/// The end of `12`, `1.5` or `2e-3`; `None` for what goes on as a word does (`0x41`, `1a`).
fn end_of_number(bytes: &[u8], start: usize) -> Option<usize> {
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
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

/// The end of a text behind its closing quote, and whether there are quotes in it, written twice;
/// `None` where something is escaped by a backslash, or the quote is missing.
fn end_of_text(bytes: &[u8], start: usize) -> Option<(usize, bool)> {
    let quote = *bytes.get(start)?;
    let mut at = start + 1;
    let mut has_quotes = false;
    loop {
        let inside = bytes.get(at..)?;
        at += inside
            .iter()
            .position(|byte| *byte == quote || *byte == b'\\')?;
        if bytes.get(at) == Some(&b'\\') {
            return None;
        }
        if bytes.get(at + 1) != Some(&quote) {
            return Some((at + 1, has_quotes));
        }
        has_quotes = true;
        at += 2;
    }
}

/// A text whose quotes are written twice.
fn unquoted(inside: &str, quote: u8) -> String {
    let quote = char::from(quote).to_string();
    inside.replace(&quote.repeat(2), &quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled<'a>(template: &'a Template<'_>) -> Vec<&'a str> {
        let constants = template.constants.iter();
        constants
            .map(|constant| constant.as_ref().map_or("NULL", |found| &found.spelled))
            .collect()
    }

    #[test]
    fn rows_are_in_a_shape_once() {
        let one = Template::read("INSERT INTO t VALUES (1, 'a')").unwrap();
        let three = "INSERT INTO t VALUES (2, 'b'),(NULL, \"it's\") ,\n ('3', -4.5e1)";
        let three = Template::read(three).unwrap();
        assert_eq!(one.shape, three.shape);
        assert_eq!((one.rows, three.rows), (1, 3));
        assert_eq!(spelled(&one), ["1", "a"]);
        assert_eq!(spelled(&three), ["2", "b", "NULL", "it's", "3", "4.5e1"]);
        assert!(three.constants[5].as_ref().unwrap().is_negative);
        assert!(three.constants[4].as_ref().unwrap().is_text);
    }

    #[test]
    fn other_rows_have_other_shapes() {
        let shape = |text| Template::read(text).map(|template| template.shape);
        let plain = shape("INSERT INTO t VALUES (1, 2)");
        for other in [
            "INSERT INTO t VALUES (1, DEFAULT)",
            "INSERT INTO t VALUES (1 -2)",
            "INSERT INTO t VALUES (1, -(2))",
            "INSERT INTO t VALUES (1, (2))",
            "INSERT INTO t VALUES (1, x'2')",
            "INSERT INTO t VALUES (1, nulls)",
            "INSERT INTO t VALUES (1, 2) AS new",
            "INSERT INTO t (a, b) VALUES (1, 2)",
            "INSERT INTO t SELECT 1, 2",
            "REPLACE INTO t VALUES (1, 2)",
        ] {
            assert!(shape(other).is_some(), "{other}");
            assert_ne!(shape(other), plain, "{other}");
        }
        for none in [
            "INSERT INTO t VALUES (1, 2), (1, DEFAULT)",
            "INSERT INTO t VALUES (1, 2), (1, 2, 3)",
            "INSERT INTO t VALUES (1, 2), ROW (1, 2)",
            "INSERT INTO t VALUES (1, 2), (1, 2",
            "INSERT INTO t VALUES (1, 2))",
            "INSERT INTO t VALUES (1, 'a\\n')",
            "INSERT INTO t VALUES (1, --2)",
            "REPLICATE INTO t VALUES (1, 2)",
        ] {
            assert_eq!(shape(none), None, "{none}");
        }
    }

    #[test]
    fn spaces_and_comments_around_a_statement_make_no_difference() {
        let shape = |text| Template::read(text).map(|template| template.shape);
        let plain = shape("SELECT a FROM t WHERE b = 'x /* y'");
        assert!(plain.is_some());
        for same in [
            "\n\t  SELECT a FROM t WHERE b = 'x'\r\n",
            "/* a */ /**/SELECT a FROM t WHERE b = 'x' /* trace: 00-4b-01 */ /* - */",
            "SELECT a FROM t WHERE b = '/*' /*' */",
        ] {
            assert_eq!(shape(same), plain, "{same}");
        }
        for none in [
            "/*+ a */ SELECT a FROM t WHERE b = 'x'",
            "/*/ SELECT a FROM t WHERE b = 'x'",
            "SELECT a FROM t WHERE b = 'x' /*!50000 AND 1 */",
            "SELECT a FROM t WHERE b = 'x' /*M!100000 AND 1 */",
            "SELECT a /* b */ FROM t WHERE b = 'x'",
            "SELECT a FROM t WHERE b = '/* x */",
            "SELECT a FROM t WHERE b = 'x' -- /* y */",
            "/* SELECT a FROM t WHERE b = 'x' */",
        ] {
            assert_eq!(shape(none), None, "{none}");
        }
    }

    #[test]
    fn a_quote_written_twice_is_one() {
        let text = r#"UPDATE t SET a = 'it''s', b = "''""", c = '' WHERE id = 1"#;
        let template = Template::read(text).unwrap();
        assert_eq!(spelled(&template), ["it's", "''\"", "", "1"]);
    }

    #[test]
    fn a_minus_is_a_sign_where_no_value_stands_before_it() {
        let signs = |text: &str| {
            let template = Template::read(text).unwrap();
            let constants = template.constants.into_iter().flatten();
            constants.map(|found| found.is_negative).collect::<Vec<_>>()
        };
        assert_eq!(signs("SELECT a FROM t WHERE id = -1"), [true]);
        assert_eq!(signs("SELECT a FROM t WHERE id=-1"), [true]);
        assert_eq!(signs("UPDATE t SET a = a -1 WHERE id = 2"), [false, false]);
        for operator in ["<", ">", "<=", ">=", "<>", "!=", "<=>"] {
            for space in ["", " "] {
                let text = format!("SELECT a FROM t WHERE id {operator}{space}-1");
                assert_eq!(signs(&text), [true], "{text}");
            }
        }
        assert_eq!(signs("SELECT a FROM t WHERE id > - 1"), [false]);
        assert_eq!(signs("SELECT a FROM t WHERE a > b -1"), [false]);
        assert_eq!(
            signs("INSERT INTO t VALUES (-1,-2, 3-4)"),
            [true, true, false, false]
        );
    }
}
