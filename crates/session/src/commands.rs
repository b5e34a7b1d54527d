//! Kinds of statements and commands that are counted: `Com_*`.

use mayfly_sql::statement::{
    Absent, Insert, InsertSource, MaintenanceKind, Nothing, Show, Statement,
};

macro_rules! commands {
    ($($command:ident = $name:literal,)*) => {
        /// What one counter is for; the most frequent kinds have fields of the status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Command {
            $($command,)*
        }

        /// The names of the counters, in the order of the commands.
        const NAMES: &[&str] = &[$($name),*];
    };
}

commands! {
    AlterTable = "Com_alter_table",
    Analyze = "Com_analyze",
    Check = "Com_check",
    Checksum = "Com_checksum",
    ChangeDatabase = "Com_change_db",
    CreateDatabase = "Com_create_db",
    CreateIndex = "Com_create_index",
    CreateView = "Com_create_view",
    Deallocate = "Com_dealloc_sql",
    DeleteSeveral = "Com_delete_multi",
    Do = "Com_do",
    DropDatabase = "Com_drop_db",
    DropIndex = "Com_drop_index",
    DropView = "Com_drop_view",
    Empty = "Com_empty_query",
    Execute = "Com_execute_sql",
    ExecuteImmediate = "Com_execute_immediate",
    Flush = "Com_flush",
    Help = "Com_help",
    InsertSelect = "Com_insert_select",
    LockTables = "Com_lock_tables",
    Optimize = "Com_optimize",
    Prepare = "Com_prepare_sql",
    ReleaseSavepoint = "Com_release_savepoint",
    RenameTable = "Com_rename_table",
    Repair = "Com_repair",
    Replace = "Com_replace",
    ReplaceSelect = "Com_replace_select",
    RollbackToSavepoint = "Com_rollback_to_savepoint",
    Savepoint = "Com_savepoint",
    ShowBinaryLogEvents = "Com_show_binlog_events",
    ShowBinaryLogStatus = "Com_show_binary_log_status",
    ShowBinaryLogs = "Com_show_binlogs",
    ShowCharacterSets = "Com_show_charsets",
    ShowCollations = "Com_show_collations",
    ShowCreateDatabase = "Com_show_create_db",
    ShowCreateTable = "Com_show_create_table",
    ShowCreateEvent = "Com_show_create_event",
    ShowCreateFunction = "Com_show_create_func",
    ShowCreateProcedure = "Com_show_create_proc",
    ShowCreateTrigger = "Com_show_create_trigger",
    ShowCreateView = "Com_show_create_view",
    ShowDatabases = "Com_show_databases",
    ShowEngines = "Com_show_storage_engines",
    ShowEngineStatus = "Com_show_engine_status",
    ShowErrors = "Com_show_errors",
    ShowEvents = "Com_show_events",
    ShowFields = "Com_show_fields",
    ShowFunctions = "Com_show_function_status",
    ShowGrants = "Com_show_grants",
    ShowKeys = "Com_show_keys",
    ShowOpenTables = "Com_show_open_tables",
    ShowPlugins = "Com_show_plugins",
    ShowPrivileges = "Com_show_privileges",
    ShowProcedures = "Com_show_procedure_status",
    ShowProcesses = "Com_show_processlist",
    ShowProfile = "Com_show_profile",
    ShowProfiles = "Com_show_profiles",
    ShowReplicaStatus = "Com_show_replica_status",
    ShowReplicas = "Com_show_replicas",
    ShowTableStatus = "Com_show_table_status",
    ShowTables = "Com_show_tables",
    ShowTriggers = "Com_show_triggers",
    ShowVariables = "Com_show_variables",
    ShowWarnings = "Com_show_warnings",
    StatementClose = "Com_stmt_close",
    StatementExecute = "Com_stmt_execute",
    StatementFetch = "Com_stmt_fetch",
    StatementPrepare = "Com_stmt_prepare",
    StatementReset = "Com_stmt_reset",
    StatementLongData = "Com_stmt_send_long_data",
    UnlockTables = "Com_unlock_tables",
    UpdateSeveral = "Com_update_multi",
}

/// How often each was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commands([u64; NAMES.len()]);

impl Default for Commands {
    fn default() -> Commands {
        Commands([0; NAMES.len()])
    }
}

impl Commands {
    pub(crate) fn add(&mut self, command: Command) {
        self.0[command as usize] += 1;
    }

    pub(crate) fn set(&mut self, command: Command, count: u64) {
        self.0[command as usize] = count;
    }

    /// Names and counts.
    pub(crate) fn list(&self) -> impl Iterator<Item = (&'static str, u64)> {
        NAMES.iter().copied().zip(self.0)
    }
}

impl Command {
    /// What a statement counts for that has no field of its own; its text tells apart what means
    /// the same.
    pub(crate) fn of(statement: &Statement, text: &str) -> Option<Command> {
        let begins_with = |word: &str| {
            let text = text.trim_start();
            text.get(..word.len())
                .is_some_and(|first| first.eq_ignore_ascii_case(word))
        };
        Some(match statement {
            Statement::AlterTable(_) if begins_with("CREATE") => Command::CreateIndex,
            Statement::AlterTable(_) if begins_with("DROP") => Command::DropIndex,
            Statement::AlterTable(_) => Command::AlterTable,
            Statement::RenameTable(_) => Command::RenameTable,
            Statement::CreateView(_) => Command::CreateView,
            Statement::DropView(_) => Command::DropView,
            Statement::CreateDatabase { .. } => Command::CreateDatabase,
            Statement::DropDatabase { .. } => Command::DropDatabase,
            Statement::Use(_) => Command::ChangeDatabase,
            Statement::Flush(_) if begins_with("RESET") => return None,
            Statement::Flush(_) => Command::Flush,
            Statement::LockTables(true) => Command::LockTables,
            Statement::LockTables(false) => Command::UnlockTables,
            Statement::Do(_) => Command::Do,
            Statement::Maintain(asked) => match asked.kind {
                MaintenanceKind::Analyze => Command::Analyze,
                MaintenanceKind::Check => Command::Check,
                MaintenanceKind::Checksum { .. } => Command::Checksum,
                MaintenanceKind::Optimize => Command::Optimize,
                MaintenanceKind::Repair => Command::Repair,
            },
            Statement::Nothing => Command::Empty,
            Statement::Savepoint(_) => Command::Savepoint,
            Statement::RollbackTo(_) => Command::RollbackToSavepoint,
            Statement::ReleaseSavepoint(_) => Command::ReleaseSavepoint,
            Statement::Show(show) => Command::of_show(show, text)?,
            _ => return None,
        })
    }

    /// What an INSERT or REPLACE counts for, if it is no plain INSERT.
    pub(crate) fn of_insert(insert: &Insert) -> Option<Command> {
        let has_query = matches!(insert.source, InsertSource::Query(_));
        match (insert.replace, has_query) {
            (false, false) => None,
            (false, true) => Some(Command::InsertSelect),
            (true, false) => Some(Command::Replace),
            (true, true) => Some(Command::ReplaceSelect),
        }
    }

    fn of_show(show: &Show, text: &str) -> Option<Command> {
        Some(match show {
            Show::Tables { .. } => Command::ShowTables,
            Show::TableStatus { .. } => Command::ShowTableStatus,
            Show::Columns { .. } | Show::FileColumns(_) => Command::ShowFields,
            Show::CreateTable(_) => Command::ShowCreateTable,
            Show::CreateDatabase { .. } => Command::ShowCreateDatabase,
            Show::Index { .. } => Command::ShowKeys,
            Show::Databases(_) => Command::ShowDatabases,
            Show::Variables { .. } => Command::ShowVariables,
            // Has a field of its own.
            Show::Status { .. } => return None,
            Show::Warnings { errors_only, .. } | Show::WarningCount { errors_only } => {
                match errors_only {
                    true => Command::ShowErrors,
                    false => Command::ShowWarnings,
                }
            }
            Show::Engines => Command::ShowEngines,
            Show::CharacterSets(_) => Command::ShowCharacterSets,
            Show::Collations(_) => Command::ShowCollations,
            Show::ProcessList => Command::ShowProcesses,
            Show::Profiles => Command::ShowProfiles,
            Show::Profile(_) => Command::ShowProfile,
            Show::Plugins => Command::ShowPlugins,
            Show::Privileges => Command::ShowPrivileges,
            Show::Grants(_) => Command::ShowGrants,
            Show::EngineStatus(_) => Command::ShowEngineStatus,
            Show::BinaryLogs => Command::ShowBinaryLogs,
            Show::CreateView(_) => Command::ShowCreateView,
            Show::CreateAbsent(kind, _) => match kind {
                Absent::Procedure => Command::ShowCreateProcedure,
                Absent::Function => Command::ShowCreateFunction,
                Absent::Trigger => Command::ShowCreateTrigger,
                Absent::Event => Command::ShowCreateEvent,
            },
            Show::Nothing(what) => Command::of_nothing(*what, text),
        })
    }

    fn of_nothing(what: Nothing, text: &str) -> Command {
        match what {
            Nothing::AllReplicasStatus | Nothing::ReplicaStatus(_) => Command::ShowReplicaStatus,
            Nothing::BinaryLogStatus => Command::ShowBinaryLogStatus,
            Nothing::Events => Command::ShowEvents,
            Nothing::HelpTopics => Command::Help,
            Nothing::LogEvents => Command::ShowBinaryLogEvents,
            Nothing::OpenTables => Command::ShowOpenTables,
            Nothing::Replicas(_) => Command::ShowReplicas,
            Nothing::Routines => match text.to_ascii_uppercase().contains("FUNCTION") {
                true => Command::ShowFunctions,
                false => Command::ShowProcedures,
            },
            Nothing::Triggers => Command::ShowTriggers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_name() {
        assert_eq!(NAMES.len(), Command::UpdateSeveral as usize + 1);
        let mut commands = Commands::default();
        commands.add(Command::StatementClose);
        let counted: Vec<_> = commands.list().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [("Com_stmt_close", 1)]);
    }
}
