//! What ALTER TABLE makes of a definition.
//!
//! Owns the meaning of the changes: columns and keys that a change drops, alters or renames are
//! those of the table as it was; keys that are added name columns as they will be. Never touches
//! rows.

use std::collections::HashSet;

use mayfly_sql::declared;
use mayfly_sql::statement::{
    AlterAction, ColumnDefinition, KeyColumn, KeyDefinition, Placement, TableName,
};
use mayfly_table::{Check, Column, Definition, Key, KeyKind};
use mayfly_types::{ColumnType, ErrorCode, Level, MySqlError, Warning};

use super::define::{CHARACTER_BYTES, Draft, check_key_name, columns_of, declared_length};
use super::expressions::{CheckDraft, rename_checks};

/// A table as it will be.
pub(crate) struct Altered {
    pub(crate) draft: Draft,
    /// For each column, the one of the table as it was whose values it takes.
    pub(crate) sources: Vec<Option<usize>>,
    /// What IF EXISTS and IF NOT EXISTS passed over.
    pub(crate) notes: Vec<Warning>,
    /// The new name.
    pub(crate) name: Option<TableName>,
    /// The ENGINE option.
    pub(crate) engine: Option<String>,
    /// The AUTO_INCREMENT option.
    pub(crate) auto_increment: Option<u64>,
    /// Whether rows have to be written again, and not only words.
    pub(crate) is_rebuilt: bool,
    /// Whether MySQL copies the rows of a shared table, and tells how many they are.
    pub(crate) copies: bool,
}

/// What becomes of a column.
enum Fate {
    Stays(Column),
    Goes,
    /// It is put in another place, with the others that are.
    Moves,
}

/// A column that is added or put in another place.
struct Arrival {
    column: Column,
    source: Option<usize>,
    placement: Option<Placement>,
}

/// The changes while they are read.
struct Changes<'a> {
    table: &'a str,
    model: &'a Definition,
    fates: Vec<Fate>,
    /// The names of the old columns from now on, for those that stay.
    names: Vec<Option<String>>,
    arrivals: Vec<Arrival>,
    /// The old columns that a change has named: each may be changed once.
    changed: HashSet<usize>,
    /// The old keys and checks that stay.
    keys: Vec<Key>,
    checks: Vec<Check>,
    /// Keys and checks that are added, and the names of columns declared NULL.
    added: Draft,
    altered: Altered,
}

/// Applies changes to the definition of a table.
///
/// # Errors
/// Those of MySQL for what is not there, or there already.
pub(crate) fn altered(
    table: &str,
    model: &Definition,
    actions: &[AlterAction],
    pipes_as_concat: bool,
) -> Result<Altered, MySqlError> {
    let mut changes = Changes {
        table,
        model,
        fates: model.columns.iter().cloned().map(Fate::Stays).collect(),
        names: model
            .columns
            .iter()
            .map(|column| Some(column.name.clone()))
            .collect(),
        arrivals: Vec::new(),
        changed: HashSet::new(),
        keys: model.keys.clone(),
        checks: model.checks.clone(),
        added: Draft {
            pipes_as_concat,
            ..Draft::default()
        },
        altered: Altered {
            draft: Draft {
                comment: model.comment.clone(),
                options: model.options.clone(),
                ..Draft::default()
            },
            sources: Vec::new(),
            notes: Vec::new(),
            name: None,
            engine: None,
            auto_increment: None,
            is_rebuilt: false,
            copies: false,
        },
    };
    // MySQL looks for what is dropped before all else.
    let drops = |action: &&AlterAction| is_drop(action);
    for action in actions.iter().filter(drops) {
        if let AlterAction::DropColumn { name, .. } = action {
            changes.refuse_changed(name, actions)?;
        }
        changes.drop(action)?;
    }
    for action in actions.iter().filter(|action| !is_drop(action)) {
        changes.apply(action)?;
    }
    // MariaDB looks for what is there or not kind by kind.
    changes.altered.notes.sort_by_key(|note| {
        let kinds = [
            ErrorCode::DuplicateColumn,
            ErrorCode::UnknownColumn,
            ErrorCode::CantDropField,
            ErrorCode::DuplicateKeyName,
        ];
        // Constraints and keys that are missed are dropped, or have new names.
        let place = kinds.iter().position(|code| note.error.is(*code));
        place.unwrap_or(2)
    });
    changes.finish()
}

/// Whether a column is computed and declared so, which no other one can become.
fn is_virtual(column: &Column) -> bool {
    let generated = column.generated.as_ref();
    generated.is_some_and(|generated| !generated.is_stored)
}

fn is_drop(action: &AlterAction) -> bool {
    matches!(
        action,
        AlterAction::DropColumn { .. }
            | AlterAction::DropKey { .. }
            | AlterAction::DropCheck { .. }
            | AlterAction::DropConstraint { .. }
            | AlterAction::DropForeignKey { .. }
    )
}

impl Changes<'_> {
    /// A column that goes is not changed besides.
    fn refuse_changed(&self, name: &str, actions: &[AlterAction]) -> Result<(), MySqlError> {
        let mut changed = actions.iter().filter_map(|action| match action {
            AlterAction::ChangeColumn { old, .. } => Some(old),
            _ => None,
        });
        match changed.any(|old| old.eq_ignore_ascii_case(name)) {
            true => Err(self.unknown(name)),
            false => Ok(()),
        }
    }

    fn drop(&mut self, action: &AlterAction) -> Result<(), MySqlError> {
        self.altered.is_rebuilt = true;
        match action {
            AlterAction::DropColumn { name, if_exists } => match self.column(name) {
                Some(index) => {
                    self.fates[index] = Fate::Goes;
                    self.names[index] = None;
                    Ok(())
                }
                None => self.missing(ErrorCode::CantDropField, name, *if_exists),
            },
            AlterAction::DropKey { name, if_exists } => match self.key(name) {
                Some(index) => {
                    self.keys.remove(index);
                    Ok(())
                }
                None => self.missing(ErrorCode::CantDropField, name, *if_exists),
            },
            AlterAction::DropForeignKey { name, if_exists } => {
                self.missing(ErrorCode::CantDropField, name, *if_exists)
            }
            AlterAction::DropCheck { name, if_exists } => match self.check(name) {
                Some(index) => {
                    self.checks.remove(index);
                    Ok(())
                }
                None => self.missing(ErrorCode::CheckNotFound, name, *if_exists),
            },
            AlterAction::DropConstraint { name, if_exists } => {
                let key = self.key(name).filter(|key| self.keys[*key].is_unique());
                match (self.check(name), key) {
                    (Some(check), _) => {
                        self.checks.remove(check);
                        Ok(())
                    }
                    (None, Some(key)) => {
                        self.keys.remove(key);
                        Ok(())
                    }
                    (None, None) => self.missing(ErrorCode::ConstraintNotFound, name, *if_exists),
                }
            }
            _ => Ok(()),
        }
    }

    fn apply(&mut self, action: &AlterAction) -> Result<(), MySqlError> {
        match action {
            AlterAction::AddColumn {
                definition,
                placement,
                if_not_exists,
            } => self.add(definition, placement.clone(), *if_not_exists),
            AlterAction::ChangeColumn {
                old,
                definition,
                placement,
                if_exists,
            } => match self.column(old) {
                Some(index) => {
                    let column = self.added.column(definition);
                    let was = &self.model.columns[index];
                    if is_virtual(&column) != is_virtual(was) {
                        let what = "Changing the STORED status";
                        let code = ErrorCode::UnsupportedOnGenerated;
                        return Err(MySqlError::new(code, &[&what]));
                    }
                    self.altered.copies |= column.generated != was.generated
                        || !is_longer(&was.column_type, &column.column_type);
                    self.altered.is_rebuilt |= placement.is_some()
                        || column.column_type != was.column_type
                        || column.is_nullable != was.is_nullable
                        || column.is_auto_increment != was.is_auto_increment
                        || column.generated != was.generated;
                    self.change(index, column, placement.clone())
                }
                None if *if_exists => {
                    let error = self.unknown(old);
                    let level = Level::Note;
                    self.altered.notes.push(Warning { level, error });
                    Ok(())
                }
                None => Err(self.unknown(old)),
            },
            AlterAction::RenameColumn { old, new } => {
                let (index, mut column) = self.staying(old)?;
                column.name.clone_from(new);
                self.change(index, column, None)
            }
            AlterAction::SetDefault { column, default } => {
                let (index, mut column) = self.staying(column)?;
                column.default = default.as_ref().map(declared::written);
                self.change(index, column, None)
            }
            AlterAction::SetInvisible { column, invisible } => {
                let (index, mut column) = self.staying(column)?;
                column.is_invisible = *invisible;
                self.change(index, column, None)
            }
            AlterAction::AddKey(key) => {
                self.altered.is_rebuilt = true;
                match key.name.as_ref().filter(|_| key.if_not_exists) {
                    Some(name) if self.key(name).is_some() => {
                        self.note(ErrorCode::DuplicateKeyName, name);
                    }
                    _ => self.added.keys.push(key.clone()),
                }
                Ok(())
            }
            AlterAction::RenameKey {
                old,
                new,
                if_exists,
            } => {
                let code = ErrorCode::KeyDoesNotExist;
                let found = self.key(old);
                let found = found.filter(|index| self.keys[*index].kind != KeyKind::Primary);
                let Some(index) = found else {
                    let arguments: [&dyn std::fmt::Display; 2] = [old, &self.table];
                    if !if_exists {
                        return Err(MySqlError::new(code, &arguments));
                    }
                    self.altered.notes.push(Warning::note(code, &arguments));
                    return Ok(());
                };
                check_key_name(new)?;
                self.keys[index].name.clone_from(new);
                Ok(())
            }
            AlterAction::AddCheck(check) => {
                self.altered.is_rebuilt = true;
                self.altered.copies = true;
                self.added.check(check);
                Ok(())
            }
            AlterAction::EnforceCheck {
                name,
                enforced,
                as_constraint,
            } => match self.check(name) {
                Some(index) => {
                    // Rows that are there are looked at.
                    let looks = *enforced && !self.checks[index].is_enforced;
                    self.altered.is_rebuilt |= looks;
                    self.altered.copies |= looks;
                    self.checks[index].is_enforced = *enforced;
                    Ok(())
                }
                None => {
                    let code = match as_constraint {
                        true => ErrorCode::ConstraintNotFound,
                        false => ErrorCode::CheckNotFound,
                    };
                    Err(MySqlError::new(code, &[name]))
                }
            },
            AlterAction::Rename(name) => {
                self.altered.name = Some(name.clone());
                Ok(())
            }
            AlterAction::Engine(name) => {
                self.altered.is_rebuilt = true;
                self.altered.engine = Some(name.clone());
                Ok(())
            }
            AlterAction::AutoIncrement(next) => {
                self.altered.auto_increment = Some(*next);
                Ok(())
            }
            AlterAction::Comment(text) => {
                self.altered.draft.comment.clone_from(text);
                Ok(())
            }
            AlterAction::Option(option, value) => {
                let options = &mut self.altered.draft.options;
                match value {
                    Some(value) => options.insert(*option, value.clone()),
                    None => options.remove(option),
                };
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn add(
        &mut self,
        definition: &ColumnDefinition,
        placement: Option<Placement>,
        if_not_exists: bool,
    ) -> Result<(), MySqlError> {
        if if_not_exists && self.column(&definition.name).is_some() {
            self.note(ErrorCode::DuplicateColumn, &definition.name);
            return Ok(());
        }
        self.altered.is_rebuilt = true;
        let column = self.added.column(definition);
        self.altered.copies |= column.generated.as_ref().is_some_and(|of| of.is_stored);
        self.arrivals.push(Arrival {
            column,
            source: None,
            placement,
        });
        Ok(())
    }

    fn change(
        &mut self,
        index: usize,
        column: Column,
        placement: Option<Placement>,
    ) -> Result<(), MySqlError> {
        if !self.changed.insert(index) {
            return Err(self.unknown(&self.model.columns[index].name));
        }
        self.names[index] = Some(column.name.clone());
        match placement {
            None => self.fates[index] = Fate::Stays(column),
            Some(placement) => {
                self.fates[index] = Fate::Moves;
                self.arrivals.push(Arrival {
                    column,
                    source: Some(index),
                    placement: Some(placement),
                });
            }
        }
        Ok(())
    }

    /// A column of the table as it was, unless it goes.
    fn column(&self, name: &str) -> Option<usize> {
        let index = self.model.column(name)?;
        matches!(self.fates[index], Fate::Stays(_)).then_some(index)
    }

    /// A column that stays where it is, with what is known of it.
    fn staying(&self, name: &str) -> Result<(usize, Column), MySqlError> {
        match self.column(name).map(|index| (index, &self.fates[index])) {
            Some((index, Fate::Stays(column))) => Ok((index, column.clone())),
            _ => Err(self.unknown(name)),
        }
    }

    fn key(&self, name: &str) -> Option<usize> {
        let name = name.to_lowercase();
        self.keys
            .iter()
            .position(|key| key.name.to_lowercase() == name)
    }

    fn check(&self, name: &str) -> Option<usize> {
        let name = name.to_lowercase();
        self.checks
            .iter()
            .position(|check| check.name.to_lowercase() == name)
    }

    fn unknown(&self, name: &str) -> MySqlError {
        MySqlError::new(ErrorCode::UnknownColumn, &[&name, &self.table])
    }

    fn note(&mut self, code: ErrorCode, name: &str) {
        self.altered.notes.push(Warning::note(code, &[&name]));
    }

    fn missing(&mut self, code: ErrorCode, name: &str, if_exists: bool) -> Result<(), MySqlError> {
        if !if_exists {
            return Err(MySqlError::new(code, &[&name]));
        }
        self.note(code, name);
        Ok(())
    }

    fn finish(mut self) -> Result<Altered, MySqlError> {
        self.check_dependents()?;
        let mut placed: Vec<(Column, Option<usize>)> = Vec::new();
        for (index, fate) in std::mem::take(&mut self.fates).into_iter().enumerate() {
            if let Fate::Stays(column) = fate {
                placed.push((column, Some(index)));
            }
        }
        for arrival in std::mem::take(&mut self.arrivals) {
            let place = match &arrival.placement {
                None => placed.len(),
                Some(Placement::First) => 0,
                Some(Placement::After(name)) => {
                    let lower = name.to_lowercase();
                    let found = placed
                        .iter()
                        .position(|(column, _)| column.name.to_lowercase() == lower);
                    found.ok_or_else(|| self.unknown(name))? + 1
                }
            };
            placed.insert(place, (arrival.column, arrival.source));
        }
        if placed.is_empty() {
            return Err(MySqlError::new(ErrorCode::CantRemoveAllFields, &[]));
        }
        let (columns, sources): (Vec<Column>, Vec<Option<usize>>) = placed.into_iter().unzip();
        let kept: Vec<KeyDefinition> = self
            .keys
            .iter()
            .filter_map(|key| self.kept(key, &columns))
            .collect();
        if let Some(new) = &self.altered.name {
            rename_checks(&mut self.checks, self.table, &new.table);
        }
        let checks = self.checks.into_iter().map(|check| CheckDraft {
            name: Some(check.name),
            expression: check.expression,
            is_enforced: check.is_enforced,
            column: None,
        });
        // What was added has been read with its errors.
        let draft = &mut self.added;
        draft.comment = std::mem::take(&mut self.altered.draft.comment);
        draft.options = std::mem::take(&mut self.altered.draft.options);
        draft.columns = columns;
        draft.keys.splice(0..0, kept);
        draft.checks.splice(0..0, checks);
        self.altered.draft = self.added;
        self.altered.sources = sources;
        Ok(self.altered)
    }

    /// A key of the table as it was, over the columns as they will be; `None` if none of them is
    /// left.
    fn kept(&self, key: &Key, columns: &[Column]) -> Option<KeyDefinition> {
        let mut parts = Vec::with_capacity(key.parts.len());
        for part in &key.parts {
            let Some(name) = &self.names[part.column] else {
                continue;
            };
            let column_type = columns
                .iter()
                .find(|column| column.name == *name)
                .map(|column| &column.column_type);
            let length = part.prefix.filter(|length| {
                column_type.is_some_and(|column_type| match declared_length(column_type) {
                    Some(whole) => *length < whole,
                    None => matches!(column_type, ColumnType::Text(_) | ColumnType::Blob(_)),
                })
            });
            parts.push(KeyColumn {
                column: name.clone(),
                length,
                descending: part.is_descending,
            });
        }
        (!parts.is_empty()).then(|| KeyDefinition {
            name: Some(key.name.clone()),
            kind: key.kind,
            parts,
            comment: Some(key.comment.clone()),
            using: key.using,
            if_not_exists: false,
            for_foreign_key: false,
        })
    }

    /// A column that an expression mentions keeps its name; a check of one column goes with it.
    fn check_dependents(&mut self) -> Result<(), MySqlError> {
        for (index, was) in self.model.columns.iter().enumerate() {
            let is_gone = self.names[index].is_none();
            let is_renamed = |name: &String| name.to_lowercase() != was.name.to_lowercase();
            if !is_gone && !self.names[index].as_ref().is_some_and(is_renamed) {
                continue;
            }
            let lower = was.name.to_lowercase();
            let only = HashSet::from([lower.clone()]);
            let mut kept = Vec::with_capacity(self.checks.len());
            for check in std::mem::take(&mut self.checks) {
                let mentioned = columns_of(&check.expression)?;
                if is_gone && mentioned == only {
                    continue;
                }
                if mentioned.contains(&lower) {
                    let code = ErrorCode::CheckColumnDependency;
                    return Err(MySqlError::new(code, &[&check.name, &was.name]));
                }
                kept.push(check);
            }
            self.checks = kept;
            for fate in &self.fates {
                if let Fate::Stays(column) = fate
                    && let Some(generated) = &column.generated
                    && columns_of(&generated.expression)?.contains(&lower)
                {
                    let code = ErrorCode::GeneratedColumnDependency;
                    return Err(MySqlError::new(code, &[&was.name]));
                }
            }
        }
        Ok(())
    }
}

/// Whether a column of a type becomes one of another without a look at its values: it is the same,
/// or a longer text whose length takes as many bytes.
fn is_longer(was: &ColumnType, column: &ColumnType) -> bool {
    let length_bytes = |length: u32| u64::from(length) * CHARACTER_BYTES > 255;
    match (was, column) {
        (ColumnType::VarChar { length: was }, ColumnType::VarChar { length }) => {
            was <= length && length_bytes(*was) == length_bytes(*length)
        }
        (was, column) => was == column,
    }
}
