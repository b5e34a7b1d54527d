//! Files that a client sends, for LOAD DATA LOCAL.
//!
//! A statement asks for a file by its name and reads it piece by piece, while whoever speaks with
//! the client fetches the pieces. **Never** opens a file of this machine.
//!
//! A statement that waits for a piece keeps a thread, so only a few of an engine read at a time;
//! the others wait for their turn without one.
//!
//! **Cost**: two pieces are under way at a time; they are as long as the client makes them, which
//! is outside of the memory budget.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mayfly_types::{ErrorCode, MySqlError};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

/// Pieces that wait for the statement.
const PIECES_AHEAD: usize = 2;
/// Statements of an engine that read files of clients at a time: fewer than it has threads for.
pub(crate) const READERS_MAX: usize = 2;
/// How long a statement waits before it looks whether it was stopped.
const PATIENCE: Duration = Duration::from_millis(100);

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
    pub(crate) async fn ask(
        &self,
        name: &str,
        readers: &Arc<Semaphore>,
        cancelled: Arc<AtomicBool>,
    ) -> Result<ClientFile, MySqlError> {
        let turn = Arc::clone(readers).acquire_owned().await;
        let turn = turn.map_err(|_| MySqlError::new(ErrorCode::QueryInterrupted, &[]))?;
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
            cancelled,
            _turn: turn,
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
    cancelled: Arc<AtomicBool>,
    _turn: OwnedSemaphorePermit,
}

impl ClientFile {
    fn next_piece(&mut self) -> Result<Vec<u8>, MySqlError> {
        let interrupted = || MySqlError::new(ErrorCode::QueryInterrupted, &[]);
        let threads = Handle::current();
        loop {
            let next = timeout(PATIENCE, self.pieces.recv());
            match tokio::task::block_in_place(|| threads.block_on(next)) {
                Ok(Some(piece)) => return piece,
                // Who spoke with the client is gone: the rows so far are not the file.
                Ok(None) => return Err(interrupted()),
                Err(_) if self.cancelled.load(Ordering::SeqCst) => return Err(interrupted()),
                Err(_) => {}
            }
        }
    }
}

impl Read for ClientFile {
    /// Waits for the client; other tasks of the thread go on meanwhile.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.piece.len() && !self.has_ended {
            self.piece = self.next_piece().map_err(io::Error::other)?;
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
