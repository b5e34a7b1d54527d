//! What MySQL's grammar refuses and sqlparser's takes, seen in the tokens alone.
//!
//! Asked after a statement has parsed, so that the first error of a statement with several is
//! the parser's.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

use std::ops::Range;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};
use mayfly_types::{ErrorCode, MySqlError};

use super::reserved::is_reserved;
use crate::inner_name;
use crate::scanner::{Lexeme, Scanner};

/// The first token that MySQL would not take, with its error unless it is one of syntax.
pub(super) struct Refused {
    pub(super) at: Location,
    pub(super) error: Option<MySqlError>,
}

/// Looks for a token that MySQL would not take.
pub(super) fn check(text: &str, tokens: &[TokenWithSpan]) -> Result<(), Refused> {
    let tokens: Vec<&TokenWithSpan> = tokens
        .iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)))
        .collect();
    let mut rest = tokens.as_slice();
    while let Some((token, behind)) = rest.split_first() {
        match &token.token {
            word if is_word(word, "limit") => limit(behind)?,
            Token::Number(digits, long) => number(token, behind.first(), digits, *long)?,
            Token::HexStringLiteral(digits) => hexadecimal(text, token, behind.first(), digits)?,
            Token::SingleQuotedByteStringLiteral(bits)
                if bits.bytes().any(|bit| bit != b'0' && bit != b'1') =>
            {
                return syntax(token);
            }
            Token::Word(word) if word.value.contains(inner_name::MARK) => {
                let bytes = word.value.bytes().map(|byte| match byte.is_ascii() {
                    true => char::from(byte).to_string(),
                    false => format!("\\x{byte:02X}"),
                });
                let name: String = bytes.collect();
                let code = ErrorCode::InvalidCharacterString;
                return refuse(token, MySqlError::new(code, &[&"utf8mb4", &name]));
            }
            // The values of a statement that was prepared stand in its text.
            Token::Placeholder(mark) if mark.starts_with('?') => return syntax(token),
            _ => {}
        }
        rest = behind;
    }
    Ok(())
}

/// Makes names of words right behind a point, and of those right in front of a point that a name
/// follows: `t.key`, `table.a`. To MySQL they are no keywords, whatever they say; the reserved ones
/// are read as if they stood in backticks.
///
/// **Source**: `MY_LEX_IDENT` and `MY_LEX_IDENT_START` in `lex_one_token` of MySQL's
/// `sql/sql_lex.cc`.
pub(super) fn names_beside_points(tokens: &mut [TokenWithSpan]) {
    for at in 0..tokens.len() {
        let Some((before, [point, behind, ..])) = tokens.split_at_mut_checked(at) else {
            continue;
        };
        if point.token != Token::Period {
            continue;
        }
        let goes_on = match &behind.token {
            Token::Word(word) => word.quote_style.is_none(),
            // `t.1a`
            Token::Number(..) => true,
            _ => false,
        };
        if !goes_on || behind.span.start != point.span.end {
            continue;
        }
        make_name(&mut behind.token);
        if let Some(before) = before.last_mut()
            && before.span.end == point.span.start
        {
            make_name(&mut before.token);
        }
    }
}

/// Makes a name of a word that is not the name of a variable.
fn make_name(token: &mut Token) {
    if let Token::Word(word) = token
        && word.quote_style.is_none()
        && is_plain(&word.value)
    {
        word.keyword = Keyword::NoKeyword;
        if is_reserved(&word.value) {
            word.quote_style = Some('`');
        }
    }
}

/// A parenthesis or a text right behind a point: no name goes on so, and the parser would read all
/// of the name once more for each of its points.
pub(super) fn misplaced_behind_point(tokens: &[TokenWithSpan]) -> Option<Location> {
    let mut is_behind = false;
    for token in tokens {
        match token.token {
            Token::Whitespace(_) => {}
            Token::LParen | Token::SingleQuotedString(_) if is_behind => {
                return Some(token.span.start);
            }
            _ => is_behind = token.token == Token::Period,
        }
    }
    None
}

fn syntax(token: &TokenWithSpan) -> Result<(), Refused> {
    Err(Refused {
        at: token.span.start,
        error: None,
    })
}

fn refuse(token: &TokenWithSpan, error: MySqlError) -> Result<(), Refused> {
    Err(Refused {
        at: token.span.start,
        error: Some(error),
    })
}

fn unknown_column(token: &TokenWithSpan, name: &str) -> Result<(), Refused> {
    let error = MySqlError::new(ErrorCode::UnknownColumn, &[&name, &"field list"]);
    refuse(token, error)
}

fn is_word(token: &Token, wanted: &str) -> bool {
    matches!(token, Token::Word(word)
        if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(wanted))
}

/// `LIMIT n`, `LIMIT n, n` and `LIMIT n OFFSET n`: numbers as they are, no expressions.
fn limit(mut tokens: &[&TokenWithSpan]) -> Result<(), Refused> {
    loop {
        let [count, rest @ ..] = tokens else {
            return Ok(());
        };
        match &count.token {
            Token::Number(digits, false) if digits.parse::<u64>().is_ok() => {}
            Token::EOF => {}
            // A variable of a stored program, which cannot be declared here.
            Token::Word(word) if is_plain(&word.value) => {
                let error = MySqlError::new(ErrorCode::UndeclaredVariable, &[&word.value]);
                return refuse(count, error);
            }
            _ => return syntax(count),
        }
        let [next, after @ ..] = rest else {
            return Ok(());
        };
        match &next.token {
            Token::Comma => tokens = after,
            word if is_word(word, "offset") => tokens = after,
            Token::Word(_) | Token::RParen | Token::SemiColon | Token::EOF => return Ok(()),
            _ => return syntax(next),
        }
    }
}

fn is_plain(word: &str) -> bool {
    !word.starts_with('@')
}

/// Digits with letters right behind them are a name.
fn number(
    token: &TokenWithSpan,
    next: Option<&&TokenWithSpan>,
    digits: &str,
    long: bool,
) -> Result<(), Refused> {
    if long {
        return unknown_column(token, &format!("{digits}L"));
    }
    if let Some(next) = next
        && let Token::Word(word) = &next.token
        && word.quote_style.is_none()
        && token.span.end == next.span.start
        && digits.bytes().all(|digit| digit.is_ascii_digit())
    {
        return unknown_column(token, &format!("{digits}{}", word.value));
    }
    Ok(())
}

/// `0x` needs digits behind it, and `x'...'` an even number of them.
fn hexadecimal(
    text: &str,
    token: &TokenWithSpan,
    next: Option<&&TokenWithSpan>,
    digits: &str,
) -> Result<(), Refused> {
    let (start, end) = (token.span.start, token.span.end);
    // Not by looking at the text: finding a place in it takes as long as the text is.
    let is_quoted = end.column - start.column == digits.len() as u64 + 3;
    if is_quoted {
        let whole =
            digits.len().is_multiple_of(2) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        return if whole { Ok(()) } else { syntax(token) };
    }
    let goes_on = next.is_some_and(|next| {
        let is_plain = matches!(&next.token, Token::Word(word) if word.quote_style.is_none());
        next.span.start == end && (is_plain || matches!(next.token, Token::Number(..)))
    });
    if digits.is_empty() || goes_on {
        let from = crate::places::offset(text, start.line, start.column);
        let behind = text.get(from..).unwrap_or_default();
        let mut names = behind.split(|c: char| !c.is_alphanumeric() && c != '_');
        return unknown_column(token, names.next().unwrap_or_default());
    }
    Ok(())
}

/// Variables of the user whose names stand in quotes: `@'a b'` becomes one word.
pub(super) fn join_variables(tokens: &mut Vec<TokenWithSpan>) {
    let joined = |sign: &TokenWithSpan, name: &TokenWithSpan| {
        let is_sign = matches!(&sign.token, Token::Word(word)
            if word.quote_style.is_none() && word.value == "@")
            || sign.token == Token::AtSign;
        if !is_sign || sign.span.end != name.span.start {
            return None;
        }
        match &name.token {
            Token::Word(word) if word.quote_style.is_some() => Some(format!("@{}", word.value)),
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                Some(format!("@{text}"))
            }
            _ => None,
        }
    };
    // A variable with an empty name looks like a sign.
    let mut is_variable = false;
    tokens.dedup_by(|name, sign| {
        let value = (!is_variable).then(|| joined(sign, name)).flatten();
        is_variable = value.is_some();
        if let Some(value) = value {
            sign.span.end = name.span.end;
            sign.token = Token::Word(Word {
                value,
                quote_style: None,
                keyword: Keyword::NoKeyword,
            });
        }
        is_variable
    });
}

/// LOCK IN SHARE MODE becomes FOR SHARE, as it is written since MySQL 8; the places stay.
pub(super) fn share_as_now(tokens: &mut Vec<TokenWithSpan>) {
    const WORDS: [&str; 4] = ["lock", "in", "share", "mode"];
    let mut locks: Vec<usize> = Vec::new();
    let mut dropped: Vec<Range<usize>> = Vec::new();
    // Where the first words of a clause stand.
    let mut found: Vec<usize> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if matches!(token.token, Token::Whitespace(_)) {
            continue;
        }
        let expected = WORDS.get(found.len());
        if !expected.is_some_and(|word| is_word(&token.token, word)) {
            found.clear();
            if !is_word(&token.token, WORDS[0]) {
                continue;
            }
        }
        found.push(at);
        if let [lock, word_in, share, mode] = *found.as_slice() {
            locks.push(lock);
            dropped.extend([word_in..share, share + 1..mode + 1]);
            found.clear();
        }
    }
    if locks.is_empty() {
        return;
    }
    let mut locks = locks.into_iter().peekable();
    let mut dropped = dropped.into_iter().peekable();
    let mut places = 0..tokens.len();
    tokens.retain_mut(|token| {
        let Some(at) = places.next() else {
            return true;
        };
        if locks.next_if_eq(&at).is_some() {
            token.token = Token::make_keyword("FOR");
        }
        while dropped.next_if(|range| range.end <= at).is_some() {}
        !dropped.peek().is_some_and(|range| range.contains(&at))
    });
}

/// A text without the comment at its end that has nothing behind its `--`: the tokenizer knows such
/// comments by the space there.
pub(super) fn without_last_comment(text: &str) -> &str {
    match text.strip_suffix("--") {
        Some(before) => match Scanner::new(text.as_bytes()).last() {
            Some((Lexeme::Comment, range)) if range.start == before.len() => before,
            _ => text,
        },
        None => text,
    }
}

/// Whether a text has a comment of any kind.
pub(super) fn has_comment(text: &str) -> bool {
    Scanner::new(text.as_bytes())
        .any(|(lexeme, _)| matches!(lexeme, Lexeme::Comment | Lexeme::Later | Lexeme::Mark))
}

/// Comments that hold text for some versions of the server, as the text that this version reads:
/// `/*! ... */` and `/*!80400 ... */` lose their marks, those for other servers become blank.
///
/// Positions stay what they were. `None` if there is no such comment.
pub(crate) fn without_version_comments(text: &str) -> Option<String> {
    if !text.contains("/*!") {
        return None;
    }
    let mut out = text.as_bytes().to_vec();
    let mut blank = |range: Range<usize>| {
        let bytes = out.get_mut(range).unwrap_or_default().iter_mut();
        let bytes = bytes.filter(|byte| **byte != b'\n');
        bytes.for_each(|byte| *byte = b' ');
    };
    let mut begun: Vec<Range<usize>> = Vec::new();
    for (lexeme, range) in Scanner::new(text.as_bytes()) {
        match lexeme {
            Lexeme::Later => blank(range),
            // One without an end is none.
            Lexeme::Mark if text.get(range.clone()) == Some("*/") => {
                begun.drain(..).for_each(&mut blank);
                blank(range);
            }
            Lexeme::Mark => begun.push(range),
            _ => {}
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::MayflyDialect;

    fn changed(text: &str, change: fn(&mut Vec<TokenWithSpan>)) -> String {
        let dialect = MayflyDialect::for_text(0, 0);
        let tokens = Tokenizer::new(&dialect, text).tokenize_with_location();
        let mut tokens = tokens.expect("tokens");
        change(&mut tokens);
        tokens.iter().map(|token| token.token.to_string()).collect()
    }

    #[test]
    fn words_beside_points_are_names() {
        for (text, expected) in [
            (
                "SELECT t.select, t.Key FROM d.table",
                "SELECT t.`select`, t.`Key` FROM d.`table`",
            ),
            ("SELECT table.a FROM x", "SELECT `table`.a FROM x"),
            ("SELECT d.key.from .limit", "SELECT d.`key`.`from` .`limit`"),
            ("SELECT t.date, date.a", "SELECT t.date, date.a"),
            // No name goes on behind a space, a quote or a star.
            ("SELECT t. select", "SELECT t. select"),
            ("SELECT select .a", "SELECT select .a"),
            ("SELECT table.*, table.`a`", "SELECT table.*, table.`a`"),
            ("SELECT `select`.a, 'x'.a", "SELECT `select`.a, 'x'.a"),
            ("SET @@global.key = @key.a", "SET @@global.`key` = @key.a"),
            ("SELECT 1", "SELECT 1"),
            ("SELECT t.", "SELECT t."),
        ] {
            assert_eq!(
                changed(text, |tokens| names_beside_points(tokens)),
                expected
            );
        }
    }

    #[test]
    fn a_variable_has_its_name_in_quotes() {
        for (text, expected) in [
            ("SELECT @'a b', @`c`, @\"d\" + 1", "SELECT @a b, @c, @d + 1"),
            ("SELECT @ 'a', 'b'", "SELECT @ 'a', 'b'"),
            ("SELECT @e, 'b'", "SELECT @e, 'b'"),
        ] {
            assert_eq!(changed(text, join_variables), expected);
        }
    }

    #[test]
    fn a_comment_may_have_nothing_in_it() {
        for (text, expected) in [
            ("SELECT 1 --", "SELECT 1 "),
            ("SELECT 1--", "SELECT 1"),
            ("SELECT 1 ---", "SELECT 1 -"),
            ("SELECT '--", "SELECT '--"),
            ("SELECT 1 -- a --", "SELECT 1 -- a --"),
            ("SELECT 1 # --", "SELECT 1 # --"),
            ("SELECT 1 /* --", "SELECT 1 /* --"),
            ("SELECT 1 -- ", "SELECT 1 -- "),
            ("--", ""),
        ] {
            assert_eq!(without_last_comment(text), expected);
        }
    }

    #[test]
    fn locks_are_written_in_one_way() {
        let share = "SELECT 1 FOR SHARE";
        for (text, expected) in [
            ("SELECT 1 LOCK IN SHARE MODE", share),
            ("SELECT 1 lock in  share mode", "SELECT 1 FOR share"),
            ("SELECT 1 FOR SHARE", share),
            ("LOCK IN SHARE", "LOCK IN SHARE"),
            ("LOCK LOCK IN SHARE MODE x", "LOCK FOR SHARE x"),
            (
                "LOCK IN SHARE MODE LOCK IN SHARE MODE",
                "FOR SHARE FOR SHARE",
            ),
        ] {
            assert_eq!(changed(text, share_as_now), expected);
        }
    }

    #[test]
    fn names_with_the_mark_of_inner_names_are_refused() {
        let mark = inner_name::MARK;
        for text in [
            format!("SELECT `t{mark}0{mark}`.a FROM t"),
            format!("SELECT 1 FROM t AS `{mark}`"),
        ] {
            let error = crate::parse::parse(&text).expect_err("a mark");
            assert_eq!(error.code, 1300, "{text}");
        }
        let name = format!("SELECT `t{mark}`");
        let error = crate::parse::parse(&name).expect_err("a mark");
        let expected = r"Invalid utf8mb4 character string: 't\xF4\x8F\xBF\xBF'";
        assert_eq!(error.message, expected);
        // A value may have it.
        assert!(crate::parse::parse(&format!("SELECT '{mark}'")).is_ok());
    }
}
