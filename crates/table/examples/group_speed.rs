//! How long the rows of an aggregate take without anything around them:
//!
//! ```console
//! $ cargo run --release -p mayfly-table --example group_speed -- 6000000 200000 1024 2 thin
//! ```
//!
//! Arguments: rows, groups, memory in MiB, threads, and `thin` (a number as key, a count), `near`
//! (the same with numbers that lie close together), `keys` (such numbers and no count), `text`
//! (32 digits as key, a count) or `wide` (a number as key, eight carried columns).

use std::sync::Arc;
use std::time::Instant;

use arrow_array::{ArrayRef, Int64Array, StringViewArray};
use mayfly_space::{Space, SpaceOptions};
use mayfly_table::rows::{
    GroupInput, GroupOptions, GroupReader, GroupSet, KeyColumn, PayloadColumn, PayloadRule,
    RowLayout, StateInput, StateKind,
};

const BATCH_ROWS: u64 = 8192;

/// SplitMix64: a permutation of the numbers, so equal inputs are equal keys.
fn mix(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

struct Batch {
    key: ArrayRef,
    payload: Vec<ArrayRef>,
}

fn batches(rows: u64, groups: u64, kind: &str, thread: u64) -> Vec<Batch> {
    let starts = (0..rows).step_by(BATCH_ROWS as usize);
    starts
        .map(|start| {
            let numbers: Vec<u64> = (start..rows.min(start + BATCH_ROWS))
                .map(|row| mix(row * 64 + thread) % groups)
                .map(|n| {
                    if kind == "near" || kind == "keys" {
                        n
                    } else {
                        mix(n)
                    }
                })
                .collect();
            let key: ArrayRef = if kind == "text" {
                let texts = numbers.iter().map(|n| format!("{n:016x}{n:016x}"));
                Arc::new(StringViewArray::from_iter_values(texts))
            } else {
                Arc::new(
                    numbers
                        .iter()
                        .map(|n| Some(*n as i64))
                        .collect::<Int64Array>(),
                )
            };
            let payload = match kind {
                "wide" => {
                    let texts = numbers.iter().map(|n| format!("comment number {n:x}"));
                    let text: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
                    let mut all = vec![Arc::clone(&key); 6];
                    all.extend([Arc::clone(&text), text]);
                    all
                }
                _ => Vec::new(),
            };
            Batch { key, payload }
        })
        .collect()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u64| {
        arguments
            .get(at)
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (rows, groups) = (number(0, 6_000_000), number(1, 200_000));
    let (memory_bytes, threads) = (number(2, 4096) << 20, number(3, 2));
    let kind = arguments.get(4).map_or("thin", String::as_str);
    let inputs: Vec<Vec<Batch>> = (0..threads)
        .map(|thread| batches(rows / threads, groups, kind, thread))
        .collect();
    let space = Space::open(SpaceOptions {
        memory_bytes,
        ..SpaceOptions::default()
    })
    .expect("a space opens");
    for _ in 0..5 {
        let payload: Vec<PayloadColumn> = inputs[0][0]
            .payload
            .iter()
            .map(|array| PayloadColumn {
                data_type: array.data_type().clone(),
                nullable: false,
                rule: PayloadRule::First,
            })
            .collect();
        let key = KeyColumn {
            data_type: inputs[0][0].key.data_type().clone(),
            nullable: false,
        };
        let counts = usize::from(kind != "keys");
        let layout = RowLayout::new(&[key], &payload, &[(StateKind::Count, false)][..counts])
            .expect("rows hold these types");
        let options =
            GroupOptions::for_budget(memory_bytes, space.default_page_class(), threads as usize);
        let set = GroupSet::new(layout, space.root(), options).expect("the minimum is there");
        let started = Instant::now();
        std::thread::scope(|scope| {
            for (thread, batches) in inputs.iter().enumerate() {
                let mut worker = set.worker(thread);
                scope.spawn(move || {
                    for batch in batches {
                        let input = GroupInput {
                            rows: batch.key.len(),
                            key: std::slice::from_ref(&batch.key),
                            payload: &batch.payload,
                            states: &[StateInput::default()][..counts],
                        };
                        worker.push(&input).expect("rows go in");
                    }
                    worker.finish().expect("workers end");
                });
            }
        });
        let filled = started.elapsed();
        let found: usize = std::thread::scope(|scope| {
            let readers: Vec<_> = (0..threads)
                .map(|_| {
                    let set = Arc::clone(&set);
                    scope.spawn(move || {
                        let mut reader = GroupReader::new(set);
                        let mut found = 0;
                        while let Some(batch) = reader.next_batch(8192).expect("groups are read") {
                            found += batch.rows;
                        }
                        found
                    })
                })
                .collect();
            readers
                .into_iter()
                .map(|r| r.join().expect("no panic"))
                .sum()
        });
        println!(
            "{kind}: {found} groups, filled in {:.1} ms, all in {:.1} ms",
            filled.as_secs_f64() * 1e3,
            started.elapsed().as_secs_f64() * 1e3
        );
    }
}
