//! Sizes as people write them: `64M`, `1.5G`, `50%`.

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

/// Memory that this process may use: the machine's, or its control group's limit where that is
/// lower.
pub fn machine_memory_bytes() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").context("reading /proc/meminfo")?;
    let total = text
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.trim().strip_suffix("kB"))
        .and_then(|kib| kib.trim().parse::<u64>().ok())
        .context("/proc/meminfo names no MemTotal")?
        * 1024;
    let limit = [
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    ]
    .iter()
    .filter_map(|path| std::fs::read_to_string(path).ok())
    .filter_map(|text| text.trim().parse::<u64>().ok())
    .min();
    Ok(limit.map_or(total, |limit| limit.min(total)))
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
