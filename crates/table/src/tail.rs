//! The rows of a table or run that do not fill a page yet.
//!
//! **Owns** encoded segments on the heap: column pages in all but their place, each immutable and
//! shared with the snapshots that saw it.
//!
//! **Never** accounts for its bytes: the owner holds the reservation.
//!
//! A segment that is pushed is merged with its predecessors once several are at most twice as
//! long, so n single rows end up in O(log n) segments after O(n log n) copied bytes, as in a
//! log-structured merge tree.

use bytes::Bytes;

use crate::column_page::{ALIGNMENT, Format, Joined, Prepared, Rows, Size, Source, TextShare};
use crate::error::Result;
use crate::patch::Patch;

/// So many segments of about one length become one: more would copy less and make a scan of a tiny
/// table return more batches.
const FAN_IN: usize = 4;
/// Segments above this are left alone: the page that takes them is written from several segments.
const MERGED_BYTES_MAX: usize = 16 << 10;

/// Consecutive rows, encoded on the heap.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    bytes: Bytes,
    size: Size,
    /// What it takes with numbers as wide as their types.
    wide_bytes: usize,
}

impl Segment {
    pub(crate) fn encode(format: &Format, rows: &[Rows], size: Size) -> Result<Self> {
        let wide_bytes = format.wide_bytes(&size);
        let prepared = match is_long(wide_bytes) {
            true => Prepared::new(format, rows)?,
            false => Prepared::wide(format, rows)?,
        };
        let mut page = HeapPage::new(prepared.len_bytes());
        prepared.write(page.as_mut());
        Ok(Self {
            bytes: Bytes::from_owner(page),
            size,
            wide_bytes,
        })
    }

    /// One segment of the rows of several.
    fn join(format: &Format, segments: &[&Segment], size: Size) -> Result<Self> {
        if !format.joins() {
            let rows = segments.iter();
            let rows: Result<Vec<Rows>> = rows
                .map(|segment| format.decode_stored(&segment.source()))
                .collect();
            return Self::encode(format, &rows?, size);
        }
        let pages = segments.iter().map(|segment| segment.bytes());
        let joined = Joined::new(format, pages)?;
        let mut page = HeapPage::new(joined.len_bytes());
        joined.write(page.as_mut())?;
        Ok(Self {
            bytes: Bytes::from_owner(page),
            wide_bytes: format.wide_bytes(&size),
            size,
        })
    }

    /// The same rows but for some values.
    pub(crate) fn patched(&self, patch: &Patch) -> Segment {
        let mut page = HeapPage::new(self.bytes.len());
        page.as_mut().copy_from_slice(&self.bytes);
        patch.write(page.as_mut());
        Segment {
            bytes: Bytes::from_owner(page),
            size: self.size.clone().with_other_numbers(),
            wide_bytes: self.wide_bytes,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn row_count(&self) -> usize {
        self.size.rows
    }

    pub(crate) fn wide_bytes(&self) -> usize {
        self.wide_bytes
    }

    /// Whether this is the same segment, not one with equal rows.
    pub(crate) fn is(&self, other: &Segment) -> bool {
        self.bytes.as_ptr() == other.bytes.as_ptr()
    }

    /// What the arrays of a batch can point into.
    pub(crate) fn source(&self) -> Source<'static> {
        Source::Shared(self.bytes.clone())
    }
}

/// Whether rows take more than what is merged by copying bytes, for which numbers are as wide as
/// their types. Those of longer segments are narrow, as those of pages, and stay as they are.
fn is_long(wide_bytes: usize) -> bool {
    wide_bytes > MERGED_BYTES_MAX
}

/// A buffer of zeros that [`Bytes`] can own, aligned as Arrow wants it. An allocator that is asked
/// for that alignment takes ten times as long.
struct HeapPage {
    buffer: Vec<u8>,
    from: usize,
    len: usize,
}

impl HeapPage {
    fn new(len: usize) -> Self {
        let buffer = vec![0; len + ALIGNMENT];
        let from = buffer.as_ptr().align_offset(ALIGNMENT);
        Self { buffer, from, len }
    }
}

impl AsRef<[u8]> for HeapPage {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[self.from..self.from + self.len]
    }
}

impl AsMut<[u8]> for HeapPage {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[self.from..self.from + self.len]
    }
}

/// Segments in the order of their rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    segments: Vec<Segment>,
    size: Size,
    heap_bytes: usize,
}

/// A tail with more rows: its last segments are others.
pub(crate) struct Growth {
    from: usize,
    last: Segment,
    size: Size,
    heap_bytes: usize,
}

impl Growth {
    /// What the segments take on the heap then.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }
}

impl Tail {
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub(crate) fn size(&self) -> &Size {
        &self.size
    }

    /// What the rows take with numbers as wide as their types and all their texts.
    pub(crate) fn wide_bytes(&self) -> usize {
        self.segments.iter().map(Segment::wide_bytes).sum()
    }

    /// What the segments take on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// An upper bound of the heap that the tail takes once rows of this size have been pushed, the
    /// segments that are being merged included, if that share of their texts is left.
    pub(crate) fn heap_bytes_with(&self, format: &Format, size: &Size, texts: TextShare) -> usize {
        let wide_bytes = format.wide_bytes(size);
        let added = match is_long(wide_bytes) {
            true => format.expected_bytes(size, texts),
            false => wide_bytes,
        };
        self.heap_bytes + MERGED_BYTES_MAX.min(self.heap_bytes) + added
    }

    /// Copies rows to the end.
    pub(crate) fn push(&mut self, format: &Format, rows: &Rows, size: Size) -> Result<()> {
        let segment = Segment::encode(format, std::slice::from_ref(rows), size)?;
        let growth = self.growth(format, &segment)?;
        self.grow(growth);
        Ok(())
    }

    /// Appends all rows of another tail.
    pub(crate) fn append(&mut self, format: &Format, other: &Tail) -> Result<()> {
        for segment in &other.segments {
            let growth = self.growth(format, segment)?;
            self.grow(growth);
        }
        Ok(())
    }

    /// What a segment that comes behind the others makes of them. Changes nothing.
    pub(crate) fn growth(&self, format: &Format, segment: &Segment) -> Result<Growth> {
        let (from, sum) = self.to_merge(segment);
        let last = match from < self.segments.len() {
            true => self.joined(format, from, segment, sum)?,
            false => segment.clone(),
        };
        let kept = self.segments[..from].iter();
        let kept: usize = kept.map(|segment| segment.bytes.len()).sum();
        Ok(Growth {
            from,
            heap_bytes: kept + last.bytes.len(),
            size: self.size.clone().plus(&segment.size),
            last,
        })
    }

    /// Makes room for what comes, and puts it there.
    pub(crate) fn grow(&mut self, growth: Growth) {
        self.segments.truncate(growth.from);
        self.segments.push(growth.last);
        self.size = growth.size;
        self.heap_bytes = growth.heap_bytes;
    }

    /// The tail with other rows in some segments.
    pub(crate) fn with<'a>(&self, others: impl Iterator<Item = (usize, &'a Segment)>) -> Tail {
        let mut tail = self.clone();
        for (index, segment) in others {
            tail.segments[index] = segment.clone();
        }
        let segments = tail.segments.iter();
        tail.heap_bytes = segments.map(|segment| segment.bytes.len()).sum();
        let segments = tail.segments.iter();
        tail.size = segments.fold(Size::default(), |sum, segment| sum.plus(&segment.size));
        tail
    }

    /// The segments from one on, and one that comes behind them.
    fn joined(&self, format: &Format, from: usize, last: &Segment, size: Size) -> Result<Segment> {
        let segments: Vec<&Segment> = self.segments[from..].iter().chain([last]).collect();
        Segment::join(format, &segments, size)
    }

    /// The segments that are merged with one of these bytes that comes next: the index of the
    /// first, and the size of all.
    fn to_merge(&self, next: &Segment) -> (usize, Size) {
        let (mut from, mut sum) = (self.segments.len(), next.size.clone());
        let mut sum_bytes = next.wide_bytes;
        loop {
            let level = self.segments[..from].iter().rev();
            let level = level.take_while(|s| s.wide_bytes <= 2 * sum_bytes);
            let (mut count, mut level_size, mut level_bytes) = (0, sum.clone(), sum_bytes);
            for segment in level {
                count += 1;
                level_size = segment.size.clone().plus(&level_size);
                level_bytes += segment.wide_bytes;
            }
            if count + 1 < FAN_IN || level_bytes > MERGED_BYTES_MAX {
                return (from, sum);
            }
            from -= count;
            (sum, sum_bytes) = (level_size, level_bytes);
        }
    }

    /// The rows as they are stored, without copying them.
    pub(crate) fn rows(&self, format: &Format) -> Result<Vec<Rows>> {
        let rows = self.segments.iter();
        rows.map(|segment| format.decode_stored(&segment.source()))
            .collect()
    }
}
