//! Files that a client sends, for LOAD DATA LOCAL.
//!
//! A statement asks for a file by its name and reads it piece by piece, while whoever speaks with
//! the client fetches the pieces. **Never** opens a file of this machine.
//!
//! **Cost**: two pieces are under way at a time; they are as long as the client makes them, which
//! is outside of the memory budget.

use std::io::{self, Read};

use mayfly_types::{ErrorCode, MySqlError};
use tokio::sync::mpsc;

/// Pieces that wait for the statement.
const PIECES_AHEAD: usize = 2;

/// What a session asks its client for.
#[derive(Debug)]
pub struct FileRequest {
    /// The name that stands in the statement.
    pub name: String,
    /// Takes the pieces of the file, an empty one at its end, or why there are none. It is closed
    /// when the statement wants no more; one that is dropped before the end fails the statement.
    pub pieces: mpsc::Sender<Result<Vec<u8>, MySqlError>>,
}

/// The files that a session asks for, one after the other.
pub type FileRequests = mpsc::Receiver<FileRequest>;

/// The other end: a session's way to its client.
#[derive(Clone, Debug)]
pub(crate) struct ClientFiles(mpsc::Sender<FileRequest>);

impl ClientFiles {
    pub(crate) fn open() -> (ClientFiles, FileRequests) {
        let (sender, receiver) = mpsc::channel(1);
        (ClientFiles(sender), receiver)
    }

    /// Asks for a file.
    ///
    /// # Errors
    /// 1317 when nobody speaks with the client any more.
    pub(crate) async fn ask(&self, name: &str) -> Result<ClientFile, MySqlError> {
        let (sender, pieces) = mpsc::channel(PIECES_AHEAD);
        let request = FileRequest {
            name: name.to_owned(),
            pieces: sender,
        };
        let asked = self.0.send(request).await;
        asked.map_err(|_| MySqlError::new(ErrorCode::QueryInterrupted, &[]))?;
        Ok(ClientFile {
            pieces,
            piece: Vec::new(),
            read: 0,
            has_ended: false,
        })
    }
}

/// A file on its way.
pub(crate) struct ClientFile {
    pieces: mpsc::Receiver<Result<Vec<u8>, MySqlError>>,
    piece: Vec<u8>,
    /// How much of the piece was read.
    read: usize,
    has_ended: bool,
}

impl Read for ClientFile {
    /// Waits for the client; other tasks of the thread go on meanwhile.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.piece.len() && !self.has_ended {
            let next = tokio::task::block_in_place(|| self.pieces.blocking_recv());
            // Who spoke with the client is gone: the rows so far are not the file.
            let gone = || Err(MySqlError::new(ErrorCode::QueryInterrupted, &[]));
            self.piece = next.unwrap_or_else(gone).map_err(io::Error::other)?;
            self.read = 0;
            self.has_ended = self.piece.is_empty();
        }
        let left = &self.piece[self.read..];
        let len = left.len().min(buffer.len());
        buffer[..len].copy_from_slice(&left[..len]);
        self.read += len;
        Ok(len)
    }
}
