//! The workloads of the page and the other scripts that sysbench comes with, in its words.
//!
//! Owns: the script and the options of each, what each may change, the run of a cell.
//! Never: reads the tables itself; that is `check`.

use std::path::PathBuf;

use super::check::{Changes, Known, Sums};
use crate::loads::sysbench::Sysbench;
use crate::loads::{Contender, Host, Load, Rate, ask};
use crate::systems::server::Server;

/// Errors after which a transaction is begun again: deadlock, changed row, time out of a lock, and
/// a duplicate. Neither MyISAM's tables nor our shared ones have transactions: two clients may
/// insert the same row again after both deleted it. The report counts these errors.
const RETRIED: &str = "1213,1020,1205,1062";

/// Where the events of a workload are written.
#[derive(Clone, Copy, Debug)]
enum Script {
    /// In a script that sysbench comes with.
    Stock(&'static str),
    /// In one of this crate.
    Own(&'static str),
}

#[derive(Debug)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    script: Script,
    options: &'static [&'static str],
    pub(super) changes: Changes,
}

pub(super) const WORKLOADS: [Workload; 13] = [
    Workload {
        name: "point select",
        script: Script::Stock("oltp_point_select"),
        options: &[],
        changes: Changes::Nothing,
    },
    Workload {
        name: "range select",
        script: Script::Stock("oltp_read_only"),
        // 100 rows by primary key, and nothing else.
        options: &[
            "--skip-trx=on",
            "--point-selects=0",
            "--sum-ranges=0",
            "--order-ranges=0",
            "--distinct-ranges=0",
        ],
        changes: Changes::Nothing,
    },
    Workload {
        name: "OLTP read-only",
        script: Script::Stock("oltp_read_only"),
        options: &[],
        changes: Changes::Nothing,
    },
    Workload {
        name: "update key",
        script: Script::Stock("oltp_update_index"),
        options: &[],
        changes: Changes::Key,
    },
    Workload {
        name: "update non-key",
        script: Script::Stock("oltp_update_non_index"),
        options: &[],
        changes: Changes::Text,
    },
    Workload {
        name: "OLTP read-write",
        script: Script::Stock("oltp_read_write"),
        options: &[],
        changes: Changes::Rows,
    },
    Workload {
        name: "random points",
        script: Script::Stock("select_random_points"),
        options: &[],
        changes: Changes::Nothing,
    },
    Workload {
        name: "random ranges",
        script: Script::Stock("select_random_ranges"),
        options: &[],
        changes: Changes::Nothing,
    },
    Workload {
        name: "OLTP write-only",
        script: Script::Stock("oltp_write_only"),
        options: &[],
        changes: Changes::Rows,
    },
    Workload {
        name: "batch select",
        script: Script::Own("batch_select.lua"),
        options: &["--batch-size=20000"],
        changes: Changes::Nothing,
    },
    Workload {
        name: "short queries",
        script: Script::Own("short_queries.lua"),
        options: &[],
        changes: Changes::Nothing,
    },
    // Behind them the table has another number of rows.
    Workload {
        name: "insert",
        script: Script::Stock("oltp_insert"),
        options: &[],
        changes: Changes::Count,
    },
    Workload {
        name: "delete",
        script: Script::Stock("oltp_delete"),
        options: &[],
        changes: Changes::Count,
    },
];

/// What all cells share.
pub(super) struct Setup {
    pub(super) rows: u64,
    /// Of a run.
    pub(super) seconds: u64,
    /// The directory of our scripts.
    pub(super) drivers: PathBuf,
}

/// A workload with so many threads.
pub(super) struct Cell<'a> {
    pub(super) workload: &'a Workload,
    pub(super) clients: usize,
    pub(super) setup: &'a Setup,
}

impl Load for Cell<'_> {
    type Known = Known;

    fn name(&self) -> &str {
        self.workload.name
    }

    fn clients(&self) -> usize {
        self.clients
    }

    fn prepare(&self, contender: &Contender, server: &Server) -> Result<Known, String> {
        let sysbench = Sysbench {
            script: "oltp_read_write",
            options: &[],
            socket: &server.socket,
            rows: self.setup.rows,
        };
        if matches!(contender.host, Host::Mayfly { .. }) {
            // MariaDB gets it as an option.
            ask(server, "SET GLOBAL max_connections = 2000;\nSELECT 1")?;
        }
        sysbench.prepare("myisam")?;
        let sums = Sums::read(server)?;
        sums.complete(self.setup.rows)?;
        Ok(Known::new(sums))
    }

    fn run(
        &self,
        _contender: &Contender,
        server: &Server,
        run: usize,
        known: &mut Known,
    ) -> Result<Rate, String> {
        let script = match self.workload.script {
            Script::Stock(name) => name.to_owned(),
            Script::Own(name) => self.setup.drivers.join(name).display().to_string(),
        };
        let sysbench = Sysbench {
            script: &script,
            options: self.workload.options,
            socket: &server.socket,
            rows: self.setup.rows,
        };
        let report = sysbench.run(self.clients, self.setup.seconds, run, RETRIED)?;
        if report.reconnects > 0 {
            return Err(format!("{} connections were lost", report.reconnects));
        }
        known.ran(self.workload.changes, report.writes);
        Ok(Rate {
            queries: report.queries,
            seconds: report.seconds,
            ignored_errors: report.ignored_errors,
            latency_ms: report.latency_ms,
            ..Rate::default()
        })
    }

    fn check(&self, server: &Server, known: &mut Known) -> Result<Option<String>, String> {
        known.check(Sums::read(server)?, self.setup.rows)
    }
}
