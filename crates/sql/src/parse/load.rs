//! LOAD DATA [LOCAL] INFILE.

use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_types::{CharacterSet, ErrorCode, MySqlError};

use super::change::assignment;
use super::cursor::Cursor;
use super::refusal::{Result, unsupported};
use crate::statement::{FileFormat, LoadData, LoadTarget, Statement, TableName};

pub(super) fn load(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("LOAD")?;
    if cursor.word("XML") {
        return unsupported("LOAD XML");
    }
    cursor.expect("DATA")?;
    let _ = cursor.word("LOW_PRIORITY") || cursor.word("CONCURRENT");
    let local = cursor.word("LOCAL");
    cursor.expect("INFILE")?;
    let path = cursor.string()?;
    let ignore = cursor.word("IGNORE");
    let replace = !ignore && cursor.word("REPLACE");
    cursor.expect("INTO")?;
    cursor.expect("TABLE")?;
    let table = cursor.table_name()?;
    let mut load = LoadData {
        path,
        local,
        ignore,
        replace,
        ..defaults(table)
    };
    if cursor.peek_word("PARTITION") {
        return unsupported("PARTITION");
    }
    load.character_set = character_set(cursor)?;
    load.format = format(cursor)?;
    if cursor.word("IGNORE") {
        load.skip_lines = cursor.parser.parse_literal_uint()?;
        if !cursor.word("LINES") {
            cursor.expect("ROWS")?;
        }
    }
    if cursor.token(&Token::LParen) && !cursor.token(&Token::RParen) {
        cursor.list(|cursor| {
            let name = cursor.name()?;
            load.targets.push(match name.strip_prefix('@') {
                Some(variable) => LoadTarget::Variable(variable.to_ascii_lowercase()),
                None => LoadTarget::Column(name),
            });
            Ok(())
        })?;
        cursor.parser.expect_token(&Token::RParen)?;
    }
    if cursor.word("SET") {
        cursor.list(|cursor| {
            load.assignments.push(assignment(cursor)?);
            Ok(())
        })?;
    }
    Ok(Statement::LoadData(Box::new(load)))
}

fn defaults(table: TableName) -> LoadData {
    LoadData {
        local: false,
        ignore: false,
        replace: false,
        path: String::new(),
        table,
        character_set: None,
        format: FileFormat::default(),
        skip_lines: 0,
        targets: Vec::new(),
        assignments: Vec::new(),
    }
}

/// CHARACTER SET of a file.
pub(super) fn character_set(cursor: &mut Cursor<'_>) -> Result<Option<CharacterSet>> {
    if !cursor.words(&["CHARACTER", "SET"]) && !cursor.word("CHARSET") {
        return Ok(None);
    }
    Ok(Some(CharacterSet::parse(&cursor.value_word()?)?))
}

/// FIELDS and LINES.
pub(super) fn format(cursor: &mut Cursor<'_>) -> Result<FileFormat> {
    let mut format = FileFormat::default();
    if cursor.word("FIELDS") || cursor.word("COLUMNS") {
        one_at_least(cursor, &mut format, field_option)?;
    }
    if cursor.word("LINES") {
        one_at_least(cursor, &mut format, line_option)?;
    }
    Ok(format)
}

/// Reads all options that follow, each if it is one.
fn one_at_least(
    cursor: &mut Cursor<'_>,
    format: &mut FileFormat,
    option: fn(&mut Cursor<'_>, &mut FileFormat) -> Result<bool>,
) -> Result<()> {
    if !option(cursor, format)? {
        return cursor.fail("TERMINATED");
    }
    while option(cursor, format)? {}
    Ok(())
}

fn field_option(cursor: &mut Cursor<'_>, format: &mut FileFormat) -> Result<bool> {
    if cursor.words(&["TERMINATED", "BY"]) {
        format.field_terminator = cursor.string()?;
    } else if cursor.words(&["ESCAPED", "BY"]) {
        format.escape = one_character(&cursor.string()?)?;
    } else if cursor.words(&["OPTIONALLY", "ENCLOSED", "BY"]) {
        format.optionally_enclosed = true;
        format.enclosure = one_character(&cursor.string()?)?;
    } else if cursor.words(&["ENCLOSED", "BY"]) {
        format.enclosure = one_character(&cursor.string()?)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn line_option(cursor: &mut Cursor<'_>, format: &mut FileFormat) -> Result<bool> {
    if cursor.words(&["STARTING", "BY"]) {
        format.line_start = cursor.string()?;
    } else if cursor.words(&["TERMINATED", "BY"]) {
        format.line_terminator = cursor.string()?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn one_character(text: &str) -> Result<Option<char>> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (first, None) if first.is_none_or(|c| c.is_ascii()) => Ok(first),
        _ => Err(MySqlError::new(ErrorCode::LoadSpecification, &[]).into()),
    }
}
