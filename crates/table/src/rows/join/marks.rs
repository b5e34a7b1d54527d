//! Which rows of a table have found a partner.

use std::sync::atomic::{AtomicU64, Ordering};

use mayfly_space::{Error as SpaceError, Reservation};

use super::super::segment::{Shape, or_short};

/// Which rows have found a partner: a bit for each place at which a row can start.
pub(crate) struct Marks {
    words: Vec<AtomicU64>,
    _memory: Reservation,
}

/// Bytes of the marks of rows in so many pages.
pub(crate) fn mark_bytes(shape: &Shape, pages: usize) -> u64 {
    let starts = (pages << shape.offset_bits) as u64;
    starts.div_ceil(64) * 8
}

impl Marks {
    /// Of pages none of whose rows has a mark; `None` where memory is short.
    pub(crate) fn new(shape: &Shape, pages: usize) -> Result<Option<Marks>, SpaceError> {
        let bytes = mark_bytes(shape, pages);
        let memory = or_short(shape.account.reserve(bytes))?;
        Ok(memory.map(|memory| Marks {
            words: (0..bytes / 8).map(|_| AtomicU64::new(0)).collect(),
            _memory: memory,
        }))
    }

    fn place(reference: u32) -> (usize, u64) {
        (reference as usize / 64, 1 << (reference % 64))
    }

    pub(crate) fn has(&self, reference: u32) -> bool {
        let (word, bit) = Marks::place(reference);
        self.words[word].load(Ordering::Relaxed) & bit != 0
    }

    /// Sets a mark; whether it was not there.
    pub(crate) fn set(&self, reference: u32) -> bool {
        let (word, bit) = Marks::place(reference);
        // Most rows that are found again have their mark.
        !self.has(reference) && self.words[word].fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}
