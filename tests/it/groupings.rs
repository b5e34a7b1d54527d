//! The aggregate in a plain DataFusion program against DataFusion's own: random schemas, NULLs,
//! skew, states and accumulators, DISTINCT aggregates, at several budgets.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array,
    StringViewArray, UInt8Array,
};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use mayfly_space::{Space, SpaceOptions};
use mayfly_testkit::{Random, Zipf};

use crate::partitioned::{PARTITIONS, register};

const ROUNDS: u64 = 40;
const BUDGETS: [u64; 3] = [4 << 20, 8 << 20, 1 << 30];

/// How often keys repeat.
#[derive(Debug, Clone, Copy)]
enum Skew {
    OneGroup,
    AllUnique,
    Zipf,
    Uniform(u64),
}

/// A table with key columns `k0`, `k1`, .. and value columns `v0`, `v1`, ..
struct Data {
    random: Random,
    rows: usize,
    null_share: f64,
    skew: Skew,
}

impl Data {
    fn new(seed: u64) -> Data {
        let mut random = Random::new(seed);
        let skew = match random.below(5) {
            0 => Skew::OneGroup,
            1 => Skew::AllUnique,
            2 => Skew::Zipf,
            _ => Skew::Uniform(random.below(5000) + 1),
        };
        let rows = [0, 1, 3000, 30_000][random.below(4) as usize];
        let null_share = [0.0, 0.05, 0.9][random.below(3) as usize];
        Data {
            random,
            rows,
            null_share,
            skew,
        }
    }

    /// A number for each row: rows with equal numbers have equal keys.
    fn ranks(&mut self) -> Vec<u64> {
        let zipf = Zipf::new(self.rows.max(1), 1.1);
        (0..self.rows)
            .map(|row| match self.skew {
                Skew::OneGroup => 0,
                Skew::AllUnique => row as u64 * 7919 % 1_000_003,
                Skew::Zipf => zipf.sample(&mut self.random) as u64,
                Skew::Uniform(groups) => self.random.below(groups),
            })
            .collect()
    }

    /// A column that is a function of `ranks`, so that a group may span several columns.
    fn column(&mut self, ranks: &[u64]) -> ArrayRef {
        let kind = self.random.below(8);
        let salt = self.random.next_u64();
        let share = self.null_share;
        let longest = [0, 3, 12, 13, 300][self.random.below(5) as usize];
        let cell = |rank: u64| {
            let mut own = Random::new(rank ^ salt);
            if own.chance(share) { None } else { Some(own) }
        };
        let own = |rank: &u64| cell(*rank);
        match kind {
            0 => Arc::new(
                ranks
                    .iter()
                    .map(|r| own(r).map(|mut n| n.below(9) as u8))
                    .collect::<UInt8Array>(),
            ),
            1 => Arc::new(
                ranks
                    .iter()
                    .map(|r| own(r).map(|mut n| n.next_u64() as i32))
                    .collect::<Int32Array>(),
            ),
            2 => Arc::new(
                ranks
                    .iter()
                    .map(|r| own(r).map(|mut n| n.below(1 << 40) as i64))
                    .collect::<Int64Array>(),
            ),
            3 => Arc::new(
                ranks
                    .iter()
                    .map(|r| own(r).map(|mut n| n.below(4096) as f64 / 4.0))
                    .collect::<Float64Array>(),
            ),
            4 => Arc::new(
                ranks
                    .iter()
                    .map(|r| own(r).map(|mut n| n.chance(0.5)))
                    .collect::<BooleanArray>(),
            ),
            5 => Arc::new(
                ranks
                    .iter()
                    .map(|r| own(r).map(|mut n| n.below(40_000) as i32))
                    .collect::<Date32Array>(),
            ),
            6 => Arc::new(
                ranks
                    .iter()
                    .map(|r| own(r).map(|mut n| i128::from(n.below(1 << 50))))
                    .collect::<Decimal128Array>()
                    .with_precision_and_scale(20, 2)
                    .unwrap(),
            ),
            _ => Arc::new(
                ranks
                    .iter()
                    .map(|r| own(r).map(|mut n| n.string(longest)))
                    .collect::<StringViewArray>(),
            ),
        }
    }

    fn table(&mut self, keys: usize, values: usize) -> RecordBatch {
        let ranks = self.ranks();
        let row_numbers: Vec<u64> = (0..self.rows as u64).collect();
        let mut columns: Vec<(String, ArrayRef, bool)> = Vec::new();
        for key in 0..keys {
            columns.push((format!("k{key}"), self.column(&ranks), true));
        }
        for value in 0..values {
            columns.push((format!("v{value}"), self.column(&row_numbers), true));
        }
        let number: ArrayRef = Arc::new(
            row_numbers
                .iter()
                .map(|n| Some((*n % 1000) as i64))
                .collect::<Int64Array>(),
        );
        columns.push(("n".to_owned(), number, true));
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    }

    fn query(&mut self, keys: usize, values: usize) -> String {
        const ANY: [&str; 5] = [
            "count({})",
            "min({})",
            "max({})",
            "count(DISTINCT {})",
            "count(*)",
        ];
        const NUMBER: [&str; 16] = [
            "sum(n)",
            "avg(n)",
            "sum(DISTINCT n)",
            "bit_and(n)",
            "bit_or(n)",
            "bit_xor(n)",
            // Never half way between two results: sums of floats depend on the order of the rows.
            "round(var_pop(n) / 3 + 0.00021, 3)",
            "round(stddev(n) / 3 + 0.00021, 3)",
            "median(n)",
            "min(n)",
            "max(n)",
            "sum(n) FILTER (WHERE n > 500)",
            "count(n) FILTER (WHERE n < 10)",
            "count(DISTINCT n % 7)",
            "bool_and(n > 2)",
            "array_agg(n ORDER BY n)",
        ];
        let mut outputs: Vec<String> = (0..keys).map(|key| format!("k{key}")).collect();
        for _ in 0..self.random.below(5) {
            let aggregate = if self.random.chance(0.5) {
                let column = format!("v{}", self.random.below(values as u64));
                ANY[self.random.below(ANY.len() as u64) as usize].replace("{}", &column)
            } else {
                NUMBER[self.random.below(NUMBER.len() as u64) as usize].to_owned()
            };
            outputs.push(format!("{aggregate} AS a{}", outputs.len()));
        }
        if keys == 0 {
            outputs.push("count(*) AS c".to_owned());
            return format!("SELECT {} FROM t", outputs.join(", "));
        }
        let group: Vec<String> = (1..=keys).map(|position| position.to_string()).collect();
        format!(
            "SELECT {} FROM t GROUP BY {}",
            outputs.join(", "),
            group.join(", ")
        )
    }
}

/// Rows as text, sorted.
fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let mut lines = Vec::new();
    for batch in batches {
        let columns: Vec<ArrayFormatter<'_>> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
            .collect();
        for row in 0..batch.num_rows() {
            let cells: Vec<String> = columns
                .iter()
                .map(|column| column.value(row).to_string())
                .collect();
            lines.push(cells.join("|"));
        }
    }
    lines.sort();
    lines
}

async fn answer(context: &SessionContext, sql: &str) -> Result<Vec<String>, String> {
    let frame = context.sql(sql).await.map_err(|error| error.to_string())?;
    Ok(lines(
        &frame.collect().await.map_err(|error| error.to_string())?,
    ))
}

async fn check(seed: u64) {
    let mut data = Data::new(seed);
    let (keys, values) = (
        data.random.below(4) as usize,
        data.random.below(3) as usize + 1,
    );
    let table = data.table(keys, values);
    let sql = data.query(keys, values);
    let what = format!(
        "seed {seed}, {} rows, {:?}: {sql}",
        table.num_rows(),
        data.skew
    );
    let config = || SessionConfig::new().with_target_partitions(PARTITIONS);
    let stock = SessionContext::new_with_config(config());
    register(&stock, &table);
    let expected = answer(&stock, &sql).await;
    for memory_bytes in BUDGETS {
        let options = SpaceOptions {
            memory_bytes,
            ..SpaceOptions::default()
        };
        let space = Space::open(options).unwrap();
        let builder = SessionStateBuilder::new()
            .with_default_features()
            .with_config(config());
        let state = mayfly_exec::install(builder, &space).unwrap().build();
        let ours = SessionContext::new_with_state(state);
        register(&ours, &table);
        let got = answer(&ours, &sql).await;
        match (&got, &expected) {
            (Ok(got), Ok(expected)) if got == expected => {}
            (Err(_), Err(_)) => {}
            (Ok(got), Ok(expected)) => {
                let other = got.iter().zip(expected).find(|(a, b)| a != b);
                let counts = (got.len(), expected.len());
                panic!("{what} at {memory_bytes} bytes: rows {counts:?}, first: {other:?}");
            }
            (Err(error), _) | (_, Err(error)) => panic!("{what} at {memory_bytes}: {error}"),
        }
        drop(ours);
        let started = std::time::Instant::now();
        while space.memory_used_bytes() > 0 && started.elapsed().as_secs() < 20 {
            tokio::task::yield_now().await;
        }
        assert_eq!(space.memory_used_bytes(), 0, "{what} at {memory_bytes}");
        space.verify();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groupings_are_those_of_the_stock_aggregate() {
    for seed in 1..=ROUNDS {
        check(seed).await;
    }
}
