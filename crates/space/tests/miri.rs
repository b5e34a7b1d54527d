//! A small run of everything that unsafe code does, for Miri:
//!
//! ```sh
//! MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-many-seeds=0..4" \
//!     cargo +nightly miri test -p mayfly-space --test miri
//! ```
//!
//! Under Miri the arena and the temp file are heap memory and the queue is served by threads;
//! latches, lists, moves and the writer are the real ones.

use mayfly_space::{Account, Compression, NextUse, Page, PageClass, Space, SpaceOptions};

fn open(compression: Compression) -> Space {
    let options = SpaceOptions {
        memory_bytes: 256 << 10,
        io_uring: false,
        compression,
        page_class: Some(PageClass::K4),
        ..SpaceOptions::default()
    };
    Space::open(options).expect("the options are valid")
}

fn page(account: &Account, class: PageClass, n: u8) -> Page {
    let mut guard = account.allocate(class).expect("pins are few");
    let len = guard.len();
    guard[0] = n;
    guard[len - 1] = n;
    guard.page().set_next_use(NextUse::At(u32::from(n % 5)));
    guard.page().clone()
}

fn check(page: &Page, n: u8) {
    let guard = page.read().expect("pins are few");
    assert_eq!((guard[0], guard[guard.len() - 1]), (n, n));
}

#[test]
fn pages_come_and_go() {
    come_and_go(Compression::None);
}

/// Takes minutes under Miri, of which the coder has nearly all.
#[test]
fn coded_pages_come_and_go() {
    come_and_go(Compression::Lz4);
}

fn come_and_go(compression: Compression) {
    let space = open(compression);
    let account = space.root().child("test", Default::default());
    let mut pages = Vec::new();
    for n in 0..40 {
        let class = if n % 4 == 0 {
            PageClass::K16
        } else {
            PageClass::K4
        };
        pages.push((n, page(&account, class, n)));
    }
    let reservation = account.reserve(64 << 10).expect("pages give way");
    for (_, page) in pages.iter().take(5) {
        page.prefetch();
    }
    for (n, page) in &pages {
        check(page, *n);
    }
    pages.retain(|(n, _)| n % 3 != 0);
    for (n, page) in &mut pages {
        *n += 100;
        let mut guard = page.write().expect("pins are few");
        let len = guard.len();
        guard[0] = *n;
        guard[len - 1] = *n;
        let reader = guard.downgrade();
        assert_eq!(reader.clone()[0], *n);
        reader.upgrade()[1] = *n;
    }
    // A larger class needs whole blocks: pages are moved together.
    let large = page(&account, PageClass::K64, 7);
    for (n, page) in &pages {
        check(page, *n);
    }
    check(&large, 7);
    drop((reservation, pages, large));
    space.verify();
    assert_eq!(space.counters().pages_live, 0);
    assert!(space.counters().bytes_written > 0);
}

#[test]
fn threads_share_pages() {
    let space = open(Compression::None);
    let account = space.root().child("test", Default::default());
    let shared: Vec<Page> = (0..6).map(|_| page(&account, PageClass::K4, 0)).collect();
    std::thread::scope(|scope| {
        for thread in 0..2u8 {
            let (account, shared) = (&account, &shared);
            scope.spawn(move || {
                let mut own = Vec::new();
                for n in 0..24u8 {
                    own.push(page(account, PageClass::K4, n));
                    let at = usize::from(n * 5 + thread) % shared.len();
                    if n % 2 == 0 {
                        let guard = shared[at].read().expect("pins are few");
                        assert_eq!(guard[0], guard[guard.len() - 1]);
                    } else {
                        let mut guard = shared[at].write().expect("pins are few");
                        let len = guard.len();
                        guard[0] = n;
                        guard[len - 1] = n;
                    }
                }
                for (n, page) in own.iter().enumerate() {
                    check(page, n as u8);
                }
            });
        }
    });
    drop(shared);
    space.verify();
    assert_eq!(space.memory_used_bytes(), 0);
}
