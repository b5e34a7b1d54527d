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
mod primitives;
pub(crate) mod rsa;
pub(crate) mod throttle;

pub use primitives::NoRandomness;
pub(crate) use primitives::{NONCE_BYTES, Nonce, random_without_zeros};
use std::fmt;

pub use crypt::ShaCryptHash;

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
