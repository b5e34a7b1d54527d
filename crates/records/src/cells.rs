//! The fields of some records of a chunk: where they lie, and how they were written.

use crate::chunk::Chunk;
use crate::error::Error;

/// How many bytes around a wrong one an error shows.
const SHOWN_BYTES: usize = 32;

/// How a field is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Empty in CSV; `null` or absent in JSON.
    #[default]
    Null,
    /// As it stands: a field of CSV, a number or a truth value of JSON.
    Plain,
    /// A string of JSON.
    Text,
    /// An object or an array of JSON, as it is written.
    Nested,
}

/// A field: a range of its chunk. Escapes have been resolved in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// How it is written.
    pub kind: Kind,
}

impl Cell {
    /// A range of a chunk, which is never longer than 4 GiB.
    pub(crate) fn new(start: usize, end: usize, kind: Kind) -> Cell {
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Cell {
            start: place(start),
            end: place(end),
            kind,
        }
    }
}

/// The cells of some records, row after row.
#[derive(Debug, Default)]
pub struct Cells {
    pub(crate) cells: Vec<Cell>,
    /// The line on which each record begins.
    pub(crate) lines: Vec<u64>,
    /// Columns; grows when a reader discovers keys.
    pub(crate) width: usize,
    /// The bytes of the chunk that the records take.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Cells {
    /// No rows of so many columns.
    pub fn new(width: usize) -> Cells {
        Cells {
            width,
            ..Cells::default()
        }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.lines.len()
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The line on which a row begins.
    pub fn line(&self, row: usize) -> u64 {
        self.lines.get(row).copied().unwrap_or_default()
    }

    /// The cells of a column, from the first row to the last.
    pub fn column(&self, column: usize) -> impl Iterator<Item = Cell> + '_ {
        let cells = self.cells.iter().skip(column);
        cells.step_by(self.width.max(1)).copied()
    }

    /// Forgets the rows, and begins anew where a chunk stands.
    pub(crate) fn begin(&mut self, chunk_at: usize) {
        self.cells.clear();
        self.lines.clear();
        self.start = chunk_at;
        self.end = chunk_at;
    }

    /// Begins a row of NULLs; gives the place of its first cell.
    pub(crate) fn push_row(&mut self, line: u64) -> usize {
        let first = self.cells.len();
        self.lines.push(line);
        let len = first.saturating_add(self.width);
        self.cells.resize(len, Cell::default());
        first
    }

    /// Sets a cell of the row whose first cell is `first`.
    #[inline]
    pub(crate) fn set(&mut self, first: usize, column: usize, cell: Cell) {
        if let Some(place) = self.cells.get_mut(first.saturating_add(column)) {
            *place = cell;
        }
    }

    /// The text of the cells.
    ///
    /// # Errors
    /// [`Error::NotUtf8`], with the line of the first wrong byte.
    pub fn texts<'a, M>(&self, chunk: &'a Chunk<M>) -> Result<Texts<'a>, Error> {
        let bytes = chunk.bytes.get(self.start..self.end).unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Texts {
                text,
                start: self.start,
            }),
            Err(error) => {
                let at = error.valid_up_to();
                let from = at.saturating_sub(SHOWN_BYTES / 2);
                let shown = bytes.iter().skip(from).take(SHOWN_BYTES).copied();
                Err(Error::NotUtf8 {
                    line: self.line_at(self.start.saturating_add(at)),
                    bytes: shown.collect(),
                })
            }
        }
    }

    /// The line of the record that a byte of the chunk belongs to.
    fn line_at(&self, at: usize) -> u64 {
        let rows = self.cells.chunks(self.width.max(1)).zip(&self.lines);
        let begins = |row: &[Cell]| {
            let starts = row.iter().filter(|cell| cell.kind != Kind::Null);
            starts.map(|cell| cell.start as usize).min()
        };
        let is_before = |row: &[Cell]| begins(row).is_none_or(|start| start <= at);
        let last = rows.rev().find(|(row, _)| is_before(row));
        last.map_or_else(|| self.line(0), |(_, line)| *line)
    }
}

/// The text of the cells of some records.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    text: &'a str,
    start: usize,
}

impl<'a> Texts<'a> {
    /// The text of a cell; empty for NULL.
    #[inline]
    pub fn get(&self, cell: Cell) -> &'a str {
        let place = |at: u32| (at as usize).saturating_sub(self.start);
        let found = self.text.get(place(cell.start)..place(cell.end));
        found.unwrap_or_default()
    }
}
