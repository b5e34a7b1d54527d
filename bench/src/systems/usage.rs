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
    /// Of these, in the arena, which is the largest mapping of the process.
    pub(crate) arena_bytes: u64,
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
            arena_bytes: largest_mapping(&format!("{process}/smaps")).map_err(failed)?,
            descriptors: descriptors.count() as u64,
            budget_bytes: counter(watching, "Memory_used")?,
            space_bytes: counter(watching, "Tmp_space_used")?,
            file_bytes: file_bytes.ok_or("no bytes of files")?,
        })
    }

    /// The more of each.
    pub(crate) fn or_more(self, other: &Usage) -> Usage {
        self.with(other, u64::max)
    }

    /// The sum of each.
    pub(crate) fn plus(self, other: &Usage) -> Usage {
        self.with(other, u64::saturating_add)
    }

    fn with(self, other: &Usage, both: fn(u64, u64) -> u64) -> Usage {
        Usage {
            memory_bytes: both(self.memory_bytes, other.memory_bytes),
            arena_bytes: both(self.arena_bytes, other.arena_bytes),
            descriptors: both(self.descriptors, other.descriptors),
            budget_bytes: both(self.budget_bytes, other.budget_bytes),
            space_bytes: both(self.space_bytes, other.space_bytes),
            file_bytes: both(self.file_bytes, other.file_bytes),
        }
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

/// Resident bytes of the largest mapping that is no file.
fn largest_mapping(maps: &str) -> std::io::Result<u64> {
    let text = std::fs::read_to_string(maps)?;
    Ok(resident_of_largest(&text))
}

fn resident_of_largest(maps: &str) -> u64 {
    let (mut largest, mut resident_kib) = (0, 0);
    let (mut size, mut is_file) = (0, false);
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some((begin, end)) = first.split_once('-')
            && let Ok(begin) = u64::from_str_radix(begin, 16)
            && let Ok(end) = u64::from_str_radix(end, 16)
        {
            // Permissions, offset, device, inode, path.
            (size, is_file) = (end - begin, words.nth(4).is_some());
        } else if first == "Rss:" && !is_file && size > largest {
            let kib = words.next().and_then(|kib| kib.parse().ok());
            (largest, resident_kib) = (size, kib.unwrap_or_default());
        }
    }
    resident_kib << 10
}

/// A status counter of the server.
pub(crate) fn counter(client: &mut Client, name: &str) -> Result<u64, String> {
    let rows = client.query(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
    let value = rows.first().and_then(|row| row.split('\t').nth(1));
    let number = value.and_then(|value| value.parse().ok());
    number.ok_or_else(|| format!("no counter {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arena_is_the_largest_mapping_without_a_file() {
        let maps = "\
7f0000000000-7f0040000000 r--s 00000000 08:01 77 /a/file
Size:            1048576 kB
Rss:                 999 kB
7f1000000000-7f1010000000 rw-p 00000000 00:00 0
Size:             262144 kB
Rss:                  12 kB
7f2000000000-7f2000010000 rw-p 00000000 00:00 0 [stack]
Rss:                  64 kB
";
        assert_eq!(resident_of_largest(maps), 12 << 10);
    }
}
