//! How much of the heap a thread has taken.
//!
//! **Owns** [`CountedHeap`], the allocator of the system with a counter for each thread. **Never**
//! refuses memory, and knows nothing of budgets.
//!
//! A library that is called to do one thing, and on one thread, asks nobody for the memory that it
//! takes for it. What the thread has taken since it was called is what the library has, but for
//! what it gave to other threads or freed for them.
//!
//! **Cost**: an addition for what is taken and for what is freed, each some 0.5 ns.

#![expect(
    unsafe_code,
    reason = "an allocator is an unsafe trait; this one only counts"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Without a destructor and with a constant at first, so that it allocates nothing and is there
    /// as long as the thread is.
    static TAKEN_BYTES: Cell<i64> = const { Cell::new(0) };
}

/// The allocator of the system with a counter for each thread.
///
/// ```
/// #[global_allocator]
/// static HEAP: mayfly_space::CountedHeap = mayfly_space::CountedHeap;
///
/// let before = mayfly_space::taken_by_thread();
/// let data = vec![1u8; 1 << 20];
/// assert_eq!(mayfly_space::taken_by_thread() - before, 1 << 20);
/// drop(data);
/// assert_eq!(mayfly_space::taken_by_thread(), before);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CountedHeap;

/// The bytes that this thread has taken of the heap, less those that it has freed: less than
/// nothing for one that frees what others have taken. It stays zero where [`CountedHeap`] is not
/// the allocator of the program.
pub fn taken_by_thread() -> i64 {
    TAKEN_BYTES.get()
}

fn take(bytes: usize) {
    TAKEN_BYTES.set(TAKEN_BYTES.get().wrapping_add(bytes as i64));
}

fn free(bytes: usize) {
    TAKEN_BYTES.set(TAKEN_BYTES.get().wrapping_sub(bytes as i64));
}

// SAFETY: S10: each call is passed on to the system's allocator as it came; counting allocates
// nothing and does not unwind.
unsafe impl GlobalAlloc for CountedHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: S10: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        take(layout.size());
        // SAFETY: S10: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        free(layout.size());
        // SAFETY: S10: the caller's promise is passed on.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        free(layout.size());
        take(new_size);
        // SAFETY: S10: the caller's promise is passed on.
        unsafe { System.realloc(start, layout, new_size) }
    }
}
