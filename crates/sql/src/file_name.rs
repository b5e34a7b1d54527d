//! The name of a file in the place of a table, and the options that may stand behind it:
//! `'x.csv' (delimiter = ';', header = off)`.
//!
//! In a syntax tree the name is one quoted word that holds both, with a mark between them which no
//! name of a file has. So the options go wherever the name goes, and one file with two kinds of
//! options is two tables. Whatever a user sees is without the mark.

use mayfly_types::{ErrorCode, MySqlError};

pub use crate::file_kind::{FileKind, FileOptions, shown};
use crate::file_kind::{MARK, NUL};
pub(crate) use crate::file_kind::{path_of, with_options};
use crate::parse;

const EINVAL: i32 = 22;

/// A file, or a pattern of files, and how it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct FileName {
    /// Where it is.
    pub path: String,
    /// How it is read.
    pub options: FileOptions,
}

impl FileName {
    /// The file that a quoted word in the place of a table means.
    ///
    /// # Errors
    /// 1017 for a name with a NUL in it: there is no such file.
    pub fn of(word: &str) -> Result<FileName, MySqlError> {
        let (path, options) = match word.split_once(MARK.as_str()) {
            Some((path, text)) => (path, parse::file_options(text)?),
            None => (word, FileOptions::default()),
        };
        if path.contains(NUL) {
            let shown = path.replace(NUL, "\\0");
            let (code, reason) = (ErrorCode::FileNotFound, "Invalid argument");
            return Err(MySqlError::new(code, &[&shown, &EINVAL, &reason]));
        }
        Ok(FileName {
            path: path.to_owned(),
            options,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_writes_the_mark() {
        let word = with_options("x.csv", "(skip = 1)");
        let file = FileName::of(&word).expect("a file");
        assert_eq!((file.path.as_str(), file.options.skip), ("x.csv", Some(1)));
        assert_eq!(path_of(&word), "x.csv");
        assert_eq!(shown(&word), "x.csv (skip = 1)");
        assert_eq!(shown("x.csv"), "x.csv");
        for written in ["x.csv\0(skip = 1)", "x.csv\0", "\0x.csv"] {
            let error = FileName::of(written).expect_err("there is no such file");
            assert_eq!(error.code, 1017, "{error}");
            assert!(!error.message.contains(NUL), "{error}");
        }
    }
}
