//! An order-independent digest of a result.
//!
//! Owns: the sum of the hashes of all rows, each hashed as its tab-separated text.
//! Two systems gave the same rows, in whatever order, when row count and sum agree.

use std::io::{BufRead, BufReader, Read};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// Row count and sum of row hashes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Digest {
    pub(crate) rows: u64,
    pub(crate) sum: u64,
}

impl Digest {
    /// Reads rows to the end, one line each, after `skip` header lines.
    pub(crate) fn of(source: impl Read, skip: usize) -> std::io::Result<Self> {
        let mut reader = BufReader::with_capacity(1 << 20, source);
        let mut digest = Self::default();
        let mut line = Vec::new();
        let mut skip = skip;
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                return Ok(digest);
            }
            while line
                .last()
                .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
            {
                line.pop();
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            digest.rows += 1;
            digest.sum = digest.sum.wrapping_add(xxh3_64(&line));
        }
    }
}
