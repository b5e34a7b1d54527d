//! Makes the definition of a table out of what statements say of it.
//!
//! Owns the rules of columns, keys and constraints: their names, their order, what they may be made
//! of. CREATE TABLE and ALTER TABLE write a [`Draft`]; nothing here touches rows.

use std::collections::{BTreeMap, HashSet};

use datafusion::sql::sqlparser::ast::Expr;
use mayfly_sql::declared;
use mayfly_sql::parse::parse_expression;
use mayfly_sql::statement::{
    CheckDefinition, ColumnDefinition, CreateTable, KeyColumn, KeyDefinition,
};
use mayfly_table::{
    Column, Definition, Generated, KEY_BYTES_MAX, Key, KeyKind, KeyPart, TableOption,
};
use mayfly_types::{COLUMNS_MAX, ColumnType, ErrorCode, Level, MySqlError, Warning};

use super::expressions::{CheckDraft, check_defaults, check_generated, checks};
use super::foreign_key;
use super::name_length::{NAME_LENGTH, check_name_length};

/// The most words of a SET.
const SET_WORDS: usize = 64;
/// Most keys of a table.
const KEY_COUNT: usize = 64;
/// Most columns of a key.
const PART_COUNT: usize = 16;
/// Bytes of the longest character.
pub(crate) const CHARACTER_BYTES: u64 = 4;
/// The name of the primary key.
pub(crate) const PRIMARY: &str = "PRIMARY";

/// A definition in the making: keys name their columns, and may have no name yet.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) columns: Vec<Column>,
    /// Columns, in lower case, that were declared NULL: no part of a primary key.
    pub(crate) nulls: HashSet<String>,
    pub(crate) keys: Vec<KeyDefinition>,
    pub(crate) checks: Vec<CheckDraft>,
    pub(crate) comment: String,
    pub(crate) options: BTreeMap<TableOption, String>,
    /// Whether `||` joins texts in expressions.
    pub(crate) pipes_as_concat: bool,
    /// Names with their tables that expressions mention: only the table itself has columns for
    /// them.
    pub(crate) qualified: Vec<(String, String)>,
    /// What is wrong with an expression that was read.
    pub(crate) refused: Option<MySqlError>,
}

impl Draft {
    /// What CREATE TABLE says, without the columns of its query.
    pub(crate) fn of_statement(create: &CreateTable, pipes_as_concat: bool) -> Draft {
        let mut draft = Draft {
            comment: create.comment.clone().unwrap_or_default(),
            options: create.options.clone(),
            pipes_as_concat,
            ..Draft::default()
        };
        for definition in &create.columns {
            let column = draft.column(definition);
            draft.columns.push(column);
        }
        draft.keys.extend(create.keys.iter().cloned());
        for check in &create.checks {
            draft.check(check);
        }
        draft
    }

    /// Adds a constraint.
    pub(crate) fn check(&mut self, check: &CheckDefinition) {
        let draft = CheckDraft {
            name: check.name.clone(),
            expression: self.text(&check.expression),
            is_enforced: check.enforced,
            column: check.column.clone(),
        };
        self.checks.push(draft);
    }

    /// The text in which an expression is kept.
    fn text(&mut self, expression: &Expr) -> String {
        let mut expression = expression.clone();
        declared::fix_pipes(&mut expression, self.pipes_as_concat);
        self.qualify(&expression);
        if !declared::survives(&expression) {
            let what = format!("an expression such as {expression} in a definition");
            let error = MySqlError::new(ErrorCode::NotSupportedYet, &[&what]);
            self.refused.get_or_insert(error);
        }
        declared::text(&expression)
    }

    /// Remembers which tables an expression names.
    fn qualify(&mut self, expression: &Expr) {
        let mentions = declared::mentions(expression).into_iter();
        let qualified = mentions.filter_map(|(table, column)| Some((table?, column)));
        self.qualified.extend(qualified);
    }

    /// A column as it was declared; what stands behind it becomes keys and constraints of the
    /// table.
    pub(crate) fn column(&mut self, definition: &ColumnDefinition) -> Column {
        if definition.null {
            self.nulls.insert(definition.name.to_lowercase());
        }
        let key = definition.key.map(|kind| KeyDefinition {
            name: None,
            kind,
            parts: vec![KeyColumn {
                column: definition.name.clone(),
                length: None,
                descending: false,
            }],
            comment: None,
            using: None,
            if_not_exists: false,
            for_foreign_key: false,
        });
        self.keys.extend(key);
        for check in &definition.checks {
            self.check(check);
        }
        let generated = definition.generated.as_ref().map(|generated| Generated {
            expression: self.text(&generated.expression),
            is_stored: generated.stored,
        });
        if let Some(default) = &definition.default {
            self.qualify(default);
        }
        Column {
            default: definition.default.as_ref().map(declared::written),
            on_update: definition.on_update.as_ref().map(declared::written),
            generated,
            is_auto_increment: definition.auto_increment,
            is_invisible: definition.invisible,
            comment: definition.comment.clone().unwrap_or_default(),
            ..Column::new(
                &definition.name,
                definition.column_type.clone(),
                !definition.not_null,
            )
        }
    }

    /// The definition of a table of this name.
    ///
    /// # Errors
    /// Those of MySQL for what cannot be declared.
    pub(crate) fn definition(mut self, table: &str) -> Result<Definition, MySqlError> {
        check_columns(&self.columns)?;
        check_lengths(table, &self)?;
        if let Some(error) = self.refused.take() {
            return Err(error);
        }
        if let Some((other, column)) = self.qualified.iter().find(|(other, _)| other != table) {
            let name = format!("{other}.{column}");
            let clause = "generated column function";
            return Err(MySqlError::new(ErrorCode::UnknownColumn, &[&name, &clause]));
        }
        let primary = self.keys.iter().find(|key| key.kind == KeyKind::Primary);
        for part in primary.map(|key| key.parts.clone()).unwrap_or_default() {
            self.refuse_null(&part.column)?;
        }
        for column in &mut self.columns {
            column.is_nullable &= !column.is_auto_increment;
        }
        let keys = keys(&self.columns, foreign_key::settled(self.keys))?;
        check_auto_increment(&self.columns, &keys)?;
        check_generated(&self.columns, &keys)?;
        check_defaults(&self.columns)?;
        Ok(Definition {
            checks: checks(table, &self.columns, self.checks)?,
            columns: self.columns,
            keys,
            comment: self.comment,
            is_compressed: { self.options.get(&TableOption::RowFormat) }
                .is_some_and(|format| format == "COMPRESSED"),
            options: self.options,
        })
    }

    /// Makes a column of the primary key NOT NULL.
    fn refuse_null(&mut self, name: &str) -> Result<(), MySqlError> {
        let lower = name.to_lowercase();
        let mut columns = self.columns.iter_mut();
        let Some(column) = columns.find(|column| column.name.to_lowercase() == lower) else {
            return Ok(());
        };
        if self.nulls.contains(&lower) && !column.is_auto_increment {
            return Err(MySqlError::new(ErrorCode::PrimaryKeyNull, &[]));
        }
        let is_null = column.default.as_deref();
        if is_null.is_some_and(|default| default.eq_ignore_ascii_case("NULL")) {
            return Err(MySqlError::new(ErrorCode::InvalidDefault, &[&column.name]));
        }
        column.is_nullable = false;
        Ok(())
    }
}

pub(crate) fn check_table_name(name: &str) -> Result<(), MySqlError> {
    if name.is_empty() || name.chars().count() > NAME_LENGTH || name.ends_with(' ') {
        return Err(MySqlError::new(ErrorCode::WrongTableName, &[&name]));
    }
    Ok(())
}

fn check_columns(columns: &[Column]) -> Result<(), MySqlError> {
    if columns.is_empty() {
        return Err(MySqlError::new(ErrorCode::TableMustHaveColumns, &[]));
    }
    if columns.len() > COLUMNS_MAX {
        return Err(MySqlError::new(ErrorCode::TooManyColumns, &[]));
    }
    let mut seen = HashSet::new();
    for column in columns {
        let name = &column.name;
        check_name_length(name)?;
        if !seen.insert(name.to_lowercase()) {
            return Err(MySqlError::new(ErrorCode::DuplicateColumn, &[name]));
        }
        check_clauses(column)?;
    }
    if columns
        .iter()
        .filter(|column| column.is_auto_increment)
        .count()
        > 1
    {
        return Err(MySqlError::new(ErrorCode::WrongAutoKey, &[]));
    }
    if columns.iter().all(|column| column.is_invisible) {
        return Err(MySqlError::new(ErrorCode::NoVisibleColumn, &[]));
    }
    Ok(())
}

/// The most characters of a table's comment, and of one of a column or a key.
const TABLE_COMMENT: usize = 2048;
const PART_COMMENT: usize = 1024;
/// The most bytes of a row without what lies beside it.
const ROW_BYTES: u64 = 65535;

/// Comments, and the columns that lie in a row, have a length that is not passed.
fn check_lengths(table: &str, draft: &Draft) -> Result<(), MySqlError> {
    let check =
        |code: ErrorCode, name: &str, comment: &str, most: usize| match comment.chars().count()
            > most
        {
            true => Err(MySqlError::new(code, &[&name, &most])),
            false => Ok(()),
        };
    let code = ErrorCode::TableCommentTooLong;
    check(code, table, &draft.comment, TABLE_COMMENT)?;
    let mut bytes = 0;
    for column in &draft.columns {
        let code = ErrorCode::FieldCommentTooLong;
        check(code, &column.name, &column.comment, PART_COMMENT)?;
        bytes += row_bytes(&column.column_type);
    }
    for key in &draft.keys {
        let code = ErrorCode::IndexCommentTooLong;
        let name = key.name.as_deref().unwrap_or(PRIMARY);
        let comment = key.comment.as_deref().unwrap_or_default();
        check(code, name, comment, PART_COMMENT)?;
    }
    match bytes > ROW_BYTES {
        true => Err(MySqlError::new(ErrorCode::RowTooBig, &[&ROW_BYTES])),
        false => Ok(()),
    }
}

/// The bytes that a text takes in a row as MySQL counts them; no other column takes many.
fn row_bytes(column_type: &ColumnType) -> u64 {
    let Some(length) = declared_length(column_type) else {
        return 0;
    };
    let bytes = u64::from(length)
        * if column_type.is_text() {
            CHARACTER_BYTES
        } else {
            1
        };
    bytes + if bytes > 255 { 2 } else { 1 }
}

/// What a column is declared besides its type must go with it.
fn check_clauses(column: &Column) -> Result<(), MySqlError> {
    let name = &column.name;
    match &column.column_type {
        ColumnType::Enum(words) => check_words(name, words, "ENUM")?,
        ColumnType::Set(words) => check_words(name, words, "SET")?,
        _ => {}
    }
    if column.is_auto_increment {
        let counts = match column.column_type {
            ColumnType::Bit { .. } | ColumnType::Year => false,
            ColumnType::Float { .. } | ColumnType::Double { .. } => true,
            ref other => other.is_integer(),
        };
        if !counts {
            return Err(MySqlError::new(ErrorCode::ColumnSpecifier, &[name]));
        }
        if column.default.is_some() {
            return Err(MySqlError::new(ErrorCode::InvalidDefault, &[name]));
        }
    }
    if let Some(now) = &column.on_update {
        let digits = match column.column_type {
            ColumnType::Timestamp { digits } | ColumnType::DateTime { digits } => Some(digits),
            _ => None,
        };
        if digits != Some(second_digits(now)) {
            return Err(MySqlError::new(ErrorCode::InvalidOnUpdate, &[name]));
        }
    }
    if column.generated.is_some() {
        for (is_there, clause) in [
            (column.default.is_some(), "DEFAULT"),
            (column.is_auto_increment, "AUTO_INCREMENT"),
            (column.on_update.is_some(), "ON UPDATE"),
        ] {
            if is_there {
                let arguments: [&dyn std::fmt::Display; 2] = [&clause, &"generated column"];
                return Err(MySqlError::new(ErrorCode::WrongUsage, &arguments));
            }
        }
    }
    Ok(())
}

/// The words of a list are told apart, and those of a SET by their bits, without commas.
fn check_words(column: &str, words: &[String], kind: &str) -> Result<(), MySqlError> {
    let is_set = kind == "SET";
    if is_set && words.len() > SET_WORDS {
        return Err(MySqlError::new(ErrorCode::TooManyWords, &[&column]));
    }
    let mut seen = HashSet::new();
    for word in words {
        if is_set && word.contains(',') {
            let code = ErrorCode::IllegalValueForType;
            return Err(MySqlError::new(code, &[&"set", word]));
        }
        if !seen.insert(word) {
            let code = ErrorCode::DuplicatedValueInType;
            return Err(MySqlError::new(code, &[&column, word, &kind]));
        }
    }
    Ok(())
}

/// The digits behind the second in `CURRENT_TIMESTAMP(3)`.
fn second_digits(now: &str) -> u8 {
    let digits = now.split_once('(').map(|(_, rest)| rest);
    let digits = digits.and_then(|rest| rest.trim_end_matches(')').parse().ok());
    digits.unwrap_or(0)
}

/// A key begins with the column that counts.
fn check_auto_increment(columns: &[Column], keys: &[Key]) -> Result<(), MySqlError> {
    let Some(index) = columns.iter().position(|column| column.is_auto_increment) else {
        return Ok(());
    };
    let begins = |key: &Key| key.parts.first().is_some_and(|part| part.column == index);
    match keys.iter().any(begins) {
        true => Ok(()),
        false => Err(MySqlError::new(ErrorCode::WrongAutoKey, &[])),
    }
}

/// The keys with their names, in the order in which they are tried and shown.
fn keys(columns: &[Column], drafts: Vec<KeyDefinition>) -> Result<Vec<Key>, MySqlError> {
    let mut keys: Vec<Key> = Vec::with_capacity(drafts.len());
    for draft in drafts {
        let is_primary = draft.kind == KeyKind::Primary;
        if is_primary && keys.iter().any(|key| key.kind == KeyKind::Primary) {
            return Err(MySqlError::new(ErrorCode::MultiplePrimaryKeys, &[]));
        }
        let parts = parts(columns, &draft)?;
        let name = match (is_primary, draft.name) {
            (true, _) => PRIMARY.to_owned(),
            (false, Some(name)) => {
                check_key_name(&name)?;
                if has_key(&keys, &name) {
                    return Err(MySqlError::new(ErrorCode::DuplicateKeyName, &[&name]));
                }
                name
            }
            (false, None) => automatic_name(&keys, &columns[parts[0].column].name),
        };
        keys.push(Key {
            name,
            kind: draft.kind,
            parts,
            comment: draft.comment.unwrap_or_default(),
            using: draft.using,
        });
    }
    if keys.len() > KEY_COUNT {
        return Err(MySqlError::new(ErrorCode::TooManyKeys, &[&KEY_COUNT]));
    }
    keys.sort_by_key(|key| {
        let has_null = key
            .parts
            .iter()
            .any(|part| columns[part.column].is_nullable);
        let has_prefix = key.parts.iter().any(|part| part.prefix.is_some());
        match key.kind {
            KeyKind::Primary => (0, false, false),
            KeyKind::Unique => (1, has_null, has_prefix),
            KeyKind::Plain => (2, false, false),
        }
    });
    Ok(keys)
}

/// What is to be said of keys that are declared: one has a name that it does not take, another is
/// the same as one before it. `old` are those that were there.
pub(crate) fn key_notes<'a>(
    declared: impl Iterator<Item = &'a KeyDefinition>,
    keys: &[Key],
    old: &[Key],
) -> Vec<Warning> {
    let mut notes = Vec::new();
    for key in declared.filter(|key| key.kind == KeyKind::Primary) {
        let name = key.name.as_deref();
        if let Some(name) = name.filter(|name| !name.eq_ignore_ascii_case(PRIMARY)) {
            let text = format!("Name '{name}' ignored for PRIMARY key.");
            notes.push(Warning {
                level: Level::Warning,
                error: MySqlError::with_message(ErrorCode::WrongIndexName, text),
            });
        }
    }
    for (place, key) in keys.iter().enumerate() {
        let is_same = |other: &Key| other.kind == key.kind && other.parts == key.parts;
        if !has_key(old, &key.name) && keys[..place].iter().any(is_same) {
            notes.push(Warning::note(ErrorCode::DuplicateIndex, &[&key.name]));
        }
    }
    notes
}

fn has_key(keys: &[Key], name: &str) -> bool {
    let name = name.to_lowercase();
    keys.iter().any(|key| key.name.to_lowercase() == name)
}

/// A key without a name is called as its first column, with a number if that is taken.
fn automatic_name(keys: &[Key], column: &str) -> String {
    if !has_key(keys, column) && !column.eq_ignore_ascii_case(PRIMARY) {
        return column.to_owned();
    }
    let mut number = 2;
    loop {
        let name = format!("{column}_{number}");
        if !has_key(keys, &name) {
            return name;
        }
        number += 1;
    }
}

pub(crate) fn check_key_name(name: &str) -> Result<(), MySqlError> {
    check_name_length(name)?;
    if name.is_empty() || name.ends_with(' ') || name.eq_ignore_ascii_case(PRIMARY) {
        return Err(MySqlError::new(ErrorCode::WrongIndexName, &[&name]));
    }
    Ok(())
}

fn parts(columns: &[Column], draft: &KeyDefinition) -> Result<Vec<KeyPart>, MySqlError> {
    if draft.parts.len() > PART_COUNT {
        return Err(MySqlError::new(ErrorCode::TooManyKeyParts, &[&PART_COUNT]));
    }
    let mut parts: Vec<KeyPart> = Vec::with_capacity(draft.parts.len());
    let mut bytes = 0;
    for part in &draft.parts {
        let name = part.column.to_lowercase();
        let Some(index) = columns
            .iter()
            .position(|column| column.name.to_lowercase() == name)
        else {
            let code = ErrorCode::KeyColumnMissing;
            return Err(MySqlError::new(code, &[&part.column]));
        };
        if parts.iter().any(|other| other.column == index) {
            return Err(MySqlError::new(ErrorCode::DuplicateColumn, &[&part.column]));
        }
        let column = &columns[index];
        let prefix = prefix(column, part.length)?;
        bytes += key_bytes(&column.column_type, prefix);
        parts.push(KeyPart {
            column: index,
            prefix,
            is_descending: part.descending,
        });
    }
    if bytes > KEY_BYTES_MAX as u64 {
        return Err(MySqlError::new(ErrorCode::KeyTooLong, &[&KEY_BYTES_MAX]));
    }
    Ok(parts)
}

/// The length of a part, if it is not the whole column.
fn prefix(column: &Column, length: Option<u32>) -> Result<Option<u32>, MySqlError> {
    let name = &column.name;
    let column_type = &column.column_type;
    if matches!(column_type, ColumnType::Json) {
        return Err(MySqlError::new(ErrorCode::JsonUsedAsKey, &[name]));
    }
    let is_long = matches!(column_type, ColumnType::Text(_) | ColumnType::Blob(_));
    match length {
        None if is_long => Err(MySqlError::new(ErrorCode::BlobKeyWithoutLength, &[name])),
        None => Ok(None),
        Some(0) => Err(MySqlError::new(ErrorCode::KeyPartZero, &[name])),
        Some(length) if is_long => Ok(Some(length)),
        Some(length) => match declared_length(column_type) {
            Some(whole) if length == whole => Ok(None),
            Some(whole) if length < whole => Ok(Some(length)),
            _ => Err(MySqlError::new(ErrorCode::WrongSubKey, &[])),
        },
    }
}

/// The length of a string type that has one.
pub(crate) fn declared_length(column_type: &ColumnType) -> Option<u32> {
    match column_type {
        ColumnType::Char { length }
        | ColumnType::VarChar { length }
        | ColumnType::Binary { length }
        | ColumnType::VarBinary { length } => Some(*length),
        _ => None,
    }
}

/// The bytes of a part as MySQL counts them.
pub(crate) fn key_bytes(column_type: &ColumnType, prefix: Option<u32>) -> u64 {
    let length = prefix.or(declared_length(column_type));
    match (column_type, length) {
        (_, Some(length)) if column_type.is_text() => u64::from(length) * CHARACTER_BYTES,
        (_, Some(length)) => u64::from(length),
        (of, None) => stored_bytes(of),
    }
}

/// The bytes of a value that is no text, as MySQL stores it.
fn stored_bytes(column_type: &ColumnType) -> u64 {
    // Two digits of a second in a byte.
    let fraction = u64::from(column_type.second_digits()).div_ceil(2);
    match column_type {
        ColumnType::MediumInt { .. } => 3,
        ColumnType::Decimal {
            precision, scale, ..
        } => digit_bytes(precision - scale) + digit_bytes(*scale),
        ColumnType::Bit { length } => u64::from(*length).div_ceil(8),
        ColumnType::Date => 3,
        ColumnType::Time { .. } => 3 + fraction,
        ColumnType::DateTime { .. } => 5 + fraction,
        ColumnType::Timestamp { .. } => 4 + fraction,
        ColumnType::Year => 1,
        ColumnType::Enum(words) => 1 + u64::from(words.len() > 255),
        ColumnType::Set(words) => match words.len().div_ceil(8) as u64 {
            5.. => 8,
            bytes => bytes,
        },
        _ => column_type.data_type().primitive_width().unwrap_or(8) as u64,
    }
}

/// The bytes of so many decimal digits: nine take four, those that are left as few as can hold
/// them.
fn digit_bytes(digits: u8) -> u64 {
    u64::from(digits / 9) * 4 + u64::from(digits % 9).div_ceil(2)
}

/// The columns that the text of an expression mentions, in lower case.
pub(crate) fn columns_of(text: &str) -> Result<HashSet<String>, MySqlError> {
    Ok(declared::columns(&parse_expression(text)?))
}
