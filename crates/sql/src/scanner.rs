//! A text cut into lexemes: where words, literals, comments and `;` lie.
//!
//! What must be known of a text before it is read as a statement is found here without a copy of
//! it: where its statements end, where its parameters stand, which comments are for this version.
//! Tokens are for the parser: they take some fifty times as much memory as their text.
//!
//! ```text
//!   SELECT 'a;b' /*!80000 , ? */ ; # so
//!   W      Q     M        , ? M  ; C         spaces between them
//! ```
//!
//! **Never** refuses anything: a literal or a comment without an end reaches to that of the text.
//!
//! **Cost**: a look at each byte. A lexeme is no longer than [`LEXEME_BYTES_MAX`]: a literal, a
//! comment or a run of spaces that is longer comes as several, so that whoever scans a long text
//! can let others go on in between.

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::ops::Range;

/// Bytes of the longest lexeme.
pub(crate) const LEXEME_BYTES_MAX: usize = 64 << 10;

/// The version of MySQL whose text is read, as a version comment writes it.
const VERSION: u64 = 80_499;
/// Digits of a version in a comment; fewer are no version.
const VERSION_DIGITS_MIN: usize = 5;
const VERSION_DIGITS_MAX: usize = 6;

/// What a lexeme is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lexeme {
    /// Letters, digits and the like, begun by no digit.
    Word,
    /// The same, begun by a digit.
    Number,
    /// A literal, or a name in backticks, or a part of one.
    Quoted,
    Space,
    /// A comment, or a part of one.
    Comment,
    /// The same where it is for later versions.
    Later,
    /// What begins or ends a comment that is for this version: `/*!`, `/*!80000` and `*/`.
    Mark,
    /// `;`
    End,
    /// `?`
    Parameter,
    /// `,`
    Comma,
    /// Any other character.
    Other,
}

impl Lexeme {
    /// Whether it means nothing to a statement.
    pub(crate) fn is_blank(self) -> bool {
        matches!(
            self,
            Lexeme::Space | Lexeme::Comment | Lexeme::Later | Lexeme::Mark
        )
    }
}

/// What a lexeme is part of that goes on behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Nothing,
    Quote(u8),
    /// Ended by `*/`; what it is.
    Comment(Lexeme),
    /// Ended by a line end.
    LineComment,
}

/// Cuts a text into lexemes.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    open: Open,
    is_in_version: bool,
    /// Whether a backslash stands for itself in double quotes.
    has_ansi_quotes: bool,
}

impl<'a> Scanner<'a> {
    /// Of a text in any character set whose first 128 characters are those of ASCII, and whose
    /// other bytes are none of them: all that clients may send in.
    pub(crate) fn new(bytes: &'a [u8]) -> Scanner<'a> {
        Scanner {
            bytes,
            at: 0,
            open: Open::Nothing,
            is_in_version: false,
            has_ansi_quotes: false,
        }
    }

    /// The same where double quotes may enclose names.
    pub(crate) fn of_mode(bytes: &'a [u8], has_ansi_quotes: bool) -> Scanner<'a> {
        Scanner {
            has_ansi_quotes,
            ..Scanner::new(bytes)
        }
    }

    /// Whether what was read last is a part of a literal or a name that goes on.
    pub(crate) fn is_in_quote(&self) -> bool {
        matches!(self.open, Open::Quote(_))
    }

    /// Whether a literal or a comment has no end, when the text has been read.
    pub(crate) fn is_unterminated(&self) -> bool {
        matches!(self.open, Open::Quote(_) | Open::Comment(_)) || self.is_in_version
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Goes on by so many bytes.
    fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count).min(self.bytes.len());
    }

    /// Goes on as long as the bytes are of a kind, up to the length of a lexeme.
    fn skip_while(&mut self, is_of_kind: impl Fn(u8) -> bool) {
        self.skip_at_most(LEXEME_BYTES_MAX, is_of_kind);
    }

    fn skip_at_most(&mut self, most: usize, is_of_kind: impl Fn(u8) -> bool) {
        let mut bytes = self.rest().iter().take(most);
        let end = bytes.position(|byte| !is_of_kind(*byte));
        self.skip(end.unwrap_or(most));
    }

    /// Reads a part of what is open.
    fn go_on(&mut self) -> Lexeme {
        match self.open {
            Open::Quote(quote) => {
                self.quoted(quote);
                Lexeme::Quoted
            }
            Open::Comment(lexeme) => {
                self.skip_while(|byte| byte != b'*');
                if self.rest().starts_with(b"*/") {
                    self.skip(2);
                    self.open = Open::Nothing;
                } else if self.rest().starts_with(b"*") {
                    self.skip(1);
                }
                lexeme
            }
            Open::LineComment => {
                self.skip_while(|byte| byte != b'\n');
                if self.rest().first().is_none_or(|byte| *byte == b'\n') {
                    self.open = Open::Nothing;
                }
                Lexeme::Comment
            }
            Open::Nothing => Lexeme::Space,
        }
    }

    /// A quote that is doubled opens another literal at once, which comes to the same.
    fn quoted(&mut self, quote: u8) {
        let escapes = quote == b'\'' || quote == b'"' && !self.has_ansi_quotes;
        let end = self.at.saturating_add(LEXEME_BYTES_MAX);
        while self.at < end {
            let left = end.saturating_sub(self.at);
            self.skip_at_most(left, |byte| byte != quote && !(byte == b'\\' && escapes));
            match self.rest().first() {
                Some(byte) if *byte == quote => {
                    self.skip(1);
                    self.open = Open::Nothing;
                    return;
                }
                Some(b'\\') if escapes => self.skip(2),
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Begins a comment of several lines.
    fn comment(&mut self) -> Lexeme {
        let Some(version) = self.rest().strip_prefix(b"/*!") else {
            self.skip(2);
            self.open = Open::Comment(Lexeme::Comment);
            return self.go_on();
        };
        let digits = version.iter().take(VERSION_DIGITS_MAX);
        let digits = digits.take_while(|byte| byte.is_ascii_digit()).count();
        let number = version
            .get(..digits)
            .filter(|_| digits >= VERSION_DIGITS_MIN);
        let number = number.and_then(|digits| std::str::from_utf8(digits).ok());
        let number = number.and_then(|digits| digits.parse::<u64>().ok());
        if number.is_some_and(|version| version > VERSION) {
            self.skip(2);
            self.open = Open::Comment(Lexeme::Later);
            return self.go_on();
        }
        let digits = if number.is_some() { digits } else { 0 };
        self.skip(digits.saturating_add(3));
        self.is_in_version = true;
        Lexeme::Mark
    }

    /// Reads what begins here.
    fn begin(&mut self, first: u8) -> Lexeme {
        let rest = self.rest();
        match first {
            b'\'' | b'"' | b'`' => {
                self.skip(1);
                self.open = Open::Quote(first);
                self.go_on()
            }
            b'#' => {
                self.open = Open::LineComment;
                self.go_on()
            }
            b'-' if rest.starts_with(b"--") && rest.get(2).is_none_or(|byte| *byte <= b' ') => {
                self.open = Open::LineComment;
                self.go_on()
            }
            b'/' if rest.starts_with(b"/*") => self.comment(),
            b'*' if self.is_in_version && rest.starts_with(b"*/") => {
                self.skip(2);
                self.is_in_version = false;
                Lexeme::Mark
            }
            _ if first.is_ascii_whitespace() || first == 0x0B => {
                self.skip_while(|byte| byte.is_ascii_whitespace() || byte == 0x0B);
                Lexeme::Space
            }
            _ if is_of_word(first) => {
                self.skip_while(is_of_word);
                match first.is_ascii_digit() {
                    true => Lexeme::Number,
                    false => Lexeme::Word,
                }
            }
            _ => {
                self.skip(1);
                match first {
                    b';' => Lexeme::End,
                    b'?' => Lexeme::Parameter,
                    b',' => Lexeme::Comma,
                    _ => Lexeme::Other,
                }
            }
        }
    }
}

impl Iterator for Scanner<'_> {
    type Item = (Lexeme, Range<usize>);

    fn next(&mut self) -> Option<(Lexeme, Range<usize>)> {
        let start = self.at;
        let first = *self.rest().first()?;
        let lexeme = match self.open {
            Open::Nothing => self.begin(first),
            _ => self.go_on(),
        };
        Some((lexeme, start..self.at))
    }
}

/// All bytes of characters that are not ASCII, too.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@') || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lexemes of a text that are not spaces.
    fn lexemes(text: &str) -> Vec<(Lexeme, &str)> {
        let found = Scanner::new(text.as_bytes()).filter(|(lexeme, _)| *lexeme != Lexeme::Space);
        found
            .map(|(lexeme, range)| (lexeme, &text[range]))
            .collect()
    }

    #[test]
    fn texts_are_cut_into_lexemes() {
        use Lexeme::{Comma, Comment, End, Later, Mark, Number, Other, Parameter, Quoted, Word};
        for (text, expected) in [
            ("", &[][..]),
            (
                "a1 1a ?,;",
                &[
                    (Word, "a1"),
                    (Number, "1a"),
                    (Parameter, "?"),
                    (Comma, ","),
                    (End, ";"),
                ],
            ),
            (
                "'a;\\';' \"b''\" `c\\`;",
                &[
                    (Quoted, "'a;\\';'"),
                    (Quoted, "\"b''\""),
                    (Quoted, "`c\\`"),
                    (End, ";"),
                ],
            ),
            ("'it''s'", &[(Quoted, "'it'"), (Quoted, "'s'")]),
            ("'open;", &[(Quoted, "'open;")]),
            ("'open\\", &[(Quoted, "'open\\")]),
            (
                "# a;\n1--2 -- ;",
                &[
                    (Comment, "# a;"),
                    (Number, "1"),
                    (Other, "-"),
                    (Other, "-"),
                    (Number, "2"),
                    (Comment, "-- ;"),
                ],
            ),
            ("--", &[(Comment, "--")]),
            (
                "/* a **/ */",
                &[
                    (Comment, "/* a *"),
                    (Comment, "*/"),
                    (Other, "*"),
                    (Other, "/"),
                ],
            ),
            (
                "/*!80000 '*/' */ /*!x */ /*!99999 ' */ /*!123 */",
                &[
                    (Mark, "/*!80000"),
                    (Quoted, "'*/'"),
                    (Mark, "*/"),
                    (Mark, "/*!"),
                    (Word, "x"),
                    (Mark, "*/"),
                    (Later, "/*!99999 ' */"),
                    (Mark, "/*!"),
                    (Number, "123"),
                    (Mark, "*/"),
                ],
            ),
            ("\u{e4}\u{2003}b", &[(Word, "\u{e4}\u{2003}b")]),
        ] {
            assert_eq!(lexemes(text), expected, "{text}");
        }
    }

    #[test]
    fn long_lexemes_come_in_parts() {
        let long = "x\\'".repeat(LEXEME_BYTES_MAX);
        for (text, parts) in [
            (format!("'{long}';"), Lexeme::Quoted),
            (format!("/*{long}*/;"), Lexeme::Comment),
            (format!("#{long}\n;"), Lexeme::Comment),
        ] {
            let found: Vec<_> = Scanner::new(text.as_bytes()).collect();
            let lens = found.iter().map(|(_, range)| range.len());
            assert!(lens.max() <= Some(LEXEME_BYTES_MAX + 3), "{parts:?}");
            assert_eq!(found.last().map(|(lexeme, _)| *lexeme), Some(Lexeme::End));
            let inside = found
                .iter()
                .filter(|(lexeme, _)| !matches!(lexeme, Lexeme::Space));
            assert!(inside.clone().count() > 3);
            assert!(inside.rev().skip(1).all(|(lexeme, _)| *lexeme == parts));
        }
    }

    #[test]
    fn what_has_no_end_is_told() {
        for (text, expected) in [
            ("'a", true),
            ("'a'", false),
            ("/* a", true),
            ("# a", false),
            ("/*! a", true),
            ("/*! a */", false),
        ] {
            let mut scanner = Scanner::new(text.as_bytes());
            while scanner.next().is_some() {}
            assert_eq!(scanner.is_unterminated(), expected, "{text}");
        }
    }
}
