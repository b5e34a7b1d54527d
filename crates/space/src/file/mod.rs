//! Temp files: one per directory, unlinked at birth.
//!
//! **Owns** the files and which of their bytes are in use. **Never** reads or writes pages, and
//! never punches holes: slots are recycled, because giving file space back costs the device more
//! than writing it.
//!
//! A file is opened when the first byte is needed and grows by `fallocate` in large steps, so
//! that a full disk is met before any data has left memory.

mod cached;
mod ranges;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock};

use crate::{Error, Faults, IoMode, Operation, Result, lock};
use ranges::Ranges;

pub use cached::CachedBytes;

/// The alignment of everything in a temp file.
pub(crate) const SECTOR: u64 = 4096;
/// The largest growth step for small files; larger files grow by an eighth.
const STEP_BYTES: u64 = 64 << 20;
/// The smallest growth step, used while the budget is small.
const SMALL_STEP_BYTES: u64 = if cfg!(miri) { 256 << 10 } else { 4 << 20 };

/// An open temp file.
pub(crate) struct Handle {
    pub(crate) file: File,
    /// Whether transfers go around the page cache.
    pub(crate) direct: bool,
    #[cfg(miri)]
    pub(crate) heap: Mutex<Vec<u8>>,
}

struct Growing {
    ranges: Ranges,
    len: u64,
}

struct TempFile {
    dir: PathBuf,
    handle: OnceLock<Arc<Handle>>,
    growing: Mutex<Growing>,
}

/// What is known of a temp file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStatus {
    /// Its directory; it has no name.
    pub dir: PathBuf,
    /// Bytes allocated.
    pub allocated_bytes: u64,
    /// Bytes in use.
    pub used_bytes: u64,
    /// What the page cache has of it; `None` where the kernel does not say (before Linux 6.5).
    pub cached: Option<CachedBytes>,
}

/// The temp files of a space.
pub(crate) struct Files {
    files: Vec<TempFile>,
    turn: AtomicUsize,
    mode: IoMode,
    step_bytes: u64,
    limit_bytes: Option<u64>,
    faults: Option<Arc<dyn Faults>>,
}

impl Files {
    pub(crate) fn new(
        dirs: &[PathBuf],
        mode: IoMode,
        memory_bytes: u64,
        limit_bytes: Option<u64>,
        faults: Option<Arc<dyn Faults>>,
    ) -> Result<Files> {
        let dirs = if dirs.is_empty() {
            vec![std::env::temp_dir()]
        } else {
            dirs.to_vec()
        };
        for dir in &dirs {
            if !cfg!(miri) && !dir.is_dir() {
                let reason = format!("{} is not a directory", dir.display());
                return Err(Error::InvalidOption {
                    option: "temp_dirs",
                    reason,
                });
            }
        }
        let file = |dir: PathBuf| TempFile {
            dir,
            handle: OnceLock::new(),
            growing: Mutex::new(Growing {
                ranges: Ranges::default(),
                len: 0,
            }),
        };
        Ok(Files {
            files: dirs.into_iter().map(file).collect(),
            turn: AtomicUsize::new(0),
            mode,
            step_bytes: memory_bytes.clamp(SMALL_STEP_BYTES, STEP_BYTES),
            limit_bytes,
            faults,
        })
    }

    pub(crate) fn dir(&self, file: u16) -> &Path {
        &self.files[usize::from(file)].dir
    }

    pub(crate) fn handle(&self, file: u16) -> &Arc<Handle> {
        self.files[usize::from(file)]
            .handle
            .get()
            .expect("bytes were taken from this file")
    }

    /// How many files are open.
    pub(crate) fn open_count(&self) -> u64 {
        self.files
            .iter()
            .filter(|file| file.handle.get().is_some())
            .count() as u64
    }

    /// The files that are open.
    pub(crate) fn status(&self) -> Vec<FileStatus> {
        let open = self.files.iter();
        let open = open.filter_map(|file| Some((file, file.handle.get()?)));
        open.map(|(file, handle)| {
            let growing = lock(&file.growing);
            FileStatus {
                dir: file.dir.clone(),
                allocated_bytes: growing.len,
                used_bytes: growing.len - growing.ranges.free_bytes(),
                cached: cached::cached_bytes(&handle.file),
            }
        })
        .collect()
    }

    /// Takes `len` bytes of some file, growing one if none has as many in one piece.
    pub(crate) fn take(&self, len: u64) -> Result<(u16, u64)> {
        debug_assert_eq!(len % SECTOR, 0);
        let start = self.turn.fetch_add(1, Relaxed);
        for step in 0..self.files.len() {
            let index = (start + step) % self.files.len();
            if let Some(offset) = lock(&self.files[index].growing).ranges.take(len) {
                return Ok((index as u16, offset));
            }
        }
        let mut order: Vec<usize> = (0..self.files.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(free_bytes(&self.files[index].dir)));
        let mut last = None;
        for index in order {
            let file = &self.files[index];
            match self.grow(file, len) {
                Ok(()) => {
                    if let Some(offset) = lock(&file.growing).ranges.take(len) {
                        return Ok((index as u16, offset));
                    }
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| self.full(0, len)))
    }

    /// Returns what [`Files::take`] gave.
    pub(crate) fn give(&self, file: u16, offset: u64, len: u64) {
        lock(&self.files[usize::from(file)].growing)
            .ranges
            .give(offset, len);
    }

    fn full(&self, index: usize, needed_bytes: u64) -> Error {
        Error::DiskFull {
            dir: self.files[index].dir.clone(),
            needed_bytes,
        }
    }

    /// Allocates file space ahead of need, over all directories.
    pub(crate) fn pre_extend(&self, bytes: u64) -> Result<()> {
        let each = (bytes / self.files.len() as u64).next_multiple_of(SECTOR);
        for file in self.files.iter().filter(|_| each > 0) {
            self.grow_by(file, each)?;
        }
        Ok(())
    }

    /// Grows a file by a large step, or by less if that is all there is.
    fn grow(&self, file: &TempFile, needed: u64) -> Result<()> {
        let len = lock(&file.growing).len;
        let mut step = self.step_bytes.max(len / 8).next_multiple_of(SECTOR);
        if let Some(limit) = self.limit_bytes {
            let total: u64 = self.files.iter().map(|file| lock(&file.growing).len).sum();
            step = step.min(limit.saturating_sub(total) / SECTOR * SECTOR);
        }
        step = step.max(needed);
        loop {
            match self.grow_by(file, step) {
                Err(Error::DiskFull { .. }) if step > needed => {
                    step = (step / 2).next_multiple_of(SECTOR).max(needed);
                }
                other => return other,
            }
        }
    }

    fn grow_by(&self, file: &TempFile, step: u64) -> Result<()> {
        let fail = |operation, source: io::Error| {
            if source.kind() == io::ErrorKind::StorageFull {
                return Error::DiskFull {
                    dir: file.dir.clone(),
                    needed_bytes: step,
                };
            }
            Error::Io {
                operation,
                dir: file.dir.clone(),
                source,
            }
        };
        if let Some(faults) = &self.faults {
            faults
                .before(Operation::Extend)
                .map_err(|error| fail("extend", error))?;
        }
        let handle = match file.handle.get() {
            Some(handle) => handle,
            None => {
                let handle = open(&file.dir, self.mode).map_err(|error| fail("open", error))?;
                file.handle.get_or_init(|| Arc::new(handle))
            }
        };
        let mut growing = lock(&file.growing);
        let start = growing.len;
        extend(handle, start, step).map_err(|error| fail("extend", error))?;
        growing.len += step;
        growing.ranges.give(start, step);
        Ok(())
    }

    /// Gives the unused end of each file back. Returns the bytes given back.
    pub(crate) fn trim(&self) -> u64 {
        let mut given = 0;
        for file in &self.files {
            let Some(handle) = file.handle.get() else {
                continue;
            };
            let mut growing = lock(&file.growing);
            let end = growing.len;
            let tail = growing.ranges.take_tail(end);
            if tail > 0 {
                let shorter = end - tail;
                if truncate(handle, shorter).is_ok() {
                    growing.len = shorter;
                    given += tail;
                } else {
                    growing.ranges.give(shorter, tail);
                }
            }
        }
        given
    }

    /// Bytes of all files that pages use.
    pub(crate) fn used_bytes(&self) -> u64 {
        let used = |file: &TempFile| {
            let growing = lock(&file.growing);
            growing.len - growing.ranges.free_bytes()
        };
        self.files.iter().map(used).sum()
    }

    /// Bytes allocated on disk.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        self.files.iter().map(|file| lock(&file.growing).len).sum()
    }

    /// The longest free range of any file.
    pub(crate) fn longest_free(&self) -> u64 {
        self.files
            .iter()
            .map(|file| lock(&file.growing).ranges.longest())
            .max()
            .unwrap_or(0)
    }
}

#[cfg(not(miri))]
fn free_bytes(dir: &Path) -> u64 {
    rustix::fs::statvfs(dir).map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(miri)]
fn free_bytes(_dir: &Path) -> u64 {
    0
}

#[cfg(not(miri))]
fn extend(handle: &Handle, start: u64, step: u64) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    loop {
        match fallocate(&handle.file, FallocateFlags::empty(), start, step) {
            Ok(()) => return Ok(()),
            Err(Errno::INTR) => {}
            // No such call on this file system: the length alone has to do.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => return handle.file.set_len(start + step),
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(miri)]
fn extend(handle: &Handle, start: u64, step: u64) -> io::Result<()> {
    let mut heap = lock(&handle.heap);
    assert_eq!(heap.len() as u64, start);
    // One copy: Miri takes a step for each element of a resize.
    heap.extend_from_slice(&vec![0; step as usize]);
    Ok(())
}

#[cfg(not(miri))]
fn truncate(handle: &Handle, len: u64) -> io::Result<()> {
    handle.file.set_len(len)
}

#[cfg(miri)]
fn truncate(handle: &Handle, len: u64) -> io::Result<()> {
    lock(&handle.heap).truncate(len as usize);
    Ok(())
}

#[cfg(miri)]
fn open(_dir: &Path, _mode: IoMode) -> io::Result<Handle> {
    Ok(Handle {
        file: File::open("/dev/null")?,
        direct: false,
        heap: Mutex::default(),
    })
}

/// Opens a file that has no name, or loses it at once.
#[cfg(not(miri))]
fn open(dir: &Path, mode: IoMode) -> io::Result<Handle> {
    use rustix::fs::{Mode, OFlags};
    const TMPFS: i64 = 0x0102_1994;
    let in_memory = rustix::fs::statfs(dir).is_ok_and(|stat| stat.f_type == TMPFS);
    let owner = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    if mode == IoMode::Direct && !in_memory {
        let direct = flags | OFlags::TMPFILE | OFlags::DIRECT;
        if let Ok(file) = rustix::fs::open(dir, direct, owner) {
            let file = File::from(file);
            if accepts_direct(&file) {
                return Ok(Handle { file, direct: true });
            }
        }
    }
    if let Ok(file) = rustix::fs::open(dir, flags | OFlags::TMPFILE, owner) {
        return Ok(Handle {
            file: File::from(file),
            direct: false,
        });
    }
    let name = format!("mayfly-{}-{:x}", std::process::id(), unique());
    let path = dir.join(name);
    let file = rustix::fs::open(&path, flags | OFlags::CREATE | OFlags::EXCL, owner)?;
    std::fs::remove_file(&path)?;
    Ok(Handle {
        file: File::from(file),
        direct: false,
    })
}

#[cfg(not(miri))]
fn unique() -> u64 {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    NEXT.fetch_add(1, Relaxed) as u64
}

/// Whether an aligned transfer works; some file systems accept the flag only.
#[cfg(not(miri))]
fn accepts_direct(file: &File) -> bool {
    use std::os::unix::fs::FileExt;
    let mut scratch = crate::io::Scratch::new(SECTOR as usize);
    file.write_all_at(scratch.bytes_mut(), 0).is_ok()
        && file.read_exact_at(scratch.bytes_mut(), 0).is_ok()
}
