//! Aggregate states that live inside a group row.
//!
//! A state is 8 to 32 bytes behind the row header. A row that comes from input carries the state of
//! that one input row, so merging two rows is the only operation there is: the same loop serves
//! input, partial results and pages read back from disk. Loops run state by state over many rows,
//! so the kind is matched once a batch. Variance follows Chan, Golub and LeVeque (1979).

use std::sync::Arc;

use arrow_array::builder::{
    Decimal128Builder, Decimal256Builder, Float64Builder, Int64Builder, PrimitiveBuilder,
    UInt64Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Decimal256Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use arrow_buffer::i256;
use arrow_schema::DataType;

/// The number a state computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// `i64`, from an `Int64` array.
    Int,
    /// `u64`, from a `UInt64` array.
    UInt,
    /// `f64`, from a `Float64` array.
    Float,
    /// `i128`, from a `Decimal128` array.
    Decimal,
    /// `i256`, from a `Decimal256` array; a sum also from a `Decimal128` array, whose values may
    /// add up to more than 38 digits.
    Wide,
}

impl Number {
    fn bytes(self) -> usize {
        match self {
            Number::Int | Number::UInt | Number::Float => 8,
            Number::Decimal => 16,
            Number::Wide => 32,
        }
    }
}

/// What a wide sum is once it has left 256 bits, and stays: more digits than a decimal can have.
const WIDE_OVERFLOW: i256 = i256::MAX;

/// The sum of two wide numbers, which never wraps.
pub(crate) fn add_wide(a: i256, b: i256) -> i256 {
    if a == WIDE_OVERFLOW || b == WIDE_OVERFLOW {
        return WIDE_OVERFLOW;
    }
    a.checked_add(b).unwrap_or(WIDE_OVERFLOW)
}

/// What a state computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKind {
    /// Number of rows whose argument is not NULL (every row where there is no argument).
    Count,
    /// Sum; integers wrap as DataFusion's own do (the typing layer widens them before). A wide sum
    /// that leaves 256 bits becomes a number of more than 76 digits.
    Sum(Number),
    /// Smallest value.
    Min(Number),
    /// Largest value.
    Max(Number),
    /// Bitwise AND of `UInt64`.
    BitAnd,
    /// Bitwise OR of `UInt64`.
    BitOr,
    /// Bitwise XOR of `UInt64`.
    BitXor,
    /// Count, mean and sum of squared differences of `Float64`: variance and its kin.
    Moments,
}

impl StateKind {
    fn bytes(self) -> usize {
        match self {
            StateKind::Count | StateKind::BitAnd | StateKind::BitOr | StateKind::BitXor => 8,
            StateKind::Sum(n) | StateKind::Min(n) | StateKind::Max(n) => n.bytes(),
            StateKind::Moments => 24,
        }
    }
}

/// A state with its place in the row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StateSlot {
    pub(crate) kind: StateKind,
    /// Where the value starts, from the start of the row.
    pub(crate) offset: usize,
    /// Where the byte is that says "a value was seen"; `None` where every row brings one.
    pub(crate) flag: Option<usize>,
}

impl StateSlot {
    /// Slots for kinds with "may see no value", and where what follows them starts.
    pub(crate) fn lay_out(kinds: &[(StateKind, bool)], start: usize) -> (Vec<StateSlot>, usize) {
        let needs_flag =
            |kind: StateKind, nullable: bool| nullable && !matches!(kind, StateKind::Count);
        let flags = kinds.iter().filter(|(k, n)| needs_flag(*k, *n)).count();
        let mut flag = start;
        let mut offset = start + flags;
        let mut slots = Vec::with_capacity(kinds.len());
        for &(kind, nullable) in kinds {
            let slot_flag = needs_flag(kind, nullable).then(|| {
                flag += 1;
                flag - 1
            });
            slots.push(StateSlot {
                kind,
                offset,
                flag: slot_flag,
            });
            offset += kind.bytes();
        }
        (slots, offset)
    }
}

/// The argument of one state for one batch.
#[derive(Debug, Clone, Default)]
pub struct StateInput {
    /// Values in the array type of the state's [`Number`] (`UInt64` for bit operations, `Float64`
    /// for moments, any type for a count); `None` only for a count of rows.
    pub values: Option<ArrayRef>,
    /// Rows that count; `None` for all.
    pub filter: Option<BooleanArray>,
}

impl StateInput {
    pub(crate) fn sees(&self, row: usize) -> bool {
        self.values.as_ref().is_none_or(|v| v.is_valid(row))
            && self
                .filter
                .as_ref()
                .is_none_or(|f| f.is_valid(row) && f.value(row))
    }

    pub(crate) fn sees_all(&self) -> bool {
        self.filter.is_none() && self.values.as_ref().is_none_or(|v| v.null_count() == 0)
    }

    /// Whether the values have 128 bits, whatever their sum has.
    pub(crate) fn is_narrow(&self) -> bool {
        let values = self.values.as_ref();
        values.is_some_and(|v| matches!(v.data_type(), DataType::Decimal128(_, _)))
    }
}

pub(crate) fn put<const W: usize>(bytes: &mut [u8], at: usize, value: [u8; W]) {
    bytes[at..at + W].copy_from_slice(&value);
}

pub(crate) fn get<const W: usize>(bytes: &[u8], at: usize) -> [u8; W] {
    bytes[at..at + W].try_into().expect("the slice is W long")
}

/// Writes the state of each single input row into its row of `block` (zeroed before).
pub(crate) fn encode_states(
    slots: &[StateSlot],
    inputs: &[StateInput],
    block: &mut [u8],
    offsets: &[u32],
) {
    for (slot, input) in slots.iter().zip(inputs) {
        if let Some(flag) = slot.flag {
            let all = input.sees_all();
            for (row, at) in offsets.iter().enumerate() {
                block[*at as usize + flag] = u8::from(all || input.sees(row));
            }
        }
        match slot.kind {
            StateKind::Count => {
                let all = input.sees_all();
                for (row, at) in offsets.iter().enumerate() {
                    let one = i64::from(all || input.sees(row));
                    put(block, *at as usize + slot.offset, one.to_le_bytes());
                }
            }
            StateKind::Sum(n) | StateKind::Min(n) | StateKind::Max(n) => match n {
                Number::Int => {
                    encode_values::<Int64Type, 8>(slot, input, block, offsets, |v| v.to_le_bytes())
                }
                Number::UInt => {
                    encode_values::<UInt64Type, 8>(slot, input, block, offsets, |v| v.to_le_bytes())
                }
                Number::Float => {
                    encode_values::<Float64Type, 8>(slot, input, block, offsets, |v| {
                        v.to_le_bytes()
                    })
                }
                Number::Decimal => {
                    encode_values::<Decimal128Type, 16>(slot, input, block, offsets, |v| {
                        v.to_le_bytes()
                    })
                }
                Number::Wide if input.is_narrow() => {
                    encode_values::<Decimal128Type, 32>(slot, input, block, offsets, |v| {
                        i256::from_i128(v).to_le_bytes()
                    })
                }
                Number::Wide => {
                    encode_values::<Decimal256Type, 32>(slot, input, block, offsets, |v| {
                        v.to_le_bytes()
                    })
                }
            },
            StateKind::BitAnd => {
                for at in offsets {
                    put(block, *at as usize + slot.offset, u64::MAX.to_le_bytes());
                }
                encode_values::<UInt64Type, 8>(slot, input, block, offsets, |v| v.to_le_bytes());
            }
            StateKind::BitOr | StateKind::BitXor => {
                encode_values::<UInt64Type, 8>(slot, input, block, offsets, |v| v.to_le_bytes());
            }
            StateKind::Moments => {
                encode_values::<Float64Type, 24>(slot, input, block, offsets, |v| {
                    let mut moments = [0; 24];
                    put(&mut moments, 0, 1f64.to_le_bytes());
                    put(&mut moments, 8, v.to_le_bytes());
                    moments
                });
            }
        }
    }
}

fn encode_values<T: ArrowPrimitiveType, const W: usize>(
    slot: &StateSlot,
    input: &StateInput,
    block: &mut [u8],
    offsets: &[u32],
    bytes_of: impl Fn(T::Native) -> [u8; W],
) {
    let array = input
        .values
        .as_ref()
        .expect("only a count of rows has no argument");
    let array: &PrimitiveArray<T> = array.as_primitive();
    let all = input.sees_all();
    for ((row, at), value) in offsets.iter().enumerate().zip(array.values()) {
        if all || input.sees(row) {
            put(block, *at as usize + slot.offset, bytes_of(*value));
        }
    }
}

/// Merges the states of row `from` (at the head of `source`) into row `into`.
///
/// `pairs` yields the source row and the target row, both starting at their first byte.
pub(crate) fn merge_state(slot: &StateSlot, source: &[u8], target: &mut [u8]) {
    match slot.kind {
        StateKind::Count => merge_sum(slot, source, target, |a, b| {
            i64::from_le_bytes(a)
                .wrapping_add(i64::from_le_bytes(b))
                .to_le_bytes()
        }),
        StateKind::Sum(Number::Int) | StateKind::Sum(Number::UInt) => {
            merge_sum(slot, source, target, |a, b| {
                u64::from_le_bytes(a)
                    .wrapping_add(u64::from_le_bytes(b))
                    .to_le_bytes()
            });
        }
        StateKind::Sum(Number::Float) => merge_sum(slot, source, target, |a, b| {
            (f64::from_le_bytes(a) + f64::from_le_bytes(b)).to_le_bytes()
        }),
        StateKind::Sum(Number::Decimal) => merge_sum(slot, source, target, |a, b| {
            i128::from_le_bytes(a)
                .wrapping_add(i128::from_le_bytes(b))
                .to_le_bytes()
        }),
        StateKind::Sum(Number::Wide) => merge_sum(slot, source, target, |a, b| {
            add_wide(i256::from_le_bytes(a), i256::from_le_bytes(b)).to_le_bytes()
        }),
        StateKind::Min(n) => merge_extreme(slot, n, source, target, true),
        StateKind::Max(n) => merge_extreme(slot, n, source, target, false),
        StateKind::BitAnd => merge_sum(slot, source, target, |a, b| {
            (u64::from_le_bytes(a) & u64::from_le_bytes(b)).to_le_bytes()
        }),
        StateKind::BitOr => merge_sum(slot, source, target, |a, b| {
            (u64::from_le_bytes(a) | u64::from_le_bytes(b)).to_le_bytes()
        }),
        StateKind::BitXor => merge_sum(slot, source, target, |a, b| {
            (u64::from_le_bytes(a) ^ u64::from_le_bytes(b)).to_le_bytes()
        }),
        StateKind::Moments => merge_moments(slot, source, target),
    }
}

/// For states whose unseen value is the neutral one: the operation and the union of the flags.
fn merge_sum<const W: usize>(
    slot: &StateSlot,
    source: &[u8],
    target: &mut [u8],
    add: impl Fn([u8; W], [u8; W]) -> [u8; W],
) {
    let sum = add(get(target, slot.offset), get(source, slot.offset));
    put(target, slot.offset, sum);
    if let Some(flag) = slot.flag {
        target[flag] |= source[flag];
    }
}

fn merge_extreme(
    slot: &StateSlot,
    number: Number,
    source: &[u8],
    target: &mut [u8],
    smaller: bool,
) {
    if let Some(flag) = slot.flag {
        if source[flag] == 0 {
            return;
        }
        if target[flag] == 0 {
            target[flag] = 1;
            let bytes = number.bytes();
            target[slot.offset..slot.offset + bytes]
                .copy_from_slice(&source[slot.offset..slot.offset + bytes]);
            return;
        }
    }
    let (a, b) = (slot.offset, slot.offset);
    match number {
        Number::Int => keep(source, target, a, b, smaller, i64::from_le_bytes, i64::lt),
        Number::UInt => keep(source, target, a, b, smaller, u64::from_le_bytes, u64::lt),
        Number::Float => keep(source, target, a, b, smaller, f64::from_le_bytes, |x, y| {
            x.total_cmp(y).is_lt()
        }),
        Number::Decimal => keep(source, target, a, b, smaller, i128::from_le_bytes, i128::lt),
        Number::Wide => keep(source, target, a, b, smaller, i256::from_le_bytes, i256::lt),
    }
}

fn keep<T, const W: usize>(
    source: &[u8],
    target: &mut [u8],
    from: usize,
    into: usize,
    smaller: bool,
    read: impl Fn([u8; W]) -> T,
    less: impl Fn(&T, &T) -> bool,
) {
    let candidate = get::<W>(source, from);
    let (new, old) = (read(candidate), read(get::<W>(target, into)));
    let wins = if smaller {
        less(&new, &old)
    } else {
        less(&old, &new)
    };
    if wins {
        put(target, into, candidate);
    }
}

fn merge_moments(slot: &StateSlot, source: &[u8], target: &mut [u8]) {
    let read = |bytes: &[u8], at: usize| f64::from_le_bytes(get(bytes, slot.offset + at));
    let (count_b, mean_b, squares_b) = (read(source, 0), read(source, 8), read(source, 16));
    if count_b == 0.0 {
        return;
    }
    let (count_a, mean_a, squares_a) = (read(target, 0), read(target, 8), read(target, 16));
    let count = count_a + count_b;
    let delta = mean_b - mean_a;
    let mean = mean_a + delta * count_b / count;
    let squares = squares_a + squares_b + delta * delta * count_a * count_b / count;
    put(target, slot.offset, count.to_le_bytes());
    put(target, slot.offset + 8, mean.to_le_bytes());
    put(target, slot.offset + 16, squares.to_le_bytes());
    if let Some(flag) = slot.flag {
        target[flag] = 1;
    }
}

/// The values of one state over finished rows: one array, or count, mean and squares for moments.
///
/// Decimals come as `Decimal128(38, 0)` or `Decimal256(76, 0)`: the caller gives them their scale
/// and checks their digits.
pub(crate) fn decode_state(slot: &StateSlot, rows: &[&[u8]]) -> Vec<ArrayRef> {
    let seen = |row: &[u8]| slot.flag.is_none_or(|flag| row[flag] != 0);
    match slot.kind {
        StateKind::Count => {
            let counts = rows
                .iter()
                .map(|row| i64::from_le_bytes(get(row, slot.offset)));
            vec![Arc::new(PrimitiveArray::<Int64Type>::from_iter_values(
                counts,
            ))]
        }
        StateKind::Sum(n) | StateKind::Min(n) | StateKind::Max(n) => vec![match n {
            Number::Int => decode_values(
                Int64Builder::with_capacity(rows.len()),
                slot,
                rows,
                seen,
                i64::from_le_bytes,
            ),
            Number::UInt => decode_values(
                UInt64Builder::with_capacity(rows.len()),
                slot,
                rows,
                seen,
                u64::from_le_bytes,
            ),
            Number::Float => decode_values(
                Float64Builder::with_capacity(rows.len()),
                slot,
                rows,
                seen,
                f64::from_le_bytes,
            ),
            Number::Decimal => decode_values(
                Decimal128Builder::with_capacity(rows.len())
                    .with_data_type(DataType::Decimal128(38, 0)),
                slot,
                rows,
                seen,
                i128::from_le_bytes,
            ),
            Number::Wide => decode_values(
                Decimal256Builder::with_capacity(rows.len())
                    .with_data_type(DataType::Decimal256(76, 0)),
                slot,
                rows,
                seen,
                i256::from_le_bytes,
            ),
        }],
        StateKind::BitAnd | StateKind::BitOr | StateKind::BitXor => {
            let builder = UInt64Builder::with_capacity(rows.len());
            vec![decode_values(builder, slot, rows, seen, u64::from_le_bytes)]
        }
        StateKind::Moments => [0, 8, 16]
            .into_iter()
            .map(|part| {
                let values = rows
                    .iter()
                    .map(|r| f64::from_le_bytes(get(r, slot.offset + part)));
                Arc::new(PrimitiveArray::<Float64Type>::from_iter_values(values)) as ArrayRef
            })
            .collect(),
    }
}

fn decode_values<T: ArrowPrimitiveType, const W: usize>(
    mut builder: PrimitiveBuilder<T>,
    slot: &StateSlot,
    rows: &[&[u8]],
    seen: impl Fn(&[u8]) -> bool,
    read: impl Fn([u8; W]) -> T::Native,
) -> ArrayRef {
    for row in rows {
        if seen(row) {
            builder.append_value(read(get(row, slot.offset)));
        } else {
            builder.append_null();
        }
    }
    Arc::new(builder.finish())
}
