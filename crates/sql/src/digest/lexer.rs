//! Cuts a statement into words, names, literals and marks.
//!
//! It takes whatever it is given: a text without an end goes to the end.

use std::ops::Range;

/// Operators of more than one letter, the longer first.
const OPERATORS: [&str; 12] = [
    "<=>", "->>", "!=", "<>", "<=", ">=", "<<", ">>", ":=", "||", "&&", "->",
];

/// What may stand before a text and names its character set.
const INTRODUCERS: [&str; 9] = [
    "_utf8mb4", "_utf8mb3", "_utf8", "_latin1", "_binary", "_ascii", "_ucs2", "_utf16", "_utf32",
];

/// A piece of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lexeme<'a> {
    /// A keyword, or a name without quotes.
    Word(&'a str),
    /// A name that was in quotes.
    Name(&'a str),
    Number,
    /// A text, or a parameter.
    Literal,
    Mark(&'a str),
}

/// Where the reading of a statement has come to.
pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    ansi_quotes: bool,
    /// Whether it is in a comment whose content is run.
    is_in_comment: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str, ansi_quotes: bool) -> Lexer<'a> {
        Lexer {
            text,
            at: 0,
            ansi_quotes,
            is_in_comment: false,
        }
    }

    /// The first byte of what comes next; 0 at the end.
    pub(super) fn next_byte(&mut self) -> u8 {
        self.skip();
        self.byte(0)
    }

    /// The next piece with its place in the text, in bytes; `None` at the end.
    pub(super) fn next_with_place(&mut self) -> Option<(Lexeme<'a>, Range<usize>)> {
        self.skip();
        let start = self.at;
        let lexeme = self.next()?;
        Some((lexeme, start..self.at))
    }

    /// The next piece; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Lexeme<'a>> {
        self.skip();
        let rest = self.rest();
        let first = *rest.as_bytes().first()?;
        Some(match first {
            b'\'' => self.literal(),
            b'"' if !self.ansi_quotes => self.literal(),
            b'"' | b'`' => {
                let start = self.at + 1;
                self.at = self.end_of_quotes(false);
                let end = match self.text.as_bytes().get(self.at - 1) {
                    Some(last) if *last == first && self.at > start => self.at - 1,
                    _ => self.at,
                };
                Lexeme::Name(self.text.get(start..end).unwrap_or_default())
            }
            b'?' => {
                self.at += 1;
                Lexeme::Literal
            }
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_ascii_digit() => self.number(),
            _ if is_of_word(first) => self.word(),
            _ => {
                let known = { OPERATORS.iter() }.find(|operator| rest.starts_with(**operator));
                let length = known.map_or(1, |operator| operator.len());
                let length = if rest.starts_with("@@") { 2 } else { length };
                self.at += length;
                match rest.get(..length).unwrap_or_default() {
                    "<>" => Lexeme::Mark("!="),
                    mark => Lexeme::Mark(mark),
                }
            }
        })
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// A byte behind this place; 0 behind the end.
    fn byte(&self, offset: usize) -> u8 {
        let bytes = self.text.as_bytes();
        bytes.get(self.at + offset).copied().unwrap_or_default()
    }

    /// How many bytes from an offset on are of a kind.
    fn run(&self, offset: usize, is: fn(&u8) -> bool) -> usize {
        let bytes = self.text.as_bytes().get(self.at + offset..);
        let bytes = bytes.unwrap_or_default();
        bytes.iter().take_while(|byte| is(byte)).count()
    }

    /// Goes behind spaces and comments.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let blank = self.run(0, |byte| *byte <= b' ');
            let is_line = rest.starts_with('#') || (rest.starts_with("--") && self.byte(2) <= b' ');
            if blank > 0 {
                self.at += blank;
            } else if is_line {
                self.at += self.run(0, |byte| *byte != b'\n');
            } else if rest.starts_with("/*!") {
                self.at += 3;
                self.at += self.run(0, u8::is_ascii_digit);
                self.is_in_comment = true;
            } else if rest.starts_with("/*") {
                let end = rest.get(2..).and_then(|inside| inside.find("*/"));
                self.at += end.map_or(rest.len(), |end| end + 4);
            } else if self.is_in_comment && rest.starts_with("*/") {
                self.at += 2;
                self.is_in_comment = false;
            } else {
                return;
            }
        }
    }

    /// The place behind what is in quotes here.
    fn end_of_quotes(&self, has_escapes: bool) -> usize {
        let bytes = self.text.as_bytes();
        let quote = self.byte(0);
        let mut at = self.at + 1;
        while let Some(byte) = bytes.get(at) {
            if *byte == b'\\' && has_escapes {
                at += 2;
            } else if *byte != quote {
                at += 1;
            } else if bytes.get(at + 1) == Some(&quote) {
                at += 2;
            } else {
                return at + 1;
            }
        }
        bytes.len()
    }

    fn literal(&mut self) -> Lexeme<'a> {
        self.at = self.end_of_quotes(true);
        Lexeme::Literal
    }

    fn number(&mut self) -> Lexeme<'a> {
        let digits = self.run(0, u8::is_ascii_digit);
        let word = self.run(0, |byte| is_of_word(*byte));
        let prefix = self.rest().get(..2).unwrap_or_default();
        if matches!(prefix, "0x" | "0b") && word > 2 {
            self.at += word;
            return Lexeme::Number;
        }
        let mut length = digits;
        if self.byte(length) == b'.' {
            length += 1 + self.run(length + 1, u8::is_ascii_digit);
        }
        if matches!(self.byte(length), b'e' | b'E') {
            let sign = usize::from(matches!(self.byte(length + 1), b'+' | b'-'));
            let exponent = self.run(length + 1 + sign, u8::is_ascii_digit);
            if exponent > 0 {
                length += 1 + sign + exponent;
            }
        }
        // Names may begin with digits.
        if word > length {
            return self.word();
        }
        self.at += length;
        Lexeme::Number
    }

    fn word(&mut self) -> Lexeme<'a> {
        let length = self.run(0, |byte| is_of_word(*byte));
        let word = self.rest().get(..length).unwrap_or_default();
        let is = |other: &&str| other.eq_ignore_ascii_case(word);
        let quote = self.byte(length);
        if matches!(quote, b'\'' | b'"') && ["x", "b", "n"].iter().any(is) {
            self.at += length;
            self.literal();
            return match word {
                "n" | "N" => Lexeme::Literal,
                _ => Lexeme::Number,
            };
        }
        let spaces = self.run(length, |byte| *byte == b' ');
        if matches!(self.byte(length + spaces), b'\'' | b'"') && INTRODUCERS.iter().any(is) {
            self.at += length + spaces;
            return self.literal();
        }
        self.at += length;
        Lexeme::Word(word)
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..)
}
