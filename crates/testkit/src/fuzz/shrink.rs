//! Makes a panicking input smaller.
//!
//! Takes pieces out as long as the rest still panics: halves first, single bytes last ("delta
//! debugging", Zeller and Hildebrandt, 2002, without its complements).

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

/// Runs of the target that shrinking may take.
const RUNS_MAX: u32 = 2000;

thread_local! {
    /// Whether panics of this thread are tries of the shrinker, which nobody wants to read.
    static IS_TRYING: Cell<bool> = const { Cell::new(false) };
}

/// The smallest input that was found to panic still. Panics on other threads than this one print
/// their messages.
pub(super) fn shrink(input: &[u8], run: &dyn Fn(&[u8])) -> Vec<u8> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            if !IS_TRYING.get() {
                before(info);
            }
        }));
    });
    let panics = |input: &[u8]| {
        IS_TRYING.set(true);
        let ended = catch_unwind(AssertUnwindSafe(|| run(input)));
        IS_TRYING.set(false);
        ended.is_err()
    };
    let mut smallest = input.to_vec();
    let mut piece = smallest.len().div_ceil(2);
    let mut runs = 0;
    while piece > 0 {
        let mut at = 0;
        while at < smallest.len() && runs < RUNS_MAX {
            let mut shorter = smallest.clone();
            shorter.drain(at..(at + piece).min(smallest.len()));
            runs += 1;
            match panics(&shorter) {
                true => smallest = shorter,
                false => at += piece,
            }
        }
        piece /= 2;
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let run = |input: &[u8]| {
            let (first, last) = (input.contains(&b'a'), input.contains(&b'z'));
            assert!(!(first && last), "both");
        };
        let shrunk = shrink(
            b"some bytes, one a between, the end is z, more follows",
            &run,
        );
        assert_eq!(shrunk, b"az");
    }
}
