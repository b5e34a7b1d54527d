//! Texts of clients that are not one statement yet: several statements in one text, and statements
//! with parameters.
//!
//! **Owns** where a text is cut and how a value is spelled in its place. **Never** reads a
//! statement: that is `parse`.

use std::fmt::Write;
use std::ops::Range;

use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer};
use mayfly_types::{ErrorCode, MySqlError};

use crate::dialect::MayflyDialect;
use crate::parse;

/// The statements of a text: the ranges between its `;` that hold more than space and comments.
///
/// A text that cannot be cut is one statement: its parser will say why.
///
/// **Cost**: one pass over the text, and its tokens if there is a `;` before its end.
pub fn statements(text: &str) -> Vec<Range<usize>> {
    let whole = || std::iter::once(0..text.len()).collect();
    let body = text.trim_end().trim_end_matches(';');
    if !body.contains(';') {
        return whole();
    }
    let read = parse::without_version_comments(text);
    let read = read.as_deref().unwrap_or(text);
    let dialect = MayflyDialect;
    let Ok(tokens) = Tokenizer::new(&dialect, read).tokenize_with_location() else {
        return whole();
    };
    let ends = tokens
        .iter()
        .filter(|token| token.token == Token::SemiColon);
    let ends: Vec<Location> = ends.map(|token| token.span.start).collect();
    let mut ends = offsets(read, &ends).into_iter();
    let (mut found, mut from, mut is_empty) = (Vec::new(), 0, true);
    let mut missing = None;
    for token in &tokens {
        match token.token {
            Token::SemiColon => {
                let end = ends.next().unwrap_or(text.len());
                if !is_empty {
                    found.push(from..end);
                } else if missing.is_none() && text[from..end].trim().is_empty() {
                    missing = Some(from);
                }
                (from, is_empty) = (end + 1, true);
            }
            Token::Whitespace(_) | Token::EOF => {}
            _ => {
                // Nothing at all between two ends: the first of what follows is no statement.
                if let Some(from) = missing {
                    found.push(from..text.len());
                    return found;
                }
                is_empty = false;
            }
        }
    }
    if !is_empty {
        found.push(from..text.len());
    }
    match found.is_empty() {
        true => whole(),
        false => found,
    }
}

/// What stands for a parameter whose value is not known: NULL, which tells itself apart from one
/// that was written.
const NOTHING: &str = "/*?*/NULL/*?*/";
const COMMENT_BYTES: usize = 5;

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
        let read = parse::without_version_comments(text);
        let text = read.as_deref().unwrap_or(text);
        let refused = |at: Location| parse::syntax_error(text, at.line, at.column);
        let dialect = MayflyDialect;
        let tokens = Tokenizer::new(&dialect, text)
            .tokenize_with_location()
            .map_err(|error| refused(error.location))?;
        let mut locations = Vec::new();
        let mut counts_rows = Vec::new();
        let mut is_in_limit = false;
        for token in &tokens {
            match &token.token {
                Token::Placeholder(name) if name != "?" => return Err(refused(token.span.start)),
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
        for (at, location) in offsets(text, &locations).into_iter().zip(&locations) {
            if text.as_bytes().get(at) != Some(&b'?') {
                return Err(refused(*location));
            }
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
        let mut values = values.iter();
        self.filled(|counts_rows, text| match (values.next(), counts_rows) {
            (Some(value), true) => value.spell_count(text),
            (Some(value), false) => value.spell(text),
            (None, _) => Err(wrong_arguments()),
        })
    }

    /// The statement with values that fit wherever they stand: it has the columns of the statement,
    /// and is not to be run.
    ///
    /// # Errors
    /// None.
    pub fn with_nothing(&self) -> Result<String, MySqlError> {
        self.filled(|counts_rows, text| {
            text.push_str(if counts_rows { "1" } else { NOTHING });
            Ok(())
        })
    }

    /// A label or a message of the statement [`with_nothing`](Self::with_nothing), with its
    /// parameters as they were asked for. `text` is the statement.
    pub fn as_asked(&self, told: &str, text: &str) -> String {
        if self.count() == 0 {
            return told.to_owned();
        }
        // All that is left of a parameter that is a column of its own.
        if told == "NULL" && !text.to_ascii_uppercase().contains("NULL") {
            return "?".to_owned();
        }
        // A label begins and ends with a word, without the comment.
        let parts = [
            NOTHING,
            &NOTHING[COMMENT_BYTES..],
            &NOTHING[..NOTHING.len() - COMMENT_BYTES],
        ];
        let mut asked = told.to_owned();
        for part in parts {
            for found in [
                format!(" {part} "),
                format!("{part} "),
                format!(" {part}"),
                part.to_owned(),
            ] {
                asked = asked.replace(&found, "?");
            }
        }
        asked
    }

    /// The statement with something written for each parameter, which is a word of its own whatever
    /// stands beside it.
    fn filled(
        &self,
        mut write: impl FnMut(bool, &mut String) -> Result<(), MySqlError>,
    ) -> Result<String, MySqlError> {
        let bytes: usize = self.pieces.iter().map(String::len).sum();
        let mut text = String::with_capacity(bytes + 16 * self.count());
        for (piece, counts_rows) in self.pieces.iter().zip(&self.counts_rows) {
            text.push_str(piece);
            text.push(' ');
            write(*counts_rows, &mut text)?;
            text.push(' ');
        }
        text.extend(self.pieces.last().map(String::as_str));
        Ok(text)
    }
}

fn wrong_arguments() -> MySqlError {
    MySqlError::new(ErrorCode::WrongArguments, &[&"mysqld_stmt_execute"])
}

impl Parameter<'_> {
    fn spell(&self, text: &mut String) -> Result<(), MySqlError> {
        let _ = match self {
            Parameter::Null => write!(text, "NULL"),
            Parameter::Integer(number) => write!(text, "{number}"),
            Parameter::Unsigned(number) => write!(text, "{number}"),
            // Clients whose language has one kind of number send all of them so.
            Parameter::Double(number) if is_whole(*number) => write!(text, "{number:.0}"),
            Parameter::Double(number) if number.is_finite() => write!(text, "{number:e}"),
            Parameter::Double(_) => return Err(wrong_arguments()),
            Parameter::Decimal(digits) if is_decimal(digits) => write!(text, "{digits}"),
            Parameter::Decimal(value) | Parameter::Text(value) => {
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
        Ok(())
    }

    /// In a LIMIT: a number, which clients send as a text too.
    fn spell_count(&self, text: &mut String) -> Result<(), MySqlError> {
        let is_count = match self {
            Parameter::Integer(number) => *number >= 0,
            Parameter::Unsigned(_) => true,
            Parameter::Double(number) => is_whole(*number) && *number >= 0.0,
            Parameter::Decimal(digits) | Parameter::Text(digits) => {
                let is_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
                if is_digits && digits.parse::<u64>().is_ok() {
                    text.push_str(digits);
                    return Ok(());
                }
                false
            }
            Parameter::Null | Parameter::Bytes(_) => false,
        };
        match is_count {
            true => self.spell(text),
            false => Err(wrong_arguments()),
        }
    }
}

/// Whether a number has no fraction and all of its digits. Negative zero is a DOUBLE only.
fn is_whole(number: f64) -> bool {
    const EXACT: f64 = (1_u64 << 53) as f64;
    let is_negative_zero = number == 0.0 && number.is_sign_negative();
    number.fract() == 0.0 && number.abs() < EXACT && !is_negative_zero
}

/// Whether a text is a number: digits with a sign, a point and an exponent.
fn is_decimal(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = |text: &str| digits(text.strip_prefix(['+', '-']).unwrap_or(text));
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, Some(exponent)),
        None => (text, None),
    };
    let is_number = match number.split_once('.') {
        Some((whole, fraction)) => unsigned(whole) && digits(fraction),
        None => unsigned(number),
    };
    is_number && exponent.is_none_or(unsigned)
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
    use super::{NOTHING, Parameter, Parametrized, statements};

    #[test]
    fn a_text_is_cut_into_its_statements() {
        for (text, expected) in [
            ("SELECT 1", &["SELECT 1"][..]),
            ("SELECT 1;", &["SELECT 1;"]),
            ("SELECT 1; -- so\n ; ", &["SELECT 1"]),
            ("SELECT 1; SELECT 2;", &["SELECT 1", " SELECT 2"]),
            (
                ";; SELECT 1;\nSELECT 'a;b'",
                &[";; SELECT 1;\nSELECT 'a;b'"],
            ),
            (
                "SELECT 'a;b', `c;d` /* ; */",
                &["SELECT 'a;b', `c;d` /* ; */"],
            ),
            (
                "SELECT '\u{e4};'; SELECT 2",
                &["SELECT '\u{e4};'", " SELECT 2"],
            ),
            ("SELECT 'open; SELECT 2", &["SELECT 'open; SELECT 2"]),
            (
                "SELECT 1; /*!40101 SET NAMES utf8 */; /*!99999 SET a */; SELECT 2",
                &["SELECT 1", " /*!40101 SET NAMES utf8 */", " SELECT 2"],
            ),
            ("; ;", &["; ;"]),
            ("SELECT 1; ; SELECT 2", &["SELECT 1", " ; SELECT 2"]),
        ] {
            let found = statements(text).into_iter().map(|range| &text[range]);
            assert_eq!(found.collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn labels_show_parameters() {
        let text = "SELECT ?, ?+1, concat(?,2), 1+ ?, ? IS NULL";
        let cut = Parametrized::read(text).expect("a statement");
        let told = cut.with_nothing().expect("values that fit");
        assert_eq!(cut.as_asked(&told, text), text);
        for (told, expected) in [
            ("NULL", "NULL"),
            ("NULL/*?*/ +1", "?+1"),
            ("concat( /*?*/NULL/*?*/ ,2)", "concat(?,2)"),
            ("1+  /*?*/NULL", "1+ ?"),
            ("NULL/*?*/  IS NULL", "? IS NULL"),
        ] {
            assert_eq!(cut.as_asked(told, text), expected);
        }
        let cut = Parametrized::read("SELECT ?").expect("a statement");
        assert_eq!(cut.as_asked("NULL", "SELECT ?"), "?");
    }

    #[test]
    fn values_stand_where_parameters_stood() {
        let text = "SELECT ?, '?', `?` /* ? */ -?, \u{e4} FROM t\nWHERE a IN (?, ?,?) LIMIT ?, ?";
        let cut = Parametrized::read(text).expect("tokens");
        assert_eq!(cut.count(), 7);
        let values = [
            Parameter::Text("it's \\ here"),
            Parameter::Integer(-5),
            Parameter::Null,
            Parameter::Double(0.1),
            Parameter::Bytes(b"\0\xFF"),
            Parameter::Double(2.0),
            Parameter::Text("3"),
        ];
        assert_eq!(
            cut.with(&values).expect("spelled"),
            "SELECT  'it''s \\\\ here' , '?', `?` /* ? */ - -5 , \u{e4} FROM t\n\
             WHERE a IN ( NULL ,  1e-1 , x'00ff' ) LIMIT  2 ,  3 "
        );
        assert_eq!(
            cut.with_nothing().expect("spelled").replace(NOTHING, "n"),
            "SELECT  n , '?', `?` /* ? */ - n , \u{e4} FROM t\n\
             WHERE a IN ( n ,  n , n ) LIMIT  1 ,  1 "
        );
        assert!(cut.with(&values[1..]).is_err());
    }

    #[test]
    fn values_are_read_in_one_way() {
        let one = Parametrized::read("SELECT ? + 1").expect("tokens");
        for (value, expected) in [
            (Parameter::Decimal("-1.50"), "-1.50"),
            (Parameter::Decimal("1e5"), "1e5"),
            (Parameter::Decimal("1--"), "'1--'"),
            (Parameter::Decimal("1; DROP TABLE t"), "'1; DROP TABLE t'"),
            (Parameter::Decimal(""), "''"),
            (Parameter::Double(-0.0), "-0e0"),
            (Parameter::Double(1e300), "1e300"),
            (Parameter::Double(7.0), "7"),
        ] {
            let spelled = one.with(&[value]).expect("spelled");
            assert_eq!(spelled, format!("SELECT  {expected}  + 1"), "{value:?}");
        }
        assert!(one.with(&[Parameter::Double(f64::NAN)]).is_err());
        let count = Parametrized::read("SELECT 1 LIMIT ?").expect("tokens");
        for refused in [
            Parameter::Text("x"),
            Parameter::Null,
            Parameter::Integer(-1),
        ] {
            assert!(count.with(&[refused]).is_err(), "{refused:?}");
        }
        assert!(Parametrized::read("SELECT ?5").is_err());
    }

    #[test]
    fn parameters_in_comments_for_this_version_count() {
        let text = "SELECT /*!80000 ? , 'x?' , */ ? /*!99999 ? */";
        let cut = Parametrized::read(text).expect("tokens");
        assert_eq!(cut.count(), 2);
        let filled = cut.with(&[Parameter::Text("' OR 1=1 -- "), Parameter::Integer(2)]);
        let filled = filled.expect("spelled");
        assert!(filled.contains("'' OR 1=1 -- '  , 'x?' ,"), "{filled}");
    }
}
