//! What stands behind the name of the file in SELECT ... INTO OUTFILE.
//!
//! FORMAT is ours: MySQL has no such word there. CHARACTER SET, FIELDS and LINES are those of LOAD
//! DATA; beside FORMAT they would mean nothing, and are refused.

#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

use datafusion::sql::sqlparser::tokenizer::Token;
use mayfly_types::{ErrorCode, MySqlError};

use super::cursor::Cursor;
use super::load;
use super::refusal::Result;
use crate::statement::{CsvOptions, OutFileFormat, ParquetCompression, ParquetOptions, RowFormat};

/// Words that the clauses of LOAD DATA begin with, and what an error calls the clause.
const CLAUSES: [(&str, &str); 5] = [
    ("CHARACTER", "CHARACTER SET"),
    ("CHARSET", "CHARACTER SET"),
    ("FIELDS", "FIELDS"),
    ("COLUMNS", "FIELDS"),
    ("LINES", "LINES"),
];

/// The format of the file.
pub(super) fn format(cursor: &mut Cursor<'_>) -> Result<OutFileFormat> {
    if cursor.word("FORMAT") {
        let named = named(cursor)?;
        return match clause(cursor) {
            None => Ok(OutFileFormat::Named(named)),
            Some(clause) => wrong_usage(clause),
        };
    }
    let Some(first) = clause(cursor) else {
        return Ok(OutFileFormat::OfName);
    };
    let character_set = load::character_set(cursor)?;
    let format = load::format(cursor)?;
    match cursor.peek_word("FORMAT") {
        true => wrong_usage(first),
        false => Ok(OutFileFormat::Delimited {
            character_set,
            format,
        }),
    }
}

/// The clause of LOAD DATA that comes next.
fn clause(cursor: &Cursor<'_>) -> Option<&'static str> {
    let found = CLAUSES.iter().find(|(word, _)| cursor.peek_word(word));
    found.map(|(_, clause)| *clause)
}

fn wrong_usage<T>(clause: &str) -> Result<T> {
    Err(MySqlError::new(ErrorCode::WrongUsage, &[&"FORMAT", &clause]).into())
}

/// The name of a format, and its options in parentheses.
fn named(cursor: &mut Cursor<'_>) -> Result<RowFormat> {
    if cursor.word("PARQUET") {
        let mut options = ParquetOptions::default();
        each_option(cursor, |cursor| parquet_option(cursor, &mut options))?;
        return Ok(RowFormat::Parquet(options));
    }
    if cursor.word("JSON") {
        return match cursor.peek() {
            Token::LParen => cursor.fail("no options"),
            _ => Ok(RowFormat::Json),
        };
    }
    let mut options = if cursor.word("CSV") {
        CsvOptions::COMMAS
    } else if cursor.word("TSV") {
        CsvOptions::TABS
    } else {
        return cursor.fail("PARQUET, CSV, TSV or JSON");
    };
    each_option(cursor, |cursor| csv_option(cursor, &mut options))?;
    Ok(RowFormat::Csv(options))
}

/// Options in parentheses, with a comma between two of them, if there are any.
fn each_option(
    cursor: &mut Cursor<'_>,
    option: impl FnMut(&mut Cursor<'_>) -> Result<()>,
) -> Result<()> {
    if !cursor.token(&Token::LParen) {
        return Ok(());
    }
    cursor.list(option)?;
    cursor.parser.expect_token(&Token::RParen)?;
    Ok(())
}

fn parquet_option(cursor: &mut Cursor<'_>, options: &mut ParquetOptions) -> Result<()> {
    if cursor.word("COMPRESSION") {
        cursor.token(&Token::Eq);
        let name = cursor.value_word()?.to_ascii_lowercase();
        options.compression = Some(match name.as_str() {
            "zstd" => ParquetCompression::Zstd,
            "snappy" => ParquetCompression::Snappy,
            "none" | "uncompressed" => ParquetCompression::None,
            _ => {
                let what = format!("COMPRESSION {name}");
                return Err(MySqlError::new(ErrorCode::NotSupportedYet, &[&what]).into());
            }
        });
        return Ok(());
    }
    if cursor.word("ROW_GROUP_SIZE") {
        cursor.token(&Token::Eq);
        // As many rows as a row group must have.
        let rows = cursor.parser.parse_literal_uint()?;
        options.row_group_rows = Some(rows.max(1));
        return Ok(());
    }
    cursor.fail("COMPRESSION or ROW_GROUP_SIZE")
}

fn csv_option(cursor: &mut Cursor<'_>, options: &mut CsvOptions) -> Result<()> {
    cursor.expect("HEADER")?;
    cursor.token(&Token::Eq);
    let value = cursor.value_word()?.to_ascii_lowercase();
    options.has_header = match value.as_str() {
        "on" | "true" | "1" => true,
        "off" | "false" | "0" => false,
        _ => return cursor.fail("ON or OFF"),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use mayfly_types::CharacterSet;

    use super::*;
    use crate::parse::parse;
    use crate::statement::{FileFormat, Into, Statement};

    /// The format in the middle of a query, at its end, and behind a UNION.
    #[track_caller]
    fn check(written: &str, expect: &OutFileFormat) {
        for text in [
            format!("SELECT a INTO OUTFILE 'f' {written} FROM t ORDER BY a"),
            format!("SELECT a FROM t INTO OUTFILE 'f' {written}"),
            format!("SELECT 1 UNION SELECT (2) INTO OUTFILE 'f' {written};"),
            format!("WITH w AS (SELECT 1) SELECT * FROM w INTO OUTFILE 'f' {written}"),
        ] {
            let (statement, _) = parse(&text).expect(&text);
            let Statement::QueryInto(_, Into::OutFile { path, format }) = statement else {
                panic!("{text}: another statement");
            };
            assert_eq!(path, "f");
            assert_eq!(format, *expect, "{text}");
        }
    }

    #[track_caller]
    fn refused(written: &str, code: u16) {
        let text = format!("SELECT a FROM t INTO OUTFILE 'f' {written}");
        let Err(error) = parse(&text) else {
            panic!("{text}: it is taken");
        };
        assert_eq!(error.code, code, "{text}: {}", error.message);
    }

    #[test]
    fn formats_and_their_options() {
        let named = |format| OutFileFormat::Named(format);
        let parquet = |compression, row_group_rows| {
            named(RowFormat::Parquet(ParquetOptions {
                compression,
                row_group_rows,
            }))
        };
        let csv = |delimiter, has_header| {
            named(RowFormat::Csv(CsvOptions {
                delimiter,
                has_header,
            }))
        };
        check("", &OutFileFormat::OfName);
        check("FORMAT PARQUET", &parquet(None, None));
        check(
            "format parquet (compression zstd, row_group_size 100000)",
            &parquet(Some(ParquetCompression::Zstd), Some(100_000)),
        );
        check(
            "FORMAT PARQUET (ROW_GROUP_SIZE = 0, COMPRESSION = 'NONE')",
            &parquet(Some(ParquetCompression::None), Some(1)),
        );
        check(
            "FORMAT PARQUET (COMPRESSION SNAPPY)",
            &parquet(Some(ParquetCompression::Snappy), None),
        );
        check("FORMAT CSV", &csv(b',', true));
        check("FORMAT CSV (HEADER OFF)", &csv(b',', false));
        check("FORMAT TSV (HEADER = 1)", &csv(b'\t', true));
        check("FORMAT TSV (HEADER false)", &csv(b'\t', false));
        check("FORMAT JSON", &named(RowFormat::Json));
        check(
            "CHARACTER SET latin1 LINES TERMINATED BY ';'",
            &OutFileFormat::Delimited {
                character_set: Some(CharacterSet::Latin1),
                format: FileFormat {
                    line_terminator: ";".to_owned(),
                    ..FileFormat::default()
                },
            },
        );
    }

    #[test]
    fn what_is_no_format_is_refused() {
        for clause in [
            "FORMAT CSV FIELDS TERMINATED BY ';'",
            "FORMAT JSON CHARACTER SET utf8mb4",
            "FORMAT PARQUET (COMPRESSION zstd) LINES TERMINATED BY ';'",
            "COLUMNS TERMINATED BY ';' FORMAT CSV",
            "CHARSET latin1 FORMAT TSV",
        ] {
            refused(clause, 1221);
        }
        for syntax in [
            "FORMAT",
            "FORMAT XML",
            "FORMAT CSV ()",
            "FORMAT CSV (HEADER)",
            "FORMAT CSV (HEADER 2)",
            "FORMAT CSV (COMPRESSION zstd)",
            "FORMAT PARQUET (HEADER ON)",
            "FORMAT PARQUET (ROW_GROUP_SIZE -1)",
            "FORMAT PARQUET (COMPRESSION zstd",
            "FORMAT JSON (HEADER ON)",
        ] {
            refused(syntax, 1064);
        }
        refused("FORMAT PARQUET (COMPRESSION lzo)", 1235);
    }
}
