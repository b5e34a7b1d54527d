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

use arrow_buffer::MutableBuffer;
use bytes::Bytes;

use crate::column_page::{Format, Prepared, Rows, Size, Source};
use crate::error::Result;

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
}

impl Segment {
    fn encode(format: &Format, rows: &[Rows], size: Size) -> Result<Self> {
        let prepared = Prepared::new(format, rows)?;
        let mut buffer = MutableBuffer::from_len_zeroed(prepared.len_bytes());
        prepared.write(buffer.as_slice_mut());
        Ok(Self {
            bytes: Bytes::from_owner(HeapPage(buffer)),
            size,
        })
    }

    pub(crate) fn row_count(&self) -> usize {
        self.size.rows
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

/// An aligned buffer that [`Bytes`] can own.
struct HeapPage(MutableBuffer);

impl AsRef<[u8]> for HeapPage {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// Segments in the order of their rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail {
    segments: Vec<Segment>,
    size: Size,
    heap_bytes: usize,
}

impl Tail {
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    /// What the segments take on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// An upper bound of the heap that the tail takes once rows of this size have been pushed, the
    /// segments that are being merged included.
    pub(crate) fn heap_bytes_with(&self, format: &Format, size: Size) -> usize {
        self.heap_bytes + MERGED_BYTES_MAX.min(self.heap_bytes) + format.page_bytes(size)
    }

    /// Copies rows to the end.
    pub(crate) fn push(&mut self, format: &Format, rows: &Rows, size: Size) -> Result<()> {
        let (from, sum) = self.to_merge(format.page_bytes(size), size);
        let segment = if from == self.segments.len() {
            Segment::encode(format, std::slice::from_ref(rows), size)?
        } else {
            let mut merged = decode_all(format, &self.segments[from..])?;
            merged.push(rows.clone());
            Segment::encode(format, &merged, sum)?
        };
        self.replace(from, segment, size);
        Ok(())
    }

    /// Appends all rows of another tail.
    pub(crate) fn append(&mut self, format: &Format, other: &Tail) -> Result<()> {
        for segment in &other.segments {
            let (from, sum) = self.to_merge(segment.bytes.len(), segment.size);
            let size = segment.size;
            let segment = if from == self.segments.len() {
                segment.clone()
            } else {
                let mut merged = decode_all(format, &self.segments[from..])?;
                merged.push(format.decode_stored(&segment.source())?);
                Segment::encode(format, &merged, sum)?
            };
            self.replace(from, segment, size);
        }
        Ok(())
    }

    /// The segments that are merged with one of these bytes that comes next: the index of the
    /// first, and the size of all.
    fn to_merge(&self, bytes: usize, size: Size) -> (usize, Size) {
        let (mut from, mut sum, mut sum_bytes) = (self.segments.len(), size, bytes);
        loop {
            let level = self.segments[..from].iter().rev();
            let level = level.take_while(|s| s.bytes.len() <= 2 * sum_bytes);
            let (mut count, mut level_size, mut level_bytes) = (0, sum, sum_bytes);
            for segment in level {
                count += 1;
                level_size = segment.size.plus(level_size);
                level_bytes += segment.bytes.len();
            }
            if count + 1 < FAN_IN || level_bytes > MERGED_BYTES_MAX {
                return (from, sum);
            }
            from -= count;
            (sum, sum_bytes) = (level_size, level_bytes);
        }
    }

    fn replace(&mut self, from: usize, segment: Segment, size: Size) {
        self.segments.truncate(from);
        self.segments.push(segment);
        self.size = self.size.plus(size);
        self.heap_bytes = self.segments.iter().map(|s| s.bytes.len()).sum();
    }

    /// The rows as they are stored, without copying them.
    pub(crate) fn rows(&self, format: &Format) -> Result<Vec<Rows>> {
        decode_all(format, &self.segments)
    }
}

fn decode_all(format: &Format, segments: &[Segment]) -> Result<Vec<Rows>> {
    let rows = segments.iter();
    rows.map(|segment| format.decode_stored(&segment.source()))
        .collect()
}
