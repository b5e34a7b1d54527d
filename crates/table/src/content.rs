//! The rows of a table at this moment, and how a statement makes them others.
//!
//! **Owns** the list of pages, the tail, and the memory of the tail. **Never** changes anything
//! before all that a statement needs is written and reserved: what comes next is made first, and
//! put in place by [`Content::replace`], which cannot fail.

use std::sync::Arc;

use arrow_array::BooleanArray;
use arrow_select::filter::filter_record_batch;
use mayfly_space::{Account, NextUse};

use crate::column_page::{Format, Rows};
use crate::error::{Result, ensure};
use crate::patch::Patches;
use crate::removal::Removal;
use crate::replace::{NewRows, ReplacedPages};
use crate::rows::StopFlag;
use crate::sealed::{Heap, Sealed, Writer, write_all};
use crate::snapshot::Batch;
use crate::table_page::TablePage;
use crate::tail::{Growth, Tail};
use crate::{compact, keys};

/// The rows that wait on the heap, where they cannot be evicted, before they become a page.
const TAIL_BYTES_MAX: usize = 16 << 10;

/// The rows.
#[derive(Default)]
pub(crate) struct Content {
    pub(crate) pages: Arc<Vec<TablePage>>,
    pub(crate) tail: Tail,
    heap: Heap,
    pub(crate) row_count: u64,
    page_bytes: PageBytes,
}

/// What pages take together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PageBytes {
    encoded: u64,
    /// With numbers as wide as their types and all texts.
    wide: u64,
}

impl PageBytes {
    fn add(&mut self, page: &TablePage) {
        self.encoded += page.bytes() as u64;
        self.wide += page.wide_bytes() as u64;
    }

    fn remove(&mut self, page: &TablePage) {
        self.encoded -= page.bytes() as u64;
        self.wide -= page.wide_bytes() as u64;
    }
}

/// The rows that take the place of others.
pub(crate) struct NextContent {
    /// The pages that rows leave, by their place; `None` for one that has none left.
    changed: Vec<(usize, Option<TablePage>)>,
    /// How many of the pages stay, changed or not, and those that come behind them.
    kept: usize,
    added: Vec<Sealed>,
    tail: NextTail,
    row_count: u64,
}

enum NextTail {
    /// The tail, with more rows if there are any.
    Grown(Option<Growth>),
    Other(Tail),
}

impl NextContent {
    fn tail_bytes(&self, content: &Content) -> usize {
        match &self.tail {
            NextTail::Grown(None) => content.tail.heap_bytes(),
            NextTail::Grown(Some(growth)) => growth.heap_bytes(),
            NextTail::Other(tail) => tail.heap_bytes(),
        }
    }
}

impl Content {
    /// Makes the rows others, for whose tail memory is reserved. The list of pages is copied only
    /// if somebody else holds it.
    pub(crate) fn replace(&mut self, next: NextContent) {
        match next.tail {
            NextTail::Grown(None) => {}
            NextTail::Grown(Some(growth)) => self.tail.grow(growth),
            NextTail::Other(tail) => self.tail = tail,
        }
        self.heap.shrink(self.tail.heap_bytes());
        let is_same = next.changed.is_empty() && next.added.is_empty();
        if !is_same || next.kept < self.pages.len() {
            let pages = Arc::make_mut(&mut self.pages);
            let gone = pages.drain(next.kept..);
            gone.for_each(|page| self.page_bytes.remove(&page));
            let mut empty = Vec::new();
            for (index, page) in next.changed {
                self.page_bytes.remove(&pages[index]);
                match page {
                    Some(page) => {
                        self.page_bytes.add(&page);
                        pages[index] = page;
                    }
                    None => empty.push(index),
                }
            }
            if !empty.is_empty() {
                let mut index = 0;
                pages.retain(|_| {
                    index += 1;
                    empty.binary_search(&(index - 1)).is_err()
                });
            }
            let come = next.added.into_iter().map(TablePage::from);
            pages.extend(come.inspect(|page| self.page_bytes.add(page)));
        }
        self.row_count = next.row_count;
    }

    pub(crate) fn rows(&self) -> keys::Rows<'_> {
        keys::Rows {
            pages: &self.pages,
            tail: &self.tail,
        }
    }

    /// The encoded bytes of all rows, wherever they are.
    pub(crate) fn bytes(&self) -> u64 {
        self.page_bytes.encoded + self.tail.heap_bytes() as u64
    }

    /// About what they take with numbers as wide as their types and all their texts.
    pub(crate) fn wide_bytes(&self) -> u64 {
        self.page_bytes.wide + self.tail.wide_bytes() as u64
    }

    /// The same rows, with memory of their own for those that are not in pages.
    ///
    /// # Errors
    /// If there is no such memory.
    pub(crate) fn saved(&self, account: &Account) -> Result<Content> {
        let mut heap = Heap::new();
        heap.reserve(account, self.tail.heap_bytes())?;
        Ok(Content {
            pages: Arc::clone(&self.pages),
            tail: self.tail.clone(),
            heap,
            row_count: self.row_count,
            page_bytes: self.page_bytes,
        })
    }

    /// The rows as a statement leaves them, with memory for their tail. Its pages are written;
    /// nobody sees them yet.
    ///
    /// # Errors
    /// If memory, disk or I/O fail; [`Error::Stopped`](crate::Error::Stopped) where the flag is
    /// raised. The rows are as they were then.
    pub(crate) fn next(
        &mut self,
        account: &Account,
        writer: &Writer,
        removal: &Removal,
        replaced: &ReplacedPages,
        patches: &Patches,
        stop: Option<&StopFlag>,
    ) -> Result<NextContent> {
        let next = self.next_rows(account, writer, removal, replaced, patches, stop)?;
        self.heap.reserve(account, next.tail_bytes(self))?;
        Ok(next)
    }

    fn next_rows(
        &self,
        account: &Account,
        writer: &Writer,
        removal: &Removal,
        replaced: &ReplacedPages,
        patches: &Patches,
        stop: Option<&StopFlag>,
    ) -> Result<NextContent> {
        let (format, pages) = (&*writer.format, &self.pages);
        let mut changed = self.changed_pages(removal, replaced);
        let page_bytes = writer.page_bytes;
        compact::sparse(account, format, page_bytes, &mut changed, patches, stop)?;
        let after = |batch: Option<usize>| batch.map_or(0, |batch| batch + 1);
        let mut end = End {
            account,
            format,
            page_bytes: writer.page_bytes,
            pages,
            // What has fewer rows now is not joined with others, nor what is written to later.
            first: after(changed.last().map(|(index, _)| *index))
                .max(after(patches.batches().next_back())),
            kept: pages.len(),
            added: Vec::new(),
        };
        let mut tail = NextTail::Grown(None);
        if replaced.range(pages.len()..).next().is_some() {
            tail = NextTail::Other(self.tail_with(replaced));
        }
        if removal.slots.range(pages.len()..).next().is_some() {
            let before = match &tail {
                NextTail::Other(tail) => tail,
                NextTail::Grown(_) => &self.tail,
            };
            tail = NextTail::Other(self.tail_after(format, before, removal)?);
        }
        let whole = |tail: NextTail| match tail {
            NextTail::Other(tail) => tail,
            NextTail::Grown(growth) => {
                let mut tail = self.tail.clone();
                growth.into_iter().for_each(|growth| tail.grow(growth));
                tail
            }
        };
        if !writer.pages.is_empty() {
            end.seal(whole(tail))?;
            end.added.extend(writer.pages.iter().cloned());
            tail = NextTail::Other(writer.tail.clone());
        } else if let (NextTail::Grown(_), [segment]) = (&tail, writer.tail.segments()) {
            tail = NextTail::Grown(Some(self.tail.growth(format, segment)?));
        } else if !writer.tail.is_empty() {
            let mut all = whole(tail);
            all.append(format, &writer.tail)?;
            tail = NextTail::Other(all);
        }
        let mut next = NextContent {
            changed,
            kept: 0,
            added: Vec::new(),
            tail,
            row_count: self.row_count + writer.row_count - removal.row_count,
        };
        if next.tail_bytes(self) > TAIL_BYTES_MAX {
            let tail = std::mem::replace(&mut next.tail, NextTail::Other(Tail::default()));
            end.seal(whole(tail))?;
        }
        (next.kept, next.added) = (end.kept, end.added);
        Ok(next)
    }

    /// The pages that rows leave or that were written again, by their place.
    fn changed_pages(
        &self,
        removal: &Removal,
        replaced: &ReplacedPages,
    ) -> Vec<(usize, Option<TablePage>)> {
        let pages = &self.pages;
        let left = removal.slots.range(..pages.len());
        let left = left.map(|(index, slots)| {
            let page = match replaced.get(index).map(|replaced| &replaced.rows) {
                Some(NewRows::Page(page)) => page,
                _ => &pages[*index],
            };
            (*index, page.without(slots.iter()))
        });
        let mut changed: Vec<(usize, Option<TablePage>)> = left.collect();
        for (index, replaced) in replaced.range(..pages.len()) {
            if let NewRows::Page(page) = &replaced.rows
                && !removal.slots.contains_key(index)
            {
                changed.push((*index, Some(page.clone())));
            }
        }
        changed.sort_unstable_by_key(|(index, _)| *index);
        changed
    }

    /// The tail with the segments that were written again.
    fn tail_with(&self, replaced: &ReplacedPages) -> Tail {
        let pages = self.pages.len();
        let others = replaced.range(pages..);
        let others = others.filter_map(|(index, replaced)| match &replaced.rows {
            NewRows::Segment(segment) => Some((index - pages, segment)),
            NewRows::Page(_) => None,
        });
        self.tail.with(others)
    }

    /// The tail without the rows that leave it.
    fn tail_after(&self, format: &Format, before: &Tail, removal: &Removal) -> Result<Tail> {
        let pages = self.pages.len();
        let mut left = Tail::default();
        for (index, segment) in before.segments().iter().enumerate() {
            let batch = format.decode(&segment.source(), None)?;
            let batch = match removal.slots.get(&(pages + index)) {
                Some(slots) => {
                    let is_left = |slot: usize| !slots.contains(slot as u32);
                    let left: BooleanArray = (0..batch.num_rows())
                        .map(|slot| Some(is_left(slot)))
                        .collect();
                    filter_record_batch(&batch, &left)?
                }
                None => batch,
            };
            if batch.num_rows() > 0 {
                let rows = format.admit(batch.columns(), batch.num_rows())?;
                let size = format.size(&rows, 0, rows.row_count());
                left.push(format, &rows, size)?;
            }
        }
        Ok(left)
    }

    /// Checks that counts and bytes agree with the pages, and reads every row.
    ///
    /// # Errors
    /// [`Error::CorruptPage`](crate::Error::CorruptPage) says what does not hold; those of pages
    /// that cannot be read.
    pub(crate) fn verify(&self, format: &Format) -> Result<()> {
        let rows: usize = self.pages.iter().map(TablePage::row_count).sum();
        let row_count = (rows + self.tail.size().rows) as u64;
        ensure(self.row_count == row_count, "another count of rows")?;
        let mut page_bytes = PageBytes::default();
        self.pages.iter().for_each(|page| page_bytes.add(page));
        ensure(self.page_bytes == page_bytes, "another count of bytes")?;
        ensure(
            self.tail.heap_bytes() <= TAIL_BYTES_MAX,
            "a tail that is longer than a page",
        )?;
        let segments = self.tail.segments();
        for batch in 0..self.pages.len() + segments.len() {
            let there = Batch::of(&self.pages, segments, batch);
            let counted = there.row_count();
            let read = match there {
                Batch::Page(page) => page.read(format, None)?,
                Batch::Segment(segment) => format.decode(&segment.source(), None)?,
            };
            ensure(
                read.num_rows() == counted,
                "a page with other rows than it counts",
            )?;
        }
        Ok(())
    }
}

/// The end of a table while rows are being added to it.
struct End<'a> {
    account: &'a Account,
    format: &'a Format,
    page_bytes: usize,
    /// The pages of the table, of which the first `kept` stay, and at least `first`.
    pages: &'a [TablePage],
    first: usize,
    kept: usize,
    added: Vec<Sealed>,
}

impl End<'_> {
    /// Writes a tail to a page, together with the small pages before it.
    fn seal(&mut self, tail: Tail) -> Result<()> {
        if tail.is_empty() {
            return Ok(());
        }
        let mut rows = tail.size().rows;
        let (mut bytes, mut wide_bytes) = (tail.heap_bytes(), tail.wide_bytes());
        let mut small: Vec<Rows> = Vec::new();
        // The pages of an appender are full and stay; only the table's own may be small.
        let own = match self.added.is_empty() {
            true => self.first..self.kept,
            false => 0..0,
        };
        for page in self.pages[own].iter().rev() {
            rows += page.row_count();
            let is_short = page.bytes() <= 2 * bytes && page.is_whole();
            bytes += page.bytes();
            wide_bytes += page.wide_bytes();
            let limit_bytes = self.page_bytes;
            if !is_short || !self.format.takes(rows, (bytes, wide_bytes), limit_bytes) {
                break;
            }
            small.push(page.rows(self.format)?);
        }
        let kept = self.kept - small.len();
        let mut segments: Vec<Rows> = small.into_iter().rev().collect();
        segments.extend(tail.rows(self.format)?);
        let next_use = |_| NextUse::SecondChance;
        let (pages, _) = write_all(
            self.account,
            self.format,
            segments,
            self.page_bytes,
            next_use,
        )?;
        self.kept = kept;
        self.added.extend(pages);
        Ok(())
    }
}
