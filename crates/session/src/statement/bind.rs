//! Finds what a statement mentions: tables, files, values of variables.

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::scalar::ScalarValue;
use mayfly_sql::bindings::Bindings;
use mayfly_sql::file_name::FileName;
use mayfly_sql::references::References;
use mayfly_types::{ErrorCode, MySqlError};

use super::bound_table::bind_table;
use super::view::BoundViews;
use super::{Job, information};
use crate::errors;
use crate::file_access::FileAccess;
use crate::files::{self, FileSettings};
use crate::lowered;
use crate::profile::Stage;
use crate::spooled::KeptFile;
use crate::standard_input;
use crate::variables::{Where, as_scalar, find};

impl Job {
    /// Everything that the planner needs to know about these references.
    pub(crate) async fn bindings(&self, references: &References) -> Result<Bindings, MySqlError> {
        self.running.enter(Stage::OpeningTables);
        let connection = &self.connection;
        let mut bindings = Bindings {
            aggregates: Arc::clone(&connection.aggregates),
            ..Bindings::default()
        };
        {
            let local = connection.local();
            bindings.database.clone_from(&local.database);
            bindings.only_full_group_by = local.variables.has_mode("ONLY_FULL_GROUP_BY");
            bindings.pipes_as_concat = local.variables.has_mode("PIPES_AS_CONCAT");
            for name in &references.user_variables {
                let value = local
                    .user_variables
                    .get(name)
                    .cloned()
                    .unwrap_or(ScalarValue::Null);
                bindings.user_variables.insert(name.clone(), value);
            }
        }
        for name in &references.system_variables {
            bindings
                .system_variables
                .insert(name.clone(), self.system_variable(name)?);
        }
        let mut views = BoundViews::default();
        for name in &references.tables {
            // What is not found may be a common table expression; the planner tells.
            let Ok(database) = self.database_of(name) else {
                continue;
            };
            if let Some(made) = self.planned_system_table(&database, name).await? {
                let bound = lowered::bind_batch(made.batch(None)?)?;
                bindings
                    .tables
                    .insert((database, name.table.clone()), bound);
                continue;
            }
            if information::is_database(&database) && name.database.is_some() {
                return Err(information::unknown_table(&name.table));
            }
            let bound = if let Ok(table) = self.table(name) {
                self.running.also_count(table.account());
                bind_table(table)?
            } else if let Some((database, view)) = self.view(name) {
                self.bound_view(&database, &view, &mut views).await?
            } else {
                continue;
            };
            bindings
                .tables
                .insert((database, name.table.clone()), bound);
        }
        for name in &references.files {
            let table = self.open_file(&FileName::of(name)?).await?;
            bindings.files.insert(name.clone(), lowered::bind(table)?);
        }
        Ok(bindings)
    }

    /// Memory of the statement, beside that of its plan.
    pub(crate) fn memory_pool(&self) -> Result<Arc<dyn MemoryPool>, MySqlError> {
        let base = self.connection.state()?.runtime_env();
        let runtime = mayfly_exec::runtime(&self.running.account, Some(base));
        let runtime = runtime.map_err(|error| errors::from_plan(&error))?;
        Ok(Arc::clone(&runtime.memory_pool))
    }

    /// A file, or the files of a pattern, as a table; warns of what is odd about them.
    pub(crate) async fn open_file(
        &self,
        file: &FileName,
    ) -> Result<Arc<dyn TableProvider>, MySqlError> {
        let (infer_rows, record_bytes_max) = {
            let variables = &self.connection.local().variables;
            let infer_rows = variables.number("mayfly_infer_rows");
            (infer_rows, variables.record_bytes_max())
        };
        let input = match standard_input::is_named(&file.path) {
            true => Some(self.standard_input(&file.path).await?),
            false => None,
        };
        let settings = FileSettings {
            input,
            state: self.connection.state()?,
            access: self.file_access(),
            pool: self.memory_pool()?,
            infer_rows,
            record_bytes_max,
        };
        let opened = files::open(&settings, file).await?;
        for warning in opened.warnings {
            self.connection.warn(warning);
        }
        Ok(opened.table)
    }

    /// The standard input of the process, where statements may read it.
    async fn standard_input(&self, name: &str) -> Result<Arc<KeptFile>, MySqlError> {
        self.file_access().check(name)?;
        let shared = self.connection.engine.shared();
        if !shared.options.reads_standard_input {
            let what = format!("a table from '{name}' where statements come from there");
            return Err(errors::not_supported(&what));
        }
        shared.standard_input.kept(&shared.table_account).await
    }

    /// The files that statements may name.
    pub(crate) fn file_access(&self) -> &FileAccess {
        &self.connection.engine.shared().options.files
    }

    /// The value of `@@name` or `@@scope.name`; `name` is in lower case.
    pub(crate) fn system_variable(&self, name: &str) -> Result<ScalarValue, MySqlError> {
        let (scope, name) = match name.split_once('.') {
            Some((scope @ ("global" | "session" | "local"), name)) => (Some(scope), name),
            Some((_, name)) => (Some("none"), name),
            None => (None, name),
        };
        let unknown = || MySqlError::new(ErrorCode::UnknownSystemVariable, &[&name]);
        let definition = find(name).ok_or_else(unknown)?;
        let connection = &self.connection;
        let global = match (definition.place, scope) {
            (_, Some("none")) => return Err(unknown()),
            (Where::Global, Some("session" | "local")) => {
                let code = ErrorCode::ReadOnlyVariable;
                return Err(MySqlError::new(code, &[&name, &"GLOBAL"]));
            }
            (Where::Session, Some("global")) => {
                let code = ErrorCode::ReadOnlyVariable;
                return Err(MySqlError::new(code, &[&name, &"SESSION"]));
            }
            (Where::Global, _) | (Where::Both, Some("global")) => true,
            _ => false,
        };
        if global {
            let text = connection.engine.globals().variables.text(name);
            return Ok(as_scalar(definition, &text));
        }
        let local = connection.local();
        let count = |wanted: fn(&mayfly_types::Level) -> bool| {
            let found = local
                .warnings
                .iter()
                .filter(|warning| wanted(&warning.level))
                .count();
            ScalarValue::Int64(i64::try_from(found).ok())
        };
        Ok(match name {
            "warning_count" => ScalarValue::Int64(i64::try_from(local.warning_count).ok()),
            "error_count" => count(|level| *level == mayfly_types::Level::Error),
            "identity" | "last_insert_id" => {
                let id = connection.values.lock().last_insert_id;
                match i64::try_from(id) {
                    Ok(id) => ScalarValue::Int64(Some(id)),
                    Err(_) => ScalarValue::UInt64(Some(id)),
                }
            }
            "pseudo_thread_id" => ScalarValue::Int64(i64::try_from(connection.id).ok()),
            "timestamp" => ScalarValue::Float64(Some(match local.variables.text(name).parse() {
                Ok(fixed) if fixed > 0.0 => fixed,
                _ => connection.values.lock().now_micros as f64 / 1e6,
            })),
            _ => as_scalar(definition, &local.variables.text(name)),
        })
    }
}
