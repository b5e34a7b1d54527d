//! The end of the terminal behind the prompt.
//!
//! A terminal that goes away sends SIGHUP, which ends the program, unless whoever started it had
//! that ignored (`nohup`). Then the line editor reads the end of the terminal again and again, at
//! full speed and for ever. So a thread waits for that end, and leaves for the user as Ctrl-D does.
//!
//! **Never** ends a statement: one that runs goes on, and the prompt behind it is not shown.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How often the terminal is looked at: not every driver tells of its end.
const LOOK_EVERY: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};

/// Ends the program when the terminal is gone and the line editor reads from it.
#[derive(Default)]
pub struct Hangup(Arc<Reading>);

#[derive(Default)]
struct Reading {
    /// Whether the line editor reads.
    reads: Mutex<bool>,
    begins: Condvar,
}

impl Hangup {
    /// Begins to watch the terminal behind standard input.
    pub fn watch() -> Self {
        let hangup = Self::default();
        let reading = Arc::clone(&hangup.0);
        let watch = move || {
            if is_gone() {
                reading.end_program();
            }
        };
        // Without the thread a terminal that goes away is told by SIGHUP alone.
        let _thread = thread::Builder::new().name("hangup".into()).spawn(watch);
        hangup
    }

    /// Reads a line from the terminal.
    pub fn while_reading<T>(&self, read: impl FnOnce() -> T) -> T {
        self.0.set(true);
        let read = read();
        self.0.set(false);
        read
    }
}

impl Reading {
    fn set(&self, reads: bool) {
        *self.reads.lock().unwrap_or_else(PoisonError::into_inner) = reads;
        self.begins.notify_one();
    }

    /// Ends the program, once the line editor reads.
    fn end_program(&self) {
        let reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = |reads: &mut bool| !*reads;
        // Nobody begins to run a statement while the guard is held.
        let _reads = self.begins.wait_while(reads, is_idle);
        std::process::exit(0);
    }
}

/// Waits for the end of the terminal; `false` if it cannot be waited for.
fn is_gone() -> bool {
    let terminal = std::io::stdin();
    loop {
        // The end is told whatever else is asked for.
        let mut looked = [PollFd::new(&terminal, PollFlags::empty())];
        match poll(&mut looked, Some(&LOOK_EVERY)) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return true,
            Err(_) => return false,
        }
    }
}
