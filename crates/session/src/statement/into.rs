//! SELECT ... INTO OUTFILE, INTO DUMPFILE and INTO variables.

use std::io::Write;

use arrow::record_batch::RecordBatch;
use datafusion::sql::sqlparser::ast;
use futures::StreamExt;
use mayfly_sql::statement::{Into, OutFileFormat};
use mayfly_types::{ErrorCode, MySqlError, Warning};

use super::Job;
use super::evaluate::user_value;
use super::query::Ready;
use crate::errors;
use crate::export::Export;
use crate::new_file::{NewFile, cannot_write};
use crate::outcome::Outcome;
use crate::render;

impl Job {
    /// Runs a query whose rows no client sees.
    pub(crate) async fn query_into(
        &self,
        query: ast::Query,
        into: Into,
    ) -> Result<Outcome, MySqlError> {
        self.limit_time();
        match into {
            Into::OutFile { path, format } => self.write_rows(query, &path, format).await,
            Into::DumpFile(path) => self.dump_row(query, &path).await,
            Into::Variables(names) => self.assign_row(query, names).await,
        }
    }

    async fn write_rows(
        &self,
        query: ast::Query,
        path: &str,
        format: OutFileFormat,
    ) -> Result<Outcome, MySqlError> {
        let export = Export::of(path, format)?;
        let ready = self.ready_into(query).await?;
        let columns = ready.columns(self);
        export.check_columns(&columns)?;
        let file = NewFile::create(self.file_access(), path)?;
        let note = export.note(path);
        let schema = ready.plan.schema();
        let mut file = export.begin(file, columns, &schema, &self.memory_pool()?)?;
        if file.is_end_ambiguous() {
            self.connection
                .warn(Warning::new(ErrorCode::AmbiguousFieldTerminator, &[]));
        }
        if let Some(note) = note {
            self.connection.warn(note);
        }
        let mut rows = 0;
        let mut stream = self.rows(&ready)?;
        drop(ready);
        while let Some(batch) = stream.next().await {
            let batch = batch.map_err(|error| errors::from_plan(&error))?;
            file.write(&batch)?;
            rows += batch.num_rows() as u64;
            // Lets a cancelled statement end.
            tokio::task::yield_now().await;
        }
        self.check_interrupted()?;
        file.finish()?.keep();
        Ok(self.found(rows))
    }

    async fn dump_row(&self, query: ast::Query, path: &str) -> Result<Outcome, MySqlError> {
        let ready = self.ready_into(query).await?;
        let columns = ready.columns(self);
        let mut file = NewFile::create(self.file_access(), path)?;
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
        let written = file.write_all(&bytes);
        written.map_err(|error| cannot_write(path, &error))?;
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
