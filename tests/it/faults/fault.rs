//! The faults of the matrix: how each is armed, and what a statement that meets it may say.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use mayfly_session::{Engine, EngineOptions, TestFaults};
use mayfly_space::{Faults, Operation};
use mayfly_testkit::{FaultPlan, FaultyDisk};
use mayfly_types::MySqlError;

use crate::engine::open_with;

/// Each is met by the n-th operation of its kind, for growing n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One read fails.
    Read,
    /// One write fails: another place of the file has to do.
    Write,
    /// All writes fail from there on.
    Writes,
    /// The disk is full from there on, to writes as to extensions.
    FullDisk,
    /// One grant of memory is refused.
    Grant,
    /// One page comes back with another bit.
    FlippedBit,
    /// The temp file cannot be extended from there on.
    Extend,
    /// The temp file cannot be opened, as without descriptors.
    Open,
    /// Threads cannot be made from there on.
    Thread,
}

impl Fault {
    /// Those that a statement can meet at any time.
    pub const LATER: [Fault; 6] = [
        Fault::Read,
        Fault::Write,
        Fault::Writes,
        Fault::FullDisk,
        Fault::Grant,
        Fault::FlippedBit,
    ];
    /// Those that only the first statement meets that needs the disk.
    pub const FIRST: [Fault; 3] = [Fault::Extend, Fault::Open, Fault::Thread];

    fn plan(self) -> Arc<FaultPlan> {
        match self {
            Fault::Read => FaultPlan::new(&[Operation::Read]),
            Fault::Write | Fault::Writes => FaultPlan::new(&[Operation::Write]),
            Fault::Grant => FaultPlan::new(&[Operation::Grant]),
            Fault::FlippedBit => FaultPlan::flipping_bits(),
            Fault::Extend => FaultPlan::new(&[Operation::Extend]),
            Fault::Open => FaultPlan::new(&[Operation::Open]),
            Fault::Thread => FaultPlan::failing_with(&[Operation::Thread], ErrorKind::WouldBlock),
            Fault::FullDisk => {
                let operations = [Operation::Write, Operation::Extend];
                FaultPlan::failing_with(&operations, ErrorKind::StorageFull)
            }
        }
    }

    /// Checks what a statement said that met it: MySQL's number for the cause, and where data were
    /// lost.
    pub fn check(self, error: &MySqlError, directory: &Path, what: &str) {
        let numbers: &[u16] = match self {
            Fault::Read | Fault::FlippedBit => &[1024],
            Fault::Write | Fault::Writes | Fault::Extend | Fault::Open | Fault::Thread => &[1026],
            Fault::FullDisk => &[1021],
            Fault::Grant => &[1038, 1041],
        };
        assert!(numbers.contains(&error.code), "{what}: {error}");
        let is_on_disk = self != Fault::Grant;
        let directory = directory.to_string_lossy();
        assert!(
            !is_on_disk || error.message.contains(&*directory),
            "{what}: {error}"
        );
        if self == Fault::FlippedBit {
            let offset = error.message.split(" at offset ").nth(1);
            let digits = offset.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
            assert!(digits, "{what}: {error}");
        }
    }
}

/// All of them in one space; none is armed at first.
pub struct Injected {
    plans: Vec<(Fault, Arc<FaultPlan>)>,
    /// Transfers that are short, and a disk that is full by turns.
    pub disk: Arc<FaultyDisk>,
}

impl Injected {
    pub fn new(seed: u64) -> Arc<Injected> {
        let all = Fault::LATER.into_iter().chain(Fault::FIRST);
        Arc::new(Injected {
            plans: all.map(|fault| (fault, fault.plan())).collect(),
            disk: FaultyDisk::new(seed),
        })
    }

    /// An engine that meets them.
    pub fn engine(self: &Arc<Injected>, memory_bytes: u64, directory: &Path) -> Engine {
        let options = EngineOptions {
            memory_bytes,
            faults: Some(TestFaults(Arc::clone(self) as _)),
            ..EngineOptions::default()
        };
        open_with(options, directory)
    }

    fn plan(&self, fault: Fault) -> &FaultPlan {
        let plan = self.plans.iter().find(|(of, _)| *of == fault);
        &plan.expect("all of them are there").1
    }

    /// Lets the n-th operation from here on fail.
    pub fn arm(&self, fault: Fault, n: u64) {
        match fault {
            Fault::Read | Fault::Write | Fault::Grant | Fault::FlippedBit => {
                self.plan(fault).fail_once(n);
            }
            _ => self.plan(fault).fail_from(n),
        }
    }

    /// Lets everything pass again; whether the fault was met.
    pub fn disarm(&self, fault: Fault) -> bool {
        let plan = self.plan(fault);
        plan.disarm();
        plan.fired() > 0
    }
}

impl Faults for Injected {
    fn before(&self, operation: Operation) -> std::io::Result<()> {
        for (_, plan) in &self.plans {
            plan.before(operation)?;
        }
        self.disk.before(operation)
    }

    fn bytes_moved_max(&self, operation: Operation) -> usize {
        self.disk.bytes_moved_max(operation)
    }

    fn after_read(&self, bytes: &mut [u8]) {
        for (_, plan) in &self.plans {
            plan.after_read(bytes);
        }
    }
}
