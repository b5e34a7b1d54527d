//! Moving bytes between memory and temp files, behind one trait.
//!
//! **Owns** the ways to do it. **Never** knows what a page is.
//!
//! | mode | synchronous | in the background |
//! | --- | --- | --- |
//! | direct | `preadv`, `pwritev` around the page cache | io_uring, else threads |
//! | buffered | the same through the page cache | io_uring, else threads |
//! | mmap | reads copied from mapped windows | threads |

mod backend;
mod map;
mod ring;
mod segment;
mod threads;

use std::io;
use std::sync::Arc;

use crate::{Faults, IoMode};
pub(crate) use backend::{Backend, Queue};
pub(crate) use segment::{Scratch, Segment, Transfer};

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
