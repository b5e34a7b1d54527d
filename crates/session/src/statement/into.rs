//! SELECT ... INTO OUTFILE, INTO DUMPFILE and INTO variables.
//!
//! Owns the new file: it must not exist before, and it is gone where the statement fails.

use std::io::{ErrorKind, Write};

use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use mayfly_sql::statement::{FileFormat, Into};
use mayfly_types::{CharacterSet, ErrorCode, MySqlError, Warning};

use super::Job;
use super::evaluate::user_value;
use super::query::Ready;
use crate::errors;
use crate::export::Export;
use crate::file_access::CreatedFile;
use crate::outcome::Outcome;
use crate::render;

/// Bytes that are written together.
const BUFFER_BYTES: usize = 256 << 10;

impl Job {
    /// Runs a query whose rows no client sees.
    pub(crate) async fn query_into(
        &self,
        query: ast::Query,
        into: Into,
    ) -> Result<Outcome, MySqlError> {
        self.limit_time();
        match into {
            Into::OutFile {
                path,
                character_set,
                format,
            } => {
                let set = character_set.unwrap_or_default();
                self.write_rows(query, &path, set, &format).await
            }
            Into::DumpFile(path) => self.dump_row(query, &path).await,
            Into::Variables(names) => self.assign_row(query, names).await,
        }
    }

    async fn write_rows(
        &self,
        query: ast::Query,
        path: &str,
        set: CharacterSet,
        format: &FileFormat,
    ) -> Result<Outcome, MySqlError> {
        if format.field_terminator.is_empty() && format.enclosure.is_none() {
            return Err(errors::not_supported(
                "INTO OUTFILE with fields of fixed size",
            ));
        }
        let ready = self.ready_into(query).await?;
        let export = Export::new(format, set, ready.columns(self));
        let mut file = NewFile::create(self, path)?;
        if export.is_end_ambiguous() {
            self.connection
                .warn(Warning::new(ErrorCode::AmbiguousFieldTerminator, &[]));
        }
        let mut rows = 0;
        let mut bytes = Vec::new();
        let mut stream = self.rows(&ready)?;
        drop(ready);
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|error| errors::from_plan(&error))?;
            for row in 0..batch.num_rows() {
                export.write_row(&mut bytes, &batch, row);
                if bytes.len() >= BUFFER_BYTES {
                    file.write(&bytes)?;
                    bytes.clear();
                }
            }
            rows += batch.num_rows() as u64;
            // Lets a cancelled statement end.
            tokio::task::yield_now().await;
        }
        self.check_interrupted()?;
        file.write(&bytes)?;
        file.keep();
        Ok(self.found(rows))
    }

    async fn dump_row(&self, query: ast::Query, path: &str) -> Result<Outcome, MySqlError> {
        let ready = self.ready_into(query).await?;
        let columns = ready.columns(self);
        let mut file = NewFile::create(self, path)?;
        let (first, has_more) = self.first_row(&ready).await?;
        let Some(batch) = first else {
            file.keep();
            return Ok(self.found(0));
        };
        if has_more {
            return Err(MySqlError::new(ErrorCode::TooManyRows, &[]));
        }
        let mut bytes = Vec::new();
        for (array, column) in batch.columns().iter().zip(&columns) {
            render::write_cell(&mut bytes, array, 0, &column.column_type);
        }
        file.write(&bytes)?;
        file.keep();
        Ok(self.found(1))
    }

    async fn assign_row(
        &self,
        query: ast::Query,
        names: Vec<String>,
    ) -> Result<Outcome, MySqlError> {
        let ready = self.ready_into(query).await?;
        if ready.plan.schema().fields().len() != names.len() {
            return Err(MySqlError::new(ErrorCode::ColumnsInUnion, &[]));
        }
        let (first, has_more) = self.first_row(&ready).await?;
        let Some(batch) = first else {
            self.connection.warn(Warning::new(ErrorCode::NoData, &[]));
            return Ok(self.found(0));
        };
        let columns = ready.columns(self);
        let cells = batch.columns().iter().zip(&columns);
        let values = cells.map(|(array, column)| user_value(array, &column.column_type));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        let mut local = self.connection.local();
        local.user_variables.extend(names.into_iter().zip(values));
        drop(local);
        // They have their values, as in MySQL.
        match has_more {
            true => Err(MySqlError::new(ErrorCode::TooManyRows, &[])),
            false => Ok(self.found(1)),
        }
    }

    /// The plan of such a query; it counts and is limited as one that a client sees.
    async fn ready_into(&self, query: ast::Query) -> Result<Ready, MySqlError> {
        let query = self.limited(query);
        Box::pin(self.ready(query)).await
    }

    /// The first row of a query, if it has one, and whether there are more.
    async fn first_row(&self, ready: &Ready) -> Result<(Option<RecordBatch>, bool), MySqlError> {
        let mut found: Option<RecordBatch> = None;
        let mut has_more = false;
        let mut stream = self.rows(ready)?;
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|error| errors::from_plan(&error))?;
            if batch.num_rows() == 0 {
                continue;
            }
            has_more = found.is_some() || batch.num_rows() > 1;
            found.get_or_insert(batch.slice(0, 1));
            if has_more {
                break;
            }
        }
        self.check_interrupted()?;
        Ok((found, has_more))
    }

    /// A function that waits returns when its statement is to end, which then does nothing more.
    fn check_interrupted(&self) -> Result<(), MySqlError> {
        self.running.interrupted().map_or(Ok(()), Err)
    }

    /// The end of such a query.
    fn found(&self, rows: u64) -> Outcome {
        self.connection.local().found_rows = rows;
        Outcome::done(rows)
    }
}

/// A file that a statement writes. It goes if the statement fails.
struct NewFile {
    path: String,
    created: CreatedFile,
    is_kept: bool,
}

impl NewFile {
    fn create(job: &Job, path: &str) -> Result<NewFile, MySqlError> {
        match job.file_access().create(path) {
            Ok(created) => Ok(NewFile {
                path: path.to_owned(),
                created,
                is_kept: false,
            }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(MySqlError::new(ErrorCode::FileExists, &[&path]))
            }
            Err(error) => Err(failed(ErrorCode::FileCreate, path, &error)),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), MySqlError> {
        let written = self.created.file.write_all(bytes);
        written.map_err(|error| failed(ErrorCode::FileWrite, &self.path, &error))
    }

    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nothing more can be done about a file that does not go.
            let _ = self.created.remove();
        }
    }
}

fn failed(code: ErrorCode, path: &str, error: &std::io::Error) -> MySqlError {
    let told = error.get_ref().and_then(|inner| inner.downcast_ref());
    if let Some(told) = told {
        return MySqlError::clone(told);
    }
    let number = error.raw_os_error().unwrap_or(0);
    MySqlError::new(code, &[&path, &number, &errors::reason(error)])
}
