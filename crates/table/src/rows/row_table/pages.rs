//! Whole pages of rows on their way into a table: as they are, or row by row.
//!
//! Rows of joins stay rows of their own: a table links those that have one key, and does not enter
//! those whose key has no equal.

use std::sync::Arc;

use super::super::Error;
use super::super::directory::Probe;
use super::super::encode::RowsView;
use super::super::hash::Level;
use super::super::layout::mark_dead;
use super::super::segment::{OpenSegment, Segment, Shape, walk};
use super::super::walked::Walked;
use super::{RowTable, Scratch, WINDOW_ROWS, place_of, reference_to, row_at};

/// The link of the last row with its key; others are one more than the reference of the next.
const NO_LINK: u32 = 0;

impl RowTable {
    /// Builds a table over pages as they are, merging doubles into the row that came first.
    /// Gives the pages back, some doubles merged, where memory is short or there are more than
    /// references can count.
    pub(crate) fn adopt(
        shape: &Arc<Shape>,
        level: Level,
        pages: Vec<Segment>,
        next_use: u32,
        scratch: &mut Scratch,
    ) -> Result<Result<RowTable, Vec<Segment>>, Error> {
        if pages.len() > shape.pages_max() {
            return Ok(Err(pages));
        }
        let rows: usize = pages.iter().map(|s| s.rows as usize).sum();
        let Some(mut table) = RowTable::new(shape, level, rows, usize::MAX)? else {
            return Ok(Err(pages));
        };
        for page in &pages {
            match page.open()? {
                Some(segment) => {
                    table.bytes += segment.guard.len();
                    table.segments.push(segment);
                }
                None => return Ok(Err(pages)),
            }
        }
        drop(pages);
        // Rows that move while pages are indexed go to a fresh page, which is not.
        table.filling = table.segments.len();
        for segment in 0..table.segments.len() {
            if !table.index_segment(segment, scratch)? {
                return Ok(Err(table.withdraw(next_use).collect()));
            }
        }
        Ok(Ok(table))
    }

    /// Enters the rows of a page and merges doubles; false where memory is short, with those that
    /// were not merged as they were.
    fn index_segment(&mut self, segment: usize, scratch: &mut Scratch) -> Result<bool, Error> {
        let shape = Arc::clone(&self.shape);
        let key_start = shape.layout.key_start();
        let used = self.segments[segment].used;
        walk(
            &shape.layout,
            &self.segments[segment].guard,
            used,
            &mut scratch.offsets,
            &mut scratch.hashes,
        );
        scratch.pairs.clear();
        let mut is_short = false;
        let rows = scratch.offsets.chunks(WINDOW_ROWS);
        for (offsets, hashes) in rows.zip(scratch.hashes.chunks(WINDOW_ROWS)) {
            if !self.begin_window()? {
                is_short = true;
                break;
            }
            self.look_ahead(hashes.iter().copied(), &mut scratch.ahead);
            for (at, (offset, hash)) in offsets.iter().zip(hashes).enumerate() {
                let start = scratch.ahead.start(at);
                let row = self.segments[segment].row(*offset as usize);
                let key = shape.layout.key_of(row);
                if !shape.layout.is_matchable(key) {
                    continue;
                }
                let hash = self.placing_hash(*hash, key);
                match self
                    .directory
                    .probe_from(start, hash, |r| self.same_key(r, key, key_start))
                {
                    Probe::Found(target) => scratch.pairs.push((*offset, target)),
                    Probe::Vacant(slot) => {
                        let reference = reference_to(&shape, segment, *offset);
                        self.directory.insert(slot, hash, reference);
                        if shape.layout.has_links() {
                            // The page may have been in another table.
                            let row = &mut self.segments[segment].guard[*offset as usize..];
                            shape.layout.set_link(row, NO_LINK);
                        }
                    }
                }
            }
        }
        if shape.layout.has_links() {
            self.link_doubles(segment, &scratch.pairs);
            return Ok(!is_short);
        }
        // The doubles leave the page before they are merged: source and target may share it.
        let pairs = std::mem::take(&mut scratch.pairs);
        let merged = if shape.layout.payload_is_first {
            self.merge_doubles(segment, &pairs);
            Ok(true)
        } else {
            self.merge_doubles_that_grow(segment, &pairs, &mut scratch.row)
        };
        scratch.pairs = pairs;
        Ok(merged? && !is_short)
    }

    /// Puts rows of a page behind the first row that has their key.
    fn link_doubles(&mut self, segment: usize, pairs: &[(u32, u32)]) {
        let shape = Arc::clone(&self.shape);
        self.has_doubles |= !pairs.is_empty();
        for (offset, head) in pairs {
            let reference = reference_to(&shape, segment, *offset);
            let (head_segment, head_offset) = place_of(&shape, *head);
            let head = &mut self.segments[head_segment].guard[head_offset..];
            let next = shape.layout.link_of(head);
            shape.layout.set_link(head, reference + 1);
            let row = &mut self.segments[segment].guard[*offset as usize..];
            shape.layout.set_link(row, next);
        }
    }

    /// Marks rows of a join in their pages, by their references.
    pub(crate) fn mark_in_pages(&mut self, is_marked: impl Fn(u32) -> bool) {
        let shape = Arc::clone(&self.shape);
        for (number, page) in self.segments.iter_mut().enumerate() {
            let mut at = 0;
            while at < page.used {
                let row = &mut page.guard[at as usize..];
                let row_len = shape.layout.row_len(row) as u32;
                if is_marked(reference_to(&shape, number, at)) {
                    mark_dead(row);
                }
                at += row_len;
            }
        }
    }

    /// Whether rows are linked with others of their key.
    pub(crate) fn has_doubles(&self) -> bool {
        self.has_doubles
    }

    /// The next row with the key of this one.
    #[inline]
    pub(crate) fn next_of(&self, reference: u32) -> Option<u32> {
        let row = row_at(&self.shape, &self.segments, reference);
        self.shape.layout.link_of(row).checked_sub(1)
    }

    /// The row at a reference, and what follows it in its page.
    #[inline]
    pub(crate) fn row(&self, reference: u32) -> &[u8] {
        row_at(&self.shape, &self.segments, reference)
    }

    /// The reference of a row.
    pub(crate) fn reference_to(&self, segment: usize, offset: u32) -> u32 {
        reference_to(&self.shape, segment, offset)
    }

    fn merge_doubles(&mut self, segment: usize, pairs: &[(u32, u32)]) {
        let layout = &self.shape.layout;
        let mut doubles = Vec::new();
        let mut offsets = Vec::with_capacity(pairs.len());
        for (offset, _) in pairs {
            let row = &mut self.segments[segment].guard[*offset as usize..];
            let len = layout.row_len(row);
            offsets.push(u32::try_from(doubles.len()).expect("a page of rows"));
            doubles.extend_from_slice(&row[..len]);
            mark_dead(row);
        }
        let view = RowsView {
            bytes: &doubles,
            offsets: &offsets,
            hashes: &[],
        };
        let targets = pairs.iter().map(|(_, target)| *target);
        let numbered: Vec<(u32, u32)> = (0..).zip(targets).collect();
        self.merge_pairs(view, &numbered);
    }

    fn merge_doubles_that_grow(
        &mut self,
        segment: usize,
        pairs: &[(u32, u32)],
        merged: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        let mut double = Vec::new();
        for (offset, target) in pairs {
            let row = self.segments[segment].row(*offset as usize);
            double.clear();
            double.extend_from_slice(&row[..self.shape.layout.row_len(row)]);
            if !self.merge_row(&double, *target, merged)? {
                return Ok(false);
            }
            mark_dead(&mut self.segments[segment].guard[*offset as usize..]);
        }
        Ok(true)
    }

    /// Merges pages in and frees them one by one; false where memory ran short, with what is left
    /// still in `pages`.
    pub(crate) fn merge_pages(
        &mut self,
        pages: &mut Vec<Segment>,
        scratch: &mut Scratch,
    ) -> Result<bool, Error> {
        let mut walked = Walked::default();
        while let Some(segment) = pages.pop() {
            let merged = match segment.open()? {
                Some(mut open) => self.merge_page(&mut open, &mut walked, scratch)?.1,
                None => false,
            };
            if !merged {
                pages.push(segment);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Merges the rows of a page in: how many there was memory for, and whether those are all. They
    /// do not come again with the page.
    pub(crate) fn merge_page(
        &mut self,
        page: &mut OpenSegment,
        walked: &mut Walked,
        scratch: &mut Scratch,
    ) -> Result<(usize, bool), Error> {
        let rows = walked.rows(&self.shape.layout, page);
        let selection: Vec<u32> = (0..rows.offsets.len() as u32).collect();
        let taken = self.upsert(rows, &selection, scratch)?;
        let is_all = taken == selection.len();
        if !is_all {
            for offset in &walked.offsets()[..taken] {
                mark_dead(&mut page.guard[*offset as usize..]);
            }
        }
        Ok((taken, is_all))
    }
}
