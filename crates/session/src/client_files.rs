//! Files that a client sends, for LOAD DATA LOCAL.
//!
//! A statement asks for a file by its name and reads it piece by piece, while whoever speaks with
//! the client fetches the pieces. **Never** opens a file of this machine.
//!
//! A statement that waits for a piece keeps no thread: any number of slow clients leave the workers
//! to others.
//!
//! **Cost**: a piece waits while another is read and one is on its way. They are outside of the
//! memory budget, so whoever fetches them keeps them short.

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use mayfly_types::{ErrorCode, MySqlError};
use tokio::sync::mpsc;

/// Pieces that wait for the statement.
const PIECES_AHEAD: usize = 1;

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
        asked.map_err(|_| interrupted())?;
        Ok(ClientFile { pieces })
    }
}

/// A file on its way.
pub(crate) struct ClientFile {
    pieces: mpsc::Receiver<Result<Vec<u8>, MySqlError>>,
}

impl ClientFile {
    /// The next piece, an empty one at the end.
    ///
    /// # Errors
    /// 1317 when who spoke with the client is gone: the rows so far are not the file.
    pub(crate) async fn next_piece(&mut self) -> Result<Vec<u8>, MySqlError> {
        self.pieces.recv().await.ok_or_else(interrupted)?
    }
}

fn interrupted() -> MySqlError {
    MySqlError::new(ErrorCode::QueryInterrupted, &[])
}
