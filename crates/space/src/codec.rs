//! Compression of pages on their way to the disk.
//!
//! **Owns** the decision when to compress. **Never** compresses a page that does not shrink by a
//! sector.
//!
//! Compression pays only while the device is what everybody waits for and a processor has
//! nothing better to do: per byte it costs 1/z on a core and saves (1 - 1/r)/D on the device.
//! [`Chooser`] therefore steps up (none, lz4, zstd) when threads waited for writes in the last
//! window *and* processor time was idle *and* the device was slower than the codec, and steps
//! down when either is over. The gain is measured as it goes: pages that do not shrink switch
//! the codec off for a while.

#![warn(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "bytes of the temp file are read here"
)]

use std::time::{Duration, Instant};

use crate::Compression;

/// How the bytes of a slot are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Raw,
    Lz4,
    Zstd,
}

/// The zstd level: the fastest of the plain levels.
const ZSTD_LEVEL: i32 = 1;
/// Below this size padding to sectors eats the gain.
pub(crate) const SMALLEST_PAGE: usize = 16 << 10;
/// How long one window of observation is.
const WINDOW: Duration = Duration::from_millis(50);
/// Share of a window spent waiting from which the device counts as the bottleneck.
const WAITING: f64 = 0.2;
/// Share of all processor time used below which a processor counts as idle.
const IDLE: f64 = 0.8;
/// Extents written raw after a codec gained nothing.
const PAUSE_EXTENTS: u32 = 64;

/// Upper bound of the coded length of `len` bytes.
pub(crate) fn bound(len: usize) -> usize {
    let lz4 = lz4_flex::block::get_maximum_output_size(len);
    // Miri calls no C.
    if cfg!(miri) {
        lz4
    } else {
        lz4.max(zstd::zstd_safe::compress_bound(len))
    }
}

/// Codes `page` into `out`; `None` when it does not fit or fails, and the page is stored raw.
pub(crate) fn encode(codec: Codec, page: &[u8], out: &mut [u8]) -> Option<usize> {
    match codec {
        Codec::Raw => None,
        Codec::Lz4 => lz4_flex::block::compress_into(page, out).ok(),
        Codec::Zstd => zstd::bulk::compress_to_buffer(page, out, ZSTD_LEVEL).ok(),
    }
}

/// Decodes into exactly `page`; `false` when the bytes are no such thing.
pub(crate) fn decode(codec: Codec, coded: &[u8], page: &mut [u8]) -> bool {
    let len = match codec {
        Codec::Raw => return false,
        Codec::Lz4 => lz4_flex::block::decompress_into(coded, page).ok(),
        Codec::Zstd => zstd::bulk::decompress_to_buffer(coded, page).ok(),
    };
    len == Some(page.len())
}

/// The checksum of a page.
pub(crate) fn checksum(page: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(page)
}

/// What the writer has seen so far; all of it only grows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observed {
    pub(crate) wait_nanos: u64,
    pub(crate) device_bytes: u64,
    pub(crate) device_busy_nanos: u64,
    pub(crate) processor_nanos: u64,
}

/// The codec that a setting names, if it names one.
fn fixed(compression: Compression) -> Option<Codec> {
    match compression {
        Compression::Auto => None,
        Compression::None => Some(Codec::Raw),
        Compression::Lz4 => Some(Codec::Lz4),
        Compression::Zstd => Some(Codec::Zstd),
    }
}

/// Decides which codec the next extent gets.
pub(crate) struct Chooser {
    fixed: Option<Codec>,
    codec: Codec,
    cores: f64,
    since: Instant,
    last: Option<Observed>,
    pause_extents: u32,
    /// Bytes per second of the last coded extents, before coding.
    speed: f64,
}

impl Chooser {
    pub(crate) fn new(compression: Compression) -> Chooser {
        let fixed = fixed(compression);
        // Asking the system takes several calls, and a fixed codec has no use for it.
        let cores = match fixed {
            Some(_) => 1.0,
            None => std::thread::available_parallelism().map_or(1, usize::from) as f64,
        };
        Chooser {
            fixed,
            codec: Codec::Raw,
            cores,
            since: Instant::now(),
            last: None,
            pause_extents: 0,
            speed: 700e6,
        }
    }

    /// Whether an observation is due.
    pub(crate) fn is_due(&self) -> bool {
        self.fixed.is_none() && self.since.elapsed() >= WINDOW
    }

    pub(crate) fn observe(&mut self, observed: Observed) {
        let window = self.since.elapsed().as_nanos() as f64;
        self.since = Instant::now();
        let Some(last) = self.last.replace(observed) else {
            return;
        };
        // A window that is much longer than asked was mostly quiet.
        if window > 20.0 * WINDOW.as_nanos() as f64 {
            self.codec = Codec::Raw;
            return;
        }
        // An account that ends between two readings is missed by one of them, so that a sum may
        // be smaller than the one before.
        let grown = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let waiting = grown(observed.wait_nanos, last.wait_nanos) / window;
        let processor =
            grown(observed.processor_nanos, last.processor_nanos) / (window * self.cores);
        let busy = grown(observed.device_busy_nanos, last.device_busy_nanos) / 1e9;
        let device = grown(observed.device_bytes, last.device_bytes) / busy.max(1e-6);
        self.codec = step(self.codec, waiting, processor, device, self.speed);
    }

    pub(crate) fn next(&mut self) -> Codec {
        if let Some(fixed) = self.fixed {
            return fixed;
        }
        if let Some(left) = self.pause_extents.checked_sub(1) {
            self.pause_extents = left;
            return Codec::Raw;
        }
        self.codec
    }

    /// The codec of a page of an account with this setting, in an extent for which `next` was
    /// chosen; and whether what it costs and gains tells something of such extents.
    pub(crate) fn of_page(&self, next: Codec, own: Option<Compression>) -> (Codec, bool) {
        match own {
            None => (next, self.fixed.is_none() && next != Codec::Raw),
            Some(own) => (fixed(own).unwrap_or(next), false),
        }
    }

    /// Takes note of what coding an extent cost and gained.
    pub(crate) fn coded(&mut self, plain_bytes: usize, stored_bytes: usize, took: Duration) {
        if plain_bytes == 0 {
            return;
        }
        let speed = plain_bytes as f64 / took.as_secs_f64().max(1e-9);
        self.speed = 0.75 * self.speed + 0.25 * speed;
        if stored_bytes > (plain_bytes / 10).saturating_mul(9) {
            self.pause_extents = PAUSE_EXTENTS;
        }
    }
}

fn step(codec: Codec, waiting: f64, processor: f64, device: f64, speed: f64) -> Codec {
    let wanted = waiting > WAITING && processor < IDLE;
    match codec {
        Codec::Raw if wanted && device < speed => Codec::Lz4,
        // zstd runs at less than half the speed of lz4.
        Codec::Lz4 if wanted && device < speed / 4.0 => Codec::Zstd,
        Codec::Lz4 | Codec::Zstd if waiting < WAITING / 4.0 || processor > IDLE => Codec::Raw,
        other => other,
    }
}

#[cfg(test)]
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "bytes of the test's own"
)]
mod tests {
    use super::*;

    #[test]
    fn compression_follows_the_bottleneck() {
        let check = |codec, waiting, processor, device, expect| {
            assert_eq!(step(codec, waiting, processor, device, 700e6), expect);
        };
        check(Codec::Raw, 0.5, 0.3, 200e6, Codec::Lz4);
        check(Codec::Raw, 0.5, 0.95, 200e6, Codec::Raw);
        check(Codec::Raw, 0.5, 0.3, 1300e6, Codec::Raw);
        check(Codec::Raw, 0.0, 0.3, 200e6, Codec::Raw);
        check(Codec::Lz4, 0.5, 0.3, 100e6, Codec::Zstd);
        check(Codec::Lz4, 0.5, 0.3, 300e6, Codec::Lz4);
        check(Codec::Zstd, 0.0, 0.3, 100e6, Codec::Raw);
        check(Codec::Lz4, 0.5, 0.95, 100e6, Codec::Raw);
    }

    #[test]
    fn coded_pages_come_back() {
        // Under Miri a byte takes a thousand times as long.
        let len = if cfg!(miri) { 4096 } else { 65536_u32 };
        let page: Vec<u8> = (0..len).map(|i| (i / 7 % 251) as u8).collect();
        let mut out = vec![0; bound(page.len())];
        for codec in [Codec::Lz4, Codec::Zstd] {
            if cfg!(miri) && codec == Codec::Zstd {
                continue;
            }
            let len = encode(codec, &page, &mut out).expect("the bound is enough");
            let mut back = vec![0; page.len()];
            assert!(decode(codec, &out[..len], &mut back));
            assert!(back == page);
            assert!(!decode(codec, &out[..len / 2], &mut back));
        }
    }
}
