//! A memory cgroup around one child process.
//!
//! Owns: one child group per measured process, removed when dropped.
//! Never: touches a group that it did not create.
//!
//! A system's own memory knob leaves the page cache outside; a container counts it. Both
//! interfaces do: version 1 (`memory.limit_in_bytes`) and version 2 (`memory.max`). The process
//! enters the group before it starts, so every page that it touches first is charged to it.
//! Input files that are in the page cache already stay charged to whoever read them first.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Interface {
    V1,
    V2,
}

/// A group with a limit; dropping it removes it.
pub(crate) struct Cap {
    dir: PathBuf,
    interface: Interface,
}

/// What the group saw.
#[derive(Clone, Copy, Default)]
pub(crate) struct CapReport {
    /// Most memory charged at once, page cache included.
    pub(crate) peak_bytes: u64,
    /// Processes that the kernel killed for lack of memory.
    pub(crate) killed: u64,
}

impl Cap {
    /// Creates a group limited to `limit_bytes`.
    ///
    /// # Errors
    /// The reason why this machine does not allow it.
    pub(crate) fn create(limit_bytes: u64) -> Result<Self, String> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let (parents, interface) = parents()?;
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let name = format!("mayfly-bench-{}-{serial}", std::process::id());
        let mut reason = String::from("no memory cgroup is mounted");
        for parent in parents {
            let dir = parent.join(&name);
            if let Err(error) = fs::create_dir(&dir) {
                reason = format!("{}: {error}", dir.display());
                continue;
            }
            let cap = Self { dir, interface };
            match cap.limit(limit_bytes) {
                Ok(()) => return Ok(cap),
                Err(error) => reason = format!("{}: {error}", cap.dir.display()),
            }
        }
        Err(reason)
    }

    fn limit(&self, bytes: u64) -> std::io::Result<()> {
        let text = bytes.to_string();
        match self.interface {
            Interface::V1 => {
                fs::write(self.dir.join("memory.limit_in_bytes"), &text)?;
                // Swap is counted only where the kernel was built to: its absence is no error.
                let swap = self.dir.join("memory.memsw.limit_in_bytes");
                if swap.exists() {
                    fs::write(swap, &text)?;
                }
            }
            Interface::V2 => {
                fs::write(self.dir.join("memory.max"), &text)?;
                let swap = self.dir.join("memory.swap.max");
                if swap.exists() {
                    fs::write(swap, "0")?;
                }
            }
        }
        Ok(())
    }

    /// The file to which a process writes its id to enter.
    pub(crate) fn entrance(&self) -> PathBuf {
        self.dir.join("cgroup.procs")
    }

    /// What the group saw so far.
    pub(crate) fn report(&self) -> CapReport {
        let number = |name: &str| -> u64 {
            fs::read_to_string(self.dir.join(name))
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .unwrap_or(0)
        };
        let field = |name: &str, key: &str| -> u64 {
            let text = fs::read_to_string(self.dir.join(name)).unwrap_or_default();
            text.lines()
                .filter_map(|line| line.split_once(' '))
                .find(|(found, _)| *found == key)
                .and_then(|(_, value)| value.trim().parse().ok())
                .unwrap_or(0)
        };
        match self.interface {
            Interface::V1 => CapReport {
                peak_bytes: number("memory.max_usage_in_bytes"),
                killed: field("memory.oom_control", "oom_kill"),
            },
            Interface::V2 => CapReport {
                peak_bytes: number("memory.peak"),
                killed: field("memory.events", "oom_kill"),
            },
        }
    }
}

impl Drop for Cap {
    fn drop(&mut self) {
        // The kernel refuses for a moment after the last process has gone.
        for _ in 0..50 {
            if fs::remove_dir(&self.dir).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

/// Whether a capped measurement is possible here, or why not.
pub(crate) fn available() -> Result<&'static str, String> {
    let cap = Cap::create(1 << 30)?;
    Ok(match cap.interface {
        Interface::V1 => "memory cgroup, version 1",
        Interface::V2 => "memory cgroup, version 2",
    })
}

/// Groups below which ours may be created: our own first, then the root of the mount.
fn parents() -> Result<(Vec<PathBuf>, Interface), String> {
    let mounts = fs::read_to_string("/proc/self/mounts").map_err(|error| error.to_string())?;
    let own = fs::read_to_string("/proc/self/cgroup").map_err(|error| error.to_string())?;
    let mut version_2 = None;
    for line in mounts.lines() {
        let mut words = line.split(' ');
        let (_, Some(dir), Some(kind), Some(options)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let root = Path::new(dir);
        if kind == "cgroup" && options.split(',').any(|option| option == "memory") {
            let below = own
                .lines()
                .filter_map(|line| line.split(':').nth(1).zip(line.splitn(3, ':').nth(2)))
                .find(|(controllers, _)| controllers.split(',').any(|name| name == "memory"))
                .map(|(_, path)| root.join(path.trim_start_matches('/')));
            let parents = below.into_iter().chain([root.to_owned()]);
            return Ok((parents.filter(|dir| dir.is_dir()).collect(), Interface::V1));
        }
        if kind == "cgroup2" {
            let below = own
                .lines()
                .find_map(|line| line.strip_prefix("0::"))
                .map(|path| root.join(path.trim_start_matches('/')));
            let holds_memory = |dir: &PathBuf| {
                fs::read_to_string(dir.join("cgroup.subtree_control"))
                    .is_ok_and(|text| text.split_whitespace().any(|name| name == "memory"))
            };
            let parents: Vec<PathBuf> = below
                .into_iter()
                .flat_map(|dir| dir.ancestors().map(Path::to_owned).collect::<Vec<_>>())
                .filter(|dir| dir.starts_with(root) && holds_memory(dir))
                .collect();
            version_2 = Some(parents);
        }
    }
    match version_2 {
        Some(parents) if !parents.is_empty() => Ok((parents, Interface::V2)),
        Some(_) => Err("the memory controller is not delegated to this process".to_owned()),
        None => Err("no memory cgroup is mounted".to_owned()),
    }
}
