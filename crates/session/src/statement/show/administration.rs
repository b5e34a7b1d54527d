//! SHOW of what administrators look at: plugins, privileges, engines, and definitions of what there
//! is none of.

use mayfly_sql::statement::{Absent, Account, TableName};
use mayfly_types::{ErrorCode, MySqlError};

use super::super::Job;
use super::super::create::other_engine;
use super::definition::quoted;
use crate::errors::not_supported;
use crate::listing::{Listing, some};
use crate::plugins::{self, PLUGINS};
use crate::privileges::PRIVILEGES;

pub(super) fn plugins() -> Listing {
    let mut listing = Listing::new(&["Name", "Status", "Type", "Library", "License"]);
    for plugin in &PLUGINS {
        listing.push(vec![
            some(plugin.name),
            some("ACTIVE"),
            some(plugin.kind),
            None,
            some(plugins::LICENSE),
        ]);
    }
    listing
}

pub(super) fn privileges() -> Listing {
    let mut listing = Listing::new(&["Privilege", "Context", "Comment"]);
    for privilege in &PRIVILEGES {
        let (first, rest) = privilege.name.split_at(1);
        listing.push(vec![
            some(format!("{first}{}", rest.to_ascii_lowercase())),
            some(privilege.context),
            some(privilege.comment),
        ]);
    }
    listing
}

/// What SHOW ENGINE says: nothing of our own engine, and of those whose names are accepted that
/// they are not there, in MySQL's words.
///
/// # Errors
/// 1286 for a name that no engine has.
pub(super) fn engine_status(name: &str) -> Result<Listing, MySqlError> {
    let mut listing = Listing::new(&["Type", "Name", "Status"]);
    if ["all", plugins::ENGINE]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
    {
        return Ok(listing);
    }
    let Some(engine) = other_engine(name) else {
        return Err(MySqlError::new(ErrorCode::UnknownStorageEngine, &[&name]));
    };
    listing.push(vec![some(engine), some(""), some("DISABLED")]);
    Ok(listing)
}

impl Job {
    /// What the user of this connection may do.
    ///
    /// # Errors
    /// 1235 for another account: which ones there are is known where connections are accepted.
    pub(super) fn show_grants(&self, account: Option<&Account>) -> Result<Listing, MySqlError> {
        let current = self.connection.values.lock().user.clone();
        let (user, host) = current.rsplit_once('@').unwrap_or((&current, "%"));
        if account.is_some_and(|account| account.user != user || account.host != host) {
            return Err(not_supported("SHOW GRANTS of another account"));
        }
        let mut listing = Listing::new(&["Grants"]);
        let names: Vec<&str> = PRIVILEGES.iter().map(|privilege| privilege.name).collect();
        listing.push(vec![some(format!(
            "GRANT {} ON *.* TO {}@{}",
            names.join(", "),
            quoted(user),
            quoted(host)
        ))]);
        Ok(listing)
    }

    /// The label of the only column of SHOW GRANTS.
    pub(super) fn grants_label(&self) -> String {
        format!("Grants for {}", self.connection.values.lock().user)
    }

    /// The error of SHOW CREATE for what there is none of.
    pub(super) fn show_create_absent(
        &self,
        kind: Absent,
        name: &TableName,
    ) -> Result<Listing, MySqlError> {
        self.database_of(name)?;
        let table = &name.table;
        let no_routine = |what: &str| MySqlError::new(ErrorCode::NoSuchFunction, &[&what, table]);
        Err(match kind {
            Absent::Procedure => no_routine("PROCEDURE"),
            Absent::Function => no_routine("FUNCTION"),
            Absent::Trigger => MySqlError::new(ErrorCode::NoSuchTrigger, &[]),
            Absent::Event => MySqlError::new(ErrorCode::NoSuchEvent, &[table]),
        })
    }
}
