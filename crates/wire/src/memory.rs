//! The memory that a connection takes for its client: granted before it is taken.
//!
//! **Owns** the sum of what the parts of one connection hold. **Never** knows who pays: a program
//! gives each connection a [`Memory`].
//!
//! ```text
//!   receiver (a long packet) ---+
//!   statements (long data) -----+-- Ledger: their sum, in steps -- Memory: the program's account
//!   sender (a long row) --------+
//! ```
//!
//! Short packets, short answers, and the types and values of a few parameters are not counted: what
//! each buffer and the statements hold up to [`FREE_BYTES`] is the price of a connection, and to
//! ask for it would be paid with every command.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mayfly_types::MySqlError;

/// What a buffer of a connection holds without asking, and what its statements do.
pub(crate) const FREE_BYTES: usize = 64 << 10;

/// Grants are made in steps of this, so that a buffer that grows does not ask for each read.
const STEP_BYTES: usize = 256 << 10;

/// What pays for the bytes that a connection holds for its client. Dropping it gives all back.
pub trait Memory: Send {
    /// Makes the grant `bytes`. To make it smaller never fails.
    ///
    /// # Errors
    /// What the client is told; the grant is what it was then.
    fn resize(&mut self, bytes: usize) -> Result<(), MySqlError>;
}

/// What one connection holds.
#[derive(Default)]
struct Ledger {
    memory: Option<Box<dyn Memory>>,
    held_bytes: usize,
    granted_bytes: usize,
}

impl Ledger {
    fn change(&mut self, before: usize, after: usize) -> Result<(), MySqlError> {
        let held = self.held_bytes.saturating_sub(before).saturating_add(after);
        let wanted = match held <= FREE_BYTES {
            true => 0,
            false => held.checked_next_multiple_of(STEP_BYTES).unwrap_or(held),
        };
        if wanted != self.granted_bytes
            && let Some(memory) = &mut self.memory
        {
            memory.resize(wanted)?;
            self.granted_bytes = wanted;
        }
        self.held_bytes = held;
        Ok(())
    }
}

/// What one part of a connection holds of the connection's memory; given back when it is dropped.
pub(crate) struct Share {
    ledger: Arc<Mutex<Ledger>>,
    bytes: usize,
}

impl Share {
    /// The first share of a connection that nobody pays for yet.
    pub(crate) fn unpaid() -> Share {
        Share {
            ledger: Arc::default(),
            bytes: 0,
        }
    }

    /// The share of another part of the same connection.
    pub(crate) fn another(&self) -> Share {
        Share {
            ledger: Arc::clone(&self.ledger),
            bytes: 0,
        }
    }

    /// Says who pays for all shares of the connection from here on.
    pub(crate) fn pay_by(&self, memory: Box<dyn Memory>) {
        let mut ledger = self.lock();
        ledger.memory = Some(memory);
        ledger.granted_bytes = 0;
    }

    /// Says that the part will hold `bytes`. To hold less never fails.
    ///
    /// # Errors
    /// What the client is told. The part must not hold more than before then.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), MySqlError> {
        if bytes != self.bytes {
            self.lock().change(self.bytes, bytes)?;
            self.bytes = bytes;
        }
        Ok(())
    }

    /// Says that the part holds `bytes`, which is not more than it said.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        let shrunk = self.resize(bytes.min(self.bytes));
        debug_assert!(shrunk.is_ok(), "to hold less never fails");
    }

    /// What it holds.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Grants up to a limit, and tells how much it has granted.
    struct Limited(Arc<AtomicUsize>, usize);

    impl Memory for Limited {
        fn resize(&mut self, bytes: usize) -> Result<(), MySqlError> {
            if bytes > self.1 {
                return Err(crate::error::internal("no room"));
            }
            self.0.store(bytes, Ordering::Relaxed);
            Ok(())
        }
    }

    #[test]
    fn shares_are_paid_together_and_given_back() {
        let granted = Arc::new(AtomicUsize::new(0));
        let mut first = Share::unpaid();
        first.pay_by(Box::new(Limited(Arc::clone(&granted), 4 * STEP_BYTES)));
        let mut second = first.another();
        let read = || granted.load(Ordering::Relaxed);
        first.resize(FREE_BYTES).expect("it is free");
        assert_eq!(read(), 0);
        first.resize(FREE_BYTES + 1).expect("there is room");
        assert_eq!(read(), STEP_BYTES);
        second.resize(2 * STEP_BYTES).expect("there is room");
        assert_eq!(read(), 3 * STEP_BYTES);
        second
            .resize(4 * STEP_BYTES)
            .expect_err("one byte too many");
        assert_eq!((read(), second.bytes()), (3 * STEP_BYTES, 2 * STEP_BYTES));
        drop(second);
        assert_eq!(read(), STEP_BYTES);
        first.shrink(0);
        assert_eq!(read(), 0);
    }
}
