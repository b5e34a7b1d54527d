//! LOAD DATA [LOCAL] INFILE.
//!
//! Fields are read as text and converted as INSERT converts text. What SET assigns is computed from
//! the rows that they make ([`set`]).

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod columns;
mod plan;
mod set;

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use arrow::array::{AsArray, RecordBatch};
use datafusion::scalar::ScalarValue;
use mayfly_exec::TimeSlice;
use mayfly_records::{Delimited, Delimiters, Limits, Record, Step};
use mayfly_sql::file_name::FileKind;
use mayfly_sql::parse;
use mayfly_sql::statement::{FileFormat, LoadData};
use mayfly_table::{Table, Turn};
use mayfly_types::{ErrorCode, Level, MySqlError, Warning};

use self::columns::Columns;
use self::plan::{Absent, Miscount, Plan};
use self::set::Assignments;
use super::Job;
use super::write::Writer;
use crate::client_files::ClientFile;
use crate::errors;
use crate::files::cannot_open;
use crate::files::{RecordMemory, named, of_record};
use crate::outcome::Outcome;
use crate::spooled::{Spool, SpooledFile};

/// Bytes of a file of the server that are read together, and of a client's piece that are looked at
/// together.
const CHUNK_BYTES: usize = 256 << 10;
/// Bytes that are reserved for each byte of a long record: what came, and its fields.
const COPIES: usize = 2;
/// Bytes of the longest terminator: it is compared at each byte that it may begin at.
const TERMINATOR_BYTES_MAX: usize = 255;

/// The file that is loaded.
enum Source {
    /// Of this machine, and room for what is read of it.
    Here(File, Vec<u8>),
    /// Of the client: the piece that is read, and how much of it was.
    Client(ClientFile, Vec<u8>, usize),
    /// What a client has sent.
    Spooled(SpooledFile),
}

impl Source {
    /// The next bytes, none at the end.
    async fn next(&mut self, load: &LoadData) -> Result<&[u8], MySqlError> {
        match self {
            Source::Here(file, buffer) => {
                let read = file.read(buffer);
                let read = read.map_err(|error| cannot_open(&load.path, &error))?;
                Ok(buffer.get(..read).unwrap_or_default())
            }
            Source::Client(file, piece, read) => {
                if *read >= piece.len() {
                    *piece = file.next_piece().await?;
                    *read = 0;
                }
                let left = piece.get(*read..).unwrap_or_default();
                let taken = left.get(..CHUNK_BYTES).unwrap_or(left);
                *read = read.saturating_add(taken.len());
                Ok(taken)
            }
            Source::Spooled(file) => file.next_piece(),
        }
    }
}

impl Job {
    /// The file. That of an embedded engine's client is one of ours.
    ///
    /// That of another process is read to its end before a shared table is changed: others would
    /// wait for the client.
    async fn source(&self, load: &LoadData, table: &Table) -> Result<Source, MySqlError> {
        let disabled = || MySqlError::new(ErrorCode::LocalInfileDisabled, &[]);
        if load.local {
            if !self
                .connection
                .engine
                .globals()
                .variables
                .is_on("local_infile")
            {
                return Err(disabled());
            }
            if let Some(files) = self.connection.client_files() {
                let mut file = files.ask(&load.path).await?;
                if table.turns().is_none() {
                    return Ok(Source::Client(file, Vec::new(), 0));
                }
                let mut spool = Spool::new(&self.running.account);
                loop {
                    let piece = file.next_piece().await?;
                    if piece.is_empty() {
                        return Ok(Source::Spooled(spool.finish()?));
                    }
                    spool.push(&piece)?;
                }
            }
            if !self.file_access().is_local() {
                return Err(disabled());
            }
        }
        let file = self.file_access().open(&load.path);
        let file = file.map_err(|error| not_found(load, &error))?;
        Ok(Source::Here(file, vec![0; CHUNK_BYTES]))
    }

    /// What takes records out of the bytes of the file.
    fn records(&self, load: &LoadData) -> Result<Delimited<RecordMemory>, MySqlError> {
        let limits = Limits {
            record_bytes_max: self.connection.local().variables.record_bytes_max(),
            copies: COPIES,
        };
        Ok(Delimited::new(
            delimiters(&load.format),
            load.skip_lines,
            limits,
            RecordMemory::of(&self.memory_pool()?),
        ))
    }

    pub(crate) async fn load(&self, load: LoadData) -> Result<Outcome, MySqlError> {
        self.connection
            .count(|status| status.loads = status.loads.saturating_add(1));
        // What a client sends it does not send again.
        self.connection.values.lock().took_effect = true;
        if load.format.line_terminator.is_empty() || load.format.field_terminator.is_empty() {
            return Err(errors::not_supported(
                "LOAD DATA without field or line terminator",
            ));
        }
        let terminators = [&load.format.line_terminator, &load.format.field_terminator];
        if terminators.iter().any(|it| it.len() > TERMINATOR_BYTES_MAX) {
            let what = format!("LOAD DATA with a terminator above {TERMINATOR_BYTES_MAX} bytes");
            return Err(errors::not_supported(&what));
        }
        let table = self.table(&load.table)?;
        // What is wrong with the names is told before the client is asked for the file. A column
        // that is not there may be the one that somebody adds meanwhile.
        if Plan::new(&load, &table).is_err() {
            let (table, _turns) = self.table_to_fill(&load.table).await?;
            Plan::new(&load, &table)?;
        }
        let mut source = self.source(&load, &table).await?;
        if let Some(note) = note_of_name(&load) {
            self.connection.warn(note);
        }
        let (table, turns) = self.table_to_fill(&load.table).await?;
        let plan = Plan::new(&load, &table)?;
        let mut records = self.records(&load)?;
        let failed = |error| of_record(error, &load.path);
        let strict = self.connection.local().variables.is_strict() && !ignores(&load);
        let (mut set, mut writer) = self.load_writer(&load, (&table, turns), &plan).await?;
        let characters = load.character_set.unwrap_or_default();
        let now = self.now_for(&plan).await?;
        let mut columns = Columns::new(&plan, characters, now, &self.memory_pool()?);
        let mut record = Record::keeping(plan.absent.len());
        let mut row = 0_u64;
        let mut slice = TimeSlice::begin();
        loop {
            match records.read(&mut record).map_err(failed)? {
                Step::Record => row = row.saturating_add(1),
                Step::End => break,
                Step::NeedsBytes => {
                    // Many bytes may hold no row at all: lines that are skipped, or a long one.
                    slice.share().await;
                    let bytes = source.next(&load).await?;
                    match bytes.is_empty() {
                        true => records.finish(),
                        false => records.push(bytes).map_err(failed)?,
                    }
                    continue;
                }
            }
            if record.is_unterminated() || record.lines() > 1 {
                self.warn_of_open_row(&record, row, &load);
            }
            let miscount = plan.miscount(&record);
            // What is wrong with the values in front of it is told before; too many fields are told
            // when their row is written. A warning that is only counted may come when it likes.
            let in_turn = miscount.filter(|_| strict || !self.connection.values.is_full());
            if let Some(few @ Miscount::TooFew(_)) = in_turn {
                self.append(&plan, &mut columns, (&mut set, &mut writer))
                    .await?;
                self.miscounted(few, row, strict)?;
            }
            columns.push(&record, row)?;
            if columns.is_full() || in_turn == Some(Miscount::TooMany) {
                self.append(&plan, &mut columns, (&mut set, &mut writer))
                    .await?;
            }
            if let Some(miscount) = miscount
                && (in_turn.is_none() || miscount == Miscount::TooMany)
            {
                self.miscounted(miscount, row, strict)?;
            }
        }
        self.append(&plan, &mut columns, (&mut set, &mut writer))
            .await?;
        let lines = records.lines();
        if records.has_skipped_all() && lines > load.skip_lines {
            self.warn_of_skipped_lines(lines, &load);
        }
        let written = writer.commit()?;
        Ok(Outcome::Done {
            affected_rows: written.affected(),
            last_insert_id: written.insert_id,
            warnings: 0,
            info: format!(
                "Records: {row}  Deleted: {}  Skipped: {}  Warnings: ?",
                written.deleted,
                row.saturating_sub(written.inserted)
            ),
        })
    }

    /// What computes the rows of a statement with SET, and what writes them.
    async fn load_writer(
        &self,
        load: &LoadData,
        (table, turns): (&Arc<Table>, Vec<Turn>),
        plan: &Plan,
    ) -> Result<(Option<Assignments>, Writer), MySqlError> {
        let ignore = ignores(load);
        let set = Assignments::begin(self, load, table, plan, ignore).await?;
        let names = match &set {
            Some(set) => set.names(),
            None => plan.names.as_slice(),
        };
        let mut writer = Writer::begin(self, (table, turns), names, ignore).await?;
        if set.is_none() {
            writer.take_fields(names.len());
        }
        if load.replace {
            writer.replace();
        }
        Ok((set, writer))
    }

    /// The time at which the statement began, if a column may want it.
    async fn now_for(&self, plan: &Plan) -> Result<String, MySqlError> {
        if !plan.absent.contains(&Absent::Now) {
            return Ok(String::new());
        }
        let now = parse::parse_expression("CONCAT(CURRENT_TIMESTAMP(6))")?;
        match self.evaluate(&now).await? {
            ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => Ok(text),
            _ => Ok(String::new()),
        }
    }

    /// A quote without an end takes all lines behind it into its field, and a line that does not
    /// end as the statement says all lines of the file.
    fn warn_of_open_row(&self, record: &Record, row: u64, load: &LoadData) {
        let lines = record.lines();
        let what = match record.count() {
            _ if record.is_unterminated() => "field",
            1 => "field",
            _ => "row",
        };
        let takes = match lines {
            0 | 1 => format!("what follows it is one {what}"),
            _ => format!("it takes {lines} lines as one {what}"),
        };
        let why = match record.is_unterminated() {
            true => "has a quote without an end".to_owned(),
            false => format!("does not end with LINES TERMINATED BY {}", terminator(load)),
        };
        self.warn_of_lines(format!("Row {row} of file '{}' {why}: {takes}", load.path));
    }

    /// A line that does not end as the statement says is skipped with all lines of the file.
    fn warn_of_skipped_lines(&self, lines: u64, load: &LoadData) {
        self.warn_of_lines(format!(
            "IGNORE {} LINES leaves out all {lines} lines of file '{}': fewer of them end with \
             LINES TERMINATED BY {}",
            load.skip_lines,
            load.path,
            terminator(load)
        ));
    }

    fn warn_of_lines(&self, text: String) {
        self.connection.warn(Warning {
            level: Level::Warning,
            error: MySqlError::with_message(ErrorCode::TooFewRecords, text),
        });
    }

    /// Writes the rows that have gathered.
    async fn append(
        &self,
        plan: &Plan,
        columns: &mut Columns,
        (set, writer): (&mut Option<Assignments>, &mut Writer),
    ) -> Result<(), MySqlError> {
        if columns.is_empty() {
            return Ok(());
        }
        let (batch, _memory) = columns.finish()?;
        match set {
            None => writer.append(&plan.of_columns(&batch)?).await?,
            Some(set) => set.write(&batch, plan, writer).await?,
        }
        self.set_variables(plan, &batch);
        // Lets a cancelled statement end.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Variables have the fields of the last row then.
    fn set_variables(&self, plan: &Plan, batch: &RecordBatch) {
        let mut local = self.connection.local();
        for (name, place) in &plan.variables {
            let texts = batch.column(*place).as_string_view();
            let last = texts.iter().next_back().flatten();
            let value = match last {
                Some(text) => ScalarValue::Utf8(Some(text.to_owned())),
                None => ScalarValue::Null,
            };
            local.user_variables.insert(name.clone(), value);
        }
    }

    /// A line with too few or too many fields is an error in strict mode.
    fn miscounted(&self, miscount: Miscount, row: u64, strict: bool) -> Result<(), MySqlError> {
        let (code, times) = match miscount {
            Miscount::TooFew(columns) => (ErrorCode::TooFewRecords, columns),
            Miscount::TooMany => (ErrorCode::TooManyRecords, 1),
        };
        if strict {
            return Err(MySqlError::new(code, &[&row]));
        }
        for _ in 0..times {
            self.connection.warn(Warning::new(code, &[&row]));
        }
        Ok(())
    }
}

/// Whether rows that meet others are left out and values adjusted: LOCAL says so too, unless rows
/// are to take the places of others.
fn ignores(load: &LoadData) -> bool {
    load.ignore || load.local && !load.replace
}

/// A note where the name of a file says a format, and the statement reads MySQL's text.
///
/// Tabs divide what is called TSV, too.
fn note_of_name(load: &LoadData) -> Option<Warning> {
    if load.format != FileFormat::default() {
        return None;
    }
    let name = match named(&load.path)? {
        FileKind::Tsv => return None,
        FileKind::Csv => "CSV",
        FileKind::Json => "JSON",
        FileKind::Parquet => "Parquet",
    };
    let path = &load.path;
    let mut text = format!("The file '{path}' is read as tab-separated text, not as {name}");
    if name == "CSV" {
        text.push_str("; FIELDS and LINES say how it is written");
    }
    // Only its client reads a file that a client has.
    if !load.local {
        let advice = format!("; INSERT ... SELECT * FROM '{path}' reads it as {name}");
        text.push_str(&advice);
    }
    Some(Warning {
        level: Level::Note,
        error: MySqlError::with_message(ErrorCode::Unknown, text),
    })
}

/// The terminator of lines as a statement has it.
fn terminator(load: &LoadData) -> String {
    format!("'{}'", load.format.line_terminator.escape_default())
}

/// What stands between fields and lines.
fn delimiters(format: &FileFormat) -> Delimiters {
    let byte = |c: Option<char>| c.and_then(|c| u8::try_from(c).ok());
    Delimiters {
        field_end: format.field_terminator.clone().into_bytes(),
        line_end: format.line_terminator.clone().into_bytes(),
        line_start: format.line_start.clone().into_bytes(),
        enclosure: byte(format.enclosure),
        escape: byte(format.escape),
    }
}

/// The error of a file that cannot be opened: the client's with LOCAL, otherwise the server's.
fn not_found(load: &LoadData, error: &std::io::Error) -> MySqlError {
    let found = cannot_open(&load.path, error);
    if !found.is(ErrorCode::FileNotFound) {
        return found;
    }
    let code = if load.local {
        ErrorCode::ClientFileNotFound
    } else {
        ErrorCode::FileStat
    };
    let number = error.raw_os_error().unwrap_or(0);
    MySqlError::new(code, &[&load.path, &number, &errors::reason(error)])
}
