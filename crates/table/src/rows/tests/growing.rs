//! Groups whose rows grow: MAX of texts that become longer and longer.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, StringViewArray};
use arrow_schema::DataType;
use mayfly_space::{Operation, PageClass, Space, SpaceOptions};
use mayfly_testkit::{FaultPlan, space_of};

use super::super::estimate::DistinctEstimate;
use super::super::{
    GroupInput, GroupOptions, GroupReader, GroupSet, KeyColumn, PayloadColumn, PayloadRule,
    RowLayout, StateInput, StateKind,
};

const GROUPS: i64 = 3_000;
const ROWS: i64 = 100_000;

/// Rows of a batch.
const BATCH: i64 = 4_096;

fn layout() -> RowLayout {
    let text = PayloadColumn {
        data_type: DataType::Utf8View,
        nullable: true,
        rule: PayloadRule::Max,
    };
    RowLayout::new(
        &[KeyColumn::nullable(DataType::Int64)],
        &[text],
        &[(StateKind::Count, false)],
    )
    .expect("rows hold these types")
}

fn text_len(row: i64) -> usize {
    1 + (row / GROUPS) as usize * 20
}

fn options(space: &Space) -> GroupOptions {
    GroupOptions::for_budget(space.memory_bytes(), PageClass::K4, 1)
}

/// A set with all rows in it.
fn filled(space: &Space, options: GroupOptions, merges: bool) -> Arc<GroupSet> {
    let set = GroupSet::new(layout(), space.root(), options);
    let set = set.expect("the minimum is there");
    if merges {
        set.learn(&DistinctEstimate::default(), 1 << 40, None);
    }
    let mut worker = set.worker(0);
    for start in (0..ROWS).step_by(BATCH as usize) {
        let rows = start..ROWS.min(start + BATCH);
        let texts = rows.clone().map(|row| "x".repeat(text_len(row)));
        let payload: ArrayRef = Arc::new(StringViewArray::from_iter_values(texts));
        let keys = rows.clone().map(|row| row % GROUPS);
        let key: ArrayRef = Arc::new(Int64Array::from_iter_values(keys));
        let input = GroupInput {
            rows: key.len(),
            key: &[key],
            payload: &[payload],
            states: &[StateInput::default()],
        };
        worker.push(&input).expect("rows go in");
    }
    worker.finish().expect("workers end");
    set
}

/// Reads the groups out and checks them.
fn check(set: Arc<GroupSet>) {
    let mut found = HashMap::new();
    let mut reader = GroupReader::new(set);
    while let Some(batch) = reader.next_batch(1000).expect("groups are read") {
        let keys = batch.key[0].as_primitive::<Int64Type>();
        let counts = batch.states[0][0].as_primitive::<Int64Type>();
        let texts = batch.payload[0].as_string_view();
        for row in 0..batch.rows {
            let group = (counts.value(row), texts.value(row).len());
            let before = found.insert(keys.value(row), group);
            assert!(before.is_none(), "a group came twice");
        }
    }
    assert_eq!(found.len() as i64, GROUPS);
    for (key, (count, len)) in found {
        let last = (ROWS - 1 - key) / GROUPS;
        assert_eq!(count, last + 1, "rows of group {key}");
        assert_eq!(len, text_len(last * GROUPS + key), "text of group {key}");
    }
}

#[test]
fn a_group_that_cannot_grow_makes_its_partition_spill() {
    for memory_bytes in [1 << 20, 2 << 20, 8 << 20] {
        for (front_groups, merges) in [(0, false), (0, true), (64, true), (1 << 15, false)] {
            let space = space_of(memory_bytes);
            let options = GroupOptions {
                front_groups,
                ..options(&space)
            };
            check(filled(&space, options, merges));
            space.verify();
            assert_eq!(space.counters().pinned_bytes, 0);
        }
    }
}

#[test]
fn memory_follows_the_groups_however_often_they_grow() {
    let live = GROUPS as u64 * (text_len(ROWS - 1) as u64 + 40);
    for front_groups in [0, 1 << 15] {
        let space = space_of(256 << 20);
        let options = GroupOptions {
            front_groups,
            // Where a partition has many groups, few rows of one are merged at once.
            partition_bits: 1,
            ..options(&space)
        };
        let set = filled(&space, options, true);
        let mut reader = GroupReader::new(Arc::clone(&set));
        reader.settle().expect("nothing fails");
        let counters = space.counters();
        assert_eq!(counters.bytes_written, 0);
        // As much again that is dead, and pages that are filled in part.
        let held = counters.resident_bytes;
        assert!(
            held < 3 * live,
            "{held} bytes of pages for {live} bytes of groups"
        );
        drop(reader);
        check(set);
    }
}

#[test]
fn a_grant_that_fails_while_groups_grow_costs_no_row() {
    for n in (1..400).step_by(7) {
        let plan = FaultPlan::new(&[Operation::Grant]);
        let space = Space::open(SpaceOptions {
            memory_bytes: 4 << 20,
            faults: Some(plan.clone()),
            ..SpaceOptions::default()
        })
        .expect("a space opens");
        // The first grant is that of the minimum.
        plan.fail_once(n + 1);
        let options = GroupOptions {
            front_groups: 0,
            ..options(&space)
        };
        check(filled(&space, options, true));
    }
}
