//! Where functions make no long values.
//!
//! A value of megabytes is for a statement that runs, which pays for it and can be stopped. What is
//! folded while a plan is made would be copied with the plan, again and again; a plan over few
//! rows that runs at once cannot be stopped. There a long value is an error, and both have another
//! way to go: the constant is computed when the plan runs, the plan over few rows is given up.

use std::cell::Cell;

use datafusion::common::{Result, exec_err};

/// A value of more bytes is long.
pub(crate) const LONG_BYTES: usize = 64 << 10;

thread_local! {
    static REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Runs what makes no value of more than 64 KiB: a function that would fails.
pub fn without_long_values<T>(run: impl FnOnce() -> T) -> T {
    /// What held before, also after a panic.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            REFUSED.set(self.0);
        }
    }
    let _before = Before(REFUSED.replace(true));
    run()
}

/// Fails where the thread is to make no value of so many bytes.
pub(crate) fn check(bytes: usize) -> Result<()> {
    match bytes > LONG_BYTES && REFUSED.get() {
        true => exec_err!("a value of {bytes} bytes is for a statement that runs"),
        false => Ok(()),
    }
}
