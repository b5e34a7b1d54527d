//! Rows as CSV and as JSON lines, whether the shell prints them or a statement writes a file.
//!
//! Takes cells as [`render`](crate::render) spells them. **Never** looks at a batch, and never
//! knows where the bytes go.

use mayfly_sql::functions::is_json;
use mayfly_types::ColumnType;
use mayfly_types::spelling::write_quoted;

use crate::column_info::ColumnInfo;

/// Appends a field of CSV (RFC 4180): in quotes if it is empty, which tells it from NULL, or holds
/// a delimiter, a quote or an end of a line.
///
/// Readers guess delimiters and some cut off spaces: quotes are around what they could mistake too.
pub fn write_csv_field(text: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    let is_special = |byte: &u8| {
        *byte == delimiter || matches!(byte, b'"' | b'\n' | b'\r' | b';' | b'|' | b'\t')
    };
    let has_space = text.starts_with(b" ") || text.ends_with(b" ");
    if !text.is_empty() && !has_space && !text.iter().any(is_special) {
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

/// Appends a cell as a field of CSV: bits as the digits of their number, bytes that are not UTF-8
/// as `0x` and hex digits.
pub fn write_csv_cell(cell: &[u8], of: &ColumnType, delimiter: u8, out: &mut Vec<u8>) {
    if let ColumnType::Bit { .. } = of {
        write_digits(bits(cell), out);
    } else if std::str::from_utf8(cell).is_ok() {
        write_csv_field(cell, delimiter, out);
    } else {
        write_hex(cell, out);
    }
}

/// The number of a BIT, whose first byte is the highest.
fn bits(cell: &[u8]) -> u64 {
    let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    cell.iter().fold(0, add)
}

fn write_digits(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(number.to_string().as_bytes());
}

/// Appends `0x` and two digits a byte.
fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let digit = |half: u8| DIGITS[usize::from(half & 0xF)];
    out.reserve(2 * bytes.len() + 2);
    out.extend_from_slice(b"0x");
    for byte in bytes {
        out.extend_from_slice(&[digit(byte >> 4), digit(*byte)]);
    }
}

/// Appends a document in one line: where an end of a line is no part of a string, a space is the
/// same, and none may stand in a string as it is.
fn write_document(document: &[u8], out: &mut Vec<u8>) {
    let in_line = |byte: &u8| match byte {
        b'\n' | b'\r' => b' ',
        other => *other,
    };
    out.extend(document.iter().map(in_line));
}

/// Appends a string of JSON.
fn write_string(cell: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(cell) {
        Ok(text) => write_quoted(text, out),
        Err(_) => {
            out.push(b'"');
            write_hex(cell, out);
            out.push(b'"');
        }
    }
}

/// The objects of JSON lines.
///
/// Numbers and bits are numbers, with the digits that they have: a DECIMAL loses nothing. What JSON
/// columns hold is a document, NULL is `null`, and all else is a string, with `0x` and hex digits
/// for bytes that are not UTF-8. A JSON column may hold any text: one that is no document is a
/// string too.
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
            JsonKind::Json if is_json(cell) => write_document(cell, out),
            JsonKind::Number if is_json_number(cell) => out.extend_from_slice(cell),
            JsonKind::Bits => write_digits(bits(cell), out),
            JsonKind::Json | JsonKind::Number | JsonKind::Text => write_string(cell, out),
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
        // What a reader that guesses would take for a delimiter, and what it would cut off.
        check("a;b", b',', "\"a;b\"");
        check("a|b", b'\t', "\"a|b\"");
        check("a\tb", b',', "\"a\tb\"");
        check(" a", b',', "\" a\"");
        check("a ", b',', "\"a \"");
        check("a b", b',', "a b");
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
        // One document a line, whatever the column holds.
        check(
            ColumnType::Json,
            Some(b"{\r\n \"a\": \"x\\ny\"\n}\n"),
            "{   \"a\": \"x\\ny\" } ",
        );
        check(ColumnType::Json, Some(b"not json"), "\"not json\"");
        check(ColumnType::Json, Some(b""), "\"\"");
        check(
            ColumnType::Json,
            Some(b"1},{\"admin\":1"),
            "\"1},{\\\"admin\\\":1\"",
        );
        check(ColumnType::Json, Some(&[b'"', 0xff, b'"']), "\"0x22FF22\"");
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
