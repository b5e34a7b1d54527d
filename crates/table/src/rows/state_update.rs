//! States of groups that exist already, brought up to date straight from columns.
//!
//! The quick way for keys that repeat: no row is written for an input row whose group is at hand.
//! One pass over the rows a state; the kind is matched once. Must agree with `encode_states`
//! followed by `merge_state`, which the property tests of the group set compare it with.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{ArrowPrimitiveType, PrimitiveArray};

use super::row_table::Targets;
use super::state::{Number, StateInput, StateKind, StateSlot, get, put};

/// Merges input rows into groups: `pairs` hold the row of each and the reference of its group.
pub(crate) fn update_states(
    slots: &[StateSlot],
    inputs: &[StateInput],
    pairs: &[(u32, u32)],
    targets: &mut Targets<'_>,
) {
    for (slot, input) in slots.iter().zip(inputs) {
        match slot.kind {
            StateKind::Count => count(slot, input, pairs, targets),
            StateKind::Sum(number) => match number {
                Number::Int => each::<Int64Type>(slot, input, pairs, targets, |old, new, _| {
                    put(
                        old,
                        0,
                        i64::from_le_bytes(get(old, 0))
                            .wrapping_add(new)
                            .to_le_bytes(),
                    );
                }),
                Number::UInt => each::<UInt64Type>(slot, input, pairs, targets, |old, new, _| {
                    put(
                        old,
                        0,
                        u64::from_le_bytes(get(old, 0))
                            .wrapping_add(new)
                            .to_le_bytes(),
                    );
                }),
                Number::Float => each::<Float64Type>(slot, input, pairs, targets, |old, new, _| {
                    put(
                        old,
                        0,
                        (f64::from_le_bytes(get(old, 0)) + new).to_le_bytes(),
                    );
                }),
                Number::Decimal => {
                    each::<Decimal128Type>(slot, input, pairs, targets, |old, new, _| {
                        let sum = i128::from_le_bytes(get(old, 0)).wrapping_add(new);
                        put(old, 0, sum.to_le_bytes());
                    });
                }
            },
            StateKind::Min(number) => extreme(slot, number, input, pairs, targets, true),
            StateKind::Max(number) => extreme(slot, number, input, pairs, targets, false),
            StateKind::BitAnd => each::<UInt64Type>(slot, input, pairs, targets, |old, new, _| {
                put(
                    old,
                    0,
                    (u64::from_le_bytes(get(old, 0)) & new).to_le_bytes(),
                );
            }),
            StateKind::BitOr => each::<UInt64Type>(slot, input, pairs, targets, |old, new, _| {
                put(
                    old,
                    0,
                    (u64::from_le_bytes(get(old, 0)) | new).to_le_bytes(),
                );
            }),
            StateKind::BitXor => each::<UInt64Type>(slot, input, pairs, targets, |old, new, _| {
                put(
                    old,
                    0,
                    (u64::from_le_bytes(get(old, 0)) ^ new).to_le_bytes(),
                );
            }),
            StateKind::Moments => each::<Float64Type>(slot, input, pairs, targets, moments),
        }
    }
}

fn count(slot: &StateSlot, input: &StateInput, pairs: &[(u32, u32)], targets: &mut Targets<'_>) {
    let all = input.sees_all();
    for (row, group) in pairs {
        if all || input.sees(*row as usize) {
            let state = &mut targets.row(*group)[slot.offset..];
            put(
                state,
                0,
                (i64::from_le_bytes(get(state, 0)) + 1).to_le_bytes(),
            );
        }
    }
}

fn extreme(
    slot: &StateSlot,
    number: Number,
    input: &StateInput,
    pairs: &[(u32, u32)],
    targets: &mut Targets<'_>,
    smaller: bool,
) {
    match number {
        Number::Int => each::<Int64Type>(slot, input, pairs, targets, |old, new, first| {
            let kept = i64::from_le_bytes(get(old, 0));
            if first || if smaller { new < kept } else { new > kept } {
                put(old, 0, new.to_le_bytes());
            }
        }),
        Number::UInt => each::<UInt64Type>(slot, input, pairs, targets, |old, new, first| {
            let kept = u64::from_le_bytes(get(old, 0));
            if first || if smaller { new < kept } else { new > kept } {
                put(old, 0, new.to_le_bytes());
            }
        }),
        Number::Float => each::<Float64Type>(slot, input, pairs, targets, |old, new, first| {
            let order = new.total_cmp(&f64::from_le_bytes(get(old, 0)));
            if first
                || if smaller {
                    order.is_lt()
                } else {
                    order.is_gt()
                }
            {
                put(old, 0, new.to_le_bytes());
            }
        }),
        Number::Decimal => {
            each::<Decimal128Type>(slot, input, pairs, targets, |old, new, first| {
                let kept = i128::from_le_bytes(get(old, 0));
                if first || if smaller { new < kept } else { new > kept } {
                    put(old, 0, new.to_le_bytes());
                }
            })
        }
    }
}

/// Adds one value to count, mean and squared differences (Welford 1962, the case of one value in
/// Chan, Golub and LeVeque).
fn moments(state: &mut [u8], value: f64, _: bool) {
    let read = |at: usize| f64::from_le_bytes(get(state, at));
    let (count, mean, squares) = (read(0) + 1.0, read(8), read(16));
    let delta = value - mean;
    put(state, 0, count.to_le_bytes());
    put(state, 8, (mean + delta / count).to_le_bytes());
    let squares = squares + delta * delta * (count - 1.0) / count;
    put(state, 16, squares.to_le_bytes());
}

/// Calls `merge` with the state, the value and whether it is the group's first, for every row
/// that counts.
fn each<T: ArrowPrimitiveType>(
    slot: &StateSlot,
    input: &StateInput,
    pairs: &[(u32, u32)],
    targets: &mut Targets<'_>,
    merge: impl Fn(&mut [u8], T::Native, bool),
) {
    let array = input
        .values
        .as_ref()
        .expect("only a count of rows has no argument");
    let array: &PrimitiveArray<T> = array.as_primitive();
    let values = array.values();
    let all = input.sees_all();
    for (row, group) in pairs {
        let row = *row as usize;
        if all || input.sees(row) {
            let target = targets.row(*group);
            let first = match slot.flag {
                Some(flag) => std::mem::replace(&mut target[flag], 1) == 0,
                None => false,
            };
            merge(&mut target[slot.offset..], values[row], first);
        }
    }
}
