//! Tab-separated rows, byte for byte as `mysql -B` writes them.

use std::io::{self, Write};

use mayfly_session::ColumnInfo;

use super::cells::Cells;
use super::writer::ResultWriter;

/// A header line before the first row, NULL as `NULL`, and escapes for tab, line feed, backslash
/// and zero byte. Column names are written as they are, like the `mysql` client does.
pub struct Tsv {
    header: Option<String>,
}

impl Tsv {
    pub fn new(columns: &[ColumnInfo], names: bool) -> Self {
        let labels: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        Self {
            header: names.then(|| labels.join("\t") + "\n"),
        }
    }
}

impl ResultWriter for Tsv {
    fn row(&mut self, cells: &Cells, out: &mut dyn Write) -> io::Result<()> {
        if let Some(header) = self.header.take() {
            out.write_all(header.as_bytes())?;
        }
        for (index, cell) in cells.iter().enumerate() {
            if index > 0 {
                out.write_all(b"\t")?;
            }
            match cell {
                None => out.write_all(b"NULL")?,
                Some(text) => write_escaped(text, out)?,
            }
        }
        out.write_all(b"\n")
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

fn write_escaped(text: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let mut rest = text;
    while let Some(at) = rest
        .iter()
        .position(|byte| matches!(byte, b'\t' | b'\n' | b'\\' | 0))
    {
        out.write_all(&rest[..at])?;
        out.write_all(match rest[at] {
            b'\t' => b"\\t",
            b'\n' => b"\\n",
            b'\\' => b"\\\\",
            _ => b"\\0",
        })?;
        rest = &rest[at + 1..];
    }
    out.write_all(rest)
}
