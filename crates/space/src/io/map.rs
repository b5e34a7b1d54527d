//! Reads from mapped windows of the temp file.
//!
//! **Owns** a few read-only mappings. **Never** hands a mapped address out: bytes are copied, and
//! a window is asked for with `MADV_POPULATE_READ` first, which reports a failing device as an
//! error where a plain access would kill the process.
//!
//! The windows together are capped by a share of the memory that was available at open, and by a
//! constant, since mapped bytes count as resident beside the budget. Without room for a single
//! window, or where mapping is refused, reads are plain ones.

#![expect(
    unsafe_code,
    reason = "maps windows of the temp file and copies from them"
)]

use std::io;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Weak};

use super::backend::{Backend, Queue};
use super::segment::{self, Transfer};
use super::threads;
use crate::file::Handle;
use crate::{Faults, lock};

/// The size of a window.
const WINDOW_BYTES: u64 = 2 << 20;
/// No more than this is mapped.
const MOST_BYTES: u64 = 16 << 20;
/// The share of available memory that may be mapped.
const SHARE: u64 = 8;

struct Window {
    handle: Weak<Handle>,
    offset: u64,
    len: usize,
    start: NonNull<u8>,
}

// SAFETY: a read-only mapping of a file is tied to no thread.
unsafe impl Send for Window {}
// SAFETY: as above.
unsafe impl Sync for Window {}

impl Drop for Window {
    fn drop(&mut self) {
        // SAFETY: mapped with this length in `map`; the last user is gone.
        let result = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(result.is_ok());
    }
}

/// The back end.
pub(crate) struct Mapped {
    /// Oldest use first.
    windows: Mutex<Vec<Arc<Window>>>,
    most_windows: usize,
    faults: Option<Arc<dyn Faults>>,
}

impl Mapped {
    pub(crate) fn new(faults: Option<Arc<dyn Faults>>) -> Mapped {
        let bytes = (available_bytes() / SHARE).min(MOST_BYTES);
        let most_windows = (bytes / WINDOW_BYTES) as usize;
        Mapped {
            windows: Mutex::new(Vec::new()),
            most_windows,
            faults,
        }
    }

    /// The window that holds `offset`.
    fn window(&self, handle: &Arc<Handle>, offset: u64) -> io::Result<Arc<Window>> {
        let offset = offset / WINDOW_BYTES * WINDOW_BYTES;
        let mut windows = lock(&self.windows);
        let found = windows.iter().position(|window| {
            window.offset == offset && window.handle.as_ptr() == Arc::as_ptr(handle)
        });
        if let Some(index) = found {
            let window = windows.remove(index);
            let still = offset + window.len as u64 >= handle.file.metadata()?.len()
                || window.len as u64 == WINDOW_BYTES;
            if still {
                windows.push(Arc::clone(&window));
                return Ok(window);
            }
        }
        let window = Arc::new(map(handle, offset)?);
        if windows.len() >= self.most_windows {
            windows.remove(0);
        }
        windows.push(Arc::clone(&window));
        Ok(window)
    }

    fn copy(&self, transfer: &Transfer) -> io::Result<()> {
        let mut offset = transfer.offset;
        for segment in &transfer.segments {
            let mut done = 0;
            while done < segment.len() {
                let window = self.window(&transfer.handle, offset)?;
                let within = (offset - window.offset) as usize;
                let len = (segment.len() - done).min(window.len.saturating_sub(within));
                if len == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                populate(&window, within, len)?;
                // SAFETY: `within + len` was just bounded by the window.
                let from = unsafe { window.start.add(within) };
                // SAFETY: `done + len` is bounded by the segment.
                let to = unsafe { segment.start().add(done) };
                // SAFETY: S5: the segment is filled by this transfer only; file bytes of a slot
                // being read are not written, because its page is not resident.
                unsafe { from.copy_to_nonoverlapping(to, len) };
                done += len;
                offset += len as u64;
            }
        }
        Ok(())
    }
}

impl Backend for Mapped {
    fn run(&self, transfer: &Transfer) -> io::Result<()> {
        if !transfer.write && self.most_windows > 0 && self.copy(transfer).is_ok() {
            return Ok(());
        }
        segment::run(transfer, 0)
    }

    fn queue(self: Arc<Self>) -> Box<dyn Queue> {
        let faults = self.faults.clone();
        Box::new(threads::Threads::new(self, faults))
    }
}

fn map(handle: &Arc<Handle>, offset: u64) -> io::Result<Window> {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    let left = handle.file.metadata()?.len().saturating_sub(offset);
    let len = left.min(WINDOW_BYTES) as usize;
    if len == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    // SAFETY: a fresh read-only mapping at an address of the kernel's choice aliases nothing.
    let start = unsafe {
        mmap(
            std::ptr::null_mut(),
            len,
            ProtFlags::READ,
            MapFlags::SHARED,
            &handle.file,
            offset,
        )
    }?;
    let start = NonNull::new(start.cast::<u8>()).expect("the kernel never maps page zero");
    Ok(Window {
        handle: Arc::downgrade(handle),
        offset,
        len,
        start,
    })
}

/// Brings a part of a window into memory, or says why that fails.
fn populate(window: &Window, within: usize, len: usize) -> io::Result<()> {
    use rustix::mm::{Advice, madvise};
    let from = within / 4096 * 4096;
    let to = (within + len).next_multiple_of(4096);
    // SAFETY: `from` is inside the window.
    let start = unsafe { window.start.add(from) };
    // SAFETY: the range is inside the mapping (its last page included) and only read in.
    unsafe { madvise(start.as_ptr().cast(), to - from, Advice::LinuxPopulateRead) }?;
    Ok(())
}

/// Memory that could be used without swapping, the memory cgroup considered.
fn available_bytes() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let meminfo = read("/proc/meminfo");
    let line = meminfo
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))
        .unwrap_or_default();
    let kib = line
        .split_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<u64>().ok())
        .unwrap_or(0);
    let number = |path: &str| read(path).trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max")
        .or_else(|| number("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
    let used = number("/sys/fs/cgroup/memory.current")
        .or_else(|| number("/sys/fs/cgroup/memory/memory.usage_in_bytes"));
    let in_group = limit.map_or(u64::MAX, |limit| limit.saturating_sub(used.unwrap_or(0)));
    (kib * 1024).min(in_group)
}
