//! The hash of `caching_sha2_password`: SHA-crypt over SHA-256 with many rounds.
//!
//! `$A$005$` (thousands of rounds, in hexadecimal), 20 bytes of salt, 43 characters of digest.
//!
//! **Source**: U. Drepper, "Unix crypt using SHA-256 and SHA-512"; MySQL's
//! `mysys/crypt_genhash_impl.cc` and `sql/auth/sha2_password.cc`.

use aws_lc_rs::digest::{Context, SHA256};

use super::primitives::{NoRandomness, hash as digest, is_equal, random_without_zeros};

const PREFIX: &[u8] = b"$A$";
const SALT_BYTES: usize = 20;
const DIGEST_CHARACTERS: usize = 43;
/// Rounds are counted in thousands.
const ROUNDS_UNIT: u32 = 1000;
/// `caching_sha2_password_digest_rounds` by default: 5000.
const DEFAULT_THOUSANDS: u32 = 5;
/// Passwords beyond this are refused: the work is in proportion to the length.
pub(crate) const PASSWORD_BYTES_MAX: usize = 256;
const ALPHABET: &[u8; 64] = b"./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The order in which the digest's bytes are written, three at a time.
const ORDER: [[usize; 3]; 10] = [
    [0, 10, 20],
    [21, 1, 11],
    [12, 22, 2],
    [3, 13, 23],
    [24, 4, 14],
    [15, 25, 5],
    [6, 16, 26],
    [27, 7, 17],
    [18, 28, 8],
    [9, 19, 29],
];

/// A stored hash.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ShaCryptHash {
    text: Vec<u8>,
    rounds: u32,
}

impl ShaCryptHash {
    /// Reads `$A$005$...`.
    pub(super) fn parse(text: &[u8]) -> Option<ShaCryptHash> {
        let rest = text.strip_prefix(PREFIX)?;
        let (thousands, rest) = rest.split_at_checked(3)?;
        let rest = rest.strip_prefix(b"$")?;
        let thousands = u32::from_str_radix(std::str::from_utf8(thousands).ok()?, 16).ok()?;
        let is_whole = rest.len() == SALT_BYTES + DIGEST_CHARACTERS && thousands > 0;
        is_whole.then(|| ShaCryptHash {
            text: text.to_vec(),
            rounds: thousands.saturating_mul(ROUNDS_UNIT),
        })
    }

    /// The hash of a password under a new salt.
    pub(super) fn of_password(password: &[u8]) -> Result<ShaCryptHash, NoRandomness> {
        let salt: [u8; SALT_BYTES] = random_without_zeros()?;
        Ok(ShaCryptHash::with_salt(password, &salt))
    }

    fn with_salt(password: &[u8], salt: &[u8]) -> ShaCryptHash {
        let rounds = DEFAULT_THOUSANDS * ROUNDS_UNIT;
        let mut text = format!("$A${DEFAULT_THOUSANDS:03X}$").into_bytes();
        text.extend_from_slice(salt);
        text.extend_from_slice(&crypt(password, salt, rounds));
        ShaCryptHash { text, rounds }
    }

    /// A hash that no password has, for users that do not exist.
    pub(crate) fn decoy() -> ShaCryptHash {
        let mut text = format!("$A${DEFAULT_THOUSANDS:03X}$").into_bytes();
        text.extend_from_slice(&[b'.'; SALT_BYTES + DIGEST_CHARACTERS]);
        ShaCryptHash {
            text,
            rounds: DEFAULT_THOUSANDS * ROUNDS_UNIT,
        }
    }

    /// Whether this is the hash of that password. Takes milliseconds.
    pub(crate) fn verify(&self, password: &[u8]) -> bool {
        let Some((rest, stored)) = self.text.split_last_chunk::<DIGEST_CHARACTERS>() else {
            return false;
        };
        let Some((_, salt)) = rest.split_last_chunk::<SALT_BYTES>() else {
            return false;
        };
        let short = password.get(..PASSWORD_BYTES_MAX).unwrap_or(password);
        let is_right = is_equal(&crypt(short, salt, self.rounds), stored);
        is_right && short.len() == password.len()
    }

    /// The `authentication_string`.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text
    }
}

impl std::fmt::Debug for ShaCryptHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ShaCryptHash(..)")
    }
}

/// The 43 characters of a password's digest.
fn crypt(password: &[u8], salt: &[u8], rounds: u32) -> Vec<u8> {
    let both: [u8; 32] = digest(&SHA256, &[password, salt, password]);
    let mut context = Context::new(&SHA256);
    context.update(password);
    context.update(salt);
    update_repeated(&mut context, &both, password.len());
    let mut bits = password.len();
    while bits > 0 {
        context.update(if bits & 1 == 1 { &both } else { password });
        bits >>= 1;
    }
    let mut state = bytes_of(context);

    let mut context = Context::new(&SHA256);
    for _ in 0..password.len() {
        context.update(password);
    }
    let password = repeated(&bytes_of(context), password.len());

    let mut context = Context::new(&SHA256);
    let [first, ..] = state;
    for _ in 0..16 + usize::from(first) {
        context.update(salt);
    }
    let salt = repeated(&bytes_of(context), salt.len());

    for round in 0..rounds {
        let mut context = Context::new(&SHA256);
        let is_odd = round % 2 == 1;
        context.update(if is_odd { &password } else { &state });
        if round % 3 != 0 {
            context.update(&salt);
        }
        if round % 7 != 0 {
            context.update(&password);
        }
        context.update(if is_odd { &state } else { &password });
        state = bytes_of(context);
    }
    characters(&state)
}

fn bytes_of(context: Context) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (byte, from) in bytes.iter_mut().zip(context.finish().as_ref()) {
        *byte = *from;
    }
    bytes
}

fn repeated(block: &[u8; 32], len: usize) -> Vec<u8> {
    block.iter().copied().cycle().take(len).collect()
}

fn update_repeated(context: &mut Context, block: &[u8; 32], len: usize) {
    context.update(&repeated(block, len));
}

/// Crypt's base 64, lowest six bits first.
fn characters(state: &[u8; 32]) -> Vec<u8> {
    let byte = |at: usize| u32::from(state.get(at).copied().unwrap_or(0));
    let mut out = Vec::with_capacity(DIGEST_CHARACTERS);
    let mut put = |mut value: u32, count: usize| {
        for _ in 0..count {
            out.push(ALPHABET.get((value & 63) as usize).copied().unwrap_or(b'.'));
            value >>= 6;
        }
    };
    for [high, middle, low] in ORDER {
        put(byte(high) << 16 | byte(middle) << 8 | byte(low), 4);
    }
    put(byte(31) << 8 | byte(30), 3);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_specification() {
        // From the test vectors of the specification.
        assert_eq!(
            crypt(b"Hello world!", b"saltstring", 5000),
            b"5B8vYYiY.CVt1RlTTf8KbXBH3hsxY/GNooZaBBGWEc5"
        );
        assert_eq!(
            crypt(b"Hello world!", b"saltstringsaltst", 10_000),
            b"3xv.VbSHBb41AL9AvLeujZkZRBAwqFMz2.opqey6IcA"
        );
    }

    #[test]
    fn only_the_right_password_is_right() {
        let hash = ShaCryptHash::of_password(b"secret").expect("random numbers");
        assert_eq!(hash.as_bytes().len(), 70);
        let read = ShaCryptHash::parse(hash.as_bytes()).expect("its own text");
        assert!(read.verify(b"secret"));
        assert!(!read.verify(b"Secret"));
        assert!(!read.verify(b""));
        assert!(!read.verify(&[b's'; 1000]));
        assert!(!ShaCryptHash::decoy().verify(b""));
    }

    #[test]
    fn broken_texts_are_refused() {
        for text in [
            &b"$A$005$short"[..],
            b"$A$000$",
            b"$5$salt$",
            b"",
            b"$A$xyz$",
        ] {
            assert_eq!(ShaCryptHash::parse(text), None);
        }
    }
}
