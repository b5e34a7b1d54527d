//! What memory does: huge pages, scattering rows, and the space's own frames.

use std::time::{Duration, Instant};

use super::{MeasureOptions, Table, each, mix, rate};
use crate::arena::Memory;
use crate::{AccountOptions, Error, PageClass, Result, Space, SpaceOptions};

/// Bytes that a processor reads at once.
const LINE: usize = 64;
/// Lines of a walk: 512 MiB, which no cache holds.
const LINES: usize = 1 << 23;
/// Each line leads to one that is far away, and all are met before one is met again: a linear
/// congruential generator of full period (Hull and Dobell, 1962).
const MULTIPLIER: usize = 0x5851_f42d;

/// Memory whose loads are timed again and again, beside what is measured: on a machine that others
/// use too they take twice as long at one time as at another.
pub struct MemoryWalk {
    memory: Memory,
    at: usize,
}

impl MemoryWalk {
    /// 512 MiB, in huge pages if the kernel has some.
    ///
    /// # Errors
    /// If there is no such memory.
    pub fn new(huge_pages: bool) -> Result<Self> {
        let mut memory = reserve(LINES * LINE, huge_pages)?;
        let lines = memory.bytes_mut().as_chunks_mut::<LINE>().0;
        for (line, bytes) in lines.iter_mut().enumerate() {
            let next = line.wrapping_mul(MULTIPLIER).wrapping_add(1) % LINES;
            bytes.fill(line as u8);
            bytes[..8].copy_from_slice(&((next * LINE) as u64).to_le_bytes());
        }
        Ok(Self { memory, at: 0 })
    }

    fn words(&mut self) -> &[[u8; 8]] {
        self.memory.bytes_mut().as_chunks().0
    }

    /// Nanoseconds of a load whose address is the value of the load before.
    pub fn dependent_ns(&mut self, count: u64) -> f64 {
        let mut at = self.at;
        let words = self.words();
        let started = Instant::now();
        for _ in 0..count {
            at = u64::from_le_bytes(words[at / 8]) as usize;
        }
        let each = each(started.elapsed(), count);
        self.at = std::hint::black_box(at);
        each
    }

    /// Nanoseconds of a load at a random place that does not wait for the one before.
    pub fn random_ns(&mut self, count: u64) -> f64 {
        let words = self.words();
        let started = Instant::now();
        let place = |n: u64| mix(n) as usize % (LINES * LINE / 8);
        let sum = (0..count).fold(0, |sum, n| sum ^ words[place(n)][0]);
        std::hint::black_box(sum);
        each(started.elapsed(), count)
    }

    /// Nanoseconds a byte of reading everything from its beginning to its end.
    pub fn read_ns_per_byte(&mut self) -> f64 {
        let words = self.words();
        let started = Instant::now();
        let sum = words.iter().map(|word| u64::from_le_bytes(*word));
        std::hint::black_box(sum.fold(0, |sum, word| sum ^ word));
        each(started.elapsed(), (LINES * LINE) as u64)
    }
}

impl std::fmt::Debug for MemoryWalk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryWalk").finish_non_exhaustive()
    }
}

fn reserve(len: usize, huge: bool) -> Result<Memory> {
    Memory::reserve(len, huge).map_err(|source| Error::Io {
        operation: "map",
        dir: std::env::temp_dir(),
        source,
    })
}

/// Random and sequential access with and without huge pages.
pub fn huge_pages(options: &MeasureOptions) -> Result<Table> {
    let mut rows = Vec::new();
    for (name, huge) in [("4 KiB", false), ("2 MiB", true)] {
        let chased = MemoryWalk::new(huge)?.dependent_ns(1_000_000);
        let len = options.bytes as usize / (2 << 20) * (2 << 20);
        let mut memory = reserve(len, huge)?;
        // The first time a virtual machine touches memory its host has to find it; the fastest
        // of three rounds is the kernel's own work.
        let mut touched = Duration::MAX;
        for _ in 0..3 {
            memory.give_back(0, len);
            let bytes = memory.bytes_mut();
            let started = Instant::now();
            for start in (0..len).step_by(4096) {
                bytes[start] = 1;
            }
            touched = touched.min(started.elapsed());
        }
        let bytes = memory.bytes_mut();
        let count = 8_000_000;
        let started = Instant::now();
        let mut sum = 0u64;
        for n in 0..count {
            sum += u64::from(bytes[mix(n) as usize % len]);
        }
        let gathered = each(started.elapsed(), count);
        std::hint::black_box(sum);
        let (from, to) = bytes.split_at_mut(len / 2);
        let started = Instant::now();
        to.copy_from_slice(from);
        let copied = rate(len as u64 / 2, started.elapsed());
        rows.push(vec![
            name.into(),
            (touched.as_micros() as f64 / (len >> 21) as f64).into(),
            gathered.into(),
            chased.into(),
            copied.into(),
        ]);
    }
    Ok(Table {
        name: "huge_pages",
        title: "memory with and without huge pages",
        columns: &[
            "pages",
            "first touch us/2 MiB",
            "random load ns",
            "dependent load ns",
            "copy MB/s",
        ],
        rows,
    })
}

/// Appends rows of 32 bytes to the tail page of their partition.
pub fn scatter(options: &MeasureOptions) -> Result<Table> {
    const WIDTH: usize = 32;
    let memory_bytes = (options.bytes * 4).max(1 << 30);
    let space = Space::open(SpaceOptions {
        memory_bytes,
        ..SpaceOptions::default()
    })?;
    let account = space.root().child("scatter", AccountOptions::default());
    // Touch the memory first: what is measured is scattering, not the kernel clearing pages.
    let warm: Vec<_> = (0..(options.bytes + (256 << 20)) / (1 << 20))
        .map(|_| {
            account.allocate(PageClass::M1).map(|mut guard| {
                guard.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
                guard
            })
        })
        .collect::<Result<_>>()?;
    drop(warm);
    let row_count = options.bytes / 2 / WIDTH as u64;
    let mut rows = Vec::new();
    for partitions in [64usize, 256, 1024] {
        for class in [PageClass::K16, PageClass::K64, PageClass::K256] {
            let mut tails = Vec::with_capacity(partitions);
            for _ in 0..partitions {
                tails.push((account.allocate(class)?, 0usize));
            }
            let mut full = Vec::new();
            let started = Instant::now();
            for n in 0..row_count {
                let hash = mix(n);
                let (tail, used) = &mut tails[(hash >> 20) as usize & (partitions - 1)];
                let row = &mut tail[*used..*used + WIDTH];
                row[..8].copy_from_slice(&hash.to_le_bytes());
                row[8..16].copy_from_slice(&n.to_le_bytes());
                row[16..24].copy_from_slice(&1u64.to_le_bytes());
                row[24..].copy_from_slice(&n.to_le_bytes());
                *used += WIDTH;
                if *used == class.bytes() {
                    let next = account.allocate(class)?;
                    full.push(std::mem::replace(tail, next).page().clone());
                    *used = 0;
                }
            }
            let time = started.elapsed();
            rows.push(vec![
                (partitions as u64).into(),
                (class.bytes() as u64 >> 10).into(),
                ((partitions as u64 * class.bytes() as u64) >> 20).into(),
                each(time, row_count).into(),
            ]);
        }
    }
    Ok(Table {
        name: "scatter",
        title: "scattering rows of 32 bytes into partition tails, one thread",
        columns: &["partitions", "page KiB", "tails MiB", "ns/row"],
        rows,
    })
}

/// What allocating, pinning and freeing pages costs.
pub fn frames(options: &MeasureOptions) -> Result<Table> {
    let memory_bytes = options.bytes.max(64 << 20) * 2;
    let space = Space::open(SpaceOptions {
        memory_bytes,
        ..SpaceOptions::default()
    })?;
    let options = AccountOptions::default();
    let account = space
        .root()
        .child("session", options)
        .child("statement", options);
    let account = account.child("operator", options);
    let admission = account.admit(16 << 20)?;
    let mut rows = Vec::new();
    for class in [PageClass::K16, PageClass::K64, PageClass::K256] {
        let count = memory_bytes / 2 / class.bytes() as u64;
        let mut pages = Vec::with_capacity(count as usize);
        let mut allocate = 0.0;
        for _ in 0..2 {
            pages.clear();
            let started = Instant::now();
            for _ in 0..count {
                pages.push(account.allocate(class)?.page().clone());
            }
            allocate = each(started.elapsed(), count);
        }
        let started = Instant::now();
        for page in &pages {
            std::hint::black_box(page.read()?.len());
        }
        let pin = each(started.elapsed(), count);
        let (hot, times) = (&pages[0], 200_000);
        let started = Instant::now();
        for _ in 0..times {
            std::hint::black_box(hot.read()?.len());
        }
        let pin_hot = each(started.elapsed(), times);
        let started = Instant::now();
        drop(pages);
        let free = each(started.elapsed(), count);
        let row = [allocate, pin, pin_hot, free].map(super::Cell::from);
        rows.push(
            [(class.bytes() as u64 >> 10).into()]
                .into_iter()
                .chain(row)
                .collect(),
        );
    }
    drop(admission);
    Ok(Table {
        name: "frames",
        title: "pages of the space, memory touched before, in nanoseconds",
        columns: &[
            "page KiB",
            "allocate+unpin",
            "pin+unpin",
            "pin+unpin, same page",
            "free",
        ],
        rows,
    })
}
