//! What the file system is asked for on behalf of a temp file: space, and taking it back.
//!
//! **Owns** nothing.

use std::io;

use super::handle::Handle;

/// Allocates `len` bytes at `start`, whether in a hole or behind the end.
#[cfg(not(miri))]
pub(super) fn extend(handle: &Handle, start: u64, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    loop {
        match fallocate(&handle.file, FallocateFlags::empty(), start, len) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            // No such call on this file system: the length alone has to do.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let now = handle.file.metadata()?.len();
                return handle.file.set_len(now.max(start + len));
            }
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(miri)]
pub(super) fn extend(handle: &Handle, start: u64, len: u64) -> io::Result<()> {
    let mut heap = crate::lock(&handle.heap);
    let more = (start + len).saturating_sub(heap.len() as u64);
    // One copy: Miri takes a step for each element of a resize.
    heap.extend_from_slice(&vec![0; more as usize]);
    Ok(())
}

/// Gives the space of a piece of the file back; the file stays as long as it is.
///
/// # Errors
/// Where the file system makes no holes, or anything else keeps it from making this one.
#[cfg(not(miri))]
pub(super) fn punch(handle: &Handle, start: u64, len: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    loop {
        match fallocate(&handle.file, hole, start, len) {
            Err(Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

#[cfg(miri)]
pub(super) fn punch(_handle: &Handle, _start: u64, _len: u64) -> io::Result<()> {
    Ok(())
}

/// Gives the end of the file back.
#[cfg(not(miri))]
pub(super) fn truncate(handle: &Handle, len: u64) -> io::Result<()> {
    handle.file.set_len(len)
}

#[cfg(miri)]
pub(super) fn truncate(handle: &Handle, len: u64) -> io::Result<()> {
    crate::lock(&handle.heap).truncate(len as usize);
    Ok(())
}
