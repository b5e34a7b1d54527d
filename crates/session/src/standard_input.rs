//! The standard input of the process as a file: `SELECT ... FROM '-'`.
//!
//! It comes once, and a table is read more than once: for the types of its columns, and again each
//! time it is named. So it is kept in the temp space when it is named first, for as long as the
//! engine is there. A thread of its own reads it, since whoever writes may be slow: a statement
//! that is ended meanwhile leaves what has come to the next one.
//!
//! **Cost**: a copy of the bytes; what is beyond the memory is written to disk and read again.

#![deny(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::io::{self, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mayfly_space::Account;
use mayfly_types::MySqlError;
use tokio::sync::{Mutex, mpsc};

use crate::files::cannot_open;
use crate::spooled::{KeptFile, Spool};

/// Names of it.
const NAMES: [&str; 3] = ["-", "/dev/stdin", "/dev/fd/0"];
/// Bytes that are read together, and pieces that wait.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_MAX: usize = 2;

/// Whether a table has begun to take it, of whatever engine: the process has one.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether a path means the standard input of the process, as the name of a table does.
pub fn is_named(path: &str) -> bool {
    NAMES.contains(&path)
}

/// Whether nothing of it is left for those who read it as a file.
pub(crate) fn is_taken() -> bool {
    IS_TAKEN.load(Ordering::Relaxed)
}

/// The standard input of the process.
#[derive(Default)]
pub(crate) struct StandardInput {
    state: Mutex<State>,
}

#[derive(Default)]
enum State {
    /// Nobody has named it.
    #[default]
    Unread,
    /// Some of it has come.
    Coming(mpsc::Receiver<io::Result<Vec<u8>>>, Box<Spool>),
    Kept(Arc<KeptFile>),
    /// It cannot be read, or found no room: what has come is gone.
    Lost,
}

impl StandardInput {
    /// All of it, once it has come to its end.
    ///
    /// # Errors
    /// 1024 if it cannot be read, and those of the temp space.
    pub(crate) async fn kept(&self, account: &Account) -> Result<Arc<KeptFile>, MySqlError> {
        let mut state = self.state.lock().await;
        if matches!(*state, State::Unread) {
            let (sender, pieces) = mpsc::channel(PIECES_MAX);
            let reader = std::thread::Builder::new().name("standard input".to_owned());
            let begun = reader.spawn(move || send(&mut io::stdin(), &sender));
            begun.map_err(|error| failed(&error))?;
            IS_TAKEN.store(true, Ordering::Relaxed);
            *state = State::Coming(pieces, Box::new(Spool::new(account)));
        }
        loop {
            let came = match &mut *state {
                State::Kept(file) => return Ok(Arc::clone(file)),
                State::Coming(pieces, spool) => match pieces.recv().await {
                    Some(Ok(piece)) => spool.push(&piece).map(|()| true),
                    Some(Err(error)) => Err(failed(&error)),
                    None => Ok(false),
                },
                State::Unread | State::Lost => {
                    return Err(failed(&io::Error::other("what has come of it is lost")));
                }
            };
            if matches!(came, Ok(true)) {
                continue;
            }
            let ended = std::mem::replace(&mut *state, State::Lost);
            came?;
            if let State::Coming(_, spool) = ended {
                *state = State::Kept(Arc::new(spool.keep()?));
            }
        }
    }
}

/// Sends a file piece by piece, until it ends or nobody wants more.
fn send(file: &mut impl Read, sender: &mpsc::Sender<io::Result<Vec<u8>>>) {
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let piece = match file.read(&mut piece) {
            Ok(0) => return,
            Ok(read) => {
                piece.truncate(read);
                Ok(piece)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_last = piece.is_err();
        if sender.blocking_send(piece).is_err() || is_last {
            return;
        }
    }
}

fn failed(error: &io::Error) -> MySqlError {
    cannot_open("-", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives some bytes, then fails.
    struct Failing(Option<&'static [u8]>);

    impl Read for Failing {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let Some(mut bytes) = self.0.take() else {
                return Err(io::Error::other("broken"));
            };
            bytes.read(out)
        }
    }

    #[test]
    fn pieces_come_until_the_end_or_an_error() {
        let pieces = |file: &mut dyn Read| {
            let (sender, mut pieces) = mpsc::channel(8);
            let mut file = file;
            send(&mut file, &sender);
            drop(sender);
            let mut came = Vec::new();
            while let Ok(piece) = pieces.try_recv() {
                came.push(piece.map(|piece| piece.len()).map_err(|error| error.kind()));
            }
            came
        };
        let bytes = vec![b'x'; PIECE_BYTES + 1];
        assert_eq!(pieces(&mut bytes.as_slice()), [Ok(PIECE_BYTES), Ok(1)]);
        assert!(pieces(&mut io::empty()).is_empty());
        let mut failing = Failing(Some(b"abc"));
        assert_eq!(pieces(&mut failing), [Ok(3), Err(ErrorKind::Other)]);
        assert!(is_named("-") && is_named("/dev/stdin") && !is_named("./-"));
    }
}
