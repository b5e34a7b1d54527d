//! The space against a plain vector of pages.

use mayfly_space::{Account, NextUse, Page, PageClass, Space};
use mayfly_testkit::Random;
use proptest::prelude::*;

use crate::{MIB, account, assert_empty, space};

#[derive(Debug, Clone)]
enum Step {
    Allocate { class: usize, seed: u64 },
    Free { at: usize },
    Read { at: usize },
    Write { at: usize, offset: usize, value: u8 },
    Prefetch { at: usize },
    NextUse { at: usize, key: Option<u32> },
    Reserve { kib: u64 },
    Pin { at: usize },
    Unpin,
}

fn step() -> impl Strategy<Value = Step> {
    let at = any::<usize>();
    prop_oneof![
        6 => (0usize..4, any::<u64>()).prop_map(|(class, seed)| Step::Allocate { class, seed }),
        2 => at.prop_map(|at| Step::Free { at }),
        4 => at.prop_map(|at| Step::Read { at }),
        3 => (at, any::<usize>(), any::<u8>())
            .prop_map(|(at, offset, value)| Step::Write { at, offset, value }),
        1 => at.prop_map(|at| Step::Prefetch { at }),
        2 => (at, prop::option::of(0u32..9)).prop_map(|(at, key)| Step::NextUse { at, key }),
        1 => (0u64..256).prop_map(|kib| Step::Reserve { kib }),
        1 => at.prop_map(|at| Step::Pin { at }),
        1 => Just(Step::Unpin),
    ]
}

struct Run {
    account: Account,
    real: Vec<Page>,
    model: Vec<Vec<u8>>,
}

impl Run {
    fn pick(&self, at: usize) -> Option<usize> {
        (!self.real.is_empty()).then(|| at % self.real.len())
    }

    fn check(&self, index: usize) {
        let guard = self.real[index].read().expect("pins are few");
        assert!(guard[..] == self.model[index][..], "page {index}");
    }
}

fn run(space: &Space, steps: &[Step], verify_every: usize) {
    let mut run = Run {
        account: account(space),
        real: Vec::new(),
        model: Vec::new(),
    };
    let mut reservation = run.account.reserve(0).expect("nothing was asked");
    let mut pinned: Option<(usize, mayfly_space::ReadGuard)> = None;
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Allocate { class, seed } => {
                let mut guard = run
                    .account
                    .allocate(PageClass::ALL[class])
                    .expect("pins are few");
                let mut bytes = vec![0; guard.len()];
                Random::new(seed).fill(&mut bytes);
                guard.copy_from_slice(&bytes);
                run.real.push(guard.page().clone());
                run.model.push(bytes);
            }
            Step::Free { at } => {
                if let Some(index) = run.pick(at) {
                    if pinned.as_ref().is_some_and(|(pin, _)| *pin >= index) {
                        pinned = None;
                    }
                    run.real.remove(index);
                    run.model.remove(index);
                }
            }
            Step::Read { at } => {
                if let Some(index) = run.pick(at) {
                    run.check(index);
                }
            }
            Step::Write { at, offset, value } => {
                if let Some(index) = run.pick(at) {
                    if pinned.as_ref().is_some_and(|(pin, _)| *pin == index) {
                        pinned = None;
                    }
                    let offset = offset % run.model[index].len();
                    run.real[index].write().expect("pins are few")[offset] = value;
                    run.model[index][offset] = value;
                }
            }
            Step::Prefetch { at } => {
                if let Some(index) = run.pick(at) {
                    run.real[index].prefetch();
                }
            }
            Step::NextUse { at, key } => {
                if let Some(index) = run.pick(at) {
                    run.real[index].set_next_use(key.map_or(NextUse::SecondChance, NextUse::At));
                }
            }
            Step::Reserve { kib } => {
                reservation.try_resize(kib << 10).expect("pins are few");
            }
            Step::Pin { at } => {
                if let Some(index) = run.pick(at) {
                    pinned = Some((index, run.real[index].read().expect("pins are few")));
                }
            }
            Step::Unpin => pinned = None,
        }
        if number % verify_every == 0 {
            space.verify();
        }
    }
    for index in 0..run.real.len() {
        run.check(index);
    }
    drop((pinned, reservation, run));
    assert_empty(space);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..Default::default() })]

    #[test]
    fn equals_a_vector_at_one_mebibyte(steps in prop::collection::vec(step(), 1..300)) {
        run(&space(MIB), &steps, 7);
    }

    #[test]
    fn equals_a_vector_at_eight_mebibytes(steps in prop::collection::vec(step(), 200..900)) {
        run(&space(8 * MIB), &steps, 31);
    }
}

#[test]
fn equals_a_vector_at_every_budget() {
    let seed = 20;
    eprintln!("seed: {seed}");
    let mut random = Random::new(seed);
    let steps: Vec<Step> = (0..4000)
        .map(|_| {
            let at = random.next_u64() as usize;
            match random.below(16) {
                0..6 => Step::Allocate {
                    class: random.below(4) as usize,
                    seed: random.next_u64(),
                },
                6..8 => Step::Free { at },
                8..11 => Step::Read { at },
                11..13 => Step::Write {
                    at,
                    offset: at >> 7,
                    value: at as u8,
                },
                13 => Step::Prefetch { at },
                14 => Step::NextUse {
                    at,
                    key: Some((at % 11) as u32),
                },
                _ => Step::Reserve {
                    kib: random.below(300),
                },
            }
        })
        .collect();
    mayfly_testkit::budgets(MIB, |space| run(space, &steps, 500));
}
