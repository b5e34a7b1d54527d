//! One JSON object a line.

use std::io::{self, Write};

use mayfly_session::ColumnInfo;
use mayfly_types::ColumnType;

use super::{Cells, ResultWriter};

enum Kind {
    /// Written without quotes, digits as they are: a DECIMAL loses nothing.
    Number,
    /// A JSON column is already JSON.
    Json,
    Text,
}

/// Numbers as numbers, JSON columns as they are, NULL as `null`, all else as strings. Bytes that
/// are not UTF-8 are written as a string of `0x` and hex digits.
pub struct Json {
    /// `{"name":` and `,"name":` in front of the value of each column.
    columns: Vec<(String, Kind)>,
}

impl Json {
    pub fn new(columns: &[ColumnInfo]) -> Self {
        let columns = columns.iter().enumerate().map(|(index, column)| {
            let open = if index == 0 { '{' } else { ',' };
            let kind = match column.column_type {
                ColumnType::Json => Kind::Json,
                ColumnType::Bit { .. } => Kind::Text,
                ref numeric if numeric.is_numeric() => Kind::Number,
                _ => Kind::Text,
            };
            (format!("{open}{}:", quote(&column.name)), kind)
        });
        Self {
            columns: columns.collect(),
        }
    }
}

impl ResultWriter for Json {
    fn row(&mut self, cells: &Cells, out: &mut dyn Write) -> io::Result<()> {
        for ((name, kind), cell) in self.columns.iter().zip(cells.iter()) {
            out.write_all(name.as_bytes())?;
            match (cell, kind) {
                (None, _) => out.write_all(b"null")?,
                (Some(text), Kind::Json) => out.write_all(text)?,
                (Some(text), Kind::Number) if is_json_number(text) => out.write_all(text)?,
                (Some(text), _) => match std::str::from_utf8(text) {
                    Ok(text) => out.write_all(quote(text).as_bytes())?,
                    Err(_) => {
                        out.write_all(b"\"0x")?;
                        for byte in text {
                            write!(out, "{byte:02X}")?;
                        }
                        out.write_all(b"\"")?;
                    }
                },
            }
        }
        out.write_all(b"}\n")
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string is always valid JSON")
}

/// JSON forbids leading zeros, which a YEAR of 0000 has.
fn is_json_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    matches!(digits, [b'0'] | [b'0', b'.', ..] | [b'1'..=b'9', ..])
}
