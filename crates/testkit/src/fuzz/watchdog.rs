//! Names the input that does not come back.
//!
//! A test that hangs tells nothing: its output is kept until it ends. This writes past the capture
//! of tests and aborts the process.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long one input may take. Inputs take milliseconds: no busy machine comes near.
const LIMIT: Duration = Duration::from_secs(300);

#[derive(Default)]
struct State {
    running: Option<(Instant, Vec<u8>)>,
    is_over: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks after the inputs of one run.
pub(super) struct Watchdog(Arc<Shared>);

impl Watchdog {
    pub(super) fn start(target: &str) -> Watchdog {
        let shared = Arc::new(Shared::default());
        let (target, of_thread) = (target.to_owned(), Arc::clone(&shared));
        std::thread::spawn(move || watch(&target, &of_thread));
        Watchdog(shared)
    }

    pub(super) fn begin(&self, input: &[u8]) {
        self.0.lock().running = Some((Instant::now(), input.to_vec()));
    }

    pub(super) fn end(&self) {
        self.0.lock().running = None;
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

fn watch(target: &str, shared: &Shared) {
    let mut state = shared.lock();
    while !state.is_over {
        if let Some((started, input)) = &state.running
            && started.elapsed() > LIMIT
        {
            let text = format!(
                "{target}: an input does not come back: b\"{}\"\n",
                input.escape_ascii()
            );
            let _written = std::io::stderr().write_all(text.as_bytes());
            std::process::abort();
        }
        let waited = shared.changed.wait_timeout(state, LIMIT / 10);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}
