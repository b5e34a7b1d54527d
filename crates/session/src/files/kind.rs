//! What the name of a file says of its format, whether it is read or written.

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use mayfly_records::Format;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Parquet,
    Csv,
    Tsv,
    Json,
}

/// The format that a name says.
pub(crate) struct Kind {
    pub(crate) shape: Shape,
    pub(crate) compression: FileCompressionType,
    /// The end of the name, as it is written.
    pub(super) suffix: String,
}

impl Kind {
    /// `None` for a name that says no known format.
    pub(crate) fn of(path: &str) -> Option<Kind> {
        let lower = path.to_ascii_lowercase();
        let (rest, compression) = without_compression(&lower);
        let (_, extension) = rest.rsplit_once('.')?;
        let shape = match extension {
            "parquet" | "pq" if !compression.is_compressed() => Shape::Parquet,
            "csv" => Shape::Csv,
            "tsv" | "tab" => Shape::Tsv,
            "json" | "jsonl" | "ndjson" => Shape::Json,
            _ => return None,
        };
        let start = rest.rfind('.').unwrap_or(0);
        Some(Kind {
            shape,
            compression,
            suffix: path.get(start..).unwrap_or_default().to_owned(),
        })
    }

    /// How a text file is read.
    pub(super) fn text_format(&self) -> Option<Format> {
        match self.shape {
            Shape::Csv => Some(Format::Csv { delimiter: b',' }),
            Shape::Tsv => Some(Format::Csv { delimiter: b'\t' }),
            Shape::Json => Some(Format::Json),
            Shape::Parquet => None,
        }
    }
}

/// How a file is compressed whose name says no more than that.
pub(crate) fn compression_of(path: &str) -> FileCompressionType {
    without_compression(&path.to_ascii_lowercase()).1
}

/// A name in lower case without the end that says how the file is compressed.
fn without_compression(lower: &str) -> (&str, FileCompressionType) {
    [
        (".gz", FileCompressionType::GZIP),
        (".zst", FileCompressionType::ZSTD),
        (".bz2", FileCompressionType::BZIP2),
        (".xz", FileCompressionType::XZ),
    ]
    .into_iter()
    .find_map(|(end, compression)| Some((lower.strip_suffix(end)?, compression)))
    .unwrap_or((lower, FileCompressionType::UNCOMPRESSED))
}
