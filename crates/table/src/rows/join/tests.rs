//! Pairs of random rows against two loops, through tables, absent partitions, splits and chunks.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, StringViewArray};
use arrow_schema::DataType;
use mayfly_space::{Operation, PageClass, Space, SpaceOptions};
use mayfly_testkit::{FaultPlan, Random, space_of, until_it_passes};

use super::super::layout::{KeyColumn, RowLayout};
use super::super::{Error, StopFlag};
use super::*;

/// A key of number and text, and the number of the row.
type Row = (Option<i64>, Option<String>, i64);

const ID: Stored = Stored::Payload(0);

fn layout(null_keys_match: bool) -> RowLayout {
    let key = [DataType::Int64, DataType::Utf8View].map(KeyColumn::nullable);
    let payload = [DataType::Int64, DataType::Utf8View].map(KeyColumn::nullable);
    RowLayout::for_join(&key, &payload, null_keys_match).expect("rows hold these types")
}

fn options(space: &Space, single_bytes_max: u64) -> SideOptions {
    SideOptions {
        single_bytes_max,
        keeps_filter: true,
        ..SideOptions::for_budget(space.memory_bytes(), PageClass::K4, 1)
    }
}

fn columns(rows: &[Row]) -> ([ArrayRef; 2], [ArrayRef; 2]) {
    let numbers: Int64Array = rows.iter().map(|row| row.0).collect();
    let texts: StringViewArray = rows.iter().map(|row| row.1.as_deref()).collect();
    let ids: Int64Array = rows.iter().map(|row| Some(row.2)).collect();
    let carried = rows.iter().map(|row| Some(format!("{:>30}", row.2)));
    let carried: StringViewArray = carried.collect();
    (
        [Arc::new(numbers), Arc::new(texts)],
        [Arc::new(ids), Arc::new(carried)],
    )
}

fn push(writer: &mut SideWriter, rows: &[Row]) -> Result<(), Error> {
    for batch in rows.chunks(500) {
        let (key, payload) = columns(batch);
        writer.push(batch.len(), &key, &payload)?;
    }
    Ok(())
}

fn random_rows(random: &mut Random, count: usize, keys: u64, first: i64) -> Vec<Row> {
    let mut row = |id| {
        let number = (!random.chance(0.1)).then(|| random.below(keys) as i64);
        // Short texts, long ones, and hardly any other than the number says.
        let text = match random.below(8) {
            0 => None,
            1 => Some("x".repeat(random.below(40) as usize)),
            _ => Some(format!("text {}", number.unwrap_or(3) % 3)),
        };
        (number, text, id)
    };
    (first..first + count as i64).map(&mut row).collect()
}

fn expected(build: &[Row], probe: &[Row], null_keys_match: bool) -> Vec<(i64, i64)> {
    let mut pairs = Vec::new();
    for one in probe {
        for other in build {
            let has_null = one.0.is_none() || one.1.is_none();
            if (one.0 == other.0 && one.1 == other.1) && (null_keys_match || !has_null) {
                pairs.push((other.2, one.2));
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// What a join of two sides found.
#[derive(Default)]
struct Joined {
    pairs: Vec<(i64, i64)>,
    /// Build rows without a partner.
    unmatched: Vec<i64>,
    rows_dropped: u64,
}

fn ids(arrays: &[ArrayRef]) -> Vec<i64> {
    let ids = arrays[0].as_primitive::<Int64Type>();
    assert_eq!(ids.null_count(), 0);
    // What is carried beside the number is that of the same row.
    if let Some(carried) = arrays.get(1) {
        let carried = carried.as_string_view().iter().flatten();
        let carried: Vec<i64> = carried.map(|text| text.trim().parse().unwrap()).collect();
        assert_eq!(carried, ids.values().to_vec());
    }
    ids.values().to_vec()
}

impl Joined {
    fn add(
        &mut self,
        tables: &JoinTables,
        heads: &[RowRef],
        probe_ids: &[i64],
    ) -> Result<(), Error> {
        let (mut cursor, mut matches) = (MatchCursor::default(), Matches::default());
        while cursor.row() < heads.len() {
            tables.matches(heads, &mut cursor, (7, 1 << 20), &mut matches)?;
            let found = tables.decode(&matches.found, &[ID, Stored::Payload(1)])?;
            let probe = matches.rows.iter().map(|row| probe_ids[*row as usize]);
            self.pairs.extend(ids(&found).into_iter().zip(probe));
            for row in &matches.found {
                tables.mark(*row);
            }
        }
        Ok(())
    }

    fn add_unmatched(&mut self, tables: &JoinTables) -> Result<(), Error> {
        for partition in 0..tables.partition_count() {
            let (mut cursor, mut rows) = (RowCursor::default(), Vec::new());
            while tables.walk(
                partition,
                &mut cursor,
                (13, 1 << 20),
                Some(false),
                &mut rows,
            )? {
                self.unmatched.extend(ids(&tables.decode(&rows, &[ID])?));
            }
        }
        Ok(())
    }

    fn add_pair(&mut self, mut build: JoinPart, mut probe: JoinPart) -> Result<(), Error> {
        if build.row_count() > 300 && build.can_split() && build.level.bits() < 8 {
            let pairs = build.split()?.into_iter().zip(probe.split()?);
            return { pairs }
                .into_iter()
                .try_for_each(|(build, probe)| self.add_pair(build, probe));
        }
        let (mut looked, mut scratch) = (Looked::default(), ProbeScratch::default());
        while !build.is_empty() {
            let chunk = build.take_chunk(8 << 10, true);
            let table = match JoinTable::build(chunk, true, TableMemory::Free)? {
                Ok(table) => table,
                Err(chunk) => {
                    // A grant failed; the next time it does not.
                    build.put_back(chunk);
                    continue;
                }
            };
            let tables = JoinTables::of_one(table);
            for number in 0..probe.page_count() {
                let mut page = probe.open_page(number)?;
                tables.find_page(&page, &mut looked, &mut scratch);
                let page_ids = ids(&page.decode(&[ID, Stored::Payload(1)])?);
                self.add(&tables, &looked.heads, &page_ids)?;
                for (row, head) in looked.heads.iter().enumerate() {
                    if head.is_some() {
                        page.mark(row);
                    }
                    assert!(page.is_marked(row) || !head.is_some());
                }
            }
            self.add_unmatched(&tables)?;
        }
        probe.free_first_page();
        Ok(())
    }
}

/// Joins with tables for some of the partitions.
fn join(
    space: &Space,
    build: &[Row],
    probe: &[Row],
    null_keys_match: bool,
    (single_bytes_max, tables_max): (u64, usize),
) -> Result<Joined, Error> {
    let mut joined = Joined::default();
    let options = options(space, single_bytes_max);
    let account = space.root().child("build", Default::default());
    let (side_layout, stop) = (layout(null_keys_match), StopFlag::default());
    let side = SideRows::new(side_layout, &account, options, stop);
    push(&mut SideWriter::new(&side, 0), build)?;
    assert_eq!(side.row_count(), build.len() as u64);
    let mut tables = JoinTables::new(&side);
    let mut parts = Vec::new();
    for partition in 0..tables.partition_count() {
        let mut part = side.take_part(partition)?;
        if part.is_empty() {
            continue;
        }
        if partition < tables_max {
            match JoinTable::build(part, true, TableMemory::Free)? {
                Ok(table) => {
                    tables.set_table(partition, table);
                    continue;
                }
                Err(given_back) => part = given_back,
            }
        }
        tables.set_absent(partition, &part);
        parts.push((partition, part));
    }
    let account = space.root().child("probe", Default::default());
    let partner = match parts.is_empty() {
        true => None,
        false => {
            let layout = layout(null_keys_match);
            Some(SideRows::partner_of(&side, layout, &account)?)
        }
    };
    let mut writer = partner.as_ref().map(|partner| SideWriter::new(partner, 0));
    let mut keys = JoinKeys::new(&side);
    let (mut looked, mut scratch) = (Looked::default(), ProbeScratch::default());
    for batch in probe.chunks(400) {
        let (key, payload) = columns(batch);
        keys.encode(batch.len(), &key)?;
        let is_matchable =
            |row: &u32| null_keys_match || key.iter().all(|key| key.is_valid(*row as usize));
        let rows: Vec<u32> = (0..batch.len() as u32).filter(is_matchable).collect();
        let matchable = (rows.len() < batch.len()).then_some(&rows[..]);
        tables.find(&keys, matchable, side.filter(), &mut looked, &mut scratch);
        let probe_ids: Vec<i64> = batch.iter().map(|row| row.2).collect();
        joined.add(&tables, &looked.heads, &probe_ids)?;
        joined.rows_dropped += looked.dropped;
        if !looked.absent.is_empty() {
            let writer = writer.as_mut().expect("something is absent");
            writer.push_picked(batch.len(), &key, &payload, &looked.absent)?;
        }
    }
    drop(writer);
    joined.add_unmatched(&tables)?;
    drop(tables);
    for (number, part) in parts {
        let partner = partner.as_ref().expect("something is absent");
        joined.add_pair(part, partner.take_part(number)?)?;
    }
    joined.pairs.sort_unstable();
    joined.unmatched.sort_unstable();
    Ok(joined)
}

/// A page that is freed while it is written or read in the background goes when that has ended.
fn check_nothing_left(space: &Space) {
    space.verify();
    assert_eq!(space.counters().pinned_bytes, 0);
    assert_eq!(space.counters().reserved_bytes, 0);
    assert_eq!(space.memory_used_bytes(), 0);
}

fn unmatched(build: &[Row], pairs: &[(i64, i64)]) -> Vec<i64> {
    let ids = build.iter().map(|row| row.2);
    let has_none = |id: &i64| pairs.binary_search_by_key(id, |pair| pair.0).is_err();
    ids.filter(has_none).collect()
}

#[test]
fn every_pair_is_found_once_wherever_rows_are() {
    for seed in 1..=6 {
        println!("seed {seed}");
        let mut random = Random::new(seed);
        let keys = [3, 300, 1 << 40][seed as usize % 3];
        let build = random_rows(&mut random, 700, keys, 0);
        let probe = random_rows(&mut random, 900, keys, 10_000);
        for null_keys_match in [false, true] {
            let pairs = expected(&build, &probe, null_keys_match);
            let alone = unmatched(&build, &pairs);
            for (single_bytes_max, tables_max) in [
                (1 << 20, 1),
                (1 << 20, 0),
                (8 << 10, 64),
                (8 << 10, 3),
                (0, 0),
            ] {
                let space = space_of(1 << 20);
                let how = (single_bytes_max, tables_max);
                let joined = join(&space, &build, &probe, null_keys_match, how).unwrap();
                assert_eq!(joined.pairs, pairs, "{how:?}");
                assert_eq!(joined.unmatched, alone, "{how:?}");
                check_nothing_left(&space);
            }
        }
    }
}

#[test]
fn a_side_larger_than_memory_is_joined_and_the_filter_drops_rows() {
    let mut random = Random::new(11);
    let build = random_rows(&mut random, 20_000, 1 << 40, 0);
    let mut probe = random_rows(&mut random, 20_000, 1 << 40, 100_000);
    // Some have a partner.
    for row in 0..1_000 {
        (probe[row].0, probe[row].1) = (build[row * 7].0, build[row * 7].1.clone());
    }
    let space = space_of(768 << 10);
    let joined = join(&space, &build, &probe, false, (8 << 10, 1)).unwrap();
    let keys = |row: &Row| row.0.zip(row.1.clone());
    let mut by_key = std::collections::HashMap::<_, Vec<i64>>::new();
    for row in build.iter().filter(|row| keys(row).is_some()) {
        by_key.entry(keys(row)).or_default().push(row.2);
    }
    let mut pairs = Vec::new();
    for row in probe.iter().filter(|row| keys(row).is_some()) {
        let found = by_key.get(&keys(row)).into_iter().flatten();
        pairs.extend(found.map(|id| (*id, row.2)));
    }
    pairs.sort_unstable();
    assert_eq!(joined.pairs, pairs);
    assert!(joined.rows_dropped > 5_000, "{}", joined.rows_dropped);
    assert!(space.counters().bytes_written > 0);
}

#[test]
fn one_key_is_joined_by_chunks() {
    let row = |id: i64| (Some(7), Some("one".to_owned()), id);
    let build: Vec<Row> = (0..1_500).map(row).collect();
    let probe: Vec<Row> = (0..40).map(row).collect();
    let space = space_of(1 << 20);
    let joined = join(&space, &build, &probe, false, (0, 0)).unwrap();
    assert_eq!(joined.pairs, expected(&build, &probe, false));
    assert!(joined.unmatched.is_empty());
}

#[test]
fn a_fault_is_an_error_and_leaves_nothing() {
    let mut random = Random::new(3);
    let build = random_rows(&mut random, 4_000, 1_000, 0);
    let probe = random_rows(&mut random, 4_000, 1_000, 10_000);
    let how = (8 << 10, 1);
    let pairs = join(&space_of(512 << 10), &build, &probe, false, how).unwrap();
    for operation in [Operation::Read, Operation::Write, Operation::Grant] {
        let plan = FaultPlan::new(&[operation]);
        let runs = until_it_passes(&plan, 2_000, |n| {
            let space = Space::open(SpaceOptions {
                memory_bytes: 512 << 10,
                faults: Some(plan.clone()),
                ..SpaceOptions::default()
            })
            .expect("a space opens");
            plan.fail_once(n);
            match join(&space, &build, &probe, false, how) {
                Ok(joined) => assert_eq!(joined.pairs, pairs.pairs),
                Err(error) => assert!(matches!(error, Error::Space(_)), "{error}"),
            }
            check_nothing_left(&space);
        });
        println!("{operation:?}: {runs} runs");
    }
}

#[test]
fn floats_are_carried_bit_by_bit_and_compared_by_value() {
    let space = space_of(1 << 20);
    let float = KeyColumn::nullable(DataType::Float64);
    let layout = RowLayout::for_join(
        std::slice::from_ref(&float),
        std::slice::from_ref(&float),
        false,
    );
    let (layout, stop) = (layout.expect("floats"), StopFlag::default());
    let side = SideRows::new(layout, space.root(), options(&space, 1 << 20), stop);
    let array: ArrayRef = Arc::new(Float64Array::from(vec![-0.0, 1.5]));
    let same = std::slice::from_ref(&array);
    SideWriter::new(&side, 0).push(2, same, same).unwrap();
    let table = JoinTable::build(side.take_part(0).unwrap(), false, TableMemory::Free).unwrap();
    let Ok(table) = table else {
        panic!("there is memory");
    };
    let tables = JoinTables::of_one(table);
    let mut keys = JoinKeys::new(&side);
    let probe: ArrayRef = Arc::new(Float64Array::from(vec![0.0, 2.5]));
    keys.encode(2, std::slice::from_ref(&probe)).unwrap();
    let (mut looked, mut scratch) = (Looked::default(), ProbeScratch::default());
    tables.find(&keys, None, None, &mut looked, &mut scratch);
    let found = [looked.heads[0], looked.heads[1]];
    let carried = tables.decode(&found, &[ID]).unwrap();
    let carried = carried[0].as_primitive::<arrow_array::types::Float64Type>();
    assert!(carried.value(0).is_sign_negative() && carried.value(0) == 0.0);
    assert!(carried.is_null(1));
}

/// Joins with tables for all partitions, of which some are given up between two batches; a thread
/// in the midst of a batch may keep a table that was given up for a while.
fn join_and_give_up(
    space: &Space,
    build: &[Row],
    probe: &[Row],
    null_keys_match: bool,
    random: &mut Random,
) -> Result<Joined, Error> {
    let mut joined = Joined::default();
    let account = space.root().child("build", Default::default());
    let stop = StopFlag::default();
    let side = SideRows::new(layout(null_keys_match), &account, options(space, 0), stop);
    push(&mut SideWriter::new(&side, 0), build)?;
    let mut tables = JoinTables::new(&side);
    for partition in 0..tables.partition_count() {
        let part = side.take_part(partition)?;
        if !part.is_empty() {
            let table = JoinTable::build(part, true, TableMemory::Free)?;
            tables.set_table(partition, table.ok().expect("there is memory for all"));
        }
    }
    tables.address_directly()?;
    let mut tables = Arc::new(tables);
    let account = space.root().child("probe", Default::default());
    let partner = SideRows::partner_of(&side, layout(null_keys_match), &account)?;
    let mut writer = SideWriter::new(&partner, 0);
    let (mut snapshots, mut leaving, mut parts) = (Vec::new(), Vec::new(), Vec::new());
    let mut keys = JoinKeys::new(&side);
    let (mut looked, mut scratch) = (Looked::default(), ProbeScratch::default());
    for batch in probe.chunks(100) {
        let (key, payload) = columns(batch);
        keys.encode(batch.len(), &key)?;
        let is_matchable =
            |row: &u32| null_keys_match || key.iter().all(|key| key.is_valid(*row as usize));
        let rows: Vec<u32> = (0..batch.len() as u32).filter(is_matchable).collect();
        tables.find(&keys, Some(&rows), side.filter(), &mut looked, &mut scratch);
        // Whoever looked them up is not disturbed by what is given up now.
        let snapshot = Arc::clone(&tables);
        while random.chance(0.4)
            && let Some((partition, bytes)) = tables.held_bytes().max_by_key(|(_, bytes)| *bytes)
        {
            assert!(bytes > 0);
            let (rest, table) = tables.without(partition);
            tables = Arc::new(rest);
            leaving.push(table);
        }
        let probe_ids: Vec<i64> = batch.iter().map(|row| row.2).collect();
        joined.add(&snapshot, &looked.heads, &probe_ids)?;
        if !looked.absent.is_empty() {
            writer.push_picked(batch.len(), &key, &payload, &looked.absent)?;
        }
        snapshots.push(snapshot);
        if random.chance(0.3) {
            snapshots.clear();
        }
        for table in std::mem::take(&mut leaving) {
            match table.try_into_part() {
                Ok(part) => parts.push(part),
                Err(table) => leaving.push(table),
            }
        }
    }
    drop((writer, snapshots));
    for table in leaving {
        parts.push(table.try_into_part().ok().expect("nobody uses it"));
    }
    joined.add_unmatched(&tables)?;
    drop(tables);
    for (number, part) in parts {
        joined.add_pair(part, partner.take_part(number)?)?;
    }
    joined.pairs.sort_unstable();
    joined.unmatched.sort_unstable();
    Ok(joined)
}

#[test]
fn tables_that_are_given_up_keep_their_rows_and_marks() {
    for seed in 1..=24 {
        let mut random = Random::new(seed);
        let keys = [3, 300, 1 << 40][seed as usize % 3];
        let build = random_rows(&mut random, 900, keys, 0);
        let probe = random_rows(&mut random, 1_200, keys, 10_000);
        let null_keys_match = seed % 2 == 0;
        let pairs = expected(&build, &probe, null_keys_match);
        let space = space_of(2 << 20);
        let joined = join_and_give_up(&space, &build, &probe, null_keys_match, &mut random);
        let joined = joined.unwrap();
        assert_eq!(joined.pairs, pairs, "{seed}");
        assert_eq!(joined.unmatched, unmatched(&build, &pairs), "{seed}");
        check_nothing_left(&space);
    }
}
