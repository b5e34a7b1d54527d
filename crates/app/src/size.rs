//! Sizes as people write them: `64M`, `1.5G`, `50%`.

use std::path::Path;

use anyhow::{Context, Result, bail};

/// Reads a size in bytes. Suffixes K, M, G and T are powers of 1024 and may end in `B` or `iB`.
pub fn parse_bytes(text: &str) -> Result<u64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let shift = match suffix.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => bail!("'{text}' is not a size; write it like 64M, 1.5G or 1048576"),
    };
    let Ok(number) = number.parse::<f64>() else {
        bail!("'{text}' is not a size; write it like 64M, 1.5G or 1048576");
    };
    let bytes = number * 2f64.powi(shift);
    if bytes >= 9.0e18 {
        bail!("'{text}' is more than any machine has");
    }
    Ok(bytes as u64)
}

/// Reads a size or a share (`50%`) of `whole_bytes`.
pub fn parse_share(text: &str, whole_bytes: u64) -> Result<u64> {
    let Some(share) = text.trim().strip_suffix('%') else {
        return parse_bytes(text);
    };
    let Ok(share) = share.trim().parse::<f64>() else {
        bail!("'{text}' is not a share; write it like 50%");
    };
    if !(share > 0.0 && share <= 100.0) {
        bail!("'{text}' must lie above 0% and not above 100%");
    }
    Ok((whole_bytes as f64 * share / 100.0) as u64)
}

/// Memory that this process may use: the machine's, or the limit of a control group that it is in
/// where that is lower.
pub fn machine_memory_bytes() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").context("reading /proc/meminfo")?;
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .context("/proc/meminfo names no MemTotal")?
        * 1024;
    let limit = group_limit_bytes();
    Ok(limit.map_or(total, |limit| limit.min(total)))
}

/// The lowest limit of memory of the control groups around this process, if one has any.
///
/// A container sees its own group as the root of all; a service of systemd sees the whole tree,
/// and `/proc/self/cgroup` says where in it it is.
fn group_limit_bytes() -> Option<u64> {
    const VERSION_2: &str = "/sys/fs/cgroup";
    const VERSION_1: &str = "/sys/fs/cgroup/memory";
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mut limits = vec![
        Path::new(VERSION_2).join("memory.max"),
        Path::new(VERSION_1).join("memory.limit_in_bytes"),
    ];
    for line in groups.lines() {
        // 0::/system.slice/mayfly.service, and in version 1 4:memory:/system.slice/mayfly.service
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else {
            continue;
        };
        let (mount, file) = match controllers {
            "" => (VERSION_2, "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                (VERSION_1, "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let around = Path::new(group.trim_start_matches('/')).ancestors();
        limits.extend(around.map(|group| Path::new(mount).join(group).join(file)));
    }
    let limits = limits.iter();
    limits
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .filter_map(|text| text.trim().parse::<u64>().ok())
        .min()
}

/// Writes `bytes` for people: `1.5 GiB`.
pub fn display_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            let digits = usize::from(value < 10.0 && unit != "B");
            return format!("{value:.digits$} {unit}");
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}
