//! A bit for each of many small integers.
//!
//! **Cost.** Without a branch, and the tests of 64 integers before their bits: a compiler makes
//! vectors of a comparison, but not of bits that are set one by one.

use arrow_buffer::{BooleanBuffer, Buffer};

const WORD_BITS: usize = u64::BITS as usize;

/// A bit for each of some integers: whether it passes a test.
pub(super) fn row_bits<T: Copy>(integers: &[T], test: impl Fn(T) -> bool) -> BooleanBuffer {
    let (all, rest) = integers.as_chunks::<WORD_BITS>();
    let mut words = Vec::with_capacity(integers.len().div_ceil(WORD_BITS));
    words.extend(all.iter().map(|integers| word(integers, &test)));
    if !rest.is_empty() {
        words.push(word(rest, &test));
    }
    BooleanBuffer::new(Buffer::from_vec(words), 0, integers.len())
}

/// The bits of up to 64 integers.
#[inline]
fn word<T: Copy>(integers: &[T], test: impl Fn(T) -> bool) -> u64 {
    let mut passes = [0; WORD_BITS];
    for (passes, integer) in passes.iter_mut().zip(integers) {
        *passes = u8::from(test(*integer));
    }
    gathered(&passes)
}

/// The bits of 64 bytes that are zero or one.
#[inline]
fn gathered(bytes: &[u8; WORD_BITS]) -> u64 {
    /// What moves the bit of byte `n` to place `56 + n`: two to the power of `56 - 7 * n`, for each
    /// of eight. No two bits meet, so that nothing is carried.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let eights = bytes.as_chunks().0.iter();
    eights.rev().fold(0, |word, eight| {
        let bits = u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56;
        word << 8 | bits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_integer_has_its_bit() {
        for count in [0, 1, 7, 63, 64, 65, 128, 200] {
            let integers: Vec<u16> = (0..count).collect();
            for step in [1, 2, 3, 8, 9, 63, 64, 65] {
                let test = |integer: u16| integer % step == step - 1;
                let expected: BooleanBuffer = integers.iter().map(|n| test(*n)).collect();
                assert_eq!(row_bits(&integers, test), expected, "{count}, {step}");
            }
        }
    }
}
