//! What the expressions of a definition may be made of: those of generated columns, of defaults and
//! of CHECK constraints.
//!
//! Owns the rules of MySQL for them, and the names of constraints. Never computes anything.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::Expr;
use mayfly_sql::declared::{self, Unfit};
use mayfly_sql::parse::parse_expression;
use mayfly_table::{Check, Column, Definition, Key, KeyKind};
use mayfly_types::{ErrorCode, MySqlError};

use super::defaults::Fallback;
use super::name_length::check_name_length;

/// A CHECK constraint that may have no name yet.
pub(crate) struct CheckDraft {
    pub(crate) name: Option<String>,
    pub(crate) expression: String,
    pub(crate) is_enforced: bool,
    /// The column behind which it stands.
    pub(crate) column: Option<String>,
}

/// The errors for what an expression may not have.
struct Unfits {
    function: ErrorCode,
    subquery: ErrorCode,
    variable: ErrorCode,
    row: ErrorCode,
}

const OF_GENERATED: Unfits = Unfits {
    function: ErrorCode::GeneratedNamedFunction,
    subquery: ErrorCode::GeneratedFunction,
    variable: ErrorCode::GeneratedVariable,
    row: ErrorCode::GeneratedRow,
};

const OF_CHECK: Unfits = Unfits {
    function: ErrorCode::CheckNamedFunction,
    subquery: ErrorCode::CheckFunction,
    variable: ErrorCode::CheckVariable,
    row: ErrorCode::CheckRow,
};

/// A generated column is computed from columns that are known before it.
pub(crate) fn check_generated(columns: &[Column], keys: &[Key]) -> Result<(), MySqlError> {
    for (place, column) in columns.iter().enumerate() {
        let Some(generated) = &column.generated else {
            continue;
        };
        let name = &column.name;
        let expression = parse_expression(&generated.expression)?;
        refuse_unfit(&expression, name, &OF_GENERATED)?;
        for (_, mentioned) in declared::mentions(&expression) {
            let Some(source) = position(columns, &mentioned) else {
                let clause = "generated column function";
                let code = ErrorCode::UnknownColumn;
                return Err(MySqlError::new(code, &[&mentioned, &clause]));
            };
            if columns[source].is_auto_increment {
                return Err(MySqlError::new(ErrorCode::GeneratedAutoIncrement, &[name]));
            }
            if source >= place && columns[source].generated.is_some() {
                return Err(MySqlError::new(ErrorCode::GeneratedNotPrior, &[]));
            }
        }
        let is_primary = |key: &Key| {
            let mut parts = key.parts.iter();
            key.kind == KeyKind::Primary && parts.any(|part| part.column == place)
        };
        if !generated.is_stored && keys.iter().any(is_primary) {
            let what = "Defining a virtual generated column as primary key";
            return Err(MySqlError::new(ErrorCode::UnsupportedOnGenerated, &[&what]));
        }
    }
    Ok(())
}

/// The expression of a default names columns that are known before it.
pub(crate) fn check_defaults(columns: &[Column]) -> Result<(), MySqlError> {
    for (place, column) in columns.iter().enumerate() {
        let Fallback::Expression(expression) = Fallback::of(column)? else {
            continue;
        };
        let name = &column.name;
        if let Some(unfit) = declared::unfit_default(&expression) {
            let code = match unfit {
                Unfit::Variable => ErrorCode::DefaultVariable,
                Unfit::Row => ErrorCode::DefaultRow,
                _ => ErrorCode::DefaultFunction,
            };
            return Err(MySqlError::new(code, &[name]));
        }
        for (_, mentioned) in declared::mentions(&expression) {
            let Some(source) = position(columns, &mentioned) else {
                let clause = "default value expression";
                let code = ErrorCode::UnknownColumn;
                return Err(MySqlError::new(code, &[&mentioned, &clause]));
            };
            let of = &columns[source];
            let is_expression = matches!(Fallback::of(of)?, Fallback::Expression(_));
            if source >= place && (of.generated.is_some() || is_expression) {
                return Err(MySqlError::new(ErrorCode::DefaultNotPrior, &[name]));
            }
            if of.is_auto_increment {
                return Err(MySqlError::new(ErrorCode::DefaultAutoIncrement, &[name]));
            }
            if of.generated.is_some() {
                // Generated columns are computed when all others are known.
                let what = "a default that is computed from a generated column";
                return Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]));
            }
        }
    }
    Ok(())
}

/// The constraints with their names, in the order of these.
pub(crate) fn checks(
    table: &str,
    columns: &[Column],
    drafts: Vec<CheckDraft>,
) -> Result<Vec<Check>, MySqlError> {
    let mut checks: Vec<Check> = Vec::with_capacity(drafts.len());
    let named = drafts.iter().filter_map(|draft| draft.name.as_deref());
    let mut number = named
        .filter_map(|name| number_of(name, table))
        .max()
        .unwrap_or(0);
    for draft in drafts {
        let name = draft.name.clone().unwrap_or_else(|| {
            number += 1;
            automatic_name(table, number)
        });
        check_name_length(&name)?;
        let lower = name.to_lowercase();
        let mut others = checks.iter();
        if others.any(|check| check.name.to_lowercase() == lower) {
            return Err(MySqlError::new(ErrorCode::DuplicateCheckName, &[&name]));
        }
        check_condition(&name, &draft, columns)?;
        checks.push(Check {
            name,
            expression: draft.expression,
            is_enforced: draft.is_enforced,
        });
    }
    checks.sort_by_key(|check| check.name.to_lowercase());
    Ok(checks)
}

/// The condition of a constraint is made of the row alone.
fn check_condition(name: &str, draft: &CheckDraft, columns: &[Column]) -> Result<(), MySqlError> {
    let expression: Expr = parse_expression(&draft.expression)?;
    refuse_unfit(&expression, name, &OF_CHECK)?;
    let mentions = declared::mentions(&expression);
    if let Some(own) = &draft.column {
        let mut others = mentions.iter();
        if others.any(|(_, mentioned)| mentioned.to_lowercase() != own.to_lowercase()) {
            return Err(MySqlError::new(ErrorCode::CheckOtherColumn, &[&name]));
        }
    }
    for (_, mentioned) in mentions {
        let Some(column) = position(columns, &mentioned) else {
            let code = ErrorCode::CheckUnknownColumn;
            return Err(MySqlError::new(code, &[&name, &mentioned]));
        };
        if columns[column].is_auto_increment {
            return Err(MySqlError::new(ErrorCode::CheckAutoIncrement, &[&name]));
        }
    }
    // One that does not exist has an error of its own, when the constraint is planned.
    match declared::is_condition(&expression) || declared::is_unknown_call(&expression) {
        true => Ok(()),
        false => Err(MySqlError::new(ErrorCode::CheckNotBoolean, &[&name])),
    }
}

/// Refuses what depends on more than the row: `name` is that of the column or constraint.
fn refuse_unfit(expression: &Expr, name: &str, codes: &Unfits) -> Result<(), MySqlError> {
    let Some(unfit) = declared::unfit(expression) else {
        return Ok(());
    };
    Err(match unfit {
        Unfit::Function(function) => MySqlError::new(codes.function, &[&name, &function]),
        Unfit::Subquery => MySqlError::new(codes.subquery, &[&name]),
        Unfit::Variable => MySqlError::new(codes.variable, &[&name]),
        Unfit::Row => MySqlError::new(codes.row, &[&name]),
        Unfit::Window(function) => MySqlError::new(ErrorCode::WindowNotAllowed, &[&function]),
        _ => MySqlError::new(ErrorCode::InvalidGroupFunction, &[]),
    })
}

fn position(columns: &[Column], name: &str) -> Option<usize> {
    let name = name.to_lowercase();
    let mut columns = columns.iter();
    columns.position(|column| column.name.to_lowercase() == name)
}

fn automatic_name(table: &str, number: u64) -> String {
    format!("{table}_chk_{number}")
}

/// The number in a name that a constraint of a table got by itself.
fn number_of(name: &str, table: &str) -> Option<u64> {
    name.strip_prefix(table)?
        .strip_prefix("_chk_")?
        .parse()
        .ok()
}

/// Names the constraints of a copy: CREATE TABLE ... LIKE keeps none of the names.
pub(crate) fn name_checks_anew(definition: &mut Definition, table: &str) {
    for (number, check) in (1..).zip(&mut definition.checks) {
        check.name = automatic_name(table, number);
    }
    definition
        .checks
        .sort_by_key(|check| check.name.to_lowercase());
}

/// Names constraints after the new name of their table, if they had their names from the old one.
pub(crate) fn rename_checks(checks: &mut [Check], old: &str, new: &str) {
    let others: HashSet<String> = checks
        .iter()
        .map(|check| check.name.to_lowercase())
        .collect();
    for check in checks.iter_mut() {
        if let Some(number) = number_of(&check.name, old) {
            let name = automatic_name(new, number);
            if !others.contains(&name.to_lowercase()) {
                check.name = name;
            }
        }
    }
    checks.sort_by_key(|check| check.name.to_lowercase());
}
