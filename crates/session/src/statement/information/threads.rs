//! `performance_schema` about connections, each of which is one thread there: `threads` and what
//! hangs on it.
//!
//! A connection has no thread of its own here, so its number stands for that of its thread.
//!
//! **Source**: names, types and order of the columns as MySQL 8.4 shows them. An ENUM is a text.

use super::super::Job;
use super::processes::process;
use crate::listing::{Listing, some};
use crate::named::spelled;

pub(super) fn threads(job: &Job) -> Listing {
    let mut listing = Listing::declared(
        "THREAD_ID bigint unsigned, NAME varchar(128), TYPE varchar(10), \
         PROCESSLIST_ID bigint unsigned, PROCESSLIST_USER varchar(32), \
         PROCESSLIST_HOST varchar(255), PROCESSLIST_DB varchar(64), \
         PROCESSLIST_COMMAND varchar(16), PROCESSLIST_TIME bigint, PROCESSLIST_STATE varchar(64), \
         PROCESSLIST_INFO longtext, PARENT_THREAD_ID bigint unsigned, ROLE varchar(64), \
         INSTRUMENTED varchar(3), HISTORY varchar(3), CONNECTION_TYPE varchar(16), \
         THREAD_OS_ID bigint unsigned, RESOURCE_GROUP varchar(64), EXECUTION_ENGINE varchar(9), \
         CONTROLLED_MEMORY bigint unsigned, MAX_CONTROLLED_MEMORY bigint unsigned, \
         TOTAL_MEMORY bigint unsigned, MAX_TOTAL_MEMORY bigint unsigned, \
         TELEMETRY_ACTIVE varchar(3)",
    );
    for connection in job.connection.engine.open_connections() {
        let mut shown = process(&connection).into_iter();
        let mut next = || shown.next().flatten();
        let (id, user, host, database) = (next(), next(), next(), next());
        let (command, time, state, text) = (next(), next(), next(), next());
        let host = host.map(|host| host.split(':').next().unwrap_or_default().to_owned());
        let state = state.filter(|state| !state.is_empty());
        let mut row = vec![
            id.clone(),
            some("thread/sql/one_connection"),
            some("FOREGROUND"),
            id,
            user,
            host,
            database,
            command,
            time,
            state,
            text,
        ];
        // Statements are counted by their digest, and none of them is remembered by itself.
        row.extend([None, None, some("YES"), some("NO")]);
        row.extend([None, None, None, some("PRIMARY")]);
        let counters = connection.account.counters();
        let memory = some(counters.resident_bytes + counters.reserved_bytes);
        let peak = some(counters.peak_bytes);
        row.extend([memory.clone(), peak.clone(), memory, peak, some("NO")]);
        listing.push(row);
    }
    listing
}

/// A value that is no text is NULL.
pub(super) fn user_variables(job: &Job) -> Listing {
    let mut listing = Listing::declared(
        "THREAD_ID bigint unsigned, VARIABLE_NAME varchar(64), VARIABLE_VALUE longblob",
    );
    for connection in job.connection.engine.open_connections() {
        let local = connection.local();
        for (name, value) in &local.user_variables {
            listing.push(vec![some(connection.id), some(name), spelled(value)]);
        }
    }
    listing
}

/// Whose statements are counted: all.
pub(super) fn actors(_: &Job) -> Listing {
    let mut listing = Listing::declared(
        "HOST varchar(255), USER varchar(32), ROLE varchar(32), ENABLED varchar(3), \
         HISTORY varchar(3)",
    );
    listing.push(["%", "%", "%", "YES", "NO"].map(some).to_vec());
    listing
}
