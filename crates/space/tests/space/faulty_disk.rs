//! A disk that moves less than it is asked to, returns other bytes than were written, is full by
//! turns, or cannot be opened: accounts beside each other get typed errors, and lose nothing.

use std::io::ErrorKind;
use std::sync::Arc;

use mayfly_space::{
    Account, AccountOptions, Compression, Error, IoMode, Operation, Page, PageClass, SpaceOptions,
};
use mayfly_testkit::{FaultPlan, FaultyDisk};

use crate::{KIB, MIB, account, assert_empty, check, contents, open, with_faults};

fn options(disk: &Arc<FaultyDisk>) -> SpaceOptions {
    with_faults(MIB, Arc::clone(disk) as _)
}

/// Pages of an account until there are `count`, or the first error.
fn fill(account: &Account, pages: &mut Vec<Page>, count: u64) -> Result<(), Error> {
    while (pages.len() as u64) < count {
        let mut guard = account.allocate(PageClass::K16)?;
        let len = guard.len();
        guard.copy_from_slice(&contents(pages.len() as u64, len));
        pages.push(guard.page().clone());
    }
    Ok(())
}

fn check_all(pages: &[Page]) {
    for (n, page) in pages.iter().enumerate() {
        check(page, n as u64);
    }
}

#[test]
fn short_transfers_move_everything() {
    for io in [IoMode::Direct, IoMode::Buffered, IoMode::Mmap] {
        for io_uring in [true, false] {
            for compression in [Compression::None, Compression::Lz4] {
                let disk = FaultyDisk::new(7);
                disk.shorten(true);
                let space = open(SpaceOptions {
                    io,
                    io_uring,
                    compression,
                    ..options(&disk)
                });
                let mut pages = Vec::new();
                fill(&account(&space), &mut pages, 200).expect("short transfers go on");
                for page in pages.iter().step_by(3) {
                    page.prefetch();
                }
                check_all(&pages);
                assert!(disk.shortened() > 100);
                drop(pages);
                assert_empty(&space);
            }
        }
    }
}

#[test]
fn a_flipped_bit_is_found_and_named() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let disk = FaultyDisk::new(8);
        let space = open(SpaceOptions {
            compression,
            temp_dirs: vec![std::env::temp_dir()],
            ..options(&disk)
        });
        let (one, two) = (account(&space), account(&space));
        let (mut ones, mut twos) = (Vec::new(), Vec::new());
        fill(&one, &mut ones, 100).expect("the disk works");
        fill(&two, &mut twos, 30).expect("the disk works");
        disk.flip_bits(true);
        let mut offsets = std::collections::BTreeSet::new();
        for (n, page) in ones.iter().enumerate() {
            page.prefetch();
            let Err(error) = page.read().map(drop) else {
                check(page, n as u64);
                continue;
            };
            let text = error.to_string();
            let Error::Corrupt { dir, offset, .. } = error else {
                panic!("{text}");
            };
            assert_eq!(dir, std::env::temp_dir());
            assert!(text.contains(&offset.to_string()) && text.contains(&*dir.to_string_lossy()));
            offsets.insert(offset);
        }
        assert!(offsets.len() > 10, "{offsets:?}");
        assert!(disk.flipped() >= offsets.len() as u64);
        // The disk was right, and the wires are again. Nothing was taken from the neighbour.
        disk.flip_bits(false);
        check_all(&ones);
        check_all(&twos);
        drop((ones, twos));
        assert_empty(&space);
    }
}

/// Two accounts, one of them with a quota, beside each other on a disk that is full by turns.
fn live_on_a_full_disk(account: &Account) {
    for round in 0..20 {
        let mut pages = Vec::new();
        let filled = fill(account, &mut pages, 60 + round % 5 * 10);
        if let Err(error) = filled {
            let is_full = matches!(error, Error::DiskFull { .. } | Error::QuotaReached { .. });
            assert!(is_full, "{error}");
        }
        for (n, page) in pages.iter().enumerate() {
            // Room for a page to come back can be what is missing.
            match page.read() {
                Ok(guard) => assert!(guard[..] == contents(n as u64, guard.len())[..]),
                Err(Error::DiskFull { .. } | Error::QuotaReached { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

#[test]
fn a_disk_that_is_full_by_turns_loses_nothing() {
    for turn in [1, 5, 40] {
        let disk = FaultyDisk::new(9);
        disk.fill_by_turns(turn);
        let space = open(options(&disk));
        let quota = |bytes| AccountOptions {
            disk_quota_bytes: bytes,
            ..AccountOptions::default()
        };
        let limited = space.root().child("limited", quota(Some(512 * KIB)));
        let free = space.root().child("free", quota(None));
        std::thread::scope(|scope| {
            for account in [&limited, &free] {
                scope.spawn(move || live_on_a_full_disk(account));
            }
        });
        assert!(disk.refused() > 0);
        disk.fill_by_turns(0);
        let mut pages = Vec::new();
        fill(&free, &mut pages, 200).expect("there is room again");
        check_all(&pages);
        drop(pages);
        assert_empty(&space);
    }
}

/// Without a descriptor for the temp file, who needs it fails; the next one opens it.
#[test]
fn a_file_that_cannot_be_opened_is_opened_later() {
    let plan = FaultPlan::failing_with(&[Operation::Open], ErrorKind::Other);
    let space = open(with_faults(MIB, Arc::clone(&plan) as _));
    let (one, two) = (account(&space), account(&space));
    plan.fail_from(1);
    let mut pages = Vec::new();
    let error = fill(&one, &mut pages, 200).expect_err("there is no file");
    assert!(
        matches!(
            error,
            Error::Io {
                operation: "open",
                ..
            }
        ),
        "{error}"
    );
    check_all(&pages);
    assert_eq!(space.counters().files_created, 0);
    plan.disarm();
    let mut others = Vec::new();
    fill(&two, &mut others, 200).expect("the file can be opened");
    check_all(&others);
    check_all(&pages);
    drop((pages, others));
    assert_empty(&space);
}
