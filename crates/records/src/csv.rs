//! Reads the fields of CSV records.
//!
//! A field in quotes holds delimiters and line feeds; a quote in it is doubled, or stands behind
//! another sign, and nothing but the end of the field may follow the closing one. Elsewhere a quote
//! is a byte like any other. An empty field is NULL, unless other texts are. Lines end in LF, CRLF
//! or CR. A blank line is no record, but in a file of
//! one column it is one: an empty field.
//!
//! **Source**: RFC 4180; in what it leaves open, DuckDB's reader in strict mode.

use std::sync::Arc;

use memchr::memchr3;

use crate::cells::{Cell, Cells, Kind};
use crate::chunk::Chunk;
use crate::error::Error;
use crate::lines::ends_line;
use crate::split::CsvSyntax;

/// Reads the fields of records.
#[derive(Clone, Debug)]
pub struct CsvReader {
    syntax: CsvSyntax,
    /// For each field of a record, the column that it becomes.
    columns: Vec<Option<usize>>,
    /// The fields that are NULL, if they are others than empty ones.
    nulls: Option<NullTexts>,
}

/// The fields of a CSV file that are NULL.
pub type NullTexts = Arc<[Box<[u8]>]>;

impl CsvReader {
    /// A reader of records whose fields become these columns; those that become none are only
    /// looked at.
    pub fn new(syntax: CsvSyntax, columns: Vec<Option<usize>>) -> CsvReader {
        CsvReader {
            syntax,
            columns,
            nulls: None,
        }
    }

    /// The same where these fields are NULL and no others, in quotes or not.
    #[must_use]
    pub fn with_nulls(self, nulls: Option<NullTexts>) -> CsvReader {
        CsvReader { nulls, ..self }
    }

    /// The next record of a chunk as texts, at most `columns_max`: a header. `None` at the end of
    /// the chunk.
    ///
    /// # Errors
    /// If there are more, a quote is not closed, or something follows it.
    pub fn header<M>(
        syntax: CsvSyntax,
        chunk: &mut Chunk<M>,
        columns_max: usize,
    ) -> Result<Option<Vec<Vec<u8>>>, Error> {
        let reader = CsvReader::new(syntax, Vec::new());
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
                Some(byte) if self.syntax.quote == Some(*byte) => {
                    self.quoted(chunk, *byte, line, field)?
                }
                _ => {
                    let rest = chunk.bytes.get(start..).unwrap_or_default();
                    let len = memchr3(self.syntax.delimiter, b'\n', b'\r', rest);
                    chunk.at = start.saturating_add(len.unwrap_or(rest.len()));
                    self.cell_of(chunk, start, chunk.at)
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

    /// A field in quotes; what was doubled or escaped in it is made single where it stands.
    fn quoted<M>(
        &self,
        chunk: &mut Chunk<M>,
        quote: u8,
        line: u64,
        field: usize,
    ) -> Result<Cell, Error> {
        let start = chunk.at.saturating_add(1);
        let (mut read, mut written) = (start, start);
        loop {
            let rest = chunk.bytes.get(read..).unwrap_or_default();
            let Some((found, byte)) = self.next_sign(quote, rest) else {
                return Err(Error::Unterminated {
                    line,
                    what: "a quote",
                });
            };
            let behind = read.saturating_add(found).saturating_add(1);
            let next = chunk.bytes.get(behind).copied();
            let is_escaped = self.syntax.is_escaped(byte, next);
            let is_end = byte == quote && !is_escaped;
            let ends_line =
                matches!(byte, b'\n' | b'\r') && ends_line(&chunk.bytes, behind.saturating_sub(1));
            // Up to the end, or with the end of the line, or with the first of two signs.
            let until = behind.saturating_sub(usize::from(is_end));
            if written < read {
                chunk.bytes.copy_within(read..until, written);
            }
            written = written.saturating_add(until.saturating_sub(read));
            if let Some(next) = next.filter(|_| is_escaped)
                && let Some(sign) = chunk.bytes.get_mut(written.saturating_sub(1))
            {
                // The second one is meant.
                *sign = next;
            }
            if is_end {
                // What was doubled leaves room, which is to be text too.
                let gap = chunk.bytes.get_mut(written..until).unwrap_or_default();
                gap.fill(b' ');
                chunk.at = behind;
                break;
            }
            chunk.line = chunk.line.saturating_add(u64::from(ends_line));
            read = behind.saturating_add(usize::from(is_escaped));
        }
        match chunk.bytes.get(chunk.at) {
            None | Some(b'\n' | b'\r') => Ok(self.cell_of(chunk, start, written)),
            Some(byte) if *byte == self.syntax.delimiter => Ok(self.cell_of(chunk, start, written)),
            Some(_) => Err(Error::TextAfterQuote {
                line,
                field: field.saturating_add(1),
            }),
        }
    }

    /// The next byte inside quotes that is more than text, and its place.
    fn next_sign(&self, quote: u8, rest: &[u8]) -> Option<(usize, u8)> {
        let found = match self.syntax.escape.filter(|escape| *escape != quote) {
            None => memchr3(quote, b'\n', b'\r', rest),
            Some(escape) => {
                let signs = [quote, escape, b'\n', b'\r'];
                rest.iter().position(|byte| signs.contains(byte))
            }
        };
        found.and_then(|found| Some((found, *rest.get(found)?)))
    }

    fn cell_of<M>(&self, chunk: &Chunk<M>, start: usize, end: usize) -> Cell {
        let is_null = match &self.nulls {
            None => start == end,
            Some(nulls) => {
                let text = chunk.bytes.get(start..end).unwrap_or_default();
                nulls.iter().any(|null| null.as_ref() == text)
            }
        };
        let kind = match is_null {
            true => Kind::Null,
            false => Kind::Plain,
        };
        Cell::new(start, end, kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChunkReader, Format, Limits, Unlimited};

    /// The records of a file of two columns; `~` is NULL.
    fn records(
        file: &str,
        syntax: CsvSyntax,
        nulls: Option<&[&str]>,
        skipped: u64,
    ) -> Result<Vec<String>, Error> {
        let limits = Limits::default();
        let chunks = ChunkReader::new(file.as_bytes(), Format::Csv(syntax), limits, Unlimited);
        let mut chunks = chunks.without_lines(skipped);
        let nulls = nulls.map(|texts| texts.iter().map(|text| text.as_bytes().into()).collect());
        let reader = CsvReader::new(syntax, vec![Some(0), Some(1)]).with_nulls(nulls);
        let mut cells = Cells::new(2);
        let mut records = Vec::new();
        while let Some(mut chunk) = chunks.next_chunk()? {
            reader.read(&mut chunk, &mut cells, usize::MAX)?;
            let texts = cells.texts(&chunk)?;
            for row in 0..cells.rows() {
                let fields = (0..2).map(|column| match cells.column(column).nth(row) {
                    Some(cell) if cell.kind != Kind::Null => texts.get(cell).to_owned(),
                    _ => "~".to_owned(),
                });
                let fields: Vec<String> = fields.collect();
                records.push(format!("{}: {}", cells.line(row), fields.join("|")));
            }
        }
        Ok(records)
    }

    const SEMICOLON: CsvSyntax = CsvSyntax::delimited(b';');

    #[track_caller]
    fn check(file: &str, syntax: CsvSyntax, nulls: Option<&[&str]>, expect: &[&str]) {
        let found = records(file, syntax, nulls, 0).expect(file);
        assert_eq!(found, expect, "{file:?}");
    }

    #[test]
    fn signs_may_be_others() {
        check(
            "a,b;\"c;\"\"\n\"\n;d\n",
            SEMICOLON,
            None,
            &["1: a,b|c;\"\n", "3: ~|d"],
        );
        let escaped = CsvSyntax {
            escape: Some(b'\\'),
            ..SEMICOLON
        };
        check(
            "\"a\\\"\\\\\\n\r\n;\";\"\"\nb\\;c\n",
            escaped,
            None,
            &["1: a\"\\\\n\r\n;|~", "3: b\\|c"],
        );
        let wrong = records("\"a\"\"b\";c\n", escaped, None, 0);
        assert!(matches!(
            wrong,
            Err(Error::TextAfterQuote { line: 1, field: 1 })
        ));
        let single = CsvSyntax {
            quote: Some(b'\''),
            escape: Some(b'\''),
            ..SEMICOLON
        };
        check("'a''b';\"\n", single, None, &["1: a'b|\""]);
        let bare = CsvSyntax {
            quote: None,
            escape: None,
            ..SEMICOLON
        };
        check(
            "\"a\";\"\n'b;\"\"\n",
            bare,
            None,
            &["1: \"a\"|\"", "2: 'b|\"\""],
        );
    }

    #[test]
    fn null_has_its_texts() {
        let nulls: Option<&[&str]> = Some(&["NA", "-"]);
        check(
            "NA;-\n;\"NA\"\nN;--\n",
            SEMICOLON,
            nulls,
            &["1: ~|~", "2: |~", "3: N|--"],
        );
        check("a;\"\"\n;b\n", SEMICOLON, None, &["1: a|~", "2: ~|b"]);
    }

    #[test]
    fn lines_in_front_are_skipped() {
        for ends in ["\n", "\r\n", "\r"] {
            let file = ["one \"", "two", "", "a;b", "c;d", ""].join(ends);
            let found = records(&file, SEMICOLON, None, 3).expect("two records");
            assert_eq!(found, ["4: a|b", "5: c|d"], "{ends:?}");
            let found = records(&file, SEMICOLON, None, 9).expect("nothing");
            assert!(found.is_empty(), "{ends:?}");
        }
    }
}
