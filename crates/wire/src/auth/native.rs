//! `mysql_native_password`: `SHA1(p) XOR SHA1(nonce, SHA1(SHA1(p)))`.

use aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY as SHA1;

use super::primitives::{Nonce, hash as digest, is_equal, xor};

const DIGITS: &[u8; 16] = b"0123456789ABCDEF";

/// What a server keeps of a password.
pub(super) fn hash(password: &[u8]) -> [u8; 20] {
    let once: [u8; 20] = digest(&SHA1, &[password]);
    digest(&SHA1, &[&once])
}

/// Whether a client's answer shows that it knows the password.
pub(crate) fn verify(answer: &[u8], nonce: &Nonce, stored: &[u8; 20]) -> bool {
    let Ok(answer) = <&[u8; 20]>::try_from(answer) else {
        return false;
    };
    let mask: [u8; 20] = digest(&SHA1, &[nonce, stored]);
    let once = xor(answer, &mask);
    let twice: [u8; 20] = digest(&SHA1, &[&once]);
    is_equal(&twice, stored)
}

pub(super) fn parse_hash(digits: &[u8]) -> Option<[u8; 20]> {
    let (pairs, rest) = digits.as_chunks::<2>();
    if !rest.is_empty() || pairs.len() != 20 {
        return None;
    }
    let mut hash = [0; 20];
    for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
        *byte = hexadecimal(*high)? << 4 | hexadecimal(*low)?;
    }
    Some(hash)
}

fn hexadecimal(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

pub(super) fn show_hash(hash: &[u8; 20]) -> Vec<u8> {
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
    let digits = hash
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]);
    std::iter::once(b'*').chain(digits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Secret;

    /// The hash that MariaDB's and MySQL's `PASSWORD('password')` give.
    const OF_PASSWORD: &[u8] = b"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19";

    #[test]
    fn hashes_are_those_of_mysql() {
        let hash = hash(b"password");
        assert_eq!(show_hash(&hash), OF_PASSWORD);
        assert_eq!(Secret::parse(OF_PASSWORD), Some(Secret::Native(hash)));
        assert_eq!(Secret::parse(b"*2470"), None);
        assert_eq!(
            Secret::parse(b"*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E1x"),
            None
        );
    }

    #[test]
    fn only_the_right_answer_is_right() {
        let nonce = *b"abcdefghijklmnopqrst";
        let stored = hash(b"secret");
        let once: [u8; 20] = digest(&SHA1, &[b"secret"]);
        let answer = xor(&once, &digest(&SHA1, &[&nonce, &stored]));
        assert!(verify(&answer, &nonce, &stored));
        assert!(!verify(&answer, b"other nonce, 20 long", &stored));
        assert!(!verify(&answer, &nonce, &hash(b"Secret")));
        assert!(!verify(b"", &nonce, &stored));
        assert!(!verify(&answer[..19], &nonce, &stored));
    }
}
