//! Making the n-th operation of a space fail, or the n-th page that it reads come back damaged.

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
    failure: Failure,
}

/// What the plan does when it is due.
#[derive(Debug)]
enum Failure {
    /// The operation fails with an error of this kind.
    Refused(io::ErrorKind),
    /// A bit of what was read is another.
    FlippedBit,
}

impl FaultPlan {
    /// A disarmed plan over these operations, over all when empty.
    pub fn new(operations: &[Operation]) -> Arc<FaultPlan> {
        FaultPlan::failing_with(operations, io::ErrorKind::Other)
    }

    /// The same, failing with errors of this kind, for example `StorageFull`.
    pub fn failing_with(operations: &[Operation], kind: io::ErrorKind) -> Arc<FaultPlan> {
        FaultPlan::disarmed(operations, Failure::Refused(kind))
    }

    /// A disarmed plan over the pages that come back from the disk: it flips a bit of them.
    pub fn flipping_bits() -> Arc<FaultPlan> {
        FaultPlan::disarmed(&[], Failure::FlippedBit)
    }

    fn disarmed(operations: &[Operation], failure: Failure) -> Arc<FaultPlan> {
        Arc::new(FaultPlan {
            operations: operations.to_vec(),
            left: AtomicI64::new(-1),
            lasting: AtomicBool::new(false),
            fired: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            failure,
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

    /// Counts an operation of the plan; whether it is one that fails.
    fn is_due(&self) -> bool {
        self.seen.fetch_add(1, Relaxed);
        let left = self.left.fetch_update(SeqCst, SeqCst, |left| match left {
            0 if self.lasting.load(SeqCst) => Some(0),
            left if left >= 0 => Some(left - 1),
            _ => None,
        });
        let is_due = left == Ok(0);
        if is_due {
            self.fired.fetch_add(1, SeqCst);
        }
        is_due
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
        let Failure::Refused(kind) = self.failure else {
            return Ok(());
        };
        let is_ours = self.operations.is_empty() || self.operations.contains(&operation);
        if is_ours && self.is_due() {
            let text = format!("injected fault: {operation:?}");
            return Err(io::Error::new(kind, text));
        }
        Ok(())
    }

    fn after_read(&self, bytes: &mut [u8]) {
        if matches!(self.failure, Failure::FlippedBit) && !bytes.is_empty() && self.is_due() {
            bytes[bytes.len() / 2] ^= 1;
        }
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

    #[test]
    fn the_nth_page_comes_back_damaged() {
        let plan = FaultPlan::flipping_bits();
        plan.fail_once(2);
        assert!(plan.before(Operation::Read).is_ok());
        let read = || {
            let mut bytes = [0; 8];
            plan.after_read(&mut bytes);
            bytes.iter().map(|byte| byte.count_ones()).sum::<u32>()
        };
        assert_eq!([read(), read(), read()], [0, 1, 0]);
        assert_eq!(plan.fired(), 1);
    }
}
