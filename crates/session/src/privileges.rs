//! What an account may do: everything that there is to do.
//!
//! The one list of it: SHOW PRIVILEGES, SHOW GRANTS, INFORMATION_SCHEMA.USER_PRIVILEGES and
//! `mysql.user` read it. Whoever may connect may do all of it, to every database, and can hand
//! none of it on, as there is no GRANT.

/// Something that an account may do.
pub(crate) struct Privilege {
    /// Its name in GRANT.
    pub(crate) name: &'static str,
    /// What it applies to, as SHOW PRIVILEGES says it.
    pub(crate) context: &'static str,
    /// What it allows, as SHOW PRIVILEGES says it.
    pub(crate) comment: &'static str,
    /// Its column in `mysql.user`.
    pub(crate) column: &'static str,
}

const fn privilege(
    name: &'static str,
    column: &'static str,
    context: &'static str,
    comment: &'static str,
) -> Privilege {
    Privilege {
        name,
        context,
        comment,
        column,
    }
}

/// The privileges of every account, in the order in which SHOW GRANTS names them. MySQL's
/// privileges for what Mayfly does not have (views, routines, replication, accounts) are left out.
pub(crate) const PRIVILEGES: [Privilege; 16] = [
    privilege(
        "SELECT",
        "Select_priv",
        "Tables",
        "To retrieve rows from table",
    ),
    privilege(
        "INSERT",
        "Insert_priv",
        "Tables",
        "To insert data into tables",
    ),
    privilege("UPDATE", "Update_priv", "Tables", "To update existing rows"),
    privilege("DELETE", "Delete_priv", "Tables", "To delete existing rows"),
    privilege(
        "CREATE",
        "Create_priv",
        "Databases,Tables,Indexes",
        "To create new databases and tables",
    ),
    privilege(
        "DROP",
        "Drop_priv",
        "Databases,Tables",
        "To drop databases, tables, and views",
    ),
    privilege(
        "RELOAD",
        "Reload_priv",
        "Server Admin",
        "To reload or refresh tables, logs and privileges",
    ),
    privilege(
        "PROCESS",
        "Process_priv",
        "Server Admin",
        "To view the plain text of currently executing queries",
    ),
    privilege(
        "FILE",
        "File_priv",
        "File access on server",
        "To read and write files on the server",
    ),
    privilege(
        "REFERENCES",
        "References_priv",
        "Databases,Tables",
        "To have references on tables",
    ),
    privilege("INDEX", "Index_priv", "Tables", "To create or drop indexes"),
    privilege("ALTER", "Alter_priv", "Tables", "To alter the table"),
    privilege(
        "SHOW DATABASES",
        "Show_db_priv",
        "Server Admin",
        "To see all databases with SHOW DATABASES",
    ),
    privilege(
        "SUPER",
        "Super_priv",
        "Server Admin",
        "To use KILL thread, SET GLOBAL, CHANGE MASTER, etc.",
    ),
    privilege(
        "CREATE TEMPORARY TABLES",
        "Create_tmp_table_priv",
        "Databases",
        "To use CREATE TEMPORARY TABLE",
    ),
    privilege(
        "LOCK TABLES",
        "Lock_tables_priv",
        "Databases",
        "To use LOCK TABLES (together with SELECT privilege)",
    ),
];
