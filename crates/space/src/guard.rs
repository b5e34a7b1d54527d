//! Guards: the only ways to the bytes of a page.
//!
//! **Owns** nothing but a pin. **Never** gives out a reference that outlives the pin: a pinned
//! page keeps its frame, so the address in a guard stays right for as long as the guard lives.

#![expect(unsafe_code, reason = "turns frames under a latch into slices")]

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::Arc;

use crate::Result;
use crate::account::Node;
use crate::arena::Frame;
use crate::core::Core;
use crate::io::Segment;
use crate::page::Page;
use crate::table::{self, GATHERED, LOADING, MOVING};

/// Exclusive access to the bytes of a page; the page counts as changed.
#[must_use = "the page is pinned for as long as the guard lives"]
pub struct WriteGuard {
    /// Present until the guard is dropped or downgraded.
    page: Option<Page>,
    start: NonNull<u8>,
    len: usize,
}

/// Shared access to the bytes of a page. It may outlive everything but the process, and may own
/// an Arrow buffer.
#[must_use = "the page is pinned for as long as the guard lives"]
pub struct ReadGuard {
    /// Present until the guard is dropped or moved.
    page: Option<Page>,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: S1: the bytes belong to the guard, not to a thread.
unsafe impl Send for WriteGuard {}
// SAFETY: S1: a shared reference to the guard only reads.
unsafe impl Sync for WriteGuard {}
// SAFETY: S2: the bytes do not change while any read guard exists.
unsafe impl Send for ReadGuard {}
// SAFETY: S2: as above.
unsafe impl Sync for ReadGuard {}

impl WriteGuard {
    /// Wraps an exclusive pin that the caller holds on `page`.
    pub(crate) fn new(page: Page, frame: Frame) -> WriteGuard {
        let start = page.core().arena.memory().address(frame);
        let len = page.len_bytes();
        WriteGuard {
            page: Some(page),
            start,
            len,
        }
    }

    /// The page.
    pub fn page(&self) -> &Page {
        self.page.as_ref().expect("present until dropped")
    }

    /// Turns exclusive into shared access without a gap.
    pub fn downgrade(mut self) -> ReadGuard {
        let page = self.page.take().expect("present until dropped");
        page.core().downgrade(page.inner());
        ReadGuard {
            start: self.start,
            len: self.len,
            page: Some(page),
        }
    }
}

impl ReadGuard {
    /// Wraps a shared pin that the caller holds on `page`.
    pub(crate) fn new(page: Page, frame: Frame) -> ReadGuard {
        let start = page.core().arena.memory().address(frame);
        let len = page.len_bytes();
        ReadGuard {
            page: Some(page),
            start,
            len,
        }
    }

    /// The page.
    pub fn page(&self) -> &Page {
        self.page.as_ref().expect("present until moved")
    }

    /// Gives this pin up and pins another page for reading. Cheaper than one after the other if
    /// both pages have the same account and size, because a claim on the budget is what a pin
    /// costs most.
    ///
    /// # Errors
    /// As for [`Page::read`]. The pin is gone then.
    pub fn move_to(mut self, page: &Page) -> Result<ReadGuard> {
        let frame = self.move_pin(page, false)?;
        Ok(ReadGuard::new(page.clone(), frame))
    }

    /// The same, pinning the other page for writing.
    ///
    /// # Errors
    /// As for [`Page::write`]. The pin is gone then.
    pub fn move_to_write(mut self, page: &Page) -> Result<WriteGuard> {
        let frame = self.move_pin(page, true)?;
        Ok(WriteGuard::new(page.clone(), frame))
    }

    /// Turns shared into exclusive access without a gap, so that it cannot fail; the page counts as
    /// changed. Waits while others hold a guard, so this must be the only one that is not about to
    /// go: two of them would wait for each other.
    pub fn upgrade(mut self) -> WriteGuard {
        let page = self.page.take().expect("present until moved");
        page.core().upgrade(page.inner());
        WriteGuard {
            start: self.start,
            len: self.len,
            page: Some(page),
        }
    }

    /// Unpins first, so that nobody waits while holding a pin; the claim of this pin goes over to
    /// the next one if it is as large and the same account's.
    fn move_pin(&mut self, to: &Page, exclusive: bool) -> Result<Frame> {
        let page = self.page.take().expect("present until moved");
        let from = page.inner();
        let alike = Arc::ptr_eq(&from.node, &to.inner().node) && from.len == to.inner().len;
        let claimed = match alike {
            true => unpin(page, false, |_, _| ()),
            false => {
                unpin(page, false, Node::unclaim);
                false
            }
        };
        to.core().pin_claimed(to.inner(), exclusive, claimed)
    }
}

impl Clone for ReadGuard {
    fn clone(&self) -> ReadGuard {
        self.page().core().pin_again(self.page().inner());
        ReadGuard {
            page: Some(self.page().clone()),
            start: self.start,
            len: self.len,
        }
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        if let Some(page) = self.page.take() {
            unpin(page, true, Node::unclaim);
        }
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        if let Some(page) = self.page.take() {
            unpin(page, false, Node::unclaim);
        }
    }
}

/// Ends the pin of a guard and its handle. If it was the last pin, `end_claim` is called once
/// others can have the frame, and the answer is yes.
fn unpin(page: Page, exclusive: bool, end_claim: impl FnOnce(&Node, u64)) -> bool {
    let is_going = page.is_last();
    let len = page.len_bytes() as u64;
    let was_last = page.core().unpin(page.inner(), exclusive, is_going);
    if is_going {
        let node = Arc::clone(&page.inner().node);
        drop(page);
        end_claim(&node, len);
    } else if was_last {
        end_claim(&page.inner().node, len);
    }
    was_last
}

impl Deref for WriteGuard {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: S1: the frame is `len` initialised bytes that only this guard refers to.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for WriteGuard {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: S1: as above, and the borrow of the guard is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Deref for ReadGuard {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: S2: the frame is `len` initialised bytes that nobody changes while pinned.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl AsRef<[u8]> for ReadGuard {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for WriteGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteGuard")
            .field("page", self.page())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ReadGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadGuard")
            .field("page", self.page())
            .finish_non_exhaustive()
    }
}

/// The bytes of a page in a transient state, held by whoever put it there.
pub(crate) struct Transient<'a> {
    core: &'a Core,
    id: u32,
    start: NonNull<u8>,
    len: usize,
}

impl<'a> Transient<'a> {
    pub(crate) fn new(core: &'a Core, id: u32, frame: Frame) -> Transient<'a> {
        let len = core.arena.len_of(core.table.entry(id).size());
        Transient {
            core,
            id,
            start: core.arena.memory().address(frame),
            len,
        }
    }

    /// The bytes of a page that the background writer looks at.
    pub(crate) fn gathered(&self) -> &[u8] {
        let word = self.core.table.entry(self.id).load();
        assert_ne!(word & GATHERED, 0, "the writer holds the page");
        // SAFETY: S6: while the page is gathered, readers may pin it but no writer may.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes of a page that is being read in.
    pub(crate) fn loading(&mut self) -> &mut [u8] {
        let word = self.core.table.entry(self.id).load();
        assert_eq!(table::state(word), LOADING, "the loader holds the page");
        // SAFETY: S6: while the page is loading, only the loader may touch its frame.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Copies the page to another frame of the same class.
    pub(crate) fn copy_to(&self, to: Frame) {
        let word = self.core.table.entry(self.id).load();
        assert_eq!(table::state(word), MOVING, "the mover holds the page");
        let to = self.core.arena.memory().address(to);
        // SAFETY: S6: while the page is moving, both frames are the mover's, and they differ.
        unsafe { self.start.copy_to_nonoverlapping(to, self.len) };
    }

    /// The frame as a segment of a transfer.
    pub(crate) fn segment(&self) -> Segment {
        Segment::new(self.start, self.len)
    }
}
