//! Who may connect and what they may do: USER_PRIVILEGES, USER_ATTRIBUTES, and `mysql.user`.
//!
//! The accounts are those of the connections, by the name that CURRENT_USER() says: whoever may
//! connect is no business of all who do. No table tells how a password is checked.
//! Whoever may connect may do everything; grants of less are the tables that are always empty.

use std::collections::BTreeSet;

use super::super::Job;
use super::logs;
use super::system::{CATALOG, Make};
use crate::connection::Connection;
use crate::listing::{Listing, declared_columns, some};
use crate::privileges::PRIVILEGES;

/// The tables of the database `mysql` that may have rows.
pub(super) const TABLES: [(&str, Make); 1] = [("user", user)];

/// The columns of `mysql.user`.
const USER: &str = "Host varchar(255), User varchar(32), Select_priv varchar(1), \
     Insert_priv varchar(1), Update_priv varchar(1), Delete_priv varchar(1), \
     Create_priv varchar(1), Drop_priv varchar(1), Reload_priv varchar(1), \
     Shutdown_priv varchar(1), Process_priv varchar(1), File_priv varchar(1), \
     Grant_priv varchar(1), References_priv varchar(1), Index_priv varchar(1), \
     Alter_priv varchar(1), Show_db_priv varchar(1), Super_priv varchar(1), \
     Create_tmp_table_priv varchar(1), Lock_tables_priv varchar(1), Execute_priv varchar(1), \
     Repl_slave_priv varchar(1), Repl_client_priv varchar(1), Create_view_priv varchar(1), \
     Show_view_priv varchar(1), Create_routine_priv varchar(1), \
     Alter_routine_priv varchar(1), Create_user_priv varchar(1), Event_priv varchar(1), \
     Trigger_priv varchar(1), Create_tablespace_priv varchar(1), ssl_type varchar(9), \
     ssl_cipher blob, x509_issuer blob, x509_subject blob, max_questions int unsigned, \
     max_updates int unsigned, max_connections int unsigned, \
     max_user_connections int unsigned, plugin varchar(64), authentication_string text, \
     password_expired varchar(1), password_last_changed timestamp, \
     password_lifetime smallint unsigned, account_locked varchar(1), \
     Create_role_priv varchar(1), Drop_role_priv varchar(1), \
     Password_reuse_history smallint unsigned, Password_reuse_time smallint unsigned, \
     Password_require_current varchar(1), User_attributes json";

/// The tables of `mysql` that are empty: grants of less than everything, roles, logs, and the time
/// zones that have names.
pub(super) const EMPTY_TABLES: [(&str, &str); 12] = [
    (
        "columns_priv",
        "Host varchar(255), Db varchar(64), User varchar(32), Table_name varchar(64), \
         Column_name varchar(64), Timestamp timestamp, Column_priv varchar(31)",
    ),
    (
        "db",
        "Host varchar(255), Db varchar(64), User varchar(32), Select_priv varchar(1), \
         Insert_priv varchar(1), Update_priv varchar(1), Delete_priv varchar(1), \
         Create_priv varchar(1), Drop_priv varchar(1), Grant_priv varchar(1), \
         References_priv varchar(1), Index_priv varchar(1), Alter_priv varchar(1), \
         Create_tmp_table_priv varchar(1), Lock_tables_priv varchar(1), \
         Create_view_priv varchar(1), Show_view_priv varchar(1), \
         Create_routine_priv varchar(1), Alter_routine_priv varchar(1), \
         Execute_priv varchar(1), Event_priv varchar(1), Trigger_priv varchar(1)",
    ),
    (
        "default_roles",
        "HOST varchar(255), USER varchar(32), DEFAULT_ROLE_HOST varchar(255), \
         DEFAULT_ROLE_USER varchar(32)",
    ),
    ("general_log", logs::GENERAL),
    (
        "global_grants",
        "USER varchar(32), HOST varchar(255), PRIV varchar(32), WITH_GRANT_OPTION varchar(1)",
    ),
    (
        "procs_priv",
        "Host varchar(255), Db varchar(64), User varchar(32), Routine_name varchar(64), \
         Routine_type varchar(9), Grantor varchar(288), Proc_priv varchar(27), \
         Timestamp timestamp",
    ),
    (
        "proxies_priv",
        "Host varchar(255), User varchar(32), Proxied_host varchar(255), \
         Proxied_user varchar(32), With_grant tinyint(1), Grantor varchar(288), \
         Timestamp timestamp",
    ),
    (
        "role_edges",
        "FROM_HOST varchar(255), FROM_USER varchar(32), TO_HOST varchar(255), \
         TO_USER varchar(32), WITH_ADMIN_OPTION varchar(1)",
    ),
    ("slow_log", logs::SLOW),
    (
        "tables_priv",
        "Host varchar(255), Db varchar(64), User varchar(32), Table_name varchar(64), \
         Grantor varchar(288), Timestamp timestamp, Table_priv varchar(98), \
         Column_priv varchar(31)",
    ),
    (
        "time_zone",
        "Time_zone_id int unsigned, Use_leap_seconds varchar(1)",
    ),
    (
        "time_zone_name",
        "Name varchar(64), Time_zone_id int unsigned",
    ),
];

/// The accounts of the connections, as names and hosts, in their order.
fn accounts(job: &Job) -> BTreeSet<(String, String)> {
    let connections = job.connection.engine.open_connections();
    let own = connection_account(&job.connection);
    let others = { connections.iter() }.map(|connection| connection_account(connection));
    others.chain([own]).collect()
}

/// The name and the host of the account of a connection.
pub(crate) fn connection_account(connection: &Connection) -> (String, String) {
    let user = connection.values.lock().user.clone();
    let (name, host) = user.rsplit_once('@').unwrap_or((&user, ""));
    (name.to_owned(), host.to_owned())
}

/// USER_PRIVILEGES.
pub(super) fn user_privileges(job: &Job) -> Listing {
    let mut listing = Listing::declared(
        "GRANTEE varchar(292), TABLE_CATALOG varchar(512), PRIVILEGE_TYPE varchar(64), \
         IS_GRANTABLE varchar(3)",
    );
    for (name, host) in accounts(job) {
        for privilege in &PRIVILEGES {
            listing.push(vec![
                Some(format!("'{name}'@'{host}'")),
                some(CATALOG),
                some(privilege.name),
                some("NO"),
            ]);
        }
    }
    listing
}

/// USER_ATTRIBUTES.
pub(super) fn user_attributes(job: &Job) -> Listing {
    let mut listing = Listing::declared("USER varchar(32), HOST varchar(255), ATTRIBUTE longtext");
    for (name, host) in accounts(job) {
        listing.push(vec![Some(name), Some(host), None]);
    }
    listing
}

/// `mysql.user`.
fn user(job: &Job) -> Listing {
    let mut listing = Listing::declared(USER);
    for (name, host) in accounts(job) {
        let columns = declared_columns(USER).map(|(column, _)| column);
        listing.push(columns.map(|column| cell(column, &name, &host)).collect());
    }
    listing
}

/// What `mysql.user` says of an account.
fn cell(column: &str, name: &str, host: &str) -> Option<String> {
    match column {
        "Host" => some(host),
        "User" => some(name),
        "ssl_type" | "ssl_cipher" | "x509_issuer" | "x509_subject" | "plugin" => some(""),
        "max_questions" | "max_updates" | "max_connections" | "max_user_connections" => some(0),
        "password_expired" | "account_locked" => some("N"),
        _ if column.ends_with("_priv") => {
            let may = PRIVILEGES.iter().any(|known| known.column == column);
            some(if may { "Y" } else { "N" })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{PRIVILEGES, USER, cell, declared_columns};

    #[test]
    fn each_privilege_has_its_column() {
        for privilege in &PRIVILEGES {
            let mut columns = declared_columns(USER);
            let is_there = columns.any(|(column, _)| column == privilege.column);
            assert!(is_there, "{}", privilege.name);
        }
        assert_eq!(cell("Select_priv", "a", "%").as_deref(), Some("Y"));
        assert_eq!(cell("Grant_priv", "a", "%").as_deref(), Some("N"));
        assert_eq!(cell("authentication_string", "a", "%"), None);
    }
}
