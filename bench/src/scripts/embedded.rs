//! The engine inside a program of one's own: this program, as a child.
//!
//! Owns: the child's side of the driven protocol (see `process`). Statements are read in pieces,
//! and only their execution is timed.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use futures::StreamExt;
use mayfly_session::{Engine, EngineOptions, Outcome, Session, render};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use crate::error::{BenchError, Context, data_error};

/// Statements that are read before they are run.
const PIECE: u64 = 1024;

/// What the child is asked to open.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) memory_bytes: u64,
    pub(super) threads: usize,
    pub(super) temp_dir: PathBuf,
}

/// Runs statements from standard input until it ends.
///
/// # Errors
/// What the engine answered to the first statement that failed.
pub(crate) fn run(request: &str) -> Result<(), BenchError> {
    let request: Request =
        serde_json::from_str(request).map_err(data_error("reading the request"))?;
    let engine = Engine::open(EngineOptions {
        memory_bytes: request.memory_bytes,
        threads: request.threads,
        temp_dirs: vec![request.temp_dir],
        ..EngineOptions::default()
    })
    .map_err(data_error("opening the engine"))?;
    let mut session = engine.connect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(data_error("starting the event loop"))?;
    let mut input = std::io::stdin().lock();
    let reading = || "reading statements".to_owned();
    let mut line = String::new();
    loop {
        line.clear();
        if input.read_line(&mut line).context(reading)? == 0 {
            return Ok(());
        }
        let answer = if let Some(count) = line.strip_prefix("run ") {
            let mut left: u64 = count
                .trim_end()
                .parse()
                .map_err(data_error("reading a count"))?;
            let mut elapsed = Duration::ZERO;
            let mut piece = Vec::new();
            while left > 0 {
                piece.clear();
                for _ in 0..left.min(PIECE) {
                    let mut statement = String::new();
                    input.read_line(&mut statement).context(reading)?;
                    piece.push(statement);
                }
                left -= left.min(PIECE);
                let start = Instant::now();
                for statement in &piece {
                    execute(&runtime, &mut session, statement.trim_end())?;
                }
                elapsed += start.elapsed();
            }
            elapsed.as_nanos().to_string()
        } else {
            line.clear();
            input.read_line(&mut line).context(reading)?;
            execute(&runtime, &mut session, line.trim_end())?
        };
        let mut output = std::io::stdout().lock();
        writeln!(output, "{answer}")
            .and_then(|()| output.flush())
            .context(|| "writing an answer".to_owned())?;
    }
}

/// Runs a statement; its last row as tab-separated text, if it has any.
fn execute(
    runtime: &Runtime,
    session: &mut Session,
    statement: &str,
) -> Result<String, BenchError> {
    runtime.block_on(async {
        let outcome = session.execute(statement).await;
        let outcome = outcome.map_err(data_error("Mayfly"))?;
        let Outcome::Rows {
            columns,
            mut batches,
        } = outcome
        else {
            return Ok(String::new());
        };
        let mut text = Vec::new();
        while let Some(batch) = batches.next().await {
            let batch = batch.map_err(data_error("Mayfly"))?;
            for row in 0..batch.num_rows() {
                text.clear();
                for (index, (array, column)) in batch.columns().iter().zip(&columns).enumerate() {
                    if index > 0 {
                        text.push(b'\t');
                    }
                    if !render::write_cell(&mut text, array, row, &column.column_type) {
                        text.extend_from_slice(b"NULL");
                    }
                }
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    })
}
