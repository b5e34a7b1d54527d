//! Reads the fields of CSV records.
//!
//! A field in quotes holds delimiters and line feeds; a quote in it is doubled, and nothing but the
//! end of the field may follow the closing one. Elsewhere a quote is a byte like any other. An
//! empty field is NULL. Lines end in LF, CRLF or CR. A blank line is no record, but in a file of
//! one column it is one: an empty field.
//!
//! **Source**: RFC 4180; in what it leaves open, DuckDB's reader in strict mode.

use memchr::memchr3;

use crate::cells::{Cell, Cells, Kind};
use crate::chunk::Chunk;
use crate::error::Error;
use crate::lines::ends_line;

/// Reads the fields of records.
#[derive(Clone, Debug)]
pub struct CsvReader {
    delimiter: u8,
    /// For each field of a record, the column that it becomes.
    columns: Vec<Option<usize>>,
}

impl CsvReader {
    /// A reader of records whose fields become these columns; those that become none are only
    /// looked at.
    pub fn new(delimiter: u8, columns: Vec<Option<usize>>) -> CsvReader {
        CsvReader { delimiter, columns }
    }

    /// The next record of a chunk as texts, at most `columns_max`: a header. `None` at the end of
    /// the chunk.
    ///
    /// # Errors
    /// If there are more, a quote is not closed, or something follows it.
    pub fn header<M>(
        delimiter: u8,
        chunk: &mut Chunk<M>,
        columns_max: usize,
    ) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let reader = CsvReader::new(delimiter, Vec::new());
        reader.skip_blank(chunk);
        let line = chunk.line;
        let mut cells = Vec::new();
        let found = reader.record(chunk, |field, cell| {
            if field < columns_max {
                cells.push(cell);
            }
        })?;
        match found {
            None => return Ok(None),
            Some(found) if found > columns_max => {
                return Err(Error::TooManyColumns {
                    line,
                    limit: columns_max,
                });
            }
            Some(_) => {}
        }
        let bytes = |cell: Cell| chunk.bytes.get(cell.start as usize..cell.end as usize);
        let texts = cells.into_iter();
        let texts = texts.map(|cell| bytes(cell).unwrap_or_default().to_vec());
        Ok(Some(texts.collect()))
    }

    /// Reads records until there are `rows_max`, or the chunk ends.
    ///
    /// # Errors
    /// If a record has too few or too many fields, or its quotes are wrong.
    pub fn read<M>(
        &self,
        chunk: &mut Chunk<M>,
        cells: &mut Cells,
        rows_max: usize,
    ) -> Result<(), Error> {
        cells.begin(chunk.at);
        let expected = self.columns.len();
        while cells.rows() < rows_max {
            self.skip_blank(chunk);
            let line = chunk.line;
            let mut first = None;
            let found = self.record(chunk, |field, cell| {
                let first = *first.get_or_insert_with(|| cells.push_row(line));
                if let Some(Some(column)) = self.columns.get(field) {
                    cells.set(first, *column, cell);
                }
            })?;
            match found {
                None => break,
                Some(found) if found < expected => {
                    return Err(Error::TooFewFields {
                        line,
                        expected,
                        found,
                    });
                }
                Some(found) if found > expected => {
                    return Err(Error::TooManyFields {
                        line,
                        expected,
                        found,
                    });
                }
                Some(_) => {}
            }
        }
        cells.end = chunk.at;
        Ok(())
    }

    /// Skips lines without a byte, where they are no records.
    fn skip_blank<M>(&self, chunk: &mut Chunk<M>) {
        if self.columns.len() == 1 {
            return;
        }
        while let Some(b'\n' | b'\r') = chunk.bytes.get(chunk.at) {
            let ends_line = ends_line(&chunk.bytes, chunk.at);
            chunk.line = chunk.line.saturating_add(u64::from(ends_line));
            chunk.at = chunk.at.saturating_add(1);
        }
    }

    /// Reads one record, and hands on its fields; gives their number, `None` at the end.
    #[inline]
    fn record<M>(
        &self,
        chunk: &mut Chunk<M>,
        mut take: impl FnMut(usize, Cell),
    ) -> Result<Option<usize>, Error> {
        self.skip_blank(chunk);
        if chunk.is_read() {
            return Ok(None);
        }
        let line = chunk.line;
        let mut field: usize = 0;
        loop {
            let start = chunk.at;
            let cell = match chunk.bytes.get(start) {
                Some(b'"') => self.quoted(chunk, line, field)?,
                _ => {
                    let rest = chunk.bytes.get(start..).unwrap_or_default();
                    let len = memchr3(self.delimiter, b'\n', b'\r', rest).unwrap_or(rest.len());
                    chunk.at = start.saturating_add(len);
                    cell_of(start, chunk.at)
                }
            };
            take(field, cell);
            field = field.saturating_add(1);
            let end = chunk.bytes.get(chunk.at).copied();
            chunk.at = chunk.at.saturating_add(usize::from(end.is_some()));
            match end {
                Some(b'\r') => {
                    let has_feed = chunk.bytes.get(chunk.at) == Some(&b'\n');
                    chunk.at = chunk.at.saturating_add(usize::from(has_feed));
                    chunk.line = chunk.line.saturating_add(1);
                    return Ok(Some(field));
                }
                Some(b'\n') => {
                    chunk.line = chunk.line.saturating_add(1);
                    return Ok(Some(field));
                }
                None => return Ok(Some(field)),
                Some(_) => {}
            }
        }
    }

    /// A field in quotes; what was doubled in it is made single where it stands.
    fn quoted<M>(&self, chunk: &mut Chunk<M>, line: u64, field: usize) -> Result<Cell, Error> {
        let start = chunk.at.saturating_add(1);
        let (mut read, mut written) = (start, start);
        loop {
            let rest = chunk.bytes.get(read..).unwrap_or_default();
            let Some(found) = memchr3(b'"', b'\n', b'\r', rest) else {
                return Err(Error::Unterminated {
                    line,
                    what: "a quote",
                });
            };
            let is_quote = rest.get(found) == Some(&b'"');
            let behind = read.saturating_add(found).saturating_add(1);
            let is_doubled = is_quote && chunk.bytes.get(behind) == Some(&b'"');
            let is_end = is_quote && !is_doubled;
            let ends_line = !is_quote && ends_line(&chunk.bytes, behind.saturating_sub(1));
            // Up to the end, or with the end of the line, or with the first of two quotes.
            let until = behind.saturating_sub(usize::from(is_end));
            if written < read {
                chunk.bytes.copy_within(read..until, written);
            }
            written = written.saturating_add(until.saturating_sub(read));
            if is_end {
                // What was doubled leaves room, which is to be text too.
                let gap = chunk.bytes.get_mut(written..until).unwrap_or_default();
                gap.fill(b' ');
                chunk.at = behind;
                break;
            }
            chunk.line = chunk.line.saturating_add(u64::from(ends_line));
            read = behind.saturating_add(usize::from(is_doubled));
        }
        match chunk.bytes.get(chunk.at) {
            None | Some(b'\n' | b'\r') => Ok(cell_of(start, written)),
            Some(byte) if *byte == self.delimiter => Ok(cell_of(start, written)),
            Some(_) => Err(Error::TextAfterQuote {
                line,
                field: field.saturating_add(1),
            }),
        }
    }
}

fn cell_of(start: usize, end: usize) -> Cell {
    let kind = match start == end {
        true => Kind::Null,
        false => Kind::Plain,
    };
    Cell::new(start, end, kind)
}
