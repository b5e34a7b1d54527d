//! What MySQL's grammar refuses and sqlparser's takes, seen in the tokens alone.
//!
//! Asked after a statement has parsed, so that the first error of a statement with several is
//! the parser's.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};
use mayfly_types::{ErrorCode, MySqlError};

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
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        match bytes[at] {
            quote @ (b'\'' | b'"' | b'`') => at = after_quote(bytes, at, quote),
            b'#' => at = after_line(bytes, at),
            b'-' if rest.starts_with(b"--") && rest.get(2).is_none_or(u8::is_ascii_whitespace) => {
                at = after_line(bytes, at);
            }
            b'/' if rest.starts_with(b"/*") => {
                let Some(length) = rest.windows(2).skip(2).position(|two| two == b"*/") else {
                    return String::from_utf8(out).ok();
                };
                let end = at + 2 + length + 2;
                if rest.starts_with(b"/*!") {
                    blank_version_comment(&mut out[at..end]);
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    String::from_utf8(out).ok()
}

fn blank_version_comment(comment: &mut [u8]) {
    let inside = &comment[3..comment.len() - 2];
    let digits = inside
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let version = std::str::from_utf8(&inside[..digits])
        .ok()
        .and_then(|digits| digits.parse::<u64>().ok())
        .filter(|_| digits >= 5);
    let blank = |bytes: &mut [u8]| {
        for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
            *byte = b' ';
        }
    };
    if version.is_some_and(|version| version > VERSION) {
        return blank(comment);
    }
    let digits = if version.is_some() { digits } else { 0 };
    let end = comment.len();
    blank(&mut comment[..3 + digits]);
    blank(&mut comment[end - 2..]);
}

/// The version of MySQL whose text is read, as a version comment writes it.
const VERSION: u64 = 80_499;

fn after_quote(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        if bytes[at] == b'\\' && quote != b'`' {
            at += 1;
        } else if bytes[at] == quote {
            return at + 1;
        }
        at += 1;
    }
    bytes.len()
}

fn after_line(bytes: &[u8], start: usize) -> usize {
    let length = bytes[start..].iter().position(|byte| *byte == b'\n');
    length.map_or(bytes.len(), |length| start + length + 1)
}
