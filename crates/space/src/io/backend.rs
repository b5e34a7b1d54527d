//! What moves the bytes of transfers.

use std::io;
use std::sync::Arc;

use super::segment::Transfer;

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
