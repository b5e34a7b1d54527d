//! A file that has come to its end before anybody looks into it.
//!
//! A client may send the file of LOAD DATA LOCAL as slowly as it likes. Whoever has the right to
//! change a shared table must not wait for that, so the bytes go to the temp space first.
//!
//! A [`KeptFile`] may be read more than once: it stays until it is dropped.
//!
//! **Cost**: a copy of the bytes; a file beyond the memory is written to disk and read again.

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use mayfly_space::{Account, NextUse};
use mayfly_table::{BatchRun, Drain};
use mayfly_types::MySqlError;

use crate::errors;

/// Bytes of a row of the run, however short or long the pieces are that a client sends.
const PIECE_BYTES: usize = 32 << 10;

/// Takes a file in.
pub(crate) struct Spool {
    run: BatchRun,
    /// Bytes that are less than a piece.
    rest: Vec<u8>,
    /// Bytes of all that has come.
    bytes: u64,
}

impl Spool {
    /// Nothing has come yet.
    pub(crate) fn new(account: &Account) -> Self {
        let field = Field::new("bytes", DataType::BinaryView, false);
        let schema = Arc::new(Schema::new(vec![field]));
        Self {
            run: BatchRun::new(account, schema, NextUse::At(0)),
            rest: Vec::with_capacity(PIECE_BYTES),
            bytes: 0,
        }
    }

    /// Keeps the bytes that come next.
    ///
    /// # Errors
    /// Those of the temp space.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<(), MySqlError> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        while !bytes.is_empty() {
            let room = PIECE_BYTES.saturating_sub(self.rest.len());
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.rest.extend_from_slice(now);
            bytes = later;
            if self.rest.len() == PIECE_BYTES {
                self.append()?;
            }
        }
        Ok(())
    }

    fn append(&mut self) -> Result<(), MySqlError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        let piece = BinaryViewArray::from_iter_values([self.rest.as_slice()]);
        let schema = Arc::clone(self.run.schema());
        let batch = RecordBatch::try_new(schema, vec![Arc::new(piece)]);
        let batch = batch.map_err(|error| errors::from_plan(&error.into()))?;
        self.run
            .append(&batch)
            .map_err(|error| errors::from_table(&error))?;
        self.rest.clear();
        Ok(())
    }

    /// The whole file.
    ///
    /// # Errors
    /// Those of the temp space.
    pub(crate) fn finish(mut self) -> Result<SpooledFile, MySqlError> {
        self.append()?;
        let pieces = self.run.drain();
        Ok(SpooledFile {
            pieces: pieces.map_err(|error| errors::from_table(&error))?,
            batch: None,
            row: 0,
        })
    }

    /// The whole file, to be read more than once.
    ///
    /// # Errors
    /// Those of the temp space.
    pub(crate) fn keep(mut self) -> Result<KeptFile, MySqlError> {
        self.append()?;
        let finished = self.run.finish();
        finished.map_err(|error| errors::from_table(&error))?;
        Ok(KeptFile {
            run: self.run,
            bytes: self.bytes,
        })
    }
}

/// A file in the temp space that may be read more than once.
pub(crate) struct KeptFile {
    run: BatchRun,
    bytes: u64,
}

impl fmt::Debug for KeptFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptFile")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl KeptFile {
    /// Its length.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads it from its beginning.
    pub(crate) fn reader(self: &Arc<Self>) -> KeptReader {
        KeptReader {
            file: Arc::clone(self),
            next: 0,
            batch: None,
            row: 0,
            at: 0,
        }
    }
}

/// Reads a file that is kept; the page that is read stays in memory.
pub(crate) struct KeptReader {
    file: Arc<KeptFile>,
    /// The number of the batch that comes next.
    next: usize,
    batch: Option<BinaryViewArray>,
    /// The piece of the batch that is read, and how far it was.
    row: usize,
    at: usize,
}

impl Read for KeptReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(batch) = &self.batch
                && self.row < batch.len()
            {
                let rest = batch.value(self.row).get(self.at..).unwrap_or_default();
                if !rest.is_empty() {
                    let mut rest = rest;
                    let read = rest.read(out)?;
                    self.at = self.at.saturating_add(read);
                    return Ok(read);
                }
                self.row = self.row.saturating_add(1);
                self.at = 0;
                continue;
            }
            if self.next >= self.file.run.batch_count() {
                return Ok(0);
            }
            let batch = self.file.run.read(self.next, None);
            let batch = batch.map_err(|error| io::Error::other(errors::from_table(&error)))?;
            self.next = self.next.saturating_add(1);
            self.row = 0;
            self.batch = Some(batch.column(0).as_binary_view().clone());
        }
    }
}

/// A file in the temp space, which is given back while it is read.
pub(crate) struct SpooledFile {
    pieces: Drain,
    batch: Option<BinaryViewArray>,
    /// The piece of the batch that comes next.
    row: usize,
}

impl SpooledFile {
    /// The next bytes, none at the end.
    ///
    /// # Errors
    /// Those of the temp space.
    pub(crate) fn next_piece(&mut self) -> Result<&[u8], MySqlError> {
        let is_read = |batch: &BinaryViewArray| self.row >= batch.len();
        if self.batch.as_ref().is_none_or(is_read) {
            self.row = 0;
            self.batch = match self.pieces.next() {
                Some(Ok(batch)) => Some(batch.column(0).as_binary_view().clone()),
                Some(Err(error)) => return Err(errors::from_table(&error)),
                None => None,
            };
        }
        let Some(batch) = &self.batch else {
            return Ok(&[]);
        };
        let piece = batch.value(self.row);
        self.row = self.row.saturating_add(1);
        Ok(piece)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test fails by a panic")]
mod tests {
    use mayfly_space::{AccountOptions, Space, SpaceOptions};

    use super::*;

    fn spooled(bytes: &[u8], sent: usize) -> Vec<u8> {
        let space = Space::open(SpaceOptions {
            memory_bytes: 4 << 20,
            ..SpaceOptions::default()
        });
        let space = space.unwrap();
        let account = space.root().child("file", AccountOptions::default());
        let mut spool = Spool::new(&account);
        for piece in bytes.chunks(sent) {
            spool.push(piece).unwrap();
        }
        let mut file = spool.finish().unwrap();
        let mut back = Vec::new();
        loop {
            let piece = file.next_piece().unwrap();
            if piece.is_empty() {
                break;
            }
            back.extend_from_slice(piece);
        }
        assert!(file.next_piece().unwrap().is_empty());
        back
    }

    #[test]
    fn what_goes_in_comes_out() {
        for len in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 6 << 20] {
            let bytes: Vec<u8> = (0..=250).cycle().take(len).collect();
            for sent in [1000, PIECE_BYTES, 1 << 20] {
                assert!(spooled(&bytes, sent) == bytes, "{len} by {sent}");
            }
        }
        assert_eq!(spooled(&[7; 300], 1), [7; 300][..]);
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let space = Space::open(SpaceOptions {
            memory_bytes: 4 << 20,
            ..SpaceOptions::default()
        });
        let space = space.unwrap();
        let account = space.root().child("file", AccountOptions::default());
        for len in [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 6 << 20] {
            let bytes: Vec<u8> = (0..=250).cycle().take(len).collect();
            let mut spool = Spool::new(&account);
            for piece in bytes.chunks(1000) {
                spool.push(piece).unwrap();
            }
            let file = Arc::new(spool.keep().unwrap());
            assert_eq!(file.bytes(), len as u64);
            for _ in 0..2 {
                let mut back = Vec::new();
                file.reader().read_to_end(&mut back).unwrap();
                assert!(back == bytes, "{len}");
            }
        }
    }
}
