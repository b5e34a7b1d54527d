//! clients: what connections cost while they rest, and what temporary tables leave behind.
//!
//! Owns: the numbers of connections and rounds, and the figures to be reached. Measures bytes and
//! descriptors, no time: the server is Mayfly's own, and there is no peer.

use std::path::Path;
use std::thread;

use crate::args::BenchArgs;
use crate::error::BenchError;
use crate::report::text::print_sheet;
use crate::results::{Figure, Results, Sheet};
use crate::scripts::wire::Client;
use crate::systems::server::{DATABASE, Serve, Server};
use crate::systems::usage::Usage;

/// Connections that do nothing.
const IDLE: u32 = 1_000;
/// What one of them may cost.
const IDLE_BYTES: u32 = 64 << 10;
/// Connections that make and drop tables, and the rounds of all of them together.
const BUSY: u32 = 64;
const ROUNDS: u32 = 10_000;
/// What the server's memory may differ by when they are gone: heaps of its threads.
const HEAP_BYTES: u32 = 8 << 20;
const MEMORY_BYTES: u64 = 256 << 20;

pub(crate) fn run(
    args: &BenchArgs,
    temp_dir: &Path,
    results: &mut Results,
) -> Result<(), BenchError> {
    let serve = Serve {
        memory_bytes: MEMORY_BYTES,
        threads: args.threads,
        temp_io: None,
        temp_dir,
        files: None,
    };
    let found = measure(&serve).map_err(BenchError::Setup)?;
    let mut sheet = Sheet::new("clients", &["what", "found", "at most"]);
    for figure in &found {
        sheet.rows.push(vec![
            figure.what.clone(),
            format!("{:.0}", figure.found),
            figure
                .at_most
                .map_or_else(String::new, |most| format!("{most:.0}")),
        ]);
    }
    print_sheet(&sheet);
    results.sheets.push(sheet);
    results.figures.extend(found);
    Ok(())
}

fn measure(serve: &Serve<'_>) -> Result<Vec<Figure>, String> {
    let server = Server::serve(serve)?;
    let mut watching = Client::connect(&server.socket, DATABASE)?;
    watching.query("SET GLOBAL max_connections = 2000")?;
    // What the first clients bring into memory is there for all of them.
    for _ in 0..BUSY {
        rounds(&server, 3)?;
    }
    let before = Usage::of(&server, &mut watching)?;
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        let mut client = Client::connect(&server.socket, DATABASE)?;
        client.query("SELECT 1")?;
        idle.push(client);
    }
    let beside = Usage::of(&server, &mut watching)?;
    let each = beside.memory_bytes.saturating_sub(before.memory_bytes) / u64::from(IDLE);
    drop(idle);
    let before = Usage::when_alone(&server, &mut watching)?;
    thread::scope(|scope| -> Result<(), String> {
        let busy = || scope.spawn(|| rounds(&server, ROUNDS / BUSY));
        let clients: Vec<_> = (0..BUSY).map(|_| busy()).collect();
        for client in clients {
            client
                .join()
                .map_err(|_| "a client panicked".to_owned())??;
        }
        Ok(())
    })?;
    let after = Usage::when_alone(&server, &mut watching)?;
    let more = |after: u64, before: u64| after.saturating_sub(before) as f64;
    let what = |of: &str| format!("{of} after {ROUNDS} rounds of {BUSY} clients");
    Ok(vec![
        Figure::at_most(
            format!("bytes of each of {IDLE} idle connections"),
            each as f64,
            Some(IDLE_BYTES.into()),
        ),
        Figure::at_most(
            what("more bytes of memory"),
            more(after.memory_bytes, before.memory_bytes),
            Some(HEAP_BYTES.into()),
        ),
        Figure::at_most(
            what("more descriptors"),
            more(after.descriptors, before.descriptors),
            Some(0.0),
        ),
        Figure::at_most(
            what("bytes of the budget"),
            more(after.budget_bytes, before.budget_bytes),
            Some(0.0),
        ),
        Figure::at_most(
            what("bytes of temp space"),
            after.space_bytes as f64,
            Some(0.0),
        ),
    ])
}

/// One client that makes a table, fills, reads and drops it, again and again.
fn rounds(server: &Server, count: u32) -> Result<(), String> {
    let mut client = Client::connect(&server.socket, DATABASE)?;
    for round in 0..count {
        client.query("CREATE TEMPORARY TABLE t (id INT PRIMARY KEY, word VARCHAR(200))")?;
        client.query(&format!(
            "INSERT INTO t VALUES (1, '{round}'), (2, REPEAT('x', 100)), (3, NULL)"
        ))?;
        let rows = client.query("SELECT LENGTH(word) FROM t WHERE id > 1 ORDER BY id")?;
        if rows != ["100", "NULL"] {
            return Err(format!("{rows:?}"));
        }
        client.query("DROP TEMPORARY TABLE t")?;
    }
    Ok(())
}
