//! The server's RSA key, under which clients without TLS send a password.

use std::sync::{Arc, OnceLock};

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};

use super::primitives::Nonce;

/// The length of what is encrypted under a key of 2048 bits.
pub(crate) const CIPHERTEXT_BYTES: usize = 256;
const LINE_CHARACTERS: usize = 64;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Made when the first client asks for it: that takes a good part of a second.
#[derive(Default)]
pub(crate) struct RsaKey {
    pair: OnceLock<Option<Arc<Pair>>>,
}

/// A key and its public half as clients read it.
pub(crate) struct Pair {
    private: OaepPrivateDecryptingKey,
    pub(crate) public_pem: Vec<u8>,
}

impl RsaKey {
    /// The key; `None` if the system cannot make one. Blocks.
    pub(crate) fn pair(&self) -> Option<Arc<Pair>> {
        self.pair
            .get_or_init(|| Pair::generate().map(Arc::new))
            .clone()
    }
}

impl Pair {
    fn generate() -> Option<Pair> {
        let private = PrivateDecryptingKey::generate(KeySize::Rsa2048).ok()?;
        let der: PublicKeyX509Der<'_> = private.public_key().as_der().ok()?;
        let public_pem = pem(der.as_ref());
        Some(Pair {
            private: OaepPrivateDecryptingKey::new(private).ok()?,
            public_pem,
        })
    }

    /// The password that a client encrypted: behind it a zero, and all of it XORed with the nonce.
    pub(crate) fn decrypt(&self, encrypted: &[u8], nonce: &Nonce) -> Option<Vec<u8>> {
        let mut plain = vec![0; self.private.min_output_size()];
        let masked = self
            .private
            .decrypt(&OAEP_SHA1_MGF1SHA1, encrypted, &mut plain, None)
            .ok()?;
        let mask = nonce.iter().cycle();
        let password: Vec<u8> = masked
            .iter()
            .zip(mask)
            .map(|(byte, mask)| byte ^ mask)
            .collect();
        password.strip_suffix(&[0]).map(<[u8]>::to_vec)
    }
}

fn pem(der: &[u8]) -> Vec<u8> {
    let mut text = b"-----BEGIN PUBLIC KEY-----\n".to_vec();
    for line in base64(der).chunks(LINE_CHARACTERS) {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.extend_from_slice(b"-----END PUBLIC KEY-----\n");
    text
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len().div_ceil(3).saturating_mul(4));
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = ALPHABET.get((bits >> shift & 63) as usize);
            out.push(match at <= group.len() {
                true => digit.copied().unwrap_or(b'='),
                false => b'=',
            });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        assert_eq!(base64(b""), b"");
        assert_eq!(base64(b"f"), b"Zg==");
        assert_eq!(base64(b"fo"), b"Zm8=");
        assert_eq!(base64(b"foobar"), b"Zm9vYmFy");
    }

    #[test]
    fn what_is_no_ciphertext_is_refused() {
        let pair = RsaKey::default().pair().expect("a key");
        assert!(
            pair.public_pem
                .starts_with(b"-----BEGIN PUBLIC KEY-----\nMIIB")
        );
        for bytes in [&b""[..], b"short", &[7; 256], &[255; 257]] {
            assert_eq!(pair.decrypt(bytes, &[1; 20]), None);
        }
    }
}
