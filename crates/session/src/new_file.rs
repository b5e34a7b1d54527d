//! A file that a statement makes.
//!
//! Owns its life: it must not exist before, and it is gone where the statement fails.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use mayfly_types::{ErrorCode, MySqlError};

use crate::errors;
use crate::file_access::{CreatedFile, FileAccess};

/// A file that a statement writes. It goes unless it is kept.
pub(crate) struct NewFile {
    path: String,
    created: CreatedFile,
    is_kept: bool,
}

impl NewFile {
    /// Makes the file.
    ///
    /// # Errors
    /// 1086 for a name that is taken, 1 where it cannot be made or its name is that of a directory,
    /// 1290 where it may not be named.
    pub(crate) fn create(access: &FileAccess, path: &str) -> Result<NewFile, MySqlError> {
        access.check(path)?;
        if path.ends_with('/') || path.ends_with("/.") {
            if Path::new(path).exists() {
                return Err(MySqlError::new(ErrorCode::FileExists, &[&path]));
            }
            let error = io::Error::from(rustix::io::Errno::ISDIR);
            return Err(failed(ErrorCode::FileCreate, path, &error));
        }
        match access.create(path) {
            Ok(created) => Ok(NewFile {
                path: path.to_owned(),
                created,
                is_kept: false,
            }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(MySqlError::new(ErrorCode::FileExists, &[&path]))
            }
            Err(error) => Err(failed(ErrorCode::FileCreate, path, &error)),
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The same file for who keeps what it writes into.
    pub(crate) fn writer(&self) -> Result<File, MySqlError> {
        let shared = self.created.file.try_clone();
        shared.map_err(|error| cannot_write(&self.path, &error))
    }

    /// Lets the file stay when the statement ends.
    pub(crate) fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.created.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.created.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_kept {
            // Nothing more can be done about a file that does not go.
            let _ = self.created.remove();
        }
    }
}

/// The error of a file that cannot be written any further.
pub(crate) fn cannot_write(path: &str, error: &io::Error) -> MySqlError {
    failed(ErrorCode::FileWrite, path, error)
}

fn failed(code: ErrorCode, path: &str, error: &io::Error) -> MySqlError {
    if let Some(carried) = errors::carried(error) {
        return carried.clone();
    }
    let number = error.raw_os_error().unwrap_or(0);
    MySqlError::new(code, &[&path, &number, &errors::reason(error)])
}
