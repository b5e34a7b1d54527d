//! What MySQL's grammar refuses and sqlparser's takes, seen in the tokens alone.
//!
//! Asked after a statement has parsed, so that the first error of a statement with several is
//! the parser's.

use std::ops::Range;

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};
use mayfly_types::{ErrorCode, MySqlError};

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
    for (index, token) in tokens.iter().enumerate() {
        let before = index.checked_sub(1).map(|index| &tokens[index].token);
        match &token.token {
            Token::Word(word)
                if word.quote_style.is_none()
                    && word.value.eq_ignore_ascii_case("limit")
                    && before != Some(&Token::Period) =>
            {
                limit(&tokens[index + 1..])?;
            }
            Token::Number(digits, long) => number(&tokens[index..], digits, *long)?,
            Token::HexStringLiteral(digits) => hexadecimal(text, &tokens[index..], digits)?,
            Token::SingleQuotedByteStringLiteral(bits)
                if bits.bytes().any(|bit| bit != b'0' && bit != b'1') =>
            {
                return syntax(token);
            }
            _ => {}
        }
    }
    Ok(())
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
            Token::Placeholder(_) | Token::EOF => {}
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
fn number(tokens: &[&TokenWithSpan], digits: &str, long: bool) -> Result<(), Refused> {
    if long {
        return unknown_column(tokens[0], &format!("{digits}L"));
    }
    if let [token, next, ..] = tokens
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
fn hexadecimal(text: &str, tokens: &[&TokenWithSpan], digits: &str) -> Result<(), Refused> {
    let token = tokens[0];
    let (start, end) = (token.span.start, token.span.end);
    // Not by looking at the text: finding a place in it takes as long as the text is.
    let is_quoted = end.column - start.column == digits.len() as u64 + 3;
    if is_quoted {
        let whole =
            digits.len().is_multiple_of(2) && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        return if whole { Ok(()) } else { syntax(token) };
    }
    let goes_on = tokens.get(1).is_some_and(|next| {
        let is_plain = matches!(&next.token, Token::Word(word) if word.quote_style.is_none());
        next.span.start == end && (is_plain || matches!(next.token, Token::Number(..)))
    });
    if digits.is_empty() || goes_on {
        let from = crate::source::offset(text, start.line, start.column);
        let name = text[from..].split(|c: char| !c.is_alphanumeric() && c != '_');
        return unknown_column(token, name.into_iter().next().unwrap_or_default());
    }
    Ok(())
}

/// Variables of the user whose names stand in quotes: `@'a b'` becomes one word.
pub(super) fn join_variables(tokens: &mut Vec<TokenWithSpan>) {
    let is_quoted = |tokens: &[TokenWithSpan], at: usize| {
        let [sign, name] = &tokens[at..at + 2] else {
            return None;
        };
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
    let mut at = 0;
    while at + 1 < tokens.len() {
        if let Some(value) = is_quoted(tokens, at) {
            let name = tokens.remove(at + 1);
            tokens[at].span.end = name.span.end;
            tokens[at].token = Token::Word(Word {
                value,
                quote_style: None,
                keyword: Keyword::NoKeyword,
            });
        }
        at += 1;
    }
}

/// LOCK IN SHARE MODE becomes FOR SHARE, as it is written since MySQL 8; the places stay.
pub(super) fn share_as_now(tokens: &mut Vec<TokenWithSpan>) {
    let words = ["lock", "in", "share", "mode"];
    let mut at = 0;
    while at < tokens.len() {
        let is_space = |at: &usize| matches!(tokens[*at].token, Token::Whitespace(_));
        let places: Vec<usize> = match is_word(&tokens[at].token, words[0]) {
            true => (at..tokens.len())
                .filter(|at| !is_space(at))
                .take(4)
                .collect(),
            false => Vec::new(),
        };
        let mut pairs = places.iter().zip(words);
        if let [lock, word_in, share, mode] = places[..]
            && pairs.all(|(at, word)| is_word(&tokens[*at].token, word))
        {
            tokens[lock].token = Token::make_keyword("FOR");
            tokens.drain(share + 1..=mode);
            tokens.drain(word_in..share);
        }
        at += 1;
    }
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
        let bytes = out[range].iter_mut().filter(|byte| **byte != b'\n');
        bytes.for_each(|byte| *byte = b' ');
    };
    let mut begun: Vec<Range<usize>> = Vec::new();
    for (lexeme, range) in Scanner::new(text.as_bytes()) {
        match lexeme {
            Lexeme::Later => blank(range),
            // One without an end is none.
            Lexeme::Mark if text[range.clone()] == *"*/" => {
                begun.drain(..).for_each(&mut blank);
                blank(range);
            }
            Lexeme::Mark => begun.push(range),
            _ => {}
        }
    }
    String::from_utf8(out).ok()
}
