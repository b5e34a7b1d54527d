//! What can go wrong in the space. Every error leaves the accounting exact.

use std::path::PathBuf;

/// An error of the temp space.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Pins and reservations use the budget up. Retry after unpinning or shrinking something.
    #[error(
        "memory budget exceeded: asked for {asked_bytes} bytes, {available_bytes} of {limit_bytes} available"
    )]
    BudgetExceeded {
        /// What was asked for.
        asked_bytes: u64,
        /// What could have been given.
        available_bytes: u64,
        /// The budget.
        limit_bytes: u64,
    },
    /// The declared minimum does not fit the budget beside the minima already admitted. Raise the
    /// budget or run fewer statements at once.
    #[error("at least {needed_bytes} bytes of memory are needed, the limit is {limit_bytes}")]
    MinimumNotMet {
        /// The minimum that was declared.
        needed_bytes: u64,
        /// The budget.
        limit_bytes: u64,
    },
    /// A disk quota is used up. Raise it or free temporary data of the same account.
    #[error("disk quota of {account} reached: {used_bytes} of {limit_bytes} bytes used")]
    QuotaReached {
        /// The name of the account whose quota it is.
        account: String,
        /// What the account uses.
        used_bytes: u64,
        /// The quota.
        limit_bytes: u64,
    },
    /// No temp directory has room for a further extent. Retry after space was freed.
    #[error("temp directory {} is full, {needed_bytes} bytes needed", dir.display())]
    DiskFull {
        /// The directory that was asked last.
        dir: PathBuf,
        /// What was needed.
        needed_bytes: u64,
    },
    /// The operating system refused an operation on the temp file.
    #[error("{operation} in temp directory {} failed: {source}", dir.display())]
    Io {
        /// The operation: "open", "read", "write" or "extend".
        operation: &'static str,
        /// The temp directory.
        dir: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// A page came back from the disk with other bytes than were written. The data is lost; no
    /// retry helps.
    #[error("temp data lost: {len_bytes} bytes at {offset} in {} do not match their checksum", dir.display())]
    Corrupt {
        /// The temp directory.
        dir: PathBuf,
        /// Where in the temp file.
        offset: u64,
        /// The stored length.
        len_bytes: u64,
    },
    /// An option has a value that cannot work.
    #[error("option {option}: {reason}")]
    InvalidOption {
        /// The name of the option.
        option: &'static str,
        /// Why the value cannot work.
        reason: String,
    },
}

/// A result of the temp space.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The error of an operation on so many bytes of a temp file.
    pub(crate) fn of_file(
        operation: &'static str,
        dir: PathBuf,
        needed_bytes: u64,
        source: std::io::Error,
    ) -> Error {
        use std::io::ErrorKind::{QuotaExceeded, StorageFull};
        match source.kind() {
            StorageFull | QuotaExceeded => Error::DiskFull { dir, needed_bytes },
            _ => Error::Io {
                operation,
                dir,
                source,
            },
        }
    }

    /// The same error once more, for each thread that waited for what failed.
    pub(crate) fn duplicate(&self) -> Error {
        use Error::*;
        match self {
            BudgetExceeded {
                asked_bytes,
                available_bytes,
                limit_bytes,
            } => BudgetExceeded {
                asked_bytes: *asked_bytes,
                available_bytes: *available_bytes,
                limit_bytes: *limit_bytes,
            },
            MinimumNotMet {
                needed_bytes,
                limit_bytes,
            } => MinimumNotMet {
                needed_bytes: *needed_bytes,
                limit_bytes: *limit_bytes,
            },
            QuotaReached {
                account,
                used_bytes,
                limit_bytes,
            } => QuotaReached {
                account: account.clone(),
                used_bytes: *used_bytes,
                limit_bytes: *limit_bytes,
            },
            DiskFull { dir, needed_bytes } => DiskFull {
                dir: dir.clone(),
                needed_bytes: *needed_bytes,
            },
            Io {
                operation,
                dir,
                source,
            } => {
                let source = match source.raw_os_error() {
                    Some(code) => std::io::Error::from_raw_os_error(code),
                    None => std::io::Error::new(source.kind(), source.to_string()),
                };
                Io {
                    operation,
                    dir: dir.clone(),
                    source,
                }
            }
            Corrupt {
                dir,
                offset,
                len_bytes,
            } => Corrupt {
                dir: dir.clone(),
                offset: *offset,
                len_bytes: *len_bytes,
            },
            InvalidOption { option, reason } => InvalidOption {
                option,
                reason: reason.clone(),
            },
        }
    }
}
