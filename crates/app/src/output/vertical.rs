//! One column per line, for statements that end with `\G`.

use std::io::{self, Write};

use mayfly_session::ColumnInfo;
use unicode_width::UnicodeWidthStr;

use super::cells::Cells;
use super::writer::ResultWriter;

/// A line of stars with the row's number, then `name: value` with the names aligned right.
pub struct Vertical {
    names: Vec<String>,
    row: u64,
}

impl Vertical {
    pub fn new(columns: &[ColumnInfo], names: bool) -> Self {
        let width = columns
            .iter()
            .map(|column| column.name.width())
            .max()
            .unwrap_or(0);
        let labels = columns.iter().map(|column| {
            let pad = width - column.name.width();
            match names {
                true => format!("{:pad$}{}: ", "", column.name),
                false => String::new(),
            }
        });
        Self {
            names: labels.collect(),
            row: 0,
        }
    }
}

impl ResultWriter for Vertical {
    fn row(&mut self, cells: &Cells, out: &mut dyn Write) -> io::Result<()> {
        self.row += 1;
        let stars = "***************************";
        writeln!(out, "{stars} {}. row {stars}", self.row)?;
        for (name, cell) in self.names.iter().zip(cells.iter()) {
            out.write_all(name.as_bytes())?;
            out.write_all(cell.unwrap_or(b"NULL"))?;
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}
