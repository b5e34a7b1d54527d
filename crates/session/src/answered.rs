//! What waits for the answer to a statement: how many bytes it is, and the log of slow statements,
//! which tells them.

use std::time::Duration;

use crate::connection::Connection;
use crate::slow_log::{Entry, Unlogged};
use crate::stats::Ended;

impl Connection {
    /// Whether a statement took longer than `long_query_time`, and is written to the log then; and
    /// how long it waited for others that wrote its tables.
    pub(crate) fn log_if_slow(&self, ended: &Ended<'_>) -> (bool, Duration) {
        let elapsed = Duration::from_secs_f64(ended.stats.elapsed_ms / 1000.0);
        let (settings, waited, explained) = {
            let mut local = self.local();
            let waited = std::mem::take(&mut local.waited);
            (local.settings().slow, waited, local.explained.take())
        };
        if elapsed < settings.long {
            return (false, waited);
        }
        let log = self.engine.shared().slow_log.as_ref();
        if let Some(log) = log.filter(|log| log.takes(&settings)) {
            let user = self.values.lock().user.clone();
            let mut local = self.local();
            let entry = Entry {
                user: &user,
                connection_id: self.id,
                database: local.database.as_deref(),
                warnings: &local.warnings,
                waited,
                explained: explained.as_deref(),
                ended,
            };
            let unlogged = Unlogged::new(&entry, &settings);
            match local.traffic {
                Some(_) => {
                    if let Some(before) = local.unlogged.replace(unlogged) {
                        log.write(before, None);
                    }
                }
                None => log.write(unlogged, None),
            }
        }
        (true, waited)
    }

    /// Counts what came and went since this was said last. The answer to a statement is sent then.
    pub(crate) fn exchanged(&self, received: u64, sent: u64) {
        let mut local = self.local();
        let (received_before, sent_before) =
            local.traffic.replace((received, sent)).unwrap_or_default();
        let new_received = received.saturating_sub(received_before);
        let new_sent = sent.saturating_sub(sent_before);
        local.status.bytes_received += new_received;
        local.status.bytes_sent += new_sent;
        let unlogged = local.unlogged.take();
        drop(local);
        self.engine.clients().exchanged(new_received, new_sent);
        if let (Some(unlogged), Some(log)) = (unlogged, &self.engine.shared().slow_log) {
            log.write(unlogged, Some(new_sent));
        }
    }

    /// Writes what waits for an answer that nobody will send.
    pub(crate) fn log_unanswered(&self) {
        let unlogged = self.local().unlogged.take();
        if let (Some(unlogged), Some(log)) = (unlogged, &self.engine.shared().slow_log) {
            log.write(unlogged, None);
        }
    }
}
