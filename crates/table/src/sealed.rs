//! A written column page of the temp space, and the writer that fills such pages.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use bytes::Bytes;
use mayfly_space::{Account, NextUse, Page, PageClass, ReadGuard, Reservation};

use crate::column_page::{Format, Prepared, Rows, Source, TextShare};
use crate::error::Result;
use crate::tail::Tail;

/// Pages are this fraction of the memory, so that an operator can hold one page of each of many
/// runs.
const PAGES_PER_MEMORY: u64 = 256;
/// The largest page that is filled with several rows: 8192 rows of 32 bytes. More would spare few
/// calls and pin more memory in a merge of many runs.
const PAGE_CLASS_MAX: PageClass = PageClass::K256;
/// A page counts as full when at most this part of it is free: the rows that come next would only
/// be copied twice.
const UNFILLED_PART: usize = 8;
/// What is read ahead: enough for a device to work on, ...
const AHEAD_BYTES_MAX: usize = 1 << 20;
/// ... and little enough that several readers do not take each other's pages.
const AHEAD_PER_MEMORY: u64 = 32;
/// Reservations grow in steps, so that small appends rarely touch the budget.
const RESERVATION_STEP: usize = 4 << 10;

/// A column page that changes as long as its table is the only one to hold it (`crate::patch`).
#[derive(Clone)]
pub(crate) struct Sealed {
    page: Page,
    row_count: usize,
    bytes: usize,
    wide_bytes: usize,
    row_numbers: Option<RowNumbers>,
}

/// The row numbers of a page: they ascend, and some between them may be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowNumbers {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Sealed {
    /// Writes rows to a page of the smallest class that holds them.
    pub(crate) fn write(
        account: &Account,
        prepared: &Prepared<'_>,
        next_use: NextUse,
    ) -> Result<Self> {
        let rows = prepared.rows();
        let mut guard = account.allocate_bytes(prepared.len_bytes())?;
        prepared.write(&mut guard);
        let page = guard.page().clone();
        page.set_next_use(next_use);
        drop(guard);
        Ok(Self {
            page,
            row_count: rows.iter().map(Rows::row_count).sum(),
            bytes: prepared.len_bytes(),
            wide_bytes: prepared.wide_bytes(),
            row_numbers: prepared.format().has_row_numbers().then(|| RowNumbers {
                first: rows
                    .first()
                    .and_then(Rows::first_number)
                    .unwrap_or_default(),
                last: rows.last().and_then(Rows::last_number).unwrap_or_default(),
            }),
        })
    }

    pub(crate) fn page_number(&self) -> u32 {
        self.page.number()
    }

    pub(crate) fn row_numbers(&self) -> Option<RowNumbers> {
        self.row_numbers
    }

    pub(crate) fn row_count(&self) -> usize {
        self.row_count
    }

    /// Whether nobody else has a handle on the page: no other list of pages, and no array that
    /// points into it.
    pub(crate) fn has_one_holder(&self) -> bool {
        self.page.is_last()
    }

    /// The encoded bytes, without what is left free in the page.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// About what the rows take with numbers as wide as their types and all their texts.
    pub(crate) fn wide_bytes(&self) -> usize {
        self.wide_bytes
    }

    /// Bytes that reading the page pins.
    pub(crate) fn page_bytes(&self) -> usize {
        self.page.len_bytes()
    }

    pub(crate) fn prefetch(&self) {
        self.page.prefetch();
    }

    /// The rows, pointing into the page and pinning it.
    pub(crate) fn read(
        &self,
        format: &Format,
        projection: Option<&[usize]>,
    ) -> Result<RecordBatch> {
        format.decode(&self.pin()?, projection)
    }

    /// The rows in memory of their own.
    pub(crate) fn read_copied(
        &self,
        format: &Format,
        projection: Option<&[usize]>,
    ) -> Result<RecordBatch> {
        let guard = self.page.read()?;
        format.decode(&Source::Copied(&guard), projection)
    }

    /// Some rows in memory of their own.
    pub(crate) fn read_slots(
        &self,
        format: &Format,
        projection: Option<&[usize]>,
        slots: &[u32],
    ) -> Result<RecordBatch> {
        format.decode_slots(&self.pin()?, projection, slots)
    }

    /// The rows as they are stored, pinning the page.
    pub(crate) fn rows(&self, format: &Format) -> Result<Rows> {
        format.decode_stored(&self.pin()?)
    }

    /// The bytes, pinned.
    pub(crate) fn bytes_pinned(&self) -> Result<ReadGuard> {
        Ok(self.page.read()?)
    }

    /// What arrays can point into, pinned.
    pub(crate) fn pin(&self) -> Result<Source<'static>> {
        let pinned = Pinned(self.page.read()?);
        Ok(Source::Shared(Bytes::from_owner(pinned)))
    }
}

/// A pin that [`Bytes`] can own.
struct Pinned(ReadGuard);

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The page class that runs and tables of a space fill by default.
pub(crate) fn page_class(account: &Account) -> PageClass {
    let space = account.space();
    let share = space.memory_bytes() / PAGES_PER_MEMORY;
    let mut chosen = space.default_page_class();
    for class in [PageClass::K16, PageClass::K64, PAGE_CLASS_MAX] {
        if class.bytes() > chosen.bytes() && class.bytes() as u64 <= share {
            chosen = class;
        }
    }
    chosen
}

/// How far a reader in order asks ahead.
#[derive(Debug)]
pub(crate) struct Ahead {
    depth: usize,
    /// The first page that was not asked for.
    next: usize,
}

impl Ahead {
    /// Nothing was asked for from page `first` on.
    pub(crate) fn new(account: &Account, page_bytes: usize, first: usize) -> Self {
        let share = account.space().memory_bytes() / AHEAD_PER_MEMORY;
        let bytes = usize::try_from(share)
            .unwrap_or(usize::MAX)
            .min(AHEAD_BYTES_MAX);
        Self {
            depth: (bytes / page_bytes).max(2),
            next: first,
        }
    }

    /// The pages to ask for before page `index` of `end` is read: several at a time, so that the
    /// device reads neighbours at once.
    pub(crate) fn pages(&mut self, index: usize, end: usize) -> Range<usize> {
        let from = self.next.max(index);
        if from <= index + self.depth / 2 {
            self.next = (index + 1 + self.depth).min(end).max(from);
        }
        from..self.next.max(from)
    }
}

/// Memory of the heap that grows with a tail.
#[derive(Default)]
pub(crate) struct Heap {
    reservation: Option<Reservation>,
    bytes: usize,
}

impl Heap {
    pub(crate) const fn new() -> Self {
        Self {
            reservation: None,
            bytes: 0,
        }
    }

    /// Grows to at least that many bytes.
    pub(crate) fn reserve(&mut self, account: &Account, bytes: usize) -> Result<()> {
        let bytes = bytes.next_multiple_of(RESERVATION_STEP);
        if bytes > self.bytes {
            match &mut self.reservation {
                Some(reservation) => reservation.try_resize(bytes as u64)?,
                None => self.reservation = Some(account.reserve(bytes as u64)?),
            }
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Gives back what exceeds that many bytes.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.next_multiple_of(RESERVATION_STEP);
        if bytes == 0 {
            self.reservation = None;
            self.bytes = 0;
        } else if bytes < self.bytes
            && let Some(reservation) = &mut self.reservation
        {
            reservation.shrink(bytes as u64);
            self.bytes = bytes;
        }
    }
}

/// Fills pages one after the other; the last rows wait in a tail.
pub(crate) struct Writer {
    // Fixed.
    pub(crate) account: Account,
    pub(crate) format: Arc<Format>,
    pub(crate) page_bytes: usize,
    pub(crate) next_use: NextUse,
    // State.
    pub(crate) pages: Vec<Sealed>,
    pub(crate) tail: Tail,
    pub(crate) row_count: u64,
    /// Of the page that was written last: the next one is filled with rows as if its texts repeated
    /// as often.
    texts: TextShare,
    // Resources.
    pub(crate) heap: Heap,
}

impl Writer {
    pub(crate) fn new(account: Account, format: Arc<Format>, next_use: NextUse) -> Self {
        let page_bytes = page_class(&account).bytes();
        Self {
            account,
            format,
            page_bytes,
            next_use,
            pages: Vec::new(),
            tail: Tail::default(),
            row_count: 0,
            texts: TextShare::default(),
            heap: Heap::new(),
        }
    }

    /// Appends all rows of the batch or, on an error, none.
    pub(crate) fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        self.append_columns(batch.columns().to_vec(), batch.num_rows())
    }

    /// As [`Writer::append`], with the columns of a batch.
    pub(crate) fn append_columns(&mut self, columns: Vec<ArrayRef>, rows: usize) -> Result<()> {
        let rows = self.format.admit(&columns, rows)?;
        if rows.row_count() == 0 {
            return Ok(());
        }
        let page_count = self.pages.len();
        let tail = self.tail.clone();
        let result = self.append_rows(&rows);
        match result {
            Ok(()) => self.row_count += rows.row_count() as u64,
            Err(_) => {
                self.pages.truncate(page_count);
                self.tail = tail;
            }
        }
        self.heap.shrink(self.tail.heap_bytes());
        result
    }

    fn append_rows(&mut self, rows: &Rows) -> Result<()> {
        let format = Arc::clone(&self.format);
        let mut from = 0;
        while from < rows.row_count() {
            let left = rows.row_count() - from;
            let (mut count, mut size) =
                format.fit(rows, from, self.tail.size(), (self.page_bytes, self.texts));
            if count == 0 && !self.tail.is_empty() {
                self.seal(None)?;
                continue;
            }
            if count == 0 {
                // One row longer than a page: it gets a page of its own length.
                count = 1;
                size = format.size(rows, from, 1);
            }
            let part = rows.slice(from, count);
            let all = self.tail.size().clone().plus(&size);
            let page_bytes = format.filled_bytes(&all, self.page_bytes, self.texts);
            let is_full =
                format.expected_bytes(&all, self.texts) >= page_bytes - page_bytes / UNFILLED_PART;
            if count < left || is_full || !format.merges() {
                self.seal(Some(part))?;
            } else {
                let needed = self.tail.heap_bytes_with(&format, &size, self.texts);
                self.heap.reserve(&self.account, needed)?;
                self.tail.push(&format, &part, size)?;
                self.heap.reserve(&self.account, self.tail.heap_bytes())?;
            }
            from += count;
        }
        Ok(())
    }

    /// Writes the tail, followed by some rows, to a page; to several, where texts repeat less than
    /// those of the page before.
    pub(crate) fn seal(&mut self, rows: Option<Rows>) -> Result<()> {
        let mut all = self.tail.rows(&self.format)?;
        all.extend(rows);
        let (first, next_use) = (self.pages.len(), self.next_use);
        let next_use = |page: usize| match next_use {
            NextUse::At(use_of_first) => {
                let index = u32::try_from(first + page).unwrap_or(u32::MAX);
                NextUse::At(use_of_first.saturating_add(index))
            }
            other => other,
        };
        let (pages, texts) =
            write_all(&self.account, &self.format, all, self.page_bytes, next_use)?;
        self.pages.extend(pages);
        self.texts = texts;
        self.tail = Tail::default();
        Ok(())
    }
}

/// Writes rows to a page or, where they are narrow and do not fit into one of so many bytes, to
/// several. Returns the pages and the share of its texts that the last one has kept.
pub(crate) fn write_all(
    account: &Account,
    format: &Format,
    mut rows: Vec<Rows>,
    page_bytes: usize,
    next_use: impl Fn(usize) -> NextUse,
) -> Result<(Vec<Sealed>, TextShare)> {
    let (mut pages, mut texts) = (Vec::new(), TextShare::default());
    // As many as are likely to fit.
    let mut likely = usize::MAX;
    while !rows.is_empty() {
        let first = cut(&rows, 0, likely);
        let count: usize = first.iter().map(Rows::row_count).sum();
        let prepared = Prepared::new(format, &first)?;
        let len_bytes = prepared.len_bytes();
        let fitting = (count * page_bytes / len_bytes).max(1);
        if format.narrows() && count > 1 && len_bytes > page_bytes {
            likely = (fitting - fitting / UNFILLED_PART).max(1);
            continue;
        }
        pages.push(Sealed::write(account, &prepared, next_use(pages.len()))?);
        texts = prepared.texts();
        rows = cut(&rows, count, usize::MAX);
        likely = fitting;
    }
    Ok((pages, texts))
}

/// So many rows of some, from one on.
fn cut(rows: &[Rows], mut from: usize, mut count: usize) -> Vec<Rows> {
    let mut left = Vec::new();
    for rows in rows {
        let skipped = from.min(rows.row_count());
        let taken = count.min(rows.row_count() - skipped);
        if taken > 0 {
            left.push(rows.slice(skipped, taken));
        }
        from -= skipped;
        count -= taken;
    }
    left
}
