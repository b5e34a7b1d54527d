//! PROCESSLIST: the connections, what they do and what it takes.
//!
//! The columns of MySQL come first; SHOW PROCESSLIST has those alone. Then come those of MariaDB,
//! up to `TMP_SPACE_USED` of its 11.5. There are no query numbers, and a statement is on many
//! threads or none: `QUERY_ID` and `TID` are NULL.

use super::super::Job;
use crate::connection::Connection;
use crate::listing::{Listing, some};
use crate::progress::Progress;

pub(crate) fn processlist(job: &Job) -> Listing {
    let mut listing = Listing::declared(
        "ID bigint, USER varchar(128), HOST varchar(261), DB varchar(64), COMMAND varchar(16), \
         TIME bigint, STATE varchar(64), INFO longtext, TIME_MS decimal(22,3), STAGE tinyint, \
         MAX_STAGE tinyint, PROGRESS decimal(7,3), MEMORY_USED bigint, MAX_MEMORY_USED bigint, \
         EXAMINED_ROWS bigint, QUERY_ID bigint, INFO_BINARY blob, TID bigint, \
         TMP_SPACE_USED bigint",
    );
    for connection in job.connection.engine.open_connections() {
        listing.push(process(&connection));
    }
    listing
}

pub(super) fn process(connection: &Connection) -> Vec<Option<String>> {
    let running = connection.cancel.running();
    let (database, port) = {
        let local = connection.local();
        (local.database.clone(), local.client_port)
    };
    let progress = running.as_ref().map(|running| running.progress());
    let progress = progress.unwrap_or_default();
    let user = connection.values.lock().user.clone();
    let (user, host) = user.rsplit_once('@').unwrap_or((&user, ""));
    let host = match port {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    let command = match &running {
        Some(running) if running.is_prepared() => "Execute",
        Some(_) => "Query",
        None => "Sleep",
    };
    let state = running
        .as_ref()
        .map_or("", |running| running.stage().name());
    let text = running.as_ref().map(|running| running.text.to_string());
    let mut row = vec![
        some(connection.id),
        some(user),
        some(host),
        database,
        some(command),
        some(progress.elapsed.as_secs()),
        some(state),
        text.clone(),
        some(milliseconds(&progress)),
    ];
    row.extend(stages(&progress));
    let counters = connection.account.counters();
    row.extend([
        some(counters.resident_bytes + counters.reserved_bytes),
        some(counters.peak_bytes),
        some(progress.rows_read),
        None,
        text,
        None,
        some(counters.disk_bytes_used),
    ]);
    row
}

/// The time of a statement in milliseconds, with three digits behind the point.
fn milliseconds(progress: &Progress) -> String {
    let micros = progress.elapsed.as_micros();
    format!("{}.{:03}", micros / 1000, micros % 1000)
}

/// The stage of a statement, how many there are, and what part of it is done, in percent: one
/// stage where the rows to read are known, else none.
fn stages(progress: &Progress) -> [Option<String>; 3] {
    let Some(total) = progress.rows_total.filter(|total| *total > 0) else {
        return [some(0), some(0), some("0.000")];
    };
    let part = (progress.rows_read as f64 / total as f64).min(1.0);
    [some(1), some(1), some(format!("{:.3}", part * 100.0))]
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Progress, milliseconds, stages};

    #[test]
    fn progress_is_told_in_parts_of_what_is_known() {
        let progress = |rows_read, rows_total| Progress {
            rows_read,
            rows_total,
            elapsed: Duration::from_micros(12_034),
            ..Progress::default()
        };
        let shown = |progress| stages(&progress).map(Option::unwrap_or_default);
        assert_eq!(shown(progress(5, None)), ["0", "0", "0.000"]);
        assert_eq!(shown(progress(0, Some(0))), ["0", "0", "0.000"]);
        assert_eq!(shown(progress(1, Some(3))), ["1", "1", "33.333"]);
        assert_eq!(shown(progress(9, Some(3))), ["1", "1", "100.000"]);
        assert_eq!(milliseconds(&progress(0, None)), "12.034");
    }
}
