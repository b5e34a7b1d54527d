//! How much of a temp file the kernel keeps in its page cache.
//!
//! **Owns** nothing. With `direct` reads the page cache stays out of the way and all of this is
//! zero; with `buffered` and `mmap` it is what a read that misses the budget may find without a
//! device.
//!
//! **Source**: cachestat(2), Linux 6.5. Cost: a walk over the cached pages of the file.

#![expect(unsafe_code, reason = "libc has no wrapper for this system call")]

use std::fs::File;
use std::os::fd::AsRawFd;

/// The number of cachestat(2): the same on all architectures, as of all calls since 5.1.
const CACHESTAT: libc::c_long = 451;

/// Bytes of a page of the page cache.
fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

/// What the page cache has of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CachedBytes {
    /// In the cache.
    pub cached: u64,
    /// Of these, not written to the device yet.
    pub dirty: u64,
    /// Evicted so short a time ago that they would still be there if memory were a little larger.
    pub recently_evicted: u64,
}

/// Asks the kernel; `None` where it is older than the call, or refuses it.
pub(super) fn cached_bytes(file: &File) -> Option<CachedBytes> {
    if cfg!(miri) {
        return None;
    }
    // `struct cachestat_range`: offset and length; a length of zero means to the end.
    let range = [0_u64; 2];
    // `struct cachestat`: pages cached, dirty, being written, evicted, evicted recently.
    let mut pages = [0_u64; 5];
    let flags: libc::c_uint = 0;
    // SAFETY: S9: the call reads two and writes five 64-bit words, which are there; the descriptor
    // is that of a file that is open as long as `file` is borrowed.
    let result = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd(),
            range.as_ptr(),
            pages.as_mut_ptr(),
            flags,
        )
    };
    let [cached, dirty, writing, _evicted, recently_evicted] = pages.map(|n| n * page_bytes());
    (result == 0).then_some(CachedBytes {
        cached,
        dirty: dirty + writing,
        recently_evicted,
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::unnamed::open;
    use super::*;
    use crate::IoMode;

    #[test]
    #[cfg_attr(miri, ignore = "the kernel is asked")]
    fn what_was_written_is_cached() {
        let handle = open(&std::env::temp_dir(), IoMode::Buffered).unwrap();
        let mut file = &handle.file;
        file.write_all(&vec![1; 1 << 20]).unwrap();
        // Kernels before 6.5 have no answer.
        if let Some(found) = cached_bytes(file) {
            assert_eq!(found.cached, 1 << 20);
            assert!(found.dirty <= found.cached);
        }
    }
}
