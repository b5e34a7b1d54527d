//! A global allocator that counts, to compare what the budget says with what the heap holds.

#![expect(
    unsafe_code,
    reason = "an allocator is an unsafe trait; this one only counts"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system allocator with a counter.
///
/// ```
/// #[global_allocator]
/// static HEAP: mayfly_testkit::CountingAllocator = mayfly_testkit::CountingAllocator::new();
///
/// HEAP.reset_peak();
/// let data = vec![1u8; 1 << 20];
/// assert!(HEAP.peak_bytes() >= data.len());
/// ```
#[derive(Debug)]
pub struct CountingAllocator {
    live_bytes: AtomicUsize,
    peak_bytes: AtomicUsize,
}

impl CountingAllocator {
    /// The allocator, for a `static`.
    pub const fn new() -> CountingAllocator {
        CountingAllocator {
            live_bytes: AtomicUsize::new(0),
            peak_bytes: AtomicUsize::new(0),
        }
    }

    /// Bytes allocated and not freed.
    pub fn live_bytes(&self) -> usize {
        self.live_bytes.load(Relaxed)
    }

    /// The highest number of live bytes since [`CountingAllocator::reset_peak`].
    pub fn peak_bytes(&self) -> usize {
        self.peak_bytes.load(Relaxed)
    }

    /// Starts the peak anew from what is live.
    pub fn reset_peak(&self) {
        self.peak_bytes.store(self.live_bytes(), Relaxed);
    }

    fn add(&self, bytes: usize) {
        let live = self.live_bytes.fetch_add(bytes, Relaxed) + bytes;
        self.peak_bytes.fetch_max(live, Relaxed);
    }

    fn remove(&self, bytes: usize) {
        self.live_bytes.fetch_sub(bytes, Relaxed);
    }
}

impl Default for CountingAllocator {
    fn default() -> CountingAllocator {
        CountingAllocator::new()
    }
}

// SAFETY: every call is passed on unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.add(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        self.remove(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        self.remove(layout.size());
        self.add(new_size);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(start, layout, new_size) }
    }
}
