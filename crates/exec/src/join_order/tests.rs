use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use datafusion::catalog::MemTable;
use datafusion::common::Result;
use datafusion::physical_plan::{collect, displayable};
use datafusion::prelude::SessionContext;
use mayfly_space::Space;
use mayfly_testkit::Random;

use crate::tests::{config, open, session, sorted};

/// The tables `t0`, `t1`, ... and their rows.
const TABLES: [i64; 5] = [12_000, 3_000, 600, 40, 5];
const QUERIES: u64 = 60;
const MEMORY_BYTES: u64 = 256 << 20;

/// A table: `id` is its key, `a` and `b` refer to keys of any table, some are NULL, `s` is a text.
fn table(rows: i64, random: &mut Random) -> MemTable {
    let mut column = |bound: i64| -> ArrayRef {
        let values = (0..rows).map(|_| {
            let value = random.below(bound as u64) as i64;
            (!random.chance(0.05)).then_some(value)
        });
        Arc::new(values.collect::<Int64Array>())
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("a", column(600)),
        ("b", column(50)),
        ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
        (
            "s",
            Arc::new(StringArray::from_iter_values(
                (0..rows).map(|row| format!("row {}", row % 97)),
            )),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap()
}

fn with_tables(space: &Space, orders_joins: bool) -> SessionContext {
    let mut config = config();
    config.options_mut().optimizer.join_reordering = orders_joins;
    let context = session(space, config);
    let mut random = Random::new(1);
    for (number, rows) in TABLES.into_iter().enumerate() {
        let table = Arc::new(table(rows, &mut random));
        context.register_table(format!("t{number}"), table).unwrap();
    }
    context
}

/// Joined tables some of whose columns have the names of others.
const SWAPPED: &str = "(SELECT y.id, y.b AS a, y.a AS b, y.s FROM t0 y JOIN t2 z ON z.id = y.a) x0";

/// Joins of three tables to six, each to one before it by the key of one of both, with conditions
/// and with tables that only drop rows.
fn query(random: &mut Random) -> String {
    let parts = 3 + random.below(4);
    let mut from = String::new();
    for part in 0..parts {
        if part == 0 {
            from = match random.chance(0.4) {
                true => SWAPPED.to_owned(),
                false => "t0 x0".to_owned(),
            };
            continue;
        }
        let table = [1, 2, 2, 2, 3, 4][random.below(6) as usize];
        if table == 3 && random.chance(0.3) {
            let other = random.below(part);
            from.push_str(&format!(" JOIN t3 x{part} ON x{part}.s = x{other}.s"));
            continue;
        }
        let other = random.below(part);
        let column = ["a", "b"][random.below(2) as usize];
        let mut on = format!("x{part}.id = x{other}.{column}");
        if random.chance(0.3) {
            let other = random.below(part);
            on.push_str(&format!(" AND x{part}.id = x{other}.b"));
        }
        if random.chance(0.3) {
            let other = random.below(part);
            on.push_str(&format!(" AND x{part}.b + x{other}.b > 20"));
        }
        from.push_str(&format!(" JOIN t{table} x{part} ON {on}"));
    }
    let mut terms = Vec::new();
    for part in 0..parts {
        match random.below(8) {
            0 => terms.push(format!("x{part}.s = 'row 3'")),
            1 => terms.push(format!("x{part}.b < 20")),
            2 => terms.push(format!("x{part}.a IS NOT NULL")),
            _ => {}
        }
    }
    let mut part = || format!("x{}", random.below(parts));
    let (one, two, three) = (part(), part(), part());
    match random.below(6) {
        0 => terms.push(format!("{one}.a IN (SELECT id FROM t3 WHERE b < 30)")),
        1 => terms.push(format!(
            "NOT EXISTS (SELECT 1 FROM t2 y WHERE y.id = {one}.a AND y.b < {two}.b)"
        )),
        2 => terms.push(format!(
            "EXISTS (SELECT 1 FROM t1 y WHERE y.a = {one}.a) AND {two}.b IN (SELECT b FROM t4)"
        )),
        3 => terms.push(format!(
            "EXISTS (SELECT 1 FROM t2 y WHERE y.id = {one}.a AND y.a > {one}.b)"
        )),
        _ => {}
    }
    if terms.is_empty() {
        terms.push("1 = 1".to_owned());
    }
    let condition = terms.join(" AND ");
    format!(
        "SELECT {one}.s AS s, {two}.id + {three}.id AS n, {three}.a AS a, x0.id AS id \
         FROM {from} WHERE {condition}"
    )
}

async fn rows(context: &SessionContext, sql: &str) -> Result<(String, Vec<String>)> {
    let plan = context.sql(sql).await?.create_physical_plan().await?;
    let text = displayable(plan.as_ref()).indent(false).to_string();
    Ok((text, sorted(&collect(plan, context.task_ctx()).await?)))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_order_has_the_rows_of_the_written_one() -> Result<()> {
    let space = open(MEMORY_BYTES);
    let (ordered, written) = (with_tables(&space, true), with_tables(&space, false));
    let mut random = Random::new(7);
    let (mut changed, mut full) = (0, 0);
    for _ in 0..QUERIES {
        let sql = query(&mut random);
        let (plan, found) = rows(&ordered, &sql).await?;
        let (as_written, expected) = rows(&written, &sql).await?;
        assert_eq!(found, expected, "{sql}\n{plan}\n{as_written}");
        changed += u64::from(joined_tables(&plan) != joined_tables(&as_written));
        full += u64::from(!expected.is_empty());
    }
    assert!(changed > QUERIES / 4, "{changed} had another order");
    assert!(full > QUERIES / 4, "{full} had rows");
    Ok(())
}

/// The lines of a plan that name joins and their keys.
fn joined_tables(plan: &str) -> Vec<&str> {
    let lines = plan.lines().filter(|line| line.contains("Join"));
    lines
        .map(|line| line.split(" filter=").next().unwrap_or(line))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_drops_most_rows_is_joined_first() -> Result<()> {
    let space = open(MEMORY_BYTES);
    let context = with_tables(&space, true);
    // As written, all rows find their partners before the last table leaves few of them.
    let sql = "SELECT COUNT(*) FROM t0 x JOIN t2 y ON y.id = x.a \
               JOIN t3 z ON z.id = y.b WHERE z.s = 'row 3'";
    let (plan, _) = rows(&context, sql).await?;
    assert_keys_from_last(&plan, ["a@", "b@"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn few_rows_are_joined_as_written() -> Result<()> {
    let space = open(MEMORY_BYTES);
    let (ordered, written) = (with_tables(&space, true), with_tables(&space, false));
    let sql = "SELECT x.id FROM t1 x JOIN t2 y ON y.id = x.a \
               JOIN t4 z ON z.id = y.b WHERE z.s = 'row 3'";
    let (plan, found) = rows(&ordered, sql).await?;
    let (_, expected) = rows(&written, sql).await?;
    assert_eq!(found, expected);
    assert_keys_from_last(&plan, ["b@", "a@"]);
    Ok(())
}

/// Asserts by which keys of the tables on the left joins join, the last one first.
fn assert_keys_from_last(plan: &str, keys: [&str; 2]) {
    let joins = joined_tables(plan);
    assert_eq!(joins.len(), keys.len(), "{plan}");
    for (join, key) in joins.iter().zip(keys) {
        assert!(join.contains(key), "{plan}");
    }
}
