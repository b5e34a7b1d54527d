//! Hashes, random numbers and comparison in constant time.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Algorithm, Context};

/// Bytes of the random number that a scramble answers.
pub(crate) const NONCE_BYTES: usize = 20;

/// The random number of one login.
pub(crate) type Nonce = [u8; NONCE_BYTES];

/// The system gave no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the system gave no random numbers")]
pub struct NoRandomness;

/// Random bytes without zeros: clients read a nonce as a text that a zero ends.
pub(crate) fn random_without_zeros<const N: usize>() -> Result<[u8; N], NoRandomness> {
    let mut bytes = [0; N];
    aws_lc_rs::rand::fill(&mut bytes).map_err(|_| NoRandomness)?;
    // Seven bits, as MySQL: 1 to 127. A '$' would end the salt of a SHA-crypt hash.
    Ok(bytes.map(|byte| match byte & 0x7F {
        0 | b'$' => b'#',
        other => other,
    }))
}

/// The hash of several pieces, one after the other.
pub(crate) fn hash<const N: usize>(algorithm: &'static Algorithm, pieces: &[&[u8]]) -> [u8; N] {
    let mut context = Context::new(algorithm);
    for piece in pieces {
        context.update(piece);
    }
    let digest = context.finish();
    let mut bytes = [0; N];
    for (byte, from) in bytes.iter_mut().zip(digest.as_ref()) {
        *byte = *from;
    }
    bytes
}

pub(crate) fn xor<const N: usize>(left: &[u8; N], right: &[u8; N]) -> [u8; N] {
    let mut out = *left;
    for (byte, other) in out.iter_mut().zip(right) {
        *byte ^= other;
    }
    out
}

pub(crate) fn is_equal(left: &[u8], right: &[u8]) -> bool {
    verify_slices_are_equal(left, right).is_ok()
}
