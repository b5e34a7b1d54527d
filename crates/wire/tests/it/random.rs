//! Conversations with strangers for some seconds, from a seed: what the fuzz target does for long.
//!
//! `MAYFLY_RANDOM_SECONDS` and `MAYFLY_RANDOM_SEED` ask for more, and for others.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::stranger::{ENDPOINT, Numbers, converse, plausible};

/// Conversations before the test may end, however slow the machine is.
const LEAST: u32 = 2000;
/// What the process may grow by. Other tests run beside this one; a few bytes that each of some
/// thousand conversations left would not show, a buffer of each does.
const GROWTH_BYTES_MAX: u64 = 512 << 20;

fn variable(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |text| text.parse().expect(name))
}

/// The memory of this process.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.map_or(0, |pages: u64| pages * 4096)
}

#[test]
fn strangers_leave_nothing_behind() {
    let seed = variable("MAYFLY_RANDOM_SEED", 20_240_229);
    let seconds = variable("MAYFLY_RANDOM_SECONDS", 4);
    println!("MAYFLY_RANDOM_SEED={seed}");
    let mut seeds = Numbers(seed);
    let started = Instant::now();
    let (mut conversations, mut bytes, mut before) = (0, 0, 0);
    while conversations < LEAST || started.elapsed() < Duration::from_secs(seconds) {
        let seed = seeds.next();
        let input = plausible(seed);
        match catch_unwind(AssertUnwindSafe(|| converse(&input))) {
            Ok(answered) => bytes += answered,
            Err(panic) => {
                println!("plausible({seed}) = {input:?}");
                resume_unwind(panic);
            }
        }
        conversations += 1;
        if conversations == LEAST / 4 {
            before = resident_bytes();
        }
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more than before");
    // That all of it was reached: a test of refused logins would pass too.
    let seen = &ENDPOINT.server().seen;
    let floor = conversations / 1000;
    for (what, counter) in [
        ("logins", &seen.logins),
        ("results", &seen.results),
        ("files", &seen.files),
        ("executions", &seen.executions),
        ("fetches", &seen.fetches),
        ("changes of user", &seen.changes_of_user),
        ("resets", &seen.resets),
    ] {
        let found = counter.load(Ordering::Relaxed);
        println!("{what}: {found}");
        assert!(
            found > floor,
            "{what}: {found} in {conversations} conversations"
        );
    }
    println!("{conversations} conversations, {bytes} bytes of answers");
    assert!(bytes > 100 * conversations as usize);
}
