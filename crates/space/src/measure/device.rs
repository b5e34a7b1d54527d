//! What the device and the file system do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::{Cell, MeasureOptions, Table, each, mix, rate};
use crate::file::{Files, Handle};
use crate::io::{Backend, Queue, Scratch, Transfer, backend};
use crate::writer::processor_nanos;
use crate::{Error, IoMode, Result};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A temp file of some length, opened in a mode.
struct Bench {
    files: Files,
    backend: Arc<dyn Backend>,
}

impl Bench {
    fn open(options: &MeasureOptions, mode: IoMode, io_uring: bool) -> Result<Bench> {
        let dirs: Vec<_> = options.dir.iter().cloned().collect();
        let files = Files::new(&dirs, mode, options.bytes, None, None)?;
        files.pre_extend(options.bytes)?;
        Ok(Bench {
            files,
            backend: backend(mode, io_uring, None),
        })
    }

    fn handle(&self) -> &Arc<Handle> {
        self.files.handle(0)
    }

    fn error(&self, source: std::io::Error) -> Error {
        Error::Io {
            operation: "measure",
            dir: self.files.dir(0).to_path_buf(),
            source,
        }
    }

    fn transfer(&self, scratch: &Arc<Scratch>, write: bool, offset: u64) -> Transfer {
        Transfer {
            handle: Arc::clone(self.handle()),
            write,
            offset,
            segments: vec![scratch.segment(0, scratch.len())],
            scratch: Some(Arc::clone(scratch)),
            tag: 0,
        }
    }

    /// Writes the whole file once.
    fn fill(&self, options: &MeasureOptions) -> Result<()> {
        let places = (0..options.bytes / MIB).map(|n| (true, n * MIB));
        self.drive(MIB, 4, places, None).map(|_| ())
    }

    /// Keeps `depth` transfers of `size` bytes under way until time or places are used up.
    fn drive(
        &self,
        size: u64,
        depth: usize,
        mut places: impl Iterator<Item = (bool, u64)>,
        time: Option<Duration>,
    ) -> Result<Driven> {
        let mut queue: Box<dyn Queue> = Arc::clone(&self.backend).queue();
        let mut free: Vec<Arc<Scratch>> = (0..depth)
            .map(|_| Arc::new(Scratch::new(size as usize)))
            .collect();
        let (started, processor) = (Instant::now(), processor_nanos());
        let (mut bytes, mut worst, mut last) = (0, Duration::ZERO, Instant::now());
        let mut done = Vec::new();
        loop {
            let open = time.is_none_or(|time| started.elapsed() < time);
            while let Some(scratch) = free.pop() {
                match places.next().filter(|_| open) {
                    Some((write, offset)) => {
                        queue.submit(self.transfer(&scratch, write, offset));
                    }
                    None => break,
                }
            }
            if queue.in_flight() == 0 {
                break;
            }
            queue.collect(true, &mut done);
            worst = worst.max(last.elapsed());
            last = Instant::now();
            for (mut transfer, result) in done.drain(..) {
                result.map_err(|source| self.error(source))?;
                bytes += transfer.bytes();
                free.extend(transfer.scratch.take());
            }
        }
        let processor = Duration::from_nanos(processor_nanos() - processor);
        Ok(Driven {
            bytes,
            time: started.elapsed(),
            processor,
            worst,
        })
    }
}

struct Driven {
    bytes: u64,
    time: Duration,
    processor: Duration,
    /// The longest time between two completions.
    worst: Duration,
}

/// Sequential places that wrap around.
fn places(bytes: u64, size: u64, write: fn(u64) -> bool) -> impl Iterator<Item = (bool, u64)> {
    (0..).map(move |n| (write(n), n % (bytes / size) * size))
}

/// Device bandwidth by transfer size and depth, in both directions and mixed.
pub fn device(options: &MeasureOptions) -> Result<Table> {
    let bench = Bench::open(options, IoMode::Direct, true)?;
    bench.fill(options)?;
    let sizes: &[u64] = if options.quick {
        &[64, 512, 1024]
    } else {
        &[64, 256, 512, 1024, 2048, 4096]
    };
    let depths: &[usize] = if options.quick {
        &[1, 2, 4, 8]
    } else {
        &[1, 2, 4, 8, 16]
    };
    type IsWrite = fn(u64) -> bool;
    let kinds: [(&str, IsWrite); 3] = [
        ("write", |_| true),
        ("read", |_| false),
        ("mixed", |n| n % 2 == 0),
    ];
    let mut rows = Vec::new();
    for (kind, write) in kinds {
        for &size in sizes {
            for &depth in depths {
                let all = places(options.bytes, size * KIB, write);
                let driven = bench.drive(size * KIB, depth, all, Some(options.point))?;
                let mebibytes = driven.bytes as f64 / MIB as f64;
                let processor = driven.processor.as_micros() as f64 / mebibytes.max(1e-9);
                rows.push(vec![
                    kind.into(),
                    size.into(),
                    (depth as u64).into(),
                    rate(driven.bytes, driven.time).into(),
                    processor.into(),
                ]);
            }
        }
    }
    Ok(Table {
        name: "device",
        title: "device bandwidth around the page cache",
        columns: &["direction", "KiB", "depth", "MB/s", "CPU us/MiB"],
        rows,
    })
}

/// The same writes through the page cache and around it.
pub fn buffered_and_direct(options: &MeasureOptions) -> Result<Table> {
    let mut rows = Vec::new();
    for (name, mode) in [("direct", IoMode::Direct), ("buffered", IoMode::Buffered)] {
        for (pattern, size, depth) in [("random", 64 * KIB, 8), ("sequential", MIB, 4)] {
            let bench = Bench::open(options, mode, true)?;
            bench.fill(options)?;
            let count = options.bytes / size;
            let random = size < MIB;
            let all = (0..count).map(|n| {
                let place = if random { mix(n) % count } else { n };
                (true, place * size)
            });
            let driven = bench.drive(size, depth, all, None)?;
            let mebibytes = driven.bytes as f64 / MIB as f64;
            rows.push(vec![
                name.into(),
                pattern.into(),
                (size / KIB).into(),
                rate(driven.bytes, driven.time).into(),
                (driven.worst.as_micros() as f64 / 1e3).into(),
                (driven.processor.as_micros() as f64 / mebibytes).into(),
            ]);
        }
    }
    Ok(Table {
        name: "buffered",
        title: "writes through the page cache and around it",
        columns: &[
            "mode",
            "pattern",
            "KiB",
            "MB/s",
            "worst gap ms",
            "CPU us/MiB",
        ],
        rows,
    })
}

/// First writes into allocated space against further ones, and what giving space back costs.
pub fn fresh_and_recycled(options: &MeasureOptions) -> Result<Table> {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let started = Instant::now();
    let bench = Bench::open(options, IoMode::Direct, true)?;
    let steps = options.bytes as f64 / (64 * MIB) as f64;
    let allocate = started.elapsed().as_micros() as f64 / 1e3 / steps;
    rows.push(vec!["fallocate 64 MiB, ms".into(), allocate.into()]);
    for pass in [
        "fresh extents, MB/s",
        "recycled extents, MB/s",
        "recycled again, MB/s",
    ] {
        let all = (0..options.bytes / MIB).map(|n| (true, n * MIB));
        let driven = bench.drive(MIB, 4, all, None)?;
        rows.push(vec![pass.into(), rate(driven.bytes, driven.time).into()]);
    }
    let count = 32;
    let started = Instant::now();
    for n in 0..count {
        punch(bench.handle(), n * 2 * MIB, 512 * KIB).map_err(|source| bench.error(source))?;
    }
    let punched = each(started.elapsed(), count) / 1e6;
    rows.push(vec!["punch 512 KiB, ms".into(), punched.into()]);
    let started = Instant::now();
    bench.files.end_period(&|| false);
    let trimmed = started.elapsed().as_micros() as f64 / 1e3 / steps;
    rows.push(vec!["truncate 64 MiB, ms".into(), trimmed.into()]);
    Ok(Table {
        name: "recycled",
        title: "fresh and recycled file space, and giving it back",
        columns: &["what", "value"],
        rows,
    })
}

fn punch(handle: &Handle, offset: u64, len: u64) -> std::io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    Ok(fallocate(&handle.file, flags, offset, len)?)
}

/// io_uring against a thread pool while every core computes.
pub fn busy_cores(options: &MeasureOptions) -> Result<Table> {
    let mut rows = Vec::new();
    for (name, io_uring) in [("io_uring", true), ("threads", false)] {
        for write in [true, false] {
            let bench = Bench::open(options, IoMode::Direct, io_uring)?;
            bench.fill(options)?;
            let way: fn(u64) -> bool = if write { |_| true } else { |_| false };
            let all = || places(options.bytes, MIB, way);
            let before = work_during(|| std::thread::sleep(options.point / 2));
            let mut driven = None;
            let beside = work_during(|| {
                driven = Some(bench.drive(MIB, 4, all(), Some(options.point)));
            });
            let driven = driven.expect("the closure ran")?;
            let after = work_during(|| std::thread::sleep(options.point / 2));
            let alone = (before + after) / 2.0;
            rows.push(vec![
                name.into(),
                if write { "write" } else { "read" }.into(),
                rate(driven.bytes, driven.time).into(),
                (beside / alone).into(),
            ]);
        }
    }
    Ok(Table {
        name: "busy_cores",
        title: "io_uring and threads, 1 MiB at depth 4, while every core computes",
        columns: &["queue", "direction", "MB/s", "computing speed left"],
        rows,
    })
}

/// Rounds of plain computing per second that every core gets done while `body` runs.
fn work_during(body: impl FnOnce()) -> f64 {
    let (stop, rounds) = (AtomicBool::new(false), AtomicU64::new(0));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                let mut value = 1;
                while !stop.load(Relaxed) {
                    for _ in 0..1000 {
                        value = mix(value);
                    }
                    std::hint::black_box(value);
                    rounds.fetch_add(1, Relaxed);
                }
            });
        }
        body();
        stop.store(true, Relaxed);
    });
    rounds.load(Relaxed) as f64 / started.elapsed().as_secs_f64()
}
