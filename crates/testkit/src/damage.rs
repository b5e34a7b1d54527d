//! A space whose temp file is damaged behind its back, for targets of fuzzing.
//!
//! What is done comes from the bytes of an input:
//!
//! ```text
//! changes: place (2), length, mask | ... | four zeros, or the end
//! ```
//!
//! Places are steps of 16 bytes from the beginning of the file. A change with the mask 0 cuts the
//! file off at its place.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mayfly_space::{Compression, Error, IoMode, Operation, Space, SpaceOptions};

use crate::{FaultPlan, Random};

/// Two bytes reach so far, by steps of 16.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A space in a directory of its own, so that its file can be found among those that are open.
pub struct DamagedSpace {
    space: Space,
    is_mapped: bool,
    directory: Directory,
}

/// What was done to a temp file.
#[derive(Debug, Clone, Copy)]
pub struct Damage {
    /// Whether anything was.
    pub is_done: bool,
    /// How long the file was before.
    pub file_bytes: u64,
}

impl Damage {
    /// Whether this is how a page is lost that lay in the damage.
    pub fn explains(&self, error: &Error) -> bool {
        match error {
            Error::Corrupt {
                offset, len_bytes, ..
            } => self.is_done && *offset < self.file_bytes && *len_bytes > 0,
            Error::Io { operation, .. } => self.is_done && *operation == "read",
            _ => false,
        }
    }
}

impl DamagedSpace {
    /// Opens the space; `codec` and `mode` choose how it writes.
    pub fn open(memory_bytes: u64, codec: u8, mode: u8) -> DamagedSpace {
        let directory = Directory::new();
        let is_mapped = mode % 3 == 1;
        // The writer may have its thread; helpers, which take longer to start than all the rest,
        // not.
        let threads = FaultPlan::failing_with(&[Operation::Thread], io::ErrorKind::WouldBlock);
        threads.fail_from(2);
        let options = SpaceOptions {
            memory_bytes,
            temp_dirs: vec![directory.0.clone()],
            // So that the file stays short.
            temp_limit_bytes: Some(FILE_BYTES_MAX),
            io: match is_mapped {
                true => IoMode::Mmap,
                false => IoMode::Buffered,
            },
            io_uring: false,
            compression: match codec % 4 {
                0 => Compression::None,
                1 => Compression::Zstd,
                _ => Compression::Lz4,
            },
            faults: Some(threads),
            ..SpaceOptions::default()
        };
        DamagedSpace {
            space: Space::open(options).expect("the options are valid"),
            is_mapped,
            directory,
        }
    }

    /// The space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Makes all pages leave memory that nobody pins.
    pub fn push_out(&self) {
        push_out(&self.space).expect("all that is not pinned can give way");
    }

    /// Damages the file as an input says, if there is one: what is pinned was not pushed out.
    pub fn damage(&self, mut next: impl FnMut() -> u8) -> Damage {
        let Some(file) = self.file() else {
            return Damage {
                is_done: false,
                file_bytes: 0,
            };
        };
        let file_bytes = file.metadata().expect("it is open").len();
        let mut is_done = false;
        loop {
            let (place, length, mask) = ([next(), next()], next(), next());
            if (place, length, mask) == ([0; 2], 0, 0) {
                break;
            }
            is_done = true;
            let place = u64::from(u16::from_le_bytes(place)) * 16 % file_bytes;
            match mask {
                // What is mapped must not be cut off by anybody.
                0 if !self.is_mapped => file.set_len(place).expect("the file is ours"),
                _ => flip(&file, place, length, mask),
            }
        }
        Damage {
            is_done,
            file_bytes,
        }
    }

    /// The temp file, which has no name, by way of the list of open files.
    fn file(&self) -> Option<File> {
        let open = std::fs::read_dir("/proc/self/fd").expect("Linux has it");
        let is_ours = |path: &PathBuf| {
            let file = std::fs::read_link(path);
            file.is_ok_and(|file| file.starts_with(&self.directory.0))
        };
        let path = open.flatten().map(|entry| entry.path()).find(is_ours)?;
        let mut options = OpenOptions::new();
        let opened = options.read(true).write(true).open(path);
        Some(opened.expect("the file is ours"))
    }
}

/// Makes all pages leave memory that nobody pins.
///
/// # Errors
/// If some of them are pinned at this moment.
pub fn push_out(space: &Space) -> Result<(), Error> {
    let rest = space.memory_bytes() - space.memory_claimed_bytes();
    space.root().reserve(rest).map(drop)
}

/// Appends a few changes to an input, within the first bytes of the file.
pub fn plausible_damage(random: &mut Random, file_bytes: u64, input: &mut Vec<u8>) {
    for _ in 0..random.below(4) {
        let place = random.below(file_bytes / 16) as u16;
        input.extend(place.to_le_bytes());
        input.extend([random.below(8) as u8, random.next_u64() as u8]);
    }
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

struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let name = format!("mayfly-damage-{}-{number}", std::process::id());
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
