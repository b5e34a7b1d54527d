//! The space as its users see it: opening, accounts, reservations.
//!
//! **Owns** the background threads, which start when there is something for them to do.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::account::{GivesMemory, Node, count};
use crate::arena::{Arena, Size};
use crate::background::Background;
use crate::core::Core;
use crate::file::{FileStatus, Files};
use crate::order::Order;
use crate::page::{Page, PageInner};
use crate::prefetch::{self, Requests};
use crate::room::Room;
use crate::table::{DIRTY, EXCLUSIVE, RESIDENT, Table, frame_bits};
use crate::{
    AccountOptions, Counters, Error, IoMode, PageClass, Result, SpaceOptions, WriteGuard, io, lock,
};

/// The smallest budget a space can work with.
const LEAST_MEMORY_BYTES: u64 = 256 << 10;
/// The largest budget the 32-bit frame numbers and claims reach.
const MOST_MEMORY_BYTES: u64 = 2 << 40;

/// A temp space: pages in memory and on disk under one budget.
///
/// Cloning is cheap. The space closes when the last clone, account, page and guard is gone; its
/// files have no names, so nothing stays behind even if the process is killed.
#[derive(Clone)]
pub struct Space {
    root: Account,
}

/// A node of the account tree: server, session, statement, operator.
///
/// Limits and counters of a node include its descendants.
#[derive(Clone)]
pub struct Account {
    shared: Arc<Shared>,
    node: Arc<Node>,
}

/// An admitted minimum; given back on drop.
#[must_use = "the minimum is given back when the admission is dropped"]
pub struct Admission {
    bytes: u64,
    node: Arc<Node>,
}

/// Memory outside the arena that counts against the budget; given back on drop.
#[must_use = "the memory is given back when the reservation is dropped"]
pub struct Reservation {
    bytes: u64,
    account: Account,
}

/// A space and its threads.
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    requests: Arc<Requests>,
    reader: Background,
}

impl Space {
    /// Opens a space. No file is made and no memory touched before they are needed, unless
    /// `pre_extend_bytes` asks for it.
    ///
    /// # Errors
    /// [`Error::InvalidOption`], or an I/O error of the address range or the first extension.
    pub fn open(options: SpaceOptions) -> Result<Space> {
        let invalid = |option, reason: &str| Error::InvalidOption {
            option,
            reason: reason.into(),
        };
        if !(LEAST_MEMORY_BYTES..=MOST_MEMORY_BYTES).contains(&options.memory_bytes) {
            return Err(invalid("memory_bytes", "must be between 256 KiB and 2 TiB"));
        }
        if options
            .page_class
            .is_some_and(|c| c.bytes() as u64 * 16 > options.memory_bytes)
        {
            return Err(invalid(
                "page_class",
                "the budget must hold at least 16 pages",
            ));
        }
        let arena = Arena::new(options.memory_bytes).map_err(|source| Error::Io {
            operation: "map",
            dir: options
                .temp_dirs
                .first()
                .cloned()
                .unwrap_or_else(std::env::temp_dir),
            source,
        })?;
        let files = Files::new(
            &options.temp_dirs,
            options.io,
            options.memory_bytes,
            options.temp_limit_bytes,
            options.faults.clone(),
        )?;
        files.pre_extend(options.pre_extend_bytes)?;
        let root = Node::new_root(options.memory_bytes, options.temp_limit_bytes);
        let core = Arc::new_cyclic(|me| Core {
            me: Weak::clone(me),
            writer: Background::default(),
            arena,
            table: Table::new(),
            order: Order::new(),
            files,
            backend: io::backend(options.io, options.io_uring, options.faults.clone()),
            root: Arc::clone(&root),
            room: Room::default(),
            compaction: Mutex::new(()),
            loading: AtomicU32::new(0),
            device_start: device_bytes(),
            sharers: Arc::default(),
            options,
        });
        let shared = Arc::new(Shared {
            core,
            requests: Arc::new(Requests::default()),
            reader: Background::default(),
        });
        Ok(Space {
            root: Account { shared, node: root },
        })
    }

    pub(crate) fn core(&self) -> &Core {
        &self.root.shared.core
    }

    /// The root account.
    pub fn root(&self) -> &Account {
        &self.root
    }

    /// The counters of the whole space.
    pub fn counters(&self) -> Counters {
        self.root.counters()
    }

    /// The budget.
    pub fn memory_bytes(&self) -> u64 {
        self.core().options.memory_bytes
    }

    /// Memory in use: pages in memory and reservations.
    pub fn memory_used_bytes(&self) -> u64 {
        self.core().arena.held_bytes()
    }

    /// Memory that pins, reservations and admitted minima claim; never above the budget.
    pub fn memory_claimed_bytes(&self) -> u64 {
        self.core().root.root_claim_bytes()
    }

    /// The page class to use when nothing else is asked.
    pub fn default_page_class(&self) -> PageClass {
        let options = &self.core().options;
        options
            .page_class
            .unwrap_or_else(|| PageClass::for_budget(options.memory_bytes))
    }

    /// The options the space was opened with.
    pub fn options(&self) -> &SpaceOptions {
        &self.core().options
    }

    /// Bytes allocated in temp files, used or not.
    pub fn file_bytes(&self) -> u64 {
        self.core().files.allocated_bytes()
    }

    /// The temp files that are open, one for each directory that was needed.
    pub fn files(&self) -> Vec<FileStatus> {
        self.core().files.status()
    }

    /// Lends memory to the program's own code, for a process whose budget is not much larger than
    /// that: to be called before work that runs through much of it once, such as planning a
    /// statement.
    ///
    /// Where pages hold half of the budget, what the allocator keeps of large statements goes back
    /// to the kernel; otherwise what no page uses does, if it is most of the budget: each 2 MiB of
    /// it that are used again cost a fault (about 0.1 ms). The code goes back as soon as pages and
    /// reservations hold an eighth of the budget again (about 0.5 ms, and twenty times a second at
    /// most).
    pub fn make_room_for_code(&self) {
        let core = self.core();
        let (held, limit) = (core.arena.held_bytes(), core.options.memory_bytes);
        let is_lent = core.room.code_is_lent.swap(true, Relaxed);
        if held >= limit / 2 {
            if !is_lent {
                self.give_heaps_back();
            }
        } else if core.arena.free_bytes() >= limit / 4 * 3 {
            core.arena.give_back(u64::MAX);
        }
    }

    /// Lets the system have what the program's heaps keep of freed memory (some milliseconds), as
    /// after many connections have gone.
    pub fn give_heaps_back(&self) {
        self.core().trim_heaps(&crate::program::HEAPS);
    }

    /// Ends a period of idleness before its time: gives back the memory and the file space that
    /// nobody has used since the last period ended, and what the heaps keep of freed memory. Where
    /// the background thread runs, it ends one twice in [`SpaceOptions::idle_trim`].
    pub fn give_back_unused(&self) {
        self.core().end_period(&|| false);
    }

    /// Bytes of memory that pages are or were in, and that the kernel has not got back.
    pub fn backed_bytes(&self) -> u64 {
        self.core().arena.backed_bytes()
    }

    /// Waits until no background read or write is under way; at most ten seconds.
    pub fn settle(&self) {
        for _ in 0..10_000 {
            let reading = self.root.shared.requests.pending.load(Relaxed) > 0;
            if !reading && self.core().writer_rests() {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for background work and checks every invariant of the space against every other.
    /// For tests: no other thread may use the space meanwhile.
    ///
    /// # Panics
    /// If an invariant does not hold.
    pub fn verify(&self) {
        self.settle();
        crate::verify::verify(self.core());
    }
}

impl Account {
    /// A child of this account.
    pub fn child(&self, name: &str, options: AccountOptions) -> Account {
        let node = self.node.child(name, options);
        Account {
            shared: Arc::clone(&self.shared),
            node,
        }
    }

    /// Sets how many bytes of disk this account and those below it may take from here on, `None`
    /// for as many as there are. What they have already stays theirs.
    pub fn set_disk_quota(&self, bytes: Option<u64>) {
        self.node.set_disk_quota(bytes);
    }

    /// How many keep this account alive: its handles, its children and its pages. One means that
    /// only the caller does.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.node)
    }

    /// Whether two handles are of one account.
    pub fn is(&self, other: &Account) -> bool {
        Arc::ptr_eq(&self.node, &other.node)
    }

    /// The name of the account.
    pub fn name(&self) -> &str {
        self.node.name()
    }

    /// The space this account belongs to.
    pub fn space(&self) -> Space {
        let node = Arc::clone(&self.shared.core.root);
        Space {
            root: Account {
                shared: Arc::clone(&self.shared),
                node,
            },
        }
    }

    /// The counters of this account with its descendants.
    pub fn counters(&self) -> Counters {
        let core = &self.shared.core;
        let mut counters = self.node.counters();
        if Arc::ptr_eq(&self.node, &core.root) {
            counters.files_created = core.files.open_count();
            if core.options.io != IoMode::Direct
                && let (Some(start), Some(end)) = (core.device_start, device_bytes())
            {
                counters.device_bytes_read = end.0.saturating_sub(start.0);
                counters.device_bytes_written = end.1.saturating_sub(start.1);
            }
        }
        counters
    }

    /// The most bytes that the account can have in memory: the least of its own limits, of those of
    /// the accounts above it, and of the budget.
    pub fn memory_limit_bytes(&self) -> u64 {
        self.node.memory_limit_bytes()
    }

    /// Declares that this account needs `minimum_bytes`. Inside it, pins and reservations of the
    /// account and its descendants do not fail.
    ///
    /// # Errors
    /// [`Error::MinimumNotMet`].
    pub fn admit(&self, minimum_bytes: u64) -> Result<Admission> {
        self.shared.core.check_grant(&self.node, minimum_bytes)?;
        self.node.admit(minimum_bytes)?;
        Ok(Admission {
            bytes: minimum_bytes,
            node: Arc::clone(&self.node),
        })
    }

    /// Adds to what was admitted, but within the limits of the accounts above: for memory that an
    /// operator uses well and can go on without. Pins and reservations inside of it do not fail,
    /// and leave the minimum to the rest of the account.
    ///
    /// # Errors
    /// As for [`Account::reserve`].
    pub fn admit_within_limits(&self, bytes: u64) -> Result<Admission> {
        self.shared.core.check_grant(&self.node, bytes)?;
        self.node.admit_within_limits(bytes)?;
        Ok(Admission {
            bytes,
            node: Arc::clone(&self.node),
        })
    }

    /// Bytes of pins and reservations beyond what was admitted, descendants included.
    pub fn beyond_minimum_bytes(&self) -> u64 {
        self.node.beyond_minimum_bytes()
    }

    /// Lets others have memory of this account, where what they need does not fit otherwise: the
    /// operator is asked to give some up. It is forgotten once it is gone.
    pub fn may_take_from(&self, operator: Weak<dyn GivesMemory>) {
        self.node.may_take_from(operator);
    }

    /// Reserves memory outside the arena, for example for Arrow batches. Unpinned pages of any
    /// account give way to it.
    ///
    /// # Errors
    /// [`Error::BudgetExceeded`], or the error that keeps unpinned pages from being written.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation> {
        let mut reservation = Reservation {
            bytes: 0,
            account: self.clone(),
        };
        reservation.try_resize(bytes)?;
        Ok(reservation)
    }

    /// The error of a reservation of so many bytes that is not even tried, because what would be
    /// done with it must not be.
    pub fn refusal(&self, bytes: u64) -> Error {
        self.node.exceeded(bytes)
    }

    /// Allocates a page, pinned, its contents unspecified.
    ///
    /// # Errors
    /// As for [`Account::reserve`]; [`Error::QuotaReached`] while pages of the account are on disk
    /// beyond its quota.
    pub fn allocate(&self, class: PageClass) -> Result<WriteGuard> {
        self.allocate_size(Size::Class(class))
    }

    /// Allocates a page of the smallest class that holds `len` bytes; above 1 MiB, a run of
    /// superblocks. [`Page::len_bytes`] says how long it became.
    ///
    /// # Errors
    /// As for [`Account::reserve`].
    pub fn allocate_bytes(&self, len: usize) -> Result<WriteGuard> {
        self.allocate_size(self.shared.core.arena.size_for(len))
    }

    fn allocate_size(&self, size: Size) -> Result<WriteGuard> {
        let core = &self.shared.core;
        let len = core.arena.len_of(size);
        core.check_grant(&self.node, len as u64)?;
        self.node.check_overdraft()?;
        self.node.claim(len as u64)?;
        let id = core.table.take_id();
        let entry = core.table.entry(id);
        entry.set_size(size);
        // Before there is a frame: whoever meets it then asks whose it is.
        lock(&entry.beside).account = Some(Arc::clone(&self.node));
        let frame = match core.frame_for(id, size, &self.node) {
            Ok(frame) => frame,
            Err(error) => {
                lock(&entry.beside).account = None;
                core.table.return_id(id);
                self.node.unclaim(len as u64);
                return Err(error);
            }
        };
        entry.word.store(
            RESIDENT | EXCLUSIVE | DIRTY | 1 | frame_bits(frame),
            std::sync::atomic::Ordering::Release,
        );
        self.node.pinned(len as u64);
        count(&self.node.tally.pages_allocated, 1);
        count(&self.node.tally.bytes_allocated, len as u64);
        let (shared, node) = (Arc::clone(&self.shared), Arc::clone(&self.node));
        Ok(WriteGuard::new(
            Page::new(PageInner {
                shared,
                node,
                id,
                len,
            }),
            frame,
        ))
    }
}

impl Admission {
    /// The admitted bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.node.dismiss(self.bytes);
    }
}

impl Reservation {
    /// The reserved bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The account that reserved.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// Grows or shrinks to `bytes`.
    ///
    /// # Errors
    /// As for [`Account::reserve`]; nothing changes then.
    pub fn try_resize(&mut self, bytes: u64) -> Result<()> {
        self.resize(bytes, Node::claim)
    }

    /// The same, but takes no memory of operators that hold it for speed, whatever the account may.
    ///
    /// # Errors
    /// As for [`Account::reserve`]; nothing changes then.
    pub fn try_resize_in_free(&mut self, bytes: u64) -> Result<()> {
        self.resize(bytes, Node::claim_free)
    }

    fn resize(&mut self, bytes: u64, claim: fn(&Node, u64) -> Result<()>) -> Result<()> {
        if bytes <= self.bytes {
            self.shrink(bytes);
            return Ok(());
        }
        // Claims count in KiB; rounding each size keeps growing by small steps exact.
        let round = |bytes: u64| bytes.next_multiple_of(1024);
        let more = round(bytes) - round(self.bytes);
        if more > 0 {
            let (core, node) = (&self.account.shared.core, &self.account.node);
            core.check_grant(node, more)?;
            claim(node, more)?;
            core.take_outside(node, more)
                .inspect_err(|_| node.unclaim(more))?;
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Shrinks to `bytes`; does nothing when the reservation is smaller already.
    pub fn shrink(&mut self, bytes: u64) {
        if bytes >= self.bytes {
            return;
        }
        let less = self.bytes.next_multiple_of(1024) - bytes.next_multiple_of(1024);
        if less > 0 {
            let (core, node) = (&self.account.shared.core, &self.account.node);
            // The claim goes last: whoever gets it finds the memory.
            node.unreserved(less);
            core.arena.return_outside(less);
            node.unclaim(less);
        }
        self.bytes = bytes;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(0);
    }
}

impl Shared {
    /// Asks the reader for a page. Where it cannot be started, whoever pins the page reads it.
    pub(crate) fn prefetch(&self, page: Page) {
        if !self.reader.is_started() {
            let (core, requests) = (Arc::clone(&self.core), Arc::clone(&self.requests));
            let body = move || prefetch::run(&core, &requests);
            if let Err(_none) = self.reader.start("mayfly-reader", self.core.faults(), body) {
                return;
            }
        }
        self.requests.push(page);
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        lock(&self.core.room.state).stop = true;
        self.core.room.work.notify_all();
        self.core.room.changed.notify_all();
        self.requests.stop();
        self.core.writer.join();
        // The reader may drop the last page itself; it ends on its own then.
        self.reader.join();
    }
}

/// Bytes that this process had the devices read and written.
fn device_bytes() -> Option<(u64, u64)> {
    if cfg!(miri) {
        return None;
    }
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse::<u64>().ok()
    };
    Some((field("read_bytes:")?, field("write_bytes:")?))
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space")
            .field("options", self.options())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
