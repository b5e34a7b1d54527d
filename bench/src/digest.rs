//! An order-independent digest of a result.
//!
//! Owns: the sum of the hashes of all rows, each hashed as its tab-separated text.
//! Two systems gave the same rows, in whatever order, when row count and sum agree.

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Row count and sum of row hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest {
    pub(crate) rows: u64,
    pub(crate) sum: u64,
}

impl Digest {
    /// Adds a row.
    pub(crate) fn add(&mut self, row: &[u8]) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(xxh3_64(row));
    }
}
