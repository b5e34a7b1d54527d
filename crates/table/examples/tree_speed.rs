//! How long the B+tree takes, beside what the memory of the machine allows:
//!
//! ```console
//! $ cargo run --release -p mayfly-table --example tree_speed -- 10000000
//! ```
//!
//! Keys are 8 bytes, payloads row ids. Argument: entries. First everything is in memory, then a
//! quarter of the tree is. The limits:
//!
//! - random: 4 dependent loads from memory (two of the leaf, one of an inner node, one of the
//!   slots), to which an insertion adds moving half of the slots of a leaf;
//! - sorted: 30 ns, the least for keys whose leaf is in the cache;
//! - scan: slots and payloads at the speed of reading memory;
//! - at a quarter: the same, and a read from the temp file for each page that was missing.

use std::hint::black_box;
use std::time::Instant;

use mayfly_space::measure::{Cell, MeasureOptions, huge_pages};
use mayfly_space::{AccountOptions, PageClass, Space, SpaceOptions};
use mayfly_table::Tree;
use mayfly_table::tree::{Builder, KeyRange};

/// What a search costs when everything it touches is in the cache.
const CACHED_NS: f64 = 30.0;
/// Slot and payload of an entry.
const ENTRY_BYTES: f64 = 16.0;

struct Machine {
    load_ns: f64,
    copy_ns_per_byte: f64,
    read_ns_per_byte: f64,
}

fn machine() -> Machine {
    let table = huge_pages(&MeasureOptions::default()).expect("memory can be measured");
    let cells = table.rows.last().expect("a row for huge pages");
    let value = |index: usize| match cells[index] {
        Cell::Value(value) => value,
        _ => f64::NAN,
    };
    let words = vec![1u64; 32 << 20];
    let mut best = f64::MAX;
    for _ in 0..3 {
        let started = Instant::now();
        black_box(words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word)));
        best = best.min(started.elapsed().as_nanos() as f64 / (words.len() * 8) as f64);
    }
    Machine {
        load_ns: value(3),
        copy_ns_per_byte: 1e3 / value(4),
        read_ns_per_byte: best,
    }
}

fn open(memory_bytes: u64) -> Space {
    Space::open(SpaceOptions {
        memory_bytes,
        ..SpaceOptions::default()
    })
    .expect("a space opens")
}

/// A permutation of 64-bit numbers: keys at random places, each once.
fn scatter(number: u64) -> [u8; 8] {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)).to_be_bytes()
}

/// Prints the time of each of `count` operations.
fn report(
    space: &Space,
    name: &str,
    count: u64,
    limit_ns: f64,
    miss_ns: f64,
    mut body: impl FnMut(),
) {
    let before = space.counters();
    let started = Instant::now();
    body();
    let each = started.elapsed().as_nanos() as f64 / count as f64;
    let after = space.counters();
    let reads = (after.read_misses - before.read_misses) as f64 / count as f64;
    let writes = (after.pages_written - before.pages_written) as f64 / count as f64;
    let limit = limit_ns + reads * miss_ns;
    println!(
        "{name:34} {each:10.1} {limit:10.1} {:5.0} % {reads:8.3} {writes:8.3}",
        limit / each * 100.0
    );
}

fn header(title: &str) {
    println!(
        "\n{title:34} {:>10} {:>10} {:>7} {:>8} {:>8}",
        "ns/op", "limit", "", "reads", "writes"
    );
}

fn next(random: &mut u64) -> u64 {
    *random = random
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1);
    *random >> 16
}

/// Inserts in an order into a tree of its own.
fn load(
    space: &Space,
    name: &str,
    entries: u64,
    limit: f64,
    miss: f64,
    key: impl Fn(u64) -> [u8; 8],
) -> Tree {
    let account = space.root().child("index", AccountOptions::default());
    let mut tree = Tree::new(&account, 8);
    report(
        space,
        &format!("{name}, a writer"),
        entries,
        limit,
        miss,
        || {
            let mut writer = tree.writer();
            for n in 0..entries {
                writer.insert(&key(n), &n.to_le_bytes()).expect("room");
            }
        },
    );
    tree
}

fn reads(space: &Space, tree: &Tree, machine: &Machine, entries: u64, count: u64, miss: f64) {
    let cold = 4.0 * machine.load_ns;
    let mut random = 7;
    report(space, "get, random", count, cold, miss, || {
        for _ in 0..count {
            let key = scatter(next(&mut random) % entries);
            assert!(tree.get(&key).expect("a read").is_some());
        }
    });
    let mut random = 8;
    report(space, "seek, random, a cursor", count, cold, miss, || {
        let mut cursor = tree.cursor();
        for _ in 0..count {
            let key = scatter(next(&mut random) % entries);
            assert!(cursor.seek(&key).expect("a read"));
        }
    });
    let mut keys = Vec::new();
    let mut range = tree.range(KeyRange::ALL);
    while keys.len() < count.min(1_000_000) as usize
        && let Some((key, _)) = range.next_entry().expect("a read")
    {
        keys.push(<[u8; 8]>::try_from(key).expect("8 bytes"));
    }
    drop(range);
    report(
        space,
        "get, sorted",
        keys.len() as u64,
        CACHED_NS,
        miss,
        || {
            for key in &keys {
                assert!(tree.get(key).expect("a read").is_some());
            }
        },
    );
    report(
        space,
        "seek, sorted, a cursor",
        keys.len() as u64,
        CACHED_NS,
        miss,
        || {
            let mut cursor = tree.cursor();
            for key in &keys {
                assert!(cursor.seek(key).expect("a read"));
            }
        },
    );
    let scan = ENTRY_BYTES * machine.read_ns_per_byte;
    report(space, "scan of payloads", entries, scan, miss, || {
        let mut range = tree.range(KeyRange::ALL);
        let mut sum = 0;
        while let Some(payload) = range.next_payload().expect("a read") {
            sum += u64::from(payload[0]);
        }
        black_box(sum);
    });
    report(space, "scan of row ids", entries, scan, miss, || {
        let mut range = tree.range(KeyRange::ALL);
        let (mut ids, mut sum) = (Vec::new(), 0);
        while range.next_row_ids(&mut ids).expect("a read") {
            sum += ids.iter().sum::<u64>() & 1;
            ids.clear();
        }
        black_box(sum);
    });
    report(
        space,
        "scan of keys and payloads",
        entries,
        scan,
        miss,
        || {
            let mut range = tree.range(KeyRange::ALL);
            let mut sum = 0;
            while let Some((key, payload)) = range.next_entry().expect("a read") {
                sum += u64::from(key[0]) + u64::from(payload[0]);
            }
            black_box(sum);
        },
    );
}

/// A read of one page from the temp file, at a random place.
fn miss_ns(memory_bytes: u64) -> f64 {
    let space = open(memory_bytes);
    let mut pages = Vec::new();
    for n in 0..memory_bytes * 4 / PageClass::K16.bytes() as u64 {
        let mut guard = space.root().allocate(PageClass::K16).expect("room");
        guard
            .as_chunks_mut::<8>()
            .0
            .iter_mut()
            .for_each(|word| *word = scatter(n));
        pages.push(guard.page().clone());
    }
    space.settle();
    let (mut random, count, before) = (9, 4000, space.counters().read_misses);
    let started = Instant::now();
    for _ in 0..count {
        let page = &pages[next(&mut random) as usize % pages.len()];
        black_box(page.read().expect("a read")[0]);
    }
    let misses = space.counters().read_misses - before;
    started.elapsed().as_nanos() as f64 / misses as f64
}

fn main() {
    let entries: u64 = std::env::args().nth(1).map_or(10_000_000, |text| {
        text.parse().expect("a number of entries")
    });
    let machine = machine();
    println!(
        "{entries} entries; dependent load {:.0} ns, copy {:.2} ns/byte, read {:.2} ns/byte",
        machine.load_ns, machine.copy_ns_per_byte, machine.read_ns_per_byte
    );
    let cold = 4.0 * machine.load_ns;
    // Half of 600 slots of 8 bytes.
    let shift = 300.0 * 8.0 * machine.copy_ns_per_byte;

    header("in memory");
    let space = open((entries * 64).max(16 << 20));
    drop(load(
        &space,
        "insert, sorted",
        entries,
        CACHED_NS,
        0.0,
        u64::to_be_bytes,
    ));
    drop(load(
        &space,
        "insert, reverse",
        entries,
        CACHED_NS,
        0.0,
        |n| (entries - n).to_be_bytes(),
    ));
    let account = space.root().child("index", AccountOptions::default());
    let mut single = Tree::new(&account, 8);
    report(
        &space,
        "insert, sorted, single calls",
        entries,
        CACHED_NS,
        0.0,
        || {
            for n in 0..entries {
                single
                    .insert(&n.to_be_bytes(), &n.to_le_bytes())
                    .expect("room");
            }
        },
    );
    drop(single);
    report(&space, "build, sorted", entries, CACHED_NS, 0.0, || {
        let mut builder = Builder::new(&account, 8, 100);
        for n in 0..entries {
            builder
                .push(&n.to_be_bytes(), &n.to_le_bytes())
                .expect("room");
        }
        black_box(builder.finish().statistics());
    });
    let mut tree = load(
        &space,
        "insert, random",
        entries,
        cold + shift,
        0.0,
        scatter,
    );
    let statistics = tree.statistics();
    let tree_bytes = (statistics.leaf_pages + statistics.inner_pages) * 16384;
    println!("{statistics:?}, {} MiB", tree_bytes >> 20);
    reads(
        &space,
        &tree,
        &machine,
        entries,
        entries.min(2_000_000),
        0.0,
    );
    let mut random = 3;
    let changed = entries / 10;
    report(&space, "update, random", changed, cold, 0.0, || {
        for n in 0..changed {
            let key = scatter(next(&mut random) % entries);
            assert!(tree.update(&key, &n.to_le_bytes()).expect("room").is_some());
        }
    });
    report(&space, "remove, random", changed, cold + shift, 0.0, || {
        for n in 0..changed {
            assert!(tree.remove(&scatter(n)).expect("a read").is_some());
        }
    });
    drop(tree);
    drop(space);

    let memory_bytes = (tree_bytes / 4).max(1 << 20);
    let miss = miss_ns(memory_bytes.min(64 << 20));
    println!("\none page from the temp file: {:.1} us", miss / 1e3);
    header(&format!("in {} MiB", memory_bytes >> 20));
    let space = open(memory_bytes);
    drop(load(
        &space,
        "insert, sorted",
        entries,
        CACHED_NS,
        miss,
        u64::to_be_bytes,
    ));
    let account = space.root().child("index", AccountOptions::default());
    let mut sorted: Vec<([u8; 8], u64)> = (0..entries).map(|n| (scatter(n), n)).collect();
    sorted.sort_unstable();
    let mut builder = Builder::new(&account, 8, 70);
    report(&space, "build, sorted", entries, CACHED_NS, miss, || {
        for (key, n) in &sorted {
            builder.push(key, &n.to_le_bytes()).expect("room");
        }
    });
    let mut tree = builder.finish();
    let few = entries.min(100_000);
    report(&space, "insert, random", few, cold + shift, miss, || {
        for n in entries..entries + few {
            tree.insert(&scatter(n), &n.to_le_bytes()).expect("room");
        }
    });
    space.settle();
    reads(&space, &tree, &machine, entries, few, miss);
}
