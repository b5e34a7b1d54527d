//! Names in UPDATE, DELETE and INSERT: in the rows that are chosen and in the values that rows get.
//!
//! What columns have got is put in the place of their names later, by the name of the table that
//! changes. So other tables of that name, in subqueries of the values, get another one here:
//!
//! ```text
//!   UPDATE t SET b = 7, c = (SELECT MAX(t.b) FROM t)
//!                           (SELECT MAX(`t<1>`.b) FROM t AS `t<1>`)
//! ```

use std::collections::{HashMap, HashSet};

use datafusion::sql::sqlparser::ast::{Expr, TableFactor, TableWithJoins};
use datafusion::sql::sqlparser::tokenizer::Location;
use mayfly_types::{ErrorCode, MySqlError};

use super::super::relation::name_of;
use super::Names;
pub use super::alone::{RowColumns, named_in_subqueries};
use super::columns::lowered;
use super::needed::is_needed;
use super::relations::{Relation, Scope};
use crate::bindings::Bindings;
use crate::change::{self, Mention};
use crate::inner_name::{inner, is_inner, rename};
use crate::references::file_path;
use crate::source::Source;
use crate::statement::RowChoice;
use crate::{clause, from_list, walk};

/// Gives tables of a FROM list that go by one name names of their own for the planner.
///
/// # Errors
/// 1066 for those of one name that stand in no database: derived tables and files.
pub fn tell_apart(from: &mut [TableWithJoins]) -> Result<(), MySqlError> {
    let mut factors = from_list::tables_mut(from);
    let mut counts: HashMap<String, usize> = HashMap::new();
    let mut nowhere = HashSet::new();
    for factor in &factors {
        let Some(name) = name_of(factor) else {
            continue;
        };
        if !stands_in_database(factor) && !nowhere.insert(name.clone()) {
            return Err(MySqlError::new(ErrorCode::NotUniqueTable, &[&name]));
        }
        *counts.entry(name).or_default() += 1;
    }
    for (number, factor) in factors.iter_mut().enumerate() {
        if let Some(name) = name_of(factor)
            && counts.get(&name).is_some_and(|count| *count > 1)
        {
            rename(factor, &inner(&name, number));
        }
    }
    Ok(())
}

fn stands_in_database(factor: &TableFactor) -> bool {
    matches!(factor, TableFactor::Table { name, .. } if file_path(name).is_none())
}

/// Whether an UPDATE or a DELETE has names that are to be settled, in the rows that it chooses or
/// in the values that these get.
pub fn is_needed_in_change<'a>(
    choice: &RowChoice,
    mut values: impl Iterator<Item = &'a Expr>,
    columns: &RowColumns,
) -> bool {
    let RowChoice {
        from,
        condition,
        order_by,
        limit: _,
    } = choice;
    let tables = from_list::tables(from).into_iter();
    let names: HashSet<String> = tables.filter_map(name_of).collect();
    let none = HashSet::new();
    names.iter().any(|name| is_inner(name))
        || from.iter().any(|item| is_needed(item, &none))
        || condition
            .iter()
            .any(|condition| is_needed(condition, &none))
        || order_by.iter().any(|by| is_needed(by, &none))
        || values.any(|value| is_needed(value, &names) || columns.may_stand_in(value))
}

/// Settles the names of an UPDATE or a DELETE in the rows that it chooses and in the values that
/// these get, before the tables that change are named anew. Its tables of one name have been told
/// apart. `columns` are those of the one table that changes which values read as they have become.
/// Returns the texts of select lists if some have become longer.
///
/// # Errors
/// As of a query.
pub fn in_change<'a>(
    choice: &mut RowChoice,
    values: impl Iterator<Item = &'a mut Expr>,
    columns: RowColumns,
    source: &Source,
    bindings: &Bindings,
) -> Result<Option<Source>, MySqlError> {
    let mut values: Vec<&mut Expr> = values.collect();
    let RowChoice {
        from,
        condition,
        order_by,
        limit: _,
    } = &mut *choice;
    let mut names = Names::new(source, bindings);
    names.count = from_list::tables(from).len();
    let scope = names.scope(Location::empty(), from);
    names.scopes.push(Some(scope));
    if names.refused.is_none() {
        let _ = names.walk_from(from);
    }
    names.settle(condition);
    names.settle(order_by);
    names.targets = from_list::tables(from)
        .into_iter()
        .filter_map(name_of)
        .collect();
    names.alone.columns = columns;
    names.settle(values.iter_mut().map(|value| &mut **value));
    let Some(refused) = names.refused else {
        return Ok(names.written);
    };
    let values = values.iter().map(|value| (**value).clone());
    let query = change::query(choice.clone(), values.collect())?;
    Err(refused.error(|column| clause::of_column(&query, column)))
}

/// Whether a value that a row of one table gets has names that are to be settled. `new_row` is what
/// the row that would have come is called, `columns` are those that are put into the value.
pub fn is_needed_in_value(
    value: &Expr,
    table: &Mention,
    new_row: Option<&str>,
    columns: &RowColumns,
) -> bool {
    is_needed(value, &targets(table, new_row)) || columns.may_stand_in(value)
}

/// Settles the names of a value that a row of one table, which has these columns, gets. Some of
/// them are put into the value.
///
/// # Errors
/// As of a query.
pub fn in_value<'a>(
    value: &mut Expr,
    table: &Mention,
    columns: impl IntoIterator<Item = &'a String>,
    new_row: Option<&str>,
    put_in: RowColumns,
    bindings: &Bindings,
) -> Result<(), MySqlError> {
    let source = Source::default();
    let mut names = Names::new(&source, bindings);
    names.targets = targets(table, new_row);
    names.alone.columns = put_in;
    let database = table.database(bindings.database.as_deref());
    names.scopes.push(Some(Scope {
        at: Location::empty(),
        relations: vec![Relation {
            name: table.alias.clone(),
            inner: None,
            database: database.map(str::to_owned),
            columns: Some(lowered(columns)),
            chain: None,
            place: 0,
        }],
        joined: None,
    }));
    let _ = walk::write(value, &mut names);
    let refused = names.refused.map(|refused| refused.error(|_| "field list"));
    refused.map_or(Ok(()), Err)
}

/// The names whose columns are put into a value.
fn targets(table: &Mention, new_row: Option<&str>) -> HashSet<String> {
    let new_row = new_row.map(str::to_owned);
    new_row.into_iter().chain([table.alias.clone()]).collect()
}
