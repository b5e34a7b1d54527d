use mayfly_space::{AccountOptions, Error, NextUse, Page, PageClass, Space, SpaceOptions};

use crate::{KIB, MIB, account, assert_empty, check, contents, page, space};

#[test]
fn a_page_keeps_its_bytes() {
    let space = space(64 * MIB);
    let account = account(&space);
    for class in PageClass::ALL {
        let page = page(&account, class, 7);
        assert_eq!(page.len_bytes(), class.bytes());
        check(&page, 7);
    }
    assert_empty(&space);
}

#[test]
fn lengths_round_up_to_a_class_or_a_run() {
    let space = space(64 * MIB);
    let account = account(&space);
    for (asked, got) in [
        (1, 4 * KIB),
        (4097, 16 * KIB),
        (65_536, 64 * KIB),
        (65_537, 256 * KIB),
        (1 << 20, MIB),
        ((1 << 20) + 1, 2 * MIB),
        (5 << 20, 6 * MIB),
    ] {
        let guard = account.allocate_bytes(asked).expect("there is room");
        assert_eq!(guard.len() as u64, got, "{asked}");
    }
    assert_empty(&space);
}

#[test]
fn more_than_memory_comes_back_from_disk() {
    for (memory_bytes, class, pages) in [
        (MIB, PageClass::K4, 1500),
        (8 * MIB, PageClass::K16, 2000),
        (8 * MIB, PageClass::K64, 500),
        (64 * MIB, PageClass::K64, 3000),
        (64 * MIB, PageClass::M1, 200),
        (16 * MIB, PageClass::M1, 40),
    ] {
        let space = space(memory_bytes);
        let account = account(&space);
        let pages: Vec<_> = (0..pages).map(|n| page(&account, class, n)).collect();
        for (n, page) in pages.iter().enumerate() {
            check(page, n as u64);
        }
        space.verify();
        let counters = space.counters();
        assert!(
            counters.bytes_written > 0 && counters.bytes_read > 0,
            "{counters:?}"
        );
        assert!(counters.peak_bytes <= memory_bytes, "{counters:?}");
        // What would have been in memory: all of the pages, which threads had to wait for.
        let all_bytes: usize = pages.iter().map(Page::len_bytes).sum();
        let live_bytes = counters.live_peak_bytes;
        assert!(live_bytes > memory_bytes, "{counters:?}");
        assert!(live_bytes <= all_bytes as u64, "{counters:?}");
        assert!(counters.read_wait_nanos > 0, "{counters:?}");
        drop(pages);
        assert_empty(&space);
        assert_eq!(account.counters().live_peak_bytes, live_bytes);
    }
}

#[test]
fn a_long_value_survives_eviction() {
    let space = space(64 * MIB);
    let account = account(&space);
    let values: Vec<_> = (0..12u64)
        .map(|n| {
            let mut guard = account.allocate_bytes(10 << 20).expect("there is room");
            let len = guard.len();
            guard.copy_from_slice(&contents(n, len));
            guard.page().clone()
        })
        .collect();
    for (n, value) in values.iter().enumerate() {
        check(value, n as u64);
    }
    drop(values);
    assert_empty(&space);
}

#[test]
fn classes_share_a_small_budget() {
    for memory_bytes in [MIB, 8 * MIB, 64 * MIB] {
        let space = space(memory_bytes);
        let account = account(&space);
        let mut pages = Vec::new();
        for n in 0..200u64 {
            for class in [PageClass::K4, PageClass::K16, PageClass::K64] {
                pages.push((n, page(&account, class, n)));
            }
            if memory_bytes >= 8 * MIB && n % 8 == 0 {
                pages.push((n, page(&account, PageClass::K256, n)));
                pages.push((n, page(&account, PageClass::M1, n)));
            }
            if n % 3 == 0 {
                pages.swap_remove(n as usize / 2);
            }
        }
        space.verify();
        for (n, page) in &pages {
            check(page, *n);
        }
        drop(pages);
        assert_empty(&space);
    }
}

#[test]
fn the_page_needed_last_goes_first() {
    let space = space(8 * MIB);
    let account = account(&space);
    let pages: Vec<_> = (0..256u32)
        .map(|n| {
            let page = page(&account, PageClass::K64, u64::from(n));
            page.set_next_use(NextUse::At(n));
            page
        })
        .collect();
    space.settle();
    let resident: Vec<bool> = pages.iter().map(|page| page.is_resident()).collect();
    assert!(
        resident[..64].iter().all(|&resident| resident),
        "the first pages stay"
    );
    // Reading in the known order finds the first part in memory.
    let before = space.counters().bytes_read;
    for (n, page) in pages[..64].iter().enumerate() {
        check(page, n as u64);
    }
    assert_eq!(space.counters().bytes_read, before);
}

#[test]
fn a_clean_page_is_dropped_without_a_write() {
    let space = space(8 * MIB);
    let account = account(&space);
    let pages: Vec<_> = (0..256)
        .map(|n| page(&account, PageClass::K64, n))
        .collect();
    for (n, page) in pages.iter().enumerate() {
        check(page, n as u64);
    }
    space.settle();
    let written = space.counters().bytes_written;
    for _ in 0..3 {
        for (n, page) in pages.iter().enumerate() {
            check(page, n as u64);
        }
    }
    space.settle();
    let again = space.counters().bytes_written - written;
    assert!(again <= 8 * MIB, "{again} bytes written again");
}

#[test]
fn a_changed_page_gives_its_copy_up() {
    let space = space(MIB);
    let account = account(&space);
    let pages: Vec<_> = (0..100)
        .map(|n| page(&account, PageClass::K64, n))
        .collect();
    for (n, page) in pages.iter().enumerate() {
        let mut guard = page.write().expect("it can be read back");
        assert!(!guard.page().is_stored());
        let len = guard.len();
        guard.copy_from_slice(&contents(n as u64 + 1000, len));
    }
    for (n, page) in pages.iter().enumerate() {
        check(page, n as u64 + 1000);
    }
    drop(pages);
    assert_empty(&space);
}

#[test]
fn a_reader_becomes_a_writer() {
    let space = space(MIB);
    let account = account(&space);
    let pages: Vec<_> = (0..100)
        .map(|n| page(&account, PageClass::K64, n))
        .collect();
    for (n, page) in pages.iter().enumerate() {
        let guard = page.read().expect("it can be read back");
        // The last pages have not left memory yet.
        assert!(page.is_stored() || n > 50);
        let mut guard = guard.upgrade();
        assert!(!page.is_stored(), "the copy on disk is another page now");
        let len = guard.len();
        guard.copy_from_slice(&contents(n as u64 + 1000, len));
        assert_eq!(space.counters().pinned_bytes, 64 * KIB);
    }
    for (n, page) in pages.iter().enumerate() {
        check(page, n as u64 + 1000);
    }
    // It waits for readers that are about to go, and keeps others out.
    let first = pages[0].read().expect("pins are few");
    let second = first.clone();
    let writer = std::thread::spawn(move || {
        let mut guard = first.upgrade();
        guard[0] = 9;
    });
    std::thread::sleep(std::time::Duration::from_millis(5));
    assert!(!writer.is_finished());
    drop(second);
    writer.join().expect("the writer ends");
    assert_eq!(pages[0].read().expect("pins are few")[0], 9);
    drop(pages);
    assert_empty(&space);
}

#[test]
fn guards_share_and_exclude() {
    let space = space(8 * MIB);
    let account = account(&space);
    let guard = account.allocate(PageClass::K64).expect("there is room");
    let page = guard.page().clone();
    let reader = guard.downgrade();
    let second = reader.clone();
    let third = page.read().expect("readers share");
    assert_eq!(space.counters().pinned_bytes, 64 * KIB);
    let writer = std::thread::spawn({
        let page = page.clone();
        move || page.write().map(|mut guard| guard[0] = 9).is_ok()
    });
    std::thread::sleep(std::time::Duration::from_millis(5));
    drop((reader, second));
    assert!(!writer.is_finished());
    drop(third);
    assert!(writer.join().expect("the writer ends"));
    assert_eq!(page.read().expect("it is in memory")[0], 9);
    // A guard keeps the page when every handle is gone.
    let guard = page.read().expect("it is in memory");
    drop(page);
    assert_eq!(guard[0], 9);
    drop(guard);
    assert_empty(&space);
}

#[test]
fn a_guard_outlives_the_space() {
    let space = space(8 * MIB);
    let guard = account(&space)
        .allocate(PageClass::K4)
        .expect("there is room")
        .downgrade();
    drop(space);
    assert_eq!(guard.len(), 4096);
}

#[test]
fn prefetch_brings_pages_in() {
    let space = space(8 * MIB);
    let account = account(&space);
    let pages: Vec<_> = (0..400u32)
        .map(|n| {
            let page = page(&account, PageClass::K64, u64::from(n));
            page.set_next_use(NextUse::At(n / 50));
            page
        })
        .collect();
    let mut pages: Vec<_> = pages.into_iter().map(Some).collect();
    for part in 0..8 {
        if part < 7 {
            for page in pages[(part + 1) * 50..(part + 2) * 50].iter().flatten() {
                page.prefetch();
            }
        }
        let read = pages.iter_mut().enumerate().skip(part * 50).take(50);
        for (n, page) in read {
            check(&page.take().expect("read once"), n as u64);
        }
    }
    let counters = space.counters();
    assert!(counters.prefetched_pages > 0, "{counters:?}");
    assert_empty(&space);
}

#[test]
fn bad_options_are_refused() {
    let check = |options: SpaceOptions, name: &str| match Space::open(options) {
        Err(Error::InvalidOption { option, .. }) => assert_eq!(option, name),
        other => panic!("{name}: {other:?}"),
    };
    check(
        SpaceOptions {
            memory_bytes: 0,
            ..Default::default()
        },
        "memory_bytes",
    );
    check(
        SpaceOptions {
            memory_bytes: u64::MAX,
            ..Default::default()
        },
        "memory_bytes",
    );
    let dirs = vec!["/nonexistent".into()];
    check(
        SpaceOptions {
            temp_dirs: dirs,
            ..Default::default()
        },
        "temp_dirs",
    );
    let class = Some(PageClass::M1);
    let options = SpaceOptions {
        memory_bytes: MIB,
        page_class: class,
        ..Default::default()
    };
    check(options, "page_class");
}

#[test]
fn counters_roll_up_and_outlive_children() {
    let space = space(8 * MIB);
    let session = space.root().child("session", AccountOptions::default());
    for statement in 0..3 {
        let statement = session.child(&format!("{statement}"), AccountOptions::default());
        let operator = statement.child("operator", AccountOptions::default());
        let pages: Vec<_> = (0..10)
            .map(|n| page(&operator, PageClass::K64, n))
            .collect();
        assert_eq!(statement.counters().resident_bytes, 640 * KIB);
        drop(pages);
    }
    let counters = session.counters();
    assert_eq!((counters.pages_allocated, counters.pages_live), (30, 0));
    assert_eq!(
        (counters.peak_bytes, counters.resident_bytes),
        (640 * KIB, 0)
    );
    assert_eq!(space.counters().pages_allocated, 30);
}
