//! How SELECT ... INTO OUTFILE writes its rows.

use mayfly_types::CharacterSet;

use super::FileFormat;

/// What a statement says of the format of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutFileFormat {
    /// Nothing: the name of the file decides.
    OfName,
    /// CHARACTER SET, FIELDS or LINES: the text that LOAD DATA reads.
    Delimited {
        /// CHARACTER SET.
        character_set: Option<CharacterSet>,
        /// FIELDS and LINES.
        format: FileFormat,
    },
    /// FORMAT.
    Named(RowFormat),
}

/// A format that is called by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowFormat {
    /// FORMAT PARQUET.
    Parquet(ParquetOptions),
    /// FORMAT CSV and FORMAT TSV.
    Csv(CsvOptions),
    /// FORMAT JSON: one object a line.
    Json,
}

/// The options of FORMAT CSV and FORMAT TSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvOptions {
    /// What stands between two fields.
    pub delimiter: u8,
    /// HEADER: whether the first line names the columns.
    pub has_header: bool,
}

impl CsvOptions {
    /// FORMAT CSV without options.
    pub const COMMAS: CsvOptions = CsvOptions {
        delimiter: b',',
        has_header: true,
    };
    /// FORMAT TSV without options.
    pub const TABS: CsvOptions = CsvOptions {
        delimiter: b'\t',
        has_header: true,
    };
}

/// The options of FORMAT PARQUET.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ParquetOptions {
    /// COMPRESSION.
    pub compression: Option<ParquetCompression>,
    /// ROW_GROUP_SIZE: the most rows of a row group, one at least.
    pub row_group_rows: Option<u64>,
}

/// How the pages of a Parquet file are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParquetCompression {
    /// Not at all.
    None,
    /// Fast, and less.
    Snappy,
    /// Better.
    Zstd,
}
