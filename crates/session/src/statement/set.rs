//! SET.

use datafusion::scalar::ScalarValue;
use mayfly_sql::statement::{Access, Assignment, Scope, SetValue};
use mayfly_types::{CharacterSet, ErrorCode, Level, MySqlError, Warning};

use super::Job;
use crate::errors::not_supported;
use crate::outcome::Outcome;
use crate::variables::{Definition, Where, check, check_scope, find};

/// Variables whose global value an existing session does not see, which surprises often enough to
/// be said.
const NOTED: [&str; 3] = [
    "tmp_table_size",
    "max_heap_table_size",
    "tmp_memory_table_size",
];

/// The variables that are what LAST_INSERT_ID() says.
const LAST_INSERT_ID: [&str; 2] = ["identity", "last_insert_id"];

impl Job {
    pub(crate) async fn set(&self, assignments: Vec<Assignment>) -> Result<Outcome, MySqlError> {
        // All values are computed before the first is assigned.
        let mut values = Vec::with_capacity(assignments.len());
        for assignment in &assignments {
            values.push(match assignment {
                Assignment::User { value, .. } => self.evaluate_for_user(value).await?,
                Assignment::System {
                    value: SetValue::Expression(value),
                    ..
                } => self.evaluate(value).await?,
                Assignment::System {
                    value: SetValue::Word(word),
                    ..
                } => ScalarValue::Utf8(Some(word.clone())),
                _ => ScalarValue::Null,
            });
        }
        for (assignment, computed) in assignments.into_iter().zip(values) {
            match assignment {
                Assignment::User { name, .. } => {
                    let mut local = self.connection.local();
                    local.user_variables.insert(name, computed);
                }
                Assignment::System { scope, name, value } => {
                    let computed = match value {
                        SetValue::Default => None,
                        SetValue::Word(_) | SetValue::Expression(_) => Some(computed),
                    };
                    self.set_variable(scope, &name, computed)?;
                }
                Assignment::Names {
                    character_set,
                    collation,
                } => {
                    self.set_names(character_set, collation)?;
                }
                Assignment::CharacterSet(name) => {
                    let set = character_set_of_client(name.as_deref())?;
                    let mut local = self.connection.local();
                    let variables = &mut local.variables;
                    // Literals are read as if they stood in the database.
                    let collation = variables.text("collation_database");
                    variables.put_with_pair("collation_connection", collation);
                    for variable in ["character_set_client", "character_set_results"] {
                        variables.put(variable, set.name().to_owned());
                    }
                }
                // The isolation of the next transaction alone is in no variable.
                Assignment::Transaction {
                    access,
                    scope: None,
                    ..
                } => {
                    if access.is_some() {
                        self.connection.local().next_access = access;
                    }
                }
                Assignment::Transaction {
                    access,
                    scope,
                    isolation,
                } => {
                    let only_reads = access.map(|access| i64::from(access == Access::Read));
                    let of_variables = [
                        (
                            "transaction_read_only",
                            only_reads.map(|only| ScalarValue::Int64(Some(only))),
                        ),
                        (
                            "transaction_isolation",
                            isolation.map(|level| ScalarValue::Utf8(Some(level.to_owned()))),
                        ),
                    ];
                    for (variable, value) in of_variables {
                        if value.is_some() {
                            self.set_variable(scope, variable, value)?;
                        }
                    }
                }
            }
        }
        Ok(Outcome::done(0))
    }

    /// Sets a variable; to its default without a value.
    fn set_variable(
        &self,
        scope: Option<Scope>,
        name: &str,
        value: Option<ScalarValue>,
    ) -> Result<(), MySqlError> {
        let unknown = || MySqlError::new(ErrorCode::UnknownSystemVariable, &[&name]);
        let definition = find(name).ok_or_else(unknown)?;
        let asked = scope.unwrap_or(Scope::Session);
        check_scope(definition, asked)?;
        if scope == Some(Scope::Persist) {
            return Err(not_supported("SET PERSIST: nothing survives a restart"));
        }
        let is_global = asked == Scope::Global;
        let is_last_id = LAST_INSERT_ID.contains(&name);
        let text = match value {
            None if is_last_id => {
                let code = ErrorCode::NoDefaultForVariable;
                return Err(MySqlError::new(code, &[&name]));
            }
            None => self.default_text(definition, is_global),
            Some(value) => self.checked(definition, &value, is_global)?,
        };
        if is_global {
            if name == "slow_query_log" {
                self.turn_slow_log(&text)?;
            }
            let engine = &self.connection.engine;
            engine.globals().variables.put_with_pair(name, text);
            if name == "max_tmp_total_space_usage" {
                let quota = engine.globals().variables.quota(name);
                engine.space().root().set_disk_quota(quota);
            }
            if NOTED.contains(&name) && definition.place == Where::Both {
                let mine = self.connection.local().variables.text(name);
                self.connection.warn(Warning {
                    level: Level::Note,
                    error: MySqlError::with_message(
                        ErrorCode::Unknown,
                        format!(
                            "SET GLOBAL {name} holds for connections made from here on; this \
                             session keeps {name} = {mine}"
                        ),
                    ),
                });
            }
        } else if is_last_id {
            self.connection.values.lock().last_insert_id = text.parse().unwrap_or(0);
        } else {
            self.connection.local().variables.put_with_pair(name, text);
            if name == "max_tmp_session_space_usage" {
                let quota = self.connection.local().variables.quota(name);
                self.connection.account.set_disk_quota(quota);
            }
        }
        Ok(())
    }

    fn turn_slow_log(&self, text: &str) -> Result<(), MySqlError> {
        match &self.connection.engine.shared().slow_log {
            Some(log) => log.turn(text == "ON"),
            // There is no file to write to: statements do not choose one.
            None if text == "ON" => {
                let code = ErrorCode::WrongValueForVariable;
                return Err(MySqlError::new(code, &[&"slow_query_log", &text]));
            }
            None => {}
        }
        Ok(())
    }

    fn default_text(&self, definition: &Definition, is_global: bool) -> String {
        if is_global || definition.place == Where::Session {
            return definition.default.to_owned();
        }
        self.connection
            .engine
            .globals()
            .variables
            .text(definition.name)
    }

    fn checked(
        &self,
        definition: &Definition,
        value: &ScalarValue,
        is_global: bool,
    ) -> Result<String, MySqlError> {
        let current = if is_global {
            self.connection
                .engine
                .globals()
                .variables
                .text(definition.name)
        } else {
            self.connection.local().variables.text(definition.name)
        };
        let mut warnings = Vec::new();
        let text = check(definition, value, &current, &mut warnings)?;
        for warning in warnings {
            self.connection.warn(warning);
        }
        Ok(text)
    }

    fn set_names(
        &self,
        character_set: Option<String>,
        collation: Option<String>,
    ) -> Result<(), MySqlError> {
        let set = character_set_of_client(character_set.as_deref())?;
        let collation = match collation {
            Some(name) if CharacterSet::of_collation(&name)? != set => {
                let code = ErrorCode::CollationCharacterSet;
                return Err(MySqlError::new(code, &[&name, &set.name()]));
            }
            Some(name) => name.to_ascii_lowercase(),
            None => set.default_collation().to_owned(),
        };
        self.connection.local().variables.set_names(set, &collation);
        Ok(())
    }
}

/// The set that a statement names for what the client sends; without a name the default.
fn character_set_of_client(name: Option<&str>) -> Result<CharacterSet, MySqlError> {
    name.map_or(Ok(CharacterSet::default()), CharacterSet::parse_of_client)
}
