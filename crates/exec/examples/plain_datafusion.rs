//! A plain DataFusion program that sorts and groups more than its memory holds.
//!
//! From the root of the repository, with 16 MiB and 4 million rows unless told otherwise:
//! `cargo run --release --example plain_datafusion -- [MiB] [rows]`
//!
//! In a program of one's own, its dependencies are those that README.md lists.

use std::time::Instant;

use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use futures::StreamExt;
use mayfly_exec::{install, space_error};
use mayfly_space::{Space, SpaceOptions};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok());
    let memory_mib: u64 = arguments.next().unwrap_or(16);
    let rows: u64 = arguments.next().unwrap_or(4_000_000);

    // The only lines that differ from any other DataFusion program.
    let space = Space::open(SpaceOptions {
        memory_bytes: memory_mib << 20,
        ..SpaceOptions::default()
    })
    .map_err(space_error)?;
    let builder = SessionStateBuilder::new().with_default_features();
    let context = SessionContext::new_with_state(install(builder, &space)?.build());

    // 32 characters in no order, each once: multiplying by an odd number mixes them.
    let key = "lpad(CAST(value * 2654435761 % 4294967296 AS VARCHAR), 32, 'x')";
    let source = format!("(SELECT {key} AS c, value FROM range({rows}))");
    for sql in [
        format!("SELECT c, value FROM {source} ORDER BY c"),
        format!("SELECT c, value FROM {source} ORDER BY c LIMIT 5"),
        format!("SELECT c, count(*) AS n FROM {source} GROUP BY c HAVING count(*) > 1"),
    ] {
        let before = space.counters();
        let start = Instant::now();
        let mut stream = context.sql(&sql).await?.execute_stream().await?;
        let mut count = 0;
        while let Some(batch) = stream.next().await {
            count += batch?.num_rows();
        }
        drop(stream);
        let after = space.counters();
        println!(
            "{count} rows in {:.2} s, {} MiB written to disk, {} MiB read\n  {sql}",
            start.elapsed().as_secs_f64(),
            (after.bytes_written - before.bytes_written) >> 20,
            (after.bytes_read - before.bytes_read) >> 20,
        );
    }
    Ok(())
}
