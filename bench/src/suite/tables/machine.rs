//! The constants of this machine, at this moment.

use std::hint::black_box;
use std::time::Instant;

use mayfly_space::measure::MemoryWalk;
use mayfly_space::{PageClass, Space};

use crate::data::SplitMix64;
use crate::results::{Sheet, median};

/// Dependent loads of one measurement; 30 ms.
const LOADS: u64 = 200_000;
const COPIED_BYTES: usize = 64 << 20;
const CALLS: u64 = 100_000;

pub(super) struct Machine {
    walk: MemoryWalk,
    from: Vec<u8>,
    to: Vec<u8>,
}

impl Machine {
    pub(super) fn new() -> mayfly_space::Result<Self> {
        Ok(Self {
            walk: MemoryWalk::new(true)?,
            from: vec![1; COPIED_BYTES],
            to: vec![2; COPIED_BYTES],
        })
    }

    /// A load from memory whose address is the value of another one.
    pub(super) fn load_ns(&mut self) -> f64 {
        self.walk.dependent_ns(LOADS)
    }

    /// A load from memory that waits for no other.
    pub(super) fn random_ns(&mut self) -> f64 {
        self.walk.random_ns(10 * LOADS)
    }

    /// Reading a byte of memory in order.
    pub(super) fn read_ns(&mut self) -> f64 {
        self.walk.read_ns_per_byte()
    }

    /// Copying a byte of memory.
    pub(super) fn copy_ns(&mut self) -> f64 {
        let started = Instant::now();
        black_box(&mut self.to).copy_from_slice(black_box(&self.from));
        started.elapsed().as_nanos() as f64 / COPIED_BYTES as f64
    }

    pub(super) fn sheet(&mut self) -> Sheet {
        let mut sheet = Sheet::new(
            "the machine, nanoseconds",
            &["constant", "median", "least", "most"],
        );
        let mut row = |name: &str, mut measure: Box<dyn FnMut(&mut Self) -> f64>| {
            let found: Vec<f64> = (0..7).map(|_| measure(self)).collect();
            let least = found.iter().copied().fold(f64::INFINITY, f64::min);
            let most = found.iter().copied().fold(0.0, f64::max);
            let text = |value: f64| {
                let digits = if value < 1.0 { 4 } else { 1 };
                format!("{value:.digits$}")
            };
            let cells = [median(&found), least, most].map(text);
            let mut row = vec![name.to_owned()];
            row.extend(cells);
            sheet.rows.push(row);
        };
        row("dependent load, huge pages", Box::new(Self::load_ns));
        row("random load, huge pages", Box::new(Self::random_ns));
        row("reading a byte", Box::new(Self::read_ns));
        row("copying a byte", Box::new(Self::copy_ns));
        row("system call", Box::new(|_| syscall_ns()));
        sheet
    }
}

fn syscall_ns() -> f64 {
    let started = Instant::now();
    for _ in 0..CALLS {
        black_box(rustix::process::getppid());
    }
    started.elapsed().as_nanos() as f64 / CALLS as f64
}

/// A read of one page of 16 KiB from the temp file, at a random place.
pub(super) fn page_read_ns(space: &Space) -> mayfly_space::Result<f64> {
    let mut random = SplitMix64::new(9);
    let mut pages = Vec::new();
    for _ in 0..space.memory_bytes() * 4 / PageClass::K16.bytes() as u64 {
        let mut guard = space.root().allocate(PageClass::K16)?;
        guard[..8].copy_from_slice(&random.next().to_le_bytes());
        pages.push(guard.page().clone());
    }
    space.settle();
    let before = space.counters().read_misses;
    let started = Instant::now();
    for _ in 0..4_000 {
        let page = &pages[random.next() as usize % pages.len()];
        black_box(page.read()?[0]);
    }
    let misses = space.counters().read_misses - before;
    Ok(started.elapsed().as_nanos() as f64 / misses.max(1) as f64)
}
