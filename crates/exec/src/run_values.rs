//! Values of the run that a thread is in.
//!
//! A short plan runs on the thread that asks, from its beginning to its end, and starts no task. So
//! what belongs to one run lies where the thread finds it, and many threads may run one plan.

use std::cell::RefCell;
use std::thread::LocalKey;

/// Runs something with values in a place of this thread, and gives those of before back, through a
/// panic too.
pub(crate) fn with<V: Default + 'static, T>(
    place: &'static LocalKey<RefCell<V>>,
    values: V,
    run: impl FnOnce() -> T,
) -> T {
    struct Before<V: Default + 'static>(&'static LocalKey<RefCell<V>>, V);
    impl<V: Default + 'static> Drop for Before<V> {
        fn drop(&mut self) {
            self.0.set(std::mem::take(&mut self.1));
        }
    }
    let _before = Before(place, place.replace(values));
    run()
}
