//! The counters of a space and of its accounts.

/// A reading of the counters of an account with its descendants; of the whole space at the root.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Pages allocated since the account was made.
    pub pages_allocated: u64,
    /// Their bytes.
    pub bytes_allocated: u64,
    /// Pages that exist.
    pub pages_live: u64,
    /// Bytes of pages in memory.
    pub resident_bytes: u64,
    /// Bytes of pages that are on disk only.
    pub away_bytes: u64,
    /// Bytes of pinned pages.
    pub pinned_bytes: u64,
    /// Bytes of reservations: memory outside the arena.
    pub reserved_bytes: u64,
    /// The highest sum of resident and reserved bytes.
    pub peak_bytes: u64,
    /// The highest sum of all pages, in memory or on disk, and reserved bytes: what would have been
    /// in memory if nothing had been evicted.
    pub live_peak_bytes: u64,
    /// Pages whose frame was taken away.
    pub evictions: u64,
    /// Bytes of pages written to the temp file, before compression.
    pub bytes_written: u64,
    /// Bytes of pages read from the temp file, after decompression.
    pub bytes_read: u64,
    /// Bytes that went to the device: after compression; as the kernel counts them (for the whole
    /// process, and at the root only) where the page cache stands between.
    pub device_bytes_written: u64,
    /// Bytes that came from the device.
    pub device_bytes_read: u64,
    /// Bytes written ahead whose copy was dropped before it was of any use.
    pub wasted_write_bytes: u64,
    /// Pages written to the temp file.
    pub pages_written: u64,
    /// Pages read from the temp file because somebody stood waiting for them.
    pub read_misses: u64,
    /// Pages read from the temp file ahead of their use.
    pub prefetched_pages: u64,
    /// How often a thread waited for a write to make room.
    pub waits: u64,
    /// How long, together.
    pub wait_nanos: u64,
    /// How long threads stood waiting for pages that were read from the temp file, together.
    pub read_wait_nanos: u64,
    /// Writes that failed. Their pages stayed in memory.
    pub write_failures: u64,
    /// Temp files created.
    pub files_created: u64,
    /// Disk bytes in use.
    pub disk_bytes_used: u64,
    /// The highest number of disk bytes in use.
    pub disk_peak_bytes: u64,
}

impl Counters {
    /// Adds what an account moved, and how long it waited, between two readings of its counters.
    pub fn add_moved(&mut self, after: &Counters, before: &Counters) {
        let since = |of: fn(&Counters) -> u64| of(after).saturating_sub(of(before));
        self.bytes_written += since(|all| all.bytes_written);
        self.bytes_read += since(|all| all.bytes_read);
        self.device_bytes_written += since(|all| all.device_bytes_written);
        self.device_bytes_read += since(|all| all.device_bytes_read);
        self.wasted_write_bytes += since(|all| all.wasted_write_bytes);
        self.evictions += since(|all| all.evictions);
        self.waits += since(|all| all.waits);
        self.wait_nanos += since(|all| all.wait_nanos);
        self.read_wait_nanos += since(|all| all.read_wait_nanos);
    }
}
