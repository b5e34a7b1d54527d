use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mayfly_space::{AccountOptions, Compression, NextUse, Page, PageClass, SpaceOptions};
use mayfly_testkit::Random;

use crate::{MIB, assert_empty, open};

fn seed() -> u64 {
    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.subsec_nanos());
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(u64::from(nanos));
    eprintln!("SEED={seed}");
    seed
}

/// Every page begins with its number and a count that is repeated at its end.
fn check(bytes: &[u8], number: u64) {
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!(word(0), number);
    assert_eq!(word(8), word(bytes.len() - 8), "page {number} is torn");
}

fn stamp(bytes: &mut [u8], number: u64, count: u64) {
    let end = bytes.len() - 8;
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    bytes[end..].copy_from_slice(&count.to_le_bytes());
}

fn stress(options: SpaceOptions, threads: u64, time: Duration) {
    let space = open(options);
    let seed = seed();
    let shared: Vec<Mutex<Option<(u64, Page)>>> = (0..200).map(|_| Mutex::new(None)).collect();
    let numbers = AtomicU64::new(0);
    let end = std::time::Instant::now() + time;
    let body = |thread: u64| {
        let mut random = Random::new(seed ^ (thread << 32));
        let account = space.root().child("thread", AccountOptions::default());
        let mut own: Vec<(u64, Page)> = Vec::new();
        let mut reservation = account.reserve(0).expect("nothing was asked");
        while std::time::Instant::now() < end {
            match random.below(12) {
                0..4 => {
                    let class = PageClass::ALL[random.below(4) as usize];
                    let number = numbers.fetch_add(1, Relaxed);
                    let mut guard = account.allocate(class).expect("pins are few");
                    stamp(&mut guard, number, random.next_u64());
                    if random.chance(0.7) {
                        guard
                            .page()
                            .set_next_use(NextUse::At(random.below(8) as u32));
                    }
                    let page = guard.page().clone();
                    drop(guard);
                    if random.chance(0.3) {
                        let at = random.below(200) as usize;
                        let old = shared[at].lock().expect("no panic").replace((number, page));
                        drop(old);
                    } else {
                        own.push((number, page));
                    }
                }
                4 if !own.is_empty() => {
                    own.swap_remove(random.below(own.len() as u64) as usize);
                }
                5..7 if !own.is_empty() => {
                    let (number, page) = &own[random.below(own.len() as u64) as usize];
                    check(&page.read().expect("pins are few"), *number);
                }
                7..10 => {
                    let at = random.below(200) as usize;
                    let chosen = shared[at].lock().expect("no panic").clone();
                    if let Some((number, page)) = chosen {
                        if random.chance(0.5) {
                            let guard = page.read().expect("pins are few");
                            check(&guard, number);
                            check(&guard.clone(), number);
                        } else {
                            let mut guard = page.write().expect("pins are few");
                            check(&guard, number);
                            stamp(&mut guard, number, random.next_u64());
                        }
                    }
                }
                10 if !own.is_empty() => own[random.below(own.len() as u64) as usize].1.prefetch(),
                _ => {
                    let bytes = random.below(256 << 10);
                    reservation.try_resize(bytes).expect("pins are few");
                }
            }
            while own.len() > 400 {
                own.swap_remove(0);
            }
        }
        for (number, page) in &own {
            check(&page.read().expect("pins are few"), *number);
        }
    };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || body(thread));
        }
    });
    space.verify();
    drop(shared);
    assert_empty(&space);
}

#[test]
fn threads_at_eight_mebibytes() {
    let options = SpaceOptions {
        memory_bytes: 8 * MIB,
        ..SpaceOptions::default()
    };
    stress(options, 4, Duration::from_millis(1500));
}

#[test]
fn threads_at_four_mebibytes_coded() {
    let options = SpaceOptions {
        memory_bytes: 4 * MIB,
        compression: Compression::Lz4,
        io_uring: false,
        ..SpaceOptions::default()
    };
    stress(options, 3, Duration::from_millis(1000));
}

#[test]
fn threads_in_memory() {
    let options = SpaceOptions {
        memory_bytes: 512 * MIB,
        ..SpaceOptions::default()
    };
    stress(options, 4, Duration::from_millis(500));
}
