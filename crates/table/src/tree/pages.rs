//! The pages of one tree, by number.
//!
//! **Owns** the handle of every node. **Never** looks into a page. Nodes name their children by
//! the number under which the handle lies here, so that a page of the tree means the same in
//! memory and on disk.
//!
//! **Cost**: 8 bytes for a handle and 48 for what it points to, for every 16 KiB; beyond a few
//! pages they are reserved from the account.

use mayfly_space::{Account, Page, PageClass, ReadGuard, Reservation, WriteGuard};

use crate::error::Result;

/// What a page costs outside the page: the handle and what it points to.
const HANDLE_BYTES: u64 = 64;
/// Reservations grow in steps of so many pages; 4 KiB.
const RESERVED_STEP: usize = 64;

/// The handles of the pages of a tree.
pub(super) struct Pages {
    account: Account,
    pages: Vec<Option<Page>>,
    /// Numbers without a page. Has room for all numbers, so that freeing never allocates.
    free: Vec<u32>,
    reservation: Option<Reservation>,
}

impl Pages {
    pub(super) fn new(account: Account) -> Self {
        Self {
            account,
            pages: Vec::new(),
            free: Vec::new(),
            reservation: None,
        }
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    /// Pages that are in use.
    pub(super) fn live_count(&self) -> usize {
        self.pages.len() - self.free.len()
    }

    /// One more than the highest number ever in use.
    pub(super) fn number_count(&self) -> usize {
        self.pages.len()
    }

    pub(super) fn page(&self, number: u32) -> &Page {
        self.pages[number as usize]
            .as_ref()
            .expect("nodes name pages of their tree")
    }

    pub(super) fn read(&self, number: u32) -> Result<ReadGuard> {
        Ok(self.page(number).read()?)
    }

    pub(super) fn write(&self, number: u32) -> Result<WriteGuard> {
        Ok(self.page(number).write()?)
    }

    /// Gives a pin up for one on another page.
    pub(super) fn move_to(&self, guard: ReadGuard, number: u32) -> Result<ReadGuard> {
        Ok(guard.move_to(self.page(number))?)
    }

    /// The same, for a change. There may be no pin to give up.
    pub(super) fn move_to_write(
        &self,
        guard: Option<ReadGuard>,
        number: u32,
    ) -> Result<WriteGuard> {
        match guard {
            Some(guard) => Ok(guard.move_to_write(self.page(number))?),
            None => self.write(number),
        }
    }

    /// A page that belongs to nobody until it is adopted.
    pub(super) fn allocate(&mut self, class: PageClass) -> Result<WriteGuard> {
        let steps = (self.live_count() / RESERVED_STEP) as u64;
        let bytes = steps * RESERVED_STEP as u64 * HANDLE_BYTES;
        match &mut self.reservation {
            Some(reservation) if reservation.bytes() < bytes => reservation.try_resize(bytes)?,
            None if bytes > 0 => self.reservation = Some(self.account.reserve(bytes)?),
            _ => {}
        }
        Ok(self.account.allocate(class)?)
    }

    /// Gives an allocated page a number.
    pub(super) fn adopt(&mut self, page: Page) -> u32 {
        if let Some(number) = self.free.pop() {
            self.pages[number as usize] = Some(page);
            return number;
        }
        let number = u32::try_from(self.pages.len()).expect("a space has fewer pages");
        self.pages.push(Some(page));
        self.free.reserve(self.pages.len());
        number
    }

    /// Puts a page in the place of another, which is freed.
    pub(super) fn replace(&mut self, number: u32, page: Page) {
        self.pages[number as usize] = Some(page);
    }

    /// Frees a page as soon as no guard is left on it.
    pub(super) fn release(&mut self, number: u32) {
        let page = self.pages[number as usize].take();
        debug_assert!(page.is_some(), "freed once");
        self.free.push(number);
    }

    pub(super) fn clear(&mut self) {
        self.pages = Vec::new();
        self.free = Vec::new();
        self.reservation = None;
    }
}
