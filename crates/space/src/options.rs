//! How a space is opened.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::PageClass;

/// How the temp file is read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IoMode {
    /// Around the page cache (`O_DIRECT`), by io_uring where the kernel allows it and by a small
    /// thread pool elsewhere. A directory that refuses `O_DIRECT` is used as [`IoMode::Buffered`].
    #[default]
    Direct,
    /// Through the page cache.
    Buffered,
    /// Through the page cache; reads are copied from a mapping of the file whose size is capped by
    /// the memory available at open. Falls back to plain reads where mapping is refused.
    Mmap,
}

/// How extents are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compression {
    /// On while threads wait for the device and processor time is idle, off otherwise.
    #[default]
    Auto,
    /// Never.
    None,
    /// Always lz4.
    Lz4,
    /// Always zstd, level 1.
    Zstd,
}

/// An operation that a [`Faults`] hook sees before it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Reading pages from the temp file.
    Read,
    /// Writing an extent to the temp file.
    Write,
    /// Extending the temp file.
    Extend,
    /// Opening the temp file, which comes after the first [`Operation::Extend`].
    Open,
    /// Granting memory: a page, reading one back, a reservation, an admission.
    Grant,
    /// Starting a background thread, or a helper of one.
    Thread,
}

/// A hook for tests that makes operations fail.
pub trait Faults: Send + Sync {
    /// Called before each operation; an error makes it fail in the way a real failure would.
    fn before(&self, operation: Operation) -> std::io::Result<()>;

    /// The most bytes that one system call of a [`Operation::Read`] or [`Operation::Write`] moves:
    /// fewer than asked for are a short transfer, none a transfer that fails on its way. Where the
    /// page cache is passed by, the device moves whole sectors of 4 KiB.
    fn bytes_moved_max(&self, _operation: Operation) -> usize {
        usize::MAX
    }

    /// Called with what was read for a page, compressed or not, before anybody has looked at it.
    fn after_read(&self, _bytes: &mut [u8]) {}
}

/// The settings of a [`Space`](crate::Space).
#[derive(Clone)]
pub struct SpaceOptions {
    /// The memory budget.
    pub memory_bytes: u64,
    /// Where temp files live; the system's temp directory when empty.
    pub temp_dirs: Vec<PathBuf>,
    /// The most disk bytes that may be in use at once; no limit when `None`.
    pub temp_limit_bytes: Option<u64>,
    /// How the temp file is read and written.
    pub io: IoMode,
    /// Whether io_uring may be used where the kernel allows it.
    pub io_uring: bool,
    /// How extents are compressed.
    pub compression: Compression,
    /// The default page class; chosen from the budget when `None`.
    pub page_class: Option<PageClass>,
    /// File space that is allocated at open, over all directories, and never given back.
    pub pre_extend_bytes: u64,
    /// After how long memory and file space that nobody used are given back.
    pub idle_trim: Duration,
    /// Makes operations fail, for tests.
    pub faults: Option<Arc<dyn Faults>>,
}

impl Default for SpaceOptions {
    fn default() -> Self {
        SpaceOptions {
            memory_bytes: 1 << 30,
            temp_dirs: Vec::new(),
            temp_limit_bytes: None,
            io: IoMode::default(),
            io_uring: true,
            compression: Compression::default(),
            page_class: None,
            pre_extend_bytes: 0,
            idle_trim: Duration::from_secs(30),
            faults: None,
        }
    }
}

impl fmt::Debug for SpaceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpaceOptions")
            .field("memory_bytes", &self.memory_bytes)
            .field("temp_dirs", &self.temp_dirs)
            .field("temp_limit_bytes", &self.temp_limit_bytes)
            .field("io", &self.io)
            .field("io_uring", &self.io_uring)
            .field("compression", &self.compression)
            .field("page_class", &self.page_class)
            .field("pre_extend_bytes", &self.pre_extend_bytes)
            .field("idle_trim", &self.idle_trim)
            .field("faults", &self.faults.is_some())
            .finish()
    }
}

/// The limits of an [`Account`](crate::Account).
#[derive(Debug, Clone, Copy, Default)]
pub struct AccountOptions {
    /// The most disk bytes this account and its descendants may use at once. Where others need the
    /// memory of its pages, these are written beyond it, and the account gets no further page until
    /// it uses less again.
    pub disk_quota_bytes: Option<u64>,
    /// The most unpinned memory this account and its descendants keep resident: beyond it their
    /// own pages are evicted, whatever the budget says.
    pub resident_max_bytes: Option<u64>,
    /// The most that this account and its descendants claim beyond anybody's reach, pinned pages
    /// and reservations together, unless more was admitted for them. An operator that would take
    /// all memory there is leaves the rest to those that feed it and those that it feeds.
    pub claim_max_bytes: Option<u64>,
    /// What claims of this account and its descendants leave free of the whole budget: those beyond
    /// their admitted minimum are refused where less would be left. An operator that can do with
    /// less memory leaves some to statements that begin later and cannot.
    pub headroom_bytes: u64,
    /// Whether claims of this account and its descendants that do not fit take memory of operators
    /// that hold it for speed ([`GivesMemory`](crate::GivesMemory)). For those that cannot do with
    /// less; what is admitted takes it in any case.
    pub takes_memory: bool,
    /// How the pages of this account and its descendants are compressed; as those of its parent
    /// when `None`.
    pub compression: Option<Compression>,
}

/// When a page is needed next, as far as its owner knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextUse {
    /// Unknown: second chance decides.
    SecondChance,
    /// In processing order: a larger value is used later and evicted earlier.
    At(u32),
}
