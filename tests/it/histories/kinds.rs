//! The kinds of statements: a history that never has one of them acknowledged says nothing of it.

use super::statement::Statement;
use super::sums::SumStatement;

/// The kinds of statements that have answers.
pub const KINDS: [&str; 18] = [
    "insert",
    "load",
    "fill",
    "copy",
    "update",
    "delete",
    "update of two tables",
    "delete from two tables",
    "read",
    "touch",
    "empty",
    "alter",
    "rename",
    "kill",
    "quota",
    "count",
    "upsert",
    "transfer",
];

/// What a statement is, to be counted.
pub fn kind(statement: &Statement) -> &'static str {
    match statement {
        Statement::Insert { .. } => "insert",
        Statement::Load { .. } => "load",
        Statement::Fill { .. } => "fill",
        Statement::Copy { .. } => "copy",
        Statement::Update { .. } => "update",
        Statement::Delete { .. } => "delete",
        Statement::UpdateTwo { .. } => "update of two tables",
        Statement::DeleteTwo { .. } => "delete from two tables",
        Statement::Read { .. } => "read",
        Statement::Touch { .. } => "touch",
        Statement::Empty { .. } => "empty",
        Statement::Alter { .. } => "alter",
        Statement::Rename { .. } => "rename",
        Statement::Kill { .. } => "kill",
        Statement::Quota(_) => "quota",
        Statement::Fault(_) => "fault",
        Statement::Sum(SumStatement::Count { .. }) => "count",
        Statement::Sum(SumStatement::Upsert { .. }) => "upsert",
        Statement::Sum(SumStatement::Transfer { .. }) => "transfer",
    }
}
