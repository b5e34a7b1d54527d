//! Pages go to the temp file, the file is damaged behind the back of the space, and the pages are
//! read again: each comes back as it was, or with an error that says where it was lost.
//!
//! ```text
//! codec, mode | page count | class and contents of each page | changes, as of `DamagedSpace`
//! ```

use mayfly_space::{Account, NextUse, Page, PageClass};
use mayfly_testkit::{DamagedSpace, Random, plausible_damage};

const MEMORY_BYTES: u64 = 512 << 10;
const PAGES_MAX: usize = 12;

/// Runs one input.
pub fn check(input: &[u8]) {
    lost_pages(input);
}

/// Runs one input; returns how many pages were lost.
pub fn lost_pages(input: &[u8]) -> usize {
    let mut input = input.iter().copied();
    let mut next = || input.next().unwrap_or(0);
    let damaged = DamagedSpace::open(MEMORY_BYTES, next(), next());
    let space = damaged.space();
    let account = space.root().child("fuzz", Default::default());
    let count = 1 + usize::from(next()) % PAGES_MAX;
    let pages: Vec<(Page, Vec<u8>)> = (0..count)
        .map(|n| new_page(&account, n as u32, next(), next()))
        .collect();
    damaged.push_out();
    let damage = damaged.damage(next);
    let mut lost = 0;
    for (page, contents) in &pages {
        match page.read() {
            Ok(guard) => assert!(guard[..] == contents[..], "other bytes than were written"),
            Err(error) => {
                assert!(damage.explains(&error), "{error}");
                lost += 1;
            }
        }
    }
    // What was lost is lost, and everything else goes on.
    drop(pages);
    let (page, contents) = new_page(&account, 0, 2, 77);
    assert!(page.read().expect("it is in memory")[..] == contents[..]);
    drop(page);
    space.verify();
    assert_eq!(account.counters().pages_live, 0);
    lost
}

fn new_page(account: &Account, n: u32, class: u8, seed: u8) -> (Page, Vec<u8>) {
    let class = PageClass::ALL[usize::from(class) % 3];
    let mut guard = account.allocate(class).expect("pins are few");
    if seed.is_multiple_of(4) {
        // Does not shrink.
        Random::new(u64::from(seed)).fill(&mut guard);
    } else {
        for (at, byte) in guard.iter_mut().enumerate() {
            *byte = (at / usize::from(seed)) as u8;
        }
    }
    guard.page().set_next_use(NextUse::At(n / 4));
    (guard.page().clone(), guard.to_vec())
}

/// Some pages and a few changes among what they take.
pub fn plausible(random: &mut Random) -> Vec<u8> {
    let count = 1 + random.below(PAGES_MAX as u64) as u8;
    let mut input = vec![random.below(4) as u8, random.below(3) as u8, count - 1];
    for _ in 0..2 * count {
        input.push(random.next_u64() as u8);
    }
    plausible_damage(random, 64 << 10, &mut input);
    input
}
