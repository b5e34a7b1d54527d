//! DISTINCT aggregates against a plain computation: with and without groups, few and many of them,
//! at budgets where the distinct values of one group outgrow memory.
//!
//! Every column is a function of a rank that gives different values for different ranks, so what is
//! expected needs nothing but the ranks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array,
    Int64Array, StringArray, StringViewArray,
};
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use mayfly_space::{Space, SpaceOptions};
use mayfly_testkit::{Random, Zipf};

use crate::partitioned::{PARTITIONS, register};

const ROUNDS: u64 = 24;
const BUDGETS: [u64; 3] = [4 << 20, 8 << 20, 1 << 30];

/// Ranks of the rows of a column; `None` is NULL.
type Ranks = Vec<Option<u64>>;

struct Data {
    groups: Ranks,
    values: Vec<Ranks>,
    /// Which rows a FILTER lets through.
    flags: Vec<bool>,
}

fn ranks(random: &mut Random, rows: usize) -> Ranks {
    let (kind, null_share) = (random.below(4), [0.0, 0.1, 0.95][random.below(3) as usize]);
    let few = random.below(500) + 1;
    let zipf = Zipf::new(rows.max(1), 1.05);
    (0..rows as u64)
        .map(|row| {
            let rank = match kind {
                0 => row * 7919 % 1_000_003,
                1 => zipf.sample(random) as u64,
                2 => random.below(few),
                _ => random.below(rows as u64),
            };
            (!random.chance(null_share)).then_some(rank)
        })
        .collect()
}

impl Data {
    fn random(random: &mut Random) -> Data {
        let rows = [0, 1, 5_000, 60_000][random.below(4) as usize];
        let groups = [1, 1, 2, 3, 300, 20_000][random.below(6) as usize];
        let group = |random: &mut Random| {
            let rank = random.below(groups);
            (rank > 0 || groups == 1).then_some(rank)
        };
        Data {
            groups: (0..rows).map(|_| group(random)).collect(),
            values: (0..3).map(|_| ranks(random, rows)).collect(),
            flags: (0..rows).map(|_| random.chance(0.5)).collect(),
        }
    }

    /// What the queries of [`query`] give for each group, or for all rows together.
    fn expected(&self, grouped: bool) -> BTreeMap<Option<u64>, Vec<Option<i64>>> {
        let mut rows_of: BTreeMap<Option<u64>, Vec<usize>> = BTreeMap::new();
        if !grouped {
            rows_of.insert(None, Vec::new());
        }
        for (row, group) in self.groups.iter().enumerate() {
            let group = group.filter(|_| grouped);
            rows_of.entry(group).or_default().push(row);
        }
        let result = |rows: &Vec<usize>| {
            let distinct = |column: &Ranks, flagged: bool| -> BTreeSet<u64> {
                let counts = rows.iter().filter(|row| !flagged || self.flags[**row]);
                counts.filter_map(|row| column[*row]).collect()
            };
            let count = |column: usize, flagged: bool| {
                Some(distinct(&self.values[column], flagged).len() as i64)
            };
            let all: BTreeSet<u64> = distinct(&self.values[2], false);
            let sum = |some: &BTreeSet<u64>| {
                (!some.is_empty()).then(|| some.iter().map(|rank| *rank as i64).sum())
            };
            vec![
                count(0, false),
                count(1, false),
                sum(&all),
                count(0, true),
                Some(rows.len() as i64),
                sum(&distinct(&self.values[2], true)),
                all.last().map(|rank| *rank as i64),
                count(2, false),
            ]
        };
        let results = rows_of.iter().map(|(group, rows)| (*group, result(rows)));
        results.collect()
    }

    fn table(&self, random: &mut Random) -> RecordBatch {
        let number = |ranks: &Ranks| -> ArrayRef {
            let values = ranks.iter().map(|rank| rank.map(|rank| rank as i64));
            Arc::new(values.collect::<Int64Array>())
        };
        let flags: ArrayRef = Arc::new(BooleanArray::from(self.flags.clone()));
        let columns = [
            ("g", number(&self.groups)),
            ("a", column(random, &self.values[0])),
            ("b", column(random, &self.values[1])),
            ("n", number(&self.values[2])),
            ("f", flags),
        ];
        let columns = columns.map(|(name, array)| (name, array, true));
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }
}

/// A column of a random type.
fn column(random: &mut Random, ranks: &Ranks) -> ArrayRef {
    let width = [1, 12, 13, 60, 300][random.below(5) as usize];
    let text = |rank: u64| format!("{rank:>width$}");
    let ranks = ranks.iter().copied();
    match random.below(7) {
        0 => Arc::new(ranks.map(|r| r.map(|r| r as i32)).collect::<Int32Array>()),
        1 => Arc::new(
            ranks
                .map(|r| r.map(|r| (r as i64) << 20))
                .collect::<Int64Array>(),
        ),
        2 => Arc::new(
            ranks
                .map(|r| r.map(|r| r as f64 / 4.0))
                .collect::<Float64Array>(),
        ),
        3 => Arc::new(ranks.map(|r| r.map(|r| r as i32)).collect::<Date32Array>()),
        4 => Arc::new(
            ranks
                .map(|r| r.map(|r| i128::from(r) << 60))
                .collect::<Decimal128Array>()
                .with_precision_and_scale(38, 2)
                .unwrap(),
        ),
        5 => Arc::new(ranks.map(|r| r.map(text)).collect::<StringArray>()),
        _ => Arc::new(ranks.map(|r| r.map(text)).collect::<StringViewArray>()),
    }
}

fn query(grouped: bool) -> String {
    let functions = "count(DISTINCT a), count(DISTINCT b), sum(DISTINCT n), \
                     count(DISTINCT a) FILTER (WHERE f), count(*), \
                     sum(DISTINCT n) FILTER (WHERE f), max(n), count(DISTINCT n)";
    match grouped {
        true => format!("SELECT g, {functions} FROM t GROUP BY g"),
        false => format!("SELECT CAST(NULL AS BIGINT), {functions} FROM t"),
    }
}

/// The rows of a query by their first column; and how many bytes were written to disk for it.
async fn answer(
    table: &RecordBatch,
    sql: &str,
    memory_bytes: u64,
) -> (BTreeMap<Option<u64>, Vec<Option<i64>>>, u64) {
    let options = SpaceOptions {
        memory_bytes,
        ..SpaceOptions::default()
    };
    let space = Space::open(options).unwrap();
    let builder = SessionStateBuilder::new()
        .with_default_features()
        .with_config(SessionConfig::new().with_target_partitions(PARTITIONS));
    let state = mayfly_exec::install(builder, &space).unwrap().build();
    let context = SessionContext::new_with_state(state);
    register(&context, table);
    let batches = context.sql(sql).await.unwrap().collect().await;
    let batches = batches.unwrap_or_else(|error| panic!("{sql} at {memory_bytes}: {error}"));
    let mut rows = BTreeMap::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let mut cells = batch.columns().iter().map(|column| {
                let column = column.as_primitive::<Int64Type>();
                column.is_valid(row).then(|| column.value(row))
            });
            let group = cells.next().flatten().map(|group| group as u64);
            let twice = rows.insert(group, cells.collect());
            assert!(twice.is_none(), "{sql} at {memory_bytes}: {group:?} twice");
        }
    }
    let written = space.counters().bytes_written;
    drop((batches, context));
    let started = std::time::Instant::now();
    while space.memory_used_bytes() > 0 && started.elapsed().as_secs() < 20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(space.memory_used_bytes(), 0, "{sql} at {memory_bytes}");
    space.verify();
    (rows, written)
}

async fn check(what: &str, data: &Data, table: &RecordBatch) -> u64 {
    let mut least_written = u64::MAX;
    for grouped in [true, false] {
        let (sql, expected) = (query(grouped), data.expected(grouped));
        for memory_bytes in BUDGETS {
            let (found, written) = answer(table, &sql, memory_bytes).await;
            let other = found.iter().find(|(g, row)| expected.get(g) != Some(row));
            assert!(
                found == expected,
                "{what} at {memory_bytes}: {} rows of {}, {other:?}: {sql}",
                found.len(),
                expected.len(),
            );
            if memory_bytes == BUDGETS[0] {
                least_written = least_written.min(written);
            }
        }
    }
    least_written
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_columns_and_groups() {
    for seed in 1..=ROUNDS {
        let mut random = Random::new(seed);
        let data = Data::random(&mut random);
        let table = data.table(&mut random);
        let what = format!("seed {seed}, {} rows", data.groups.len());
        check(&what, &data, &table).await;
    }
}

/// Groups that no split makes smaller, each with more distinct values than the budget holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_and_two_groups_of_many_distinct_values() {
    for groups in [1, 2] {
        let rows = 150_000;
        let column = |salt: u64| -> Ranks {
            let rank =
                |row: u64| (!row.is_multiple_of(50)).then_some(row.wrapping_mul(salt) % 1_000_003);
            (0..rows).map(rank).collect()
        };
        let data = Data {
            groups: (0..rows).map(|row| Some(row % groups)).collect(),
            values: vec![column(7919), column(104_729), column(15_485_863)],
            flags: (0..rows).map(|row| row % 3 == 0).collect(),
        };
        let text = |ranks: &Ranks, width: usize| -> ArrayRef {
            let value = |rank: &Option<u64>| rank.map(|rank| format!("{rank:>width$}"));
            Arc::new(ranks.iter().map(value).collect::<StringViewArray>())
        };
        let mut table = data.table(&mut Random::new(1));
        let mut columns = table.columns().to_vec();
        columns[1] = text(&data.values[0], 40);
        columns[2] = text(&data.values[1], 9);
        let names = ["g", "a", "b", "n", "f"];
        table = RecordBatch::try_from_iter(names.into_iter().zip(columns)).unwrap();
        let written = check(&format!("{groups} groups"), &data, &table).await;
        assert!(written > 0, "the distinct values did not fit");
    }
}

/// Rows that come group by group: the first pages hold one group, the part many.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_groups_that_come_one_by_one() {
    let rows = 120_000;
    let column = |salt: u64| -> Ranks {
        let rank = |row: u64| Some(row.wrapping_mul(salt) % 1_000_003);
        (0..rows).map(rank).collect()
    };
    let group = |row: u64| match row {
        ..40_000 => Some(0),
        _ => Some(row / 5),
    };
    let data = Data {
        groups: (0..rows).map(group).collect(),
        values: vec![column(7919), column(104_729), column(15_485_863)],
        flags: (0..rows).map(|row| row % 3 == 0).collect(),
    };
    let table = data.table(&mut Random::new(2));
    check("sorted groups", &data, &table).await;
}
