//! LOAD DATA LOCAL INFILE: the client sends a file in packets, an empty one at its end.
//!
//! Each read has the time of `net_read_timeout`, however many a packet takes.
//!
//! **Source**: "LOCAL INFILE Request".

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use bytes::Bytes;

use crate::bytes_out::put_u8;
use crate::error::{Failure, local_infile_disabled};
use crate::receiver::lock;
use crate::reply::Reply;

/// First byte of the packet that asks for a file.
const REQUEST: u8 = 0xFB;

/// A file on its way from the client.
///
/// The pieces are as long as the client makes them, 16 KiB to 16 MiB with most. A file that is
/// dropped before its end is read to its end before the next packet goes out.
pub struct LocalFile<'a> {
    reply: &'a mut Reply,
}

impl<'a> LocalFile<'a> {
    pub(crate) async fn request(
        reply: &'a mut Reply,
        name: &[u8],
    ) -> Result<LocalFile<'a>, Failure> {
        if !reply.allows_local_infile() {
            return Err(local_infile_disabled().into());
        }
        reply.sender.packet(|out| {
            put_u8(out, REQUEST);
            out.extend_from_slice(name);
        });
        reply.sender.flush().await?;
        reply.take_turn_to_read();
        reply.file_is_open = true;
        lock(&reply.receiver).claimed = true;
        Ok(LocalFile { reply })
    }

    /// The next piece of the file, `None` at its end.
    ///
    /// # Errors
    /// When the client goes away, or breaks the protocol.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        self.reply.next_of_file().await
    }
}

impl Reply {
    /// Asks the client for a file: LOAD DATA LOCAL INFILE. The answer must follow, after the file
    /// or without having read all of it.
    ///
    /// # Errors
    /// 3948 when the client does not allow it.
    pub async fn local_infile(&mut self, name: &[u8]) -> Result<LocalFile<'_>, Failure> {
        LocalFile::request(self, name).await
    }

    async fn next_of_file(&mut self) -> Result<Option<Bytes>, Failure> {
        if !self.file_is_open {
            return Ok(None);
        }
        let piece = self.next_packet().await?;
        if !piece.is_empty() {
            return Ok(Some(piece));
        }
        self.file_is_open = false;
        lock(&self.receiver).claimed = false;
        self.take_turn_to_write();
        Ok(None)
    }

    /// Reads what is left of a file that nobody wants any more.
    pub(crate) async fn finish_file(&mut self) -> Result<(), Failure> {
        loop {
            match self.next_of_file().await {
                Ok(None) => return Ok(()),
                // A piece that there was no memory for is not wanted either.
                Ok(Some(_)) | Err(Failure::Statement(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
    }
}
