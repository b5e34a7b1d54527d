//! The fuzz targets of this crate, run on their corpus, what they generate and mutations of it.
//! `fuzz/fuzz_targets/` hands the same functions to libFuzzer.

mod client;
mod conversation;
mod parrot;
mod prepared;

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

use mayfly_testkit::FuzzTarget;

use client::ENDPOINT;

/// Inputs of a run: some seconds.
const CONVERSATIONS: u64 = 10_000;
const PROGRAMS: u64 = 2000;
/// What the process may grow by. Other tests run beside this one; a few bytes that each of some
/// thousand conversations left would not show, a buffer of each does.
const GROWTH_BYTES_MAX: u64 = 512 << 20;

/// The memory of this process.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.map_or(0, |pages: u64| pages * 4096)
}

/// That all of it was reached: a test of refused logins would pass too.
fn expect_seen(inputs: u64, what: &[(&str, &AtomicU32)]) {
    for (what, counter) in what {
        let found = u64::from(counter.load(Ordering::Relaxed));
        println!("{what}: {found}");
        assert!(found > inputs / 1000, "{what}: {found} in {inputs} inputs");
    }
}

#[test]
fn conversations() {
    let (bytes, before) = (Cell::new(0), Cell::new(None));
    let run = |input: &[u8]| {
        bytes.set(bytes.get() + conversation::converse(input));
        // By the first ones the process has what it keeps.
        if bytes.get() > 1 << 20 && before.get().is_none() {
            before.set(Some(resident_bytes()));
        }
    };
    let target = FuzzTarget::new("conversation", &run)
        .generate(&conversation::plausible)
        .inputs(CONVERSATIONS);
    let inputs = target.check().inputs;
    let before = before.get().expect("some answers");
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < GROWTH_BYTES_MAX, "{grown} bytes more than before");
    let seen = &ENDPOINT.server().seen;
    expect_seen(
        inputs,
        &[
            ("logins", &seen.logins),
            ("results", &seen.results),
            ("files", &seen.files),
            ("executions", &seen.executions),
            ("fetches", &seen.fetches),
            ("changes of user", &seen.changes_of_user),
            ("resets", &seen.resets),
        ],
    );
    println!("{} bytes of answers", bytes.get());
    assert!(bytes.get() as u64 > 100 * inputs);
}

#[test]
fn prepared_statements() {
    let checked = Cell::new(prepared::Checked::default());
    let run = |input: &[u8]| {
        let mut sum = checked.get();
        sum.add(prepared::check(input));
        checked.set(sum);
    };
    let target = FuzzTarget::new("prepared", &run)
        .generate(&prepared::plausible)
        .inputs(PROGRAMS);
    let inputs = target.check().inputs;
    println!("{:?}", checked.get());
    checked.get().expect_more_than(inputs / 100);
}
