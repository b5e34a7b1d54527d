//! LIKE with any escape character, and with several texts to look for; the planner has its own for
//! others.

use crate::functions::own::LIKE;
use arrow::array::ArrayRef;
use datafusion::error::Result;
use memchr::memmem::Finder;

use crate::functions::call::Call;
use crate::functions::define::{Definition, Returns, pure};

pub(super) static FUNCTIONS: &[Definition] = &[pure(LIKE, &[], (2, 3), Returns::Boolean, like)];

/// LIKE with any escape character; `%` is any text, `_` any character.
fn like(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
    let escapes = if call.count() > 2 {
        Some(call.texts(2)?)
    } else {
        None
    };
    let escape = |row| match &escapes {
        None => Some('\\'),
        Some(escapes) => escapes.at(row).and_then(|escape| escape.chars().next()),
    };
    let mut characters: Vec<char> = Vec::new();
    let has_one_escape = escapes.as_ref().is_none_or(|of| of.constant().is_some());
    if let Some(Some(source)) = patterns.constant()
        && has_one_escape
    {
        let pattern = Pattern::of(&compile(source, escape(0)));
        return call.make_booleans(|row| {
            let text = texts.at(row);
            Ok(text.map(|text| pattern.matches(text, &mut characters)))
        });
    }
    let mut pattern = Pattern::Tokens(Vec::new());
    let mut compiled: Option<(&str, Option<char>)> = None;
    call.make_booleans(|row| {
        let (Some(text), Some(source)) = (texts.at(row), patterns.at(row)) else {
            return Ok(None);
        };
        let escape = escape(row);
        if compiled != Some((source, escape)) {
            pattern = Pattern::of(&compile(source, escape));
            compiled = Some((source, escape));
        }
        Ok(Some(pattern.matches(text, &mut characters)))
    })
}

/// Whether a pattern with the usual escape has several texts between those that are any, before the
/// first of which is any text too: others are looked for as fast by the planner's own LIKE, or are
/// ranges of keys.
pub(crate) fn has_parts(pattern: &str) -> bool {
    let tokens = compile(pattern, Some('\\'));
    tokens.first() == Some(&Token::Any)
        && matches!(Pattern::of(&tokens), Pattern::Parts(parts) if parts.count() > 1)
}

/// A pattern, ready to be looked for.
enum Pattern {
    Parts(Parts),
    /// One with `_`.
    Tokens(Vec<Token>),
}

impl Pattern {
    fn of(tokens: &[Token]) -> Pattern {
        match tokens.contains(&Token::One) {
            true => Pattern::Tokens(tokens.to_vec()),
            false => Pattern::Parts(Parts::of(tokens)),
        }
    }

    fn matches(&self, text: &str, characters: &mut Vec<char>) -> bool {
        match self {
            Pattern::Parts(parts) => parts.match_bytes(text.as_bytes()),
            Pattern::Tokens(tokens) => {
                characters.clear();
                characters.extend(text.chars());
                matches_tokens(characters, tokens)
            }
        }
    }
}

/// Texts with any text between each two of them: they are looked for one behind the other, each as
/// early as it comes. The bytes of a character are never a part of those of another.
struct Parts {
    first: String,
    between: Vec<Finder<'static>>,
    /// `None` where the first is all there is.
    last: Option<String>,
}

impl Parts {
    fn of(tokens: &[Token]) -> Parts {
        let texts = tokens.split(|token| *token == Token::Any);
        let mut texts = texts.map(|tokens| {
            let characters = tokens.iter().filter_map(|token| match token {
                Token::Exactly(character) => Some(*character),
                Token::Any | Token::One => None,
            });
            characters.collect::<String>()
        });
        let first = texts.next().unwrap_or_default();
        let mut between: Vec<String> = texts.collect();
        let last = between.pop();
        let finders = between.iter().filter(|text| !text.is_empty());
        Parts {
            first,
            between: finders.map(|text| Finder::new(text).into_owned()).collect(),
            last,
        }
    }

    /// The texts that are not empty.
    fn count(&self) -> usize {
        let ends = [Some(&self.first), self.last.as_ref()];
        let ends = ends.iter().flatten().filter(|text| !text.is_empty());
        self.between.len() + ends.count()
    }

    fn match_bytes(&self, text: &[u8]) -> bool {
        let Some(last) = &self.last else {
            return text == self.first.as_bytes();
        };
        let mut rest = text;
        // Most patterns begin and end with any text. To compare with an empty `String` loads from
        // where nothing is, at the cost of several finds.
        if !self.first.is_empty() {
            match rest.strip_prefix(self.first.as_bytes()) {
                Some(behind) => rest = behind,
                None => return false,
            }
        }
        if !last.is_empty() {
            match rest.strip_suffix(last.as_bytes()) {
                Some(before) => rest = before,
                None => return false,
            }
        }
        for finder in &self.between {
            match finder.find(rest) {
                Some(at) => rest = &rest[at + finder.needle().len()..],
                None => return false,
            }
        }
        true
    }
}

/// A part of a LIKE pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    /// `%`.
    Any,
    /// `_`.
    One,
    Exactly(char),
}

fn compile(pattern: &str, escape: Option<char>) -> Vec<Token> {
    let mut tokens = Vec::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        tokens.push(match character {
            _ if Some(character) == escape => {
                Token::Exactly(characters.next().unwrap_or(character))
            }
            '%' if tokens.last() == Some(&Token::Any) => continue,
            '%' => Token::Any,
            '_' => Token::One,
            other => Token::Exactly(other),
        });
    }
    tokens
}

/// Matches with one point to come back to: the last `%`.
fn matches_tokens(text: &[char], pattern: &[Token]) -> bool {
    let (mut at, mut token) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while at < text.len() {
        match pattern.get(token) {
            Some(Token::Any) => {
                retry = Some((at, token + 1));
                token += 1;
            }
            Some(Token::One) => (at, token) = (at + 1, token + 1),
            Some(Token::Exactly(character)) if *character == text[at] => {
                (at, token) = (at + 1, token + 1);
            }
            _ => match retry {
                Some((from, back)) => {
                    retry = Some((from + 1, back));
                    (at, token) = (from + 1, back);
                }
                None => return false,
            },
        }
    }
    pattern[token..].iter().all(|token| *token == Token::Any)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_match_as_tokens_do() {
        let pieces = ["%", "a", "b", "ab", "\u{e9}", "\\%", "%%"];
        let texts = [
            "",
            "a",
            "b",
            "ab",
            "ba",
            "aab",
            "abab",
            "\u{e9}a",
            "a%b",
            "b\u{e9}ab",
            "aba",
        ];
        let mut characters = Vec::new();
        for chosen in 0..pieces.len().pow(4) {
            let places = (0..4).map(|place| chosen / pieces.len().pow(place) % pieces.len());
            let pattern: String = places.map(|piece| pieces[piece]).collect();
            let tokens = compile(&pattern, Some('\\'));
            let parts = Pattern::of(&tokens);
            assert!(matches!(parts, Pattern::Parts(_)));
            for text in texts {
                let expected: Vec<char> = text.chars().collect();
                assert_eq!(
                    parts.matches(text, &mut characters),
                    matches_tokens(&expected, &tokens),
                    "{text} LIKE {pattern}"
                );
            }
        }
    }

    #[test]
    fn several_texts_behind_any_are_parts() {
        for pattern in ["%a%b%", "%a%b", "%%a%%b%", "%a\\%%\\%"] {
            assert!(has_parts(pattern), "{pattern}");
        }
        for pattern in ["", "%", "a", "%a", "a%", "%a%", "a%b%", "%a_%b%", "%a%%"] {
            assert!(!has_parts(pattern), "{pattern}");
        }
    }
}
