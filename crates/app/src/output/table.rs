//! Boxes of `+`, `-` and `|`, as the `mysql` client draws them.
//!
//! The widths come from a first window of rows; a wider cell after the window sticks out, as it
//! does in `mysql --quick`, so that a result of any length needs the memory of the window only.
//! Where the boxes of the window are wider than the terminal, the whole result is written with one
//! column per line, or its widest columns are cut.

use std::io::{self, Write};

use mayfly_session::ColumnInfo;
use unicode_width::UnicodeWidthStr;

use super::cells::Cells;
use super::vertical::Vertical;
use super::writer::ResultWriter;
use crate::args::WideRows;
use crate::terminal::{cut, width};

/// Rows looked at before the first is written: more than a screen, little to hold.
const WINDOW_ROWS: usize = 1000;
/// Bytes of text after which the window ends early.
const WINDOW_BYTES: usize = 1 << 20;
/// A column is not cut to less: nobody could tell what it says.
const CUT_WIDTH_MIN: usize = 8;

struct Column {
    name: String,
    right: bool,
    width: usize,
    /// Whether what is wider than the column is cut.
    is_cut: bool,
}

pub struct Table {
    columns: Vec<Column>,
    names: bool,
    /// What fits the terminal, where that matters.
    fit: Option<Fit>,
    window: Vec<Cells>,
    window_bytes: usize,
    stage: Stage,
}

struct Fit {
    columns: usize,
    cuts: bool,
    /// Takes over where the boxes do not fit.
    vertical: Vertical,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Rows are collected for the widths.
    Measuring,
    Drawing,
    /// The rows go to [`Fit::vertical`].
    Turned,
}

impl Table {
    pub fn new(columns: &[ColumnInfo], names: bool, terminal: Option<(usize, WideRows)>) -> Self {
        let fit = match terminal {
            None | Some((_, WideRows::Whole)) => None,
            Some((width, wide)) => Some(Fit {
                columns: width,
                cuts: wide == WideRows::Cut,
                vertical: Vertical::new(columns, names),
            }),
        };
        let columns = columns.iter().map(|column| Column {
            name: column.name.clone(),
            right: column.column_type.is_numeric(),
            width: if names { column.name.width() } else { 0 },
            is_cut: false,
        });
        Self {
            columns: columns.collect(),
            names,
            fit,
            window: Vec::new(),
            window_bytes: 0,
            stage: Stage::Measuring,
        }
    }

    fn flush_window(&mut self, out: &mut dyn Write) -> io::Result<()> {
        for cells in &self.window {
            for (column, cell) in self.columns.iter_mut().zip(cells.iter()) {
                column.width = column.width.max(width(cell.unwrap_or(b"NULL")));
            }
        }
        self.stage = self.fit_terminal();
        let window = std::mem::take(&mut self.window);
        if self.stage == Stage::Drawing {
            self.head(out)?;
        }
        for cells in window {
            self.row(&cells, out)?;
        }
        Ok(())
    }

    /// Cuts columns that are too wide; tells how the rows are written.
    fn fit_terminal(&mut self) -> Stage {
        let Some(fit) = &self.fit else {
            return Stage::Drawing;
        };
        // A column takes its frame and two blanks beside its text.
        let width = |cut: usize| {
            let columns = self.columns.iter();
            1 + columns
                .map(|column| column.width.min(cut) + 3)
                .sum::<usize>()
        };
        if width(usize::MAX) <= fit.columns {
            return Stage::Drawing;
        }
        if !fit.cuts || width(CUT_WIDTH_MIN) > fit.columns {
            return Stage::Turned;
        }
        let mut cut = CUT_WIDTH_MIN;
        while width(cut + 1) <= fit.columns {
            cut += 1;
        }
        for column in &mut self.columns {
            column.is_cut = column.width > cut;
            column.width = column.width.min(cut);
        }
        Stage::Drawing
    }

    fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        self.line(out)?;
        if self.names {
            for column in &self.columns {
                out.write_all(b"| ")?;
                column.text(column.name.as_bytes(), out)?;
                let pad = column.width.saturating_sub(column.name.width());
                write!(out, "{:pad$} ", "")?;
            }
            out.write_all(b"|\n")?;
            self.line(out)?;
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
            column.text(text, out)?;
            if !column.right {
                write!(out, "{:pad$}", "")?;
            }
            out.write_all(b" ")?;
        }
        out.write_all(b"|\n")
    }
}

impl Column {
    fn text(&self, text: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let (text, mark) = match self.is_cut && width(text) > self.width {
            true => cut(text, self.width),
            false => (text, ""),
        };
        // A zero byte would end the line on some terminals; the mysql client does the same.
        for (index, part) in text.split(|&byte| byte == 0).enumerate() {
            if index > 0 {
                out.write_all(b" ")?;
            }
            out.write_all(part)?;
        }
        out.write_all(mark.as_bytes())
    }
}

impl ResultWriter for Table {
    fn row(&mut self, cells: &Cells, out: &mut dyn Write) -> io::Result<()> {
        match (self.stage, &mut self.fit) {
            (Stage::Turned, Some(fit)) => fit.vertical.row(cells, out),
            (Stage::Measuring, _) => {
                self.window_bytes += cells.len_bytes();
                self.window.push(cells.clone());
                if self.window.len() >= WINDOW_ROWS || self.window_bytes >= WINDOW_BYTES {
                    self.flush_window(out)?;
                }
                Ok(())
            }
            _ => self.draw(cells, out),
        }
    }

    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.stage == Stage::Measuring {
            if self.window.is_empty() {
                return Ok(());
            }
            self.flush_window(out)?;
        }
        if self.stage == Stage::Turned {
            return Ok(());
        }
        self.line(out)?;
        let cut: Vec<&str> = { self.columns.iter() }
            .filter(|column| column.is_cut)
            .map(|column| column.name.as_str())
            .collect();
        if !cut.is_empty() {
            let names = cut.join(", ");
            writeln!(out, "Cut to fit the terminal, \\G shows all: {names}")?;
        }
        Ok(())
    }
}
