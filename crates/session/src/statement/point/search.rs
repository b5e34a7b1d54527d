//! The search for the rows of a statement.

use arrow::error::ArrowError;
use mayfly_exec::Searched;
use mayfly_table::{Search, TableSnapshot};
use mayfly_types::MySqlError;

use super::target::Target;
use crate::errors;

/// What was found or done; `None` where the statement must go the long way, and nothing was done.
pub(super) type Found<T> = Result<Option<T>, MySqlError>;

/// The numbers of the rows that searches find, which are counted as read; `None` when they are
/// many.
pub(super) fn search(
    target: &Target,
    searches: &[Search],
    most: usize,
) -> Found<(TableSnapshot, Vec<u64>)> {
    let found = target.table.search(searches, most).map_err(table_error)?;
    if let Some((_, numbers)) = &found {
        let searched = Searched::of(&target.table, searches);
        target.reads.set(searched.reads(numbers.len()));
    }
    Ok(found)
}

pub(super) fn table_error(error: mayfly_table::Error) -> MySqlError {
    errors::from_table(&error)
}

pub(super) fn plan_error(error: ArrowError) -> MySqlError {
    errors::from_plan(&error.into())
}
