//! How soon the kernel lets a thread run that has woken.
//!
//! **Owns** nothing.
//!
//! Linux gives threads their shares of the processors in slices (3 ms on two cores), and first to
//! whose slice ends first (EEVDF: Stoica and Abdel-Wahab, 1995). A thread that answers clients runs
//! for some 10 us at a time. With a short slice it comes before those that compute, and gets no
//! larger share than before.
//!
//! **Cost**: two system calls a thread. Kernels before 6.12 leave slices as long as they are.

#![expect(unsafe_code, reason = "libc does not wrap these system calls")]

use std::io;
use std::time::Duration;

/// The shortest slice that Linux grants.
const SHORT: Duration = Duration::from_micros(100);

/// `SCHED_FLAG_RESET_ON_FORK`: what is asked for is not for threads that this one starts.
const RESET_ON_FORK: u64 = 1;

/// The thread that calls, to the kernel.
const SELF: libc::pid_t = 0;

/// Has the kernel run the calling thread soon after it wakes, if it is one of those that share the
/// processors by turns.
///
/// # Errors
/// What the kernel answers where it refuses that; the thread then runs as before.
pub fn shorten_slices() -> io::Result<()> {
    let mut attributes = attributes()?;
    let takes_turns = [libc::SCHED_OTHER, libc::SCHED_BATCH]
        .iter()
        .any(|policy| u32::try_from(*policy) == Ok(attributes.sched_policy));
    if !takes_turns {
        return Ok(());
    }
    attributes.sched_runtime = SHORT.as_nanos() as u64;
    // Threads that it starts may compute.
    attributes.sched_flags |= RESET_ON_FORK;
    set_attributes(attributes)
}

/// What the scheduler knows of the calling thread.
fn attributes() -> io::Result<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>() as u32;
    let mut attributes = libc::sched_attr {
        size,
        sched_policy: 0,
        sched_flags: 0,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    };
    let to = &raw mut attributes;
    // SAFETY: S9: the kernel writes `size` bytes at most, which the structure has.
    let done = unsafe { libc::syscall(libc::SYS_sched_getattr, SELF, to, size, 0) };
    ended(done).map(|()| attributes)
}

fn set_attributes(mut attributes: libc::sched_attr) -> io::Result<()> {
    let from = &raw mut attributes;
    // SAFETY: S9: the kernel reads as many bytes as the structure says that it has. Where that is
    // not what it knows, it writes the size there and nothing else.
    let done = unsafe { libc::syscall(libc::SYS_sched_setattr, SELF, from, 0) };
    ended(done)
}

fn ended(done: libc::c_long) -> io::Result<()> {
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "makes system calls")]
    fn the_slices_of_one_thread_become_short_and_all_else_stays() {
        let Ok(before) = attributes() else {
            println!("skipped: the system does not tell of slices");
            return;
        };
        if let Err(error) = shorten_slices() {
            println!("skipped: the system leaves slices alone: {error}");
            return;
        }
        let after = attributes().expect("it told before");
        assert_eq!(after.sched_policy, before.sched_policy);
        assert_eq!(after.sched_nice, before.sched_nice);
        // Kernels before 6.12 say nothing of slices.
        assert!([before.sched_runtime, 100_000].contains(&after.sched_runtime));
        let of_child = std::thread::spawn(attributes)
            .join()
            .expect("it does not panic");
        let of_child = of_child.expect("it told before");
        assert_eq!(of_child.sched_runtime, before.sched_runtime);
    }
}
