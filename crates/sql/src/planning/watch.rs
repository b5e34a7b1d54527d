//! Who watches a plan while it is made.
//!
//! Planning is one long call that passes through DataFusion and comes back to us again and again:
//! for tables, functions, nodes of the plan. None of these calls takes an argument of ours, so the
//! watch lies with the thread.

use std::cell::RefCell;
use std::rc::Rc;

use datafusion::error::{DataFusionError, Result as PlanResult};
use mayfly_types::MySqlError;

/// Watches one thread while it plans.
pub trait Watch {
    /// Asked at every node of a plan.
    ///
    /// # Errors
    /// Where planning is to end: the statement was stopped, or its time is over.
    fn check(&self) -> Result<(), MySqlError>;

    /// Told how much memory the parts of a plan take, as far as it has been made.
    ///
    /// # Errors
    /// Where there is not so much.
    fn hold_bytes(&self, bytes: u64) -> Result<(), MySqlError>;
}

thread_local! {
    static WATCH: RefCell<Option<Rc<dyn Watch>>> = const { RefCell::new(None) };
}

/// Puts the watch of the thread back that was there before.
struct Restore(Option<Rc<dyn Watch>>);

impl Drop for Restore {
    fn drop(&mut self) {
        WATCH.set(self.0.take());
    }
}

/// Makes a plan, or a part of one, under a watch.
pub fn watched<T>(watch: Rc<dyn Watch>, make: impl FnOnce() -> T) -> T {
    let _restore = Restore(WATCH.replace(Some(watch)));
    make()
}

fn answer(question: impl FnOnce(&dyn Watch) -> Result<(), MySqlError>) -> Result<(), MySqlError> {
    // Cloned: what is asked may take its time, and must not hold the cell meanwhile.
    let watch = WATCH.with_borrow(Clone::clone);
    watch.map_or(Ok(()), |watch| question(watch.as_ref()))
}

/// An error of MySQL travels through DataFusion whole.
fn ask(question: impl FnOnce(&dyn Watch) -> Result<(), MySqlError>) -> PlanResult<()> {
    answer(question).map_err(|error| DataFusionError::External(Box::new(error)))
}

/// Asks the watch of the thread, if it has one, whether to go on.
///
/// # Errors
/// Those of [`Watch::check`].
pub fn check() -> PlanResult<()> {
    ask(|watch| watch.check())
}

/// Does the same where no plan is made yet.
///
/// # Errors
/// Those of [`Watch::check`].
pub(crate) fn ask_watch() -> Result<(), MySqlError> {
    answer(|watch| watch.check())
}

/// Tells the watch of the thread, if it has one, how much memory is in use.
///
/// # Errors
/// Those of [`Watch::hold_bytes`].
pub(super) fn hold_bytes(bytes: u64) -> PlanResult<()> {
    ask(|watch| watch.hold_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use mayfly_types::ErrorCode;

    use super::*;

    struct Ends(ErrorCode);

    impl Watch for Ends {
        fn check(&self) -> Result<(), MySqlError> {
            Err(MySqlError::new(self.0, &[]))
        }

        fn hold_bytes(&self, _bytes: u64) -> Result<(), MySqlError> {
            self.check()
        }
    }

    #[test]
    fn the_watch_of_a_thread_is_that_of_the_innermost_call() {
        let code = || match check() {
            Err(DataFusionError::External(error)) => Some(error.downcast_ref::<MySqlError>()?.code),
            _ => None,
        };
        assert_eq!(code(), None);
        watched(Rc::new(Ends(ErrorCode::QueryInterrupted)), || {
            assert_eq!(code(), Some(1317));
            watched(Rc::new(Ends(ErrorCode::QueryTimeout)), || {
                assert_eq!(code(), Some(3024));
            });
            assert_eq!(code(), Some(1317));
        });
        assert_eq!(code(), None);
    }
}
