//! ALTER TABLE and RENAME TABLE.

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_types::CharacterSet;

use super::column::{self, character_set, collation};
use super::cursor::Cursor;
use super::key::{self, Constraint};
use super::refusal::{Result, unsupported, unsupported_account};
use super::{absent, create, view};
use crate::statement::{AlterAction, AlterTable, ColumnDefinition, OldView, Placement, Statement};

/// The name by which ALTER TABLE knows the primary key.
const PRIMARY: &str = "PRIMARY";

pub(super) fn alter(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("ALTER")?;
    if view::is_next(cursor) {
        return view::create(cursor, OldView::Needed);
    }
    let _ = cursor.word("ONLINE");
    let ignore = cursor.word("IGNORE");
    if !cursor.word("TABLE") {
        let here = ["DATABASE", "SCHEMA", "INSTANCE"];
        let kind = { here.into_iter() }.find(|word| cursor.peek_word(word));
        return match kind.or_else(|| absent::kind(cursor)) {
            Some("USER") => unsupported_account("ALTER USER"),
            Some(kind) => unsupported(&format!("ALTER {kind}")),
            None => cursor.fail("TABLE"),
        };
    }
    let if_exists = cursor.words(&["IF", "EXISTS"]);
    let table = cursor.table_name()?;
    let mut actions = Vec::new();
    while !matches!(cursor.peek(), Token::EOF | Token::SemiColon) {
        action(cursor, &mut actions)?;
        if !cursor.token(&Token::Comma) {
            break;
        }
        if matches!(cursor.peek(), Token::EOF | Token::SemiColon) {
            return cursor.fail("a change");
        }
    }
    Ok(Statement::AlterTable(Box::new(AlterTable {
        table,
        if_exists,
        ignore,
        actions,
    })))
}

/// RENAME TABLE a TO b, c TO d.
pub(super) fn rename(cursor: &mut Cursor<'_>) -> Result<Statement> {
    cursor.expect("RENAME")?;
    if cursor.peek_word("USER") {
        return unsupported("RENAME USER");
    }
    if !cursor.word("TABLE") {
        cursor.expect("TABLES")?;
    }
    let mut names = Vec::new();
    cursor.list(|cursor| {
        let old = cursor.table_name()?;
        cursor.expect("TO")?;
        names.push((old, cursor.table_name()?));
        Ok(())
    })?;
    Ok(Statement::RenameTable(names))
}

fn action(cursor: &mut Cursor<'_>, actions: &mut Vec<AlterAction>) -> Result<()> {
    if cursor.word("ADD") {
        return add(cursor, actions);
    }
    let action = if cursor.word("DROP") {
        drop(cursor)?
    } else if cursor.word("CHANGE") {
        let _ = cursor.word("COLUMN");
        let if_exists = cursor.words(&["IF", "EXISTS"]);
        let old = cursor.name()?;
        let definition = column::column(cursor)?;
        change(cursor, old, definition, if_exists)?
    } else if cursor.word("MODIFY") {
        let _ = cursor.word("COLUMN");
        let if_exists = cursor.words(&["IF", "EXISTS"]);
        let definition = column::column(cursor)?;
        change(cursor, definition.name.clone(), definition, if_exists)?
    } else if cursor.word("RENAME") {
        rename_part(cursor)?
    } else if cursor.word("ALTER") {
        alter_column(cursor)?
    } else if cursor.words(&["CONVERT", "TO"]) {
        if !cursor.word("CHARSET") {
            cursor.expect("CHARACTER")?;
            cursor.expect("SET")?;
        }
        if character_set(&cursor.value_word()?)? == Some(CharacterSet::Binary) {
            return unsupported("CONVERT TO CHARACTER SET binary");
        }
        if cursor.word("COLLATE") {
            collation(&cursor.value_word()?)?;
        }
        AlterAction::Nothing
    } else if cursor.words(&["ORDER", "BY"]) {
        order_columns(cursor)?;
        AlterAction::Nothing
    } else if cursor.word("FORCE")
        || cursor.words(&["ENABLE", "KEYS"])
        || cursor.words(&["DISABLE", "KEYS"])
        || cursor.words(&["WITH", "VALIDATION"])
        || cursor.words(&["WITHOUT", "VALIDATION"])
        || key::algorithm(cursor)?
    {
        AlterAction::Nothing
    } else {
        return options(cursor, actions);
    };
    actions.push(action);
    Ok(())
}

/// Columns behind ORDER BY, which order nothing.
fn order_columns(cursor: &mut Cursor<'_>) -> Result<()> {
    cursor.list(|cursor| {
        cursor.column_name()?;
        let _ = cursor.word("ASC") || cursor.word("DESC");
        Ok(())
    })
}

fn add(cursor: &mut Cursor<'_>, actions: &mut Vec<AlterAction>) -> Result<()> {
    if cursor.peek_word("PARTITION") {
        return unsupported("ADD PARTITION");
    }
    let only_columns = cursor.word("COLUMN");
    let if_not_exists = cursor.words(&["IF", "NOT", "EXISTS"]);
    if cursor.token(&Token::LParen) {
        cursor.list(|cursor| add_one(cursor, actions, false, if_not_exists))?;
        cursor.parser.expect_token(&Token::RParen)?;
        return Ok(());
    }
    add_one(
        cursor,
        actions,
        only_columns || if_not_exists,
        if_not_exists,
    )?;
    let placement = placement(cursor)?;
    if placement.is_some() {
        match actions.last_mut() {
            Some(AlterAction::AddColumn {
                placement: place, ..
            }) => *place = placement,
            _ => return cursor.fail("the end of the statement"),
        }
    }
    Ok(())
}

fn add_one(
    cursor: &mut Cursor<'_>,
    actions: &mut Vec<AlterAction>,
    only_columns: bool,
    if_not_exists: bool,
) -> Result<()> {
    let constraint = match only_columns {
        true => None,
        false => key::constraint(cursor, false)?,
    };
    actions.push(match constraint {
        Some(Constraint::Key(key)) => AlterAction::AddKey(key),
        Some(Constraint::Check(check)) => AlterAction::AddCheck(*check),
        None => AlterAction::AddColumn {
            definition: Box::new(column::column(cursor)?),
            placement: None,
            if_not_exists,
        },
    });
    Ok(())
}

fn drop(cursor: &mut Cursor<'_>) -> Result<AlterAction> {
    for what in ["PARTITION", "SYSTEM", "PERIOD"] {
        if cursor.peek_word(what) {
            return unsupported(&format!("DROP {what}"));
        }
    }
    if cursor.words(&["PRIMARY", "KEY"]) {
        return Ok(AlterAction::DropKey {
            name: PRIMARY.to_owned(),
            if_exists: false,
        });
    }
    if cursor.words(&["FOREIGN", "KEY"]) {
        let if_exists = cursor.words(&["IF", "EXISTS"]);
        let name = cursor.name()?;
        return Ok(AlterAction::DropForeignKey { name, if_exists });
    }
    let is_key = cursor.word("KEY") || cursor.word("INDEX");
    let is_check = !is_key && cursor.word("CHECK");
    let is_constraint = !is_key && !is_check && cursor.word("CONSTRAINT");
    if !is_key && !is_check && !is_constraint {
        let _ = cursor.word("COLUMN");
    }
    let if_exists = cursor.words(&["IF", "EXISTS"]);
    // `DROP CONSTRAINT PRIMARY` is allowed without quotes.
    let name = match is_constraint && cursor.peek_word(PRIMARY) {
        true => cursor.any_word()?,
        false => cursor.name()?,
    };
    Ok(if is_key {
        AlterAction::DropKey { name, if_exists }
    } else if is_check {
        AlterAction::DropCheck { name, if_exists }
    } else if is_constraint {
        AlterAction::DropConstraint { name, if_exists }
    } else {
        let _ = cursor.word("RESTRICT") || cursor.word("CASCADE");
        AlterAction::DropColumn { name, if_exists }
    })
}

fn change(
    cursor: &mut Cursor<'_>,
    old: String,
    definition: ColumnDefinition,
    if_exists: bool,
) -> Result<AlterAction> {
    Ok(AlterAction::ChangeColumn {
        old,
        definition: Box::new(definition),
        placement: placement(cursor)?,
        if_exists,
    })
}

fn placement(cursor: &mut Cursor<'_>) -> Result<Option<Placement>> {
    if cursor.word("FIRST") {
        return Ok(Some(Placement::First));
    }
    if cursor.word("AFTER") {
        return Ok(Some(Placement::After(cursor.name()?)));
    }
    Ok(None)
}

fn rename_part(cursor: &mut Cursor<'_>) -> Result<AlterAction> {
    if cursor.word("COLUMN") {
        let old = cursor.name()?;
        cursor.expect("TO")?;
        let new = cursor.name()?;
        return Ok(AlterAction::RenameColumn { old, new });
    }
    if cursor.word("KEY") || cursor.word("INDEX") {
        let if_exists = cursor.words(&["IF", "EXISTS"]);
        let old = cursor.name()?;
        cursor.expect("TO")?;
        let new = cursor.name()?;
        return Ok(AlterAction::RenameKey {
            old,
            new,
            if_exists,
        });
    }
    let _ = cursor.word("TO") || cursor.word("AS") || cursor.token(&Token::Eq);
    Ok(AlterAction::Rename(cursor.table_name()?))
}

fn alter_column(cursor: &mut Cursor<'_>) -> Result<AlterAction> {
    let as_constraint = cursor.word("CONSTRAINT");
    if as_constraint || cursor.word("CHECK") {
        let name = cursor.name()?;
        return match key::enforced(cursor) {
            Some(enforced) => Ok(AlterAction::EnforceCheck {
                name,
                enforced,
                as_constraint,
            }),
            None => cursor.fail("ENFORCED"),
        };
    }
    if cursor.word("KEY") || cursor.word("INDEX") {
        let _ = cursor.words(&["IF", "EXISTS"]);
        cursor.name()?;
        if cursor.word("VISIBLE") || cursor.words(&["NOT", "IGNORED"]) {
            return Ok(AlterAction::Nothing);
        }
        return unsupported("invisible key");
    }
    let _ = cursor.word("COLUMN");
    let _ = cursor.words(&["IF", "EXISTS"]);
    let column = cursor.name()?;
    if cursor.words(&["DROP", "DEFAULT"]) {
        return Ok(AlterAction::SetDefault {
            column,
            default: None,
        });
    }
    cursor.expect("SET")?;
    if cursor.word("DEFAULT") {
        let default: ast::Expr = column::default(cursor)?;
        return Ok(AlterAction::SetDefault {
            column,
            default: Some(default),
        });
    }
    let invisible = cursor.word("INVISIBLE");
    if !invisible {
        cursor.expect("VISIBLE")?;
    }
    Ok(AlterAction::SetInvisible { column, invisible })
}

/// Options of a table, which may follow each other without commas.
fn options(cursor: &mut Cursor<'_>, actions: &mut Vec<AlterAction>) -> Result<()> {
    let partitions = [
        "PARTITION",
        "REMOVE",
        "COALESCE",
        "REORGANIZE",
        "ANALYZE",
        "CHECK",
        "OPTIMIZE",
        "REBUILD",
        "REPAIR",
        "TRUNCATE",
        "EXCHANGE",
        "DISCARD",
        "IMPORT",
    ];
    for what in partitions {
        if cursor.peek_word(what) {
            return unsupported(&format!("ALTER TABLE ... {what}"));
        }
    }
    if cursor.parser.peek_keyword(Keyword::UNION) {
        return unsupported("UNION (of tables)");
    }
    let mut found = false;
    while let Some(option) = create::option(cursor)? {
        found = true;
        actions.push(match option {
            create::TableOption::Engine(name) => AlterAction::Engine(name),
            create::TableOption::AutoIncrement(next) => AlterAction::AutoIncrement(next),
            create::TableOption::Comment(text) => AlterAction::Comment(text),
            create::TableOption::Shown(option, value) => AlterAction::Option(option, value),
            create::TableOption::CharacterSet(Some(CharacterSet::Binary)) => {
                return unsupported("DEFAULT CHARACTER SET binary");
            }
            create::TableOption::CharacterSet(_) | create::TableOption::Nothing => {
                AlterAction::Nothing
            }
        });
    }
    match found {
        true => Ok(()),
        false => cursor.fail("a change"),
    }
}
