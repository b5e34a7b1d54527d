//! What is no longer used goes back to the kernel and to the disk.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use mayfly_space::{NextUse, Page, PageClass, Space, SpaceOptions};

use crate::{KIB, MIB, account, check, open, page, space};

/// No period ends by itself.
fn options(memory_bytes: u64) -> SpaceOptions {
    SpaceOptions {
        memory_bytes,
        idle_trim: Duration::from_secs(1 << 30),
        ..SpaceOptions::default()
    }
}

/// The first period had work in it, the second one had none.
fn rest(space: &Space) {
    // A page that is being written is freed when that has ended.
    space.settle();
    space.give_back_unused();
    space.give_back_unused();
    space.verify();
}

fn fill(space: &Space, count: u64) -> Vec<Page> {
    let account = account(space);
    let pages = (0..count).map(|n| {
        let page = page(&account, PageClass::K64, n);
        page.set_next_use(NextUse::At(n as u32 / 64));
        page
    });
    pages.collect()
}

/// Keeps each page whose number `is_kept`, reads those and checks that all the rest went back.
fn check_rest(space: &Space, pages: Vec<Page>, is_kept: impl Fn(u64) -> bool) {
    let numbered = pages
        .into_iter()
        .enumerate()
        .map(|(n, page)| (n as u64, page));
    let kept: Vec<(u64, Page)> = numbered.filter(|(n, _)| is_kept(*n)).collect();
    let (file_before, backed_before) = (space.file_bytes(), space.backed_bytes());
    rest(space);
    let counters = space.counters();
    let unused = |before: u64, used: u64| (before - used) / 10;
    let file = (space.file_bytes(), counters.disk_bytes_used);
    assert!(
        file.0 - file.1 <= unused(file_before, file.1),
        "{file:?} of {file_before}"
    );
    let backed = (space.backed_bytes(), counters.resident_bytes);
    // A block that holds a page stays whole.
    let most = unused(backed_before, backed.1) + space.memory_bytes() / 32;
    assert!(backed.0 - backed.1 <= most, "{backed:?} of {backed_before}");
    for (n, page) in &kept {
        check(page, *n);
    }
    // What went back comes back when it is needed.
    let more = fill(space, (2 * space.memory_bytes()).min(48 * MIB) / (64 * KIB));
    for (n, page) in more.iter().enumerate() {
        check(page, n as u64);
    }
    for (n, page) in &kept {
        check(page, *n);
    }
    drop((more, kept));
    rest(space);
    assert_eq!((space.file_bytes(), space.backed_bytes()), (0, 0));
}

#[test]
fn nothing_is_kept_of_what_is_gone() {
    for memory_bytes in [MIB, 8 * MIB] {
        let space = open(options(memory_bytes));
        let pages = fill(&space, 3 * memory_bytes / (64 * KIB));
        assert!(space.file_bytes() > memory_bytes);
        check_rest(&space, pages, |_| false);
    }
}

#[test]
fn one_page_pins_neither_the_file_nor_memory() {
    for memory_bytes in [MIB, 8 * MIB] {
        let count = 3 * memory_bytes / (64 * KIB);
        for kept in [0, count / 2, count - 1] {
            let space = open(options(memory_bytes));
            check_rest(&space, fill(&space, count), |n| n == kept);
        }
    }
}

#[test]
fn scattered_pages_keep_little_beside_themselves() {
    for memory_bytes in [8 * MIB, 64 * MIB] {
        let space = open(options(memory_bytes));
        let pages = fill(&space, 3 * memory_bytes / (64 * KIB));
        check_rest(&space, pages, |n| n % 37 == 5);
    }
}

/// A budget at which the program's code and heaps are left alone.
#[test]
fn a_large_budget_gives_memory_back_too() {
    let space = open(options(1 << 30));
    let pages = fill(&space, 1500);
    assert!(space.backed_bytes() >= 1500 * 64 * KIB);
    check_rest(&space, pages, |n| n % 150 == 0);
}

#[test]
fn what_a_period_used_is_kept() {
    let space = open(options(8 * MIB));
    for _ in 0..3 {
        let pages = fill(&space, 200);
        let (file, backed) = (space.file_bytes(), space.backed_bytes());
        let used = space.counters().disk_bytes_used;
        assert!(used > 0 && used <= file);
        drop(pages);
        space.give_back_unused();
        assert!(space.file_bytes() >= used);
        assert_eq!(space.backed_bytes(), backed);
    }
}

#[test]
fn file_space_asked_for_at_open_stays() {
    let space = open(SpaceOptions {
        pre_extend_bytes: 16 * MIB,
        ..options(MIB)
    });
    assert_eq!(space.file_bytes(), 16 * MIB);
    drop(fill(&space, 600));
    assert!(space.file_bytes() > 16 * MIB);
    rest(&space);
    assert_eq!(space.file_bytes(), 16 * MIB);
}

/// A quota of the server counts what is allocated: holes are not.
#[test]
fn holes_are_no_part_of_the_temp_limit() {
    let space = open(SpaceOptions {
        temp_limit_bytes: Some(8 * MIB),
        ..options(MIB)
    });
    for _ in 0..4 {
        let mut pages = fill(&space, 120);
        let last = pages.pop();
        drop(pages);
        rest(&space);
        let pages = fill(&space, 112);
        for (n, page) in pages.iter().enumerate() {
            check(page, n as u64);
        }
        assert!(space.file_bytes() <= 8 * MIB);
        drop((pages, last));
    }
}

/// Without anybody who asks: pages go when the writer rests, and nothing wakes it.
#[test]
fn the_background_thread_ends_periods() {
    let space = open(SpaceOptions {
        idle_trim: Duration::from_millis(2),
        ..options(8 * MIB)
    });
    let pages = fill(&space, 400);
    space.settle();
    drop(pages);
    while space.file_bytes() + space.backed_bytes() > 0 {
        std::thread::yield_now();
    }
    space.verify();
}

/// Periods end while others allocate, free, read and write.
#[test]
fn periods_end_beside_work() {
    let space = space(8 * MIB);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..3)
            .map(|thread| {
                let space = &space;
                scope.spawn(move || {
                    for round in 0..12 {
                        let mut pages = fill(space, 60 + 10 * ((round + thread) % 3));
                        for (n, page) in pages.iter().enumerate() {
                            check(page, n as u64);
                        }
                        pages.truncate(20);
                        for (n, page) in pages.iter().enumerate() {
                            check(page, n as u64);
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                space.give_back_unused();
            }
        });
        let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        // First, or a worker's panic would leave this test waiting for ever.
        is_over.store(true, Relaxed);
        for result in results {
            result.expect("the work is right");
        }
    });
    rest(&space);
    assert_eq!((space.file_bytes(), space.backed_bytes()), (0, 0));
}

/// However soon memory and file space are to be given back, or never: the writer writes.
#[test]
fn any_time_of_idleness_leaves_time_to_write() {
    for idle_trim in [Duration::MAX, Duration::ZERO] {
        let space = open(SpaceOptions {
            idle_trim,
            ..options(8 * MIB)
        });
        let pages = fill(&space, 24 * MIB / (64 * KIB));
        for (n, page) in pages.iter().enumerate() {
            check(page, n as u64);
        }
        drop(pages);
        space.verify();
    }
}
