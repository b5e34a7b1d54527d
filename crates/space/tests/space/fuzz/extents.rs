//! Pages go to the temp file, the file is damaged behind the back of the space, and the pages are
//! read again: each comes back as it was, or with an error that says where it was lost.
//!
//! ```text
//! codec, mode | page count | class and contents of each page | changes: place (2), length, mask
//! ```
//!
//! A change with the mask 0 cuts the file off at its place.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mayfly_space::{
    Account, Compression, Error, Faults, IoMode, NextUse, Operation, Page, PageClass, Space,
    SpaceOptions,
};
use mayfly_testkit::Random;

const MEMORY_BYTES: u64 = 512 << 10;
const PAGES_MAX: usize = 12;

/// The writer may have its thread; helpers, which take longer to start than all the rest, not.
#[derive(Default)]
struct OneThread(AtomicU64);

impl Faults for OneThread {
    fn before(&self, operation: Operation) -> io::Result<()> {
        match operation {
            Operation::Thread if self.0.fetch_add(1, Relaxed) > 0 => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            _ => Ok(()),
        }
    }
}

/// A directory of its own, so that its file can be found among those that are open.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "mayfly-extents-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).expect("the name is new");
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).expect("the temp file has no name");
    }
}

/// Runs one input.
pub fn check(input: &[u8]) {
    lost_pages(input);
}

/// Runs one input; returns how many pages were lost.
pub fn lost_pages(input: &[u8]) -> usize {
    let mut input = input.iter().copied();
    let mut next = || input.next().unwrap_or(0);
    let directory = Directory::new();
    let (codec, mode) = (next(), next());
    let space = open(&directory.0, codec, mode);
    let account = space.root().child("fuzz", Default::default());
    let count = 1 + usize::from(next()) % PAGES_MAX;
    let pages: Vec<(Page, Vec<u8>)> = (0..count)
        .map(|n| new_page(&account, n as u32, next(), next()))
        .collect();
    // Everything gives way to it.
    drop(account.reserve(MEMORY_BYTES).expect("nothing is pinned"));
    let file = temp_file(&directory.0);
    let len = file.metadata().expect("it is open").len();
    let mut is_damaged = false;
    loop {
        let (place, length, mask) = ([next(), next()], next(), next());
        if (place, length, mask) == ([0; 2], 0, 0) {
            break;
        }
        is_damaged = true;
        // Pages of 64 KiB and less: two bytes reach all of them by steps of 16.
        let place = u64::from(u16::from_le_bytes(place)) * 16 % len;
        match mask {
            // What is mapped must not be cut off by anybody.
            0 if mode % 3 != 1 => file.set_len(place).expect("the file is ours"),
            _ => flip(&file, place, length, mask),
        }
    }
    let mut lost = 0;
    for (page, contents) in &pages {
        match page.read() {
            Ok(guard) => assert!(guard[..] == contents[..], "other bytes than were written"),
            Err(Error::Corrupt {
                offset, len_bytes, ..
            }) => {
                assert!(
                    is_damaged && offset < len && len_bytes > 0,
                    "{offset} {len_bytes}"
                );
                lost += 1;
            }
            Err(Error::Io {
                operation: "read", ..
            }) => {
                assert!(is_damaged);
                lost += 1;
            }
            Err(other) => panic!("{other}"),
        }
    }
    // What was lost is lost, and everything else goes on.
    drop(pages);
    let (page, contents) = new_page(&account, 0, 2, 77);
    assert!(page.read().expect("it is in memory")[..] == contents[..]);
    drop(page);
    space.verify();
    assert_eq!(account.counters().pages_live, 0);
    lost
}

fn open(directory: &Path, codec: u8, mode: u8) -> Space {
    let options = SpaceOptions {
        memory_bytes: MEMORY_BYTES,
        temp_dirs: vec![directory.to_path_buf()],
        // So that the file stays short.
        temp_limit_bytes: Some(1 << 20),
        io: match mode % 3 {
            1 => IoMode::Mmap,
            _ => IoMode::Buffered,
        },
        io_uring: false,
        compression: match codec % 4 {
            0 => Compression::None,
            1 => Compression::Zstd,
            _ => Compression::Lz4,
        },
        faults: Some(Arc::new(OneThread::default())),
        ..SpaceOptions::default()
    };
    Space::open(options).expect("the options are valid")
}

fn new_page(account: &Account, n: u32, class: u8, seed: u8) -> (Page, Vec<u8>) {
    let class = PageClass::ALL[usize::from(class) % 3];
    let mut guard = account.allocate(class).expect("pins are few");
    if seed.is_multiple_of(4) {
        // Does not shrink.
        Random::new(u64::from(seed)).fill(&mut guard);
    } else {
        for (at, byte) in guard.iter_mut().enumerate() {
            *byte = (at / usize::from(seed)) as u8;
        }
    }
    guard.page().set_next_use(NextUse::At(n / 4));
    (guard.page().clone(), guard.to_vec())
}

/// The temp file, which has no name, by way of the list of open files.
fn temp_file(directory: &Path) -> File {
    let open = std::fs::read_dir("/proc/self/fd").expect("Linux has it");
    let of_space = |path: &PathBuf| {
        let file = std::fs::read_link(path);
        file.is_ok_and(|file| file.starts_with(directory))
    };
    let path = open.flatten().map(|entry| entry.path()).find(of_space);
    let path = path.expect("pages were written");
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("the file is ours")
}

fn flip(file: &File, place: u64, length: u8, mask: u8) {
    let mut bytes = vec![0; 1 + usize::from(length)];
    let count = file.read_at(&mut bytes, place).expect("the file is ours");
    bytes.truncate(count);
    for byte in &mut bytes {
        *byte ^= mask;
    }
    file.write_all_at(&bytes, place).expect("the file is ours");
}

/// Some pages and a few changes among what they take.
pub fn plausible(random: &mut Random) -> Vec<u8> {
    let count = 1 + random.below(PAGES_MAX as u64) as u8;
    let mut input = vec![random.below(4) as u8, random.below(3) as u8, count - 1];
    for _ in 0..2 * count {
        input.push(random.next_u64() as u8);
    }
    for _ in 0..random.below(4) {
        let place = random.below(1 << 12) as u16;
        input.extend(place.to_le_bytes());
        input.extend([random.below(8) as u8, random.next_u64() as u8]);
    }
    input
}
