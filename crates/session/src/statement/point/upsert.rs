//! INSERT ... ON DUPLICATE KEY UPDATE of one row.
//!
//! Asks the unique keys first whether there is a row that it would meet. Then it is an INSERT, or
//! an UPDATE of the one row that all of them tell.

use std::sync::Arc;

use arrow::array::ArrayRef;
use mayfly_table::Repeats;

use super::Done;
use super::change::{append, assign_one, foretold, inserted, says_number, turn};
use super::known::{Cell, NewValue, OverRows};
use super::search::{Found, table_error};
use super::target::Target;
use crate::connection::Connection;
use crate::errors;
use crate::statement::apart::Given;
use crate::statement::counter::last_of;
use crate::statement::turns::purpose_of_rows;

pub(super) fn upsert(
    connection: &Connection,
    target: &Target,
    (columns, assignments): (&[Cell], &[(usize, NewValue)]),
    over: Option<&OverRows>,
    given: &Given<'_>,
) -> Found<Done> {
    let (table, constants) = (&target.table, &given.constants);
    let is_of_now = over.is_none_or(|over| over.are_of(connection, constants));
    if given.rows != 1 || says_number(target) || !is_of_now {
        return Ok(None);
    }
    let Some(arrays) = inserted(table, columns, constants.len(), given) else {
        return Ok(None);
    };
    let Some(_turn) = turn(target, purpose_of_rows(table)) else {
        return Ok(None);
    };
    let (mut counter, row) = foretold(target, &arrays)?;
    let change = table.begin_change();
    let met = table.conflicts(&row, Repeats::Stop).map_err(table_error)?;
    let Some(first) = met.found.first() else {
        drop(change);
        return append(connection, target, arrays, 1);
    };
    // Several rows are met by several keys.
    let Some(number) = first.number else {
        return Ok(None);
    };
    if met.found.iter().any(|other| other.number != Some(number)) {
        return Ok(None);
    }
    let ids = change.snapshot().locate([number]).map_err(table_error)?;
    let [id] = *ids else {
        return Ok(None);
    };
    let mut computed = Vec::new();
    if let Some(over) = over {
        let read: Vec<ArrayRef> = match over.columns.is_empty() {
            true => Vec::new(),
            false => {
                let rows = change.snapshot().rows(&ids, Some(&over.columns));
                rows.map_err(table_error)?.columns().to_vec()
            }
        };
        match over.given(&read, 1, row.columns(), constants) {
            Some(given) => computed = given.values,
            None => return Ok(None),
        }
    }
    // What the client gets is the number of the row that was met.
    let met_number = match &counter {
        Some(counter) => {
            let rows = change.snapshot().rows(&ids, Some(&[counter.column]));
            let numbers = Arc::clone(rows.map_err(table_error)?.column(0));
            last_of(&numbers).map_err(|error| errors::from_plan(&error.into()))?
        }
        None => 0,
    };
    let change = (change, id);
    let changed = assign_one(
        connection,
        target,
        change,
        assignments,
        &computed,
        constants,
    )?;
    let Some(is_changed) = changed else {
        return Ok(None);
    };
    if let Some(counter) = &mut counter {
        // The row would have had a number, which nobody gets now.
        counter.tried(table, &arrays[counter.column])?;
    }
    Ok(Some(Done::Upserted {
        is_changed,
        insert_id: if is_changed { met_number } else { 0 },
    }))
}
