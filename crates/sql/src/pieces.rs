//! Texts of clients that are not one statement yet: several statements in one text, and statements
//! with parameters.
//!
//! **Owns** where a text is cut and how a value is spelled in its place. **Never** reads a
//! statement: that is `parse`.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

use std::fmt::Write;
use std::ops::Range;

use mayfly_types::{ErrorCode, MySqlError};

use crate::parse;
use crate::scanner::{Lexeme, Scanner};
use crate::text_places::syntax_error_at;

/// The statements of a text: the ranges between its `;` that hold more than space and comments.
///
/// They are found one after the other: a text of any length takes no memory beside its own.
///
/// **Cost**: one pass over the text.
#[derive(Debug, Clone)]
pub struct Statements<'a> {
    text: &'a [u8],
    scanner: Scanner<'a>,
    /// Whether it is one statement, seen at a glance.
    is_alone: bool,
    /// Where the next statement begins.
    from: usize,
    /// Whether nothing of it has been seen.
    is_empty: bool,
    /// Where a statement is missing: there is nothing at all between two ends.
    missing: Option<usize>,
    is_any_found: bool,
    is_over: bool,
}

/// What looking for the next statement came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// Where it stands.
    Statement(Range<usize>),
    /// So many bytes have been looked at, and its end is not among them.
    Unfinished,
    /// There is none.
    End,
}

/// The statements of a text as a client sent it, whatever its character set is: one of them may
/// change it for the next, or the mode. A text without a `;` inside is one statement in any.
pub fn statements(text: &[u8], has_ansi_quotes: bool) -> Statements<'_> {
    let mut body = text.trim_ascii_end();
    while let Some(before) = body.strip_suffix(b";") {
        body = before;
    }
    Statements {
        text,
        is_alone: !body.contains(&b';'),
        scanner: Scanner::of_mode(text, has_ansi_quotes),
        from: 0,
        is_empty: true,
        missing: None,
        is_any_found: false,
        is_over: false,
    }
}

impl Statements<'_> {
    /// Looks for the next statement among so many bytes.
    pub fn next_within(&mut self, bytes: usize) -> Cut {
        if self.is_over {
            return Cut::End;
        }
        if self.is_alone {
            return self.last(0);
        }
        let mut looked_at = 0;
        while looked_at < bytes {
            let Some((lexeme, range)) = self.scanner.next() else {
                return match (self.is_empty, self.is_any_found) {
                    (false, _) => self.last(self.from),
                    // Whoever reads it says that there is nothing.
                    (true, false) => self.last(0),
                    (true, true) => self.end(),
                };
            };
            looked_at += range.len();
            if lexeme == Lexeme::End {
                let statement = self.from..range.start;
                self.from = range.end;
                if !self.is_empty {
                    (self.is_empty, self.is_any_found) = (true, true);
                    return Cut::Statement(statement);
                }
                let between = self.text.get(statement.clone()).unwrap_or_default();
                if between.trim_ascii().is_empty() {
                    self.missing.get_or_insert(statement.start);
                }
            } else if !lexeme.is_blank() {
                // The first of what follows is no statement.
                if let Some(from) = self.missing {
                    return self.last(from);
                }
                self.is_empty = false;
            }
        }
        Cut::Unfinished
    }

    fn last(&mut self, from: usize) -> Cut {
        self.is_over = true;
        Cut::Statement(from..self.text.len())
    }

    fn end(&mut self) -> Cut {
        self.is_over = true;
        Cut::End
    }
}

impl Iterator for Statements<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        match self.next_within(usize::MAX) {
            Cut::Statement(range) => Some(range),
            Cut::Unfinished | Cut::End => None,
        }
    }
}

/// What stands for a parameter whose value is not known: NULL, which tells itself apart from one
/// that was written.
const NOTHING: &str = "/*?*/NULL/*?*/";
/// The same as the first and as the last word of a label, which loses the comment outside of it.
const NOTHING_FIRST: &str = "NULL/*?*/";
const NOTHING_LAST: &str = "/*?*/NULL";

/// The most parameters that the protocol can count.
const PARAMETERS_MAX: usize = u16::MAX as usize;

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
    /// 1390 for too many parameters; 1064 for one with a name or a number right behind it, and a
    /// literal or a comment without an end.
    pub fn read(text: &str) -> Result<Parametrized, MySqlError> {
        let read = parse::without_version_comments(text);
        // A comment that this version leaves out is a statement still.
        let read = read.filter(|read| !read.trim().is_empty());
        let text = read.as_deref().unwrap_or(text);
        let refused = |at: usize| syntax_error_at(text, at);
        let mut pieces = Vec::new();
        let mut counts_rows = Vec::new();
        let mut is_in_limit = false;
        let mut from = 0;
        let mut scanner = Scanner::new(text.as_bytes());
        let mut last = 0;
        // Where a word is a name whatever it says.
        let mut behind_point = None;
        for (lexeme, range) in scanner.by_ref() {
            match lexeme {
                Lexeme::Parameter => {
                    let follows = text.get(range.end..).and_then(|rest| rest.chars().next());
                    if follows.is_some_and(is_of_name) {
                        return Err(refused(range.start));
                    }
                    if pieces.len() == PARAMETERS_MAX {
                        return Err(MySqlError::new(ErrorCode::TooManyParameters, &[]));
                    }
                    let piece = text.get(from..range.start);
                    pieces.push(piece.ok_or_else(|| refused(range.start))?.to_owned());
                    counts_rows.push(is_in_limit);
                    from = range.end;
                }
                Lexeme::Word => {
                    let word = text.get(range.clone()).unwrap_or_default();
                    let is_word = |other: &str| word.eq_ignore_ascii_case(other);
                    is_in_limit = (is_word("LIMIT") || is_word("OFFSET"))
                        && behind_point != Some(range.start);
                }
                Lexeme::Comma | Lexeme::Number => {}
                _ if lexeme.is_blank() => {}
                _ => {
                    is_in_limit = false;
                    let is_point = text.get(range.clone()) == Some(".");
                    behind_point = is_point.then_some(range.end);
                }
            }
            last = range.start;
        }
        if scanner.is_unterminated() {
            return Err(refused(last));
        }
        let piece = text.get(from..).ok_or_else(|| refused(from))?;
        pieces.push(piece.to_owned());
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

    /// Gives labels and messages of the statement [`with_nothing`](Self::with_nothing) back their
    /// parameters as they were asked for. `text` is the statement.
    pub fn as_asked(&self, text: &str) -> impl Fn(&str) -> String + use<> {
        let is_plain = self.count() == 0;
        let names_null = text.to_ascii_uppercase().contains("NULL");
        move |told| {
            if is_plain {
                return told.to_owned();
            }
            // All that is left of a parameter that is a column of its own.
            if told == "NULL" && !names_null {
                return "?".to_owned();
            }
            without_nothing(told)
        }
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
            // Behind `--` it would begin a comment, and no value goes on with a sign.
            if !piece.ends_with("--") {
                text.push(' ');
            }
            write(*counts_rows, &mut text)?;
            text.push(' ');
        }
        text.extend(self.pieces.last().map(String::as_str));
        Ok(text)
    }
}

/// Whether a character goes on with a name: to MySQL no `?` in front of it is a parameter.
///
/// **Source**: `ident_map` in MySQL's `sql/sql_lex.cc`.
fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '$') || !character.is_ascii()
}

/// A text in which each value that is not known is the parameter that it stands for.
fn without_nothing(told: &str) -> String {
    let mut asked = told.to_owned();
    for part in [NOTHING, NOTHING_FIRST, NOTHING_LAST] {
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
    for part in value.split_inclusive(['\'', '\\']) {
        text.push_str(part);
        if let Some(last @ ('\'' | '\\')) = part.chars().next_back() {
            text.push(last);
        }
    }
    text.push('\'');
}

#[cfg(test)]
mod tests {
    use super::{Cut, NOTHING, Parameter, Parametrized, statements};

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
            ("SELECT 1; SELECT 'open; ", &["SELECT 1", " SELECT 'open; "]),
            ("SELECT 1; -- so", &["SELECT 1"]),
            ("; ;", &["; ;"]),
            ("SELECT 1; ; SELECT 2", &["SELECT 1", " ; SELECT 2"]),
        ] {
            let found = statements(text.as_bytes(), false).map(|range| &text[range]);
            assert_eq!(found.collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn a_text_is_cut_as_far_as_it_is_read() {
        let text = format!("SELECT '{}'; SELECT 2; SELECT 'open", "a;".repeat(1 << 20));
        let mut cuts = statements(text.as_bytes(), false);
        let mut steps = 0;
        let first = loop {
            match cuts.next_within(1 << 16) {
                Cut::Unfinished => steps += 1,
                cut => break cut,
            }
        };
        assert!((30..=33).contains(&steps), "{steps}");
        let end = "SELECT ''".len() + (2 << 20);
        assert_eq!(first, Cut::Statement(0..end));
        let rest: Vec<&str> = cuts.map(|range| &text[range]).collect();
        assert_eq!(rest, [" SELECT 2", " SELECT 'open"]);
    }

    #[test]
    fn labels_show_parameters() {
        let text = "SELECT ?, ?+1, concat(?,2), 1+ ?, ? IS NULL";
        let cut = Parametrized::read(text).expect("a statement");
        let told = cut.with_nothing().expect("values that fit");
        let shows = cut.as_asked(text);
        assert_eq!(shows(&told), text);
        for (told, expected) in [
            ("NULL", "NULL"),
            ("NULL/*?*/ +1", "?+1"),
            ("concat( /*?*/NULL/*?*/ ,2)", "concat(?,2)"),
            ("1+  /*?*/NULL", "1+ ?"),
            ("NULL/*?*/  IS NULL", "? IS NULL"),
        ] {
            assert_eq!(shows(told), expected);
        }
        let cut = Parametrized::read("SELECT ?").expect("a statement");
        assert_eq!(cut.as_asked("SELECT ?")("NULL"), "?");
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
    fn a_limit_behind_a_point_is_a_name() {
        let cut = Parametrized::read("SELECT t.limit, ? FROM t LIMIT ?").expect("tokens");
        let values = [Parameter::Text("a"), Parameter::Text("1")];
        assert_eq!(
            cut.with(&values).expect("spelled"),
            "SELECT t.limit,  'a'  FROM t LIMIT  1 "
        );
    }

    #[test]
    fn a_value_behind_two_signs_is_no_comment() {
        let cut = Parametrized::read("SELECT --?--?, a -- ?").expect("tokens");
        let filled = cut.with(&[Parameter::Integer(5), Parameter::Integer(-6)]);
        assert_eq!(filled.expect("spelled"), "SELECT --5 ---6 , a -- ?");
        let asked = "SELECT --?";
        let cut = Parametrized::read(asked).expect("tokens");
        let told = cut.with_nothing().expect("values that fit");
        assert_eq!(told, format!("SELECT --{NOTHING} "));
        assert_eq!(cut.as_asked(asked)(told.trim_end()), asked);
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
        for (refused, near) in [
            ("SELECT\n a, ?5", "?5"),
            ("SELECT ?is NULL", "?is NULL"),
            ("SELECT 'a\n", "'a\n"),
        ] {
            let error = Parametrized::read(refused).expect_err("no statement");
            assert!(error.message.contains(&format!("near '{near}'")), "{error}");
        }
    }

    #[test]
    fn parameters_are_no_more_than_can_be_counted() {
        let many = |count: usize| format!("SELECT 1 IN ({}1)", "?,".repeat(count));
        let most = Parametrized::read(&many(65_535)).expect("a statement");
        assert_eq!(most.count(), 65_535);
        let error = Parametrized::read(&many(65_536)).expect_err("too many");
        assert_eq!(error.code, 1390);
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
