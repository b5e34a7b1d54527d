//! The memory that the program itself takes: its code, and heaps that the allocator keeps.
//!
//! **Owns** nothing.
//!
//! **Code.** The pages of an executable are clean copies of a file: the kernel may drop
//! them and read them again, but on an idle machine it does not. Planning a statement runs through
//! tens of megabytes of code that running it never needs, so a process with a small budget would
//! carry more code than data. Before the budget fills up, the code is given back; what is still
//! needed comes back from the page cache, 64 KiB a fault (about 1 us each).
//!
//! **Heaps.** The allocator of glibc gives threads heaps of their own, and each keeps what was
//! freed last: rows on their way from a file into a table at 64 MiB held 40 MiB of heap, and five
//! heaps held 80. One for all of them keeps 60, and takes no more time on two cores; threads wait
//! for each other there, so larger budgets have more, up to one for each processor.
//!
//! What heaps keep when it is freed is a part of the budget as well. By its own rule glibc keeps
//! twice the largest block that was freed so far, gives all above that back, and faults it in again
//! for the next batch: a fifth to a third of the time of queries over Parquet files. Much less is
//! kept below 64 MiB of budget, where every MiB counts.

#![expect(
    unsafe_code,
    reason = "tells the kernel about the mapping of the program's code, and the allocator its limits"
)]

use std::io;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A mapping of this process that holds code and nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CodeMapping {
    start: usize,
    len: usize,
}

/// What the whole process does at most once in a period. Asking takes some 30 ns.
pub(crate) struct Pace {
    period: Duration,
    /// When it may be done again, in milliseconds after the first question of all.
    next_ms: AtomicU64,
}

impl Pace {
    const fn once_in(period: Duration) -> Pace {
        Pace {
            period,
            next_ms: AtomicU64::new(0),
        }
    }

    /// Whether it is to be done now, by who asks.
    fn is_due(&self) -> bool {
        static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
        let now_ms = BEGIN.elapsed().as_millis() as u64;
        let next_ms = self.next_ms.load(Relaxed);
        let then_ms = now_ms + self.period.as_millis() as u64;
        now_ms >= next_ms
            && self
                .next_ms
                .compare_exchange(next_ms, then_ms, Relaxed, Relaxed)
                .is_ok()
    }
}

/// Code that just came back is left in memory: short statements one after the other need the same
/// of it, and would wait for the kernel longer than they run.
static CODE: Pace = Pace::once_in(Duration::from_millis(50));

/// What was taken of the heaps since is left to them: other statements may run meanwhile, and all
/// wait for the allocator while it gives memory back.
pub(crate) static HEAPS: Pace = Pace::once_in(Duration::from_millis(200));

/// Memory that is held twice is given back sooner.
pub(crate) static NEEDED_HEAPS: Pace = Pace::once_in(Duration::from_millis(20));

/// Lets the kernel take back the memory of the program's code, unless it just did. Returns whether
/// it was asked to; what it refuses costs memory and nothing else.
pub(crate) fn give_code_back_in_time() -> bool {
    let is_due = CODE.is_due();
    if is_due {
        let _refused = give_code_back();
    }
    is_due
}

/// Lets the kernel take back the memory of the program's code. Returns the bytes of code that are
/// mapped, in memory or not.
///
/// # Errors
/// Where `/proc/self/maps` cannot be read or the kernel refuses the advice.
fn give_code_back() -> io::Result<usize> {
    if cfg!(miri) {
        // Miri has no mappings.
        return Ok(0);
    }
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    let program = std::env::current_exe()?;
    let program = program.to_string_lossy();
    let mut bytes = 0;
    for mapping in maps.lines().filter_map(|line| code_mapping(line, &program)) {
        drop_pages(mapping)?;
        bytes += mapping.len;
    }
    Ok(bytes)
}

/// The mapping that a line describes, if it is private, executable, not writable, and of the
/// program's file.
fn code_mapping(line: &str, program: &str) -> Option<CodeMapping> {
    let mut fields = line.split_ascii_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    if fields.next()? != "r-xp" || !line.ends_with(program) {
        return None;
    }
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    Some(CodeMapping {
        start,
        len: end - start,
    })
}

fn drop_pages(mapping: CodeMapping) -> io::Result<()> {
    use rustix::mm::{Advice, madvise};
    let start = std::ptr::with_exposed_provenance_mut(mapping.start);
    // SAFETY: S7: the mapping is private, of a file and never written, so a page that is dropped
    // reads the same bytes when it is touched again.
    unsafe { madvise(start, mapping.len, Advice::LinuxDontNeed) }?;
    Ok(())
}

/// One heap of the allocator for each of so many bytes of a budget.
#[cfg(target_env = "gnu")]
const MEMORY_PER_HEAP: u64 = 64 << 20;
/// The part of the budget that all heaps together keep when it is freed, for whoever allocates
/// next.
#[cfg(target_env = "gnu")]
const MEMORY_PER_KEPT: u64 = 16;
/// One heap needs no more: decoders and batches come and go by a few MiB.
#[cfg(target_env = "gnu")]
const KEPT_BYTES_MAX: u64 = 64 << 20;
/// For a heap, less is what glibc keeps by a rule of its own.
#[cfg(target_env = "gnu")]
const KEPT_BYTES_MIN: u64 = 4 << 20;

/// Makes the allocator keep no more than suits the budget of a space, and no less, where it is that
/// of glibc, unless the environment says how many heaps it may have. For programs that do little
/// beside: it changes the whole process, and must be called before other threads are started.
pub fn limit_heaps(memory_bytes: u64) {
    #[cfg(target_env = "gnu")]
    if ["MALLOC_ARENA_MAX", "GLIBC_TUNABLES"]
        .iter()
        .all(|name| std::env::var_os(name).is_none())
    {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let heaps = (memory_bytes / MEMORY_PER_HEAP).clamp(1, processors);
        set_allocator(libc::M_ARENA_MAX, heaps);
        let kept_bytes = (memory_bytes / MEMORY_PER_KEPT / heaps).min(KEPT_BYTES_MAX);
        // With addresses of 32 bits it refuses the first of these, and the second alone is worse
        // than none.
        if kept_bytes >= KEPT_BYTES_MIN && cfg!(target_pointer_width = "64") {
            set_allocator(libc::M_MMAP_THRESHOLD, kept_bytes / 2);
            set_allocator(libc::M_TRIM_THRESHOLD, kept_bytes);
        }
    }
    #[cfg(not(target_env = "gnu"))]
    let _ = memory_bytes;
}

/// Sets one of the numbers of the allocator. What it refuses costs memory or time and nothing else.
#[cfg(target_env = "gnu")]
fn set_allocator(parameter: libc::c_int, value: u64) {
    let value = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    // SAFETY: S8: sets a number under the allocator's own lock.
    let _done = unsafe { libc::mallopt(parameter, value) };
}

/// Lets the kernel take back what the allocator keeps of freed memory, where that is glibc's and if
/// it is due. Returns whether it was.
pub(crate) fn give_heaps_back_in_time(pace: &Pace) -> bool {
    let is_due = pace.is_due();
    #[cfg(all(target_env = "gnu", not(miri)))]
    if is_due {
        // SAFETY: S8: the allocator gives pages back in which nothing is allocated, under its own
        // lock.
        let _gave = unsafe { libc::malloc_trim(0) };
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_program_is_recognised() {
        let line = "5581a000-5581c000 r-xp 00001000 fe:00 123   /usr/bin/mayfly";
        let found = code_mapping(line, "/usr/bin/mayfly");
        assert_eq!(found.map(|m| (m.start, m.len)), Some((0x5581_a000, 0x2000)));
        assert_eq!(code_mapping(line, "/usr/bin/other"), None);
        let data = line.replace("r-xp", "rw-p");
        assert_eq!(code_mapping(&data, "/usr/bin/mayfly"), None);
    }

    #[test]
    #[cfg_attr(miri, ignore = "has no mappings")]
    fn the_program_runs_on_without_its_code() {
        let bytes = give_code_back().expect("Linux takes the advice");
        assert!(bytes > 0, "the test program has code");
        assert_eq!((1..=10).product::<u64>(), 3_628_800);
    }
}
