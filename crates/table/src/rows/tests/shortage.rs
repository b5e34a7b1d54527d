//! What happens where memory is short for a moment, or for good.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, StringViewArray};
use arrow_schema::DataType;
use mayfly_space::{Operation, PageClass, Space, SpaceOptions};
use mayfly_testkit::{FaultPlan, space_of, until_it_passes};

use super::super::drain::Drain;
use super::super::encode::{GroupInput, RowBlock};
use super::super::estimate::DistinctEstimate;
use super::super::hash::{KeyHasher, Level};
use super::super::layout::{KeyColumn, RowLayout};
use super::super::row_table::{RowTable, Scratch};
use super::super::segment::{Segment, Shape};
use super::super::state::{StateInput, StateKind};
use super::super::{GroupOptions, GroupReader, GroupSet};
use super::shape;

/// Keys that are numbers, with a count.
fn numbers() -> RowLayout {
    let key = KeyColumn::nullable(DataType::Int64);
    RowLayout::new(&[key], &[], &[(StateKind::Count, false)]).expect("rows hold numbers")
}

/// Encodes one row for each key.
fn encoded(layout: &RowLayout, keys: impl Iterator<Item = i64>) -> RowBlock {
    let key: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
    let mut block = RowBlock::default();
    let input = GroupInput {
        rows: key.len(),
        key: &[key],
        payload: &[],
        states: &[StateInput::default()],
    };
    block.encode(layout, &KeyHasher::of_process(), &input);
    block
}

/// Closed pages with a row for each key.
fn pages_of(shape: &Shape, keys: std::ops::Range<i64>) -> Vec<Segment> {
    let block = encoded(&shape.layout, keys);
    let mut pages = Vec::new();
    let mut tail = shape.open(0).expect("no I/O").expect("there is memory");
    for offset in &block.offsets {
        let row = &block.bytes[*offset as usize..];
        let row = &row[..shape.layout.row_len(row)];
        if !tail.has_room(row.len()) {
            let next = shape.open(0).expect("no I/O").expect("there is memory");
            pages.push(std::mem::replace(&mut tail, next).close(0));
        }
        tail.push(row);
    }
    pages.push(tail.close(0));
    pages
}

/// Makes every unpinned page leave memory.
fn evict_all(space: &Space) {
    let mut pins = Vec::new();
    while let Ok(guard) = space.root().allocate(PageClass::K4) {
        pins.push(guard);
    }
}

#[test]
fn no_group_is_lost_where_one_grant_fails() {
    const KEYS: i64 = 3_000;
    let plan = FaultPlan::new(&[Operation::Grant]);
    let runs = until_it_passes(&plan, 1_000, |n| {
        let space = Space::open(SpaceOptions {
            memory_bytes: 512 << 10,
            faults: Some(plan.clone()),
            ..SpaceOptions::default()
        })
        .expect("a space opens");
        let shape = shape(numbers(), space.root(), PageClass::K4);
        let pages = pages_of(&shape, 0..KEYS);
        evict_all(&space);
        let mut drain = Drain::new(shape, Vec::new(), pages);
        plan.fail_once(n);
        let mut found = Vec::new();
        while let Some(batch) = drain.next_batch(500).expect("the next try succeeds") {
            let keys = batch.key[0].as_primitive::<Int64Type>();
            found.extend(keys.values().iter().copied());
        }
        assert!(plan.fired() <= 1, "one grant was to fail");
        assert!(
            found.into_iter().eq(0..KEYS),
            "groups are missing after grant {n}"
        );
    });
    // Whatever was read ahead needs no grant, but the first page always does.
    assert!(runs > 0, "no grant was made to fail");
}

#[test]
fn a_batch_of_long_rows_is_short() {
    const LEN: usize = 100_000;
    let space = space_of(64 << 20);
    let key = KeyColumn::nullable(DataType::Utf8View);
    let layout = RowLayout::new(&[key], &[], &[(StateKind::Count, false)]);
    let options = GroupOptions::for_budget(64 << 20, space.default_page_class(), 1);
    let set = GroupSet::new(layout.expect("rows hold text"), space.root(), options);
    let set = set.expect("the minimum is there");
    let mut worker = set.worker(0);
    for number in 0..100 {
        let text = format!("{number:05}").repeat(LEN / 5);
        let key: ArrayRef = Arc::new(StringViewArray::from_iter_values([text]));
        let input = GroupInput {
            rows: 1,
            key: &[key],
            payload: &[],
            states: &[StateInput::default()],
        };
        worker.push(&input).expect("rows go in");
    }
    worker.finish().expect("the worker ends");
    let mut reader = GroupReader::new(set);
    let (mut groups, mut most) = (0, 0);
    while let Some(batch) = reader.next_batch(8192).expect("groups are read") {
        groups += batch.rows;
        most = most.max(batch.rows);
    }
    assert_eq!(groups, 100);
    // 4 MiB, and the row that passes them.
    assert!(most <= (4 << 20) / LEN + 1, "a batch of {most} rows");
}

/// Groups long strings; returns how many groups there are.
fn group_strings(memory_bytes: u64, merges: bool, strings: &[String]) -> usize {
    let space = space_of(memory_bytes);
    let key = KeyColumn::nullable(DataType::Utf8View);
    let layout = RowLayout::new(&[key], &[], &[(StateKind::Count, false)]);
    let options = GroupOptions::for_budget(memory_bytes, space.default_page_class(), 2);
    let set = GroupSet::new(layout.expect("rows hold text"), space.root(), options);
    let set = set.expect("the minimum is there");
    if merges {
        set.learn(&DistinctEstimate::default(), 1 << 20, None);
    }
    let mut workers = [set.worker(0), set.worker(1)];
    for (number, chunk) in strings.chunks(8).enumerate() {
        let key: ArrayRef = Arc::new(StringViewArray::from_iter_values(chunk));
        let input = GroupInput {
            rows: chunk.len(),
            key: &[key],
            payload: &[],
            states: &[StateInput::default()],
        };
        workers[number % 2].push(&input).expect("rows go in");
    }
    for worker in workers {
        worker.finish().expect("workers end");
    }
    let mut readers = [0, 1].map(|_| GroupReader::new(Arc::clone(&set)));
    let (mut groups, mut rows) = (0, 0);
    let mut going = true;
    while going {
        going = false;
        for reader in &mut readers {
            if let Some(batch) = reader.next_batch(8192).expect("groups are read") {
                going = true;
                groups += batch.rows;
                let counts = batch.states[0][0].as_primitive::<Int64Type>();
                rows += counts.values().iter().sum::<i64>();
            }
        }
    }
    assert_eq!(rows, strings.len() as i64);
    drop(readers);
    drop(set);
    space.verify();
    assert_eq!(space.counters().pinned_bytes, 0);
    groups
}

#[test]
fn long_strings_pin_no_more_than_there_is() {
    for (memory_bytes, least, most) in [
        (4 << 20, 10 << 10, 300 << 10),
        (8 << 20, 10 << 10, 300 << 10),
        (8 << 20, 200 << 10, 200 << 10),
        (8 << 20, 1000 << 10, 1100 << 10),
    ] {
        let strings: Vec<String> = (0..200)
            .map(|n| {
                let n = n % 100;
                let len = least + (most - least) * n / 100;
                format!("{n:08}").repeat(len / 8)
            })
            .collect();
        for merges in [false, true] {
            assert_eq!(group_strings(memory_bytes, merges, &strings), 100);
        }
    }
}

#[test]
fn shed_says_what_it_released() {
    let space = space_of(16 << 20);
    let mut options = GroupOptions::for_budget(16 << 20, PageClass::K16, 1);
    options.front_groups = 0;
    let set = GroupSet::new(numbers(), space.root(), options).expect("the minimum is there");
    set.learn(&DistinctEstimate::default(), 1 << 20, None);
    let mut worker = set.worker(0);
    for batch in 0..40 {
        let key: ArrayRef = Arc::new(Int64Array::from_iter_values(
            batch * 4096..(batch + 1) * 4096,
        ));
        let input = GroupInput {
            rows: key.len(),
            key: &[key],
            payload: &[],
            states: &[StateInput::default()],
        };
        worker.push(&input).expect("rows go in");
    }
    let held = || {
        let counters = space.counters();
        (counters.pinned_bytes, counters.reserved_bytes)
    };
    let (pinned, reserved) = held();
    assert!(
        pinned > 0 && reserved > 0,
        "tables have pages and directories"
    );
    let shed = set.shed(1);
    let (pinned_after, reserved_after) = held();
    assert!(reserved_after < reserved);
    assert_eq!(shed, pinned + reserved - pinned_after - reserved_after);
    assert_eq!(set.shed(u64::MAX), pinned_after + reserved_after);
    assert_eq!(held(), (0, 0));
    assert_eq!(set.shed(1), 0);
}

#[test]
fn a_table_has_no_more_pages_than_its_references_count() {
    const KEYS: i64 = 3_000;
    let space = space_of(4 << 20);
    let shape = shape(numbers(), space.root(), PageClass::K4);
    // References that count 7 pages, as those of 1 MiB pages count 16,383.
    let few = Arc::into_inner(shape).map(|shape| Shape {
        offset_bits: 29,
        ..shape
    });
    let few = Arc::new(few.expect("nobody else has it"));
    let pages = pages_of(&few, 0..KEYS);
    let count = pages.len();
    assert!(count > 8);
    let adopted =
        RowTable::adopt(&few, Level::default(), pages, 0, &mut Scratch::default()).expect("no I/O");
    let pages = adopted.err().expect("there are too many pages");
    assert_eq!(pages.len(), count);
}
