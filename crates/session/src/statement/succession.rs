//! Tables that take the places of others: what ALTER and CREATE OR REPLACE end with.

use mayfly_table::{Place, Table, TableSnapshot};
use mayfly_types::{ErrorCode, MySqlError};

use super::Job;
use crate::errors;

/// A table and the one that takes its place.
pub(super) struct Succession {
    pub(super) was: Place,
    /// The rows of the old table that the new one has.
    pub(super) seen: TableSnapshot,
    pub(super) is: Place,
    /// Whether both have the same pages.
    pub(super) shares_rows: bool,
}

impl Succession {
    /// The one that comes.
    pub(super) fn table(&self) -> &Table {
        &self.is.1
    }
}

impl Job {
    /// Puts tables in the places of others, which nobody writes any more.
    ///
    /// # Errors
    /// 1412 if their rows are not those that were copied: nobody else had a turn, so they are.
    pub(super) fn swap(
        &self,
        successions: &[Succession],
        temporary: bool,
    ) -> Result<(), MySqlError> {
        let retires = |succession: &&Succession| succession.was.1.retire(&succession.seen);
        let retired = successions.iter().take_while(retires).count();
        let all = retired == successions.len();
        let was: Vec<Place> = successions.iter().map(|one| one.was.clone()).collect();
        let exchanged = match all {
            true => {
                let shared = successions.iter().filter(|one| one.shares_rows);
                shared.for_each(|one| one.was.1.hand_over_keys(&one.is.1));
                let is: Vec<Place> = successions.iter().map(|one| one.is.clone()).collect();
                self.exchange(&was, &is, temporary)
            }
            false => Err(MySqlError::new(ErrorCode::TableChanged, &[])),
        };
        if exchanged.is_err() {
            // Only those that were retired here: another statement may have retired the next one.
            let ours = was.iter().take(retired);
            ours.for_each(|(_, table)| table.return_to_use());
        }
        exchanged
    }

    /// Makes tables known in the place of others, all at once.
    fn exchange(&self, gone: &[Place], come: &[Place], temporary: bool) -> Result<(), MySqlError> {
        let exchanged = match temporary {
            true => self.connection.local().temporary.exchange(gone, come),
            false => {
                let dictionary = &self.connection.engine.shared().dictionary;
                dictionary.exchange(gone, come)
            }
        };
        exchanged.map_err(|error| errors::from_table(&error))
    }
}
