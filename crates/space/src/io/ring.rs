//! A queue over io_uring: one system call starts and collects, no further threads.
//!
//! **Source**: Axboe, *Efficient IO with io_uring*; plain vectored operations, because at half a
//! megabyte each the system call is below one percent and what counts is the overlap.

#![expect(
    unsafe_code,
    reason = "hands raw memory to the kernel through the ring"
)]

use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};

use super::backend::Queue;
use super::segment::{self, Transfer};

/// Entries of the ring; more transfers than that are never under way in one queue.
const ENTRIES: u32 = 32;

struct Flying {
    transfer: Transfer,
    /// Read by the kernel until the transfer is over.
    vectors: Vec<libc::iovec>,
}

/// The queue.
pub(crate) struct Ring {
    ring: IoUring,
    flying: Vec<Option<Flying>>,
    in_flight: usize,
    /// Done in the calling thread because the ring refused them.
    finished: Vec<(Transfer, io::Result<()>)>,
}

impl Ring {
    /// A ring, or `None` where the kernel has none or forbids it.
    pub(crate) fn new() -> Option<Ring> {
        if cfg!(miri) {
            return None;
        }
        let ring = IoUring::new(ENTRIES).ok()?;
        Some(Ring {
            ring,
            flying: Vec::new(),
            in_flight: 0,
            finished: Vec::new(),
        })
    }

    fn place(&mut self) -> usize {
        match self.flying.iter().position(Option::is_none) {
            Some(place) => place,
            None => {
                self.flying.push(None);
                self.flying.len() - 1
            }
        }
    }
}

impl Queue for Ring {
    fn submit(&mut self, transfer: Transfer) {
        let vectors = segment::vectors(&transfer, 0);
        if self.in_flight >= ENTRIES as usize || vectors.len() > 1024 {
            let result = segment::run(&transfer, 0);
            self.finished.push((transfer, result));
            return;
        }
        let fd = types::Fd(transfer.handle.file.as_raw_fd());
        let (start, count) = (vectors.as_ptr(), vectors.len() as u32);
        let entry = if transfer.write {
            opcode::Writev::new(fd, start, count)
                .offset(transfer.offset)
                .build()
        } else {
            opcode::Readv::new(fd, start, count)
                .offset(transfer.offset)
                .build()
        };
        let place = self.place();
        let entry = entry.user_data(place as u64);
        // SAFETY: S5: the memory of the segments, and the vectors, stay where they are in
        // `flying` until the completion is seen; `drop` waits for all of them.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        pushed.expect("as many entries as transfers under way");
        self.flying[place] = Some(Flying { transfer, vectors });
        self.in_flight += 1;
        // An interrupted or refused submission is made up for by the next one.
        let _later = self.ring.submit();
    }

    fn collect(&mut self, block: bool, done: &mut Vec<(Transfer, io::Result<()>)>) {
        done.append(&mut self.finished);
        let mut wait = block && self.in_flight > 0 && done.is_empty();
        loop {
            let entered = if wait {
                self.ring.submit_and_wait(1)
            } else {
                self.ring.submit()
            };
            if let Err(error) = entered
                && !matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::ResourceBusy
                )
            {
                std::thread::yield_now();
            }
            let completions: Vec<(u64, i32)> = self
                .ring
                .completion()
                .map(|entry| (entry.user_data(), entry.result()))
                .collect();
            for (place, result) in completions {
                let flying = self.flying[place as usize]
                    .take()
                    .expect("one completion each");
                self.in_flight -= 1;
                let transfer = flying.transfer;
                drop(flying.vectors);
                let result = match result {
                    moved if moved >= 0 => segment::run(&transfer, moved as usize),
                    code if -code == libc::EAGAIN || -code == libc::EINTR => {
                        segment::run(&transfer, 0)
                    }
                    code => Err(io::Error::from_raw_os_error(-code)),
                };
                done.push((transfer, result));
                wait = false;
            }
            if !wait {
                return;
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight + self.finished.len()
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let mut done = Vec::new();
        while self.in_flight() > 0 {
            self.collect(true, &mut done);
        }
    }
}
