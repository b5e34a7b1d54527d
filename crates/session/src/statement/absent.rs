//! DROP of what there is none of here: routines, triggers and events.
//!
//! Dumps begin with such statements. Whatever they name does not exist, which is a note with IF
//! EXISTS and an error without.

use mayfly_sql::statement::{Absent, DropAbsent, TableName};
use mayfly_types::{ErrorCode, Level, MySqlError, Warning};

use super::Job;
use crate::outcome::Outcome;

impl Job {
    pub(crate) fn drop_absent(&self, drop: &DropAbsent) -> Result<Outcome, MySqlError> {
        let name = &drop.name;
        let no_routine = |what: &str| -> Result<MySqlError, MySqlError> {
            let name = format!("{}.{}", self.database_of(name)?, name.table);
            Ok(MySqlError::new(ErrorCode::NoSuchFunction, &[&what, &name]))
        };
        match drop.kind {
            Absent::Function if self.database_of(name).is_err() => {
                // Such a name is that of a function that was loaded from a library.
                let arguments: [&dyn std::fmt::Display; 2] = [&"FUNCTION (UDF)", &name.table];
                self.miss(drop, MySqlError::new(ErrorCode::NoSuchFunction, &arguments))?;
            }
            Absent::Function => self.miss(drop, no_routine("FUNCTION")?)?,
            Absent::Trigger => {
                self.database_of(name)?;
                self.miss(drop, MySqlError::new(ErrorCode::NoSuchTrigger, &[]))?;
            }
            Absent::Event => self.miss_event(drop, name)?,
            _ => self.miss(drop, no_routine("PROCEDURE")?)?,
        }
        Ok(Outcome::done(0))
    }

    /// The note about an event has another number than the error.
    fn miss_event(&self, drop: &DropAbsent, name: &TableName) -> Result<(), MySqlError> {
        self.database_of(name)?;
        if !drop.if_exists {
            return Err(MySqlError::new(ErrorCode::NoSuchEvent, &[&name.table]));
        }
        self.note(ErrorCode::NoSuchFunction, &[&"Event", &name.table]);
        Ok(())
    }

    fn miss(&self, drop: &DropAbsent, error: MySqlError) -> Result<(), MySqlError> {
        if !drop.if_exists {
            return Err(error);
        }
        let level = Level::Note;
        self.connection.warn(Warning { level, error });
        Ok(())
    }
}
