//! Being told in the middle of a step that nobody wants its result any more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Error;

/// A flag that whoever asked for rows raises when the rows are not wanted any more. Steps over
/// many rows look at it on their way, since a task can only be ended between two steps.
#[derive(Debug, Clone, Default)]
pub struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    /// Whether it is raised.
    pub(crate) fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends a step over rows if it is raised.
    ///
    /// # Errors
    /// [`Error::Stopped`].
    pub fn check(&self) -> Result<(), Error> {
        match self.is_raised() {
            true => Err(Error::Stopped),
            false => Ok(()),
        }
    }

    /// As [`StopFlag::check`], for a change of a table, which may have no flag.
    ///
    /// # Errors
    /// [`Error::Stopped`](crate::Error::Stopped).
    pub(crate) fn check_any(stop: Option<&StopFlag>) -> crate::Result<()> {
        match stop.is_some_and(StopFlag::is_raised) {
            true => Err(crate::Error::Stopped),
            false => Ok(()),
        }
    }
}

impl From<Arc<AtomicBool>> for StopFlag {
    fn from(flag: Arc<AtomicBool>) -> StopFlag {
        StopFlag(flag)
    }
}
