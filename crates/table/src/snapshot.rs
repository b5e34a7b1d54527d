//! The rows of a table at one moment.
//!
//! **Owns** a list of pages that nobody changes as long as it is held. **Never** sees what comes
//! later.

use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use mayfly_space::Account;

use crate::column_page::{Columns, Format, StoredRows};
use crate::error::Result;
use crate::open_batch::OpenBatch;
use crate::removal::{row_id, split_row_id};
use crate::sealed::{Ahead, RowNumbers, page_class};
use crate::table_page::TablePage;
use crate::tail::Segment;

/// The rows of a table at one moment.
#[derive(Clone)]
pub struct TableSnapshot {
    parts: SnapshotParts,
    page_bytes: usize,
    /// All columns of the schema, where pages have more.
    all: Option<Arc<[usize]>>,
}

/// What a snapshot is made of.
#[derive(Clone)]
pub(crate) struct SnapshotParts {
    pub(crate) version: u64,
    pub(crate) account: Account,
    pub(crate) schema: SchemaRef,
    pub(crate) format: Arc<Format>,
    pub(crate) pages: Arc<Vec<TablePage>>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) row_count: u64,
}

/// Where the rows of a batch stand.
#[derive(Clone, Copy)]
pub(crate) enum Batch<'a> {
    Page(&'a TablePage),
    Segment(&'a Segment),
}

impl SnapshotParts {
    /// # Panics
    /// If there is no such batch.
    pub(crate) fn batch(&self, index: usize) -> Batch<'_> {
        Batch::of(&self.pages, &self.segments, index)
    }
}

impl<'a> Batch<'a> {
    /// The batch of a number: pages come first, then what is not in pages yet.
    ///
    /// # Panics
    /// If there is no such batch.
    pub(crate) fn of(pages: &'a [TablePage], segments: &'a [Segment], index: usize) -> Self {
        match pages.get(index) {
            Some(page) => Batch::Page(page),
            None => Batch::Segment(&segments[index - pages.len()]),
        }
    }

    pub(crate) fn row_count(self) -> usize {
        match self {
            Batch::Page(page) => page.row_count(),
            Batch::Segment(segment) => segment.row_count(),
        }
    }

    /// The rows that were written.
    pub(crate) fn written_count(self) -> usize {
        match self {
            Batch::Page(page) => page.written_count(),
            Batch::Segment(segment) => segment.row_count(),
        }
    }

    /// The encoded bytes, those of removed rows included.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Batch::Page(page) => page.bytes(),
            Batch::Segment(segment) => segment.bytes().len(),
        }
    }

    /// About what they take with numbers as wide as their types and all their texts.
    pub(crate) fn wide_bytes(self) -> usize {
        match self {
            Batch::Page(page) => page.wide_bytes(),
            Batch::Segment(segment) => segment.wide_bytes(),
        }
    }

    /// The slots of the rows that are left.
    pub(crate) fn slots(self) -> Vec<u32> {
        match self {
            Batch::Page(page) => page.slots(),
            Batch::Segment(segment) => (0..segment.row_count() as u32).collect(),
        }
    }

    /// Reads the rows where they stand.
    pub(crate) fn with_stored<R>(
        self,
        format: &Format,
        use_rows: impl FnOnce(StoredRows<'_>) -> Result<R>,
    ) -> Result<R> {
        match self {
            Batch::Page(page) => {
                let bytes = page.bytes_pinned()?;
                use_rows(StoredRows::open(format, &bytes)?)
            }
            Batch::Segment(segment) => use_rows(StoredRows::open(format, segment.bytes())?),
        }
    }

    /// The rows in some slots, each of which has one, in memory of their own.
    pub(crate) fn read_slots(
        self,
        format: &Format,
        projection: Option<&[usize]>,
        slots: &[u32],
    ) -> Result<RecordBatch> {
        match self {
            Batch::Page(page) => page.read_slots(format, projection, slots),
            Batch::Segment(segment) => format.decode_slots(&segment.source(), projection, slots),
        }
    }

    /// The columns in which rows may differ from those in the same slots of another batch.
    pub(crate) fn differing(self, other: Batch<'_>, format: &Format) -> Result<Columns> {
        self.with_stored(format, |rows| {
            other.with_stored(format, |other| rows.differing(&other))
        })
    }

    /// All rows that were written, whether they are left or not, with all columns of the format.
    pub(crate) fn written(self, format: &Format) -> Result<RecordBatch> {
        match self {
            Batch::Page(page) => page.written(format),
            Batch::Segment(segment) => format.decode(&segment.source(), None),
        }
    }
}

impl fmt::Debug for TableSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableSnapshot")
            .field("batch_count", &self.batch_count())
            .field("row_count", &self.parts.row_count)
            .finish_non_exhaustive()
    }
}

impl TableSnapshot {
    pub(crate) fn new(parts: SnapshotParts) -> Self {
        let width = parts.schema.fields().len();
        let all = parts.format.has_row_numbers().then(|| (0..width).collect());
        Self {
            page_bytes: page_class(&parts.account).bytes(),
            parts,
            all,
        }
    }

    /// The version of the table whose rows these are: a number that differs after each change of
    /// the table, also after one that was taken back.
    pub fn version(&self) -> u64 {
        self.parts.version
    }

    pub(crate) fn parts(&self) -> &SnapshotParts {
        &self.parts
    }

    /// The columns to read of a page.
    fn columns<'a>(&'a self, projection: Option<&'a [usize]>) -> Option<&'a [usize]> {
        projection.or(self.all.as_deref())
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.parts.schema
    }

    /// The number of rows.
    pub fn row_count(&self) -> u64 {
        self.parts.row_count
    }

    /// The number of batches.
    pub fn batch_count(&self) -> usize {
        self.parts.pages.len() + self.parts.segments.len()
    }

    /// The batch of a row.
    pub fn batch_of(id: u64) -> usize {
        split_row_id(id).0
    }

    /// The number of rows of one batch.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn rows_of(&self, index: usize) -> usize {
        self.parts.batch(index).row_count()
    }

    /// The account that pins its pages.
    pub fn account(&self) -> &Account {
        &self.parts.account
    }

    /// Bytes of the pages that are filled with several rows.
    pub(crate) fn default_page_bytes(&self) -> usize {
        self.page_bytes
    }

    /// Bytes of the largest page among these batches, 0 where none of them lies in a page.
    pub fn page_bytes_max(&self, batches: Range<usize>) -> u64 {
        let end = batches.end.min(self.parts.pages.len());
        let pages = self.parts.pages.get(batches.start..end).unwrap_or_default();
        pages.iter().map(TablePage::page_bytes).max().unwrap_or(0) as u64
    }

    /// Bytes of a row of a batch when it is read, if its rows are alike, with numbers as wide as
    /// their types and all its texts.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn row_bytes_of(&self, index: usize) -> u64 {
        let batch = self.parts.batch(index);
        (batch.wide_bytes() / batch.written_count().max(1)) as u64
    }

    /// Whether some pages are larger than those that rows are gathered in.
    pub fn has_large_pages(&self) -> bool {
        let mut pages = self.parts.pages.iter();
        pages.any(|page| page.page_bytes() > self.page_bytes)
    }

    /// What reading one row of some length takes at most, but for rows whose pages are `spared`
    /// bytes together; 0 where no other pages have rows longer than `usual` bytes.
    pub fn long_row_bytes(&self, usual: u64, spared: u64) -> u64 {
        let mut long: Vec<(u64, u64)> = Vec::new();
        for page in self.parts.pages.iter() {
            // A page larger than others was made for rows that would not fit.
            let bytes = match page.page_bytes() > self.page_bytes {
                true => page.wide_bytes().max(page.page_bytes()),
                false => page.wide_bytes(),
            };
            let (bytes, rows) = (bytes as u64, page.written_count().max(1) as u64);
            if bytes / rows > usual {
                long.push((bytes / rows, bytes));
            }
        }
        long.sort_unstable_by_key(|(row_bytes, _)| Reverse(*row_bytes));
        let mut left = spared;
        for (row_bytes, bytes) in long {
            match left.checked_sub(bytes) {
                Some(rest) => left = rest,
                None => return row_bytes,
            }
        }
        0
    }

    /// One batch, pointing into its page, which stays pinned as long as an array of the batch
    /// lives. It is never empty.
    ///
    /// # Panics
    /// If there is no such batch or column.
    pub fn read(&self, index: usize, projection: Option<&[usize]>) -> Result<RecordBatch> {
        match self.parts.pages.get(index) {
            Some(page) => page.read(&self.parts.format, self.columns(projection)),
            None => self.read_segment(index, projection),
        }
    }

    /// One batch in memory of its own, for those who keep it long.
    ///
    /// # Panics
    /// If there is no such batch or column.
    pub fn read_copied(&self, index: usize, projection: Option<&[usize]>) -> Result<RecordBatch> {
        match self.parts.pages.get(index) {
            Some(page) => page.read_copied(&self.parts.format, self.columns(projection)),
            None => self.read_segment(index, projection),
        }
    }

    fn open(&self, index: usize) -> Result<OpenBatch> {
        let batch = self.parts.batch(index);
        let (source, left) = match batch {
            Batch::Page(page) => (page.source()?, page.left().cloned()),
            Batch::Segment(segment) => (segment.source(), None),
        };
        let format = &self.parts.format;
        Ok(OpenBatch::new(format, source, left, batch.row_count()))
    }

    /// A batch of the tail, which lives on the heap and pins nothing.
    fn read_segment(&self, index: usize, projection: Option<&[usize]>) -> Result<RecordBatch> {
        let segment = &self.parts.segments[index - self.parts.pages.len()];
        self.parts
            .format
            .decode(&segment.source(), self.columns(projection))
    }

    /// The ids of the rows of one batch, in the order in which they are read: what
    /// `Change::remove` takes.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn row_ids(&self, index: usize) -> UInt64Array {
        let slots = match self.parts.pages.get(index) {
            Some(page) => page.slots(),
            None => (0..self.rows_of(index) as u32).collect(),
        };
        slots
            .into_iter()
            .map(|slot| row_id(index, slot))
            .collect::<Vec<_>>()
            .into()
    }

    /// The ids of the rows that have these numbers; a number without a row is left out.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub fn locate(&self, numbers: impl IntoIterator<Item = u64>) -> Result<Vec<u64>> {
        let mut found = Vec::new();
        for number in numbers {
            found.extend(self.locate_one(number)?);
        }
        Ok(found)
    }

    fn locate_one(&self, number: u64) -> Result<Option<u64>> {
        let pages = &self.parts.pages;
        let first = |page: &TablePage| page.row_numbers().map_or(0, |numbers| numbers.first);
        let after = pages.partition_point(|page| first(page) <= number);
        let page = after.checked_sub(1).and_then(|index| pages.get(index));
        if let Some((page, RowNumbers { last, .. })) =
            page.and_then(|page| Some((page, page.row_numbers()?)))
            && number <= last
        {
            let slot = page.slot_of(&self.parts.format, number)?;
            let slot = slot.filter(|slot| page.has(*slot));
            return Ok(slot.map(|slot| row_id(after - 1, slot as u32)));
        }
        for (index, segment) in self.parts.segments.iter().enumerate() {
            let rows = StoredRows::open(&self.parts.format, segment.bytes())?;
            if let Some(slot) = rows.place_of(number)? {
                return Ok(Some(row_id(pages.len() + index, slot as u32)));
            }
        }
        Ok(None)
    }

    /// Some rows of one batch by their ids, in memory of their own, in the order of the ids.
    ///
    /// # Errors
    /// If the page cannot be read.
    ///
    /// # Panics
    /// If there is no such batch or column.
    pub fn fetch(
        &self,
        index: usize,
        ids: &[u64],
        projection: Option<&[usize]>,
    ) -> Result<RecordBatch> {
        let slots: Vec<u32> = ids.iter().map(|id| split_row_id(*id).1).collect();
        let (format, columns) = (&self.parts.format, self.columns(projection));
        self.parts.batch(index).read_slots(format, columns, &slots)
    }

    /// Rows by their ids, in memory of their own, in the order of the ids.
    ///
    /// # Errors
    /// If a page cannot be read.
    ///
    /// # Panics
    /// If there is no such batch or column.
    pub fn rows(&self, ids: &[u64], projection: Option<&[usize]>) -> Result<RecordBatch> {
        if let [id] = ids {
            return self.fetch(split_row_id(*id).0, ids, projection);
        }
        let mut order: Vec<u32> = (0..ids.len() as u32).collect();
        order.sort_by_key(|place| ids[*place as usize]);
        let sorted: Vec<u64> = order.iter().map(|place| ids[*place as usize]).collect();
        let same_batch = |left: &u64, right: &u64| split_row_id(*left).0 == split_row_id(*right).0;
        let mut parts = Vec::new();
        for ids in sorted.chunk_by(same_batch) {
            parts.push(self.fetch(split_row_id(ids[0]).0, ids, projection)?);
        }
        let schema = match (parts.first(), projection) {
            (Some(part), _) => part.schema(),
            (None, Some(columns)) => Arc::new(self.schema().project(columns)?),
            (None, None) => Arc::clone(self.schema()),
        };
        let all = concat_batches(&schema, &parts)?;
        if order.is_sorted() || all.num_columns() == 0 {
            return Ok(all);
        }
        let mut places = vec![0; order.len()];
        for (place, row) in order.iter().enumerate() {
            places[*row as usize] = place as u32;
        }
        Ok(take_record_batch(&all, &UInt32Array::from(places))?)
    }

    /// The numbers of rows by their ids, where rows have numbers: those stay when the table
    /// changes.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub fn numbers(&self, ids: &[u64]) -> Result<Vec<u64>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let column = self.parts.schema.fields().len();
        let numbers = self.rows(ids, Some(&[column]))?;
        Ok(numbers
            .column(0)
            .as_primitive::<UInt64Type>()
            .values()
            .to_vec())
    }

    /// Asks for a batch that will be read soon; returns at once. A batch that does not exist is
    /// ignored.
    pub fn prefetch(&self, index: usize) {
        if let Some(page) = self.parts.pages.get(index) {
            page.prefetch();
        }
    }

    /// Some batches in the order of their rows, read ahead of their use.
    ///
    /// # Panics
    /// If a column does not exist.
    pub fn scan(&self, range: Range<usize>, projection: Option<Vec<usize>>) -> Scan {
        Scan {
            ahead: Ahead::new(&self.parts.account, self.page_bytes, range.start),
            snapshot: self.clone(),
            range,
            projection,
            copies: false,
        }
    }
}

/// The batches of a snapshot, one after the other.
#[derive(Debug)]
pub struct Scan {
    snapshot: TableSnapshot,
    ahead: Ahead,
    range: Range<usize>,
    projection: Option<Vec<usize>>,
    copies: bool,
}

impl Scan {
    /// Whether batches are in memory of their own, as [`TableSnapshot::read_copied`] gives them.
    #[must_use]
    pub fn copying(self, copies: bool) -> Self {
        Self { copies, ..self }
    }

    /// The next batch and its index, to be read column by column.
    ///
    /// # Errors
    /// If the page cannot be read.
    pub fn open_next(&mut self) -> Option<Result<(usize, OpenBatch)>> {
        let index = self.next_index()?;
        Some(self.snapshot.open(index).map(|batch| (index, batch)))
    }

    /// The index of the next batch; asks for those behind it.
    fn next_index(&mut self) -> Option<usize> {
        for index in self.ahead.pages(self.range.start, self.range.end) {
            self.snapshot.prefetch(index);
        }
        self.range.next()
    }
}

impl Iterator for Scan {
    type Item = Result<RecordBatch>;

    /// The next batch, as [`TableSnapshot::read`]. After an error, the one that follows.
    fn next(&mut self) -> Option<Self::Item> {
        let index = self.next_index()?;
        let projection = self.projection.as_deref();
        Some(match self.copies {
            true => self.snapshot.read_copied(index, projection),
            false => self.snapshot.read(index, projection),
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.range.size_hint()
    }
}
