//! States of groups that exist already, brought up to date straight from columns.
//!
//! The quick way for keys that repeat: no row is written for an input row whose group is at hand.
//! One pass over the rows a state; the kind is matched once. A state is loaded and stored once for
//! all rows of a run, so that where groups are few an addition does not wait for the store of the
//! one before. Must agree with `encode_states` followed by `merge_state`, which the property tests
//! of the group set compare it with.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::i256;

use super::group_runs::GroupRuns;
use super::row_table::Targets;
use super::state::{Number, StateInput, StateKind, StateSlot, add_wide, get, put};

/// Merges input rows into their groups.
pub(crate) fn update_states(
    slots: &[StateSlot],
    inputs: &[StateInput],
    runs: &GroupRuns<'_>,
    targets: &mut Targets<'_>,
) {
    for (slot, input) in slots.iter().zip(inputs) {
        let mut update = Update {
            slot,
            input,
            runs,
            targets,
        };
        match slot.kind {
            StateKind::Count => update.count(),
            StateKind::Sum(number) => update.sum(number),
            StateKind::Min(number) => update.extreme(number, true),
            StateKind::Max(number) => update.extreme(number, false),
            StateKind::BitAnd => update.unsigned(|old, new, _| old & new),
            StateKind::BitOr => update.unsigned(|old, new, _| old | new),
            StateKind::BitXor => update.unsigned(|old, new, _| old ^ new),
            StateKind::Moments => update.moments(),
        }
    }
}

/// One state, brought up to date with one batch.
struct Update<'a, 't> {
    slot: &'a StateSlot,
    input: &'a StateInput,
    runs: &'a GroupRuns<'a>,
    targets: &'a mut Targets<'t>,
}

impl Update<'_, '_> {
    fn count(&mut self) {
        let all = self.input.sees_all();
        self.runs.for_each(|group, rows| {
            let seen = match all {
                true => rows.len(),
                false => rows
                    .iter()
                    .filter(|r| self.input.sees(**r as usize))
                    .count(),
            };
            let target = self.targets.row(group);
            let count = i64::from_le_bytes(get(target, self.slot.offset)) + seen as i64;
            put(target, self.slot.offset, count.to_le_bytes());
        });
    }

    fn sum(&mut self, number: Number) {
        match number {
            Number::Int => self.fold::<Int64Type, _, 8>(
                i64::from_le_bytes,
                |sum, value, _| sum.wrapping_add(value),
                i64::to_le_bytes,
            ),
            Number::UInt => self.unsigned(|sum, value, _| sum.wrapping_add(value)),
            Number::Float => self.fold::<Float64Type, _, 8>(
                f64::from_le_bytes,
                |sum, value, _| sum + value,
                f64::to_le_bytes,
            ),
            Number::Decimal => self.fold::<Decimal128Type, _, 16>(
                i128::from_le_bytes,
                |sum, value, _| sum.wrapping_add(value),
                i128::to_le_bytes,
            ),
            Number::Wide if self.input.is_narrow() => self.fold::<Decimal128Type, _, 32>(
                WideSum::read,
                |sum, value, _| sum.with_narrow(value),
                WideSum::write,
            ),
            Number::Wide => self.fold::<Decimal256Type, _, 32>(
                WideSum::read,
                |sum, value, _| sum.with(value),
                WideSum::write,
            ),
        }
    }

    fn extreme(&mut self, number: Number, smaller: bool) {
        fn better<T: PartialOrd>(smaller: bool) -> impl Fn(T, T, bool) -> T {
            move |kept, new, first| {
                let wins = if smaller { new < kept } else { new > kept };
                if first || wins { new } else { kept }
            }
        }
        match number {
            Number::Int => {
                let step = better(smaller);
                self.fold::<Int64Type, _, 8>(i64::from_le_bytes, step, i64::to_le_bytes);
            }
            Number::UInt => self.unsigned(better(smaller)),
            Number::Float => {
                let step = move |kept: f64, new: f64, first| {
                    let order = new.total_cmp(&kept);
                    let wins = if smaller {
                        order.is_lt()
                    } else {
                        order.is_gt()
                    };
                    if first || wins { new } else { kept }
                };
                self.fold::<Float64Type, _, 8>(f64::from_le_bytes, step, f64::to_le_bytes);
            }
            Number::Decimal => {
                let step = better(smaller);
                self.fold::<Decimal128Type, _, 16>(i128::from_le_bytes, step, i128::to_le_bytes);
            }
            Number::Wide => {
                let step = better(smaller);
                self.fold::<Decimal256Type, _, 32>(i256::from_le_bytes, step, i256::to_le_bytes);
            }
        }
    }

    fn unsigned(&mut self, step: impl Fn(u64, u64, bool) -> u64) {
        self.fold::<UInt64Type, _, 8>(u64::from_le_bytes, step, u64::to_le_bytes);
    }

    /// Adds values to count, mean and squared differences (Welford 1962, the case of one value in
    /// Chan, Golub and LeVeque).
    fn moments(&mut self) {
        let read = |bytes: [u8; 24]| [0, 8, 16].map(|at| f64::from_le_bytes(get(&bytes, at)));
        let step = |[count, mean, squares]: [f64; 3], value: f64, _| {
            let count = count + 1.0;
            let delta = value - mean;
            let squares = squares + delta * delta * (count - 1.0) / count;
            [count, mean + delta / count, squares]
        };
        let write = |moments: [f64; 3]| {
            let mut bytes = [0; 24];
            for (at, part) in [0, 8, 16].into_iter().zip(moments) {
                put(&mut bytes, at, part.to_le_bytes());
            }
            bytes
        };
        self.fold::<Float64Type, _, 24>(read, step, write);
    }

    /// Takes every run of rows through `step`, which is told the state so far, a value that counts
    /// and whether it is the group's first.
    #[inline]
    fn fold<T: ArrowPrimitiveType, S, const W: usize>(
        &mut self,
        read: impl Fn([u8; W]) -> S,
        step: impl Fn(S, T::Native, bool) -> S,
        write: impl Fn(S) -> [u8; W],
    ) {
        let Update { slot, input, .. } = *self;
        let array = input
            .values
            .as_ref()
            .expect("only a count of rows has no argument");
        let array: &PrimitiveArray<T> = array.as_primitive();
        let values = array.values();
        let all = input.sees_all();
        self.runs.for_each(|group, rows| {
            let target = self.targets.row(group);
            // A group without a flag has a value from its first row on.
            let mut seen = slot.flag.is_none_or(|flag| target[flag] != 0);
            let mut state = read(get(target, slot.offset));
            for row in rows {
                let row = *row as usize;
                if all || input.sees(row) {
                    state = step(state, values[row], !seen);
                    seen = true;
                }
            }
            put(target, slot.offset, write(state));
            if let Some(flag) = slot.flag {
                target[flag] = u8::from(seen);
            }
        });
    }
}

/// A sum of 256 bits with what a run adds to it: values of 128 bits go to two words of their own,
/// which is an addition and a carry a row and cannot overflow.
struct WideSum {
    sum: i256,
    low: u128,
    high: i64,
}

impl WideSum {
    fn read(bytes: [u8; 32]) -> WideSum {
        WideSum {
            sum: i256::from_le_bytes(bytes),
            low: 0,
            high: 0,
        }
    }

    #[inline]
    fn with_narrow(self, value: i128) -> WideSum {
        let (low, carry) = self.low.overflowing_add(value.cast_unsigned());
        WideSum {
            low,
            high: self.high + (value >> 127) as i64 + i64::from(carry),
            ..self
        }
    }

    #[inline]
    fn with(self, value: i256) -> WideSum {
        let (low, high) = value.to_parts();
        let low = low.cast_signed();
        if high == low >> 127 {
            return self.with_narrow(low);
        }
        WideSum {
            sum: add_wide(self.sum, value),
            ..self
        }
    }

    fn write(self) -> [u8; 32] {
        let added = i256::from_parts(self.low, i128::from(self.high));
        add_wide(self.sum, added).to_le_bytes()
    }
}
