//! The pages of one tree, by number.
//!
//! **Owns** the handle of every node. **Never** looks into a page. Nodes name their children by
//! the number under which the handle lies here, so that a page of the tree means the same in
//! memory and on disk.
//!
//! A fork has the same pages under the same numbers. It copies a page before it first changes it
//! (copy on write), so the original never sees its changes. Nobody changes the original meanwhile.
//!
//! **Cost**: 8 bytes for a handle and 48 for what it points to, for every 16 KiB; beyond a few
//! pages they are reserved from the account. A fork copies the list of handles when it first
//! replaces one.

use std::sync::Arc;

use mayfly_space::{Account, Page, PageClass, ReadGuard, Reservation, WriteGuard};

use crate::error::Result;

/// What a page costs outside the page: the handle and what it points to.
const HANDLE_BYTES: u64 = 64;
/// Reservations grow in steps of so many pages; 4 KiB.
const RESERVED_STEP: usize = 64;

/// The handles of the pages of a tree.
pub(super) struct Pages {
    account: Account,
    /// Shared with forks.
    pages: Arc<Vec<Option<Page>>>,
    /// Of a fork: the pages that the original does not have.
    own: Option<Numbers>,
    /// Numbers without a page. Has room for all numbers, so that freeing never allocates.
    free: Vec<u32>,
    reservation: Option<Reservation>,
}

/// A set of page numbers.
#[derive(Default)]
struct Numbers(Vec<u64>);

impl Numbers {
    fn insert(&mut self, number: u32) {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    fn contains(&self, number: u32) -> bool {
        let word = self.0.get(number as usize / 64);
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }
}

impl Pages {
    pub(super) fn new(account: Account) -> Self {
        Self {
            account,
            pages: Arc::default(),
            own: None,
            free: Vec::new(),
            reservation: None,
        }
    }

    /// The same pages, to be changed without the original seeing it.
    pub(super) fn fork(&self) -> Self {
        Self {
            account: self.account.clone(),
            pages: Arc::clone(&self.pages),
            own: Some(Numbers::default()),
            free: self.free.clone(),
            reservation: None,
        }
    }

    /// The original is gone, or will not be read any more: its pages may be changed.
    pub(super) fn settle(&mut self) {
        self.own = None;
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

    pub(super) fn write(&mut self, number: u32) -> Result<WriteGuard> {
        match &self.own {
            Some(own) if !own.contains(number) => self.copy(number),
            _ => Ok(self.page(number).write()?),
        }
    }

    /// Puts a copy in the place of a page of the original.
    fn copy(&mut self, number: u32) -> Result<WriteGuard> {
        let page = self.page(number).read()?;
        let mut copy = self.account.allocate_bytes(page.len())?;
        copy.copy_from_slice(&page);
        drop(page);
        self.replace(number, copy.page().clone());
        Ok(copy)
    }

    /// Gives a pin up for one on another page.
    pub(super) fn move_to(&self, guard: ReadGuard, number: u32) -> Result<ReadGuard> {
        Ok(guard.move_to(self.page(number))?)
    }

    /// The same, for a change. There may be no pin to give up.
    pub(super) fn move_to_write(
        &mut self,
        guard: Option<ReadGuard>,
        number: u32,
    ) -> Result<WriteGuard> {
        match guard {
            Some(guard) if self.own.is_none() => Ok(guard.move_to_write(self.page(number))?),
            held => {
                drop(held);
                self.write(number)
            }
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
        let pages = Arc::make_mut(&mut self.pages);
        let number = match self.free.pop() {
            Some(number) => {
                pages[number as usize] = Some(page);
                number
            }
            None => {
                let number = u32::try_from(pages.len()).expect("a space has fewer pages");
                pages.push(Some(page));
                self.free.reserve(pages.len());
                number
            }
        };
        if let Some(own) = &mut self.own {
            own.insert(number);
        }
        number
    }

    /// Puts a page in the place of another, which is freed.
    pub(super) fn replace(&mut self, number: u32, page: Page) {
        Arc::make_mut(&mut self.pages)[number as usize] = Some(page);
        if let Some(own) = &mut self.own {
            own.insert(number);
        }
    }

    /// Frees a page as soon as no guard is left on it.
    pub(super) fn release(&mut self, number: u32) {
        let page = Arc::make_mut(&mut self.pages)[number as usize].take();
        debug_assert!(page.is_some(), "freed once");
        self.free.push(number);
    }

    pub(super) fn clear(&mut self) {
        self.pages = Arc::default();
        self.free = Vec::new();
        self.reservation = None;
    }
}
