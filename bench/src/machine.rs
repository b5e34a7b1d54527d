//! The machine, the versions and the command, for the head of every report.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cgroup;

/// Bytes of memory in this machine.
pub(crate) fn memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib: Option<u64> = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok());
    kib.map_or(4 << 30, |kib| kib << 10)
}

/// What a reader must know to compare these numbers with others.
pub(crate) fn describe(temp_dir: &Path) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split_once(": "))
        .map_or("unknown", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    fact("processor", format!("{model}, {cores} cores"));
    fact("memory", crate::args::size(memory_bytes()));
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    fact("kernel", format!("Linux {}", kernel.trim()));
    fact("disk", disk(temp_dir));
    let pages = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    fact(
        "huge pages",
        pages.map_or("unknown".to_owned(), |text| text.trim().to_owned()),
    );
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    fact(
        "load at start",
        load.split(' ').next().unwrap_or("").to_owned(),
    );
    fact(
        "capped runs",
        match cgroup::available() {
            Ok(kind) => kind.to_owned(),
            Err(reason) => format!("skipped: {reason}"),
        },
    );
    fact("commit", commit());
    facts
}

/// Device, file system and mount options below a directory.
fn disk(dir: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let best = mounts
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let [device, mount, kind, options, ..] = words[..] else {
                return None;
            };
            dir.starts_with(mount)
                .then_some((mount.len(), device, kind, options))
        })
        .max_by_key(|(length, ..)| *length);
    best.map_or("unknown".to_owned(), |(_, device, kind, options)| {
        format!("{device}, {kind} ({options})")
    })
}

/// The commit of the working directory.
fn commit() -> String {
    let git = |args: &[&str]| {
        Command::new("git")
            .args(args)
            .output()
            .ok()
            .filter(|output| output.status.success())
            .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match git(&["rev-parse", "--short=12", "HEAD"]) {
        None => "not in a repository".to_owned(),
        Some(hash) => match git(&["status", "--porcelain", "--untracked-files=no"]) {
            Some(changes) if !changes.is_empty() => format!("{hash} with changes"),
            _ => hash,
        },
    }
}
