//! Busy loops beside a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// The fewest loops, on a machine of one core too.
const LOOPS_MIN: usize = 2;

/// Threads that compute nothing; dropping it ends them.
pub struct Load {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Begins a loop for each core.
    pub fn begin() -> Load {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let is_over = Arc::new(AtomicBool::new(false));
        let spin = |is_over: Arc<AtomicBool>| {
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        };
        let threads = 0..cores.max(LOOPS_MIN);
        let threads = threads.map(|_| thread::spawn(spin(Arc::clone(&is_over))));
        Load {
            threads: threads.collect(),
            is_over,
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("a loop does not panic");
        }
    }
}
