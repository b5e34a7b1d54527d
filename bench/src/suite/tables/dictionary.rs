//! Create and drop in three layers: the dictionary, a prepared statement, SQL text.

use std::sync::Arc;

use mayfly_session::{Engine, EngineOptions, Session};
use mayfly_space::AccountOptions;
use mayfly_table::{Definition, Dictionary, Table, TemporaryTables};
use mayfly_types::MySqlError;
use tokio::runtime::Runtime;

use super::Bench;
use super::heap::definition;
use super::lines::{Goal, Line, Rounds};
use crate::error::{BenchError, data_error};

const SECTION: &str = "create and drop";
/// Two hash maps and the allocations of an empty table, no system call.
const FLOOR_NS: f64 = 300.0;
/// At most that long through the dictionary alone, ...
const DICTIONARY_NS: f64 = 2_000.0;
/// ... and through text half of what MariaDB's best engine takes on such a machine, wire included.
const TEXT_NS: f64 = 15_500.0;
const PAIRS: u64 = 100_000;
const STATEMENTS: u64 = 10_000;

pub(super) fn run(bench: &mut Bench<'_>) -> Result<(), BenchError> {
    if !bench.wants(SECTION) {
        return Ok(());
    }
    let mut lines = calls(bench).map_err(data_error("creating tables"))?;
    lines.extend(statements(bench)?);
    bench.keep(SECTION, lines);
    Ok(())
}

fn calls(bench: &mut Bench<'_>) -> Result<Vec<Line>, mayfly_table::Error> {
    let space = bench.space(16 << 20)?;
    let mut lines = Vec::new();
    let shared = Dictionary::new();
    shared.create_database("d")?;
    let mut temporary = TemporaryTables::new();
    let mut rounds = Rounds {
        machine: &mut bench.machine,
        count: bench.rounds,
        space: None,
    };
    let empty = |definition: &Arc<Definition>| {
        let limits = AccountOptions::default();
        Arc::new(Table::of("t", Arc::clone(definition), space.root(), limits))
    };
    for keys in [0, 1, 16] {
        let definition = Arc::new(definition(keys));
        let what = format!("shared, {keys} keys, dictionary");
        let line = rounds.line(
            &what,
            PAIRS,
            |_| FLOOR_NS,
            || {
                for _ in 0..PAIRS {
                    shared.create_table("d", empty(&definition))?;
                    shared.drop_table("d", "t")?;
                }
                Ok::<_, mayfly_table::Error>(())
            },
        )?;
        lines.push(line.with_goal(Goal::Nanoseconds(DICTIONARY_NS)));
        let what = format!("temporary, {keys} keys, dictionary");
        let line = rounds.line(
            &what,
            PAIRS,
            |_| FLOOR_NS,
            || {
                for _ in 0..PAIRS {
                    temporary.create("d", empty(&definition))?;
                    temporary.drop_table("d", "t")?;
                }
                Ok::<_, mayfly_table::Error>(())
            },
        )?;
        lines.push(line.with_goal(Goal::Nanoseconds(DICTIONARY_NS)));
    }
    Ok(lines)
}

/// Through a session in this process: no pipe, no wire.
fn statements(bench: &mut Bench<'_>) -> Result<Vec<Line>, BenchError> {
    let engine = Engine::open(EngineOptions {
        memory_bytes: 64 << 20,
        threads: bench.threads,
        temp_dirs: vec![bench.temp_dir.clone()],
        ..EngineOptions::default()
    });
    let engine = engine.map_err(data_error("opening the engine"))?;
    let mut session = engine.connect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(data_error("starting the event loop"))?;
    let mut lines = Vec::new();
    for keys in [0, 1] {
        let key = if keys == 0 { "" } else { ", PRIMARY KEY (id)" };
        let columns = "id BIGINT NOT NULL, kind INT NOT NULL, amount BIGINT NOT NULL, \
                       price DOUBLE NOT NULL";
        let create = format!("CREATE TEMPORARY TABLE t ({columns}{key})");
        let pair = [create.as_str(), "DROP TEMPORARY TABLE t"];
        let made = layers(bench, &runtime, &mut session, keys, pair);
        lines.extend(made.map_err(data_error("running statements"))?);
    }
    Ok(lines)
}

fn layers(
    bench: &mut Bench<'_>,
    runtime: &Runtime,
    session: &mut Session,
    keys: usize,
    [create, drop]: [&str; 2],
) -> Result<Vec<Line>, MySqlError> {
    let mut rounds = Rounds {
        machine: &mut bench.machine,
        count: bench.rounds,
        space: None,
    };
    let prepared = runtime.block_on(async {
        let create = session.prepare(create).await?;
        Ok::<_, MySqlError>([create, session.prepare(drop).await?])
    })?;
    let what = format!("temporary, {keys} keys, prepared");
    let by_handle = rounds.line(
        &what,
        STATEMENTS,
        |_| FLOOR_NS,
        || {
            runtime.block_on(async {
                for _ in 0..STATEMENTS {
                    for statement in &prepared {
                        session.execute(&statement.with(&[])?).await?;
                    }
                }
                Ok::<_, MySqlError>(())
            })
        },
    )?;
    let what = format!("temporary, {keys} keys, SQL text");
    let by_text = rounds.line(
        &what,
        STATEMENTS,
        |_| FLOOR_NS,
        || {
            runtime.block_on(async {
                for _ in 0..STATEMENTS {
                    session.execute(create).await?;
                    session.execute(drop).await?;
                }
                Ok::<_, MySqlError>(())
            })
        },
    )?;
    let goal = Goal::Nanoseconds(TEXT_NS);
    Ok(vec![by_handle.with_goal(goal), by_text.with_goal(goal)])
}
