//! A queue served by a few threads, for where io_uring is not to be had.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::{Backend, Queue, Transfer};
use crate::lock;

/// Threads per queue: transfers are large, so a few keep a device busy.
const THREADS: usize = 4;

type Done = (Transfer, io::Result<()>);

/// The queue. Its threads start with the first transfer.
pub(crate) struct Threads {
    backend: Arc<dyn Backend>,
    running: Option<Running>,
    in_flight: usize,
}

struct Running {
    todo: Option<Sender<Transfer>>,
    done: Receiver<Done>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Threads {
        Threads {
            backend,
            running: None,
            in_flight: 0,
        }
    }

    fn start(&self) -> Running {
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
            let builder = std::thread::Builder::new().name("mayfly-io".to_owned());
            builder.spawn(body).expect("a thread can be started")
        };
        let threads = (0..THREADS).map(work).collect();
        Running {
            todo: Some(todo),
            done,
            threads,
        }
    }
}

impl Queue for Threads {
    fn submit(&mut self, transfer: Transfer) {
        if self.running.is_none() {
            self.running = Some(self.start());
        }
        let running = self.running.as_ref().expect("just started");
        let todo = running.todo.as_ref().expect("open until dropped");
        todo.send(transfer)
            .expect("the threads live as long as the queue");
        self.in_flight += 1;
    }

    fn collect(&mut self, block: bool, done: &mut Vec<Done>) {
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
        self.in_flight
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
