//! Commands on prepared statements.
//!
//! **Source**: "Prepared Statements", "COM_STMT_PREPARE Response", "COM_STMT_FETCH";
//! `Materialized_cursor` of `sql/sql_cursor.cc` for what the status flags say when.

use mayfly_types::{ErrorCode, MySqlError};

use super::{Conversation, unless_killed, watched};
use crate::bytes_out::{put_length, put_u8, put_u16, put_u32};
use crate::error::{Failure, no_open_cursor};
use crate::flags::ServerStatus;
use crate::packets;
use crate::parameters;
use crate::rows::BatchRows;
use crate::server::{Connection, Cursor, OpenCursor, Server, StatementCommand};
use crate::statements::{EXECUTE, Fetching};
use crate::summary::{Format, Summary};

const FETCH: &str = "mysqld_stmt_fetch";
const RESET: &str = "mysqld_stmt_reset";

impl<S: Server> Conversation<'_, S> {
    pub(super) async fn prepare(&mut self, text: &[u8]) -> Result<(), Failure> {
        self.statements.check_room()?;
        let prepared = self.connection.prepare(text);
        let prepared = watched(&self.receiver, prepared).await??;
        let (Ok(parameter_count), Ok(column_count)) = (
            u16::try_from(prepared.parameter_count),
            u16::try_from(prepared.columns.len()),
        ) else {
            return Err(too_many_parameters().into());
        };
        let status = self.connection.status();
        let id = self.statements.add(prepared.statement, parameter_count)?;
        self.reply.sender.packet(|out| {
            put_u8(out, packets::OK);
            put_u32(out, id);
            put_u16(out, column_count);
            put_u16(out, parameter_count);
            put_u8(out, 0);
            put_u16(out, prepared.warnings);
        });
        let reply = &mut self.reply;
        let described = async {
            if parameter_count > 0 {
                reply.write_parameters(parameter_count, status).await?;
            }
            if column_count > 0 {
                let columns = &prepared.columns;
                reply.write_definitions(columns, 0, status).await?;
            }
            Ok::<(), Failure>(())
        };
        let described = unless_killed(self.connection.killed(), described).await;
        if described.is_err()
            && let Some(statement) = self.statements.remove(id)
        {
            // Its client knows nothing of it.
            self.connection.close_statement(statement.prepared);
        }
        described
    }

    pub(super) async fn execute(
        &mut self,
        id: u32,
        wants_cursor: bool,
        packet: &[u8],
    ) -> Result<(), Failure> {
        self.reply.begin_command(Format::Binary);
        let statement = self.statements.get(id, EXECUTE)?;
        statement.cursor = None;
        statement.check_long_data()?;
        statement.hold_parameters()?;
        let parameters = parameters::parse(
            packet,
            statement.parameter_count,
            &mut statement.types,
            &statement.long_data,
        );
        let parameters = match parameters {
            Ok(parameters) => parameters,
            Err(error) => {
                statement.forget_long_data();
                return Err(error.into());
            }
        };
        let prepared = &mut statement.prepared;
        let opened = if wants_cursor {
            let opened = self
                .connection
                .open_cursor(prepared, &parameters, &mut self.reply);
            watched(&self.receiver, opened).await?
        } else {
            let executed = self
                .connection
                .execute(prepared, &parameters, &mut self.reply);
            watched(&self.receiver, executed).await?.map(|()| None)
        };
        drop(parameters);
        statement.forget_long_data();
        let Some(OpenCursor {
            columns,
            warnings,
            cursor,
        }) = opened?
        else {
            return Ok(self.reply.check_ended()?);
        };
        // One packet ends the columns for old clients and new ones, and tells of the cursor.
        self.reply
            .sender
            .packet(|out| put_length(out, columns.len() as u64));
        let described = self.reply.write_bare_definitions(&columns);
        unless_killed(self.connection.killed(), described).await?;
        statement.cursor = Some(Fetching { columns, cursor });
        let summary = Summary {
            status: self.connection.status() | ServerStatus::CURSOR_EXISTS,
            warnings,
            ..Summary::default()
        };
        self.reply.end_result(&summary, packets::EOF);
        Ok(())
    }

    pub(super) async fn fetch(&mut self, id: u32, row_count: u32) -> Result<(), Failure> {
        self.reply.begin_command(Format::Binary);
        self.connection.heard(StatementCommand::Fetch);
        let statement = self.statements.get(id, FETCH)?;
        let Some(mut fetching) = statement.cursor.take() else {
            return Err(no_open_cursor(id).into());
        };
        let mut wanted = row_count as usize;
        let mut is_over = false;
        while wanted > 0 && !is_over {
            let next = fetching.cursor.next(wanted);
            let Some(batch) = watched(&self.receiver, next).await?? else {
                is_over = true;
                continue;
            };
            let rows = BatchRows::new(&batch, &fetching.columns)?;
            for row_index in 0..rows.count() {
                rows.write_encoded(&mut self.reply, &fetching.columns, row_index)?;
                if self.reply.is_full() {
                    unless_killed(self.connection.killed(), self.reply.relieve()).await?;
                }
            }
            wanted = wanted.saturating_sub(rows.count());
        }
        let flag = match is_over {
            true => ServerStatus::LAST_ROW_SENT,
            false => ServerStatus::CURSOR_EXISTS,
        };
        if !is_over {
            statement.cursor = Some(fetching);
        }
        let summary = Summary::new(self.connection.status() | flag);
        self.reply.end_result(&summary, packets::EOF);
        Ok(())
    }

    pub(super) fn reset_statement(&mut self, id: u32) -> Result<(), Failure> {
        self.connection.heard(StatementCommand::Reset);
        let statement = self.statements.get(id, RESET)?;
        statement.cursor = None;
        statement.forget_long_data();
        self.ok(packets::OK);
        Ok(())
    }
}

fn too_many_parameters() -> MySqlError {
    MySqlError::new(ErrorCode::TooManyParameters, &[])
}
