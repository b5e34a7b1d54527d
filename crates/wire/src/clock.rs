//! Time limits that cost nothing when nothing has to be waited for.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// The result of `future`, `None` if it takes longer than `limit`. A timer is set only if the
/// future is not ready at once.
pub(crate) async fn within<T>(limit: Duration, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    if let Poll::Ready(value) = poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
    {
        return Some(value);
    }
    tokio::time::timeout(limit, future).await.ok()
}
