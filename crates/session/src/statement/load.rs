//! LOAD DATA [LOCAL] INFILE.
//!
//! Fields are read as text and converted as INSERT converts text. SET and user variables are
//! computed by a query over each batch of the file.

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod columns;

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem, SetExpr};
use mayfly_exec::TimeSlice;
use mayfly_records::{Delimited, Delimiters, Limits, Record, Step};
use mayfly_sql::parse;
use mayfly_sql::statement::{FileFormat, LoadData, LoadTarget, Statement};
use mayfly_sql::walk::change_expressions;
use mayfly_table::{Column, Table};
use mayfly_types::{ColumnType, ErrorCode, Level, MySqlError, Warning};

use self::columns::Columns;
use super::Job;
use super::defaults::Fallback;
use super::write::Writer;
use crate::client_files::ClientFile;
use crate::errors;
use crate::files::{RecordMemory, cannot_open, of_record};
use crate::outcome::Outcome;
use crate::spooled::{Spool, SpooledFile};

/// Bytes of a file of the server that are read together, and of a client's piece that are looked at
/// together.
const CHUNK_BYTES: usize = 256 << 10;
/// Bytes that are reserved for each byte of a long record: what came, and its fields.
const COPIES: usize = 2;
/// Bytes of the longest terminator: it is compared at each byte that it may begin at.
const TERMINATOR_BYTES_MAX: usize = 255;
/// The name under which a batch is queried.
const BATCH: &str = "load data";

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
        let ignore = load.local || load.ignore;
        // What is wrong with the names is told before the client is asked for the file. A column
        // that is not there may be the one that somebody adds meanwhile.
        if Plan::new(&load, &table).is_err() {
            let (table, _turns) = self.table_to_fill(&load.table).await?;
            Plan::new(&load, &table)?;
        }
        let mut source = self.source(&load, &table).await?;
        let (table, turns) = self.table_to_fill(&load.table).await?;
        let plan = Plan::new(&load, &table)?;
        let mut records = self.records(&load)?;
        let failed = |error| of_record(error, &load.path);
        // LOCAL alone leaves out rows that meet others, unless they are to take their places.
        let to = (&table, turns);
        let mut writer = Writer::begin(self, to, &plan.names, ignore).await?;
        writer.take_fields(plan.fields);
        if load.replace {
            writer.replace();
        }
        let strict = self.connection.local().variables.is_strict() && !ignore;
        let set = load.character_set.unwrap_or_default();
        let now = self.now_for(&plan).await?;
        let mut columns = Columns::new(&plan, set, now, &self.memory_pool()?);
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
                self.append(&plan, &mut columns, &mut writer).await?;
                self.miscounted(few, row, strict)?;
            }
            columns.push(&record, row)?;
            if columns.is_full() || in_turn == Some(Miscount::TooMany) {
                self.append(&plan, &mut columns, &mut writer).await?;
            }
            if let Some(miscount) = miscount
                && (in_turn.is_none() || miscount == Miscount::TooMany)
            {
                self.miscounted(miscount, row, strict)?;
            }
        }
        self.append(&plan, &mut columns, &mut writer).await?;
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
        writer: &mut Writer,
    ) -> Result<(), MySqlError> {
        if columns.is_empty() {
            return Ok(());
        }
        let (batch, _memory) = columns.finish()?;
        let batch = match &plan.query {
            None => batch,
            Some(query) => self.query_over(query.clone(), BATCH, batch).await?,
        };
        writer.append(&batch).await?;
        // Lets a cancelled statement end.
        tokio::task::yield_now().await;
        Ok(())
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

/// A line that has not as many fields as there are targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Miscount {
    /// So many columns get no field; each is told.
    TooFew(usize),
    TooMany,
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

/// What the fields of a file become.
struct Plan {
    /// One text column for each field.
    schema: SchemaRef,
    /// What each field is where a line ends before it.
    absent: Vec<Absent>,
    /// The columns of the table that are written, in the order of the (computed) batch.
    names: Vec<String>,
    /// How many of them, the first ones, are filled by fields as they are.
    fields: usize,
    /// How they are computed, unless the fields are the columns.
    query: Option<datafusion::sql::sqlparser::ast::Query>,
}

impl Plan {
    fn new(load: &LoadData, table: &Table) -> Result<Plan, MySqlError> {
        let targets: Vec<LoadTarget> = if load.targets.is_empty() {
            let columns = table.columns().iter();
            columns
                .filter(|column| !column.is_invisible)
                .map(|column| LoadTarget::Column(column.name.clone()))
                .collect()
        } else {
            load.targets.clone()
        };
        let last = last_mentions(&targets);
        let mut fields = Vec::with_capacity(targets.len());
        let mut absent = Vec::with_capacity(targets.len());
        for (index, (target, is_last)) in targets.iter().zip(&last).enumerate() {
            let mut of_target = Absent::Variable;
            fields.push(match target {
                _ if !is_last => Field::new(format!("field {index}"), DataType::BinaryView, true),
                LoadTarget::Column(name) => {
                    let lower = name.to_lowercase();
                    let column = table
                        .columns()
                        .iter()
                        .find(|column| column.name.to_lowercase() == lower)
                        .ok_or_else(|| {
                            MySqlError::new(ErrorCode::UnknownColumn, &[name, &"field list"])
                        })?;
                    of_target = Absent::of(column)?;
                    let binary = column.column_type.is_binary();
                    let data_type = if binary {
                        DataType::BinaryView
                    } else {
                        DataType::Utf8View
                    };
                    Field::new(lower, data_type, true)
                }
                LoadTarget::Variable(name) => {
                    Field::new(variable_column(name), DataType::Utf8View, true)
                }
            });
            absent.push(of_target);
        }
        let schema = Arc::new(Schema::new(fields));
        let plain = load.assignments.is_empty()
            && targets
                .iter()
                .zip(&last)
                .all(|(target, last)| *last && matches!(target, LoadTarget::Column(_)));
        let assigned: HashSet<String> = load
            .assignments
            .iter()
            .map(|(column, _)| column.to_lowercase())
            .collect();
        let mut names: Vec<String> = targets
            .iter()
            .zip(&last)
            .filter_map(|(target, last)| match target {
                LoadTarget::Column(name) if *last && !assigned.contains(&name.to_lowercase()) => {
                    Some(name.clone())
                }
                _ => None,
            })
            .collect();
        let fields = names.len();
        if plain {
            return Ok(Plan {
                schema,
                absent,
                names,
                fields,
                query: None,
            });
        }
        let mut items: Vec<Expr> = names
            .iter()
            .map(|name| Expr::Identifier(Ident::new(name.to_lowercase())))
            .collect();
        let variables: HashSet<String> = targets
            .iter()
            .filter_map(|target| match target {
                LoadTarget::Variable(name) => Some(name.to_lowercase()),
                LoadTarget::Column(_) => None,
            })
            .collect();
        for (column, expression) in &load.assignments {
            let definition = table.definition();
            let place = definition.column(column);
            let place = place.and_then(|place| definition.columns.get(place));
            if place.is_some_and(|place| place.generated.is_some()) {
                let code = ErrorCode::GeneratedValue;
                return Err(MySqlError::new(code, &[column, &table.name()]));
            }
            let mut expression = expression.clone();
            change_expressions(&mut expression, &mut |expr| {
                variables_as_columns(expr, &variables);
            });
            names.push(column.clone());
            items.push(expression);
        }
        let (statement, _) = parse::parse(&format!("SELECT 1 FROM '{BATCH}'"))?;
        let Statement::Query(mut query) = statement else {
            return Err(MySqlError::new(ErrorCode::Unknown, &[]));
        };
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection = items
                .into_iter()
                .enumerate()
                .map(|(index, expr)| SelectItem::ExprWithAlias {
                    expr,
                    alias: Ident::new(format!("value {index}")),
                })
                .collect();
        }
        Ok(Plan {
            schema,
            absent,
            names,
            fields,
            query: Some(*query),
        })
    }

    /// Whether a line has too few or too many fields; variables need none.
    fn miscount(&self, record: &Record) -> Option<Miscount> {
        let missing = self.absent.get(record.count()..);
        let Some(missing) = missing else {
            return Some(Miscount::TooMany);
        };
        let columns = missing.iter().filter(|it| **it != Absent::Variable);
        match columns.count() {
            0 => None,
            columns => Some(Miscount::TooFew(columns)),
        }
    }
}

/// What a target is where a line ends before its field, and the last of these where its field is
/// NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absent {
    /// NULL, and nobody is told.
    Variable,
    /// NULL: that is the default, or the type has no zero.
    Null,
    /// The zero of the type, whatever the default is.
    Zero(&'static str),
    /// The time at which the statement began.
    Now,
}

impl Absent {
    /// That of a column.
    ///
    /// **Source**: `Field::load_data_set_no_data` of MariaDB, `field.cc`: a column keeps a default
    /// of NULL, and is reset otherwise.
    fn of(column: &Column) -> Result<Absent, MySqlError> {
        let default = Fallback::of(column)?;
        let is_null = matches!(&default, Fallback::Value(value) if value.is_null());
        if is_null && !column.is_auto_increment {
            return Ok(Absent::Null);
        }
        Ok(match &column.column_type {
            ColumnType::Timestamp { .. } if !column.is_nullable => Absent::Now,
            // There are no zero dates.
            ColumnType::Date | ColumnType::DateTime { .. } | ColumnType::Timestamp { .. } => {
                Absent::Null
            }
            ColumnType::Time { .. } => Absent::Zero("00:00:00"),
            ColumnType::Year => Absent::Zero("0000"),
            ColumnType::Bit { .. } => Absent::Zero("\0"),
            column_type if column_type.is_numeric() => Absent::Zero("0"),
            _ => Absent::Zero(""),
        })
    }
}

/// For each target, whether no later one names the same column or variable: the last value wins.
fn last_mentions(targets: &[LoadTarget]) -> Vec<bool> {
    let mut later = HashSet::new();
    let mut last: Vec<bool> = targets
        .iter()
        .rev()
        .map(|target| {
            later.insert(match target {
                LoadTarget::Column(name) => (false, name.to_lowercase()),
                LoadTarget::Variable(name) => (true, name.to_lowercase()),
            })
        })
        .collect();
    last.reverse();
    last
}

fn variable_column(name: &str) -> String {
    format!("variable {}", name.to_lowercase())
}

/// Reads the variables that the file fills from the batch.
fn variables_as_columns(expr: &mut Expr, variables: &HashSet<String>) {
    if let Expr::Identifier(ident) = expr
        && let Some(name) = ident.value.strip_prefix('@')
        && variables.contains(&name.to_lowercase())
    {
        *ident = Ident::with_quote('`', variable_column(name));
    }
}
