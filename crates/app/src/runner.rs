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

use crate::args::{Format, StatsFormat, WideRows};
use crate::config;
use crate::file_columns::FileColumns;
use crate::output::{self, Cells, Layout};
use crate::pager::{Pager, Sheet};
use crate::progress::ProgressLine;
use crate::size::display_bytes;
use crate::terminal::Size;

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
    /// Rows of a result that a prompt shows without a pager; 0 for all.
    pub max_rows: u64,
    /// What becomes of boxes that are wider than the terminal, if the user said so.
    pub wide_rows: Option<WideRows>,
}

impl Options {
    /// How a result is laid out.
    fn layout(&self, pager: Option<&Pager>, vertical: bool) -> Layout {
        // A pager shows wide lines on its own.
        let default = match (self.interactive, pager) {
            (true, None) => WideRows::Vertical,
            _ => WideRows::Whole,
        };
        let terminal = match self.wide_rows.unwrap_or(default) {
            WideRows::Whole => None,
            wide => Size::of(io::stdout()).map(|size| (size.columns, wide)),
        };
        Layout {
            format: self.format,
            vertical,
            names: self.names,
            terminal,
        }
    }
}

/// How the rows of one statement are shown.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// One column per line.
    pub vertical: bool,
    /// All of them, however many there are.
    pub all_rows: bool,
}

impl View {
    /// As many rows as a prompt shows at first.
    pub fn first_rows(vertical: bool) -> Self {
        Self {
            vertical,
            all_rows: false,
        }
    }
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
    // state
    options: Options,
    pager: Option<Pager>,
    session: Session,
    failed_statements: u64,
    /// The last query whose rows a prompt showed, as far as it shows them, and its view.
    last_query: Option<(String, View)>,
    // resources
    output: BufWriter<Stdout>,
    interrupts: Signal,
    runtime: Runtime,
    engine: Engine,
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
    pub fn open(engine: EngineOptions, options: Options, pager: Option<Pager>) -> Result<Self> {
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
            pager,
            session,
            failed_statements: 0,
            last_query: None,
            output: BufWriter::with_capacity(OUTPUT_BYTES, io::stdout()),
            interrupts,
            runtime,
            engine,
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

    /// Shows results in another format from now on.
    pub fn set_format(&mut self, format: Format) {
        self.options.format = format;
    }

    /// Shows results in a pager from now on, or on the terminal.
    pub fn set_pager(&mut self, pager: Option<Pager>) {
        self.pager = pager;
    }

    /// Statements that ended with an error.
    pub fn failed_statements(&self) -> u64 {
        self.failed_statements
    }

    /// Counts an error that no statement made, such as a file that cannot be read.
    pub fn count_failure(&mut self) {
        self.failed_statements += 1;
    }

    /// The last query whose rows a prompt showed, by `source` too, and how; no INSERT and its like.
    /// A query that assigns variables does so again.
    pub fn last_query(&self) -> Option<(String, View)> {
        self.last_query.clone()
    }

    /// Names that may follow in a statement.
    pub fn names_for_completion(&self) -> Vec<String> {
        self.session.names_for_completion()
    }

    /// Reads the columns of files beside the statements.
    pub fn file_columns(&self) -> FileColumns {
        FileColumns::new(self.engine.clone())
    }

    /// Runs one statement to its end and writes its result and figures.
    pub fn run(&mut self, sql: &str, view: View) -> Result<End> {
        let started = Instant::now();
        let mut watch = Watch::new(&self.session, self.options.interactive);
        let rows_max = match self.options.interactive && self.pager.is_none() && !view.all_rows {
            true if self.options.max_rows > 0 => self.options.max_rows,
            _ => u64::MAX,
        };
        let Self {
            runtime,
            session,
            interrupts,
            output,
            options,
            pager,
            last_query,
            ..
        } = self;
        let ended = runtime.block_on(async {
            while interrupts_pending(interrupts) {}
            let outcome = watch.wait(interrupts, session.execute(sql)).await;
            match outcome {
                Some(Ok(Outcome::Rows { columns, batches })) => {
                    if options.interactive && !view.all_rows {
                        *last_query = Some((sql.to_owned(), view));
                    }
                    let mut sheet = Sheet::new(output, pager.as_ref());
                    let layout = options.layout(pager.as_ref(), view.vertical);
                    let mut rows = Rows {
                        layout: &layout,
                        columns: &columns,
                        shown_max: rows_max,
                        read: 0,
                        shown: 0,
                    };
                    let written = rows.write(&mut watch, interrupts, batches, &mut sheet);
                    let written = written.await;
                    watch.hide();
                    let (written, is_whole) = match written {
                        Err(Stop::Output(error)) if sheet.was_ended(&error) => (Ok(()), false),
                        written => (written, true),
                    };
                    let paused = sheet.finish();
                    written?;
                    let elapsed = started.elapsed().saturating_sub(paused?);
                    if options.interactive {
                        write_row_count(output, &rows, is_whole, elapsed)?;
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
        self.end(watch, ended)
    }

    /// Writes what is left, counts an error, and tells how a statement ended.
    fn end(&mut self, mut watch: Watch, ended: Result<(), Stop>) -> Result<End> {
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

    /// Shows the columns of a file, which is named with its quotes, and their types.
    pub fn describe_file(&mut self, file: &str) -> Result<End> {
        let sql = format!("SELECT * FROM {file}");
        let mut watch = Watch::new(&self.session, self.options.interactive);
        let Self {
            runtime,
            session,
            interrupts,
            ..
        } = self;
        let described = runtime.block_on(async {
            while interrupts_pending(interrupts) {}
            watch.wait(interrupts, session.describe(&sql)).await
        });
        watch.hide();
        let ended = match described.unwrap_or_else(|| Err(interrupted())) {
            Ok(columns) => self.write_columns(&columns).map_err(Stop::from),
            Err(error) => Err(Stop::Sql(error)),
        };
        self.end(watch, ended)
    }

    fn write_columns(&mut self, columns: &[ColumnInfo]) -> io::Result<()> {
        let rows = columns.iter().map(|column| {
            let kind = column.column_type.to_string();
            [column.name.clone(), kind]
        });
        let head = ["Field", "Type"];
        let layout = self.options.layout(self.pager.as_ref(), false);
        let mut sheet = Sheet::new(&mut self.output, self.pager.as_ref());
        let written = output::write_texts(&layout, &head, rows, &mut sheet);
        let written = match written {
            Err(error) if sheet.was_ended(&error) => Ok(()),
            written => written,
        };
        sheet.finish()?;
        written
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
                    // What it showed does not matter any more, and ^C stands in it.
                    self.end_line();
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

    /// Removes the line and draws none any more.
    fn end_line(&mut self) {
        self.hide();
        self.line = None;
    }
}

/// The rows of one result on their way to whoever reads them.
struct Rows<'a> {
    layout: &'a Layout,
    columns: &'a [ColumnInfo],
    /// Rows beyond are counted only.
    shown_max: u64,
    read: u64,
    shown: u64,
}

impl Rows<'_> {
    async fn write(
        &mut self,
        watch: &mut Watch,
        interrupts: &mut Signal,
        mut batches: RowStream,
        sheet: &mut Sheet<'_>,
    ) -> Result<(), Stop> {
        let mut writer = Some(output::writer(self.layout, self.columns));
        let mut cells = Cells::default();
        while let Some(batch) = watch
            .wait(interrupts, batches.next())
            .await
            .ok_or_else(|| Stop::Sql(interrupted()))?
        {
            let batch = batch.map_err(Stop::Sql)?;
            watch.hide();
            self.read += batch.num_rows() as u64;
            let fitting = self.read.min(self.shown_max) - self.shown;
            for row in 0..fitting as usize {
                let Some(writer) = &mut writer else {
                    break;
                };
                cells.clear();
                for (array, column) in batch.columns().iter().zip(self.columns) {
                    if render::write_cell(cells.buffer(), array, row, &column.column_type) {
                        cells.end();
                    } else {
                        cells.null();
                    }
                }
                writer.row(&cells, sheet)?;
                self.shown += 1;
            }
            if self.read > self.shown
                && let Some(mut writer) = writer.take()
            {
                writer.finish(sheet)?;
                sheet.flush()?;
            }
            if sheet.is_paged() {
                watch.end_line();
            }
        }
        watch.hide();
        match writer {
            Some(mut writer) => Ok(writer.finish(sheet)?),
            None => Ok(()),
        }
    }
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

fn write_row_count(
    out: &mut dyn Write,
    rows: &Rows<'_>,
    is_whole: bool,
    elapsed: Duration,
) -> io::Result<()> {
    let seconds = elapsed.as_secs_f64();
    let more = rows.read - rows.shown;
    if is_whole && more > 0 {
        writeln!(
            out,
            "... {more} more rows: \\all runs the statement again and shows all, pager pages"
        )?;
    }
    match rows.read {
        _ if !is_whole => writeln!(
            out,
            "{} rows read before the pager ended ({seconds:.2} sec)\n",
            rows.shown
        ),
        0 => writeln!(out, "Empty set ({seconds:.2} sec)\n"),
        1 => writeln!(out, "1 row in set ({seconds:.2} sec)\n"),
        count => writeln!(out, "{count} rows in set ({seconds:.2} sec)\n"),
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
