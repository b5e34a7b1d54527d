//! Regular expressions: MySQL's functions over the `regex` crate, case-sensitive as the collation
//! is, unless the match type says `i`.

use std::collections::HashMap;

use arrow::array::ArrayRef;
use datafusion::error::Result;
use mayfly_types::{ErrorCode, MySqlError};
use regex::{Regex, RegexBuilder};

use super::call::{Call, Texts};
use super::define::{Definition, Returns, pure};
use super::raise::raise;

pub(super) static FUNCTIONS: &[Definition] = &[
    pure("regexp_like", &[], (2, 3), Returns::Boolean, like),
    pure("regexp_instr", &[], (2, 6), Returns::Integer, instr),
    pure("regexp_substr", &[], (2, 5), Returns::Text, substr),
    pure("regexp_replace", &[], (3, 6), Returns::Text, replace),
];

/// The patterns that are kept compiled; more begin anew.
const KEPT_PATTERNS: usize = 64;

/// Compiled patterns of one call.
#[derive(Default)]
struct Patterns {
    compiled: HashMap<(String, String), Regex>,
}

impl Patterns {
    fn of(&mut self, pattern: &str, flags: &str) -> Result<&Regex> {
        if self.compiled.len() > KEPT_PATTERNS {
            self.compiled.clear();
        }
        let key = (pattern.to_owned(), flags.to_owned());
        match self.compiled.entry(key) {
            std::collections::hash_map::Entry::Occupied(entry) => Ok(entry.into_mut()),
            std::collections::hash_map::Entry::Vacant(entry) => {
                Ok(entry.insert(compile(pattern, flags)?))
            }
        }
    }
}

fn compile(pattern: &str, flags: &str) -> Result<Regex> {
    if pattern.is_empty() {
        return Err(raise(MySqlError::new(
            ErrorCode::RegexpIllegalArgument,
            &[],
        )));
    }
    let mut builder = RegexBuilder::new(pattern);
    for flag in flags.chars() {
        match flag {
            'c' => builder.case_insensitive(false),
            'i' => builder.case_insensitive(true),
            'm' => builder.multi_line(true),
            'n' => builder.dot_matches_new_line(true),
            'u' => builder.crlf(false),
            _ => {
                let what = "regexp_like";
                return Err(raise(MySqlError::new(ErrorCode::WrongArguments, &[&what])));
            }
        };
    }
    builder.build().map_err(|error| {
        let text = error.to_string();
        let cause = text
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ");
        let code = if cause.contains("group") {
            ErrorCode::RegexpMismatchedParen
        } else if cause.contains("class") {
            ErrorCode::RegexpUnterminatedBracket
        } else {
            ErrorCode::Regexp
        };
        raise(MySqlError::new(code, &[&cause]))
    })
}

fn flags(texts: Option<&Texts>, row: usize) -> Option<&str> {
    texts.map_or(Some(""), |texts| texts.at(row))
}

fn optional(call: &Call<'_>, index: usize) -> Result<Option<Texts>> {
    if call.count() > index {
        Ok(Some(call.texts(index)?))
    } else {
        Ok(None)
    }
}

fn like(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
    let types = optional(call, 2)?;
    let mut compiled = Patterns::default();
    call.make_booleans(|row| {
        let parts = (texts.at(row), patterns.at(row), flags(types.as_ref(), row));
        let (Some(text), Some(pattern), Some(flags)) = parts else {
            return Ok(None);
        };
        Ok(Some(compiled.of(pattern, flags)?.is_match(text)))
    })
}

/// Position and occurrence arguments, from one.
struct Place {
    position: Vec<i64>,
    occurrence: Vec<i64>,
}

fn place(call: &Call<'_>, position: usize) -> Result<Place> {
    let read = |index: usize| -> Result<Vec<i64>> {
        if call.count() <= index {
            return Ok(vec![1; call.rows]);
        }
        let values = call.integers(index)?;
        Ok((0..call.rows)
            .map(|row| values.at(row).unwrap_or(1))
            .collect())
    };
    Ok(Place {
        position: read(position)?,
        occurrence: read(position + 1)?,
    })
}

/// The text from a position on, and the bytes before it.
fn from_position(text: &str, position: i64) -> (usize, &str) {
    let skip = usize::try_from(position.max(1) - 1).unwrap_or(usize::MAX);
    let at = text
        .char_indices()
        .nth(skip)
        .map_or(text.len(), |(at, _)| at);
    (at, &text[at..])
}

fn instr(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
    let place = place(call, 2)?;
    let ends = if call.count() > 4 {
        Some(call.integers(4)?)
    } else {
        None
    };
    let types = optional(call, 5)?;
    let mut compiled = Patterns::default();
    call.make_integers(|row| {
        let parts = (texts.at(row), patterns.at(row), flags(types.as_ref(), row));
        let (Some(text), Some(pattern), Some(flags)) = parts else {
            return Ok(None);
        };
        let at_end = ends.as_ref().and_then(|ends| ends.at(row)) == Some(1);
        let (before, rest) = from_position(text, place.position[row]);
        let turn = usize::try_from(place.occurrence[row].max(1) - 1).unwrap_or(0);
        let found = compiled.of(pattern, flags)?.find_iter(rest).nth(turn);
        Ok(Some(found.map_or(0, |found| {
            let at = before + if at_end { found.end() } else { found.start() };
            i64::try_from(text[..at].chars().count()).unwrap_or(i64::MAX) + 1
        })))
    })
}

fn substr(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, patterns) = (call.texts(0)?, call.texts(1)?);
    let place = place(call, 2)?;
    let types = optional(call, 4)?;
    let mut compiled = Patterns::default();
    call.make_texts(|row, out| {
        let parts = (texts.at(row), patterns.at(row), flags(types.as_ref(), row));
        let (Some(text), Some(pattern), Some(flags)) = parts else {
            return Ok(false);
        };
        let (_, rest) = from_position(text, place.position[row]);
        let turn = usize::try_from(place.occurrence[row].max(1) - 1).unwrap_or(0);
        let found = compiled.of(pattern, flags)?.find_iter(rest).nth(turn);
        out.push_str(found.map_or("", |found| found.as_str()));
        Ok(found.is_some())
    })
}

/// MySQL writes groups as `$1`, and so does the `regex` crate; a backslash escapes.
fn replace(call: &Call<'_>) -> Result<ArrayRef> {
    let (texts, patterns, replacements) = (call.texts(0)?, call.texts(1)?, call.texts(2)?);
    let positions = if call.count() > 3 {
        Some(call.integers(3)?)
    } else {
        None
    };
    let occurrences = if call.count() > 4 {
        Some(call.integers(4)?)
    } else {
        None
    };
    let types = optional(call, 5)?;
    let mut compiled = Patterns::default();
    call.make_texts(|row, out| {
        let parts = (texts.at(row), patterns.at(row), replacements.at(row));
        let (Some(text), Some(pattern), Some(replacement)) = parts else {
            return Ok(false);
        };
        let Some(flags) = flags(types.as_ref(), row) else {
            return Ok(false);
        };
        let position = positions.as_ref().and_then(|p| p.at(row)).unwrap_or(1);
        let occurrence = occurrences.as_ref().and_then(|o| o.at(row)).unwrap_or(0);
        let (before, rest) = from_position(text, position);
        if !out.expect(text.len())? {
            return Ok(false);
        }
        out.push_str(&text[..before]);
        let regex = compiled.of(pattern, flags)?;
        let mut last = 0;
        let mut turn = 0;
        for found in regex.captures_iter(rest) {
            turn += 1;
            if occurrence > 0 && turn != occurrence {
                continue;
            }
            let whole = found.get(0).expect("group 0 is the match");
            out.push_str(&rest[last..whole.start()]);
            expand(replacement, &found, out);
            if !out.fits(out.len())? {
                return Ok(false);
            }
            last = whole.end();
        }
        out.push_str(&rest[last..]);
        Ok(true)
    })
}

fn expand(replacement: &str, found: &regex::Captures<'_>, out: &mut String) {
    let mut characters = replacement.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.extend(characters.next()),
            '$' => {
                let mut group: Option<usize> = None;
                while let Some(digit) = characters.peek().and_then(|c| c.to_digit(10)) {
                    let next = group
                        .unwrap_or(0)
                        .saturating_mul(10)
                        .saturating_add(digit as usize);
                    if group.is_some() && next >= found.len() {
                        break;
                    }
                    group = Some(next);
                    characters.next();
                }
                match group {
                    Some(group) => out.push_str(found.get(group).map_or("", |g| g.as_str())),
                    None => out.push('$'),
                }
            }
            other => out.push(other),
        }
    }
}
