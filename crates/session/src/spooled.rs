//! A file that is read to its end before anybody looks into it.
//!
//! A client may send the file of LOAD DATA LOCAL as slowly as it likes. Whoever has the right to
//! change a shared table must not wait for that, so the bytes go to the temp space first.
//!
//! **Cost**: a copy of the bytes; a file beyond the memory is written to disk and read again.

use std::io::{self, Read};
use std::sync::Arc;

use arrow::array::{Array, AsArray, BinaryViewArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use mayfly_space::{Account, NextUse};
use mayfly_table::{BatchRun, Drain};
use mayfly_types::MySqlError;

use crate::errors;

/// Bytes that are read at a time: one row of the run.
const PIECE_BYTES: usize = 32 << 10;

/// Takes a file in.
pub(crate) struct Spool<R> {
    file: R,
    run: BatchRun,
    buffer: Vec<u8>,
}

impl<R: Read> Spool<R> {
    /// Nothing was read yet.
    pub(crate) fn new(file: R, account: &Account) -> Self {
        let field = Field::new("bytes", DataType::BinaryView, false);
        let schema = Arc::new(Schema::new(vec![field]));
        Self {
            file,
            run: BatchRun::new(account, schema, NextUse::At(0)),
            buffer: vec![0; PIECE_BYTES],
        }
    }

    /// Reads some bytes; whether there may be more.
    ///
    /// # Errors
    /// Those of the file, and those of the temp space, which carry a [`MySqlError`].
    pub(crate) fn read_some(&mut self) -> io::Result<bool> {
        let mut len = 0;
        let mut is_more = true;
        while is_more && len < self.buffer.len() {
            let read = self.file.read(&mut self.buffer[len..])?;
            len += read;
            is_more = read > 0;
        }
        if len > 0 {
            let piece = BinaryViewArray::from_iter_values([&self.buffer[..len]]);
            let schema = Arc::clone(self.run.schema());
            let batch = RecordBatch::try_new(schema, vec![Arc::new(piece)]);
            let batch = batch.map_err(|error| told(errors::from_plan(&error.into())))?;
            self.run.append(&batch).map_err(of_space)?;
        }
        Ok(is_more)
    }

    /// The whole file; the one that it was read from is closed.
    ///
    /// # Errors
    /// Those of the temp space.
    pub(crate) fn finish(self) -> io::Result<SpooledFile> {
        Ok(SpooledFile {
            pieces: self.run.drain().map_err(of_space)?,
            piece: BinaryViewArray::from_iter_values([b""]),
            row: 0,
            read: 0,
        })
    }
}

/// A file in the temp space, which is given back while it is read.
pub(crate) struct SpooledFile {
    pieces: Drain,
    piece: BinaryViewArray,
    /// How far the piece was read: its row, and the bytes of that.
    row: usize,
    read: usize,
}

impl Read for SpooledFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.piece.value(self.row).len() {
            self.read = 0;
            self.row += 1;
            if self.row == self.piece.len() {
                let Some(batch) = self.pieces.next() else {
                    // The end is read again and again.
                    self.row -= 1;
                    self.read = self.piece.value(self.row).len();
                    return Ok(0);
                };
                let batch = batch.map_err(of_space).inspect_err(|_| self.row -= 1)?;
                self.piece = batch.column(0).as_binary_view().clone();
                self.row = 0;
            }
        }
        let left = &self.piece.value(self.row)[self.read..];
        let len = left.len().min(buffer.len());
        buffer[..len].copy_from_slice(&left[..len]);
        self.read += len;
        Ok(len)
    }
}

fn of_space(error: mayfly_table::Error) -> io::Error {
    told(errors::from_table(&error))
}

fn told(error: MySqlError) -> io::Error {
    io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use mayfly_space::{AccountOptions, Space, SpaceOptions};

    use super::*;

    fn spooled(file: impl Read) -> Vec<u8> {
        let space = Space::open(SpaceOptions {
            memory_bytes: 4 << 20,
            ..SpaceOptions::default()
        });
        let space = space.unwrap();
        let account = space.root().child("file", AccountOptions::default());
        let mut spool = Spool::new(file, &account);
        while spool.read_some().unwrap() {}
        let mut bytes = Vec::new();
        let mut file = spool.finish().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(file.read(&mut [0; 8]).unwrap(), 0);
        bytes
    }

    #[test]
    fn what_goes_in_comes_out() {
        for len in [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 6 << 20] {
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            assert!(spooled(bytes.as_slice()) == bytes, "{len}");
        }
    }

    #[test]
    fn an_error_of_the_file_is_told() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("gone"))
            }
        }
        let space = Space::open(SpaceOptions::default()).unwrap();
        let mut spool = Spool::new(Broken, space.root());
        assert_eq!(spool.read_some().unwrap_err().to_string(), "gone");
    }
}
