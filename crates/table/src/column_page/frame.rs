//! Integers as their distances from the least of a page, in as few whole bytes as those take.
//!
//! **Owns** how such numbers are chosen, written, read and changed. **Never** knows where in a page
//! they stand.
//!
//! ```text
//! DECIMAL(15,2)   901.00   24710.35   1300.00        3 values of 16 bytes
//! base 0          90100   2471035   130000           3 distances of 4 bytes
//! ```
//!
//! Whole bytes of a width that the processor has: a value is read without its neighbours, and one
//! that is as near takes the place of another.
//!
//! **Source**: frame of reference (Goldstein, Ramakrishnan, Shaft, "Compressing Relations and
//! Indexes", ICDE 1998), truncated to bytes as in Data Blocks (Lang et al., SIGMOD 2016).
//!
//! **Cost**: `docs/decisions/0033-narrow-numbers.md`.

use std::ops::RangeInclusive;

use arrow_buffer::{ArrowNativeType, BooleanBuffer, Buffer, NullBuffer};
use arrow_schema::DataType;

use super::row_bits::row_bits;

/// The bytes that a distance can have.
const WIDTHS: [usize; 4] = [1, 2, 4, 8];
const BASE_BYTES: usize = size_of::<u64>();

/// Which integers the bytes of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Signed,
    Unsigned,
}

impl Sign {
    /// `None` where a column has no integers of at most 16 bytes.
    pub(super) fn of(data_type: &DataType) -> Option<Sign> {
        match data_type {
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
                Some(Sign::Unsigned)
            }
            DataType::Int8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Date32
            | DataType::Date64
            | DataType::Time32(_)
            | DataType::Time64(_)
            | DataType::Timestamp(_, _)
            | DataType::Duration(_)
            | DataType::Decimal32(_, _)
            | DataType::Decimal64(_, _)
            | DataType::Decimal128(_, _) => Some(Sign::Signed),
            _ => None,
        }
    }

    /// The integer of some bytes.
    fn number(self, bytes: &[u8]) -> i128 {
        let is_negative = self == Sign::Signed && bytes.last().is_some_and(|last| *last >= 0x80);
        let mut all = [if is_negative { 0xff } else { 0 }; 16];
        all[..bytes.len()].copy_from_slice(bytes);
        i128::from_le_bytes(all)
    }
}

/// The least and the greatest of some integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    least: i128,
    greatest: i128,
}

impl Span {
    /// That of no integers.
    pub(super) const EMPTY: Span = Span {
        least: i128::MAX,
        greatest: i128::MIN,
    };

    /// That of the values that are not NULL, of `width` bytes each.
    pub(super) fn of(values: &[u8], width: usize, sign: Sign, nulls: Option<&NullBuffer>) -> Span {
        match (width, sign) {
            (1, Sign::Signed) => span(values, nulls, i8::from_le_bytes),
            (1, Sign::Unsigned) => span(values, nulls, u8::from_le_bytes),
            (2, Sign::Signed) => span(values, nulls, i16::from_le_bytes),
            (2, Sign::Unsigned) => span(values, nulls, u16::from_le_bytes),
            (4, Sign::Signed) => span(values, nulls, i32::from_le_bytes),
            (4, Sign::Unsigned) => span(values, nulls, u32::from_le_bytes),
            (8, Sign::Signed) => span(values, nulls, i64::from_le_bytes),
            (8, Sign::Unsigned) => span(values, nulls, u64::from_le_bytes),
            _ => span(values, nulls, i128::from_le_bytes),
        }
    }

    pub(super) fn plus(self, other: Span) -> Span {
        Span {
            least: self.least.min(other.least),
            greatest: self.greatest.max(other.greatest),
        }
    }
}

fn span<const WIDTH: usize, T: Copy + Ord + Into<i128>>(
    values: &[u8],
    nulls: Option<&NullBuffer>,
    number: impl Fn([u8; WIDTH]) -> T,
) -> Span {
    let values: &[[u8; WIDTH]] = values.as_chunks().0;
    let extremes = |(least, greatest): (T, T), value: T| (least.min(value), greatest.max(value));
    let both = |value: T| (value, value);
    let found = match nulls.filter(|nulls| nulls.null_count() > 0) {
        None => {
            let mut numbers = values.iter().map(|value| number(*value));
            numbers
                .next()
                .map(|first| numbers.fold(both(first), extremes))
        }
        Some(nulls) => {
            let mut numbers = nulls.valid_indices().map(|row| number(values[row]));
            numbers
                .next()
                .map(|first| numbers.fold(both(first), extremes))
        }
    };
    found.map_or(Span::EMPTY, |(least, greatest)| Span {
        least: least.into(),
        greatest: greatest.into(),
    })
}

/// How the integers of a column stand in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// What distances are added to. Integers of at most 8 bytes are their lower bytes, whatever
    /// their sign.
    pub(super) base: i64,
    /// The bytes of a distance.
    pub(super) width: usize,
    /// The bytes of an integer.
    plain: usize,
    sign: Sign,
}

impl Frame {
    /// The narrowest for integers of `plain` bytes; `None` where it would not be narrower than
    /// those. Distances are from 0 where that takes no more bytes: what is a small number now is a
    /// small number after most updates.
    pub(super) fn of(span: Span, plain: usize, sign: Sign) -> Option<Frame> {
        if span == Span::EMPTY {
            return Frame::checked(0, 1, plain, sign);
        }
        let Span { least, greatest } = span;
        if plain > BASE_BYTES && (i64::try_from(least).is_err() || i64::try_from(greatest).is_err())
        {
            return None;
        }
        let bytes_of = |distance: i128| {
            let mut widths = WIDTHS.into_iter();
            widths.find(|width| distance >> (8 * width) == 0)
        };
        let width = bytes_of(greatest.checked_sub(least)?)?;
        let is_from_zero = least >= 0 && bytes_of(greatest) == Some(width);
        let base = if is_from_zero { 0 } else { least as i64 };
        Frame::checked(base, width, plain, sign)
    }

    /// A frame for integers of `plain` bytes; `None` where there is none of that width.
    pub(super) fn checked(base: i64, width: usize, plain: usize, sign: Sign) -> Option<Frame> {
        let is_narrower = WIDTHS.contains(&width) && width < plain;
        is_narrower.then_some(Frame {
            base,
            width,
            plain,
            sign,
        })
    }

    /// Writes integers, which lie in the span that the frame was made for. What stands where NULL
    /// is becomes anything.
    pub(super) fn write(self, values: &[u8], out: &mut [u8]) {
        match (self.plain, self.width) {
            (2, 1) => narrow::<2, 1>(self.base, values, out),
            (4, 1) => narrow::<4, 1>(self.base, values, out),
            (4, 2) => narrow::<4, 2>(self.base, values, out),
            (8, 1) => narrow::<8, 1>(self.base, values, out),
            (8, 2) => narrow::<8, 2>(self.base, values, out),
            (8, 4) => narrow::<8, 4>(self.base, values, out),
            (16, 1) => narrow::<16, 1>(self.base, values, out),
            (16, 2) => narrow::<16, 2>(self.base, values, out),
            (16, 4) => narrow::<16, 4>(self.base, values, out),
            (16, 8) => narrow::<16, 8>(self.base, values, out),
            (plain, width) => unreachable!("no frame has {width} bytes for {plain}"),
        }
    }

    /// The integers whose distances these are.
    pub(super) fn read(self, distances: &[u8]) -> Buffer {
        let all = self.widened(distances, &All);
        all.expect("each distance is there")
    }

    /// Some of the integers, in the order of their slots; `None` where there is no such slot.
    pub(super) fn read_slots(self, distances: &[u8], slots: &[u32]) -> Option<Buffer> {
        self.widened(distances, &Slots(slots))
    }

    fn widened(self, distances: &[u8], picked: &impl Picked) -> Option<Buffer> {
        match (self.plain, self.width) {
            (2, 1) => picked.widened::<1, u16>(self.base, distances),
            (4, 1) => picked.widened::<1, u32>(self.base, distances),
            (4, 2) => picked.widened::<2, u32>(self.base, distances),
            (8, 1) => picked.widened::<1, u64>(self.base, distances),
            (8, 2) => picked.widened::<2, u64>(self.base, distances),
            (8, 4) => picked.widened::<4, u64>(self.base, distances),
            (16, 1) => picked.widened::<1, i128>(self.base, distances),
            (16, 2) => picked.widened::<2, i128>(self.base, distances),
            (16, 4) => picked.widened::<4, i128>(self.base, distances),
            (16, 8) => picked.widened::<8, i128>(self.base, distances),
            (plain, width) => unreachable!("no frame has {width} bytes for {plain}"),
        }
    }

    /// The 16 bytes of the integer in a slot, of which those that its type has count.
    ///
    /// # Panics
    /// If there is no such slot.
    pub(super) fn value(self, distances: &[u8], slot: usize) -> [u8; 16] {
        let distance = low_bytes(&distances[slot * self.width..(slot + 1) * self.width]);
        i128::at(self.base, u64::from_le_bytes(distance)).to_le_bytes()
    }

    /// The distance of an integer, of which `width` bytes count; `None` if it is too far.
    pub(super) fn distance(self, value: &[u8]) -> Option<[u8; BASE_BYTES]> {
        let number = self.sign.number(value);
        let is_kept = value.len() <= BASE_BYTES || i64::try_from(number).is_ok();
        let distance = number.checked_sub(self.least())?;
        let is_near = distance >> (8 * self.width) == 0;
        (is_kept && is_near).then(|| (distance as u64).to_le_bytes())
    }

    /// What the base is as an integer.
    fn least(self) -> i128 {
        match self.sign {
            Sign::Signed => self.base.into(),
            Sign::Unsigned => (self.base as u64).into(),
        }
    }

    /// A bit for each integer that passes a test, which is told its lower 64 bits.
    pub(super) fn passing(self, distances: &[u8], test: impl Fn(i64) -> bool) -> BooleanBuffer {
        macro_rules! passing {
            ($integer:ty) => {
                row_bits(distances.as_chunks().0, |distance| {
                    let distance = <$integer>::from_le_bytes(distance);
                    test(self.base.wrapping_add_unsigned(distance.into()))
                })
            };
        }
        match self.width {
            1 => passing!(u8),
            2 => passing!(u16),
            4 => passing!(u32),
            _ => passing!(u64),
        }
    }

    /// A bit for each integer that lies in a range.
    pub(super) fn within(self, distances: &[u8], range: &RangeInclusive<i128>) -> BooleanBuffer {
        let rows = distances.len() / self.width;
        let farthest = u64::MAX >> (64 - 8 * self.width);
        let distance_of = |integer: &i128| integer.saturating_sub(self.least());
        let (first, last) = (distance_of(range.start()), distance_of(range.end()));
        let (first, last) = (first.max(0), last.min(farthest.into()));
        if first > last {
            return BooleanBuffer::new_unset(rows);
        }
        let (first, last) = (first as u64, last as u64);
        if (first, last) == (0, farthest) {
            return BooleanBuffer::new_set(rows);
        }
        // One comparison tells both: what is below the first goes round to what is far above it.
        macro_rules! within {
            ($integer:ty) => {{
                let (first, reach) = (first as $integer, (last - first) as $integer);
                row_bits(distances.as_chunks().0, |distance| {
                    <$integer>::from_le_bytes(distance).wrapping_sub(first) <= reach
                })
            }};
        }
        match self.width {
            1 => within!(u8),
            2 => within!(u16),
            4 => within!(u32),
            _ => within!(u64),
        }
    }
}

/// The lower bytes of an integer, as many as a base has.
fn low_bytes(value: &[u8]) -> [u8; BASE_BYTES] {
    let mut low = [0; BASE_BYTES];
    let count = value.len().min(BASE_BYTES);
    low[..count].copy_from_slice(&value[..count]);
    low
}

fn narrow<const PLAIN: usize, const WIDTH: usize>(base: i64, values: &[u8], out: &mut [u8]) {
    let values: &[[u8; PLAIN]] = values.as_chunks().0;
    let out: &mut [[u8; WIDTH]] = out.as_chunks_mut().0;
    for (value, out) in values.iter().zip(out) {
        let distance = u64::from_le_bytes(low_bytes(value)).wrapping_sub(base as u64);
        out.copy_from_slice(&distance.to_le_bytes()[..WIDTH]);
    }
}

/// An integer as it is read.
trait Plain: ArrowNativeType {
    fn at(base: i64, distance: u64) -> Self;
}

macro_rules! plain {
    ($($type:ty),+) => {
        $(impl Plain for $type {
            #[inline]
            fn at(base: i64, distance: u64) -> Self {
                // The lower bytes, whatever the sign.
                (base as $type).wrapping_add(distance as $type)
            }
        })+
    };
}

plain!(u16, u32, u64);

impl Plain for i128 {
    #[inline]
    fn at(base: i64, distance: u64) -> Self {
        // Both ends of the span are of 64 bits, so this is all that there is to add.
        i128::from(base.wrapping_add_unsigned(distance))
    }
}

/// Which of the integers of a page are read.
trait Picked {
    fn widened<const WIDTH: usize, P: Plain>(&self, base: i64, distances: &[u8]) -> Option<Buffer>;
}

struct All;

struct Slots<'a>(&'a [u32]);

impl Picked for All {
    fn widened<const WIDTH: usize, P: Plain>(&self, base: i64, distances: &[u8]) -> Option<Buffer> {
        let distances: &[[u8; WIDTH]] = distances.as_chunks().0;
        let values = distances.iter().map(|bytes| value(base, bytes));
        Some(Buffer::from_vec(values.collect::<Vec<P>>()))
    }
}

impl Picked for Slots<'_> {
    fn widened<const WIDTH: usize, P: Plain>(&self, base: i64, distances: &[u8]) -> Option<Buffer> {
        let distances: &[[u8; WIDTH]] = distances.as_chunks().0;
        let mut values: Vec<P> = Vec::with_capacity(self.0.len());
        for slot in self.0 {
            values.push(value(base, distances.get(*slot as usize)?));
        }
        Some(Buffer::from_vec(values))
    }
}

#[inline]
fn value<const WIDTH: usize, P: Plain>(base: i64, distance: &[u8; WIDTH]) -> P {
    P::at(base, u64::from_le_bytes(low_bytes(distance)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A width, and integers of it that are more or less near to one another.
    fn integers() -> impl Strategy<Value = (usize, Vec<i128>)> {
        let width = proptest::sample::select(vec![2_usize, 4, 8, 16]);
        (width, any::<i64>(), 0..64_u32, 0..64_u32).prop_flat_map(|(width, base, shift, spread)| {
            let unused = 128 - 8 * width as u32;
            let near = move |distance| i128::from(base >> shift) + distance;
            let kept = move |value: i128| value << unused >> unused;
            let values = (0..1_i128 << spread).prop_map(near).prop_map(kept);
            (Just(width), proptest::collection::vec(values, 1..140))
        })
    }

    fn bytes_of(values: &[i128], width: usize) -> Vec<u8> {
        let bytes = values.iter();
        bytes
            .flat_map(|value| value.to_le_bytes().into_iter().take(width))
            .collect()
    }

    fn check(values: &[i128], width: usize, sign: Sign) {
        let plain = bytes_of(values, width);
        let span = Span::of(&plain, width, sign, None);
        let Some(frame) = Frame::of(span, width, sign) else {
            return;
        };
        assert!(frame.width < width);
        let mut distances = vec![0; values.len() * frame.width];
        frame.write(&plain, &mut distances);
        assert_eq!(frame.read(&distances).as_slice(), plain);
        let slots: Vec<u32> = (0..values.len() as u32).rev().collect();
        let picked = frame.read_slots(&distances, &slots).unwrap();
        for (slot, value) in plain.chunks(width).enumerate() {
            assert_eq!(&frame.value(&distances, slot)[..width], value);
            let place = (values.len() - 1 - slot) * width;
            assert_eq!(&picked.as_slice()[place..place + width], value);
            let distance = frame.distance(value).unwrap();
            let stored = &distances[slot * frame.width..(slot + 1) * frame.width];
            assert_eq!(&distance[..frame.width], stored);
        }
    }

    proptest! {
        #[test]
        fn integers_are_read_as_they_were_written(
            (width, values) in integers(),
        ) {
            check(&values, width, Sign::Signed);
            if width < 16 {
                check(&values, width, Sign::Unsigned);
            }
        }

        #[test]
        fn an_integer_that_is_too_far_has_no_distance(
            base in any::<i64>(), width in 0..4_usize, value in any::<i128>(), shift in 1..120_u32,
        ) {
            let value = value >> shift;
            let frame = Frame::checked(base, WIDTHS[width], 16, Sign::Signed).unwrap();
            let found = frame.distance(&value.to_le_bytes());
            if let Some(distance) = found {
                let read = frame.value(&distance[..frame.width], 0);
                prop_assert_eq!(i128::from_le_bytes(read), value);
            }
            let distance = value - i128::from(base);
            let is_within = (0..1 << (8 * frame.width)).contains(&distance);
            prop_assert_eq!(found.is_some(), is_within && i64::try_from(value).is_ok());
        }

        #[test]
        fn integers_within_a_range_are_found(
            (width, values) in integers(), ends in [any::<i64>(); 2], shift in 0..64_u32,
            signs in any::<bool>(),
        ) {
            let sign = if signs && width < 16 { Sign::Unsigned } else { Sign::Signed };
            let plain = bytes_of(&values, width);
            let Some(frame) = Frame::of(Span::of(&plain, width, sign, None), width, sign) else {
                return Ok(());
            };
            let mut distances = vec![0; values.len() * frame.width];
            frame.write(&plain, &mut distances);
            let numbers: Vec<i128> = plain.chunks(width).map(|value| sign.number(value)).collect();
            let end = |end: usize, number: usize| {
                numbers[number % numbers.len()] + i128::from(ends[end] >> shift)
            };
            for range in [end(0, 0)..=end(1, 7), end(0, 3)..=i128::MAX, i128::MIN..=end(1, 5)] {
                let found = frame.within(&distances, &range);
                let expected: Vec<bool> = numbers.iter().map(|n| range.contains(n)).collect();
                prop_assert_eq!(found.iter().collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn integers_pass_a_test_as_they_would_when_they_are_read() {
        let numbers = [-7_i64, 0, 250, 70_000, i64::MAX];
        for count in 1..=numbers.len() {
            let values: Vec<u8> = { numbers[..count].iter() }
                .flat_map(|n| n.to_le_bytes())
                .collect();
            let span = Span::of(&values, 8, Sign::Signed, None);
            let Some(frame) = Frame::of(span, 8, Sign::Signed) else {
                assert_eq!(count, numbers.len());
                continue;
            };
            let mut distances = vec![0; count * frame.width];
            frame.write(&values, &mut distances);
            let bits = frame.passing(&distances, |number| number % 2 == 0);
            let expected = numbers[..count].iter().map(|number| number % 2 == 0);
            assert!(bits.iter().eq(expected), "{count}");
        }
    }

    #[test]
    fn nulls_do_not_count() {
        let values = bytes_of(&[5, i128::from(i32::MIN), 7], 4);
        let nulls = NullBuffer::from(vec![true, false, true]);
        let span = Span::of(&values, 4, Sign::Signed, Some(&nulls));
        let frame = Frame::of(span, 4, Sign::Signed);
        let frame = frame.map(|frame| (frame.base, frame.width));
        assert_eq!(frame, Some((0, 1)));
        let nulls = NullBuffer::new_null(3);
        let span = Span::of(&values, 4, Sign::Signed, Some(&nulls));
        assert_eq!(span, Span::EMPTY);
    }

    #[test]
    fn the_base_is_zero_where_that_takes_no_more() {
        let frame = |values: &[i128]| {
            let span = Span::of(&bytes_of(values, 8), 8, Sign::Signed, None);
            let frame = Frame::of(span, 8, Sign::Signed);
            frame.map(|frame| (frame.base, frame.width))
        };
        assert_eq!(frame(&[3, 200]), Some((0, 1)));
        assert_eq!(frame(&[300, 500]), Some((300, 1)));
        assert_eq!(frame(&[-3, 200]), Some((-3, 1)));
        assert_eq!(frame(&[i128::from(i64::MIN), i128::from(i64::MAX)]), None);
    }
}
