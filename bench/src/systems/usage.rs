//! What a running Mayfly server has taken, seen from outside and by its own counters.

use std::thread;
use std::time::{Duration, Instant};

use super::server::Server;
use crate::scripts::wire::Client;

/// How long clients that leave may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a server has taken at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Resident, as the kernel counts it.
    pub(crate) memory_bytes: u64,
    pub(crate) descriptors: u64,
    /// Of the budget.
    pub(crate) budget_bytes: u64,
    /// Of its temp files, in use.
    pub(crate) space_bytes: u64,
    /// Of its temp files, allocated.
    pub(crate) file_bytes: u64,
}

impl Usage {
    pub(crate) fn of(server: &Server, watching: &mut Client) -> Result<Usage, String> {
        let process = format!("/proc/{}", server.process());
        let failed = |error: std::io::Error| error.to_string();
        let status = std::fs::read_to_string(format!("{process}/status")).map_err(failed)?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = resident.and_then(|rest| rest.trim().strip_suffix(" kB"));
        let kib: u64 = kib.and_then(|kib| kib.parse().ok()).ok_or("no VmRSS")?;
        let descriptors = std::fs::read_dir(format!("{process}/fd")).map_err(failed)?;
        let files = "SELECT CAST(COALESCE(SUM(file_bytes), 0) AS UNSIGNED) \
                     FROM information_schema.MAYFLY_TEMP_FILES";
        let files = watching.query(files)?;
        let file_bytes = files.first().and_then(|bytes| bytes.parse().ok());
        Ok(Usage {
            memory_bytes: kib << 10,
            descriptors: descriptors.count() as u64,
            budget_bytes: counter(watching, "Memory_used")?,
            space_bytes: counter(watching, "Tmp_space_used")?,
            file_bytes: file_bytes.ok_or("no bytes of files")?,
        })
    }

    /// When all other clients have left, and the server has given back what they had.
    pub(crate) fn when_alone(server: &Server, watching: &mut Client) -> Result<Usage, String> {
        let begin = Instant::now();
        while counter(watching, "Threads_connected")? > 1 {
            if begin.elapsed() > PATIENCE {
                return Err("clients that went away are still there".to_owned());
            }
            thread::sleep(Duration::from_millis(20));
        }
        // Heaps are given back every two seconds.
        thread::sleep(Duration::from_secs(3));
        Usage::of(server, watching)
    }
}

/// A status counter of the server.
pub(crate) fn counter(client: &mut Client, name: &str) -> Result<u64, String> {
    let rows = client.query(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
    let value = rows.first().and_then(|row| row.split('\t').nth(1));
    let number = value.and_then(|value| value.parse().ok());
    number.ok_or_else(|| format!("no counter {name}"))
}
