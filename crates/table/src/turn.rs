//! The right to change a table that several sessions share.
//!
//! **Owns** the queue of those who want it: first come, first served. **Never** concerns readers,
//! and never waits by itself: [`Turns::take`] is a future, which leaves the queue when it is
//! dropped, so that who waits can be killed, time out or hang up.
//!
//! ```text
//!   change   one at a time: whatever must find the table as it left it (UPDATE, REPLACE, TRUNCATE,
//!            ALTER, .., and all rows with keys, whose numbers follow each other)
//!   append   any number beside each other: rows without keys come behind those that are there
//! ```
//!
//! A table that takes the place of another has its turns, so those who wait go on waiting for it.
//! Whoever got a turn looks the name up again: it may mean another table by now.
//!
//! **Order**: who needs several takes them by their addresses ([`Turns::address`]), so that no two
//! wait for each other.
//!
//! **Cost**: one compare-and-swap and two reference counts as long as nobody else is there.

use std::sync::Arc;

use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

/// The turns of a table.
#[derive(Debug, Clone, Default)]
pub struct Turns(Arc<RwLock<()>>);

/// What somebody wants to do in his turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Rows come that nothing of the table depends on.
    Append,
    /// Anything else.
    Change,
}

/// The right to change a table, until it is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "held until it is dropped")]
pub struct Turn(Held);

#[derive(Debug)]
#[expect(dead_code, reason = "held until they are dropped")]
enum Held {
    Append(OwnedRwLockReadGuard<()>),
    Change(OwnedRwLockWriteGuard<()>),
}

impl Turns {
    /// A turn, if nobody is in the way.
    pub fn try_take(&self, purpose: Purpose) -> Option<Turn> {
        let turns = Arc::clone(&self.0);
        Some(Turn(match purpose {
            Purpose::Append => Held::Append(turns.try_read_owned().ok()?),
            Purpose::Change => Held::Change(turns.try_write_owned().ok()?),
        }))
    }

    /// A turn, when those who came before have had theirs.
    pub async fn take(&self, purpose: Purpose) -> Turn {
        let turns = Arc::clone(&self.0);
        Turn(match purpose {
            Purpose::Append => Held::Append(turns.read_owned().await),
            Purpose::Change => Held::Change(turns.write_owned().await),
        })
    }

    /// Whether these are the turns of the same table, or of one that took its place.
    pub fn are(&self, other: &Turns) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The place of the turns in the order in which several are taken.
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_changes_or_many_append() {
        let turns = Turns::default();
        let first = turns.try_take(Purpose::Append);
        let second = turns.try_take(Purpose::Append);
        assert!(first.is_some() && second.is_some());
        assert!(turns.try_take(Purpose::Change).is_none());
        drop((first, second));
        let change = turns.try_take(Purpose::Change);
        assert!(change.is_some());
        assert!(turns.try_take(Purpose::Change).is_none());
        assert!(turns.try_take(Purpose::Append).is_none());
        drop(change);
        assert!(turns.clone().try_take(Purpose::Change).is_some());
    }

    #[test]
    fn turns_of_a_successor_are_the_same() {
        let turns = Turns::default();
        assert!(turns.are(&turns.clone()));
        assert_eq!(turns.address(), turns.clone().address());
        assert!(!turns.are(&Turns::default()));
    }
}
