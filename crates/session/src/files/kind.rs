//! What files are: their format, as their names or an option say, and how they are compressed.

use std::io::Read;
use std::sync::Arc;

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use mayfly_records::{CsvSyntax, Format};
use mayfly_sql::file_name::{FileKind, FileName, FileOptions};
use mayfly_types::{ErrorCode, MySqlError};

use super::sign;
use super::wrong::cannot_open;
use crate::errors;
use crate::spooled::KeptFile;

/// The options of files that are no text, of JSON files, and of CSV and TSV files.
const OF_PARQUET: [&str; 3] = ["format", "filename", "partitions"];
const OF_JSON: [&str; 5] = ["format", "types", "sample", "filename", "partitions"];
const OF_CSV: [&str; 11] = [
    "format",
    "types",
    "sample",
    "filename",
    "partitions",
    "delimiter",
    "quote",
    "escape",
    "header",
    "null",
    "skip",
];

/// Bytes that tell what a file without a name is.
const BEGIN_BYTES: usize = 4 << 10;

/// What files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    file: FileKind,
}

/// What stands behind the names of compressed files.
const COMPRESSIONS: [(&str, FileCompressionType); 4] = [
    (".gz", FileCompressionType::GZIP),
    (".zst", FileCompressionType::ZSTD),
    (".bz2", FileCompressionType::BZIP2),
    (".xz", FileCompressionType::XZ),
];

/// How a file is compressed, as its name says.
pub(crate) fn compression(path: &str) -> FileCompressionType {
    split(&path.to_ascii_lowercase()).1
}

/// A name in small letters without what says how the file is compressed, and how.
fn split(lower: &str) -> (&str, FileCompressionType) {
    let mut known = COMPRESSIONS.into_iter();
    known
        .find_map(|(end, compression)| Some((lower.strip_suffix(end)?, compression)))
        .unwrap_or((lower, FileCompressionType::UNCOMPRESSED))
}

/// What the name of a file says that it is.
pub(crate) fn named(path: &str) -> Option<FileKind> {
    let lower = path.to_ascii_lowercase();
    let (rest, compression) = split(&lower);
    match rest.rsplit_once('.').map(|(_, extension)| extension) {
        Some("parquet" | "pq") if !compression.is_compressed() => Some(FileKind::Parquet),
        Some("csv") => Some(FileKind::Csv),
        Some("tsv" | "tab") => Some(FileKind::Tsv),
        Some("json" | "jsonl" | "ndjson") => Some(FileKind::Json),
        _ => None,
    }
}

/// Whether a path ends as the name of a file does that may be a table.
pub fn is_table_name(path: &str) -> bool {
    named(path).is_some()
}

impl Kind {
    /// What the files are that a name means.
    ///
    /// # Errors
    /// 1235 where neither their names nor an option say a format that is known, 1024 where they say
    /// several, 1210 for an option that the format does not have.
    pub(super) fn of(file: &FileName, paths: &[String]) -> Result<Kind, MySqlError> {
        let options = &file.options;
        let file = match (options.kind, paths.split_first()) {
            (Some(kind), _) => kind,
            (None, None) => known(&file.path)?,
            (None, Some((first, others))) => {
                let kind = known(first)?;
                for other in others {
                    if known(other)? != kind {
                        let text = format!(
                            "The files '{first}' and '{other}' have other formats: they cannot be \
                             read together"
                        );
                        return Err(MySqlError::with_message(ErrorCode::FileRead, text));
                    }
                }
                kind
            }
        };
        let kind = Kind { file };
        kind.check(options)?;
        Ok(kind)
    }

    /// What the standard input is, which has no name: what its first byte that is no white space
    /// says.
    ///
    /// # Errors
    /// 1235 for Parquet, which is not read from its beginning, and for what is compressed; and
    /// those of the temp space.
    pub(super) fn of_input(file: &FileName, input: &Arc<KeptFile>) -> Result<Kind, MySqlError> {
        let mut begin = Vec::with_capacity(BEGIN_BYTES);
        let read = input
            .reader()
            .take(BEGIN_BYTES as u64)
            .read_to_end(&mut begin);
        read.map_err(|error| cannot_open(&file.path, &error))?;
        if let Some(program) = compressed_by(&begin) {
            let what = format!("a table from '{}' that {program} has compressed", file.path);
            return Err(errors::not_supported(&what));
        }
        let kind = file.options.kind.unwrap_or_else(|| begins_as(&begin));
        if kind == FileKind::Parquet {
            let what = format!("a table from '{}' that is a Parquet file", file.path);
            return Err(errors::not_supported(&what));
        }
        let kind = Kind { file: kind };
        kind.check(&file.options)?;
        Ok(kind)
    }

    /// Refuses options that files of the kind do not have.
    fn check(&self, options: &FileOptions) -> Result<(), MySqlError> {
        let (what, known) = match self.file {
            FileKind::Parquet => ("Parquet", OF_PARQUET.as_slice()),
            FileKind::Json => ("JSON", OF_JSON.as_slice()),
            FileKind::Csv => ("CSV", OF_CSV.as_slice()),
            FileKind::Tsv => ("TSV", OF_CSV.as_slice()),
        };
        if let Some(Format::Csv(syntax)) = self.text_format(options)
            && [syntax.quote, syntax.escape].contains(&Some(syntax.delimiter))
        {
            let sign = sign::named(syntax.delimiter);
            let text = format!(
                "Incorrect arguments to quote, escape: {sign} stands between the fields of a {what} file"
            );
            return Err(MySqlError::with_message(ErrorCode::WrongArguments, text));
        }
        let mut given = options.given.iter();
        let Some(option) = given.find(|option| !known.contains(option)) else {
            return Ok(());
        };
        let text = format!(
            "Incorrect arguments to {option}: a {what} file has no such option, but {}",
            known.join(", ")
        );
        Err(MySqlError::with_message(ErrorCode::WrongArguments, text))
    }

    /// How a text file is read; `None` for Parquet.
    pub(super) fn text_format(&self, options: &FileOptions) -> Option<Format> {
        let delimiter = match self.file {
            FileKind::Csv => b',',
            FileKind::Tsv => b'\t',
            FileKind::Json => return Some(Format::Json),
            FileKind::Parquet => return None,
        };
        let usual = CsvSyntax::delimited(options.delimiter.unwrap_or(delimiter));
        let quote = options.quote.unwrap_or(usual.quote);
        Some(Format::Csv(CsvSyntax {
            quote,
            escape: options.escape.unwrap_or(quote),
            ..usual
        }))
    }

    /// Whether the rows of a file tell what stands between its fields, since nothing else does.
    pub(super) fn guesses_delimiter(&self, options: &FileOptions) -> bool {
        self.file == FileKind::Csv && options.delimiter.is_none()
    }
}

/// The program that has compressed what begins so.
fn compressed_by(begin: &[u8]) -> Option<&'static str> {
    let is_bzip2 = |begin: &[u8]| {
        let blocks = begin.strip_prefix(b"BZh").and_then(<[u8]>::split_first);
        blocks.is_some_and(|(size, blocks)| {
            // A block, or the end of a file that has none.
            let begins = blocks.starts_with(b"1AY&SY") || blocks.starts_with(b"\x17rE8P\x90");
            matches!(size, b'1'..=b'9') && begins
        })
    };
    match begin {
        begin if begin.starts_with(b"\x1F\x8B") => Some("gzip"),
        begin if begin.starts_with(b"\x28\xB5\x2F\xFD") => Some("zstd"),
        begin if begin.starts_with(b"\xFD7zXZ\0") => Some("xz"),
        begin if is_bzip2(begin) => Some("bzip2"),
        _ => None,
    }
}

/// What a file is that begins so.
fn begins_as(begin: &[u8]) -> FileKind {
    if begin.starts_with(b"PAR1") {
        return FileKind::Parquet;
    }
    let begin = begin.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(begin);
    match begin.trim_ascii_start().first() {
        Some(b'{' | b'[') => FileKind::Json,
        _ => FileKind::Csv,
    }
}

fn known(path: &str) -> Result<FileKind, MySqlError> {
    named(path).ok_or_else(|| {
        let what = format!(
            "a table from '{path}': its name does not end in .parquet, .csv, .tsv or .json, and no \
             option 'format' behind it says what it is"
        );
        errors::not_supported(&what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(path: &str, options: FileOptions) -> Result<Kind, u16> {
        let path = path.to_owned();
        let paths = [path.clone()];
        Kind::of(&FileName { path, options }, &paths).map_err(|error| error.code)
    }

    #[test]
    fn names_and_options_say_what_a_file_is() {
        let as_json = || FileOptions {
            kind: Some(FileKind::Json),
            ..FileOptions::default()
        };
        for (path, options, expect) in [
            ("a.CSV", FileOptions::default(), Ok(FileKind::Csv)),
            ("a.csv.gz", FileOptions::default(), Ok(FileKind::Csv)),
            ("a.tab.xz", FileOptions::default(), Ok(FileKind::Tsv)),
            ("a.ndjson", FileOptions::default(), Ok(FileKind::Json)),
            ("a.pq", FileOptions::default(), Ok(FileKind::Parquet)),
            ("a.parquet.gz", FileOptions::default(), Err(1235)),
            ("a.txt", FileOptions::default(), Err(1235)),
            ("csv", FileOptions::default(), Err(1235)),
            ("a.txt", as_json(), Ok(FileKind::Json)),
            ("a.csv.zst", as_json(), Ok(FileKind::Json)),
            ("log", as_json(), Ok(FileKind::Json)),
        ] {
            let found = kind(path, options).map(|kind| kind.file);
            assert_eq!(found, expect, "{path}");
        }
    }

    #[test]
    fn files_of_one_table_have_one_format() {
        let check = |paths: &[&str], expect: Result<FileKind, u16>| {
            let file = FileName {
                path: "*".to_owned(),
                options: FileOptions::default(),
            };
            let owned: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            let found = Kind::of(&file, &owned).map(|kind| kind.file);
            assert_eq!(found.map_err(|error| error.code), expect, "{paths:?}");
        };
        check(&["a.csv", "b.csv.gz"], Ok(FileKind::Csv));
        check(&["a.json", "b.ndjson"], Ok(FileKind::Json));
        check(&["a.csv", "b.tsv"], Err(1024));
        check(&["a.csv", "b.log"], Err(1235));
        assert_eq!(compression("a.CSV.GZ"), FileCompressionType::GZIP);
        assert_eq!(compression("a.csv"), FileCompressionType::UNCOMPRESSED);
    }

    #[test]
    fn the_beginning_says_what_a_file_is() {
        for (begin, expect) in [
            (&b"PAR1..."[..], FileKind::Parquet),
            (b"\xEF\xBB\xBF {", FileKind::Json),
            (b"\n\t[\n", FileKind::Json),
            (b"a,b\n", FileKind::Csv),
            (b"", FileKind::Csv),
        ] {
            assert_eq!(begins_as(begin), expect, "{}", begin.escape_ascii());
        }
        for (begin, expect) in [
            (&b"\x1F\x8B\x08\0"[..], Some("gzip")),
            (b"\x28\xB5\x2F\xFD\x04", Some("zstd")),
            (b"\xFD7zXZ\0\0\x04", Some("xz")),
            (b"BZh91AY&SY\x12", Some("bzip2")),
            (b"BZh9,a\n1,2\n", None),
            (b"", None),
        ] {
            assert_eq!(compressed_by(begin), expect, "{}", begin.escape_ascii());
        }
    }

    #[test]
    fn options_of_other_kinds_are_refused() {
        for (path, option, is_known) in [
            ("a.csv", "skip", true),
            ("a.tsv", "delimiter", true),
            ("a.json", "sample", true),
            ("a.json", "header", false),
            ("a.parquet", "types", false),
        ] {
            let options = FileOptions {
                given: vec![option],
                ..FileOptions::default()
            };
            let expect = if is_known { None } else { Some(1210) };
            assert_eq!(kind(path, options).err(), expect, "{path} {option}");
        }
    }

    #[test]
    fn quotes_are_no_delimiters() {
        for (path, quote, is_right) in [
            ("a.csv", b',', false),
            ("a.tsv", b',', true),
            ("a.tsv", b'\t', false),
            ("a.csv", b'\t', true),
        ] {
            let options = FileOptions {
                quote: Some(Some(quote)),
                ..FileOptions::default()
            };
            let expect = if is_right { None } else { Some(1210) };
            assert_eq!(kind(path, options).err(), expect, "{path}");
        }
    }

    #[test]
    fn signs_of_csv_are_those_of_the_options() {
        let syntax = |path: &str, options: FileOptions| {
            let found = kind(path, options.clone()).map(|kind| kind.text_format(&options));
            match found {
                Ok(Some(Format::Csv(syntax))) => syntax,
                other => panic!("{other:?}"),
            }
        };
        let usual = FileOptions::default;
        assert_eq!(syntax("a.csv", usual()), CsvSyntax::delimited(b','));
        assert_eq!(syntax("a.tsv", usual()), CsvSyntax::delimited(b'\t'));
        let single = FileOptions {
            quote: Some(Some(b'\'')),
            delimiter: Some(b';'),
            ..usual()
        };
        let expect = CsvSyntax {
            delimiter: b';',
            quote: Some(b'\''),
            escape: Some(b'\''),
        };
        assert_eq!(syntax("a.csv", single), expect);
    }
}
