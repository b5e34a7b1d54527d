//! What the file system allocates, as it says itself.

use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::AtomicBool;

use super::*;

const MIB: u64 = 1 << 20;

fn files() -> Files {
    Files::new(&[], IoMode::Buffered, MIB, None, None).unwrap()
}

fn end_two_periods(files: &Files) {
    for _ in 0..2 {
        files.end_period(&|| false);
    }
}

fn bytes_on_disk(files: &Files) -> u64 {
    files.handle(0).file.metadata().unwrap().blocks() * 512
}

#[test]
#[cfg_attr(miri, ignore = "the kernel is asked")]
fn free_pieces_become_holes_and_holes_are_filled_first() {
    let files = files();
    let taken: Vec<u64> = (0..10).map(|_| files.take(MIB).unwrap().1).collect();
    let (kept, free) = ([taken[3], taken[9]], [0, 1, 2, 4, 5, 6, 7, 8]);
    for offset in kept {
        let bytes = [7; 4096];
        files.handle(0).file.write_all_at(&bytes, offset).unwrap();
    }
    for index in free {
        files.give(0, taken[index], MIB);
    }
    end_two_periods(&files);
    assert_eq!(files.allocated_bytes(), 2 * MIB);
    // File systems keep some blocks for lists of pieces.
    assert!(bytes_on_disk(&files) <= 2 * MIB + MIB / 4);
    let len = lock(&files.files[0].growing).len;
    assert_eq!(len, 10 * MIB);
    // The hole of five fills before the file grows, and what is kept is left alone.
    let again: Vec<u64> = (0..4).map(|_| files.take(MIB).unwrap().1).collect();
    assert_eq!(lock(&files.files[0].growing).len, len);
    assert!(again.iter().all(|offset| !kept.contains(offset)));
    for offset in kept {
        let mut bytes = [0; 4096];
        files
            .handle(0)
            .file
            .read_exact_at(&mut bytes, offset)
            .unwrap();
        assert_eq!(bytes, [7; 4096]);
    }
    for offset in again.into_iter().chain(kept) {
        files.give(0, offset, MIB);
    }
    end_two_periods(&files);
    assert_eq!(
        (files.allocated_bytes(), lock(&files.files[0].growing).len),
        (0, 0)
    );
    assert!(bytes_on_disk(&files) <= MIB / 4);
}

#[test]
fn a_hole_that_ends_the_file_goes_with_its_end() {
    let files = files();
    let taken: Vec<u64> = (0..6).map(|_| files.take(MIB).unwrap().1).collect();
    for index in [1, 2, 4] {
        files.give(0, taken[index], MIB);
    }
    end_two_periods(&files);
    assert_eq!(files.allocated_bytes(), 3 * MIB);
    files.give(0, taken[3], MIB);
    files.give(0, taken[5], MIB);
    end_two_periods(&files);
    assert_eq!(files.allocated_bytes(), MIB);
    assert_eq!(lock(&files.files[0].growing).len, MIB);
    assert_eq!(files.used_bytes(), MIB);
}

#[test]
#[cfg_attr(miri, ignore = "the kernel is asked")]
fn giving_back_goes_on_while_it_is_in_the_way_but_not_for_long() {
    const PIECE: u64 = 4096;
    let files = files();
    let count = 2 * PIECES_MIN;
    let taken: Vec<u64> = (0..2 * count)
        .map(|_| files.take(PIECE).unwrap().1)
        .collect();
    // Each second piece stays, so that no two of those that go are one.
    for pair in taken.chunks(2) {
        files.give(0, pair[0], PIECE);
    }
    files.end_period(&|| false);
    let allocated = files.allocated_bytes();
    files.end_period(&|| true);
    let given = allocated - files.allocated_bytes();
    let least = u64::from(PIECES_MIN) * PIECE;
    assert!(given >= least, "{given}");
    assert!(files.allocated_bytes() > files.used_bytes(), "it stopped");
    files.end_period(&|| false);
    assert_eq!(files.allocated_bytes(), files.used_bytes());
}

/// What a file has just grown by is of those for whom it grew, not of a period that ends then.
#[test]
fn periods_that_end_take_nothing_from_those_who_grow_a_file() {
    let files = files();
    let is_over = AtomicBool::new(false);
    let failed = std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    files.end_period(&|| false);
                }
            });
        }
        let rounds = if cfg!(miri) { 20 } else { 300 };
        let failed = (0..rounds).find_map(|_| match files.take(MIB) {
            Ok((file, offset)) => {
                files.give(file, offset, MIB);
                // So that the next round finds nothing to take but what it grows by.
                while files.allocated_bytes() > 0 {
                    std::thread::yield_now();
                }
                None
            }
            Err(error) => Some(error),
        });
        is_over.store(true, Relaxed);
        failed
    });
    assert!(failed.is_none(), "{failed:?}");
}
