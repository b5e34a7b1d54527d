//! What the page word, its entry, its lists and its waiting are synchronised with.
//!
//! **Owns** nothing. The model of the page word (`tests/page_word/`) compiles this crate once more
//! with another module in this one's place, whose types are loom's and whose numbers are small, so
//! that it can run every interleaving of the real code.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::AtomicU64 as AtomicWord;
pub(crate) use std::sync::{Condvar, Mutex};

/// Entries of the first chunk of the page table; each further chunk is twice as large.
pub(crate) const FIRST_CHUNK: u64 = 1024;
/// Places where threads wait for a page.
pub(crate) const PARKING: usize = 64;
/// How often a thread looks at a word before it sleeps.
pub(crate) const SPINS: u32 = 64;
