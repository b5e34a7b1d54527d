//! The reserved address range under the arena.
//!
//! **Owns** one anonymous private mapping (a heap block under Miri). **Never** decides which part
//! of it is in use; that is the arena's job.
//!
//! The range is mapped once and touched lazily: a block costs memory from its first touch until
//! it is given back with `MADV_DONTNEED`. With whole superblocks the kernel is asked for huge
//! pages, so a first touch is one fault for 2 MiB in place of 512.

#![expect(unsafe_code, reason = "maps the arena and computes addresses in it")]

use std::io;
use std::ptr::NonNull;

/// The unit in which frames are addressed: 4 KiB.
pub(crate) const GRANULE: usize = 4096;

/// The alignment of the range: one huge page.
const ALIGN: usize = 2 << 20;

/// The start of a frame, counted in granules from the start of the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Frame(pub(crate) u32);

/// The reserved range.
pub(crate) struct Memory {
    base: NonNull<u8>,
    len: usize,
    mapped: NonNull<u8>,
    mapped_len: usize,
}

// SAFETY: S1, S2: the range belongs to no thread; every access to its bytes goes through a latch.
unsafe impl Send for Memory {}
// SAFETY: as above; the methods only compute addresses and call the kernel.
unsafe impl Sync for Memory {}

impl Memory {
    /// Reserves `len` bytes, aligned to 2 MiB, without touching them.
    #[cfg(not(miri))]
    pub(crate) fn reserve(len: usize, huge: bool) -> io::Result<Memory> {
        use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
        let mapped_len = len + ALIGN;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases nothing.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped_len, protection, flags) }?;
        let mapped = NonNull::new(start.cast::<u8>()).expect("the kernel never maps page zero");
        let skip = mapped.as_ptr().align_offset(ALIGN);
        // SAFETY: `skip` is below ALIGN and the mapping has ALIGN spare bytes.
        let base = unsafe { mapped.add(skip) };
        let memory = Memory {
            base,
            len,
            mapped,
            mapped_len,
        };
        let advice = if huge {
            Advice::LinuxHugepage
        } else {
            Advice::LinuxNoHugepage
        };
        // SAFETY: the range is inside our own mapping; the advice changes no contents. It is
        // refused where huge pages are compiled out, which changes speed only.
        let _refused = unsafe { madvise(memory.base.as_ptr().cast(), len, advice) };
        Ok(memory)
    }

    /// Heap memory in place of a mapping, which Miri cannot make.
    #[cfg(miri)]
    pub(crate) fn reserve(len: usize, _huge: bool) -> io::Result<Memory> {
        let layout = std::alloc::Layout::from_size_align(len, ALIGN).expect("small in tests");
        // SAFETY: `len` is not zero.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        let base = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Memory {
            base,
            len,
            mapped: base,
            mapped_len: len,
        })
    }

    /// The address of a frame.
    pub(crate) fn address(&self, frame: Frame) -> NonNull<u8> {
        let offset = frame.0 as usize * GRANULE;
        assert!(offset < self.len, "frame outside the arena");
        // SAFETY: the offset was just checked to be inside the range.
        unsafe { self.base.add(offset) }
    }

    /// The whole range, for measurements that use it without an arena.
    #[cfg(not(miri))]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range is initialised (by the kernel, with zeros), and whoever holds it
        // exclusively has no arena over it.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.len) }
    }

    /// Gives the memory of `len` bytes from `offset` back to the kernel. The caller, the arena,
    /// knows by S3 that no page owns any of it.
    pub(crate) fn give_back(&self, offset: usize, len: usize) {
        assert!(offset + len <= self.len, "range outside the arena");
        #[cfg(not(miri))]
        {
            use rustix::mm::{Advice, madvise};
            // SAFETY: checked to be inside the range.
            let start = unsafe { self.base.add(offset) };
            // SAFETY: S3: no page owns these bytes, so no reference to them exists.
            let result = unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxDontNeed) };
            result.expect("MADV_DONTNEED on an own anonymous mapping is always allowed");
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        #[cfg(not(miri))]
        // SAFETY: S4: guards, pages and transfers keep the space alive, so none is left.
        let result = unsafe { rustix::mm::munmap(self.mapped.as_ptr().cast(), self.mapped_len) };
        #[cfg(not(miri))]
        debug_assert!(result.is_ok());
        #[cfg(miri)]
        {
            let layout = std::alloc::Layout::from_size_align(self.mapped_len, ALIGN)
                .expect("the layout it was made with");
            // SAFETY: allocated in `reserve` with this layout; S4 as above.
            unsafe { std::alloc::dealloc(self.mapped.as_ptr(), layout) };
        }
    }
}
