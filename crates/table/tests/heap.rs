//! What the heap holds while groups outgrow memory: the budget's promise, counted from below.
//!
//! A test binary of its own: the counter sees every thread of the process.

use std::sync::{Arc, Mutex};

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, StringViewArray};
use arrow_schema::DataType;
use mayfly_space::{PageClass, Space, SpaceOptions};
use mayfly_table::rows::{
    GroupInput, GroupOptions, GroupReader, GroupSet, KeyColumn, RowLayout, StateInput, StateKind,
};
use mayfly_testkit::CountingAllocator;

#[global_allocator]
static HEAP: CountingAllocator = CountingAllocator::new();

/// Held by the test that counts.
static ALONE: Mutex<()> = Mutex::new(());

const BUDGET_BYTES: usize = 8 << 20;

/// Groups of about 80 bytes each: 16 times the budget.
const GROUPS: usize = 1_600_000;

fn count_groups(space: &Space) -> usize {
    let key = KeyColumn {
        data_type: DataType::Utf8View,
        nullable: false,
    };
    let layout = RowLayout::new(&[key], &[], &[(StateKind::Count, false)]).expect("rows hold text");
    let options = GroupOptions::for_budget(BUDGET_BYTES as u64, PageClass::K64, 1);
    let set = GroupSet::new(layout, space.root(), options).expect("the minimum is there");
    let mut worker = set.worker(0);
    for start in (0..GROUPS).step_by(4096) {
        let rows = 4096.min(GROUPS - start);
        let keys = (start..start + rows).map(|n| format!("{n:064}"));
        let key: ArrayRef = Arc::new(StringViewArray::from_iter_values(keys));
        let input = GroupInput {
            rows,
            key: &[key],
            payload: &[],
            states: &[StateInput::default()],
        };
        worker.push(&input).expect("rows go in");
    }
    worker.finish().expect("workers end");
    let mut reader = GroupReader::new(set);
    let mut groups = 0;
    while let Some(batch) = reader.next_batch(4096).expect("groups are read") {
        groups += batch.rows;
    }
    groups
}

#[test]
fn the_heap_stays_within_the_budget() {
    let _alone = ALONE.lock().expect("the other test passes");
    let space = Space::open(SpaceOptions {
        memory_bytes: BUDGET_BYTES as u64,
        ..SpaceOptions::default()
    })
    .expect("a space opens");
    let before = HEAP.live_bytes();
    HEAP.reset_peak();
    assert_eq!(count_groups(&space), GROUPS);
    let peak = HEAP.peak_bytes() - before;
    assert!(space.counters().bytes_written > 8 * BUDGET_BYTES as u64);
    // Pages are outside the heap. Directories are in it, and counted by the space; batches, blocks
    // of encoded rows and the tables of pages and slots are not.
    let allowed = BUDGET_BYTES + (6 << 20);
    assert!(peak < allowed, "the heap held {peak} bytes of {allowed}");
    space.verify();
    let left = HEAP.live_bytes().saturating_sub(before);
    // What the space keeps: its table of page words and the lists of free slots.
    assert!(left < 1 << 20, "{left} bytes are left on the heap");
    drop(space);
    let left = HEAP.live_bytes().saturating_sub(before);
    assert!(left < 64 << 10, "{left} bytes outlived the space");
}

/// Rows of one long string: 4.5 GB as rows, one buffer as a batch.
const LONG_ROWS: usize = 75_000;

#[test]
fn a_batch_of_views_is_not_copied_at_once() {
    let _alone = ALONE.lock().expect("the other test passes");
    let space = Space::open(SpaceOptions {
        memory_bytes: BUDGET_BYTES as u64,
        ..SpaceOptions::default()
    })
    .expect("a space opens");
    let key = KeyColumn {
        data_type: DataType::Utf8View,
        nullable: false,
    };
    let layout = RowLayout::new(&[key], &[], &[(StateKind::Count, false)]).expect("rows hold text");
    let options = GroupOptions::for_budget(BUDGET_BYTES as u64, PageClass::K16, 2);
    let set = GroupSet::new(layout, space.root(), options).expect("the minimum is there");
    let text = "60 KB ".repeat(10_000);
    let mut keys = StringViewBuilder::new();
    let block = keys.append_block(text.as_bytes().into());
    for _ in 0..LONG_ROWS {
        let appended = keys.try_append_view(block, 0, text.len() as u32);
        appended.expect("the block holds the text");
    }
    let key: ArrayRef = Arc::new(keys.finish());
    let before = HEAP.live_bytes();
    HEAP.reset_peak();
    let mut worker = set.worker(0);
    let input = GroupInput {
        rows: LONG_ROWS,
        key: &[key],
        payload: &[],
        states: &[StateInput::default()],
    };
    worker.push(&input).expect("rows go in");
    worker.finish().expect("workers end");
    let mut reader = GroupReader::new(set);
    let batch = reader.next_batch(4096).expect("groups are read");
    let batch = batch.expect("there is a group");
    assert_eq!(batch.rows, 1);
    let counts = batch.states[0][0].as_primitive::<Int64Type>();
    assert_eq!(counts.value(0), LONG_ROWS as i64);
    let peak = HEAP.peak_bytes() - before;
    let allowed = BUDGET_BYTES;
    assert!(peak < allowed, "the heap held {peak} bytes of {allowed}");
}
