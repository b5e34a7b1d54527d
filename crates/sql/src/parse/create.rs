//! CREATE and DROP.
//!
//! Owns the frame of a table: its options and its query. Columns are read by `column`, keys by
//! `key`.

use std::collections::BTreeMap;

use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_table::TableOption as Shown;
use mayfly_types::{CharacterSet, ErrorCode, MySqlError, NoCollation};

use super::column::{as_binary, character_set, collation, column};
use super::cursor::Cursor;
use super::key::{self, Constraint};
use super::refusal::{Result, unsupported, unsupported_account};
use super::{absent, prepare, view};
use crate::statement::{Absent, CreateTable, DropAbsent, DropTable, OldView, Statement};

pub(super) fn create(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("CREATE")?;
    let or_replace = cursor.words(&["OR", "REPLACE"]);
    // MariaDB alone replaces a database, with all that is in it.
    if !or_replace && (cursor.word("DATABASE") || cursor.word("SCHEMA")) {
        let if_not_exists = cursor.words(&["IF", "NOT", "EXISTS"]);
        let name = cursor.name()?;
        database_options(cursor)?;
        return Ok(Statement::CreateDatabase {
            name,
            if_not_exists,
        });
    }
    let temporary = cursor.word("TEMPORARY");
    if cursor.word("TABLE") {
        return create_table(cursor, temporary, or_replace);
    }
    if !temporary && (cursor.peek_word("INDEX") || cursor.peek_words(&["UNIQUE", "INDEX"])) {
        return key::create_index(cursor, or_replace);
    }
    if !temporary && view::is_next(cursor) {
        let old = match or_replace {
            true => OldView::Replaced,
            false => OldView::Refused,
        };
        return view::create(cursor, old);
    }
    let kind = match temporary {
        true => None,
        false => absent::kind(cursor),
    };
    match (kind, or_replace) {
        (Some("USER"), false) => unsupported_account("CREATE USER"),
        (Some(kind), false) => unsupported(&format!("CREATE {kind}")),
        (Some(kind), true) => unsupported(&format!("CREATE OR REPLACE {kind}")),
        (None, _) => cursor.fail("TABLE"),
    }
}

pub(super) fn drop(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("DROP")?;
    if cursor.word("DATABASE") || cursor.word("SCHEMA") {
        let if_exists = cursor.words(&["IF", "EXISTS"]);
        return Ok(Statement::DropDatabase {
            name: cursor.name()?,
            if_exists,
        });
    }
    if cursor.peek_word("INDEX") {
        return key::drop_index(cursor);
    }
    if cursor.peek_word("PREPARE") {
        return prepare::deallocate(cursor);
    }
    if cursor.word("VIEW") {
        return view::drop(cursor);
    }
    for (word, kind) in ABSENT {
        if cursor.word(word) {
            return drop_absent(cursor, kind);
        }
    }
    let temporary = cursor.word("TEMPORARY");
    if !cursor.word("TABLE") && !cursor.word("TABLES") {
        return match absent::kind(cursor) {
            Some(kind) if !temporary => unsupported(&format!("DROP {kind}")),
            _ => cursor.fail("TABLE"),
        };
    }
    let if_exists = cursor.words(&["IF", "EXISTS"]);
    Ok(Statement::DropTable(DropTable {
        temporary,
        if_exists,
        names: cursor.dropped()?,
    }))
}

const ABSENT: [(&str, Absent); 4] = [
    ("PROCEDURE", Absent::Procedure),
    ("FUNCTION", Absent::Function),
    ("TRIGGER", Absent::Trigger),
    ("EVENT", Absent::Event),
];

fn drop_absent(cursor: &mut Cursor<'_>, kind: Absent) -> Result<Statement> {
    let if_exists = cursor.words(&["IF", "EXISTS"]);
    Ok(Statement::DropAbsent(DropAbsent {
        kind,
        if_exists,
        name: cursor.table_name()?,
    }))
}

fn create_table(cursor: &mut Cursor<'_>, temporary: bool, or_replace: bool) -> Result<Statement> {
    let if_not_exists = cursor.words(&["IF", "NOT", "EXISTS"]);
    if or_replace && if_not_exists {
        let (one, other) = ("OR REPLACE", "IF NOT EXISTS");
        return Err(MySqlError::new(ErrorCode::WrongUsage, &[&one, &other]).into());
    }
    let name = cursor.table_name()?;
    let mut table = CreateTable {
        temporary,
        or_replace,
        if_not_exists,
        name,
        columns: Vec::new(),
        keys: Vec::new(),
        checks: Vec::new(),
        auto_increment: None,
        like: None,
        engine: None,
        comment: None,
        options: BTreeMap::new(),
        query: None,
        ignore: false,
        replace: false,
    };
    if cursor.word("LIKE") {
        table.like = Some(cursor.table_name()?);
        return Ok(Statement::CreateTable(Box::new(table)));
    }
    let starts_query = cursor.parser.peek_nth_token_ref(1).token.clone();
    let is_query = matches!(&starts_query, Token::LParen)
        || matches!(&starts_query, Token::Word(word) if word.quote_style.is_none()
            && ["SELECT", "WITH", "VALUES"].contains(&word.value.to_ascii_uppercase().as_str()));
    if cursor.peek() == Token::LParen && !is_query {
        cursor.skip();
        if cursor.word("LIKE") {
            table.like = Some(cursor.table_name()?);
            cursor.parser.expect_token(&Token::RParen)?;
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        loop {
            match key::constraint(cursor, temporary)? {
                Some(Constraint::Key(key)) => table.keys.push(key),
                Some(Constraint::Check(check)) => table.checks.push(*check),
                None => {
                    let mut column = column(cursor)?;
                    // Checks get their names in the order in which they are written.
                    table.checks.append(&mut column.checks);
                    table.columns.push(column);
                }
            }
            if !cursor.token(&Token::Comma) {
                break;
            }
        }
        cursor.parser.expect_token(&Token::RParen)?;
    }
    if options(cursor, &mut table)? == Some(CharacterSet::Binary) {
        let columns = table.columns.iter_mut();
        for column in columns.filter(|column| column.character_set.is_none()) {
            column.column_type = as_binary(&column.column_type);
        }
    }
    table.ignore = cursor.word("IGNORE");
    table.replace = !table.ignore && cursor.word("REPLACE");
    let with_as = cursor.word("AS");
    match cursor.peek() {
        Token::EOF | Token::SemiColon if !with_as => {}
        _ => table.query = Some(cursor.query()?),
    }
    Ok(Statement::CreateTable(Box::new(table)))
}

/// Reads the options of a table; the character set that its columns have if they name none.
fn options(cursor: &mut Cursor<'_>, table: &mut CreateTable) -> Result<Option<CharacterSet>> {
    let mut character_set = None;
    let mut is_first = true;
    loop {
        let has_comma = !is_first && cursor.token(&Token::Comma);
        is_first = false;
        if !has_comma && cursor.words(&["PARTITION", "BY"]) {
            if table.temporary {
                return Err(MySqlError::new(ErrorCode::PartitionTemporary, &[]).into());
            }
            return unsupported("PARTITION BY");
        }
        match option(cursor)? {
            Some(TableOption::Engine(name)) => table.engine = Some(name),
            Some(TableOption::CharacterSet(set)) => character_set = set.or(character_set),
            Some(TableOption::AutoIncrement(next)) => table.auto_increment = Some(next),
            Some(TableOption::Comment(text)) => table.comment = Some(text),
            Some(TableOption::Shown(option, Some(value))) => {
                table.options.insert(option, value);
            }
            Some(TableOption::Shown(option, None)) => {
                table.options.remove(&option);
            }
            Some(TableOption::Nothing) => {}
            None if has_comma => return cursor.fail("an option"),
            None => return Ok(character_set),
        }
    }
}

/// The options of a database, which have no effect; sets and collations are some that servers have.
fn database_options(cursor: &mut Cursor<'_>) -> Result<()> {
    loop {
        let is_default = cursor.word("DEFAULT");
        if cursor.words(&["CHARACTER", "SET"]) || cursor.word("CHARSET") {
            cursor.token(&Token::Eq);
            character_set(&cursor.value_word()?)?;
        } else if cursor.word("COLLATE") {
            cursor.token(&Token::Eq);
            let name = cursor.value_word()?;
            if CharacterSet::of_collation(&name) == Err(NoCollation::Unknown) {
                return Err(NoCollation::Unknown.error(&name).into());
            }
        } else if cursor.word("ENCRYPTION") {
            cursor.token(&Token::Eq);
            let value = cursor.string()?;
            if !["Y", "N"]
                .iter()
                .any(|known| value.eq_ignore_ascii_case(known))
            {
                return Err(MySqlError::new(ErrorCode::WrongValue, &[&"argument", &value]).into());
            }
        } else if is_default {
            return cursor.fail("CHARACTER SET");
        } else {
            return Ok(());
        }
    }
}

/// An option of a table.
pub(super) enum TableOption {
    Engine(String),
    /// CHARACTER SET, or the set of COLLATE; `None` for DEFAULT.
    CharacterSet(Option<CharacterSet>),
    AutoIncrement(u64),
    Comment(String),
    /// What is shown, and its value if it has one.
    Shown(Shown, Option<String>),
    /// What changes no answer.
    Nothing,
}

/// Reads an option of a table if one is next.
pub(super) fn option(cursor: &mut Cursor<'_>) -> Result<Option<TableOption>> {
    let is_default = cursor.word("DEFAULT");
    Ok(Some(
        if cursor.words(&["CHARACTER", "SET"]) || cursor.word("CHARSET") {
            cursor.token(&Token::Eq);
            TableOption::CharacterSet(character_set(&cursor.value_word()?)?)
        } else if cursor.word("COLLATE") {
            cursor.token(&Token::Eq);
            TableOption::CharacterSet(collation(&cursor.value_word()?)?)
        } else if is_default {
            return cursor.fail("CHARACTER SET");
        } else if cursor.word("ENGINE") {
            cursor.token(&Token::Eq);
            TableOption::Engine(cursor.value_word()?)
        } else if cursor.word("COMMENT") {
            cursor.token(&Token::Eq);
            TableOption::Comment(cursor.string()?)
        } else if cursor.word("AUTO_INCREMENT") {
            cursor.token(&Token::Eq);
            TableOption::AutoIncrement(cursor.parser.parse_literal_uint()?)
        } else if cursor.word("ROW_FORMAT") {
            cursor.token(&Token::Eq);
            TableOption::Shown(Shown::RowFormat, row_format(cursor)?)
        } else if let Some(option) = Shown::ALL
            .into_iter()
            .find(|option| cursor.word(option.name()))
        {
            cursor.token(&Token::Eq);
            TableOption::Shown(option, shown_value(cursor, option)?)
        } else if is_other_option(cursor) {
            if cursor.word("DATA") {
                cursor.expect("DIRECTORY")?;
            } else {
                cursor.skip();
            }
            cursor.token(&Token::Eq);
            cursor.value_word()?;
            TableOption::Nothing
        } else {
            return Ok(None);
        },
    ))
}

/// The row format that is next, but for the default one.
fn row_format(cursor: &mut Cursor<'_>) -> Result<Option<String>> {
    let formats = [
        "COMPRESSED",
        "DYNAMIC",
        "FIXED",
        "REDUNDANT",
        "COMPACT",
        "PAGE",
    ];
    if cursor.word("DEFAULT") {
        return Ok(None);
    }
    match formats.into_iter().find(|format| cursor.word(format)) {
        Some(format) => Ok(Some(format.to_owned())),
        None => cursor.fail("a row format"),
    }
}

/// The number that is the value of an option; `None` where it is the default one.
fn shown_value(cursor: &mut Cursor<'_>, option: Shown) -> Result<Option<String>> {
    if cursor.word("DEFAULT") {
        return Ok(None);
    }
    let number = cursor.parser.parse_literal_uint()?;
    let is_unset = number == 0 && option.is_unset_by_zero();
    Ok((!is_unset).then(|| number.to_string()))
}

/// Options that say how another engine stores a table; they change no answer.
fn is_other_option(cursor: &Cursor<'_>) -> bool {
    [
        "COMPRESSION",
        "DATA",
        "ENCRYPTION",
        "INSERT_METHOD",
        "KEY_BLOCK_SIZE",
        "PAGE_CHECKSUM",
        "TABLESPACE",
        "TRANSACTIONAL",
    ]
    .iter()
    .any(|option| cursor.peek_word(option))
}
