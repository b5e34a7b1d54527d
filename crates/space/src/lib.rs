//! The temp space: pages in memory and on disk under one budget.
//!
//! **Owns** everything temporary: the memory (one address range), the files (one per directory,
//! without names) and the accounting of both. **Never** knows whose page it is or what is in it,
//! calls nothing above it, and is synchronous.
//!
//! ```text
//!   Account::allocate   Page::read, write   Account::reserve        who pins what: account
//!          |                  |                    |
//!   +------v------------------v--------------------v-------+
//!   | table: one word per page   order: who goes first     |  core, room, reclaim
//!   +------+----------------------------+------------------+
//!          |                            |  writer, prefetch: in the background
//!   +------v---------+        +---------v--------+
//!   | arena: frames  | <----> | file: slots      |            io: uring, threads, mmap
//!   +----------------+        +------------------+
//! ```
//!
//! A [`Page`] is an owning handle; the last one to go frees the page. [`ReadGuard`] and
//! [`WriteGuard`] pin it. Pinned pages stay where they are; all others may be written to disk and
//! leave memory whenever somebody needs the room. A page in memory is the page on disk, byte for
//! byte, so nothing in it may be an address.
//!
//! The rule of the budget: the sum over accounts of the larger of what was admitted and what is
//! pinned and reserved never exceeds `memory_bytes`. Inside its admitted minimum a pin does not
//! fail, beyond it a pin may end in [`Error::BudgetExceeded`]; nobody ever waits for another's
//! pins.
//!
//! # Invariants that unsafe code rests on
//!
//! - **S1** A write guard is the only reference to the bytes of its frame: its page has the
//!   exclusive flag and one pin, which every other way to the bytes waits for.
//! - **S2** While a read guard exists, its page has a pin and no exclusive flag; nobody changes
//!   the bytes of its frame.
//! - **S3** A frame belongs to at most one page. Memory is given back to the kernel only when no
//!   page owns any of the block.
//! - **S4** Guards, pages and background threads keep the core, and so the address range, alive.
//! - **S5** A segment of a transfer stays valid and in its place until the transfer is over: the
//!   page is in a transient state (loading, or being written, when freeing it is put off), or the
//!   memory travels with the transfer.
//! - **S6** Whoever puts a page into a transient state is the only one to leave it: a gathered
//!   page is read by readers and the writer only, a loading page touched by its loader only, a
//!   moving page by its mover only.
//!
//! - **S7** Code is never written while it runs: a page of it that is dropped comes back from the
//!   program's file with the same bytes.
//! - **S8** Limits of the allocator change where memory comes from, not what was given out.
//! - **S9** A system call that libc does not wrap is given words of the size and number that the
//!   kernel's interface names.
//! - **S10** An allocator that counts passes each call on as it came.
//!
//! Unsafe code is in `arena/memory.rs` (the range), `guard.rs` (slices of frames),
//! `io/segment.rs` and `io/ring.rs` (the kernel), `io/map.rs` (mapped reads), `program.rs` (code,
//! limits of the allocator), `file/cached.rs` and `slices.rs` (system calls), and `thread_heap.rs`
//! (the allocator that counts).
//!
//! # Example
//!
//! ```
//! use mayfly_space::{NextUse, PageClass, Space, SpaceOptions};
//!
//! let space = Space::open(SpaceOptions { memory_bytes: 8 << 20, ..SpaceOptions::default() })?;
//! let account = space.root().child("sum", Default::default());
//! let mut pages = Vec::new();
//! for n in 0..300u32 {
//!     let mut guard = account.allocate(PageClass::K64)?;
//!     guard.fill(n as u8);
//!     guard.page().set_next_use(NextUse::At(n));
//!     pages.push(guard.page().clone());
//! }
//! for (n, page) in pages.iter().enumerate() {
//!     assert_eq!(page.read()?[17], n as u8);
//! }
//! assert!(account.counters().bytes_written > 0);
//! # Ok::<(), mayfly_space::Error>(())
//! ```

#![warn(missing_docs)]

mod account;
mod arena;
mod background;
mod class;
mod codec;
mod core;
mod counters;
mod error;
mod file;
mod guard;
mod io;
#[cfg(not(miri))]
pub mod measure;
mod options;
mod order;
mod own_pages;
mod page;
mod prefetch;
mod program;
mod reclaim;
mod room;
mod share;
mod slices;
mod space;
mod sync;
mod table;
mod thread_heap;
mod verify;
mod writer;

pub use account::GivesMemory;
pub use class::PageClass;
pub use counters::Counters;
pub use error::{Error, Result};
pub use file::{CachedBytes, FileStatus};
pub use guard::{ReadGuard, WriteGuard};
pub use options::{AccountOptions, Compression, Faults, IoMode, NextUse, Operation, SpaceOptions};
pub use page::Page;
pub use program::limit_heaps;
pub use share::Share;
pub use slices::shorten_slices;
pub use space::{Account, Admission, Reservation, Space};
pub use thread_heap::{CountedHeap, taken_by_thread};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; a panic elsewhere is reported where it happened and must not become a second one in a
/// destructor.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
