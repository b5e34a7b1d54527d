//! LOAD DATA [LOCAL] INFILE.

use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_types::{CharacterSet, ErrorCode, MySqlError};

use super::cursor::Cursor;
use super::{Result, unsupported};
use crate::statement::{LoadData, LoadTarget, Statement, TableName};

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
    if cursor.words(&["CHARACTER", "SET"]) || cursor.word("CHARSET") {
        load.character_set = Some(CharacterSet::parse(&cursor.value_word()?)?);
    }
    if cursor.word("FIELDS") || cursor.word("COLUMNS") {
        fields(cursor, &mut load)?;
    }
    if cursor.word("LINES") {
        loop {
            if cursor.words(&["STARTING", "BY"]) {
                load.line_start = cursor.string()?;
            } else if cursor.words(&["TERMINATED", "BY"]) {
                load.line_terminator = cursor.string()?;
            } else {
                break;
            }
        }
    }
    if cursor.word("IGNORE") {
        load.skip_lines = cursor.parser.parse_literal_uint()?;
        if !cursor.word("LINES") {
            cursor.expect("ROWS")?;
        }
    }
    if cursor.token(&Token::LParen) && !cursor.token(&Token::RParen) {
        loop {
            let name = cursor.name()?;
            load.targets.push(match name.strip_prefix('@') {
                Some(variable) => LoadTarget::Variable(variable.to_ascii_lowercase()),
                None => LoadTarget::Column(name),
            });
            if !cursor.token(&Token::Comma) {
                break;
            }
        }
        cursor.parser.expect_token(&Token::RParen)?;
    }
    if cursor.word("SET") {
        loop {
            let column = cursor.name()?;
            cursor.parser.expect_token(&Token::Eq)?;
            load.assignments.push((column, cursor.parser.parse_expr()?));
            if !cursor.token(&Token::Comma) {
                break;
            }
        }
    }
    Ok(Statement::LoadData(Box::new(load)))
}

/// MySQL's defaults: tab, no quotes, backslash, line feed.
fn defaults(table: TableName) -> LoadData {
    LoadData {
        local: false,
        ignore: false,
        replace: false,
        path: String::new(),
        table,
        character_set: None,
        field_terminator: "\t".to_owned(),
        enclosure: None,
        optionally_enclosed: false,
        escape: Some('\\'),
        line_start: String::new(),
        line_terminator: "\n".to_owned(),
        skip_lines: 0,
        targets: Vec::new(),
        assignments: Vec::new(),
    }
}

fn fields(cursor: &mut Cursor<'_>, load: &mut LoadData) -> Result<()> {
    loop {
        if cursor.words(&["TERMINATED", "BY"]) {
            load.field_terminator = cursor.string()?;
        } else if cursor.words(&["ESCAPED", "BY"]) {
            load.escape = one_character(&cursor.string()?)?;
        } else if cursor.words(&["OPTIONALLY", "ENCLOSED", "BY"]) {
            load.optionally_enclosed = true;
            load.enclosure = one_character(&cursor.string()?)?;
        } else if cursor.words(&["ENCLOSED", "BY"]) {
            load.enclosure = one_character(&cursor.string()?)?;
        } else {
            return Ok(());
        }
    }
}

fn one_character(text: &str) -> Result<Option<char>> {
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (first, None) if first.is_none_or(|c| c.is_ascii()) => Ok(first),
        _ => Err(MySqlError::new(ErrorCode::LoadSpecification, &[]).into()),
    }
}
