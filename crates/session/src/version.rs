//! The version that clients are told.

/// The version that `VERSION()` says.
pub const VERSION: &str = concat!("8.4.6-Mayfly-", env!("CARGO_PKG_VERSION"));
