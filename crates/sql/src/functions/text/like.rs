//! LIKE with any escape character; the planner has its own for the usual one.

use crate::functions::own::LIKE;
use arrow::array::ArrayRef;
use datafusion::error::Result;

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
    let mut pattern: Vec<Token> = Vec::new();
    let mut compiled: Option<(&str, Option<char>)> = None;
    let mut characters: Vec<char> = Vec::new();
    call.make_booleans(|row| {
        let (Some(text), Some(source)) = (texts.at(row), patterns.at(row)) else {
            return Ok(None);
        };
        let escape = match &escapes {
            None => Some('\\'),
            Some(escapes) => escapes.at(row).and_then(|escape| escape.chars().next()),
        };
        if compiled != Some((source, escape)) {
            pattern = compile(source, escape);
            compiled = Some((source, escape));
        }
        characters.clear();
        characters.extend(text.chars());
        Ok(Some(matches_tokens(&characters, &pattern)))
    })
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
