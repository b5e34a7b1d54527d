//! Runs one statement and writes what it gives.
//!
//! **Owns** the session, the buffer of standard output and the listener for Ctrl-C. **Never** holds
//! more than one batch of a result: rows are written while they are computed.
//!
//! The engine works on threads of its own; this thread waits for batches, for Ctrl-C and for the
//! clock of the progress line.

use std::future::Future;
use std::io::{self, BufWriter, Stdout, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::StreamExt;
use mayfly_session::{
    CancelHandle, ColumnInfo, Engine, EngineOptions, Outcome, ProgressHandle, RowStream, Session,
    render,
};
use mayfly_types::{CharacterSet, MySqlError};
use serde::Serialize;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{Format, StatsFormat};
use crate::config;
use crate::output::{self, Cells, ResultWriter};
use crate::progress::ProgressLine;
use crate::size::display_bytes;

/// Bytes of output collected before a write.
const OUTPUT_BYTES: usize = 64 << 10;
/// Time between two looks at the progress of a statement.
const TICK: Duration = Duration::from_millis(200);

/// How results are shown.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub format: Format,
    pub stats: Option<StatsFormat>,
    /// Column names above rows.
    pub names: bool,
    /// Go on after an error.
    pub force: bool,
    /// Print row counts and times after each statement, for people.
    pub interactive: bool,
}

/// How a statement ended.
#[derive(Debug)]
pub enum End {
    Done,
    Failed(MySqlError),
    /// Ctrl-C ended it.
    Interrupted(MySqlError),
    /// Nobody reads standard output any more.
    OutputClosed,
}

/// A session with its terminal.
pub struct Runner {
    // fixed
    options: Options,
    // state
    session: Session,
    failed_statements: u64,
    // resources
    output: BufWriter<Stdout>,
    interrupts: Signal,
    runtime: Runtime,
    _engine: Engine,
}

/// Why the rows of a statement stopped.
enum Stop {
    Sql(MySqlError),
    Output(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Output(error)
    }
}

impl Runner {
    /// Starts an engine and connects to it.
    pub fn open(engine: EngineOptions, options: Options) -> Result<Self> {
        let engine = config::open(engine)?;
        let session = engine.connect();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("starting the event loop")?;
        let interrupts = runtime
            .block_on(async { signal(SignalKind::interrupt()) })
            .context("listening for Ctrl-C")?;
        Ok(Self {
            options,
            session,
            failed_statements: 0,
            output: BufWriter::with_capacity(OUTPUT_BYTES, io::stdout()),
            interrupts,
            runtime,
            _engine: engine,
        })
    }

    /// The character set in which statements come.
    pub fn client_set(&self) -> CharacterSet {
        self.session.state().client_set
    }

    /// How results are shown.
    pub fn options(&self) -> Options {
        self.options
    }

    /// Statements that ended with an error.
    pub fn failed_statements(&self) -> u64 {
        self.failed_statements
    }

    /// Counts an error that no statement made, such as a file that cannot be read.
    pub fn count_failure(&mut self) {
        self.failed_statements += 1;
    }

    /// Names that may follow in a statement.
    pub fn names_for_completion(&self) -> Vec<String> {
        self.session.names_for_completion()
    }

    /// Runs one statement to its end and writes its result and figures.
    pub fn run(&mut self, sql: &str, vertical: bool) -> Result<End> {
        let started = Instant::now();
        let mut watch = Watch::new(&self.session, self.options.interactive);
        let Self {
            runtime,
            session,
            interrupts,
            output,
            options,
            ..
        } = self;
        let ended = runtime.block_on(async {
            while interrupts_pending(interrupts) {}
            let outcome = watch.wait(interrupts, session.execute(sql)).await;
            match outcome {
                Some(Ok(Outcome::Rows { columns, batches })) => {
                    let writer = output::writer(options.format, vertical, options.names, &columns);
                    let rows =
                        write_rows(&mut watch, interrupts, &columns, batches, writer, output);
                    let rows = rows.await?;
                    if options.interactive {
                        write_row_count(output, rows, started.elapsed())?;
                    }
                    Ok(())
                }
                Some(Ok(Outcome::Done {
                    affected_rows,
                    warnings,
                    info,
                    ..
                })) => {
                    if options.interactive && is_use(sql) {
                        writeln!(output, "Database changed")?;
                    } else if options.interactive {
                        write_done(output, affected_rows, warnings, &info, started.elapsed())?;
                    }
                    Ok(())
                }
                Some(Err(error)) => Err(Stop::Sql(error)),
                None => Err(Stop::Sql(interrupted())),
            }
        });
        watch.hide();
        let flushed = self.output.flush();
        let end = match ended.and(flushed.map_err(Stop::from)) {
            Ok(()) => End::Done,
            Err(Stop::Sql(error)) if watch.interrupts > 0 => End::Interrupted(error),
            Err(Stop::Sql(error)) => End::Failed(error),
            Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                End::OutputClosed
            }
            Err(Stop::Output(error)) => {
                return Err(anyhow::Error::new(error).context("writing standard output"));
            }
        };
        if matches!(end, End::Failed(_) | End::Interrupted(_)) {
            self.failed_statements += 1;
        }
        Ok(end)
    }

    /// Writes the figures of the last statement, if they were asked for.
    pub fn write_stats(&self) {
        let Some(format) = self.options.stats else {
            return;
        };
        let stats = self.session.last_stats();
        let figures = Figures {
            elapsed_ms: (stats.elapsed_ms * 1000.0).round() / 1000.0,
            rows: stats.rows,
            temp_tables: stats.temp_tables,
            temp_disk_tables: stats.temp_disk_tables,
            temp_bytes_written: stats.temp_bytes_written,
            temp_bytes_read: stats.temp_bytes_read,
            peak_memory_bytes: stats.peak_memory_bytes,
        };
        match format {
            StatsFormat::Json => {
                let line = serde_json::to_string(&figures).expect("numbers are valid JSON");
                eprintln!("{line}");
            }
            StatsFormat::Text => eprintln!(
                "-- {:.1} ms, {} rows, {} temp tables ({} on disk), wrote {}, read {}, peak {}",
                figures.elapsed_ms,
                figures.rows,
                figures.temp_tables,
                figures.temp_disk_tables,
                display_bytes(figures.temp_bytes_written),
                display_bytes(figures.temp_bytes_read),
                display_bytes(figures.peak_memory_bytes)
            ),
        }
    }
}

/// What `--stats=json` prints, in this order; its names are part of the command line.
#[derive(Serialize)]
struct Figures {
    elapsed_ms: f64,
    rows: u64,
    temp_tables: u64,
    temp_disk_tables: u64,
    temp_bytes_written: u64,
    temp_bytes_read: u64,
    peak_memory_bytes: u64,
}

/// Waits for the engine while Ctrl-C and the progress line work.
struct Watch {
    cancel: CancelHandle,
    progress: ProgressHandle,
    line: Option<ProgressLine>,
    interrupts: u32,
}

impl Watch {
    fn new(session: &Session, interactive: bool) -> Self {
        Self {
            cancel: session.cancel_handle(),
            progress: session.progress_handle(),
            line: interactive.then(ProgressLine::new),
            interrupts: 0,
        }
    }

    /// Waits for `future`. The first Ctrl-C cancels the statement, which then ends with an error of
    /// its own; the second gives `None`, and the caller drops what still runs.
    async fn wait<T>(
        &mut self,
        interrupts: &mut Signal,
        future: impl Future<Output = T>,
    ) -> Option<T> {
        let mut future = std::pin::pin!(future);
        loop {
            tokio::select! {
                biased;
                _ = interrupts.recv() => {
                    self.interrupts += 1;
                    if self.interrupts > 1 {
                        return None;
                    }
                    self.cancel.cancel();
                }
                value = &mut future => return Some(value),
                () = tokio::time::sleep(TICK) => {
                    if let Some(line) = &mut self.line {
                        line.draw(self.progress.read());
                    }
                }
            }
        }
    }

    fn hide(&mut self) {
        if let Some(line) = &mut self.line {
            line.hide();
        }
    }
}

async fn write_rows(
    watch: &mut Watch,
    interrupts: &mut Signal,
    columns: &[ColumnInfo],
    mut batches: RowStream,
    mut writer: Box<dyn ResultWriter>,
    output: &mut BufWriter<Stdout>,
) -> Result<u64, Stop> {
    let mut cells = Cells::default();
    let mut rows = 0;
    while let Some(batch) = watch
        .wait(interrupts, batches.next())
        .await
        .ok_or_else(|| Stop::Sql(interrupted()))?
    {
        let batch = batch.map_err(Stop::Sql)?;
        watch.hide();
        rows += batch.num_rows() as u64;
        for row in 0..batch.num_rows() {
            cells.clear();
            for (array, column) in batch.columns().iter().zip(columns) {
                if render::write_cell(cells.buffer(), array, row, &column.column_type) {
                    cells.end();
                } else {
                    cells.null();
                }
            }
            writer.row(&cells, output)?;
        }
    }
    watch.hide();
    writer.finish(output)?;
    Ok(rows)
}

/// Whether a Ctrl-C came before the statement; it belongs to nobody.
fn interrupts_pending(interrupts: &mut Signal) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    interrupts.poll_recv(&mut context).is_ready()
}

fn interrupted() -> MySqlError {
    MySqlError::new(mayfly_types::ErrorCode::QueryInterrupted, &[])
}

/// Whether a statement is USE, after which the `mysql` client says only that it worked.
fn is_use(sql: &str) -> bool {
    let word = sql.split_whitespace().next();
    word.is_some_and(|word| word.eq_ignore_ascii_case("use"))
}

fn write_row_count(out: &mut dyn Write, rows: u64, elapsed: Duration) -> io::Result<()> {
    let seconds = elapsed.as_secs_f64();
    match rows {
        0 => writeln!(out, "Empty set ({seconds:.2} sec)\n"),
        1 => writeln!(out, "1 row in set ({seconds:.2} sec)\n"),
        _ => writeln!(out, "{rows} rows in set ({seconds:.2} sec)\n"),
    }
}

fn write_done(
    out: &mut dyn Write,
    affected_rows: u64,
    warnings: u16,
    info: &str,
    elapsed: Duration,
) -> io::Result<()> {
    let plural = |count: u64| if count == 1 { "" } else { "s" };
    write!(
        out,
        "Query OK, {affected_rows} row{} affected",
        plural(affected_rows)
    )?;
    if warnings > 0 {
        write!(out, ", {warnings} warning{}", plural(u64::from(warnings)))?;
    }
    writeln!(out, " ({:.2} sec)", elapsed.as_secs_f64())?;
    if !info.is_empty() {
        writeln!(out, "{info}")?;
    }
    writeln!(out)
}
