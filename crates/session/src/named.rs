//! Statements that are prepared under a name: PREPARE, EXECUTE and DEALLOCATE PREPARE.
//!
//! A prepared statement is what the protocol's is ([`crate::prepared`]): its text, cut at its
//! parameters. Running it puts the values of variables into the text, which is then run as if the
//! client had sent it from the database of the statement ([`crate::prepared_database`]).

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use datafusion::arrow::datatypes::DataType;
use datafusion::scalar::ScalarValue;
use mayfly_sql::parse;
use mayfly_sql::statement::{Executed, OnPrepared, PreparedText, Statement};
use mayfly_types::{ErrorCode, MySqlError};

use crate::commands::Command;
use crate::digests::DigestCell;
use crate::local::Local;
use crate::outcome::Outcome;
use crate::prepared::{Parameter, Prepared};
use crate::session::Session;

/// What a statement on prepared ones comes to.
type Running<'a> = Pin<Box<dyn Future<Output = Result<Outcome, MySqlError>> + Send + 'a>>;

/// The value of a variable of the user.
enum Held {
    Null,
    Integer(i64),
    Unsigned(u64),
    Double(f64),
    Decimal(String),
    Text(String),
    Bytes(Vec<u8>),
}

impl Session {
    /// Runs a statement on prepared ones. Boxed, since it may run another statement.
    pub(crate) fn run_on_prepared<'a>(&'a mut self, text: &'a str) -> Running<'a> {
        Box::pin(async move {
            let started = Instant::now();
            let ended = match parse::parse(text) {
                Ok((
                    Statement::OnPrepared(OnPrepared::Execute {
                        executed,
                        variables,
                    }),
                    _,
                )) => match self.executed(executed, &variables).await {
                    Ok((statement, text)) => {
                        let mut ended = self.execute_away(&statement, &text).await;
                        if let Ok(Outcome::Rows { columns, .. }) = &mut ended {
                            statement.label(columns);
                        }
                        return ended;
                    }
                    Err(error) => Err(error),
                },
                Ok((Statement::OnPrepared(OnPrepared::Prepare { name, text }), _)) => {
                    self.count_command(Command::Prepare);
                    self.prepare_named(&name, &text).await
                }
                Ok((Statement::OnPrepared(OnPrepared::Deallocate(name)), _)) => {
                    self.count_command(Command::Deallocate);
                    let removed = self.connection.local().named.remove(&key(&name));
                    let unknown = || unknown_statement(&name, "DEALLOCATE PREPARE");
                    removed.map(|_| Outcome::done(0)).ok_or_else(unknown)
                }
                Ok(_) => Err(MySqlError::new(ErrorCode::NotPreparable, &[])),
                Err(error) => Err(error),
            };
            self.connection
                .told_at_once(text, &DigestCell::new(), started, ended.as_ref().err());
            ended
        })
    }

    /// What EXECUTE runs, and its text.
    async fn executed(
        &self,
        executed: Executed,
        variables: &[String],
    ) -> Result<(Arc<Prepared>, String), MySqlError> {
        let statement = match executed {
            Executed::Named(name) => {
                self.count_command(Command::Execute);
                let statement = self.connection.local().named.get(&key(&name)).cloned();
                statement.ok_or_else(|| unknown_statement(&name, "EXECUTE"))?
            }
            Executed::Text(text) => {
                self.count_command(Command::ExecuteImmediate);
                let text = self.connection.local().text_of(&text);
                Arc::new(self.prepare_any(&text).await?)
            }
        };
        let values: Vec<Held> = {
            let local = self.connection.local();
            let variables = variables.iter();
            variables.map(|name| local.held(name)).collect()
        };
        let values: Vec<Parameter<'_>> = values.iter().map(Held::parameter).collect();
        let wrong = |error: MySqlError| match error.code {
            code if code == ErrorCode::WrongArguments.number() => {
                MySqlError::new(ErrorCode::WrongArguments, &[&"EXECUTE"])
            }
            _ => error,
        };
        let text = statement.with(&values).map_err(wrong)?;
        Ok((statement, text))
    }

    /// Prepares a statement; one that had the name before is gone, whatever comes of it.
    async fn prepare_named(&self, name: &str, text: &PreparedText) -> Result<Outcome, MySqlError> {
        let text = {
            let mut local = self.connection.local();
            local.named.remove(&key(name));
            local.text_of(text)
        };
        let prepared: Prepared = self.prepare_any(&text).await?;
        let mut local = self.connection.local();
        local.named.insert(key(name), Arc::new(prepared));
        Ok(Outcome::Done {
            affected_rows: 0,
            last_insert_id: 0,
            warnings: 0,
            info: "Statement prepared".to_owned(),
        })
    }

    fn count_command(&self, command: Command) {
        self.connection.count(|status| status.commands.add(command));
    }
}

impl Local {
    /// The text of a statement that is to be prepared; a variable without a value is NULL.
    fn text_of(&self, text: &PreparedText) -> String {
        match text {
            PreparedText::Literal(text) => text.clone(),
            PreparedText::Variable(name) => {
                let value = self.user_variables.get(name).and_then(spelled);
                value.unwrap_or_else(|| "NULL".to_owned())
            }
        }
    }

    /// The value of a variable.
    fn held(&self, name: &str) -> Held {
        let Some(value) = self
            .user_variables
            .get(name)
            .filter(|value| !value.is_null())
        else {
            return Held::Null;
        };
        match value {
            ScalarValue::Int64(Some(number)) => Held::Integer(*number),
            ScalarValue::UInt64(Some(number)) => Held::Unsigned(*number),
            ScalarValue::Float64(Some(number)) => Held::Double(*number),
            ScalarValue::Binary(Some(bytes))
            | ScalarValue::BinaryView(Some(bytes))
            | ScalarValue::LargeBinary(Some(bytes)) => Held::Bytes(bytes.clone()),
            other => match (spelled(other), other.data_type().is_decimal()) {
                (Some(digits), true) => Held::Decimal(digits),
                (Some(text), false) => Held::Text(text),
                (None, _) => Held::Null,
            },
        }
    }
}

impl Held {
    fn parameter(&self) -> Parameter<'_> {
        match self {
            Held::Null => Parameter::Null,
            Held::Integer(number) => Parameter::Integer(*number),
            Held::Unsigned(number) => Parameter::Unsigned(*number),
            Held::Double(number) => Parameter::Double(*number),
            Held::Decimal(digits) => Parameter::Decimal(digits),
            Held::Text(text) => Parameter::Text(text),
            Held::Bytes(bytes) => Parameter::Bytes(bytes),
        }
    }
}

/// A value as text; `None` for NULL, and for bytes that are none.
pub(crate) fn spelled(value: &ScalarValue) -> Option<String> {
    let text = value.cast_to(&DataType::Utf8).ok()?;
    text.try_as_str().flatten().map(str::to_owned)
}

/// Names of prepared statements count no case.
fn key(name: &str) -> String {
    name.to_lowercase()
}

fn unknown_statement(name: &str, given_to: &str) -> MySqlError {
    MySqlError::new(ErrorCode::UnknownStatementHandler, &[&name, &given_to])
}
