//! `caching_sha2_password`: `SHA256(p) XOR SHA256(SHA256(SHA256(p)), nonce)`, and the cache of
//! `SHA256(SHA256(p))` that lets a server check it without the password.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest::SHA256;

use super::ShaCryptHash;
use super::primitives::{Nonce, hash as digest, is_equal, xor};

/// Hashes that are remembered; beyond it the cache begins anew.
const CACHE_ENTRIES_MAX: usize = 10_000;

/// The length of a client's answer.
pub(crate) const ANSWER_BYTES: usize = 32;

/// What a server keeps of passwords that it has seen, by their stored hash: a changed password is
/// another hash and misses.
#[derive(Default)]
pub(crate) struct Cache {
    entries: Mutex<HashMap<ShaCryptHash, [u8; 32]>>,
}

impl Cache {
    pub(crate) fn get(&self, hash: &ShaCryptHash) -> Option<[u8; 32]> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.get(hash).copied()
    }

    pub(crate) fn put(&self, hash: &ShaCryptHash, password: &[u8]) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= CACHE_ENTRIES_MAX {
            entries.clear();
        }
        entries.insert(hash.clone(), twice(password));
    }
}

fn twice(password: &[u8]) -> [u8; 32] {
    let once: [u8; 32] = digest(&SHA256, &[password]);
    digest(&SHA256, &[&once])
}

/// Whether a client's answer shows that it knows the password behind a cached hash.
pub(crate) fn verify(answer: &[u8], nonce: &Nonce, cached: &[u8; 32]) -> bool {
    let Ok(answer) = <&[u8; ANSWER_BYTES]>::try_from(answer) else {
        return false;
    };
    let mask: [u8; 32] = digest(&SHA256, &[cached, nonce]);
    let once = xor(answer, &mask);
    let twice: [u8; 32] = digest(&SHA256, &[&once]);
    is_equal(&twice, cached)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_answer_is_right() {
        let nonce = *b"abcdefghijklmnopqrst";
        let hash = ShaCryptHash::of_password(b"secret").expect("random numbers");
        let cache = Cache::default();
        assert_eq!(cache.get(&hash), None);
        cache.put(&hash, b"secret");
        let cached = cache.get(&hash).expect("what was put");
        let once: [u8; 32] = digest(&SHA256, &[b"secret"]);
        let answer = xor(&once, &digest(&SHA256, &[&cached, &nonce]));
        assert!(verify(&answer, &nonce, &cached));
        assert!(!verify(&answer, b"other nonce, 20 long", &cached));
        assert!(!verify(&answer[1..], &nonce, &cached));
        assert!(!verify(&[0; 32], &nonce, &cached));
    }
}
