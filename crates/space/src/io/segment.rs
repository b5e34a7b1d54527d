//! Pieces of memory that transfers move, and the synchronous way to move them.

#![expect(unsafe_code, reason = "hands raw memory to preadv and pwritev")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::Operation;
use crate::file::{Handle, SECTOR};

/// A piece of memory that a transfer reads or fills.
///
/// By S5 it is made only from a page in a transient state, which keeps its frame until the
/// transfer is over, or from a [`Scratch`] that travels with the transfer.
#[derive(Debug)]
pub(crate) struct Segment {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: S5: the memory outlives the transfer and belongs to no thread.
unsafe impl Send for Segment {}
// SAFETY: as above; a shared segment only gives its address away.
unsafe impl Sync for Segment {}

impl Segment {
    pub(crate) fn new(start: NonNull<u8>, len: usize) -> Segment {
        Segment { start, len }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }
}

/// Memory for bytes on their way, aligned for direct transfers.
pub(crate) struct Scratch {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its memory.
unsafe impl Send for Scratch {}
// SAFETY: as above; shared access only reads.
unsafe impl Sync for Scratch {}

impl Scratch {
    pub(crate) fn new(len: usize) -> Scratch {
        let layout = Layout::from_size_align(len.max(1), SECTOR as usize)
            .expect("page lengths are far below isize::MAX");
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).unwrap_or_else(|| std::alloc::handle_alloc_error(layout));
        Scratch { start, layout }
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: owned, initialised and `len` bytes long.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: owned, initialised and `len` bytes long; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }

    /// A part of this memory as a segment.
    pub(crate) fn segment(&self, offset: usize, len: usize) -> Segment {
        assert!(
            offset + len <= self.layout.size(),
            "segment outside the scratch memory"
        );
        // SAFETY: the offset was just checked.
        Segment::new(unsafe { self.start.add(offset) }, len)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout in `new`.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// The vectors of a transfer behind its first `skip` bytes: all of them, unless a test asks for
/// short transfers.
pub(crate) fn vectors(transfer: &Transfer, mut skip: usize) -> Vec<libc::iovec> {
    let mut left = transfer
        .handle
        .faults
        .as_ref()
        .map_or(usize::MAX, |faults| {
            faults.bytes_moved_max(match transfer.write {
                true => Operation::Write,
                false => Operation::Read,
            })
        });
    let mut vectors = Vec::with_capacity(transfer.segments.len());
    for segment in &transfer.segments {
        if left == 0 {
            break;
        }
        if skip >= segment.len {
            skip -= segment.len;
            continue;
        }
        // SAFETY: `skip` is inside the segment.
        let start = unsafe { segment.start.add(skip) };
        let iov_base = start.as_ptr().cast::<libc::c_void>();
        let iov_len = (segment.len - skip).min(left);
        vectors.push(libc::iovec { iov_base, iov_len });
        left -= iov_len;
        skip = 0;
    }
    vectors
}

/// Does a transfer from its byte `done` on.
#[cfg(not(miri))]
pub(crate) fn run(transfer: &Transfer, mut done: usize) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    /// The most vectors the kernel takes at once.
    const MOST_VECTORS: usize = 1024;
    let fd = transfer.handle.file.as_raw_fd();
    let total = transfer.bytes() as usize;
    while done < total {
        let vectors = vectors(transfer, done);
        let count = vectors.len().min(MOST_VECTORS) as libc::c_int;
        let offset = (transfer.offset + done as u64) as libc::off_t;
        let moved = if transfer.write {
            // SAFETY: S5: every vector is readable memory that outlives the call.
            unsafe { libc::pwritev(fd, vectors.as_ptr(), count, offset) }
        } else {
            // SAFETY: S5: every vector is memory that only this transfer may fill.
            unsafe { libc::preadv(fd, vectors.as_ptr(), count, offset) }
        };
        match moved {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            moved if moved > 0 => done += moved as usize,
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}

#[cfg(miri)]
pub(crate) fn run(transfer: &Transfer, done: usize) -> io::Result<()> {
    let mut heap = crate::lock(&transfer.handle.heap);
    let mut offset = transfer.offset as usize + done;
    for vector in vectors(transfer, done) {
        let place = heap.get_mut(offset..offset + vector.iov_len);
        let place = place.ok_or(io::ErrorKind::UnexpectedEof)?;
        let memory = vector.iov_base.cast::<u8>();
        if transfer.write {
            // SAFETY: S5: the vector is readable memory, and the heap file is elsewhere.
            unsafe { memory.copy_to_nonoverlapping(place.as_mut_ptr(), vector.iov_len) };
        } else {
            // SAFETY: S5: the vector is memory that only this transfer may fill.
            unsafe { memory.copy_from_nonoverlapping(place.as_ptr(), vector.iov_len) };
        }
        offset += vector.iov_len;
    }
    Ok(())
}

/// A contiguous piece of a file and the pieces of memory it goes to or comes from.
pub(crate) struct Transfer {
    pub(crate) handle: Arc<Handle>,
    pub(crate) write: bool,
    pub(crate) offset: u64,
    pub(crate) segments: Vec<Segment>,
    /// Memory that some of the segments point to, kept until the transfer is over.
    pub(crate) scratch: Option<Arc<Scratch>>,
    /// What the submitter knows the transfer by.
    pub(crate) tag: u64,
}

impl Transfer {
    pub(crate) fn bytes(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.len() as u64)
            .sum()
    }
}
