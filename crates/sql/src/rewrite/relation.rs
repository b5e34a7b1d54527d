//! Rewrites of the FROM clause.

use std::collections::HashSet;
use std::path::Path;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableFactor,
};
use mayfly_types::{ErrorCode, MySqlError};

use super::column_names::lower;
use crate::bindings::{Bindings, BoundTable, FILES};
use crate::file_name::path_of;
use crate::from_list::{is_by_name, joins_mut, plain_alias, tables};
use crate::parse;
use crate::references::{file_path, table_name};
use crate::statement::TableName;

/// `TABLE t` as a select.
///
/// # Errors
/// None but for a bug in the parser.
pub(crate) fn table_as_select(body: &SetExpr) -> Result<Option<Box<SetExpr>>, MySqlError> {
    let SetExpr::Table(table) = body else {
        return Ok(None);
    };
    let name = [table.schema_name.as_deref(), table.table_name.as_deref()]
        .into_iter()
        .flatten()
        .map(|part| format!("`{}`", part.replace('`', "``")))
        .collect::<Vec<_>>()
        .join(".");
    let text = format!("SELECT * FROM {name}");
    let mut query = parse::skeleton(&text)?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        // It stands nowhere in the statement.
        select.select_token = AttachedToken::empty();
    }
    Ok(Some(query.body))
}

/// Removes DUAL, gives joins without a condition the form that the planner knows.
///
/// # Errors
/// 1235 for a join by name: those of a statement's own text have been written out.
pub(super) fn simplify(select: &mut Select, bindings: &Bindings) -> Result<(), MySqlError> {
    select
        .from
        .retain(|table| !(table.joins.is_empty() && is_dual(&table.relation, bindings)));
    joins_mut(&mut select.from)
        .into_iter()
        .try_for_each(simplify_join)
}

fn simplify_join(operator: &mut JoinOperator) -> Result<(), MySqlError> {
    let without = JoinOperator::CrossJoin(JoinConstraint::None);
    *operator = match std::mem::replace(operator, without) {
        JoinOperator::Join(JoinConstraint::None)
        | JoinOperator::Inner(JoinConstraint::None)
        | JoinOperator::StraightJoin(JoinConstraint::None)
        | JoinOperator::CrossJoin(JoinConstraint::None) => {
            JoinOperator::CrossJoin(JoinConstraint::None)
        }
        JoinOperator::StraightJoin(constraint) | JoinOperator::CrossJoin(constraint) => {
            JoinOperator::Inner(constraint)
        }
        other => other,
    };
    if is_by_name(operator) {
        let what = "a join by name that is no part of the statement's text";
        return Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]));
    }
    Ok(())
}

/// No two tables of one FROM may go by the same name.
pub(super) fn check_names(select: &Select) -> Result<(), MySqlError> {
    let mut seen = HashSet::new();
    for table in tables(&select.from) {
        let (whole, name) = match table {
            TableFactor::Table {
                alias: Some(alias), ..
            }
            | TableFactor::Derived {
                alias: Some(alias), ..
            } => (alias.name.value.clone(), alias.name.value.as_str()),
            TableFactor::Table { name, .. } => {
                let parts = name.0.iter().filter_map(ObjectNamePart::as_ident);
                let parts: Vec<&str> = parts.map(|part| part.value.as_str()).collect();
                (parts.join("."), parts.last().copied().unwrap_or_default())
            }
            _ => continue,
        };
        if !seen.insert(whole) {
            return Err(MySqlError::new(ErrorCode::NotUniqueTable, &[&name]));
        }
    }
    Ok(())
}

/// Names the tables of `t.*` and `d.t.*` as FROM does: with their database or without.
pub(super) fn name_stars(select: &mut Select, bindings: &Bindings) {
    let without_alias = |table: &TableFactor| match table {
        TableFactor::Table {
            name, alias: None, ..
        } => Some((name.clone(), table_name(name)?)),
        _ => None,
    };
    let tables: Vec<_> = { tables(&select.from).into_iter() }
        .filter_map(without_alias)
        .collect();
    for item in &mut select.projection {
        let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) =
            item
        else {
            continue;
        };
        let Some(TableName { database, table }) = table_name(name) else {
            continue;
        };
        let is_meant = |from: &&(ObjectName, TableName)| {
            let its_database = from.1.database.as_ref().or(bindings.database.as_ref());
            from.1.table == table && (database.is_none() || its_database == database.as_ref())
        };
        if let Some((from, _)) = tables.iter().find(is_meant) {
            name.clone_from(from);
        }
    }
}

pub(crate) fn is_dual(factor: &TableFactor, bindings: &Bindings) -> bool {
    let TableFactor::Table { name, .. } = factor else {
        return false;
    };
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else {
        return false;
    };
    let shadowed = bindings.table(None, "dual").is_some();
    ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("dual") && !shadowed
}

/// Points a quoted path at the files, removes hints, lowers column aliases.
pub(super) fn resolve(factor: &mut TableFactor) {
    let TableFactor::Table {
        name,
        alias,
        index_hints,
        with_hints,
        partitions,
        ..
    } = factor
    else {
        return;
    };
    index_hints.clear();
    partitions.clear();
    with_hints.clear();
    if let Some(alias) = alias {
        for column in &mut alias.columns {
            lower(&mut column.name);
        }
    }
    let Some(path) = file_path(name).map(str::to_owned) else {
        return;
    };
    alias.get_or_insert_with(|| plain_alias(&file_alias(&path)));
    *name = ObjectName(vec![
        ObjectNamePart::Identifier(Ident::with_quote('`', FILES)),
        ObjectNamePart::Identifier(Ident::with_quote('`', path)),
    ]);
}

/// A file without an alias goes by its name up to the first dot.
pub(super) fn file_alias(path: &str) -> String {
    let path = path_of(path);
    if path == "-" {
        // The standard input.
        return "stdin".to_owned();
    }
    let name = Path::new(path)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_else(|| path.to_owned());
    let stem = name.split('.').next().unwrap_or(&name);
    if stem.is_empty() {
        name
    } else {
        stem.to_owned()
    }
}

/// A base table of FROM: alias, database, name, columns.
pub(super) fn base_table<'a>(
    factor: &TableFactor,
    bindings: &'a Bindings,
) -> Option<(String, String, String, &'a BoundTable)> {
    let TableFactor::Table { name, alias, .. } = factor else {
        return None;
    };
    let parts: Vec<String> = name
        .0
        .iter()
        .filter_map(|part| part.as_ident().map(|ident| ident.value.clone()))
        .collect();
    let (database, table) = match parts.as_slice() {
        [table] => (bindings.database.clone()?, table.clone()),
        [database, table] => (database.clone(), table.clone()),
        _ => return None,
    };
    let bound = bindings.table_or_file(Some(&database), &table)?;
    let alias = alias
        .as_ref()
        .map_or_else(|| table.clone(), |alias| alias.name.value.clone());
    Some((alias, database, table, bound))
}

/// What a table goes by.
pub(crate) fn name_of(table: &TableFactor) -> Option<String> {
    match table {
        TableFactor::Table {
            alias: Some(alias), ..
        }
        | TableFactor::Derived {
            alias: Some(alias), ..
        } => Some(alias.name.value.clone()),
        TableFactor::Table { name, .. } => match file_path(name) {
            Some(path) => Some(file_alias(path)),
            None => Some(name.0.last()?.as_ident()?.value.clone()),
        },
        _ => None,
    }
}
