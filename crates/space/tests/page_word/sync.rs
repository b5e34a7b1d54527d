//! What `src/sync.rs` is in the model: loom's types, and as few of each as a scenario needs.

pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::AtomicU64 as AtomicWord;
pub(crate) use loom::sync::{Condvar, Mutex};

pub(crate) const FIRST_CHUNK: u64 = 2;
pub(crate) const PARKING: usize = 1;
/// A thread that looks again and again adds interleavings and tells nothing new.
pub(crate) const SPINS: u32 = 0;
