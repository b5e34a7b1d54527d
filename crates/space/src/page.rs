//! Handles on pages.
//!
//! **Owns** a page: the last handle to go frees its frame and its disk slot. **Never** touches
//! bytes; that is what guards are for.

use std::fmt;
use std::sync::Arc;

use crate::account::Node;
use crate::core::Core;
use crate::space::Shared;
use crate::table::{self, ABSENT, LISTED, RESIDENT};
use crate::{NextUse, ReadGuard, Result, WriteGuard};

/// An owning handle on a page of the space.
#[derive(Clone)]
pub struct Page(Arc<PageInner>);

pub(crate) struct PageInner {
    pub(crate) shared: Arc<Shared>,
    pub(crate) node: Arc<Node>,
    pub(crate) id: u32,
    pub(crate) len: usize,
}

impl Page {
    pub(crate) fn new(inner: PageInner) -> Page {
        Page(Arc::new(inner))
    }

    pub(crate) fn inner(&self) -> &PageInner {
        &self.0
    }

    /// Whether this is the only handle, and so will be until somebody clones it: nobody else has a
    /// guard on the page or can get one.
    pub fn is_last(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }

    pub(crate) fn core(&self) -> &Core {
        &self.0.shared.core
    }

    /// A number that no other page has as long as a handle on this one lives.
    pub fn number(&self) -> u32 {
        self.0.id
    }

    /// The size of the page.
    pub fn len_bytes(&self) -> usize {
        self.0.len
    }

    /// Pins the page for reading, and reads it from the disk if it is not in memory. Waits while
    /// a writer holds it.
    ///
    /// # Errors
    /// [`BudgetExceeded`](crate::Error::BudgetExceeded) if the first pin of the page does not fit;
    /// an I/O error, or [`Corrupt`](crate::Error::Corrupt), if it cannot be read back.
    pub fn read(&self) -> Result<ReadGuard> {
        let frame = self.core().pin(&self.0, false)?;
        Ok(ReadGuard::new(self.clone(), frame))
    }

    /// Pins the page for writing and marks it changed. Waits while others hold a guard, so never
    /// call it while holding a guard on the same page.
    ///
    /// # Errors
    /// As for [`Page::read`].
    pub fn write(&self) -> Result<WriteGuard> {
        let frame = self.core().pin(&self.0, true)?;
        Ok(WriteGuard::new(self.clone(), frame))
    }

    /// Asks for the page to be read in the background, if there is room for it without taking
    /// pages that are needed earlier.
    pub fn prefetch(&self) {
        let entry = self.core().table.entry(self.0.id);
        if table::state(entry.load()) == ABSENT {
            self.0.shared.prefetch(self.clone());
        }
    }

    /// Says when the page is needed next. Pages begin with [`NextUse::SecondChance`].
    pub fn set_next_use(&self, next_use: NextUse) {
        let core = self.core();
        let entry = core.table.entry(self.0.id);
        if entry.next_use() != next_use {
            entry.set_next_use(next_use);
            if entry.load() & LISTED != 0 {
                core.order.relist(&core.arena, &core.table, self.0.id);
            }
        }
    }

    /// Whether the page is in memory at this moment.
    pub fn is_resident(&self) -> bool {
        table::state(self.core().table.entry(self.0.id).load()) == RESIDENT
    }

    /// Whether the disk holds a copy of the page as it is at this moment.
    pub fn is_stored(&self) -> bool {
        self.core().table.entry(self.0.id).load() & table::STORED != 0
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page")
            .field("id", &self.0.id)
            .field("len_bytes", &self.0.len)
            .finish_non_exhaustive()
    }
}

impl Drop for PageInner {
    fn drop(&mut self) {
        self.shared.core.free_page(self.id);
    }
}
