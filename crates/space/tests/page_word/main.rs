//! A model of the page word: loom runs every interleaving of three threads that share a page.
//!
//! The crate itself is compiled once more here, as modules of this test. Only `sync` is another
//! one: the words of the page table and the locks on its entries and on the lists of `order` are
//! loom's, which decides the order of all accesses to them. What the threads do is the crate's own
//! code (`core`, `order`, `table`, `writer`, `prefetch`); nothing is a copy. What has a lock of its
//! own and decides nothing about a word stays as it is: counters, frames of the arena, ranges of
//! the file.
//!
//! ```sh
//! export CARGO_TARGET_DIR=target/model RUSTFLAGS="--cfg page_word_model"
//! cargo test --release -p mayfly-space --test page_word -- --nocapture
//! MAYFLY_FULL=1 cargo test --release -p mayfly-space --test page_word -- --nocapture
//! ```
//!
//! The ordinary run takes the scenarios in which each pair of roles meets, and of these every
//! interleaving with at most two preemptions: switches away from a thread that could go on. The
//! full one takes all scenarios there are, with three. Either way it is exhaustive, not random.
//!
//! **Source**: Musuvathi and Qadeer, "Iterative Context Bounding" (PLDI 2007), for how few
//! preemptions a bug needs.

#![cfg(page_word_model)]
#![allow(
    dead_code,
    unused_imports,
    reason = "a scenario uses a part of the crate"
)]

#[path = "../../src/account/mod.rs"]
mod account;
#[path = "../../src/arena/mod.rs"]
mod arena;
#[path = "../../src/background.rs"]
mod background;
#[path = "../../src/class.rs"]
mod class;
#[path = "../../src/codec.rs"]
mod codec;
#[path = "../../src/core.rs"]
mod core;
#[path = "../../src/counters.rs"]
mod counters;
#[path = "../../src/error.rs"]
mod error;
#[path = "../../src/file/mod.rs"]
mod file;
#[path = "../../src/guard.rs"]
mod guard;
#[path = "../../src/io/mod.rs"]
mod io;
#[path = "../../src/options.rs"]
mod options;
#[path = "../../src/order.rs"]
mod order;
#[path = "../../src/own_pages.rs"]
mod own_pages;
#[path = "../../src/page.rs"]
mod page;
#[path = "../../src/prefetch.rs"]
mod prefetch;
#[path = "../../src/program.rs"]
mod program;
#[path = "../../src/reclaim.rs"]
mod reclaim;
#[path = "../../src/room.rs"]
mod room;
#[path = "../../src/share.rs"]
mod share;
#[path = "../../src/space.rs"]
mod space;
mod sync;
#[path = "../../src/table.rs"]
mod table;
#[path = "../../src/verify.rs"]
mod verify;
#[path = "../../src/writer.rs"]
mod writer;

mod scenario;

pub use class::PageClass;
pub use counters::Counters;
pub use error::{Error, Result};
pub use file::{CachedBytes, FileStatus};
pub use guard::{ReadGuard, WriteGuard};
pub use options::{AccountOptions, Compression, Faults, IoMode, NextUse, Operation, SpaceOptions};
pub use page::Page;
pub use share::Share;
pub use space::{Account, Admission, Reservation, Space};

/// What both kinds of mutex can do.
trait Lock {
    type Guard<'a>
    where
        Self: 'a;

    fn acquire(&self) -> Self::Guard<'_>;
}

impl<T> Lock for std::sync::Mutex<T> {
    type Guard<'a>
        = std::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn acquire(&self) -> std::sync::MutexGuard<'_, T> {
        self.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<T> Lock for loom::sync::Mutex<T> {
    type Guard<'a>
        = loom::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn acquire(&self) -> loom::sync::MutexGuard<'_, T> {
        self.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<M: Lock> Lock for std::sync::Arc<M> {
    type Guard<'a>
        = M::Guard<'a>
    where
        M: 'a;

    fn acquire(&self) -> M::Guard<'_> {
        self.as_ref().acquire()
    }
}

fn lock<M: Lock>(mutex: &M) -> M::Guard<'_> {
    mutex.acquire()
}
