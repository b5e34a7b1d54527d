//! SET.

use datafusion::scalar::ScalarValue;
use mayfly_sql::statement::{Access, Assignment, Scope, SetValue};
use mayfly_types::{CharacterSet, ErrorCode, Level, MySqlError, NoCollation, Warning};

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

/// What SET NAMES and SET CHARACTER SET assign.
const OF_CLIENT: [&str; 3] = [
    "character_set_client",
    "character_set_results",
    "character_set_connection",
];

/// What an assignment changes.
enum Change {
    User(String, ScalarValue),
    Variable {
        definition: &'static Definition,
        name: String,
        text: String,
        is_global: bool,
    },
    Names(CharacterSet, String),
    CharacterSet(CharacterSet),
    NextAccess(Access),
}

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
        // And all are found good.
        let mut changes = Vec::with_capacity(values.len());
        for (assignment, computed) in assignments.into_iter().zip(values) {
            self.check_assignment(assignment, computed, &mut changes)?;
        }
        for change in changes {
            self.change(change)?;
        }
        Ok(Outcome::done(0))
    }

    /// What an assignment changes, if it may.
    fn check_assignment(
        &self,
        assignment: Assignment,
        computed: ScalarValue,
        changes: &mut Vec<Change>,
    ) -> Result<(), MySqlError> {
        match assignment {
            Assignment::User { name, .. } => changes.push(Change::User(name, computed)),
            Assignment::System { scope, name, value } => {
                let computed = match value {
                    SetValue::Default => None,
                    SetValue::Word(_) | SetValue::Expression(_) => Some(computed),
                };
                changes.push(self.check_variable(scope, &name, computed)?);
            }
            Assignment::Names {
                character_set,
                collation,
            } => changes.push(names(character_set.as_deref(), collation)?),
            Assignment::CharacterSet(name) => {
                let set = character_set_of_client(name.as_deref())?;
                changes.push(Change::CharacterSet(set));
            }
            // The isolation of the next transaction alone is in no variable.
            Assignment::Transaction {
                access,
                scope: None,
                ..
            } => {
                if self.connection.local().transaction.is_open() {
                    let code = ErrorCode::TransactionCharacteristics;
                    return Err(MySqlError::new(code, &[]));
                }
                changes.extend(access.map(Change::NextAccess));
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
                        changes.push(self.check_variable(scope, variable, value)?);
                    }
                }
            }
        }
        Ok(())
    }

    /// What becomes of a variable that is set; to its default without a value.
    fn check_variable(
        &self,
        scope: Option<Scope>,
        name: &str,
        value: Option<ScalarValue>,
    ) -> Result<Change, MySqlError> {
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
        if is_global && name == "slow_query_log" {
            self.check_slow_log(&text)?;
        }
        if !is_global && name == "max_allowed_packet" {
            return Err(read_only_in_session(name));
        }
        Ok(Change::Variable {
            definition,
            name: name.to_owned(),
            text,
            is_global,
        })
    }

    fn change(&self, change: Change) -> Result<(), MySqlError> {
        match change {
            Change::User(name, value) => {
                let mut local = self.connection.local();
                local.user_variables.insert(name, value);
                local.session_state_changed();
            }
            Change::Variable {
                definition,
                name,
                text,
                is_global,
            } => self.set_variable(definition, &name, text, is_global)?,
            Change::Names(set, collation) => {
                let mut local = self.connection.local();
                local.variables.set_names(set, &collation);
                for variable in OF_CLIENT {
                    local.variable_changed(variable, None);
                }
            }
            Change::CharacterSet(set) => {
                let mut local = self.connection.local();
                let variables = &mut local.variables;
                // Literals are read as if they stood in the database.
                let collation = variables.text("collation_database");
                variables.put_with_pair("collation_connection", collation);
                for variable in ["character_set_client", "character_set_results"] {
                    variables.put(variable, set.name().to_owned());
                }
                for variable in OF_CLIENT {
                    local.variable_changed(variable, None);
                }
            }
            Change::NextAccess(access) => self.connection.local().next_access = Some(access),
        }
        Ok(())
    }

    /// Sets a variable to a text that was found good.
    fn set_variable(
        &self,
        definition: &Definition,
        name: &str,
        text: String,
        is_global: bool,
    ) -> Result<(), MySqlError> {
        let is_last_id = LAST_INSERT_ID.contains(&name);
        if is_global {
            if name == "slow_query_log"
                && let Some(log) = &self.connection.engine.shared().slow_log
            {
                log.turn(text == "ON");
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
            let mut local = self.connection.local();
            local.variable_changed(definition.name, Some(text));
        } else {
            let mut local = self.connection.local();
            local.variables.put_with_pair(name, text);
            local.variable_changed(definition.name, None);
            drop(local);
            self.connection.look_at_settings();
            if name == "max_tmp_session_space_usage" {
                let quota = self.connection.local().variables.quota(name);
                self.connection.account.set_disk_quota(quota);
            }
        }
        Ok(())
    }

    fn check_slow_log(&self, text: &str) -> Result<(), MySqlError> {
        // Without one there is no file to write to: statements do not choose it.
        if self.connection.engine.shared().slow_log.is_none() && text == "ON" {
            let code = ErrorCode::WrongValueForVariable;
            return Err(MySqlError::new(code, &[&"slow_query_log", &text]));
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
}

/// What SET NAMES changes.
fn names(character_set: Option<&str>, collation: Option<String>) -> Result<Change, MySqlError> {
    let set = character_set_of_client(character_set)?;
    let collation = match collation {
        Some(name) => match CharacterSet::of_collation(&name) {
            Ok(of_collation) if of_collation == set => name.to_ascii_lowercase(),
            Err(NoCollation::Unknown) => return Err(NoCollation::Unknown.error(&name)),
            _ => {
                let code = ErrorCode::CollationCharacterSet;
                return Err(MySqlError::new(code, &[&name, &set.name()]));
            }
        },
        None => set.default_collation().to_owned(),
    };
    Ok(Change::Names(set, collation))
}

/// 1621, for what a session has from its beginning.
fn read_only_in_session(name: &str) -> MySqlError {
    MySqlError {
        code: 1621,
        sqlstate: "HY000",
        message: format!(
            "SESSION variable '{name}' is read-only. Use SET GLOBAL to assign the value"
        ),
    }
}

/// The set that a statement names for what the client sends; without a name the default.
fn character_set_of_client(name: Option<&str>) -> Result<CharacterSet, MySqlError> {
    name.map_or(Ok(CharacterSet::default()), CharacterSet::parse_of_client)
}
