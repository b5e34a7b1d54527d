//! What statements cost in sum, by their digest: `events_statements_summary_by_digest`.
//!
//! Owns a row for each digest in each database, and how many there may be. What has no place goes
//! to one row without a digest, as in MySQL.
//!
//! ```text
//! statement --ended--> digest, remembered by its shape or its text --> row += figures
//!                         |
//!                         +-- seen first: normal form ([`mayfly_sql::digest`])
//! ```
//!
//! **Never** is asked for memory of the budget: [`rows_max`] is what bounds it.
//!
//! **Cost**: for a statement that came before, two look-ups and some additions below the lock of
//! one part of the rows, which is the last lock that anybody takes.

mod cell;
mod figures;
mod latency;

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use mayfly_sql::digest::{Digest, read_part};

use crate::lock::lock;
pub(crate) use cell::DigestCell;

pub(crate) use figures::{Figures, Once};

/// Rows that there may be: MySQL's default.
const ROWS_MAX: usize = 10_000;
const ROWS_MIN: usize = 100;
/// What a row takes at most: its figures, the text of its digest and one statement.
const ROW_BYTES: u64 = 4 << 10;
/// All rows take at most this part of the budget.
const ROWS_PER_MEMORY: u64 = 64;
/// Parts of the rows with a lock of their own.
const PARTS: usize = 16;
/// Texts whose digest a connection remembers.
const TEXTS_MAX: usize = 16;

/// The digest in a cell, which is made if it is not there. Nobody waits for another who makes it,
/// perhaps below a lock.
pub(crate) fn remembered(cell: &DigestCell, make: impl FnOnce() -> Arc<Digest>) -> &Arc<Digest> {
    match cell.get() {
        Some(digest) => digest,
        None => {
            let made = make();
            cell.get_or_init(|| made)
        }
    }
}

/// How many rows there may be with so much memory: `performance_schema_digests_size`.
pub(crate) fn rows_max(memory_bytes: u64) -> usize {
    let rows = memory_bytes / ROWS_PER_MEMORY / ROW_BYTES;
    let rows = usize::try_from(rows).unwrap_or(usize::MAX);
    rows.clamp(ROWS_MIN, ROWS_MAX)
}

/// The rows of an engine.
pub(crate) struct Digests {
    parts: [Mutex<Part>; PARTS],
    rows: AtomicUsize,
    most: usize,
    /// What found no place.
    others: Mutex<Option<Box<Figures>>>,
}

/// Rows by the database, which is empty where there was none, and the digest.
type Part = HashMap<Box<str>, HashMap<Arc<Digest>, Box<Figures>>>;

impl Digests {
    pub(crate) fn new(memory_bytes: u64) -> Digests {
        Digests {
            parts: Default::default(),
            rows: AtomicUsize::new(0),
            most: rows_max(memory_bytes),
            others: Mutex::default(),
        }
    }

    fn part(&self, digest: &Digest) -> MutexGuard<'_, Part> {
        lock(&self.parts[digest.hash() as usize % PARTS])
    }

    /// Adds what a statement has cost.
    pub(crate) fn count(&self, database: Option<&str>, digest: &Arc<Digest>, once: &Once<'_>) {
        let database = database.unwrap_or_default();
        let mut part = self.part(digest);
        let rows = part.get_mut(database);
        // Mostly it is the digest of the row itself, whose text is not compared then.
        if let Some(figures) = rows.and_then(|rows| rows.get_mut(digest)) {
            figures.add(once);
            return;
        }
        let has_place = self.rows.load(Ordering::Relaxed) < self.most;
        if !has_place {
            drop(part);
            let mut others = lock(&self.others);
            others.get_or_insert_default().add(once);
            return;
        }
        // Other parts may take a place at the same time: there may be as many rows more.
        self.rows.fetch_add(1, Ordering::Relaxed);
        let rows = part.entry(database.into()).or_default();
        let figures: &mut Figures = rows.entry(Arc::clone(digest)).or_default();
        figures.add(once);
    }

    /// The digest of a row that has the same, so that its text is kept once.
    pub(crate) fn shared(&self, database: Option<&str>, digest: Digest) -> Arc<Digest> {
        let part = self.part(&digest);
        let rows = part.get(database.unwrap_or_default());
        match rows.and_then(|rows| rows.get_key_value(&digest)) {
            Some((same, _)) => Arc::clone(same),
            None => Arc::new(digest),
        }
    }

    /// Forgets everything: TRUNCATE TABLE.
    pub(crate) fn clear(&self) {
        for part in &self.parts {
            let mut part = lock(part);
            let gone: usize = part.values().map(HashMap::len).sum();
            part.clear();
            self.rows.fetch_sub(gone, Ordering::Relaxed);
        }
        *lock(&self.others) = None;
    }

    /// Looks at all rows: their database, their digest and their figures. The row without a digest
    /// comes first, if there is one. They are copied part by part: whoever ends a statement does
    /// not wait for what is made of them.
    pub(crate) fn each(&self, mut look: impl FnMut(Option<&str>, Option<&Digest>, &Figures)) {
        let others = lock(&self.others).clone();
        if let Some(others) = others {
            look(None, None, &others);
        }
        for part in &self.parts {
            let copy = lock(part).clone();
            for (database, rows) in copy {
                let database = Some(&*database).filter(|name| !name.is_empty());
                for (digest, figures) in rows {
                    look(database, Some(&digest), &figures);
                }
            }
        }
    }
}

/// The digests of the last texts of a connection, by the hash of the text.
#[derive(Default)]
pub(crate) struct Texts {
    known: HashMap<TextKey, Arc<Digest>>,
    hasher: RandomState,
}

/// The hash of a text, and its length.
pub(crate) type TextKey = (u64, usize);

impl Texts {
    /// The digest of a text, or the key under which it is to be kept.
    pub(crate) fn get(&self, text: &str, ansi_quotes: bool) -> Result<Arc<Digest>, TextKey> {
        let text = read_part(text);
        let key = (self.hasher.hash_one((text, ansi_quotes)), text.len());
        self.known.get(&key).cloned().ok_or(key)
    }

    pub(crate) fn keep(&mut self, key: TextKey, digest: &Arc<Digest>) {
        if self.known.len() >= TEXTS_MAX {
            self.known.clear();
        }
        self.known.insert(key, Arc::clone(digest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(digests: &Digests, database: Option<&str>, text: &str) {
        let digest = digests.shared(database, Digest::of(text, false));
        digests.count(database, &digest, &Once::default());
    }

    fn rows(digests: &Digests) -> Vec<(Option<String>, Option<String>, u64)> {
        let mut rows = Vec::new();
        digests.each(|database, digest, figures| {
            let text = digest.map(|digest| digest.text().to_owned());
            rows.push((database.map(str::to_owned), text, figures.count));
        });
        rows.sort();
        rows
    }

    #[test]
    fn rows_are_by_database_and_digest() {
        let digests = Digests::new(1 << 30);
        for number in 0..3 {
            count(&digests, Some("a"), &format!("SELECT {number}"));
        }
        count(&digests, Some("b"), "SELECT 1");
        count(&digests, None, "SELECT 1");
        let text = || Some("SELECT ?".to_owned());
        let expected = [
            (None, text(), 1),
            (Some("a".to_owned()), text(), 3),
            (Some("b".to_owned()), text(), 1),
        ];
        assert_eq!(rows(&digests), expected);
        digests.clear();
        assert!(rows(&digests).is_empty());
    }

    #[test]
    fn what_has_no_place_is_counted_without_a_digest() {
        let digests = Digests::new(0);
        let most = rows_max(0);
        for number in 0..most + 7 {
            count(&digests, None, &format!("SELECT c{number}"));
        }
        // It has one already.
        count(&digests, None, "SELECT c0");
        let found = rows(&digests);
        assert_eq!(found.len(), most + 1);
        assert_eq!(found[0], (None, None, 7));
        digests.clear();
        count(&digests, None, "SELECT c200");
        assert_eq!(rows(&digests).len(), 1);
    }

    #[test]
    fn rows_can_be_counted_while_others_are_looked_at() {
        let digests = Digests::new(1 << 30);
        count(&digests, Some("a"), "SELECT 1");
        digests.each(|_, _, _| count(&digests, Some("a"), "SELECT 1"));
        assert_eq!(rows(&digests)[0].2, 2);
    }

    #[test]
    fn digests_take_a_part_of_the_memory() {
        assert_eq!(rows_max(1 << 20), ROWS_MIN);
        assert_eq!(rows_max(1 << 30), 4096);
        assert_eq!(rows_max(1 << 40), ROWS_MAX);
        assert!(size_of::<Figures>() < 1024);
    }
}
