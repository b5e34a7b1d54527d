//! Keys that lost an entry when something failed: how they become whole again.
//!
//! **Owns** the building of keys beside their table. **Never** holds the lock of the table while it
//! builds: reading all rows takes seconds where they are many, and all who read the table would
//! wait.
//!
//! Stale keys are let go, so that their memory is there for new ones. What the table holds is
//! saved, which takes no time; keys of it are built; they take their place if nobody has changed
//! the table meanwhile. Where that fails they are built under the lock, once for each call.
//!
//! One thread builds at a time, and whoever else asks a key waits for it: two would need the memory
//! twice. That thread is the one that asked: a worker serves nobody else meanwhile, and a statement
//! that is stopped ends when the keys are whole. A table that belongs to one session has nobody
//! else who waits, and is mended where it is asked.

use std::sync::{MutexGuard, PoisonError};

use crate::content::Content;
use crate::error::Result;
use crate::keys::{self, Indexes};
use crate::table::{State, Table};

/// How often keys are built in vain, because somebody changes the table, before it has to wait.
const TRIES: u32 = 3;

impl Table {
    /// The state, whose keys are whole unless somebody changes the table all the time.
    ///
    /// # Errors
    /// If memory or I/O fail.
    pub(super) fn mended(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        if self.turns.is_none() || !is_stale(&state) {
            return Ok(state);
        }
        drop(state);
        // Nothing depends on what a panic left.
        let _only = self.mending.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..TRIES {
            let mut state = self.state();
            if !is_stale(&state) {
                return Ok(state);
            }
            // Nobody reads stale trees.
            let spoiled = state.indexes.replace(self.stale_indexes());
            let (version, content) = (state.version, state.content.saved(&self.account));
            drop(state);
            // Freeing many pages takes its time.
            drop(spoiled);
            let Ok(built) = content.and_then(|content| self.built(&content)) else {
                break;
            };
            let mut state = self.state();
            if state.version == version {
                state.indexes = Some(built);
                return Ok(state);
            }
        }
        Ok(self.state())
    }

    /// Indexes without entries that are built before they are used.
    fn stale_indexes(&self) -> Indexes {
        let mut indexes = self.empty_indexes();
        indexes.mark_stale();
        indexes
    }

    fn built(&self, content: &Content) -> Result<Indexes> {
        let mut built = self.empty_indexes();
        keys::rebuild(&mut built, &self.layout().format, content.rows(), None)?;
        Ok(built)
    }
}

fn is_stale(state: &State) -> bool {
    state.indexes.as_ref().is_some_and(Indexes::is_stale)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use arrow_array::{Int64Array, RecordBatch};
    use mayfly_space::{AccountOptions, Faults, Operation, Space, SpaceOptions};
    use mayfly_types::ColumnType;

    use super::*;
    use crate::{Column, Definition, Key, KeyKind, KeyPart};

    /// Fails one grant of memory when it is armed.
    #[derive(Default)]
    struct FailOnce(AtomicBool);

    impl Faults for FailOnce {
        fn before(&self, operation: Operation) -> std::io::Result<()> {
            match operation == Operation::Grant && self.0.swap(false, Ordering::Relaxed) {
                true => Err(std::io::Error::other("injected")),
                false => Ok(()),
            }
        }
    }

    fn space() -> Space {
        space_with(None)
    }

    fn space_with(faults: Option<Arc<dyn Faults>>) -> Space {
        let options = SpaceOptions {
            memory_bytes: 16 << 20,
            faults,
            ..SpaceOptions::default()
        };
        Space::open(options).expect("the options are valid")
    }

    fn table(space: &Space) -> Arc<Table> {
        let account = space.root().child("test", AccountOptions::default());
        let id = Column::new("id", ColumnType::BigInt { unsigned: false }, false);
        let definition = Definition {
            columns: vec![id],
            keys: vec![Key::new("PRIMARY", KeyKind::Primary, vec![KeyPart::new(0)])],
            ..Definition::default()
        };
        Arc::new(Table::new("t", definition, &account).shared())
    }

    fn append(table: &Table, ids: std::ops::Range<i64>) {
        let ids = Arc::new(Int64Array::from_iter_values(ids));
        let batch = RecordBatch::try_new(Arc::clone(table.schema()), vec![ids]);
        let appended = table.append(&batch.expect("the schema of the table"));
        appended.expect("there is room");
    }

    fn spoil(table: &Table) {
        let mut state = table.state();
        let indexes = state.indexes.as_mut().expect("it has a key");
        indexes.clear();
        indexes.mark_stale();
    }

    #[test]
    fn keys_that_lost_entries_are_whole_when_they_are_asked() {
        let space = space();
        let table = table(&space);
        append(&table, 0..20_000);
        assert!(!is_stale(&table.mended().expect("nothing fails")));
        spoil(&table);
        assert!(is_stale(&table.state()));
        assert_eq!(table.distinct(0, 1).expect("nothing fails"), 20_000);
        assert!(!is_stale(&table.state()));
        let known = table.verify();
        known.expect("rows and entries agree");
    }

    #[test]
    fn keys_that_cannot_be_built_beside_the_table_are_built_in_place() {
        let fault = Arc::new(FailOnce::default());
        let space = space_with(Some(Arc::clone(&fault) as _));
        let table = table(&space);
        append(&table, 0..20_000);
        let whole = table.index_bytes();
        // The stale trees are there; they go before others are built.
        let mut state = table.state();
        state.indexes.iter_mut().for_each(Indexes::mark_stale);
        drop(state);
        assert_eq!(table.index_bytes(), whole);
        fault.0.store(true, Ordering::Relaxed);
        let state = table
            .mended()
            .expect("what it met is left to the one who asks");
        let left = state.indexes.as_ref().map_or(0, Indexes::bytes);
        assert!(is_stale(&state) && left < whole, "{left} of {whole}");
        drop(state);
        assert!(!fault.0.load(Ordering::Relaxed));
        assert_eq!(table.distinct(0, 1).expect("it failed once"), 20_000);
        table.verify().expect("rows and entries agree");
    }

    #[test]
    fn keys_are_mended_beside_those_who_change_the_table() {
        let space = space();
        let table = table(&space);
        append(&table, 0..5_000);
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asking: Vec<_> = (0..2)
                .map(|_| {
                    scope.spawn(|| {
                        let mut last = 5_000;
                        while !is_over.load(Ordering::Relaxed) {
                            let found = table.distinct(0, 1).expect("nothing fails");
                            assert!(found >= last, "{found} after {last}");
                            last = found;
                        }
                    })
                })
                .collect();
            for round in 0..50 {
                spoil(&table);
                let first = 5_000 + round * 100;
                append(&table, first..first + 100);
            }
            is_over.store(true, Ordering::Relaxed);
            for thread in asking {
                thread.join().expect("keys are never seen without entries");
            }
        });
        assert_eq!(table.distinct(0, 1).expect("nothing fails"), 10_000);
        table.verify().expect("rows and entries agree");
    }
}
