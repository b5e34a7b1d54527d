//! How users prove who they are.
//!
//! ```text
//!   mysql_native_password    scramble ----------------------------> compare with SHA1(SHA1(p))
//!   caching_sha2_password    scramble -> in the cache? -> compare with SHA256(SHA256(p))
//!                                        not there, or wrong: the password itself, over TLS, a
//!                                        Unix socket or under RSA -> compare with SHA-crypt(p)
//! ```
//!
//! Passwords are never kept. Secrets are compared in constant time, and a user that does not exist
//! costs what a wrong password costs. Failures slow down those who fail again
//! ([`throttle`]).
//!
//! **Source**: "Authentication Methods", "Native Authentication", "Caching_sha2_password
//! information"; WL#9591.

pub(crate) mod caching_sha2;
pub(crate) mod crypt;
pub(crate) mod native;
pub(crate) mod rsa;
pub(crate) mod throttle;

use std::fmt;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{Algorithm, Context};

pub use crypt::ShaCryptHash;

/// Bytes of the random number that a scramble answers.
pub(crate) const NONCE_BYTES: usize = 20;

/// The random number of one login.
pub(crate) type Nonce = [u8; NONCE_BYTES];

/// A way to prove who one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `mysql_native_password`: every client knows it.
    Native,
    /// `caching_sha2_password`: MySQL's default since 8.0.
    CachingSha2,
}

impl Method {
    /// The plugin's name.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Native => "mysql_native_password",
            Method::CachingSha2 => "caching_sha2_password",
        }
    }

    pub(crate) fn parse(name: &[u8]) -> Option<Method> {
        [Method::Native, Method::CachingSha2]
            .into_iter()
            .find(|method| method.name().as_bytes() == name)
    }
}

/// What a password is compared with: `authentication_string` of a user.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Secret {
    /// No password: only the empty one is right.
    Empty,
    /// No password is right; other ways in may be.
    Locked,
    /// `mysql_native_password`: SHA1(SHA1(password)).
    Native([u8; 20]),
    /// `caching_sha2_password`: a salted hash of many rounds.
    CachingSha2(ShaCryptHash),
}

impl Secret {
    /// Reads an `authentication_string`: empty, `*` and 40 hexadecimal digits, or `$A$005$...`;
    /// `None` if it is none of these.
    pub fn parse(text: &[u8]) -> Option<Secret> {
        if text.is_empty() {
            return Some(Secret::Empty);
        }
        if let Some(digits) = text.strip_prefix(b"*") {
            return native::parse_hash(digits).map(Secret::Native);
        }
        ShaCryptHash::parse(text).map(Secret::CachingSha2)
    }

    /// The secret of a password. `caching_sha2_password` takes milliseconds, on purpose.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn of_password(password: &[u8], method: Method) -> Result<Secret, NoRandomness> {
        if password.is_empty() {
            return Ok(Secret::Empty);
        }
        match method {
            Method::Native => Ok(Secret::Native(native::hash(password))),
            Method::CachingSha2 => ShaCryptHash::of_password(password).map(Secret::CachingSha2),
        }
    }

    /// The `authentication_string`, as bytes: the salt of a `$A$` hash may be any.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Secret::Empty => Vec::new(),
            Secret::Locked => b"*".to_vec(),
            Secret::Native(hash) => native::show_hash(hash),
            Secret::CachingSha2(hash) => hash.as_bytes().to_vec(),
        }
    }

    /// The method that a client must use; `None` if any will do.
    pub(crate) fn method(&self) -> Option<Method> {
        match self {
            Secret::Empty | Secret::Locked => None,
            Secret::Native(_) => Some(Method::Native),
            Secret::CachingSha2(_) => Some(Method::CachingSha2),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Secret::Empty => "Empty",
            Secret::Locked => "Locked",
            Secret::Native(_) => "Native(..)",
            Secret::CachingSha2(_) => "CachingSha2(..)",
        })
    }
}

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
