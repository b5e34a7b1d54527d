//! Status counters of a session and of the engine.

use std::ops::AddAssign;

use mayfly_exec::{TableReads, Why};
use mayfly_space::Counters;

use crate::commands::{Command, Commands};
use crate::engine::Engine;
use crate::stats::Ended;
use crate::watchdog;

/// Counters that monitors draw, of what there is not here: no client is refused for these reasons,
/// tables are not opened and closed, and no thread belongs to a connection.
const ZEROS: [&str; 9] = [
    "Connection_errors_internal",
    "Connection_errors_peer_address",
    "Connection_errors_select",
    "Connection_errors_tcpwrap",
    "Table_open_cache_hits",
    "Table_open_cache_misses",
    "Table_open_cache_overflows",
    "Threads_cached",
    "Threads_created",
];

/// Rows of users' tables that a statement changed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowChanges {
    /// Rows that are new.
    pub(crate) written: u64,
    /// Rows that have other values.
    pub(crate) updated: u64,
    /// Rows that are gone, for others that took their places too.
    pub(crate) deleted: u64,
}

impl RowChanges {
    pub(crate) fn updated(rows: u64) -> RowChanges {
        RowChanges {
            updated: rows,
            ..RowChanges::default()
        }
    }

    pub(crate) fn deleted(rows: u64) -> RowChanges {
        RowChanges {
            deleted: rows,
            ..RowChanges::default()
        }
    }

    pub(crate) fn any(self) -> bool {
        self.written + self.updated + self.deleted > 0
    }
}

impl AddAssign for RowChanges {
    fn add_assign(&mut self, other: RowChanges) {
        self.written += other.written;
        self.updated += other.updated;
        self.deleted += other.deleted;
    }
}

/// Counters that SHOW STATUS lists; they only grow, until FLUSH STATUS.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Status {
    pub(crate) questions: u64,
    pub(crate) selects: u64,
    pub(crate) inserts: u64,
    pub(crate) updates: u64,
    pub(crate) deletes: u64,
    pub(crate) loads: u64,
    pub(crate) creates: u64,
    pub(crate) temporary_creates: u64,
    pub(crate) drops: u64,
    pub(crate) sets: u64,
    pub(crate) shows: u64,
    pub(crate) begins: u64,
    pub(crate) commits: u64,
    pub(crate) rollbacks: u64,
    pub(crate) truncates: u64,
    pub(crate) kills: u64,
    /// Of all other kinds.
    pub(crate) commands: Commands,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) rows_sent: u64,
    pub(crate) slow_queries: u64,
    pub(crate) changes: RowChanges,
    pub(crate) reads: TableReads,
    pub(crate) created_tmp_tables: u64,
    pub(crate) created_tmp_disk_tables: u64,
    pub(crate) handler_tmp_write: u64,
    pub(crate) sort_merge_passes: u64,
    pub(crate) sort_rows: u64,
    pub(crate) sort_scan: u64,
    pub(crate) sort_priority_queue: u64,
    pub(crate) temp_bytes_written: u64,
    pub(crate) temp_bytes_read: u64,
    pub(crate) temp_bytes_wasted: u64,
    pub(crate) device_bytes_written: u64,
    pub(crate) device_bytes_read: u64,
    pub(crate) peak_memory_bytes: u64,
    pub(crate) evictions: u64,
    pub(crate) plans_reused: u64,
    pub(crate) waits: u64,
    pub(crate) wait_nanos: u64,
}

impl Status {
    /// Adds what one statement read, and what its temporary tables and pages cost.
    pub(crate) fn add_statement(&mut self, ended: &Ended<'_>, rows_sent: u64) {
        let Ended {
            tables, counters, ..
        } = ended;
        self.rows_sent += rows_sent;
        self.reads += ended.reads.tables;
        self.created_tmp_tables += tables.len() as u64;
        for table in *tables {
            self.created_tmp_disk_tables += u64::from(table.on_disk);
            self.handler_tmp_write += table.rows;
            match table.why {
                Why::OrderBy => {
                    self.sort_rows += table.rows;
                    self.sort_scan += 1;
                    self.sort_merge_passes += table.passes.saturating_sub(1);
                }
                Why::OrderByLimit => {
                    self.sort_rows += table.rows;
                    self.sort_scan += 1;
                    self.sort_priority_queue += 1;
                }
                _ => {}
            }
        }
        self.temp_bytes_written += counters.bytes_written;
        self.temp_bytes_read += counters.bytes_read;
        self.temp_bytes_wasted += counters.wasted_write_bytes;
        self.device_bytes_written += counters.device_bytes_written;
        self.device_bytes_read += counters.device_bytes_read;
        self.peak_memory_bytes = self.peak_memory_bytes.max(counters.peak_bytes);
        self.evictions += counters.evictions;
        self.waits += counters.waits;
        self.wait_nanos += counters.wait_nanos;
    }

    /// Puts what all accounts together moved in the place of what statements did: a page may be
    /// written after its statement, and two statements may wait for one page.
    fn moved_by_all(&mut self, memory: &Counters) {
        self.temp_bytes_written = memory.bytes_written;
        self.temp_bytes_read = memory.bytes_read;
        self.temp_bytes_wasted = memory.wasted_write_bytes;
        self.device_bytes_written = memory.device_bytes_written;
        self.device_bytes_read = memory.device_bytes_read;
        self.evictions = memory.evictions;
        self.waits = memory.waits;
        self.wait_nanos = memory.wait_nanos;
    }

    /// Names and values, in the order of SHOW STATUS.
    pub(crate) fn list(&self, files_created: u64) -> Vec<(&'static str, u64)> {
        let mut rows = vec![
            ("Bytes_received", self.bytes_received),
            ("Bytes_sent", self.bytes_sent),
            ("Com_begin", self.begins),
            ("Com_commit", self.commits),
            ("Com_create_table", self.creates),
            ("Com_create_temporary_table", self.temporary_creates),
            ("Com_delete", self.deletes),
            ("Com_drop_table", self.drops),
            ("Com_insert", self.inserts),
            ("Com_kill", self.kills),
            ("Com_load", self.loads),
            ("Com_rollback", self.rollbacks),
            ("Com_select", self.selects),
            ("Com_set_option", self.sets),
            ("Com_show_status", self.shows),
            ("Com_truncate", self.truncates),
            ("Com_update", self.updates),
            ("Created_tmp_disk_tables", self.created_tmp_disk_tables),
            ("Created_tmp_files", files_created),
            ("Created_tmp_tables", self.created_tmp_tables),
            ("Handler_delete", self.changes.deleted),
            ("Handler_read_first", self.reads.firsts),
            ("Handler_read_key", self.reads.searches),
            ("Handler_read_last", self.reads.lasts),
            ("Handler_read_next", self.reads.next_rows),
            ("Handler_read_prev", self.reads.previous_rows),
            ("Handler_read_rnd_next", self.reads.scanned_rows),
            ("Handler_tmp_write", self.handler_tmp_write),
            ("Handler_update", self.changes.updated),
            ("Handler_write", self.changes.written),
            ("Mayfly_device_bytes_read", self.device_bytes_read),
            ("Mayfly_device_bytes_written", self.device_bytes_written),
            ("Mayfly_evictions", self.evictions),
            ("Mayfly_peak_memory_bytes", self.peak_memory_bytes),
            ("Mayfly_plans_reused", self.plans_reused),
            ("Mayfly_temp_bytes_read", self.temp_bytes_read),
            ("Mayfly_temp_bytes_wasted", self.temp_bytes_wasted),
            ("Mayfly_temp_bytes_written", self.temp_bytes_written),
            ("Mayfly_wait_microseconds", self.wait_nanos / 1000),
            ("Mayfly_waits", self.waits),
            ("Queries", self.questions),
            ("Questions", self.questions),
            ("Rows_read", self.reads.rows()),
            ("Rows_sent", self.rows_sent),
            ("Slow_queries", self.slow_queries),
            ("Sort_merge_passes", self.sort_merge_passes),
            ("Sort_priority_queue_sorts", self.sort_priority_queue),
            ("Sort_rows", self.sort_rows),
            ("Sort_scan", self.sort_scan),
        ];
        rows.extend(self.commands.list());
        rows
    }
}

impl Engine {
    /// What SHOW GLOBAL STATUS lists, in its order.
    pub fn status(&self) -> Vec<(&'static str, u64)> {
        let mut status = self.globals().status;
        let memory = self.space().counters();
        status.moved_by_all(&memory);
        (status.bytes_received, status.bytes_sent) = self.clients().traffic();
        let executed = self.clients().executed();
        status.commands.set(Command::StatementExecute, executed);
        self.list_status(&status, &memory)
    }

    /// The counters of statements and of memory, with what concerns all sessions.
    pub(crate) fn list_status(
        &self,
        status: &Status,
        memory: &Counters,
    ) -> Vec<(&'static str, u64)> {
        let space = self.space();
        let mut rows = status.list(space.counters().files_created);
        rows.extend(self.clients().list());
        rows.extend(ZEROS.map(|name| (name, 0)));
        rows.extend([
            ("Connections", self.globals().connections_made),
            ("Max_memory_used", memory.peak_bytes),
            ("Max_tmp_space_used", memory.disk_peak_bytes),
            ("Mayfly_memory_bytes", space.memory_bytes()),
            (
                "Mayfly_resident_bytes",
                watchdog::resident_bytes().unwrap_or(0),
            ),
            (
                "Mayfly_statements_ended_for_memory",
                self.shared().watchdog.ended(),
            ),
            ("Memory_used", memory.resident_bytes + memory.reserved_bytes),
            ("Threads_connected", self.open_connections().len() as u64),
            ("Threads_running", self.shared().statements.running() as u64),
            ("Tmp_space_used", memory.disk_bytes_used),
            ("Uptime", self.shared().started.elapsed().as_secs()),
        ]);
        rows.sort_unstable();
        rows
    }
}
