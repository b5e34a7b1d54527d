//! What the table holds, as sums of its columns.
//!
//! Owns: the sums, and which of them must be what after the runs of a workload.
//!
//! The number of rows and the sum of their keys never change, nor the length of any text. A
//! workload that only reads leaves everything else as it was; one that updates `k` adds to its sum
//! as much as it wrote rows; one that updates `c` leaves all other columns. One that only inserts
//! or only deletes leaves whole rows, however many.

use std::fmt;

use crate::loads::ask;
use crate::systems::server::Server;

/// Digits and dashes in `c`, by sysbench's template.
const TEXT_LEN: u64 = 119;
/// The same in `pad`.
const PAD_LEN: u64 = 59;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sums {
    rows: u64,
    ids: u64,
    keys: u64,
    texts: u64,
    pads: u64,
    text_lens: u64,
    pad_lens: u64,
}

impl Sums {
    pub(super) fn read(server: &Server) -> Result<Self, String> {
        let query = "SELECT COUNT(*), SUM(id), SUM(k), SUM(CRC32(c)), SUM(CRC32(pad)), \
                     SUM(LENGTH(c)), SUM(LENGTH(pad)) FROM sbtest1";
        let answer = ask(server, query)?;
        let numbers: Option<Vec<u64>> = answer
            .split('\t')
            .map(|number| number.parse().ok())
            .collect();
        match numbers.as_deref() {
            Some(&[rows, ids, keys, texts, pads, text_lens, pad_lens]) => Ok(Self {
                rows,
                ids,
                keys,
                texts,
                pads,
                text_lens,
                pad_lens,
            }),
            _ => Err(format!("the sums are `{answer}`")),
        }
    }

    /// What holds as long as no row comes or goes.
    pub(super) fn complete(&self, rows: u64) -> Result<(), String> {
        let right = self.rows == rows && self.ids == rows * (rows + 1) / 2 && self.is_whole();
        match right {
            true => Ok(()),
            false => Err(format!("{self}, of {rows} rows")),
        }
    }

    /// Whether each row has all of its texts.
    fn is_whole(&self) -> bool {
        self.text_lens == self.rows * TEXT_LEN && self.pad_lens == self.rows * PAD_LEN
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            rows,
            ids,
            keys,
            texts,
            pads,
            text_lens,
            pad_lens,
        } = self;
        write!(
            f,
            "{rows} rows, id {ids}, k {keys}, c {texts} ({text_lens}), pad {pads} ({pad_lens})"
        )
    }
}

/// The table of one server when it was last looked at, and what has run since.
#[derive(Debug)]
pub(super) struct Known {
    sums: Sums,
    /// Workloads since then, other than those that only read.
    changes: Vec<Changes>,
    /// Rows that changed their `k` since then.
    key_updates: u64,
}

impl Known {
    pub(super) fn new(sums: Sums) -> Self {
        Self {
            sums,
            changes: Vec::new(),
            key_updates: 0,
        }
    }

    /// A workload ran that wrote so many rows.
    pub(super) fn ran(&mut self, changes: Changes, writes: u64) {
        if changes != Changes::Nothing {
            self.changes.push(changes);
        }
        if changes == Changes::Key {
            self.key_updates += writes;
        }
    }

    /// Compares the table with what it must hold, and goes on from what it does hold.
    pub(super) fn check(&mut self, found: Sums, rows: u64) -> Result<Option<String>, String> {
        let changed = |what| self.changes.contains(&what);
        if changed(Changes::Count) {
            let mut known = Self::new(found);
            // The next workload finds another number of rows, too.
            known.changes.push(Changes::Count);
            *self = known;
            return Ok((!found.is_whole()).then(|| found.to_string()));
        }
        let mut expected = self.sums;
        expected.keys += self.key_updates;
        if changed(Changes::Text) || changed(Changes::Rows) {
            expected.texts = found.texts;
        }
        if changed(Changes::Rows) {
            expected.keys = found.keys;
            expected.pads = found.pads;
        }
        let wrong = found.complete(rows).err();
        let wrong =
            wrong.or_else(|| (expected != found).then(|| format!("{found} instead of {expected}")));
        *self = Self::new(found);
        Ok(wrong)
    }
}

/// The columns in which a workload leaves other values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changes {
    Nothing,
    /// `k` grows by one with each statement.
    Key,
    /// `c` gets another text of the same length.
    Text,
    /// Rows are removed and inserted again with other values.
    Rows,
    /// Rows come or go.
    Count,
}
