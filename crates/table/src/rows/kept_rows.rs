//! Partitions that kept every input row: aggregates without an inline state read them here.
//!
//! A partition is read page by page, as often as needed; only the numbering of its groups and the
//! page at hand are in memory. Where the groups do not fit, it is split by the next hash bits.

use std::sync::Arc;

use arrow_array::ArrayRef;

use super::Error;
use super::decode;
use super::encode::KeysView;
use super::group_set::GroupSet;
use super::hash::Level;
use super::numbering::GroupNumbering;
use super::partition::Mode;
use super::reader::{GroupReader, Part, split_part};
use super::row_table::Scratch;
use super::segment::{or_short, walk};

/// The rows of one part of a [`GroupSet`] with `keep_rows`.
pub struct KeptRows {
    set: Arc<GroupSet>,
    part: Part,
}

/// What one page of kept rows gives.
pub struct KeptBatch {
    /// The group number of each row.
    pub numbers: Vec<u32>,
    /// The payload columns of the layout.
    pub payload: Vec<ArrayRef>,
}

impl GroupReader {
    /// The next part of a set that kept its rows; `None` at the end.
    ///
    /// # Errors
    /// Whatever the temp space reports.
    pub fn next_kept_rows(&mut self) -> Result<Option<KeptRows>, Error> {
        self.settle()?;
        while let Some(part) = self.next_part()? {
            if !part.cold.is_empty() {
                return Ok(Some(KeptRows {
                    set: Arc::clone(self.set()),
                    part,
                }));
            }
        }
        Ok(None)
    }

    /// Puts parts of a split back: they come next.
    pub fn give_back(&mut self, parts: Vec<KeptRows>) {
        self.push_parts(parts.into_iter().map(|kept| kept.part));
    }
}

impl KeptRows {
    /// Number of pages.
    pub fn page_count(&self) -> usize {
        self.part.cold.len()
    }

    /// The hash bits that all keys here share: for [`GroupNumbering::new`].
    pub fn level(&self) -> Level {
        self.part.level
    }

    /// Reads one page and numbers its groups; `None` where memory is short.
    ///
    /// # Errors
    /// Whatever the temp space reports.
    pub fn read_page(
        &self,
        page: usize,
        numbering: &mut GroupNumbering,
    ) -> Result<Option<KeptBatch>, Error> {
        if let Some(next) = self.part.cold.get(page + 1) {
            next.page.prefetch();
        }
        let segment = &self.part.cold[page];
        let Some(guard) = or_short(segment.page.read())? else {
            return Ok(None);
        };
        let (mut offsets, mut hashes) = (Vec::new(), Vec::new());
        let layout = &self.set.shape.layout;
        walk(layout, &guard, segment.used, &mut offsets, &mut hashes);
        let slices: Vec<&[u8]> = offsets.iter().map(|at| &guard[*at as usize..]).collect();
        let lens: Vec<u32> = slices
            .iter()
            .map(|row| layout.key_of(row).len() as u32)
            .collect();
        for offset in &mut offsets {
            *offset += layout.key_start() as u32;
        }
        let keys = KeysView {
            bytes: &guard,
            offsets: &offsets,
            lens: &lens,
            hashes: &hashes,
        };
        let mut numbers = Vec::with_capacity(offsets.len());
        if !numbering.assign_keys(keys, &mut numbers)? {
            return Ok(None);
        }
        let payload = decode::decode_payload(layout, &slices)?;
        Ok(Some(KeptBatch { numbers, payload }))
    }

    /// Splits the part by the next hash bits.
    ///
    /// # Errors
    /// `BudgetExceeded` where no hash bit tells the keys apart any more.
    pub fn split(self) -> Result<Vec<KeptRows>, Error> {
        let Part {
            number,
            level,
            cold,
            ..
        } = self.part;
        let mut scratch = Scratch::default();
        let parts = split_part(
            &self.set.shape,
            number,
            level,
            cold,
            Mode::Append,
            &mut scratch,
        )?;
        let set = &self.set;
        Ok(parts
            .into_iter()
            .map(|part| KeptRows {
                set: Arc::clone(set),
                part,
            })
            .collect())
    }
}
