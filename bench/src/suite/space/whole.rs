//! The space itself: twice its budget written once and read back, by back end and page size.

use std::path::Path;
use std::time::{Duration, Instant};

use mayfly_space::{
    AccountOptions, Compression, IoMode, NextUse, Page, PageClass, Space, SpaceOptions,
};

use crate::data::SplitMix64;
use crate::error::{BenchError, data_error};
use crate::results::{Sheet, median};

struct Round {
    write: f64,
    read: f64,
    written_bytes: u64,
    waits: u64,
}

/// Every page size with direct I/O, then the other back ends and compression at 64 KiB.
pub(super) fn back_ends(dir: &Path, budget_bytes: u64, rounds: usize) -> Result<Sheet, BenchError> {
    let mut sheet = Sheet::new(
        "the temp space, twice its budget through it, one thread",
        &[
            "page",
            "way",
            "write MiB/s",
            "read MiB/s",
            "device MiB written",
            "waits",
        ],
    );
    let base = SpaceOptions {
        memory_bytes: budget_bytes,
        temp_dirs: vec![dir.to_owned()],
        compression: Compression::None,
        ..SpaceOptions::default()
    };
    let mut ways: Vec<(PageClass, &str, SpaceOptions)> = PageClass::ALL
        .into_iter()
        .map(|class| (class, "direct", base.clone()))
        .collect();
    let class = PageClass::K64;
    ways.extend([
        (
            class,
            "direct, threads",
            SpaceOptions {
                io_uring: false,
                ..base.clone()
            },
        ),
        (
            class,
            "buffered",
            SpaceOptions {
                io: IoMode::Buffered,
                ..base.clone()
            },
        ),
        (
            class,
            "mmap",
            SpaceOptions {
                io: IoMode::Mmap,
                ..base.clone()
            },
        ),
        (
            class,
            "direct, lz4",
            SpaceOptions {
                compression: Compression::Lz4,
                ..base.clone()
            },
        ),
        (
            class,
            "direct, zstd",
            SpaceOptions {
                compression: Compression::Zstd,
                ..base.clone()
            },
        ),
        (
            class,
            "direct, auto",
            SpaceOptions {
                compression: Compression::Auto,
                ..base
            },
        ),
    ]);
    for (class, way, options) in ways {
        let mut found = Vec::new();
        for _ in 0..rounds {
            let round = round(class, &options, budget_bytes * 2);
            found.push(round.map_err(data_error("measuring the temp space"))?);
        }
        let middle = |value: fn(&Round) -> f64| {
            format!(
                "{:.0}",
                median(&found.iter().map(value).collect::<Vec<_>>())
            )
        };
        sheet.rows.push(vec![
            crate::args::size(class.bytes() as u64),
            way.to_owned(),
            middle(|round| round.write),
            middle(|round| round.read),
            middle(|round| round.written_bytes as f64 / f64::from(1 << 20)),
            middle(|round| round.waits as f64),
        ]);
    }
    Ok(sheet)
}

/// Writes pages in order and reads them in the same order, as the owner said it would.
fn round(
    class: PageClass,
    options: &SpaceOptions,
    total: u64,
) -> Result<Round, mayfly_space::Error> {
    let space = Space::open(options.clone())?;
    let account = space.root().child("bench", AccountOptions::default());
    let count = u32::try_from(total / class.bytes() as u64).expect("fewer pages than 2^32");
    let mut random = SplitMix64::new(5);
    let mut pages: Vec<Page> = Vec::with_capacity(count as usize);
    let start = Instant::now();
    for ordinal in 0..count {
        let mut guard = account.allocate(class)?;
        // Half noise, half a constant: rows compress about like that.
        for word in guard.chunks_exact_mut(16) {
            word[..8].copy_from_slice(&random.next().to_le_bytes());
            word[8..].copy_from_slice(&u64::from(ordinal).to_le_bytes());
        }
        guard.page().set_next_use(NextUse::At(ordinal));
        pages.push(guard.page().clone());
    }
    let write = rate(total, start.elapsed());
    let start = Instant::now();
    let mut wrong = 0_u32;
    for (ordinal, page) in pages.iter().enumerate() {
        for ahead in pages.get(ordinal + 8..ordinal + 9).into_iter().flatten() {
            ahead.prefetch();
        }
        let guard = page.read()?;
        let mark = u64::from_le_bytes(guard[8..16].try_into().expect("eight bytes"));
        wrong += u32::from(mark != ordinal as u64);
    }
    let read = rate(total, start.elapsed());
    assert!(
        wrong == 0,
        "{wrong} pages came back with the bytes of others"
    );
    let counters = space.counters();
    Ok(Round {
        write,
        read,
        written_bytes: counters.device_bytes_written,
        waits: counters.waits,
    })
}

/// MiB per second.
fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / f64::from(1 << 20) / time.as_secs_f64().max(1e-9)
}
