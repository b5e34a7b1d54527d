use std::path::PathBuf;

use mayfly_space::{
    AccountOptions, Compression, Counters, IoMode, NextUse, PageClass, SpaceOptions,
};

use crate::{MIB, account, assert_empty, open};

fn round_trip(options: SpaceOptions) -> Counters {
    let space = open(options);
    let account = account(&space);
    // Half of each page is random, the other half zero: it shrinks to about half.
    let fill = |n: u64, bytes: &mut [u8]| {
        let half = bytes.len() / 2;
        bytes[..half].copy_from_slice(&crate::contents(n, half));
        bytes[half..].fill(0);
    };
    let mut pages = Vec::new();
    for n in 0..300u64 {
        let class = if n % 10 == 0 {
            PageClass::K4
        } else {
            PageClass::K64
        };
        let mut guard = account.allocate(class).expect("there is room");
        fill(n, &mut guard);
        guard.page().set_next_use(NextUse::At(n as u32 / 40));
        pages.push(guard.page().clone());
    }
    let mut expected = vec![0; 65536];
    for round in 0..2 {
        for page in pages.iter().skip(round * 40).take(60) {
            page.prefetch();
        }
        for (n, page) in pages.iter().enumerate() {
            let guard = page.read().expect("it can be read back");
            fill(n as u64, &mut expected[..guard.len()]);
            assert!(guard[..] == expected[..guard.len()], "page {n}");
        }
    }
    space.verify();
    drop(pages);
    assert_empty(&space);
    space.counters()
}

fn base() -> SpaceOptions {
    SpaceOptions {
        memory_bytes: 8 * MIB,
        ..SpaceOptions::default()
    }
}

#[test]
fn every_mode_and_queue_works() {
    for io in [IoMode::Direct, IoMode::Buffered, IoMode::Mmap] {
        for io_uring in [true, false] {
            eprintln!("{io:?}, io_uring {io_uring}");
            let counters = round_trip(SpaceOptions {
                io,
                io_uring,
                ..base()
            });
            assert!(counters.bytes_read > 0);
            assert_eq!(counters.files_created, 1);
        }
    }
}

#[test]
fn direct_bytes_are_counted() {
    let counters = round_trip(base());
    if counters.device_bytes_written > 0 {
        assert_eq!(counters.device_bytes_written, counters.bytes_written);
        assert_eq!(counters.device_bytes_read, counters.bytes_read);
    }
}

#[test]
fn every_codec_works_in_every_mode() {
    for io in [IoMode::Direct, IoMode::Buffered, IoMode::Mmap] {
        for compression in [Compression::Auto, Compression::Lz4, Compression::Zstd] {
            eprintln!("{io:?}, {compression:?}");
            let counters = round_trip(SpaceOptions {
                io,
                compression,
                ..base()
            });
            if io == IoMode::Direct
                && compression != Compression::Auto
                && counters.device_bytes_written > 0
            {
                let ratio = counters.bytes_written as f64 / counters.device_bytes_written as f64;
                assert!((1.6..2.1).contains(&ratio), "{ratio}");
            }
        }
    }
}

#[test]
fn memory_file_systems_work() {
    let dir = PathBuf::from("/dev/shm");
    if !dir.is_dir() {
        return;
    }
    for io in [IoMode::Direct, IoMode::Buffered, IoMode::Mmap] {
        round_trip(SpaceOptions {
            temp_dirs: vec![dir.clone()],
            io,
            ..base()
        });
    }
}

#[test]
fn several_directories_share_the_load() {
    let make = |n: u32| {
        let dir = std::env::temp_dir().join(format!("mayfly-test-{}-{n}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("the temp directory is writable");
        dir
    };
    let dirs = vec![make(1), make(2)];
    let options = SpaceOptions {
        temp_dirs: dirs.clone(),
        pre_extend_bytes: 32 * MIB,
        ..base()
    };
    let counters = round_trip(options);
    assert_eq!(counters.files_created, 2);
    for dir in dirs {
        // Nothing has a name, before and after.
        assert_eq!(std::fs::read_dir(&dir).expect("it exists").count(), 0);
        std::fs::remove_dir(&dir).expect("it is empty");
    }
}

/// A quota that refuses one page of an extent must not shift what is written of those behind it.
#[test]
fn a_refused_page_leaves_its_neighbours_coded_bytes_alone() {
    let space = open(SpaceOptions {
        compression: Compression::Lz4,
        ..base()
    });
    let limited = space.root().child(
        "limited",
        AccountOptions {
            disk_quota_bytes: Some(256 << 10),
            ..AccountOptions::default()
        },
    );
    let free = account(&space);
    let mut pages = Vec::new();
    // More than memory holds: the pages of both are written side by side.
    for n in 0..240u64 {
        let owner = if n % 3 == 0 && n < 90 {
            &limited
        } else {
            &free
        };
        let mut guard = owner.allocate(PageClass::K64).expect("there is room");
        let half = guard.len() / 2;
        guard[..half].copy_from_slice(&crate::contents(n, half));
        guard[half..].fill(n as u8);
        guard.page().set_next_use(NextUse::At(n as u32 / 60));
        pages.push((n, guard.page().clone()));
    }
    for (n, page) in &pages {
        let guard = page.read().expect("it can be read back");
        let half = guard.len() / 2;
        assert!(guard[..half] == crate::contents(*n, half), "page {n}");
        assert!(
            guard[half..].iter().all(|byte| *byte == *n as u8),
            "page {n}"
        );
    }
    space.verify();
    drop(pages);
}

/// An account may ask for compression that the space does not.
#[test]
fn an_account_compresses_its_own_pages() {
    let space = open(SpaceOptions {
        compression: Compression::None,
        ..base()
    });
    let compressed = AccountOptions {
        compression: Some(Compression::Zstd),
        ..AccountOptions::default()
    };
    let compressed = space.root().child("compressed", compressed);
    let inherits = compressed.child("keys", AccountOptions::default());
    let plain = account(&space);
    let owners = [&compressed, &inherits, &plain];
    let mut pages = Vec::new();
    for n in 0..240_u64 {
        let owner = owners[n as usize % owners.len()];
        let mut guard = owner.allocate(PageClass::K64).expect("there is room");
        guard.fill(n as u8);
        pages.push((n, guard.page().clone()));
    }
    for (n, page) in &pages {
        let guard = page.read().expect("it can be read back");
        assert!(guard.iter().all(|byte| *byte == *n as u8), "page {n}");
    }
    let of_page = |account: &mayfly_space::Account| {
        let counters = account.counters();
        assert!(counters.pages_written > 0);
        // No page is changed or freed meanwhile, so each copy that was written is still there.
        counters.disk_bytes_used / counters.pages_written
    };
    assert!(of_page(&inherits) <= 4096);
    assert_eq!(of_page(&plain), 64 << 10);
    space.verify();
}
