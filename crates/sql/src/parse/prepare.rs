//! PREPARE, EXECUTE and DEALLOCATE PREPARE.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::cursor::Cursor;
use super::refusal::Result;
use crate::statement::{Executed, OnPrepared, PreparedText, Statement};

/// Whether a text is one of these statements, or none at all, by its first words: then it has to be
/// read. **Cost**: that of these words, and of the comments before them.
pub fn is_on_prepared(text: &str) -> bool {
    let (first, rest) = first_word(text);
    let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
    is(first, "PREPARE")
        || is(first, "EXECUTE")
        || is(first, "DEALLOCATE")
        || is(first, "DROP") && is(first_word(rest).0, "PREPARE")
}

/// The first word behind space and comments, and what follows it; no word where something else
/// comes first.
fn first_word(text: &str) -> (&str, &str) {
    let mut rest = text.trim_start();
    loop {
        let behind = match rest.as_bytes() {
            // What stands in these is read.
            [b'/', b'*', b'!', ..] => None,
            [b'/', b'*', ..] => rest[2..].find("*/").map(|end| end + 4),
            [b'#', ..] => rest.find('\n'),
            [b'-', b'-', space, ..] if space.is_ascii_whitespace() => rest.find('\n'),
            _ => None,
        };
        match behind {
            Some(behind) => rest = rest[behind..].trim_start(),
            None => break,
        }
    }
    let is_of_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let end = rest.find(|letter| !is_of_word(letter));
    rest.split_at(end.unwrap_or(rest.len()))
}

pub(super) fn prepare(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("PREPARE")?;
    let name = cursor.name()?;
    cursor.expect("FROM")?;
    let text = text(cursor)?;
    Ok(Statement::OnPrepared(OnPrepared::Prepare { name, text }))
}

pub(super) fn execute(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("EXECUTE")?;
    let executed = match cursor.word("IMMEDIATE") {
        true => Executed::Text(text(cursor)?),
        false => Executed::Named(cursor.name()?),
    };
    let mut variables = Vec::new();
    if cursor.word("USING") {
        cursor.list(|cursor| {
            match variable(cursor) {
                Some(name) => variables.push(name),
                None => return cursor.fail("a variable"),
            }
            Ok(())
        })?;
    }
    Ok(Statement::OnPrepared(OnPrepared::Execute {
        executed,
        variables,
    }))
}

/// Reads what follows DEALLOCATE or DROP.
pub(super) fn deallocate(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("PREPARE")?;
    let name = cursor.name()?;
    Ok(Statement::OnPrepared(OnPrepared::Deallocate(name)))
}

fn text(cursor: &mut Cursor<'_>) -> Result<PreparedText> {
    match variable(cursor) {
        Some(name) => Ok(PreparedText::Variable(name)),
        None => Ok(PreparedText::Literal(cursor.string()?)),
    }
}

/// Reads a variable of the user, if one is next.
fn variable(cursor: &mut Cursor<'_>) -> Option<String> {
    let Token::Word(word) = cursor.peek() else {
        return None;
    };
    let name = word.value.strip_prefix('@')?;
    if word.quote_style.is_some() || name.is_empty() || name.starts_with('@') {
        return None;
    }
    cursor.skip();
    Some(name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::is_on_prepared;

    #[test]
    fn first_words_tell() {
        for text in [
            "PREPARE s FROM 'x'",
            " /* a */ -- b\n # c\n execute s",
            "/**/deallocate prepare s",
            "DROP  PREPARE s",
            "drop/* */prepare s",
        ] {
            assert!(is_on_prepared(text), "{text}");
        }
        for text in [
            "",
            "/*",
            "-- x",
            "DROP TABLE prepare",
            "PREPARED",
            "SELECT 1",
            "'PREPARE'",
        ] {
            assert!(!is_on_prepared(text), "{text}");
        }
    }
}
