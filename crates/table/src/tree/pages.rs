//! The pages of one tree, by number.
//!
//! **Owns** the handle of every node. **Never** looks into a page. Nodes name their children by
//! the number under which the handle lies here, so that a page of the tree means the same in
//! memory and on disk.
//!
//! A fork has the same pages under the same numbers. Whoever changes a page that another one has as
//! well copies it first (copy on write), so neither sees the changes of the other.
//!
//! ```text
//!   tree   [ chunk | chunk | chunk ]          handles: 256 a chunk
//!              |       |       \__ chunk'     a copy with the handles of the same pages,
//!   fork   [ chunk | chunk | chunk' ]         but for those that were copied
//! ```
//!
//! **Cost**: 8 bytes for a handle and 48 for what it points to, for every 16 KiB; beyond a few
//! pages they are reserved from the account. A fork costs a handle for each chunk; the first change
//! of a page then copies that page and its chunk.

use std::sync::Arc;

use mayfly_space::{Account, Page, PageClass, ReadGuard, Reservation, WriteGuard};

use crate::error::Result;

/// What a page costs outside the page: the handle and what it points to.
const HANDLE_BYTES: u64 = 64;
/// Reservations grow in steps of so many pages; 4 KiB.
const RESERVED_STEP: usize = 64;

/// Handles that forks share as long as none of them changes.
const CHUNK: usize = 256;

type Chunk = Vec<Option<Page>>;

/// The handles of the pages of a tree.
pub(super) struct Pages {
    account: Account,
    /// All but the last are full.
    chunks: Vec<Arc<Chunk>>,
    /// One more than the highest number ever in use.
    number_count: usize,
    /// Numbers without a page. Has room for all numbers, so that freeing never allocates.
    free: Vec<u32>,
    reservation: Option<Reservation>,
}

fn place(number: u32) -> (usize, usize) {
    (number as usize / CHUNK, number as usize % CHUNK)
}

impl Pages {
    pub(super) fn new(account: Account) -> Self {
        Self {
            account,
            chunks: Vec::new(),
            number_count: 0,
            free: Vec::new(),
            reservation: None,
        }
    }

    /// The same pages, to be changed without this one seeing it.
    pub(super) fn fork(&self) -> Self {
        Self {
            account: self.account.clone(),
            chunks: self.chunks.clone(),
            number_count: self.number_count,
            free: self.free.clone(),
            reservation: None,
        }
    }

    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    /// Pages that are in use.
    pub(super) fn live_count(&self) -> usize {
        self.number_count - self.free.len()
    }

    /// One more than the highest number ever in use.
    pub(super) fn number_count(&self) -> usize {
        self.number_count
    }

    pub(super) fn page(&self, number: u32) -> &Page {
        let (chunk, place) = place(number);
        self.chunks[chunk][place]
            .as_ref()
            .expect("nodes name pages of their tree")
    }

    /// Whether a fork has the page as well.
    fn is_shared(&self, number: u32) -> bool {
        let (chunk, place) = place(number);
        let chunk = &self.chunks[chunk];
        let page = chunk[place].as_ref();
        Arc::strong_count(chunk) > 1 || page.is_some_and(|page| !page.is_last())
    }

    /// The place of a handle, which forks do not see.
    fn handle_mut(&mut self, number: u32) -> &mut Option<Page> {
        let (chunk, place) = place(number);
        let chunk = &mut self.chunks[chunk];
        if Arc::strong_count(chunk) > 1 {
            *chunk = Arc::new(Chunk::clone(chunk));
        }
        &mut Arc::get_mut(chunk).expect("nobody else has it")[place]
    }

    pub(super) fn read(&self, number: u32) -> Result<ReadGuard> {
        Ok(self.page(number).read()?)
    }

    pub(super) fn write(&mut self, number: u32) -> Result<WriteGuard> {
        match self.is_shared(number) {
            true => self.copy(number),
            false => Ok(self.page(number).write()?),
        }
    }

    /// Puts a copy in the place of a page that forks have as well.
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
            Some(guard) if !self.is_shared(number) => Ok(guard.move_to_write(self.page(number))?),
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
        if let Some(number) = self.free.pop() {
            *self.handle_mut(number) = Some(page);
            return number;
        }
        let number = u32::try_from(self.number_count).expect("a space has fewer pages");
        self.number_count += 1;
        self.free.reserve(self.number_count);
        if place(number).1 == 0 {
            self.chunks.push(Arc::new(Chunk::new()));
        }
        let last = self.chunks.last_mut().expect("there is room in it");
        Arc::make_mut(last).push(Some(page));
        number
    }

    /// Puts a page in the place of another, which is freed.
    pub(super) fn replace(&mut self, number: u32, page: Page) {
        *self.handle_mut(number) = Some(page);
    }

    /// Frees a page as soon as no guard is left on it.
    pub(super) fn release(&mut self, number: u32) {
        let page = self.handle_mut(number).take();
        debug_assert!(page.is_some(), "freed once");
        self.free.push(number);
    }

    pub(super) fn clear(&mut self) {
        self.chunks = Vec::new();
        self.number_count = 0;
        self.free = Vec::new();
        self.reservation = None;
    }
}
