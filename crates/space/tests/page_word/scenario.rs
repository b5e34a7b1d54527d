//! Three threads, what each does with the page, and where the page is when they begin.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::core::Core;
use crate::prefetch::{Reader, Requests};
use crate::sync::AtomicWord;
use crate::writer::Writer;
use crate::{
    Account, Compression, Faults, IoMode, NextUse, Operation, Page, PageClass, Space, SpaceOptions,
    lock,
};

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Has a handle and drops it.
    Drop,
    /// Pins the page for reading, twice.
    Read,
    /// Pins the page for writing and goes on reading.
    Change,
    /// Pins the page for reading and goes on writing.
    Upgrade,
    /// Reads the page ahead.
    Prefetch,
    /// Writes the page to the disk.
    Write,
    /// Has begun to write the page, and finishes. The first role only.
    Finish,
    /// Tries to write the page, and the disk fails.
    FailWrite,
    /// Takes the frame of the page if it is clean.
    Evict,
    /// Moves the page to another frame.
    Compact,
    /// Allocates a page, perhaps with the number that the other one had.
    Allocate,
}

use Role::*;

/// `Finish` is the first thread's only, and so stands first.
const ROLES: [Role; 11] = [
    Finish, Drop, Read, Change, Upgrade, Prefetch, Write, FailWrite, Evict, Compact, Allocate,
];

impl Role {
    fn has_handle(self) -> bool {
        matches!(self, Drop | Read | Change | Upgrade | Prefetch)
    }
}

/// Where the page is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Residence {
    /// In memory only.
    Dirty,
    /// In memory and on the disk.
    Clean,
    /// On the disk only.
    Absent,
}

use Residence::*;

const RESIDENCES: [Residence; 3] = [Dirty, Clean, Absent];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    roles: [Role; 3],
    residence: Residence,
}

/// Says which scenario it was that failed; loom's panic does not.
struct NameOfFailed(Scenario);

impl std::ops::Drop for NameOfFailed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed: {}", self.0);
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c] = self.roles;
        write!(f, "{:?}: {a:?}, {b:?}, {c:?}", self.residence)
    }
}

/// The ordinary run.
const PREEMPTIONS: usize = 2;
/// Every scenario there is, with `MAYFLY_FULL`.
const PREEMPTIONS_IN_FULL: usize = 3;

fn check(residence: Residence, roles: &[[Role; 3]]) {
    for &roles in roles {
        Scenario { roles, residence }.explore(PREEMPTIONS);
    }
}

#[test]
fn an_orphan_is_freed_once() {
    check(
        Dirty,
        &[
            [Finish, Drop, Compact],
            [Finish, Drop, Allocate],
            [Drop, Write, Compact],
            [Drop, FailWrite, Compact],
            [Drop, Compact, Allocate],
            [Drop, Write, Allocate],
        ],
    );
}

#[test]
fn a_write_leaves_pins_alone() {
    check(
        Dirty,
        &[
            [Finish, Read, Compact],
            [Finish, Change, Drop],
            [Finish, Upgrade, Drop],
            [Change, Write, Drop],
            [Read, Write, Compact],
            [Change, FailWrite, Drop],
            [Read, Upgrade, Write],
        ],
    );
}

#[test]
fn pins_exclude_each_other() {
    check(
        Dirty,
        &[
            [Read, Upgrade, Compact],
            [Change, Drop, Compact],
            [Read, Change, Drop],
            [Change, Change, Drop],
            [Change, Upgrade, Drop],
        ],
    );
}

#[test]
fn a_frame_is_taken_from_unpinned_pages_only() {
    check(
        Clean,
        &[
            [Drop, Evict, Compact],
            [Drop, Evict, Allocate],
            [Read, Evict, Compact],
            [Change, Evict, Write],
            [Change, Evict, Compact],
            [Prefetch, Evict, Read],
            [Upgrade, Evict, Drop],
        ],
    );
}

#[test]
fn a_page_is_loaded_once() {
    check(
        Absent,
        &[
            [Change, Change, Drop],
            [Read, Read, Evict],
            [Change, Prefetch, Evict],
            [Prefetch, Drop, Compact],
            [Read, Prefetch, Write],
        ],
    );
}

/// With `MAYFLY_FULL`: every three roles in every residence, which takes hours.
#[test]
fn all_roles_meet() {
    if std::env::var_os("MAYFLY_FULL").is_none() {
        return;
    }
    for (i, &first) in ROLES.iter().enumerate() {
        for (j, &second) in ROLES.iter().enumerate().skip(i) {
            for &third in &ROLES[j..] {
                let roles = [first, second, third];
                let residences = RESIDENCES.iter().filter(|_| can_meet(&roles));
                for &residence in residences {
                    Scenario { roles, residence }.explore(PREEMPTIONS_IN_FULL);
                }
            }
        }
    }
}

/// There is one thread that writes and one that compacts, and of two that upgrade their pins each
/// would wait for the other.
fn can_meet(roles: &[Role; 3]) -> bool {
    let count = |of: fn(&Role) -> bool| roles.iter().filter(|role| of(role)).count();
    count(|role| matches!(role, Finish | Write | FailWrite)) <= 1
        && count(|role| *role == Compact) <= 1
        && count(|role| *role == Upgrade) <= 1
        && !roles[1..].contains(&Finish)
}

/// Transfers are done where they are submitted, and writes fail when asked to.
#[derive(Default)]
struct Disk {
    fails_writes: AtomicBool,
}

impl Faults for Disk {
    fn before(&self, operation: Operation) -> io::Result<()> {
        match operation {
            Operation::Thread => Err(io::ErrorKind::WouldBlock.into()),
            Operation::Write if self.fails_writes.load(Relaxed) => Err(io::ErrorKind::Other.into()),
            _ => Ok(()),
        }
    }
}

/// What the threads share beside the page.
struct Stage {
    space: Space,
    account: Account,
    id: u32,
    /// What the page holds. Loads and stores are relaxed, so that a pin which does not order what
    /// was done under the one before lets loom answer with an old value.
    contents: AtomicWord,
}

impl Scenario {
    /// Runs every interleaving with so many preemptions.
    fn explore(self, preemptions: usize) {
        let runs = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&runs);
        let mut builder = loom::model::Builder::new();
        builder.max_branches = 10_000;
        builder.preemption_bound = Some(preemptions);
        let _name = NameOfFailed(self);
        builder.check(move || {
            counter.fetch_add(1, Relaxed);
            // The first thread of loom has a small stack.
            let thread = loom::thread::Builder::new().stack_size(STACK_WORDS);
            let thread = thread.spawn(move || self.run()).expect("loom has threads");
            thread.join().expect("a panic ends the model");
        });
        eprintln!("{self}: {} interleavings", runs.load(Relaxed));
    }

    fn run(self) {
        let disk = Arc::new(Disk::default());
        let options = SpaceOptions {
            memory_bytes: 256 << 10,
            // So that the file grows by little.
            temp_limit_bytes: Some(64 << 10),
            io: IoMode::Buffered,
            io_uring: false,
            compression: Compression::None,
            faults: Some(Arc::clone(&disk) as _),
            ..SpaceOptions::default()
        };
        let space = Space::open(options).expect("the options are valid");
        let account = space.root().child("model", Default::default());
        let page = new_page(&account);
        let id = page.number();
        if self.residence != Dirty {
            write_out(page.core(), id);
        }
        if self.residence == Absent {
            assert!(page.core().evict_one(id));
        }
        disk.fails_writes
            .store(self.roles.contains(&FailWrite), Relaxed);
        let stage = Arc::new(Stage {
            space,
            account,
            id,
            contents: AtomicWord::new(1),
        });
        // Where no role has a handle, the page outlives them all.
        let mut handles = self
            .roles
            .map(|role| role.has_handle().then(|| page.clone()));
        let kept = handles.iter().all(Option::is_none).then(|| page.clone());
        drop(page);
        let mut writer = (self.roles[0] == Finish).then(|| begin_write(stage.space.core(), id));
        let [first, second, third] = self.roles;
        let threads = [(second, handles[1].take()), (third, handles[2].take())];
        let threads = threads.map(|(role, page)| {
            let stage = Arc::clone(&stage);
            let thread = loom::thread::Builder::new().stack_size(STACK_WORDS);
            thread
                .spawn(move || play(role, page, &stage))
                .expect("loom has threads")
        });
        match &mut writer {
            Some(writer) => drop(writer.collect(true)),
            None => play(first, handles[0].take(), &stage),
        }
        for thread in threads {
            thread.join().expect("a panic ends the model");
        }
        if let Some(page) = kept {
            read(&page, &stage);
        }
        stage.space.verify();
        assert_eq!(stage.account.counters().pages_live, 0, "pages left");
        assert_eq!(stage.account.counters().disk_bytes_used, 0, "slots left");
        assert_eq!(stage.space.memory_used_bytes(), 0, "frames left");
    }
}

/// Words of a stack: system calls and their buffers need more than loom's 4,096.
const STACK_WORDS: usize = 32 << 10;

fn new_page(account: &Account) -> Page {
    let mut guard = account.allocate(PageClass::K4).expect("there is room");
    guard.fill(1);
    guard.page().set_next_use(NextUse::At(1));
    guard.page().clone()
}

fn play(role: Role, page: Option<Page>, stage: &Stage) {
    let core = &stage.space.core();
    match (role, page) {
        (Read, Some(page)) => read(&page, stage),
        (Change, Some(page)) => {
            let mut guard = page.write().expect("the page can be had");
            change(&mut guard, stage);
            let guard = guard.downgrade();
            assert_eq!(guard[0], guard[guard.len() - 1]);
        }
        (Upgrade, Some(page)) => {
            let guard = page.read().expect("the page can be had");
            let mut guard = guard.upgrade();
            change(&mut guard, stage);
        }
        (Prefetch, Some(page)) => {
            let requests = Requests::default();
            requests.pending.fetch_add(1, Relaxed);
            let mut reader = Reader::new(core, &requests, Arc::clone(&core.backend).queue());
            reader.start(vec![page]);
            reader.collect(true);
        }
        (Finish, _) => unreachable!("the first thread only"),
        (Write | FailWrite, _) => write_out(core, stage.id),
        (Evict, _) => {
            core.evict_one(stage.id);
        }
        (Compact, _) => {
            let word = core.table.entry(stage.id).load();
            core.relocate(stage.id, crate::table::frame(word));
        }
        (Allocate, _) => drop(new_page(&stage.account)),
        (Drop, page) => drop(page),
        (_, None) => unreachable!("these roles have a handle"),
    }
}

fn read(page: &Page, stage: &Stage) {
    let guard = page.read().expect("the page can be had");
    let (first, last) = (guard[0], guard[guard.len() - 1]);
    assert_eq!(first, last, "a page that is being changed is read");
    // Others go on in between.
    assert_eq!(
        stage.contents.load(Relaxed),
        u64::from(first),
        "pins do not order"
    );
    assert_eq!(
        (guard[0], guard[guard.len() - 1]),
        (first, last),
        "a pinned page changes"
    );
}

fn change(guard: &mut crate::WriteGuard, stage: &Stage) {
    let end = guard.len() - 1;
    let (now, next) = (guard[0], guard[0] + 1);
    assert_eq!(guard[end], now, "a page that is being changed is changed");
    guard[0] = next;
    // Others go on in between.
    assert_eq!(
        stage.contents.load(Relaxed),
        u64::from(now),
        "pins do not order"
    );
    stage.contents.store(u64::from(next), Relaxed);
    assert_eq!(guard[end], now, "two have the page for writing");
    guard[end] = next;
}

fn begin_write(core: &Core, id: u32) -> Writer<'_> {
    let mut writer = Writer::new(core, Arc::clone(&core.backend).queue());
    writer.submit_requests(&[id]);
    writer
}

/// Writes the page unless it is pinned or clean.
fn write_out(core: &Core, id: u32) {
    begin_write(core, id).collect(true);
}
