//! The threads of an engine: how they start and end.

use std::thread;
use std::time::Duration;

use mayfly_types::{ErrorCode, MySqlError};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::spare_threads;
use crate::waiting::WORKER_STACK_BYTES;

/// How long an engine's end waits for what its threads are in the middle of.
const END_WITHIN: Duration = Duration::from_secs(2);

/// A runtime of some threads that never wait, and at most so many others, made when needed.
///
/// # Errors
/// Where the system gives no thread.
pub(crate) fn start(name: &str, threads: usize, others_max: usize) -> Result<Runtime, MySqlError> {
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .max_blocking_threads(others_max)
        .thread_keep_alive(spare_threads::KEEP_ALIVE)
        .thread_stack_size(WORKER_STACK_BYTES)
        .thread_name(name)
        .enable_all()
        .build();
    runtime.map_err(|error| MySqlError::with_message(ErrorCode::OutOfResources, error.to_string()))
}

/// Ends the threads of a runtime and waits until they have ended.
///
/// `Runtime::shutdown_background` would not wait: it lets go of the handles of threads that are
/// about to end, and glibc's `pthread_detach` may then read the memory of a thread that is gone
/// (its bug 19951), which kills the process.
///
/// A thread of a runtime may not wait. There, another thread does it.
pub(crate) fn end(runtime: Runtime) {
    if Handle::try_current().is_err() {
        runtime.shutdown_timeout(END_WITHIN);
        return;
    }
    // The runtime follows when the thread is there: a closure that cannot be started would drop it
    // here, where it may not be dropped.
    let (sender, receiver) = std::sync::mpsc::channel::<Runtime>();
    let ends = thread::Builder::new()
        .name("mayfly-end".to_owned())
        .spawn(move || {
            if let Ok(runtime) = receiver.recv() {
                runtime.shutdown_timeout(END_WITHIN);
            }
        });
    match ends {
        Ok(_) => {
            if let Err(unsent) = sender.send(runtime) {
                unsent.0.shutdown_background();
            }
        }
        Err(_) => runtime.shutdown_background(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::sleep;

    use super::*;

    /// Says when its thread ends: what a thread has of its own is dropped then.
    struct Ends(Arc<AtomicBool>);

    impl Drop for Ends {
        fn drop(&mut self) {
            sleep(Duration::from_millis(20));
            self.0.store(true, Ordering::Release);
        }
    }

    thread_local! {
        static ENDS: std::cell::OnceCell<Ends> = const { std::cell::OnceCell::new() };
    }

    /// A runtime whose only other thread says that it has ended.
    fn started() -> (Runtime, Arc<AtomicBool>) {
        let runtime = start("test", 1, 1).unwrap();
        let has_ended = Arc::new(AtomicBool::new(false));
        let ends = Ends(Arc::clone(&has_ended));
        let task = runtime.spawn(async move {
            ENDS.with(|cell| cell.set(ends).ok().expect("set once"));
        });
        runtime.block_on(task).unwrap();
        (runtime, has_ended)
    }

    #[test]
    fn the_end_waits_for_the_threads() {
        let (runtime, has_ended) = started();
        end(runtime);
        assert!(has_ended.load(Ordering::Acquire));
    }

    #[test]
    fn a_runtime_may_end_inside_of_another_one() {
        let outer = start("outer", 1, 1).unwrap();
        let (runtime, has_ended) = started();
        outer.block_on(async move { end(runtime) });
        while !has_ended.load(Ordering::Acquire) {
            sleep(Duration::from_millis(1));
        }
        end(outer);
    }
}
