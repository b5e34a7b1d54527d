//! joins: equi-joins of every type and shape, at data/limit from 1 to 16, and joins without an
//! equality.
//!
//! Source: Kuiper, Gross, Boncz, Muehleisen, Saving Private Hash Join, VLDB 2025, scaled down
//! fiftyfold (with `--full` twentyfold): size of the build side, payload, skew, and chains of LEFT
//! JOINs whose hash tables share the memory. The data of the limit is the build sides in memory:
//! keys, numbers, and texts as views.
//!
//! Statements add up what the join returns, so that every row and every payload goes through it.
//! Compared are a thousand groups of the same rows, with the least and the largest text of each.

use crate::answer::Comparison;
use crate::args::{BenchArgs, SystemName};
use crate::data::Named;
use crate::data::joins::{Keys, Side, dataset};
use crate::error::BenchError;
use crate::results::Results;
use crate::runner::{Case, Contender, Runner};
use crate::suite::ratios;

const ROWS: u64 = 4_000_000;
const FULL_ROWS: u64 = 10_000_000;
/// What rows have in common that are joined.
const EQUAL: &str = "p.k = b.k";
/// Of so many build rows one is there where all pairs are compared.
const ROWS_PER_ROW_OF_PAIRS: u64 = 400;
/// Bytes of a payload where it is not varied.
const WIDTH: usize = 64;

/// How sides are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Type {
    Inner,
    Left,
    Semi,
    Anti,
    Full,
}

/// What is joined with what.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// A probe side `p` and a build side `b`.
    Two {
        kind: Type,
        on: &'static str,
        build: Side,
        probe: Side,
    },
    /// A probe side `p` with a key for each of the build sides `b1`, `b2` ...
    Chain { builds: Vec<Side>, probe: Side },
}

/// One case, before it has data.
#[derive(Clone, Debug, PartialEq)]
struct Join {
    name: String,
    shape: Shape,
    /// Part of the quick form.
    quick: bool,
}

pub(crate) fn run(
    runner: &mut Runner,
    args: &BenchArgs,
    results: &mut Results,
) -> Result<(), BenchError> {
    let default_rows = if args.full { FULL_ROWS } else { ROWS };
    let ratios = ratios::chosen(args.full);
    let mut names = Vec::new();
    for join in joins(args.rows.unwrap_or(default_rows).max(1000)) {
        let only = runner.settings.only.as_ref();
        // Named cases run whether they are quick or not.
        let chosen = only.map_or(args.full || join.quick, |only| join.name.contains(only));
        if chosen {
            let mut case = case(runner, &join)?;
            case.limits = ratios::limits(case.data_bytes, ratios);
            runner.case(&case, results)?;
            names.push((case.name, case.data_bytes));
        }
    }
    ratios::figures(results, "joins", &names, ratios);
    Ok(())
}

/// The case that `cliff` draws: an inner join of so many build rows.
pub(crate) fn inner(runner: &Runner, rows: u64) -> Result<Case, BenchError> {
    let join = Join {
        name: "join".to_owned(),
        shape: two(Type::Inner, build(rows, WIDTH), probe(rows)),
        quick: true,
    };
    case(runner, &join)
}

fn build(rows: u64, width: usize) -> Side {
    Side {
        rows,
        keys: vec![Keys::Unique],
        width: Some(width),
    }
}

/// Two and a half times the build rows, a fifth of them without a partner.
fn probe(build_rows: u64) -> Side {
    probe_with(build_rows, Keys::Uniform(build_rows / 4 * 5))
}

fn probe_with(build_rows: u64, keys: Keys) -> Side {
    Side {
        rows: build_rows / 2 * 5,
        keys: vec![keys],
        width: None,
    }
}

fn two(kind: Type, build: Side, probe: Side) -> Shape {
    Shape::Two {
        kind,
        on: EQUAL,
        build,
        probe,
    }
}

/// All cases around `rows` build rows.
fn joins(rows: u64) -> Vec<Join> {
    let mut joins = Vec::new();
    let mut add = |quick: bool, name: String, shape: Shape| {
        joins.push(Join { name, shape, quick });
    };
    for (quick, of_rows, label) in [
        (false, rows / 2, "half"),
        (false, rows / 2 * 5, "two and a half times"),
    ] {
        let shape = two(Type::Inner, build(of_rows, WIDTH), probe(rows));
        add(quick, format!("size {label} the build rows"), shape);
    }
    for (quick, width) in [(true, 8), (true, 64), (true, 256)] {
        let shape = two(Type::Inner, build(rows, width), probe(rows));
        add(quick, format!("width {width} bytes"), shape);
    }
    for (quick, kind, label) in [
        (true, Type::Left, "left"),
        (true, Type::Semi, "semi"),
        (false, Type::Anti, "anti"),
        (true, Type::Full, "full"),
    ] {
        let shape = two(kind, build(rows, WIDTH), probe(rows));
        add(quick, format!("type {label}"), shape);
    }
    for (quick, exponent) in [(false, 50), (true, 100)] {
        let probe = probe_with(rows, Keys::Zipf(rows, exponent));
        let shape = two(Type::Inner, build(rows, WIDTH), probe);
        let exponent = f64::from(exponent) / 100.0;
        add(quick, format!("skew zipf {exponent}"), shape);
    }
    let with_keys = |keys| Side {
        keys: vec![keys],
        ..build(rows, WIDTH)
    };
    // A tenth of the build rows have one key, and so have ten probe rows.
    let shape = two(
        Type::Inner,
        with_keys(Keys::UniqueBut(rows / 10)),
        probe_with(rows, Keys::UniformBut(10, rows / 4 * 5)),
    );
    add(true, "skew heavy build key".to_owned(), shape);
    // Half of the probe rows have one key, which one build row has.
    let heavy = Keys::UniformBut(rows / 4 * 5, rows);
    let shape = two(Type::Inner, build(rows, WIDTH), probe_with(rows, heavy));
    add(false, "skew heavy probe key".to_owned(), shape);
    // About five build rows a key.
    let shape = two(
        Type::Inner,
        with_keys(Keys::Uniform(rows / 5)),
        probe_with(rows, Keys::Uniform(rows / 5)),
    );
    add(false, "skew five rows a key".to_owned(), shape);
    for many in 2..=5 {
        let sizes = vec![rows / 2; many];
        add(
            many == 3,
            format!("chain {many} alike"),
            chain(rows, &sizes),
        );
    }
    for (label, kind, on) in [
        ("less", Type::Inner, "p.k < b.k"),
        ("sum", Type::Inner, "(p.k + b.k) % 1000 = 7"),
        ("none", Type::Inner, "p.k + b.k < 0"),
        ("left", Type::Left, "p.k + b.k = 7"),
        ("exists", Type::Semi, "p.k + b.k > 7"),
    ] {
        let of_rows = (rows / ROWS_PER_ROW_OF_PAIRS).max(10);
        let shape = Shape::Two {
            kind,
            on,
            build: build(of_rows, 8),
            probe: probe(of_rows),
        };
        add(false, format!("pairs {label}"), shape);
    }
    let unlike = [rows / 2 * 3, rows / 4, rows / 8, rows / 8];
    add(true, "chain 4 unlike".to_owned(), chain(rows, &unlike));
    joins
}

/// LEFT JOINs of one probe side with builds of so many rows.
fn chain(rows: u64, sizes: &[u64]) -> Shape {
    Shape::Chain {
        builds: sizes.iter().map(|size| build(*size, WIDTH)).collect(),
        probe: Side {
            rows: rows / 2 * 5,
            keys: (sizes.iter().map(|size| Keys::Uniform(size / 4 * 5))).collect(),
            width: None,
        },
    }
}

fn case(runner: &Runner, join: &Join) -> Result<Case, BenchError> {
    let cache = &runner.settings.cache_dir;
    let (probe, builds) = match &join.shape {
        Shape::Two { build, probe, .. } => (probe, vec![("b".to_owned(), build)]),
        Shape::Chain { builds, probe } => {
            let numbered = builds.iter().zip(1..);
            let named = numbered.map(|(build, i)| (format!("b{i}"), build));
            (probe, named.collect())
        }
    };
    let probe = dataset(cache, probe)?;
    let mut tables = vec![Named::new("p", &probe)];
    for (name, build) in builds {
        tables.push(Named::new(&name, &dataset(cache, build)?));
    }
    let contenders = [
        SystemName::Mayfly,
        SystemName::Duckdb,
        SystemName::Datafusion,
    ]
    .map(|system| {
        let (statement, check) = statements(&join.shape, system);
        Contender::new(system, &statement, &check)
    });
    Ok(Case {
        name: join.name.clone(),
        data_bytes: tables[1..].iter().map(|table| table.dataset.bytes).sum(),
        dataset: probe,
        tables,
        contenders: contenders.to_vec(),
        limits: Vec::new(),
        check_every_limit: true,
        comparison: Comparison::Text,
    })
}

/// The statement that is timed and the one whose rows are compared.
fn statements(shape: &Shape, system: SystemName) -> (String, String) {
    let (columns, from) = match shape {
        Shape::Two { kind, on, .. } => two_sides(*kind, on, system),
        Shape::Chain { builds, .. } => chained(builds.len()),
    };
    let Columns {
        key,
        numbers,
        texts,
    } = columns;
    let list = |function: &str, names: &[String]| {
        let items = names.iter().map(|name| function.replace('_', name));
        items.map(|item| format!(", {item}")).collect::<String>()
    };
    let statement = format!(
        "SELECT COUNT(*){}{} FROM {from}",
        list("SUM(_)", &numbers),
        list("SUM(LENGTH(_))", &texts),
    );
    let check = format!(
        "SELECT {key} % 1000, COUNT(*){}{}{} FROM {from} GROUP BY {key} % 1000",
        list("SUM(_)", &numbers),
        list("MIN(_)", &texts),
        list("MAX(_)", &texts),
    );
    (statement, check)
}

/// What a join returns: a key, numbers to add up, and payloads.
struct Columns {
    key: String,
    numbers: Vec<String>,
    texts: Vec<String>,
}

fn two_sides(kind: Type, on: &str, system: SystemName) -> (Columns, String) {
    let columns = |key: &str, numbers: &[&str], text: &str| Columns {
        key: key.to_owned(),
        numbers: numbers.iter().map(|name| (*name).to_owned()).collect(),
        texts: vec![text.to_owned()],
    };
    match kind {
        Type::Inner => (
            columns("p.k", &["p.v", "b.v"], "b.pay"),
            format!("{{p}} JOIN {{b}} ON {on}"),
        ),
        Type::Left => (
            columns("p.k", &["p.v", "b.v"], "b.pay"),
            format!("{{p}} LEFT JOIN {{b}} ON {on}"),
        ),
        Type::Semi | Type::Anti => {
            let not = if kind == Type::Anti { "NOT " } else { "" };
            (
                columns("b.k", &["b.v"], "b.pay"),
                format!("{{b}} WHERE {not}EXISTS (SELECT 1 FROM {{p}} WHERE {on})"),
            )
        }
        // MySQL has no FULL JOIN: there it is the left join and the partnerless of the right.
        Type::Full if system == SystemName::Mayfly => (
            columns("k", &["pv", "bv"], "pay"),
            format!(
                "(SELECT p.k AS k, p.v AS pv, b.v AS bv, b.pay AS pay \
                 FROM {{p}} LEFT JOIN {{b}} ON {on} \
                 UNION ALL SELECT b.k, NULL, b.v, b.pay FROM {{b}} \
                 WHERE NOT EXISTS (SELECT 1 FROM {{p}} WHERE {on})) AS j"
            ),
        ),
        Type::Full => (
            columns("k", &["pv", "bv"], "pay"),
            format!(
                "(SELECT COALESCE(p.k, b.k) AS k, p.v AS pv, b.v AS bv, b.pay AS pay \
                 FROM {{p}} FULL JOIN {{b}} ON {on}) AS j"
            ),
        ),
    }
}

fn chained(many: usize) -> (Columns, String) {
    let mut columns = Columns {
        key: "p.k1".to_owned(),
        numbers: vec!["p.v".to_owned()],
        texts: Vec::new(),
    };
    let mut from = "{p}".to_owned();
    for i in 1..=many {
        from.push_str(&format!(" LEFT JOIN {{b{i}}} ON p.k{i} = b{i}.k"));
        columns.numbers.push(format!("b{i}.v"));
        columns.texts.push(format!("b{i}.pay"));
    }
    (columns, from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_cover_the_families() {
        let joins = joins(1000);
        let mut names: Vec<&str> = joins.iter().map(|join| join.name.as_str()).collect();
        for family in ["size", "width", "type", "skew", "chain", "pairs"] {
            assert!(
                names.iter().any(|name| name.starts_with(family)),
                "{family}"
            );
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), joins.len());
    }

    #[test]
    fn statements_add_up_every_column_of_both_sides() {
        let shape = two(Type::Inner, build(10, 8), probe(10));
        let (statement, check) = statements(&shape, SystemName::Mayfly);
        assert_eq!(
            statement,
            "SELECT COUNT(*), SUM(p.v), SUM(b.v), SUM(LENGTH(b.pay)) \
             FROM {p} JOIN {b} ON p.k = b.k"
        );
        assert_eq!(
            check,
            "SELECT p.k % 1000, COUNT(*), SUM(p.v), SUM(b.v), MIN(b.pay), MAX(b.pay) \
             FROM {p} JOIN {b} ON p.k = b.k GROUP BY p.k % 1000"
        );
    }

    #[test]
    fn a_chain_has_a_key_for_each_build_side() {
        let shape = chain(1000, &[500, 250]);
        let (statement, _) = statements(&shape, SystemName::Duckdb);
        assert!(
            statement
                .ends_with("FROM {p} LEFT JOIN {b1} ON p.k1 = b1.k LEFT JOIN {b2} ON p.k2 = b2.k")
        );
        let Shape::Chain { builds, probe } = shape else {
            unreachable!("a chain was asked for");
        };
        assert_eq!(builds.len(), probe.keys.len());
        assert_eq!(probe.keys, [Keys::Uniform(625), Keys::Uniform(310)]);
    }

    #[test]
    fn only_mayfly_spells_a_full_join_out() {
        let of = |system| statements(&two(Type::Full, build(10, 8), probe(10)), system).0;
        assert!(of(SystemName::Mayfly).contains("UNION ALL"));
        assert!(of(SystemName::Duckdb).contains("FULL JOIN"));
        assert_eq!(of(SystemName::Duckdb), of(SystemName::Datafusion));
    }
}
