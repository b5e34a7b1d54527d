//! Spill files of DataFusion's own operators, held in pages of the temp space.
//!
//! Owns: [`PageFileFactory`] and the files that it makes. Never: creates a file of the operating
//! system (only the space does), or keeps a page pinned between two calls.
//!
//! ```text
//!   stock operator -> Writer: one page's worth of bytes gathered on the heap
//!                        | full
//!                        v
//!   PageFile: page, page, page, ...   (each evictable; next use = its ordinal)
//!                        |
//!                        v
//!   stream of Bytes: a copy of one page at a time, the following page prefetched
//! ```
//!
//! The copy is deliberate: the Arrow reader makes arrays that alias the bytes it is given, and
//! an alias would pin the page for as long as a batch lives downstream. The last owner of a file
//! frees its pages.
//!
//! Source: `SpillFile` in `datafusion-execution`. Cost: one copy of a page each way.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use datafusion::common::Result;
use datafusion::execution::{SpillFile, SpillWriter, TempFileFactory};
use futures::Stream;
use mayfly_space::{Account, NextUse, Page, Reservation};

use crate::error::space_error;

/// Makes spill files in an account of the temp space.
pub struct PageFileFactory {
    account: Account,
}

impl PageFileFactory {
    /// A factory whose files are charged to an account and its quota.
    pub fn new(account: &Account) -> Self {
        Self {
            account: account.clone(),
        }
    }
}

impl TempFileFactory for PageFileFactory {
    fn create_temp_file(&self, _description: &str) -> Result<Arc<dyn SpillFile>> {
        Ok(Arc::new(PageFile {
            account: self.account.clone(),
            content: Arc::new(Mutex::new(Content::default())),
        }))
    }
}

struct PageFile {
    account: Account,
    content: Arc<Mutex<Content>>,
}

#[derive(Default)]
struct Content {
    pages: Vec<(Page, usize)>,
    bytes: u64,
}

fn lock(content: &Mutex<Content>) -> MutexGuard<'_, Content> {
    // A page is added in one push, so a panic elsewhere leaves the list whole.
    content.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SpillFile for PageFile {
    fn size(&self) -> Option<u64> {
        Some(lock(&self.content).bytes)
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        let content = Arc::clone(&self.content);
        Ok(Box::pin(futures::stream::iter((0..).map_while(
            move |ordinal| {
                let (page, len, following) = {
                    let content = lock(&content);
                    let (page, len) = content.pages.get(ordinal)?.clone();
                    (
                        page,
                        len,
                        content.pages.get(ordinal + 1).map(|(page, _)| page.clone()),
                    )
                };
                if let Some(following) = following {
                    following.prefetch();
                }
                let copied = page
                    .read()
                    .map(|guard| Bytes::copy_from_slice(&guard[..len]));
                Some(copied.map_err(space_error))
            },
        ))))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        let page_bytes = self.account.space().default_page_class().bytes();
        let reservation = self
            .account
            .reserve(page_bytes as u64)
            .map_err(space_error)?;
        Ok(Box::new(Writer {
            account: self.account.clone(),
            content: Arc::clone(&self.content),
            pending: Vec::with_capacity(page_bytes),
            page_bytes,
            _reservation: reservation,
        }))
    }
}

struct Writer {
    account: Account,
    content: Arc<Mutex<Content>>,
    pending: Vec<u8>,
    page_bytes: usize,
    _reservation: Reservation,
}

impl Writer {
    fn write_page(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let class = self.account.space().default_page_class();
        let mut guard = self.account.allocate(class).map_err(io::Error::other)?;
        guard[..self.pending.len()].copy_from_slice(&self.pending);
        let page = guard.page().clone();
        drop(guard);
        let mut content = lock(&self.content);
        let ordinal = u32::try_from(content.pages.len()).unwrap_or(u32::MAX);
        page.set_next_use(NextUse::At(ordinal));
        content.pages.push((page, self.pending.len()));
        content.bytes += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.pending.len() == self.page_bytes {
            self.write_page()?;
        }
        let taken = bytes.len().min(self.page_bytes - self.pending.len());
        self.pending.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// Keeps the bytes of an unfinished page on the heap: a flush promises nothing to readers.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> Result<()> {
        Ok(self.write_page()?)
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use mayfly_space::{Space, SpaceOptions};

    use super::*;

    #[tokio::test]
    async fn a_file_gives_back_what_was_written_and_frees_its_pages() {
        let options = SpaceOptions {
            memory_bytes: 4 << 20,
            ..SpaceOptions::default()
        };
        let space = Space::open(options).unwrap();
        let factory = PageFileFactory::new(space.root());
        let file = factory.create_temp_file("test").unwrap();
        let mut writer = file.open_writer().unwrap();
        let mut expected = Vec::new();
        for index in 0..5000_u32 {
            let piece = vec![index.to_le_bytes()[0]; usize::try_from(index % 3000).unwrap()];
            writer.write_all(&piece).unwrap();
            writer.flush().unwrap();
            expected.extend(piece);
        }
        writer.finish().unwrap();
        drop(writer);
        assert_eq!(file.size(), Some(expected.len() as u64));
        for _ in 0..2 {
            let mut stream = file.read_stream().unwrap();
            let mut got = Vec::new();
            while let Some(bytes) = stream.next().await {
                got.extend_from_slice(&bytes.unwrap());
                assert_eq!(space.counters().pinned_bytes, 0);
            }
            assert!(got == expected);
        }
        assert_eq!(space.counters().reserved_bytes, 0);
        drop(file);
        // A page on its way to or from disk is freed when it has arrived.
        space.settle();
        assert_eq!(space.counters().resident_bytes, 0);
    }
}
