//! A queue served by a few threads, for where io_uring is not to be had.
//!
//! The system may have fewer threads to give, or none. With none, transfers are done where they are
//! submitted: slower, but pages go on leaving memory.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::backend::{Backend, Queue};
use super::segment::Transfer;
use crate::{Faults, background, lock};

/// Threads per queue: transfers are large, so a few keep a device busy.
const THREADS: usize = 4;

type Done = (Transfer, io::Result<()>);

/// The queue. Its threads start with the first transfer.
pub(crate) struct Threads {
    backend: Arc<dyn Backend>,
    faults: Option<Arc<dyn Faults>>,
    running: Option<Running>,
    /// With the threads.
    in_flight: usize,
    /// Done where they were submitted, because there was no thread.
    finished: Vec<Done>,
}

struct Running {
    todo: Option<Sender<Transfer>>,
    done: Receiver<Done>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(crate) fn new(backend: Arc<dyn Backend>, faults: Option<Arc<dyn Faults>>) -> Threads {
        Threads {
            backend,
            faults,
            running: None,
            in_flight: 0,
            finished: Vec::new(),
        }
    }

    /// Starts as many threads as the system gives; `None` without any.
    fn start(&self) -> Option<Running> {
        let (todo, receiver) = channel::<Transfer>();
        let (sender, done) = channel::<Done>();
        let receiver = Arc::new(Mutex::new(receiver));
        let work = |_| {
            let (receiver, sender) = (Arc::clone(&receiver), sender.clone());
            let backend = Arc::clone(&self.backend);
            let body = move || {
                loop {
                    let next = lock(&receiver).recv();
                    let Ok(transfer) = next else { return };
                    let result = backend.run(&transfer);
                    if sender.send((transfer, result)).is_err() {
                        return;
                    }
                }
            };
            background::spawn("mayfly-io", self.faults.as_deref(), body).ok()
        };
        let threads: Vec<_> = (0..THREADS).map_while(work).collect();
        (!threads.is_empty()).then_some(Running {
            todo: Some(todo),
            done,
            threads,
        })
    }
}

impl Queue for Threads {
    fn submit(&mut self, transfer: Transfer) {
        if self.running.is_none() {
            self.running = self.start();
        }
        let Some(running) = &self.running else {
            let result = self.backend.run(&transfer);
            self.finished.push((transfer, result));
            return;
        };
        let todo = running.todo.as_ref().expect("open until dropped");
        todo.send(transfer)
            .expect("the threads live as long as the queue");
        self.in_flight += 1;
    }

    fn collect(&mut self, block: bool, done: &mut Vec<Done>) {
        let block = block && self.finished.is_empty();
        done.append(&mut self.finished);
        let Some(running) = &self.running else { return };
        if block && self.in_flight > 0 {
            done.push(
                running
                    .done
                    .recv()
                    .expect("the threads live as long as the queue"),
            );
            self.in_flight -= 1;
        }
        while let Ok(finished) = running.done.try_recv() {
            done.push(finished);
            self.in_flight -= 1;
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight + self.finished.len()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            drop(running.todo.take());
            for thread in running.threads {
                // A panic there was reported when it happened.
                let _reported = thread.join();
            }
        }
    }
}
