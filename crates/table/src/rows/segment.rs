//! Pages of rows: open ones that are pinned and written, closed ones that may leave memory.

use std::sync::Arc;

use mayfly_space::{Account, Error, NextUse, Page, PageClass, WriteGuard};

use super::hash::KeyHasher;
use super::layout::{DEAD_BIT, ROW_ALIGN, RowLayout, row_hash, row_is_dead};
use super::stop::StopFlag;

/// What every part of one aggregate shares.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) layout: RowLayout,
    pub(crate) account: Account,
    pub(crate) page_class: PageClass,
    pub(crate) hasher: KeyHasher,
    pub(crate) stop: StopFlag,
    /// A row reference is `segment << offset_bits | offset / ROW_ALIGN`.
    pub(crate) offset_bits: u32,
}

impl Shape {
    pub(crate) fn new(
        layout: RowLayout,
        account: Account,
        page_class: PageClass,
        stop: StopFlag,
    ) -> Arc<Shape> {
        let offset_bits = (page_class.bytes() / ROW_ALIGN).trailing_zeros();
        Arc::new(Shape {
            layout,
            account,
            page_class,
            hasher: KeyHasher::of_process(),
            stop,
            offset_bits,
        })
    }

    /// A row reference counts pages with the bits that it has left: a table has at most so many.
    pub(crate) fn pages_max(&self) -> usize {
        (u32::MAX >> self.offset_bits) as usize
    }

    /// A row reference can name offsets below this: all of a usual page, the head of a larger one.
    fn starts_end(&self) -> u32 {
        (ROW_ALIGN as u32) << self.offset_bits
    }

    /// A fresh page for rows of which the first has `row_bytes`; `None` where memory is short.
    pub(crate) fn open(&self, row_bytes: usize) -> Result<Option<OpenSegment>, Error> {
        let guard = if row_bytes <= self.page_class.bytes() {
            self.account.allocate(self.page_class)
        } else {
            self.account.allocate_bytes(row_bytes)
        };
        let starts_end = self.starts_end();
        Ok(or_short(guard)?.map(|guard| OpenSegment {
            guard,
            used: 0,
            rows: 0,
            starts_end,
        }))
    }
}

impl Shape {
    /// The error of a caller that cannot go on where memory is short.
    pub(crate) fn short_of(&self, asked_bytes: u64) -> Error {
        Error::BudgetExceeded {
            asked_bytes,
            available_bytes: 0,
            limit_bytes: self.account.space().memory_bytes(),
        }
    }
}

/// Turns "the budget is used up" into `None`; every other failure stays one.
pub(crate) fn or_short<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::BudgetExceeded { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A pinned page that takes rows.
pub(crate) struct OpenSegment {
    pub(crate) guard: WriteGuard,
    pub(crate) used: u32,
    pub(crate) rows: u32,
    /// Where the last row may start at most.
    starts_end: u32,
}

impl OpenSegment {
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.used < self.starts_end && self.used as usize + bytes <= self.guard.len()
    }

    /// Copies a row in; the caller has checked that there is room. Returns its offset.
    pub(crate) fn push(&mut self, row: &[u8]) -> u32 {
        let at = self.used;
        self.guard[at as usize..at as usize + row.len()].copy_from_slice(row);
        self.used += u32::try_from(row.len()).expect("a row fits a page");
        self.rows += 1;
        at
    }

    pub(crate) fn row(&self, offset: usize) -> &[u8] {
        &self.guard[offset..]
    }

    /// Unpins the page: from here it may leave memory.
    pub(crate) fn close(self, next_use: u32) -> Segment {
        let page = self.guard.page().clone();
        drop(self.guard);
        page.set_next_use(NextUse::At(next_use));
        Segment {
            page,
            used: self.used,
            rows: self.rows,
            starts_end: self.starts_end,
        }
    }
}

/// A page of rows that is not pinned.
pub(crate) struct Segment {
    pub(crate) page: Page,
    pub(crate) used: u32,
    pub(crate) rows: u32,
    starts_end: u32,
}

impl Segment {
    /// Pins the page, reading it back if it was written out; `None` where memory is short.
    pub(crate) fn open(&self) -> Result<Option<OpenSegment>, Error> {
        or_short(self.open_or_fail())
    }

    /// As [`Segment::open`], for a caller that cannot go on without the page: where memory is
    /// short, the error of the space says how much there is.
    pub(crate) fn open_or_fail(&self) -> Result<OpenSegment, Error> {
        let guard = self.page.write()?;
        Ok(OpenSegment {
            guard,
            used: self.used,
            rows: self.rows,
            starts_end: self.starts_end,
        })
    }
}

/// Offsets and hashes of the living rows of a page, in page order. Rows of joins do not die: there
/// the same bit says that they have found a partner.
pub(crate) fn walk(
    layout: &RowLayout,
    bytes: &[u8],
    used: u32,
    offsets: &mut Vec<u32>,
    hashes: &mut Vec<u64>,
) {
    offsets.clear();
    hashes.clear();
    let mut at = 0usize;
    while at < used as usize {
        let row = &bytes[at..];
        if layout.has_links() || !row_is_dead(row) {
            offsets.push(u32::try_from(at).expect("an offset inside a page"));
            hashes.push(row_hash(row) & !DEAD_BIT);
        }
        at += layout.row_len(row);
    }
}
