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
    /// Takes the pieces of the file, or why there are none. It is closed when the statement wants
    /// no more; dropping it is the end of the file.
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
        })
    }
}

/// A file on its way.
pub(crate) struct ClientFile {
    pieces: mpsc::Receiver<Result<Vec<u8>, MySqlError>>,
    piece: Vec<u8>,
    /// How much of the piece was read.
    read: usize,
}

impl Read for ClientFile {
    /// Waits for the client; other tasks of the thread go on meanwhile.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.piece.len() {
            let next = tokio::task::block_in_place(|| self.pieces.blocking_recv());
            match next {
                None => return Ok(0),
                Some(piece) => (self.piece, self.read) = (piece.map_err(io::Error::other)?, 0),
            }
        }
        let left = &self.piece[self.read..];
        let len = left.len().min(buffer.len());
        buffer[..len].copy_from_slice(&left[..len]);
        self.read += len;
        Ok(len)
    }
}
