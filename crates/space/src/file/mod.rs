//! Temp files: one per directory, unlinked at birth.
//!
//! **Owns** the files and which of their bytes are in use. **Never** reads or writes pages. Slots
//! are recycled: only what a whole period did not need goes back, because giving file space back
//! costs the device more than writing it.
//!
//! ```text
//!   |used|free|used|  hole  |used| free |      allocated = used + free
//!                                       ^ len
//! ```
//!
//! A file is opened when the first byte is needed and grows by `fallocate` in large steps, first
//! into its holes, so that a full disk is met before any data has left memory. Space goes back from
//! the end of the file on: its unused end is cut off, free pieces between used ones become holes. A
//! file system that makes no holes (FAT, old NFS) gets the end alone.

mod allocate;
mod cached;
mod handle;
mod ranges;
mod unnamed;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use crate::{Error, Faults, IoMode, Operation, Result, lock};
pub(crate) use handle::{Handle, SECTOR};
use ranges::Ranges;

pub use cached::CachedBytes;

/// Pieces of a file that a period gives back at least, whatever else there is to do: a system call
/// each.
const PIECES_MIN: u32 = 256;

/// The largest growth step for small files; larger files grow by an eighth.
const STEP_BYTES: u64 = 64 << 20;
/// The smallest growth step, used while the budget is small.
const SMALL_STEP_BYTES: u64 = if cfg!(miri) { 256 << 10 } else { 4 << 20 };

#[derive(Default)]
struct Growing {
    /// Allocated, and used by no page.
    free: Ranges,
    /// Not allocated.
    holes: Ranges,
    len: u64,
    /// The most bytes in use at once since [`Files::end_period`].
    most_used_bytes: u64,
    /// What is never given back.
    kept_bytes: u64,
}

impl Growing {
    fn allocated_bytes(&self) -> u64 {
        self.len - self.holes.bytes()
    }

    fn used_bytes(&self) -> u64 {
        self.allocated_bytes() - self.free.bytes()
    }

    fn take(&mut self, len: u64) -> Option<u64> {
        let offset = self.free.take(len)?;
        self.most_used_bytes = self.most_used_bytes.max(self.used_bytes());
        Some(offset)
    }

    /// Begins a period. Returns the bytes that are allocated and that the one before never used.
    fn end_period(&mut self) -> u64 {
        let used = self.used_bytes();
        let most_used = std::mem::replace(&mut self.most_used_bytes, used);
        let kept = most_used.max(self.kept_bytes);
        self.allocated_bytes().saturating_sub(kept)
    }
}

struct TempFile {
    dir: PathBuf,
    handle: OnceLock<Arc<Handle>>,
    growing: Mutex<Growing>,
}

impl TempFile {
    /// Gives back the end of the last free range, at most `most` bytes. Returns how many bytes went
    /// back; zero if none can.
    fn give_back(&self, handle: &Handle, most: u64) -> u64 {
        let mut growing = lock(&self.growing);
        let Some((start, len)) = growing.free.take_last(most) else {
            return 0;
        };
        let behind = growing.holes.len_at(start + len);
        if start + len + behind == growing.len {
            // The lock is kept, so that nobody grows the file meanwhile.
            if allocate::truncate(handle, start).is_err() {
                growing.free.give(start, len);
                return 0;
            }
            growing.holes.take_at(start + len);
            growing.len = start - growing.holes.take_ending_at(start);
            return len;
        }
        // The range is nobody's now. Others free pages meanwhile.
        drop(growing);
        let punched = allocate::punch(handle, start, len);
        let mut growing = lock(&self.growing);
        if punched.is_err() {
            growing.free.give(start, len);
            return 0;
        }
        growing.holes.give(start, len);
        len
    }
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
            growing: Mutex::default(),
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
                allocated_bytes: growing.allocated_bytes(),
                used_bytes: growing.used_bytes(),
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
            if let Some(offset) = lock(&self.files[index].growing).take(len) {
                return Ok((index as u16, offset));
            }
        }
        let mut order: Vec<usize> = (0..self.files.len()).collect();
        order.sort_by_key(|&index| std::cmp::Reverse(free_bytes(&self.files[index].dir)));
        let mut last = None;
        for index in order {
            match self.grow(&self.files[index], len) {
                Ok(mut growing) => {
                    let offset = growing.take(len).expect("it has just grown by as much");
                    return Ok((index as u16, offset));
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| self.full(0, len)))
    }

    /// Returns what [`Files::take`] gave.
    pub(crate) fn give(&self, file: u16, offset: u64, len: u64) {
        lock(&self.files[usize::from(file)].growing)
            .free
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
            self.grow_by(file, each, each)?.kept_bytes = each;
        }
        Ok(())
    }

    /// Grows a file by a large step, or by less if that is all there is. At least `needed` bytes
    /// are free in one piece then, which nobody can take or give back before the caller lets go.
    fn grow<'a>(&self, file: &'a TempFile, needed: u64) -> Result<MutexGuard<'a, Growing>> {
        let allocated = lock(&file.growing).allocated_bytes();
        let mut step = self.step_bytes.max(allocated / 8).next_multiple_of(SECTOR);
        if let Some(limit) = self.limit_bytes {
            let left = limit.saturating_sub(self.allocated_bytes());
            step = step.min(left / SECTOR * SECTOR);
        }
        step = step.max(needed);
        loop {
            match self.grow_by(file, needed, step) {
                Err(Error::DiskFull { .. }) if step > needed => {
                    step = (step / 2).next_multiple_of(SECTOR).max(needed);
                }
                other => return other,
            }
        }
    }

    /// Allocates `step` bytes behind the end, or as many as there are in a hole of at least
    /// `needed`.
    fn grow_by<'a>(
        &self,
        file: &'a TempFile,
        needed: u64,
        step: u64,
    ) -> Result<MutexGuard<'a, Growing>> {
        let fail = |operation, source: io::Error| {
            let dir = file.dir.clone();
            Error::of_file(operation, dir, step, source)
        };
        let may = |operation, name| match &self.faults {
            Some(faults) => faults.before(operation).map_err(|error| fail(name, error)),
            None => Ok(()),
        };
        may(Operation::Extend, "extend")?;
        let handle = match file.handle.get() {
            Some(handle) => handle,
            None => {
                may(Operation::Open, "open")?;
                let opened = unnamed::open(&file.dir, self.mode, self.faults.clone());
                let handle = opened.map_err(|error| fail("open", error))?;
                file.handle.get_or_init(|| Arc::new(handle))
            }
        };
        let mut growing = lock(&file.growing);
        let hole = growing.holes.take_first(needed, step);
        let (start, len) = hole.unwrap_or((growing.len, step));
        if let Err(error) = allocate::extend(handle, start, len) {
            if hole.is_some() {
                growing.holes.give(start, len);
            }
            return Err(fail("extend", error));
        }
        growing.len = growing.len.max(start + len);
        growing.free.give(start, len);
        Ok(growing)
    }

    /// Ends a period: gives back what the files have beyond the most that was in use at once since
    /// the last one ended. Where `is_needed` says so, it stops after [`PIECES_MIN`] of each.
    pub(crate) fn end_period(&self, is_needed: &dyn Fn() -> bool) {
        for file in &self.files {
            let Some(handle) = file.handle.get() else {
                continue;
            };
            let mut pieces = 0;
            let mut unused = lock(&file.growing).end_period();
            while unused > 0 && (pieces < PIECES_MIN || !is_needed()) {
                pieces += 1;
                match file.give_back(handle, unused) {
                    0 => break,
                    given => unused -= given,
                }
            }
        }
    }

    /// Bytes of all files that pages use.
    pub(crate) fn used_bytes(&self) -> u64 {
        let files = self.files.iter();
        files.map(|file| lock(&file.growing).used_bytes()).sum()
    }

    /// Bytes allocated on disk.
    pub(crate) fn allocated_bytes(&self) -> u64 {
        let files = self.files.iter();
        files
            .map(|file| lock(&file.growing).allocated_bytes())
            .sum()
    }

    /// The longest free range of any file.
    pub(crate) fn longest_free(&self) -> u64 {
        self.files
            .iter()
            .map(|file| lock(&file.growing).free.longest())
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

#[cfg(test)]
mod tests;
