//! The name of a file in the place of a table, and the options that may stand behind it:
//! `'x.csv' (delimiter = ';', header = off)`.
//!
//! In a syntax tree the name is one quoted word that holds both, with a mark between them which no
//! name of a file has. So the options go wherever the name goes, and one file with two kinds of
//! options is two tables. Whatever a user sees is without the mark.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use mayfly_types::{ColumnType, ErrorCode, MySqlError};

use crate::parse;

/// What no name of a file has.
const NUL: char = '\0';
const EINVAL: i32 = 22;
/// Stands between the path and the text of the options. Each process has another one: nobody can
/// write it.
static MARK: LazyLock<String> = LazyLock::new(|| {
    let number = RandomState::new().hash_one(NUL);
    format!("{NUL}{number:016x}{NUL}")
});

/// A file, or a pattern of files, and how it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct FileName {
    /// Where it is.
    pub path: String,
    /// How it is read.
    pub options: FileOptions,
}

/// What the name of a file says: a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Fields with commas between them.
    Csv,
    /// Fields with tabs between them.
    Tsv,
    /// JSON objects.
    Json,
    /// Apache Parquet.
    Parquet,
}

/// The options of a file; `None` is what the file says itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileOptions {
    /// `format`.
    pub kind: Option<FileKind>,
    /// `delimiter`: what stands between fields.
    pub delimiter: Option<u8>,
    /// `quote`: what stands around fields; `Some(None)` for nothing.
    pub quote: Option<Option<u8>>,
    /// `escape`: what stands in front of a quote inside quotes; `Some(None)` for nothing.
    pub escape: Option<Option<u8>>,
    /// `header`: whether the first line names the columns.
    pub header: Option<bool>,
    /// `null`: the texts that are NULL.
    pub nulls: Option<Vec<String>>,
    /// `types`: the types of columns, by their names.
    pub types: Vec<(String, ColumnType)>,
    /// `sample`: the rows that are looked at for types; 0 for all.
    pub sample: Option<u64>,
    /// `skip`: lines in front of the first one that is read.
    pub skip: Option<u64>,
    /// `filename`: whether a column holds the name of the file.
    pub filename: Option<bool>,
    /// `partitions`: whether directories such as `year=2024` are columns.
    pub partitions: Option<bool>,
    /// The options that are given, by their names.
    pub given: Vec<&'static str>,
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

/// A word for people: `x.csv (header = off)`.
pub fn shown(word: &str) -> Cow<'_, str> {
    match word.split_once(MARK.as_str()) {
        Some((path, options)) => Cow::Owned(format!("{path} {options}")),
        None => Cow::Borrowed(word),
    }
}

/// The word that means a file with options, which are in parentheses.
pub(crate) fn with_options(path: &str, options: &str) -> String {
    format!("{path}{}{options}", MARK.as_str())
}

/// The path of a file.
pub(crate) fn path_of(word: &str) -> &str {
    word.split(MARK.as_str()).next().unwrap_or(word)
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
