//! Work that takes milliseconds, beside the thread that others are served on.

use std::thread::Builder;

use mayfly_types::MySqlError;
use tokio::sync::oneshot;

use crate::error::internal;

/// Runs `work` on a thread of its own. The thread is made here and not by the runtime, which panics
/// where the system gives none.
///
/// # Errors
/// Error 1135 without a thread, 1105 if the work panics.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, MySqlError> {
    let (sender, done) = oneshot::channel();
    let thread = Builder::new().name("mayfly-aside".to_owned());
    let started = thread.spawn(move || {
        // Nobody waits for it where the client has gone.
        let _abandoned = sender.send(work());
    });
    started.map_err(|error| MySqlError::no_thread(&error))?;
    done.await.map_err(|_| internal("a thread panicked"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_was_worked_out_comes_back() {
        assert_eq!(aside(|| 6 * 7).await, Ok(42));
        let error = aside(|| panic!("on purpose")).await.map(|never: ()| never);
        assert_eq!(error.unwrap_err().code, 1105);
    }
}
