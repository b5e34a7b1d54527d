//! Moving bytes between memory and temp files, behind one trait.
//!
//! **Owns** the ways to do it. **Never** knows what a page is.
//!
//! | mode | synchronous | in the background |
//! | --- | --- | --- |
//! | direct | `preadv`, `pwritev` around the page cache | io_uring, else threads |
//! | buffered | the same through the page cache | io_uring, else threads |
//! | mmap | reads copied from mapped windows | threads |

mod map;
mod ring;
mod segment;
mod threads;

use std::io;
use std::sync::Arc;

use crate::file::Handle;
use crate::{Faults, IoMode};
pub(crate) use segment::{Scratch, Segment};

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

/// A way to read and write temp files.
pub(crate) trait Backend: Send + Sync {
    /// Does a transfer in the calling thread.
    fn run(&self, transfer: &Transfer) -> io::Result<()>;

    /// A queue for one background thread.
    fn queue(self: Arc<Self>) -> Box<dyn Queue>;
}

/// Transfers under way for one thread.
pub(crate) trait Queue {
    /// Starts a transfer.
    fn submit(&mut self, transfer: Transfer);

    /// Appends finished transfers to `done`; waits for at least one if `block` is set and any is
    /// under way.
    fn collect(&mut self, block: bool, done: &mut Vec<(Transfer, io::Result<()>)>);

    fn in_flight(&self) -> usize;
}

/// The back end for a mode.
pub(crate) fn backend(
    mode: IoMode,
    io_uring: bool,
    faults: Option<Arc<dyn Faults>>,
) -> Arc<dyn Backend> {
    match mode {
        IoMode::Direct | IoMode::Buffered => Arc::new(Plain { io_uring, faults }),
        IoMode::Mmap => Arc::new(map::Mapped::new(faults)),
    }
}

/// Plain positioned reads and writes; the file decides whether they go through the page cache.
struct Plain {
    io_uring: bool,
    faults: Option<Arc<dyn Faults>>,
}

impl Backend for Plain {
    fn run(&self, transfer: &Transfer) -> io::Result<()> {
        segment::run(transfer, 0)
    }

    fn queue(self: Arc<Self>) -> Box<dyn Queue> {
        match if self.io_uring {
            ring::Ring::new()
        } else {
            None
        } {
            Some(ring) => Box::new(ring),
            None => {
                let faults = self.faults.clone();
                Box::new(threads::Threads::new(self, faults))
            }
        }
    }
}
