//! The rows of one partition of a side, as pages that nobody has pinned.

use std::collections::VecDeque;
use std::sync::Arc;

use super::super::Error;
use super::super::directory::directory_bytes;
use super::super::hash::Level;
use super::super::partition::Mode;
use super::super::row_table::Scratch;
use super::super::segment::{Segment, Shape};
use super::super::split::split_pages;
use super::marks::mark_bytes;
use super::page::JoinPage;

/// Hash bits by which a pair of parts that is too large is split.
pub(crate) const SPLIT_BITS: u32 = 3;

/// Pages that are asked for while the one before them is read.
const READ_AHEAD_PAGES: usize = 4;

/// Rows that belong together by the hash bits of their level.
pub struct JoinPart {
    pub(crate) shape: Arc<Shape>,
    pub(crate) number: u32,
    pub(crate) level: Level,
    pub(crate) pages: VecDeque<Segment>,
    /// Whether rows may be marked in their pages.
    pub(crate) has_marks: bool,
}

impl JoinPart {
    pub(crate) fn new(
        shape: &Arc<Shape>,
        number: usize,
        level: Level,
        pages: Vec<Segment>,
    ) -> JoinPart {
        JoinPart {
            shape: Arc::clone(shape),
            number: u32::try_from(number).expect("a side has few partitions"),
            level,
            pages: pages.into(),
            has_marks: false,
        }
    }

    /// Its rows.
    pub fn row_count(&self) -> usize {
        self.pages.iter().map(|page| page.rows as usize).sum()
    }

    /// Its pages.
    pub fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Bytes of its pages.
    pub fn page_bytes(&self) -> u64 {
        let bytes = self.pages.iter().map(|page| page.page.len_bytes() as u64);
        bytes.sum()
    }

    /// Bytes that a table over it takes.
    pub fn table_bytes(&self, keeps_marks: bool) -> u64 {
        let marks = match keeps_marks {
            true => mark_bytes(&self.shape, self.pages.len()),
            false => 0,
        };
        self.page_bytes() + directory_bytes(self.row_count()) + marks
    }

    /// The error of a caller that found no memory for a table over it.
    pub fn short_of_table(&self, keeps_marks: bool) -> Error {
        self.shape.short_of(self.table_bytes(keeps_marks)).into()
    }

    /// Takes the first pages of the part out, as many as a table in `bytes_max` has room for, and
    /// at least one.
    pub fn take_chunk(&mut self, bytes_max: u64, keeps_marks: bool) -> JoinPart {
        let mut chunk = JoinPart {
            shape: Arc::clone(&self.shape),
            number: self.number,
            level: self.level,
            pages: VecDeque::new(),
            has_marks: self.has_marks,
        };
        let (mut bytes, mut rows) = (0, 0);
        while let Some(page) = self.pages.front() {
            let marks = match keeps_marks {
                true => mark_bytes(&self.shape, chunk.pages.len() + 1),
                false => 0,
            };
            bytes += page.page.len_bytes() as u64;
            rows += page.rows as usize;
            let is_full = bytes + directory_bytes(rows) + marks > bytes_max;
            if is_full && !chunk.pages.is_empty() {
                break;
            }
            chunk.pages.extend(self.pages.pop_front());
        }
        chunk
    }

    /// Puts the pages of a chunk back before the others.
    pub fn put_back(&mut self, mut chunk: JoinPart) {
        while let Some(page) = chunk.pages.pop_back() {
            self.pages.push_front(page);
        }
    }

    /// Asks for its first pages, which will be read soon.
    pub fn prefetch(&self, pages_max: usize) {
        let absent = self.pages.iter().filter(|page| !page.page.is_resident());
        absent.take(pages_max).for_each(|page| page.page.prefetch());
    }

    /// Pins one page to read its rows, and asks for the ones behind it.
    ///
    /// # Errors
    /// Whatever the temp space reports.
    ///
    /// # Panics
    /// Where there is no such page.
    pub fn open_page(&self, number: usize) -> Result<JoinPage, Error> {
        self.shape.stop.check()?;
        let open = self.pages[number].open_or_fail()?;
        for next in self.pages.iter().skip(number + 1).take(READ_AHEAD_PAGES) {
            next.page.prefetch();
        }
        Ok(JoinPage::new(&self.shape, open))
    }

    /// Frees the first page, which is read no more.
    pub fn free_first_page(&mut self) {
        self.pages.pop_front();
    }

    /// Whether more hash bits could tell its keys apart.
    pub fn can_split(&self) -> bool {
        self.level.below(SPLIT_BITS).is_some()
    }

    /// Splits it by the next hash bits. The parts of both sides of a join that stand in the same
    /// place belong together.
    ///
    /// # Errors
    /// Whatever the temp space reports.
    ///
    /// # Panics
    /// Where it cannot be split.
    pub fn split(self) -> Result<Vec<JoinPart>, Error> {
        let below = self.level.below(SPLIT_BITS).expect("the caller asked");
        let (shape, number, has_marks) = (self.shape, self.number, self.has_marks);
        let mut scratch = Scratch::default();
        let partitions = split_pages(
            &shape,
            number,
            below,
            SPLIT_BITS,
            self.pages.into(),
            Mode::Append,
            &mut scratch,
        )?;
        let part = |pages| JoinPart {
            has_marks,
            ..JoinPart::new(&shape, number as usize, below, pages)
        };
        let pages = { partitions.into_iter() }.map(|mut partition| partition.take_pages().0);
        Ok(pages.map(part).collect())
    }
}
