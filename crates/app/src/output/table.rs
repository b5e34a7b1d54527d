//! Boxes of `+`, `-` and `|`, as the `mysql` client draws them.
//!
//! The widths come from a first window of rows; a wider cell after the window sticks out, as it
//! does in `mysql --quick`, so that a result of any length needs the memory of the window only.

use std::io::{self, Write};

use mayfly_session::ColumnInfo;
use unicode_width::UnicodeWidthStr;

use super::{Cells, ResultWriter};

/// Rows looked at before the first is written: more than a screen, little to hold.
const WINDOW_ROWS: usize = 1000;
/// Bytes of text after which the window ends early.
const WINDOW_BYTES: usize = 1 << 20;

struct Column {
    name: String,
    right: bool,
    width: usize,
}

pub struct Table {
    columns: Vec<Column>,
    names: bool,
    window: Vec<Cells>,
    window_bytes: usize,
    drawing: bool,
}

impl Table {
    pub fn new(columns: &[ColumnInfo], names: bool) -> Self {
        let columns = columns.iter().map(|column| Column {
            name: column.name.clone(),
            right: column.column_type.is_numeric(),
            width: if names { column.name.width() } else { 0 },
        });
        Self {
            columns: columns.collect(),
            names,
            window: Vec::new(),
            window_bytes: 0,
            drawing: false,
        }
    }

    fn flush_window(&mut self, out: &mut dyn Write) -> io::Result<()> {
        for cells in &self.window {
            for (column, cell) in self.columns.iter_mut().zip(cells.iter()) {
                column.width = column.width.max(width(cell.unwrap_or(b"NULL")));
            }
        }
        self.drawing = true;
        self.line(out)?;
        if self.names {
            for column in &self.columns {
                write!(
                    out,
                    "| {}{:2$} ",
                    column.name,
                    "",
                    column.width - column.name.width()
                )?;
            }
            out.write_all(b"|\n")?;
            self.line(out)?;
        }
        for cells in std::mem::take(&mut self.window) {
            self.draw(&cells, out)?;
        }
        Ok(())
    }

    fn line(&self, out: &mut dyn Write) -> io::Result<()> {
        for column in &self.columns {
            write!(out, "+{:-<1$}", "", column.width + 2)?;
        }
        out.write_all(b"+\n")
    }

    fn draw(&self, cells: &Cells, out: &mut dyn Write) -> io::Result<()> {
        for (column, cell) in self.columns.iter().zip(cells.iter()) {
            let text = cell.unwrap_or(b"NULL");
            let pad = column.width.saturating_sub(width(text));
            out.write_all(b"| ")?;
            if column.right {
                write!(out, "{:pad$}", "")?;
            }
            // A zero byte would end the line on some terminals; the mysql client does the same.
            for (index, part) in text.split(|&byte| byte == 0).enumerate() {
                if index > 0 {
                    out.write_all(b" ")?;
                }
                out.write_all(part)?;
            }
            if !column.right {
                write!(out, "{:pad$}", "")?;
            }
            out.write_all(b" ")?;
        }
        out.write_all(b"|\n")
    }
}

impl ResultWriter for Table {
    fn row(&mut self, cells: &Cells, out: &mut dyn Write) -> io::Result<()> {
        if self.drawing {
            return self.draw(cells, out);
        }
        self.window_bytes += cells.len_bytes();
        self.window.push(cells.clone());
        if self.window.len() >= WINDOW_ROWS || self.window_bytes >= WINDOW_BYTES {
            self.flush_window(out)?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if !self.drawing {
            if self.window.is_empty() {
                return Ok(());
            }
            self.flush_window(out)?;
        }
        self.line(out)
    }
}

/// Columns that `text` takes on a terminal.
fn width(text: &[u8]) -> usize {
    match std::str::from_utf8(text) {
        Ok(text) => text.width(),
        Err(_) => text.len(),
    }
}
