//! Rows as CSV and as JSON lines, whether the shell prints them or a statement writes a file.
//!
//! Takes cells as [`render`](crate::render) spells them. **Never** looks at a batch, and never
//! knows where the bytes go.

use std::borrow::Cow;

use mayfly_types::ColumnType;
use mayfly_types::spelling::write_quoted;

use crate::outcome::ColumnInfo;

/// Appends a field of CSV (RFC 4180): in quotes if it is empty, which tells it from NULL, or holds
/// a delimiter, a quote or an end of a line.
pub fn write_csv_field(text: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    let is_special = |byte: &u8| *byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r');
    if !text.is_empty() && !text.iter().any(is_special) {
        out.extend_from_slice(text);
        return;
    }
    out.push(b'"');
    for (index, part) in text.split(|byte| *byte == b'"').enumerate() {
        if index > 0 {
            out.extend_from_slice(b"\"\"");
        }
        out.extend_from_slice(part);
    }
    out.push(b'"');
}

/// Appends the line that names the columns of CSV.
pub fn write_csv_header(columns: &[ColumnInfo], delimiter: u8, out: &mut Vec<u8>) {
    for (index, column) in columns.iter().enumerate() {
        if index > 0 {
            out.push(delimiter);
        }
        write_csv_field(column.name.as_bytes(), delimiter, out);
    }
    out.push(b'\n');
}

/// A cell as a text: bits as the digits of their number, bytes that are not UTF-8 as `0x` and hex
/// digits.
pub(crate) fn text_of<'a>(cell: &'a [u8], of: &ColumnType) -> Cow<'a, [u8]> {
    if let ColumnType::Bit { .. } = of {
        return Cow::Owned(bits(cell).to_string().into_bytes());
    }
    match std::str::from_utf8(cell) {
        Ok(_) => Cow::Borrowed(cell),
        Err(_) => Cow::Owned(hex(cell).into_bytes()),
    }
}

/// The number of a BIT, whose first byte is the highest.
fn bits(cell: &[u8]) -> u64 {
    let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    cell.iter().fold(0, add)
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02X}"));
    "0x".chars().map(String::from).chain(digits).collect()
}

/// The objects of JSON lines.
///
/// Numbers and bits are numbers, with the digits that they have: a DECIMAL loses nothing. JSON
/// columns stand as they are, NULL is `null`, and all else is a string, as [`text_of`] has it.
pub struct JsonRows {
    columns: Vec<JsonColumn>,
}

struct JsonColumn {
    /// `{"name":` or `,"name":`.
    open: Vec<u8>,
    kind: JsonKind,
}

enum JsonKind {
    Number,
    Bits,
    Json,
    Text,
}

impl JsonRows {
    /// Rows of these columns.
    pub fn new(columns: &[ColumnInfo]) -> JsonRows {
        let columns = columns.iter().enumerate().map(|(index, column)| {
            let mut open = vec![if index == 0 { b'{' } else { b',' }];
            write_quoted(&column.name, &mut open);
            open.push(b':');
            let kind = match column.column_type {
                ColumnType::Json => JsonKind::Json,
                ColumnType::Bit { .. } => JsonKind::Bits,
                ref numeric if numeric.is_numeric() => JsonKind::Number,
                _ => JsonKind::Text,
            };
            JsonColumn { open, kind }
        });
        JsonRows {
            columns: columns.collect(),
        }
    }

    /// Appends the name of a column and its cell; those of a row come in their order.
    pub fn write_cell(&self, column: usize, cell: Option<&[u8]>, out: &mut Vec<u8>) {
        let Some(column) = self.columns.get(column) else {
            return;
        };
        out.extend_from_slice(&column.open);
        let Some(cell) = cell else {
            out.extend_from_slice(b"null");
            return;
        };
        match column.kind {
            JsonKind::Json => out.extend_from_slice(cell),
            JsonKind::Number if is_json_number(cell) => out.extend_from_slice(cell),
            JsonKind::Bits => out.extend_from_slice(bits(cell).to_string().as_bytes()),
            JsonKind::Number | JsonKind::Text => match std::str::from_utf8(cell) {
                Ok(text) => write_quoted(text, out),
                Err(_) => write_quoted(&hex(cell), out),
            },
        }
    }

    /// Ends a row.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"}\n");
    }
}

/// JSON forbids leading zeros, which a YEAR of 0000 has.
fn is_json_number(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    matches!(digits, [b'0'] | [b'0', b'.', ..] | [b'1'..=b'9', ..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, column_type: ColumnType) -> ColumnInfo {
        ColumnInfo {
            name: name.to_owned(),
            column_type,
            nullable: true,
            origin: None,
        }
    }

    #[test]
    fn fields_are_quoted_where_they_need_it() {
        let check = |field: &str, delimiter: u8, expect: &str| {
            let mut out = Vec::new();
            write_csv_field(field.as_bytes(), delimiter, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), expect, "{field:?}");
        };
        check("plain text", b',', "plain text");
        check("", b',', "\"\"");
        check("a,b", b',', "\"a,b\"");
        check("a,b", b'\t', "a,b");
        check("a\tb", b'\t', "\"a\tb\"");
        check("say \"so\"", b',', "\"say \"\"so\"\"\"");
        check("\"", b',', "\"\"\"\"");
        check("l\nf", b',', "\"l\nf\"");
        check("c\rr", b',', "\"c\rr\"");
    }

    #[test]
    fn cells_are_json_of_their_type() {
        let int = ColumnType::Int { unsigned: false };
        let check = |column_type: ColumnType, cell: Option<&[u8]>, expect: &str| {
            let rows = JsonRows::new(&[column("a\"b", int.clone()), column("c", column_type)]);
            let mut out = Vec::new();
            rows.write_cell(0, Some(b"1"), &mut out);
            rows.write_cell(1, cell, &mut out);
            rows.write_end(&mut out);
            let expect = format!("{{\"a\\\"b\":1,\"c\":{expect}}}\n");
            assert_eq!(String::from_utf8_lossy(&out), expect);
        };
        let decimal = ColumnType::Decimal {
            precision: 40,
            scale: 2,
            unsigned: false,
        };
        check(int.clone(), None, "null");
        check(int.clone(), Some(b"-5"), "-5");
        check(
            decimal,
            Some(b"12345678901234567890123456789.10"),
            "12345678901234567890123456789.10",
        );
        check(ColumnType::DOUBLE, Some(b"1e300"), "1e300");
        check(ColumnType::Year, Some(b"2024"), "2024");
        check(ColumnType::Year, Some(b"0000"), "\"0000\"");
        check(ColumnType::Bit { length: 12 }, Some(&[1, 2]), "258");
        check(ColumnType::Json, Some(b"{\"a\": [1]}"), "{\"a\": [1]}");
        let text = ColumnType::VarChar { length: 9 };
        check(text.clone(), Some(b""), "\"\"");
        check(
            text,
            Some("\u{1}\n\"\u{e4}".as_bytes()),
            "\"\\u0001\\n\\\"\u{e4}\"",
        );
        let bytes = ColumnType::VarBinary { length: 9 };
        check(bytes.clone(), Some(b"ab"), "\"ab\"");
        check(bytes, Some(&[0, 0xff]), "\"0x00FF\"");
    }
}
