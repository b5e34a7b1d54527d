//! Memory beside what was admitted for a side.

use mayfly_space::{Account, Admission, Error, Reservation};

use super::super::segment::or_short;

/// Memory that a join uses well and can go on without. It is none of the admitted minimum, which
/// stays there for what the join cannot go on without.
#[derive(Debug)]
pub(crate) struct ExtraMemory {
    _memory: Reservation,
    _admission: Admission,
}

impl ExtraMemory {
    /// Reserves it; `None` where memory is short, or the account may have no more.
    pub(crate) fn reserve(account: &Account, bytes: u64) -> Result<Option<ExtraMemory>, Error> {
        let Some(admission) = or_short(account.admit_within_limits(bytes))? else {
            return Ok(None);
        };
        let memory = or_short(account.reserve(bytes))?;
        Ok(memory.map(|memory| ExtraMemory {
            _memory: memory,
            _admission: admission,
        }))
    }
}
