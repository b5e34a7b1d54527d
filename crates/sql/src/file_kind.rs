//! Files as statements name them: of which kind they are, and the options beside their names.

use std::borrow::Cow;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

use mayfly_types::ColumnType;

/// What no name of a file has.
pub(crate) const NUL: char = '\0';

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

/// Stands between the path and the text of the options. Each process has another one: nobody can
/// write it.
pub(crate) static MARK: LazyLock<String> = LazyLock::new(|| {
    let number = RandomState::new().hash_one(NUL);
    format!("{NUL}{number:016x}{NUL}")
});
