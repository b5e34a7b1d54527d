//! Spill files of DataFusion's own operators, held in pages of the temp space.
//!
//! Owns: [`PageFileFactory`] and the files that it makes. Never: creates a file of the operating
//! system (only the space does), or keeps a page pinned between two calls.
//!
//! ```text
//!   stock operator -> Writer: one page's worth of bytes gathered on the heap
//!                        | full                    | flushed
//!                        v                         v
//!   PageFile: page, page, page, ..., the flushed part of what is gathered
//!             (each page evictable; next use = its ordinal)
//!                        |
//!                        v
//!   stream of Bytes: a copy of one page at a time, the following page prefetched
//! ```
//!
//! A file may be read while it is written, as stock exchanges do: a reader sees what was flushed,
//! and waits for more until the writer has ended.
//!
//! The copy is deliberate: the Arrow reader makes arrays that alias the bytes it is given, and
//! an alias would pin the page for as long as a batch lives downstream. The last owner of a file
//! frees its pages.
//!
//! Source: `SpillFile` in `datafusion-execution`. Cost: one copy of a page each way.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

use bytes::Bytes;
use datafusion::common::Result;
use datafusion::execution::{SpillFile, SpillWriter, TempFileFactory};
use futures::Stream;
use mayfly_space::{Account, NextUse, Page, Reservation};

use crate::error::space_error;
use crate::lock::lock;

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
    /// Whole pages with the bytes in use of each.
    pages: Vec<(Page, usize)>,
    bytes: u64,
    /// Behind the last page: what a writer has gathered.
    gathered: Vec<u8>,
    /// How much of that readers may see.
    flushed: usize,
    writers: usize,
    /// Readers at the end of what there is.
    waiting: Vec<Waker>,
}

impl Content {
    fn wake_readers(&mut self) {
        for waker in self.waiting.drain(..) {
            waker.wake();
        }
    }

    /// What lies `offset` bytes behind the start of a page.
    fn at(&self, ordinal: usize, offset: usize) -> At {
        match self.pages.get(ordinal) {
            Some((_, len)) if *len <= offset => At::NextPage,
            Some((page, len)) => At::Page {
                page: page.clone(),
                len: *len,
                following: self.pages.get(ordinal + 1).map(|(page, _)| page.clone()),
            },
            None => match self.gathered.get(offset..self.flushed) {
                Some(bytes) if !bytes.is_empty() => At::Gathered(Bytes::copy_from_slice(bytes)),
                _ if self.writers > 0 => At::NotYet,
                _ => At::End,
            },
        }
    }
}

/// What a reader finds.
enum At {
    Page {
        page: Page,
        len: usize,
        following: Option<Page>,
    },
    NextPage,
    Gathered(Bytes),
    NotYet,
    End,
}

impl SpillFile for PageFile {
    fn size(&self) -> Option<u64> {
        Some(lock(&self.content).bytes)
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        let content = Arc::clone(&self.content);
        let (mut ordinal, mut offset) = (0, 0);
        Ok(Box::pin(futures::stream::poll_fn(move |context| {
            loop {
                let found = {
                    let mut content = lock(&content);
                    let found = content.at(ordinal, offset);
                    if matches!(found, At::NotYet) {
                        content.waiting.push(context.waker().clone());
                    }
                    found
                };
                match found {
                    At::Page {
                        page,
                        len,
                        following,
                    } => {
                        if let Some(following) = following {
                            following.prefetch();
                        }
                        let copied = page
                            .read()
                            .map(|guard| Bytes::copy_from_slice(&guard[offset..len]));
                        (ordinal, offset) = (ordinal + 1, 0);
                        return Poll::Ready(Some(copied.map_err(space_error)));
                    }
                    At::NextPage => (ordinal, offset) = (ordinal + 1, 0),
                    At::Gathered(bytes) => {
                        offset += bytes.len();
                        return Poll::Ready(Some(Ok(bytes)));
                    }
                    At::NotYet => return Poll::Pending,
                    At::End => return Poll::Ready(None),
                }
            }
        })))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        let page_bytes = self.account.space().default_page_class().bytes();
        let reservation = self
            .account
            .reserve(page_bytes as u64)
            .map_err(space_error)?;
        let mut content = lock(&self.content);
        content.writers += 1;
        content.gathered.reserve_exact(page_bytes);
        Ok(Box::new(Writer {
            account: self.account.clone(),
            content: Arc::clone(&self.content),
            page_bytes,
            _reservation: reservation,
        }))
    }
}

struct Writer {
    account: Account,
    content: Arc<Mutex<Content>>,
    page_bytes: usize,
    _reservation: Reservation,
}

impl Writer {
    /// Moves what was gathered into a page.
    fn write_page(&self, content: &mut Content) -> io::Result<()> {
        let len = content.gathered.len();
        if len == 0 {
            return Ok(());
        }
        let class = self.account.space().default_page_class();
        let mut guard = self.account.allocate(class).map_err(io::Error::other)?;
        guard[..len].copy_from_slice(&content.gathered);
        let page = guard.page().clone();
        drop(guard);
        let ordinal = u32::try_from(content.pages.len()).unwrap_or(u32::MAX);
        page.set_next_use(NextUse::At(ordinal));
        content.pages.push((page, len));
        content.bytes += len as u64;
        content.gathered.clear();
        content.flushed = 0;
        content.wake_readers();
        Ok(())
    }
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut content = lock(&self.content);
        if content.gathered.len() == self.page_bytes {
            self.write_page(&mut content)?;
        }
        let taken = bytes.len().min(self.page_bytes - content.gathered.len());
        content.gathered.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// Shows readers what was gathered; it goes into a page when the page is full.
    fn flush(&mut self) -> io::Result<()> {
        let mut content = lock(&self.content);
        content.flushed = content.gathered.len();
        content.wake_readers();
        Ok(())
    }
}

impl SpillWriter for Writer {
    fn finish(&mut self) -> Result<()> {
        let mut content = lock(&self.content);
        Ok(self.write_page(&mut content)?)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let mut content = lock(&self.content);
        content.writers -= 1;
        content.wake_readers();
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt};
    use mayfly_space::{Space, SpaceOptions};

    use super::*;

    fn space() -> Space {
        Space::open(SpaceOptions {
            memory_bytes: 4 << 20,
            ..SpaceOptions::default()
        })
        .unwrap()
    }

    #[tokio::test]
    async fn a_file_gives_back_what_was_written_and_frees_its_pages() {
        let space = space();
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

    #[tokio::test]
    async fn a_reader_follows_what_is_flushed() {
        let space = space();
        let factory = PageFileFactory::new(space.root());
        let file = factory.create_temp_file("test").unwrap();
        let mut writer = file.open_writer().unwrap();
        let mut stream = file.read_stream().unwrap();
        let mut got = Vec::new();
        for index in 0..300_usize {
            let piece = vec![index.to_le_bytes()[0]; index * 7];
            writer.write_all(&piece).unwrap();
            if index % 3 != 0 {
                continue;
            }
            writer.flush().unwrap();
            while let Some(bytes) = stream.next().now_or_never() {
                got.extend_from_slice(&bytes.unwrap().unwrap());
            }
        }
        let whole: Vec<u8> = (0..300_usize)
            .flat_map(|index| vec![index.to_le_bytes()[0]; index * 7])
            .collect();
        // The last piece that was flushed is the last but two.
        assert!(whole.starts_with(&got));
        assert_eq!(got.len(), (0..=297).map(|index| index * 7).sum::<usize>());
        let rest = tokio::spawn(async move {
            let mut rest = Vec::new();
            while let Some(bytes) = stream.next().await {
                rest.extend_from_slice(&bytes.unwrap());
            }
            rest
        });
        tokio::task::yield_now().await;
        writer.finish().unwrap();
        drop(writer);
        got.extend(rest.await.unwrap());
        assert!(whole == got);
    }
}
