//! B+trees of 8-byte keys and row ids, in memory and in a quarter of their bytes.
//!
//! Limits: a search is four dependent loads (one of an inner node, two of the leaf, one of the
//! entry), or 30 ns where its leaf is in the cache; a random insertion moves half of the slots of a
//! leaf as well; a scan reads slots and payloads; a batch waits for no load before the next. With a
//! quarter in memory a read from the temp file is added for each page that was missing.

use std::hint::black_box;
use std::ops::Bound;

use mayfly_space::{Account, AccountOptions, Space};
use mayfly_table::tree::{Builder, KeyRange};
use mayfly_table::{Result, Tree};

use super::Bench;
use super::lines::{Goal, Line, Rounds};
use super::machine::{Machine, page_read_ns};
use crate::data::SplitMix64;

/// Dependent loads of a search.
const LOADS: f64 = 4.0;
/// A search when everything that it touches is in the cache.
const CACHED_NS: f64 = 30.0;
/// Slot and payload of an entry.
const ENTRY_BYTES: f64 = 16.0;
/// Half of the slots of a leaf, which an insertion moves.
const MOVED_BYTES: f64 = 300.0 * 8.0;
/// Entries of a short range.
const RANGE: u64 = 100;
/// Keys that are looked up at once.
const BATCH: usize = 10_000;
/// The figure to reach: half of the limit.
const GOAL: Goal = Goal::Efficiency(0.5);

/// A permutation of 64-bit numbers: keys at random places, each once.
fn scatter(number: u64) -> [u8; 8] {
    SplitMix64::new(number).next().to_be_bytes()
}

fn cold(machine: &mut Machine) -> f64 {
    LOADS * machine.load_ns()
}

fn cold_change(machine: &mut Machine) -> f64 {
    cold(machine) + MOVED_BYTES * machine.copy_ns()
}

fn scanned(machine: &mut Machine) -> f64 {
    ENTRY_BYTES * machine.read_ns()
}

pub(super) fn run(bench: &mut Bench<'_>, entries: u64) -> Result<()> {
    let millions = entries as f64 / 1e6;
    let memory = format!("B+tree, {millions} M entries, in memory");
    let quarter = format!("B+tree, {millions} M entries, a quarter in memory");
    if bench.wants(&memory) {
        let lines = in_memory(bench, entries)?;
        bench.keep(&memory, lines);
    }
    if bench.wants(&quarter) {
        let lines = in_a_quarter(bench, entries)?;
        bench.keep(&quarter, lines);
    }
    Ok(())
}

fn tree(space: &Space) -> Tree {
    let account = space.root().child("index", AccountOptions::default());
    Tree::new(&account, 8)
}

/// Inserts entries with a writer.
fn fill(tree: &mut Tree, entries: u64, key: impl Fn(u64) -> [u8; 8]) -> Result<()> {
    let mut writer = tree.writer();
    for n in 0..entries {
        writer.insert(&key(n), &n.to_le_bytes())?;
    }
    Ok(())
}

fn in_memory(bench: &mut Bench<'_>, entries: u64) -> Result<Vec<Line>> {
    let space = bench.space((entries * 96).max(16 << 20))?;
    let mut lines = Vec::new();
    let mut rounds = Rounds {
        machine: &mut bench.machine,
        count: bench.rounds,
        space: None,
    };
    // The first tree touches the memory.
    fill(&mut tree(&space), entries, scatter)?;
    let make = || Ok(tree(&space));
    lines.push(rounds.line_of(
        "insert, sorted",
        entries,
        |_| CACHED_NS,
        make,
        |tree| fill(tree, entries, u64::to_be_bytes),
    )?);
    lines.push(rounds.line_of(
        "insert, reverse",
        entries,
        |_| CACHED_NS,
        make,
        |tree| fill(tree, entries, |n| (entries - n).to_be_bytes()),
    )?);
    let account = space.root().child("index", AccountOptions::default());
    lines.push(rounds.line(
        "build, sorted",
        entries,
        |_| CACHED_NS,
        || {
            let mut builder = Builder::new(&account, 8, 100);
            for n in 0..entries {
                builder.push(&n.to_be_bytes(), &n.to_le_bytes())?;
            }
            black_box(builder.finish().statistics());
            Ok::<_, mayfly_table::Error>(())
        },
    )?);
    // One round: it takes as long as all others.
    let mut whole = tree(&space);
    rounds.count = 1;
    lines.push(rounds.line("insert, random", entries, cold_change, || {
        fill(&mut whole, entries, scatter)
    })?);
    rounds.count = bench.rounds;
    lines.extend(reads(&mut rounds, &whole, entries, 500_000)?);
    lines.push(consecutive(&mut rounds, &account, entries)?);
    let changed = entries.min(200_000);
    let mut random = SplitMix64::new(3);
    lines.push(rounds.line("update, random", changed, cold, || {
        for n in 0..changed {
            whole.update(&scatter(random.next() % entries), &n.to_le_bytes())?;
        }
        Ok::<_, mayfly_table::Error>(())
    })?);
    let mut next = 0;
    let removed = changed.min(entries / 20);
    lines.push(rounds.line("remove, random", removed, cold_change, || {
        for _ in 0..removed {
            black_box(whole.remove(&scatter(next))?);
            next += 1;
        }
        Ok::<_, mayfly_table::Error>(())
    })?);
    Ok(lines)
}

/// Lookups among consecutive integers, as AUTO_INCREMENT gives them.
fn consecutive(rounds: &mut Rounds<'_>, account: &Account, entries: u64) -> Result<Line> {
    let mut builder = Builder::new(account, 8, 100);
    for n in 0..entries {
        builder.push(&n.to_be_bytes(), &n.to_le_bytes())?;
    }
    let tree = builder.finish();
    let mut random = SplitMix64::new(11);
    let count = entries.min(500_000);
    let line = rounds.line("point lookup, consecutive integers", count, cold, || {
        for _ in 0..count {
            black_box(tree.get(&(random.next() % entries).to_be_bytes())?);
        }
        Ok::<_, mayfly_table::Error>(())
    })?;
    Ok(line.with_goal(GOAL))
}

fn in_a_quarter(bench: &mut Bench<'_>, entries: u64) -> Result<Vec<Line>> {
    let mut sorted: Vec<([u8; 8], u64)> = (0..entries).map(|n| (scatter(n), n)).collect();
    sorted.sort_unstable();
    // As full as random insertions leave it.
    let build = |space: &Space| {
        let account = space.root().child("index", AccountOptions::default());
        let mut builder = Builder::new(&account, 8, 70);
        for (key, n) in &sorted {
            builder.push(key, &n.to_le_bytes())?;
        }
        Ok::<_, mayfly_table::Error>(builder.finish())
    };
    let bytes = build(&bench.space((entries * 80).max(16 << 20))?)?.bytes();
    let memory_bytes = (bytes / 4).max(1 << 20);
    let read_ns = page_read_ns(&bench.space(memory_bytes.min(64 << 20))?)?;
    println!(
        "\none page of 16 KiB from the temp file: {:.1} us",
        read_ns / 1e3
    );
    let space = bench.space(memory_bytes)?;
    let mut rounds = Rounds {
        machine: &mut bench.machine,
        count: bench.rounds,
        space: Some((&space, read_ns)),
    };
    let mut lines = Vec::new();
    let make = || Ok(tree(&space));
    lines.push(rounds.line_of(
        "insert, sorted",
        entries,
        |_| CACHED_NS,
        make,
        |tree| fill(tree, entries, u64::to_be_bytes),
    )?);
    lines.push(rounds.line(
        "build, sorted",
        entries,
        |_| CACHED_NS,
        || {
            build(&space).map(|tree| {
                black_box(tree.statistics());
            })
        },
    )?);
    let mut whole = build(&space)?;
    space.settle();
    let few = entries.min(20_000);
    let mut next = entries;
    lines.push(rounds.line("insert, random", few, cold_change, || {
        for _ in 0..few {
            whole.insert(&scatter(next), &next.to_le_bytes())?;
            next += 1;
        }
        Ok::<_, mayfly_table::Error>(())
    })?);
    space.settle();
    lines.extend(reads(&mut rounds, &whole, entries, few)?);
    Ok(lines)
}

fn reads(rounds: &mut Rounds<'_>, tree: &Tree, entries: u64, count: u64) -> Result<Vec<Line>> {
    let count = count.min(entries);
    let in_memory = rounds.space.is_none();
    let mut lines = Vec::new();
    let mut random = SplitMix64::new(7);
    let mut key = || scatter(random.next() % entries);
    let goal = |line: Line| match in_memory {
        true => line.with_goal(GOAL),
        false => line,
    };
    lines.push(goal(rounds.line(
        "point lookup, random",
        count,
        cold,
        || {
            for _ in 0..count {
                black_box(tree.get(&key())?);
            }
            Ok::<_, mayfly_table::Error>(())
        },
    )?));
    // The next key is not known before the last one is found.
    let (mut random_one, mut last) = (SplitMix64::new(13), 0);
    let one_by_one = rounds.line("point lookup, one by one", count, cold, || {
        for _ in 0..count {
            let number = random_one.next().wrapping_add(last) % entries;
            let found = tree.get(&scatter(number))?;
            last = found.and_then(|payload| payload.row_id()).unwrap_or(0);
        }
        Ok::<_, mayfly_table::Error>(())
    })?;
    lines.push(goal(one_by_one));
    lines.push(
        rounds.line("point lookup, random, a cursor", count, cold, || {
            let mut cursor = tree.cursor();
            for _ in 0..count {
                black_box(cursor.seek(&key())?);
            }
            Ok::<_, mayfly_table::Error>(())
        })?,
    );
    let batches = (count as usize / BATCH).max(1);
    let batched = (batches * BATCH) as u64;
    let independent = |machine: &mut Machine| LOADS * machine.random_ns();
    lines.push(
        rounds.line("10,000 at once, sorted first", batched, independent, || {
            for _ in 0..batches {
                let mut keys: Vec<[u8; 8]> = (0..BATCH).map(|_| key()).collect();
                keys.sort_unstable();
                let mut cursor = tree.cursor();
                for key in &keys {
                    black_box(cursor.seek(key)?);
                }
            }
            Ok::<_, mayfly_table::Error>(())
        })?,
    );
    let mut keys: Vec<[u8; 8]> = Vec::new();
    let mut range = tree.range(KeyRange::ALL);
    while (keys.len() as u64) < count
        && let Some((key, _)) = range.next_entry()?
    {
        keys.extend(key.first_chunk::<8>());
    }
    drop(range);
    let found = keys.len() as u64;
    lines.push(rounds.line(
        "point lookup, sorted",
        found,
        |_| CACHED_NS,
        || {
            for key in &keys {
                black_box(tree.get(key)?);
            }
            Ok::<_, mayfly_table::Error>(())
        },
    )?);
    lines.push(rounds.line(
        "point lookup, sorted, a cursor",
        found,
        |_| CACHED_NS,
        || {
            let mut cursor = tree.cursor();
            for key in &keys {
                black_box(cursor.seek(key)?);
            }
            Ok::<_, mayfly_table::Error>(())
        },
    )?);
    let ranges = (count / 10).max(1);
    let short = |machine: &mut Machine| cold(machine) + RANGE as f64 * scanned(machine);
    lines.push(
        rounds.line("range of 100 entries, random", ranges, short, || {
            for _ in 0..ranges {
                let low = key();
                let mut range = tree.range(KeyRange {
                    low: Bound::Included(&low),
                    ..KeyRange::ALL
                });
                let mut left = RANGE;
                while left > 0
                    && let Some((key, payload)) = range.next_entry()?
                {
                    black_box((key, payload));
                    left -= 1;
                }
            }
            Ok::<_, mayfly_table::Error>(())
        })?,
    );
    let mut ids = Vec::new();
    lines.push(rounds.line("scan of row ids", tree.len(), scanned, || {
        let mut range = tree.range(KeyRange::ALL);
        while range.next_row_ids(&mut ids)? {
            black_box(&ids);
            ids.clear();
        }
        Ok::<_, mayfly_table::Error>(())
    })?);
    lines.push(
        rounds.line("scan of keys and payloads", tree.len(), scanned, || {
            let mut range = tree.range(KeyRange::ALL);
            while let Some(entry) = range.next_entry()? {
                black_box(entry);
            }
            Ok::<_, mayfly_table::Error>(())
        })?,
    );
    Ok(lines)
}
