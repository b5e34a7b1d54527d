//! Names in double quotes, as `sql_mode` ANSI_QUOTES has them: statements are read, and definitions
//! shown, by exchanging the quotes. Everything behind knows backticks alone.
//!
//! ```text
//!   SELECT "a""b" FROM "t`u"   <->   SELECT `a"b` FROM `t``u`
//! ```

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::borrow::Cow;

use crate::scanner::{Lexeme, Scanner};

/// The text of a client under ANSI_QUOTES, with its names in backticks.
pub fn read(text: &str) -> Cow<'_, str> {
    exchanged(text, Scanner::of_mode(text.as_bytes(), true), b'"', b'`')
}

/// A definition with its names in double quotes.
pub fn shown(text: &str) -> String {
    exchanged(text, Scanner::new(text.as_bytes()), b'`', b'"').into_owned()
}

/// A text with one kind of quotes in the place of another. **Cost**: one pass.
fn exchanged<'a>(text: &'a str, mut scanner: Scanner<'a>, old: u8, new: u8) -> Cow<'a, str> {
    let mut out = Vec::with_capacity(text.len());
    // The quote that the lexeme before is a part of, if it has no end yet.
    let mut open = None;
    // Where the last name ended: a quote right there is one of the name.
    let mut ended = None;
    while let Some((lexeme, range)) = scanner.next() {
        let part = text.as_bytes().get(range.clone()).unwrap_or_default();
        let quote = match lexeme {
            Lexeme::Quoted => open.or(part.first().copied()),
            _ => None,
        };
        let begins = open.is_none();
        open = quote.filter(|_| scanner.is_in_quote());
        if quote != Some(old) {
            // Two names side by side stay two.
            if begins && quote == Some(new) && ended == Some(range.start) {
                out.push(b' ');
            }
            out.extend_from_slice(part);
            continue;
        }
        let mut name = part;
        if begins {
            name = name.get(1..).unwrap_or_default();
            if ended == Some(range.start) {
                out.pop();
                out.push(old);
            } else {
                if out.last() == Some(&new) {
                    out.push(b' ');
                }
                out.push(new);
            }
        }
        if open.is_none() {
            name = name.strip_suffix(&[old]).unwrap_or(name);
        }
        for byte in name {
            out.push(*byte);
            if *byte == new {
                out.push(new);
            }
        }
        if open.is_none() {
            out.push(new);
            ended = Some(range.end);
        }
    }
    match String::from_utf8(out) {
        Ok(out) => Cow::Owned(out),
        // Only whole characters were moved.
        Err(_) => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_backticks() {
        for (text, expected) in [
            ("SELECT \"a\" FROM \"t\"", "SELECT `a` FROM `t`"),
            ("\"a\"\"b\"", "`a\"b`"),
            ("\"\"\"\"", "`\"`"),
            ("\"\"", "``"),
            ("\"t`u\" `v`", "`t``u` `v`"),
            ("'\"a\"' \"b\"", "'\"a\"' `b`"),
            ("'it''s \"' \"b'\"", "'it''s \"' `b'`"),
            ("\"a\\\" -- \"b\"", "`a\\` -- \"b\""),
            ("/* \"a\" */ \"b\" # \"c\"", "/* \"a\" */ `b` # \"c\""),
            ("/*!40000 \"a\" */", "/*!40000 `a` */"),
            ("@\"x\"", "@`x`"),
            ("\"a\"`b`", "`a` `b`"),
            ("`a`\"b\"", "`a` `b`"),
            ("\"a\"\"b\"`c``d`", "`a\"b` `c``d`"),
            ("\"\"`b`", "`` `b`"),
            ("\"\u{e4}\" \"open", "`\u{e4}` `open"),
            ("SELECT 1", "SELECT 1"),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn definitions_are_shown_in_double_quotes() {
        for (text, expected) in [
            ("`a` 'x`y`' `b\"c`", "\"a\" 'x`y`' \"b\"\"c\""),
            ("`a``b`", "\"a`b\""),
            ("DEFAULT 'it\\'s `' `c`", "DEFAULT 'it\\'s `' \"c\""),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn long_names_stay_whole() {
        let long = "\u{e4}`".repeat(crate::scanner::LEXEME_BYTES_MAX);
        let read = read(&format!("SELECT \"{long}\", \"b\"")).into_owned();
        let expected = long.replace('`', "``");
        assert_eq!(read, format!("SELECT `{expected}`, `b`"));
    }
}
