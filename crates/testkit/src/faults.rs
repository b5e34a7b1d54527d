//! Making the n-th operation of a space fail.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use mayfly_space::{Faults, Operation};

/// A countdown over the operations of a space; when it reaches zero, operations fail.
///
/// The plan is shared: a clone of the `Arc` sits in the options of the space, the test keeps
/// another to arm it and to see whether it fired.
#[derive(Debug)]
pub struct FaultPlan {
    operations: Vec<Operation>,
    /// Operations still to pass; negative when disarmed.
    left: AtomicI64,
    lasting: AtomicBool,
    fired: AtomicU64,
    seen: AtomicU64,
    kind: io::ErrorKind,
}

impl FaultPlan {
    /// A disarmed plan over these operations, over all when empty.
    pub fn new(operations: &[Operation]) -> Arc<FaultPlan> {
        FaultPlan::failing_with(operations, io::ErrorKind::Other)
    }

    /// The same, failing with errors of this kind, for example `StorageFull`.
    pub fn failing_with(operations: &[Operation], kind: io::ErrorKind) -> Arc<FaultPlan> {
        Arc::new(FaultPlan {
            operations: operations.to_vec(),
            left: AtomicI64::new(-1),
            lasting: AtomicBool::new(false),
            fired: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            kind,
        })
    }

    /// Lets the `n`-th operation from here on fail, counting from 1, and only that one.
    pub fn fail_once(&self, n: u64) {
        self.arm(n, false);
    }

    /// Lets the `n`-th operation from here on and all after it fail.
    pub fn fail_from(&self, n: u64) {
        self.arm(n, true);
    }

    fn arm(&self, n: u64, lasting: bool) {
        assert!(n > 0, "operations are counted from 1");
        self.lasting.store(lasting, SeqCst);
        self.fired.store(0, SeqCst);
        self.left.store(n as i64 - 1, SeqCst);
    }

    /// Lets everything pass.
    pub fn disarm(&self) {
        self.left.store(-1, SeqCst);
        self.lasting.store(false, SeqCst);
    }

    /// How many operations were made to fail since the plan was armed.
    pub fn fired(&self) -> u64 {
        self.fired.load(SeqCst)
    }

    /// How many operations of the plan were seen.
    pub fn seen(&self) -> u64 {
        self.seen.load(Relaxed)
    }
}

impl Faults for FaultPlan {
    fn before(&self, operation: Operation) -> io::Result<()> {
        if !self.operations.is_empty() && !self.operations.contains(&operation) {
            return Ok(());
        }
        self.seen.fetch_add(1, Relaxed);
        let left = self.left.fetch_update(SeqCst, SeqCst, |left| match left {
            0 if self.lasting.load(SeqCst) => Some(0),
            left if left >= 0 => Some(left - 1),
            _ => None,
        });
        if left == Ok(0) {
            self.fired.fetch_add(1, SeqCst);
            let text = format!("injected fault: {operation:?}");
            return Err(io::Error::new(self.kind, text));
        }
        Ok(())
    }
}

/// Runs `body` with the first, the second, the third .. operation of the plan failing (`body`
/// arms the plan itself with the number it gets), until a run comes through without a fault.
/// Returns how many runs met one.
///
/// # Panics
/// If no run comes through within `most` runs.
pub fn until_it_passes(plan: &FaultPlan, most: u64, mut body: impl FnMut(u64)) -> u64 {
    for n in 1..=most {
        body(n);
        if plan.fired() == 0 {
            return n - 1;
        }
    }
    panic!("still failing after {most} runs");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nth_operation_fails() {
        let plan = FaultPlan::new(&[Operation::Read]);
        plan.fail_once(2);
        let read = || plan.before(Operation::Read).is_ok();
        assert!(read());
        assert!(plan.before(Operation::Write).is_ok());
        assert!(!read());
        assert!(read());
        plan.fail_from(1);
        assert!(!read() && !read());
        plan.disarm();
        assert!(read());
    }
}
