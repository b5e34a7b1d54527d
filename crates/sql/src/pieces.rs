//! Texts of clients that are not one statement yet: several statements in one text, and statements
//! with parameters.
//!
//! **Owns** where a text is cut and how a value is spelled in its place. **Never** reads a
//! statement: that is `parse`.

use std::fmt::Write;

use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};
use mayfly_types::{ErrorCode, MySqlError};

use crate::dialect::MayflyDialect;

/// The first statement of a text, and what follows behind its `;` if that is more than space.
///
/// A text that cannot be cut is one statement: its parser will say why.
pub fn first_statement(text: &str) -> (&str, Option<&str>) {
    let body = text.trim_end().trim_end_matches(';');
    if !body.contains(';') {
        return (text, None);
    }
    let dialect = MayflyDialect;
    let Ok(tokens) = Tokenizer::new(&dialect, text).tokenize_with_location() else {
        return (text, None);
    };
    let is_more = |token: &&TokenWithSpan| {
        !matches!(
            token.token,
            Token::Whitespace(_) | Token::SemiColon | Token::EOF
        )
    };
    let Some(first) = tokens.iter().position(|token| is_more(&token)) else {
        return (text, None);
    };
    let ends = |token: &TokenWithSpan| token.token == Token::SemiColon;
    let Some(end) = tokens[first..].iter().position(ends) else {
        return (text, None);
    };
    let Some(next) = tokens[first + end..].iter().find(is_more) else {
        return (text, None);
    };
    let end = tokens[first + end].span.start;
    let places = offsets(text, &[end, next.span.start]);
    (&text[..places[0]], Some(&text[places[1]..]))
}

/// A statement cut at its parameters, each of which is a `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parametrized {
    /// What stands before, between and behind the parameters.
    pieces: Vec<String>,
    /// Whether each parameter counts rows: it stands in a LIMIT.
    counts_rows: Vec<bool>,
}

/// The value of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Parameter<'a> {
    /// NULL.
    Null,
    /// A whole number.
    Integer(i64),
    /// The same without a sign.
    Unsigned(u64),
    /// A DOUBLE.
    Double(f64),
    /// A DECIMAL as it is spelled.
    Decimal(&'a str),
    /// A text, or a date or time as text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl Parametrized {
    /// Cuts a statement.
    ///
    /// # Errors
    /// 1064 for a text that is no sequence of tokens.
    pub fn read(text: &str) -> Result<Parametrized, MySqlError> {
        let dialect = MayflyDialect;
        let tokens = Tokenizer::new(&dialect, text)
            .tokenize_with_location()
            .map_err(|error| {
                let Location { line, column } = error.location;
                crate::parse::syntax_error(text, line, column)
            })?;
        let mut locations = Vec::new();
        let mut counts_rows = Vec::new();
        let mut is_in_limit = false;
        for token in &tokens {
            match &token.token {
                Token::Placeholder(_) => {
                    locations.push(token.span.start);
                    counts_rows.push(is_in_limit);
                }
                Token::Word(word) if word.quote_style.is_none() => {
                    let is_word = |other: &str| word.value.eq_ignore_ascii_case(other);
                    is_in_limit = is_word("LIMIT") || is_word("OFFSET");
                }
                Token::Comma | Token::Whitespace(_) | Token::Number(..) => {}
                _ => is_in_limit = false,
            }
        }
        let mut pieces = Vec::with_capacity(locations.len() + 1);
        let mut from = 0;
        for at in offsets(text, &locations) {
            pieces.push(text[from..at].to_owned());
            from = at + 1;
        }
        pieces.push(text[from..].to_owned());
        Ok(Parametrized {
            pieces,
            counts_rows,
        })
    }

    /// The number of parameters.
    pub fn count(&self) -> usize {
        self.counts_rows.len()
    }

    /// The statement with values in the places of its parameters.
    ///
    /// # Errors
    /// 1210 if there are not as many values as parameters, or one has no spelling.
    pub fn with(&self, values: &[Parameter<'_>]) -> Result<String, MySqlError> {
        if values.len() != self.count() {
            return Err(wrong_arguments());
        }
        let bytes: usize = self.pieces.iter().map(String::len).sum();
        let mut text = String::with_capacity(bytes + 16 * values.len());
        for (piece, value) in self.pieces.iter().zip(values) {
            text.push_str(piece);
            value.spell(&mut text)?;
        }
        text.extend(self.pieces.last().map(String::as_str));
        Ok(text)
    }

    /// The statement with values that fit wherever they stand: it has the columns of the statement,
    /// and is not to be run.
    pub fn with_nothing(&self) -> String {
        let mut text = String::new();
        for (piece, counts_rows) in self.pieces.iter().zip(&self.counts_rows) {
            text.push_str(piece);
            text.push_str(if *counts_rows { "1" } else { "NULL" });
        }
        text.extend(self.pieces.last().map(String::as_str));
        text
    }
}

fn wrong_arguments() -> MySqlError {
    MySqlError::new(ErrorCode::WrongArguments, &[&"mysqld_stmt_execute"])
}

impl Parameter<'_> {
    fn spell(&self, text: &mut String) -> Result<(), MySqlError> {
        // A minus behind a minus would begin a comment.
        if text.ends_with('-') {
            text.push(' ');
        }
        let written = match self {
            Parameter::Null => write!(text, "NULL"),
            Parameter::Integer(number) => write!(text, "{number}"),
            Parameter::Unsigned(number) => write!(text, "{number}"),
            Parameter::Double(number) if number.is_finite() => write!(text, "{number:e}"),
            Parameter::Double(_) => return Err(wrong_arguments()),
            Parameter::Decimal(digits) => {
                let is_number = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
                if digits.is_empty() || !digits.bytes().all(is_number) {
                    return Err(wrong_arguments());
                }
                write!(text, "{digits}")
            }
            Parameter::Text(value) => {
                quote(value, text);
                Ok(())
            }
            Parameter::Bytes(bytes) => {
                text.push_str("x'");
                for byte in *bytes {
                    let _ = write!(text, "{byte:02x}");
                }
                text.push('\'');
                Ok(())
            }
        };
        written.map_err(|_| wrong_arguments())
    }
}

fn quote(value: &str, text: &mut String) {
    text.push('\'');
    let mut rest = value;
    while let Some(at) = rest.find(['\'', '\\']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        text.push_str(&from[..1]);
        text.push_str(&from[..1]);
        rest = &from[1..];
    }
    text.push_str(rest);
    text.push('\'');
}

/// Byte offsets of ascending places that the tokenizer names by line and column, in one pass.
fn offsets(text: &str, places: &[Location]) -> Vec<usize> {
    let mut found = Vec::with_capacity(places.len());
    let mut places = places.iter().peekable();
    let (mut line, mut column) = (1, 1);
    for (at, character) in text.char_indices() {
        while places
            .next_if(|place| (place.line, place.column) == (line, column))
            .is_some()
        {
            found.push(at);
        }
        match character {
            '\n' => (line, column) = (line + 1, 1),
            _ => column += 1,
        }
    }
    found.extend(places.map(|_| text.len()));
    found
}

#[cfg(test)]
mod tests {
    use super::{Parameter, Parametrized, first_statement};

    #[test]
    fn a_text_is_cut_behind_its_first_statement() {
        for (text, first, rest) in [
            ("SELECT 1", "SELECT 1", None),
            ("SELECT 1;", "SELECT 1;", None),
            ("SELECT 1; -- so\n ; ", "SELECT 1; -- so\n ; ", None),
            ("SELECT 1; SELECT 2;", "SELECT 1", Some("SELECT 2;")),
            (
                ";; SELECT 1;\nSELECT 'a;b'",
                ";; SELECT 1",
                Some("SELECT 'a;b'"),
            ),
            (
                "SELECT 'a;b', `c;d` /* ; */",
                "SELECT 'a;b', `c;d` /* ; */",
                None,
            ),
            ("SELECT 'ä;'; SELECT 2", "SELECT 'ä;'", Some("SELECT 2")),
            ("SELECT 'open; SELECT 2", "SELECT 'open; SELECT 2", None),
        ] {
            assert_eq!(first_statement(text), (first, rest), "{text}");
        }
    }

    #[test]
    fn values_stand_where_parameters_stood() {
        let text = "SELECT ?, '?', `?` /* ? */ -?, ä FROM t\nWHERE a IN (?, ?, ?) LIMIT ?, ?";
        let cut = Parametrized::read(text).expect("tokens");
        assert_eq!(cut.count(), 7);
        let values = [
            Parameter::Text("it's \\ here"),
            Parameter::Integer(-5),
            Parameter::Null,
            Parameter::Double(0.1),
            Parameter::Bytes(b"\0\xFF"),
            Parameter::Unsigned(2),
            Parameter::Unsigned(3),
        ];
        assert_eq!(
            cut.with(&values).expect("spelled"),
            "SELECT 'it''s \\\\ here', '?', `?` /* ? */ - -5, ä FROM t\n\
             WHERE a IN (NULL, 1e-1, x'00ff') LIMIT 2, 3"
        );
        assert_eq!(
            cut.with_nothing(),
            "SELECT NULL, '?', `?` /* ? */ -NULL, ä FROM t\n\
             WHERE a IN (NULL, NULL, NULL) LIMIT 1, 1"
        );
        assert!(cut.with(&values[1..]).is_err());
        let one = Parametrized::read("SELECT ?").expect("tokens");
        for refused in [
            Parameter::Double(f64::NAN),
            Parameter::Decimal("1; DROP TABLE t"),
            Parameter::Decimal(""),
        ] {
            assert!(one.with(&[refused]).is_err(), "{refused:?}");
        }
    }
}
