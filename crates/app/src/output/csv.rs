//! Comma-separated rows (RFC 4180, line feeds).

use std::io::{self, Write};

use mayfly_session::ColumnInfo;

use super::{Cells, ResultWriter};

/// A header line even without rows, NULL as an empty field, an empty text as `""`.
pub struct Csv {
    header: Option<Vec<u8>>,
}

impl Csv {
    pub fn new(columns: &[ColumnInfo], names: bool) -> Self {
        let mut header = Vec::new();
        for (index, column) in columns.iter().enumerate() {
            if index > 0 {
                header.push(b',');
            }
            write_field(column.name.as_bytes(), &mut header).expect("a Vec takes all writes");
        }
        header.push(b'\n');
        Self {
            header: names.then_some(header),
        }
    }

    fn write_header(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match self.header.take() {
            Some(header) => out.write_all(&header),
            None => Ok(()),
        }
    }
}

impl ResultWriter for Csv {
    fn row(&mut self, cells: &Cells, out: &mut dyn Write) -> io::Result<()> {
        self.write_header(out)?;
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                out.write_all(b",")?;
            }
            if let Some(text) = cell {
                write_field(text, out)?;
            }
        }
        out.write_all(b"\n")
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.write_header(out)
    }
}

fn write_field(text: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let plain = !text.is_empty()
        && !text
            .iter()
            .any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r'));
    if plain {
        return out.write_all(text);
    }
    out.write_all(b"\"")?;
    for (index, part) in text.split(|&byte| byte == b'"').enumerate() {
        if index > 0 {
            out.write_all(b"\"\"")?;
        }
        out.write_all(part)?;
    }
    out.write_all(b"\"")
}
