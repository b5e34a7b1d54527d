//! Frames and memory outside of the arena, taken and returned in whatever order.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Allocate { len: usize, beyond: bool },
    Free { which: prop::sample::Index },
    TakeOutside { bytes: u64, beyond: bool },
    ReturnOutside { which: prop::sample::Index },
    Trim,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1usize..3 << 20, any::<bool>())
            .prop_map(|(len, beyond)| Step::Allocate { len, beyond }),
        3 => any::<prop::sample::Index>().prop_map(|which| Step::Free { which }),
        2 => (1u64..2 << 20, any::<bool>())
            .prop_map(|(bytes, beyond)| Step::TakeOutside { bytes, beyond }),
        2 => any::<prop::sample::Index>().prop_map(|which| Step::ReturnOutside { which }),
        1 => Just(Step::Trim),
    ]
}

proptest! {
    /// Whatever is taken and returned in whatever order, what is in use keeps the limit, and with
    /// what is backed for it the limit and its slack.
    #[test]
    #[cfg_attr(miri, ignore = "takes an hour, and tests/miri.rs moves pages")]
    fn nothing_is_held_beyond_limit_and_slack(
        steps in prop::collection::vec(step(), 1..200),
        // With huge pages the last of them is no whole one.
        limit_bytes in prop::sample::select(vec![4_u64 << 20, (8 << 20) + (256 << 10)]),
    ) {
        let arena = Arena::new(limit_bytes).unwrap();
        let (mut frames, mut outside): (Vec<(Frame, Size)>, Vec<u64>) = Default::default();
        for step in steps {
            match step {
                Step::Allocate { len, beyond } => {
                    let size = arena.size_for(len);
                    frames.extend(arena.allocate(size, 1, beyond).map(|frame| (frame, size)));
                }
                Step::Free { which } if !frames.is_empty() => {
                    let (frame, size) = frames.swap_remove(which.index(frames.len()));
                    arena.free(frame, size);
                }
                Step::TakeOutside { bytes, beyond } => {
                    outside.extend(arena.take_outside(bytes, beyond).then_some(bytes));
                }
                Step::ReturnOutside { which } if !outside.is_empty() => {
                    arena.return_outside(outside.swap_remove(which.index(outside.len())));
                }
                Step::Trim => {
                    arena.give_back(u64::MAX);
                }
                _ => {}
            }
            prop_assert_eq!(arena.check().owned.len(), frames.len());
            prop_assert!(arena.held_bytes() <= limit_bytes);
            let held = arena.free_bytes() + arena.held_bytes();
            prop_assert!(held <= limit_bytes + arena.slack_bytes(), "{} held", held);
        }
    }
}

#[test]
fn what_an_allocator_may_keep_is_what_came_back_and_pages_took_since() {
    const LIMIT: u64 = 8 << 20;
    let arena = Arena::new(LIMIT).unwrap();
    assert!(arena.take_outside(LIMIT, false));
    arena.return_outside(LIMIT);
    assert!(!arena.keeps_outside_more_than(0), "there is room for it");
    let size = arena.size_for(1 << 20);
    let frames = [(); 3].map(|()| arena.allocate(size, 1, false).unwrap());
    assert!(arena.keeps_outside_more_than((3 << 20) - 1));
    assert!(!arena.keeps_outside_more_than(3 << 20));
    assert!(arena.take_outside(4 << 20, false));
    assert!(
        arena.keeps_outside_more_than((3 << 20) - 1),
        "the rest of what came back"
    );
    arena.forget_kept();
    assert!(!arena.keeps_outside_more_than(0));
    for frame in frames {
        arena.free(frame, size);
    }
}
