//! Reads the values of JSON objects, one object a record.
//!
//! The keys of an object are the names of columns. A value that is an object or an array stays as
//! it is written; strings are unescaped where they stand, which never makes them longer. A key that
//! stands twice in an object has its last value, as in a JSON document of MySQL.
//!
//! Most objects of a file have the same keys in the same order: a key is first compared with the
//! one that stood in its place in the record before.
//!
//! **Source**: RFC 8259. Strings may hold control characters as they are.

use std::collections::HashMap;

use memchr::{memchr_iter, memchr2};

use crate::NAME_CHARACTERS_MAX;
use crate::cells::{Cell, Cells, Kind};
use crate::chunk::Chunk;
use crate::error::Error;

/// Brackets within brackets: what MySQL takes.
const DEPTH_MAX: usize = 100;
/// Characters of a key that an error shows.
const SHOWN_CHARACTERS: usize = 64;

/// Reads the values of objects.
#[derive(Clone, Debug)]
pub struct JsonReader {
    /// The names of keys, and the column that each becomes.
    keys: Vec<(String, Option<usize>)>,
    by_name: HashMap<String, usize>,
    /// For the place of a key in the record before, its number; for as many places as there are
    /// keys, however often a record repeats them.
    order: Vec<usize>,
    /// How many columns there may be, where an unknown key becomes a new one.
    columns_max: Option<usize>,
}

impl JsonReader {
    /// A reader of objects whose keys become these columns; those that become none are only
    /// looked at, and any other key is an error.
    pub fn new(keys: Vec<(String, Option<usize>)>) -> JsonReader {
        let names = keys.iter().enumerate();
        let by_name = names.map(|(number, (name, _))| (name.clone(), number));
        JsonReader {
            by_name: by_name.collect(),
            keys,
            order: Vec::new(),
            columns_max: None,
        }
    }

    /// A reader that makes a column of each key that it meets, at most so many.
    pub fn discovering(columns_max: usize) -> JsonReader {
        JsonReader {
            columns_max: Some(columns_max),
            ..JsonReader::new(Vec::new())
        }
    }

    /// The names of the keys so far, in the order in which they were met.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|(name, _)| name.as_str())
    }

    /// Reads objects until there are `rows_max`, or the chunk ends. One that discovers columns
    /// reads a single object at a time, since its rows have different widths.
    ///
    /// # Errors
    /// If the text is no object, or has an unknown key, or one too many or too long.
    pub fn read<M>(
        &mut self,
        chunk: &mut Chunk<M>,
        cells: &mut Cells,
        rows_max: usize,
    ) -> Result<(), Error> {
        cells.begin(chunk.at);
        let rows_max = match self.columns_max {
            Some(_) => rows_max.min(1),
            None => rows_max,
        };
        while cells.rows() < rows_max {
            let mut text = Text::of(chunk);
            text.skip_space();
            if text.peek().is_none() {
                text.keep();
                break;
            }
            self.object(&mut text, cells)?;
            text.keep();
        }
        cells.end = chunk.at;
        Ok(())
    }

    fn object<M>(&mut self, text: &mut Text<'_, M>, cells: &mut Cells) -> Result<(), Error> {
        text.begins = text.line;
        let first = cells.push_row(text.line);
        match text.peek() {
            Some(b'[') => return Err(text.wrong("one object a line, not an array")),
            Some(b'{') => text.skip(1),
            _ => return Err(text.wrong("an object")),
        }
        text.skip_space();
        if text.peek() == Some(b'}') {
            text.skip(1);
            return Ok(());
        }
        for place in 0_usize.. {
            text.skip_space();
            let key = text.string("a key")?;
            text.skip_space();
            text.expect(b':', "':' behind a key")?;
            text.skip_space();
            let number = self.number_of(text, key, place, cells)?;
            let value = text.value()?;
            if let Some((_, Some(column))) = self.keys.get(number) {
                cells.set(first, *column, value);
            }
            text.skip_space();
            match text.peek() {
                Some(b',') => text.skip(1),
                Some(b'}') => {
                    text.skip(1);
                    break;
                }
                _ => return Err(text.wrong("',' or '}' behind a value")),
            }
        }
        Ok(())
    }

    /// The number of a key, which stands in that place of its object.
    fn number_of<M>(
        &mut self,
        text: &Text<'_, M>,
        key: Cell,
        place: usize,
        cells: &mut Cells,
    ) -> Result<usize, Error> {
        let bytes = text.bytes(key);
        if let Some(number) = self.order.get(place)
            && let Some((name, _)) = self.keys.get(*number)
            && name.as_bytes() == bytes
        {
            return Ok(*number);
        }
        let name = match std::str::from_utf8(bytes) {
            Ok(name) => name,
            Err(_) => {
                return Err(Error::NotUtf8 {
                    line: text.begins,
                    bytes: bytes.iter().take(32).copied().collect(),
                });
            }
        };
        let number = match (self.by_name.get(name), self.columns_max) {
            (Some(number), _) => *number,
            (None, Some(columns_max)) => {
                let number = self.keys.len();
                if number >= columns_max {
                    return Err(Error::TooManyColumns {
                        line: text.begins,
                        limit: columns_max,
                    });
                }
                if name.chars().nth(NAME_CHARACTERS_MAX).is_some() {
                    return Err(Error::NameTooLong {
                        line: text.begins,
                        key: shown(name),
                    });
                }
                self.by_name.insert(name.to_owned(), number);
                self.keys.push((name.to_owned(), Some(number)));
                // The row that is being read is the only one.
                cells.cells.push(Cell::default());
                cells.width = self.keys.len();
                number
            }
            (None, None) => {
                return Err(Error::UnknownKey {
                    line: text.begins,
                    key: shown(name),
                });
            }
        };
        self.order.truncate(place);
        if self.order.len() == place && place < self.keys.len() {
            self.order.push(number);
        }
        Ok(number)
    }
}

/// How a key begins.
fn shown(key: &str) -> String {
    key.chars().take(SHOWN_CHARACTERS).collect()
}

/// A place in the text of a chunk.
struct Text<'a, M> {
    chunk: &'a mut Chunk<M>,
    at: usize,
    line: u64,
    /// The line on which the object begins.
    begins: u64,
}

impl<'a, M> Text<'a, M> {
    fn of(chunk: &'a mut Chunk<M>) -> Text<'a, M> {
        Text {
            at: chunk.at,
            line: chunk.line,
            begins: chunk.line,
            chunk,
        }
    }

    /// The chunk stands here from now on.
    fn keep(self) {
        self.chunk.at = self.at;
        self.chunk.line = self.line;
    }

    fn peek(&self) -> Option<u8> {
        self.chunk.bytes.get(self.at).copied()
    }

    fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count);
    }

    fn bytes(&self, cell: Cell) -> &[u8] {
        let range = cell.start as usize..cell.end as usize;
        self.chunk.bytes.get(range).unwrap_or_default()
    }

    fn rest(&self) -> &[u8] {
        self.chunk.bytes.get(self.at..).unwrap_or_default()
    }

    fn wrong(&self, expected: &'static str) -> Error {
        Error::BadJson {
            line: self.begins,
            expected,
        }
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), Error> {
        match self.peek() == Some(byte) {
            true => {
                self.skip(1);
                Ok(())
            }
            false => Err(self.wrong(what)),
        }
    }

    fn skip_space(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\n' | b'\r')) = self.peek() {
            self.line = self.line.saturating_add(u64::from(byte == b'\n'));
            self.skip(1);
        }
    }

    fn value(&mut self) -> Result<Cell, Error> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => self.string("a value"),
            Some(b'{' | b'[') => {
                self.nested()?;
                Ok(Cell::new(start, self.at, Kind::Nested))
            }
            _ => match self.scalar()? {
                Kind::Null => Ok(Cell::default()),
                kind => Ok(Cell::new(start, self.at, kind)),
            },
        }
    }

    /// A number or a word.
    fn scalar(&mut self) -> Result<Kind, Error> {
        for (word, kind) in [
            (&b"null"[..], Kind::Null),
            (b"true", Kind::Plain),
            (b"false", Kind::Plain),
        ] {
            if self.rest().starts_with(word) {
                self.skip(word.len());
                return self.end_of_scalar(kind);
            }
        }
        match number_len(self.rest()) {
            0 => Err(self.wrong("a value")),
            len => {
                self.skip(len);
                self.end_of_scalar(Kind::Plain)
            }
        }
    }

    fn end_of_scalar(&self, kind: Kind) -> Result<Kind, Error> {
        match self.peek() {
            None | Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b'}' | b']') => Ok(kind),
            Some(_) => Err(self.wrong("the end of a value")),
        }
    }

    /// A string, unescaped where it stands.
    fn string(&mut self, what: &'static str) -> Result<Cell, Error> {
        self.expect(b'"', what)?;
        let start = self.at;
        let Some(end) = self.plain_end() else {
            return self.escaped(start);
        };
        let cell = Cell::new(start, end, Kind::Text);
        self.count_lines(start, end);
        self.at = end.saturating_add(1);
        Ok(cell)
    }

    /// The end of a string that has no escapes.
    fn plain_end(&self) -> Option<usize> {
        let rest = self.rest();
        let found = memchr2(b'"', b'\\', rest)?;
        let is_quote = rest.get(found) == Some(&b'"');
        is_quote.then(|| self.at.saturating_add(found))
    }

    fn escaped(&mut self, start: usize) -> Result<Cell, Error> {
        let mut written = start;
        loop {
            let from = self.at;
            let (until, character) = self.string_part()?;
            self.chunk.bytes.copy_within(from..until, written);
            written = written.saturating_add(until.saturating_sub(from));
            let Some(character) = character else {
                // What was escaped leaves room, which is to be text too.
                let gap = self.chunk.bytes.get_mut(written..until).unwrap_or_default();
                gap.fill(b' ');
                return Ok(Cell::new(start, written, Kind::Text));
            };
            let mut buffer = [0; 4];
            let encoded = character.encode_utf8(&mut buffer).as_bytes();
            let end = written.saturating_add(encoded.len());
            if let Some(place) = self.chunk.bytes.get_mut(written..end) {
                place.copy_from_slice(encoded);
            }
            written = end;
        }
    }

    /// Reads a string on to its next escape, or to its end: where that begins, and the character
    /// that the escape means, `None` at the end.
    fn string_part(&mut self) -> Result<(usize, Option<char>), Error> {
        let rest = self.rest();
        let Some(found) = memchr2(b'"', b'\\', rest) else {
            return Err(self.wrong("the end of a string"));
        };
        let is_quote = rest.get(found) == Some(&b'"');
        let until = self.at.saturating_add(found);
        self.count_lines(self.at, until);
        self.at = until.saturating_add(1);
        if is_quote {
            return Ok((until, None));
        }
        match self.escape() {
            Some(character) => Ok((until, Some(character))),
            None => Err(self.wrong("an escape in a string")),
        }
    }

    /// What an escape means, whose backslash was read.
    fn escape(&mut self) -> Option<char> {
        let byte = self.peek()?;
        self.skip(1);
        Some(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.four_digits()?;
                match high {
                    0xD800..0xDC00 => {
                        if !self.rest().starts_with(b"\\u") {
                            return None;
                        }
                        self.skip(2);
                        let pair = [high, self.four_digits()?];
                        char::decode_utf16(pair).next()?.ok()?
                    }
                    _ => char::from_u32(u32::from(high))?,
                }
            }
            _ => return None,
        })
    }

    fn four_digits(&mut self) -> Option<u16> {
        let digits = self.rest().get(..4)?;
        let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
        let text = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
        let number = u16::from_str_radix(text, 16).ok()?;
        self.skip(4);
        Some(number)
    }

    fn count_lines(&mut self, from: usize, until: usize) {
        let bytes = self.chunk.bytes.get(from..until).unwrap_or_default();
        let lines = memchr_iter(b'\n', bytes).count() as u64;
        self.line = self.line.saturating_add(lines);
    }

    /// An object or an array, which is looked at and left as it is.
    fn nested(&mut self) -> Result<(), Error> {
        // What is open: true for an object.
        let mut open: Vec<bool> = Vec::new();
        loop {
            self.skip_space();
            // A value, or the beginning of one.
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    if open.len() >= DEPTH_MAX {
                        return Err(self.wrong("at most 100 brackets within each other"));
                    }
                    self.skip(1);
                    let is_object = bracket == b'{';
                    self.skip_space();
                    let close = if is_object { b'}' } else { b']' };
                    if self.peek() == Some(close) {
                        self.skip(1);
                    } else {
                        open.push(is_object);
                        if is_object {
                            self.nested_key()?;
                        }
                        continue;
                    }
                }
                Some(b'"') => self.nested_string()?,
                _ => {
                    self.scalar()?;
                }
            }
            // What follows a value.
            loop {
                let Some(is_object) = open.last().copied() else {
                    return Ok(());
                };
                self.skip_space();
                match (self.peek(), is_object) {
                    (Some(b','), _) => {
                        self.skip(1);
                        if is_object {
                            self.nested_key()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => {
                        self.skip(1);
                        open.pop();
                    }
                    (_, true) => return Err(self.wrong("',' or '}' behind a value")),
                    (_, false) => return Err(self.wrong("',' or ']' behind a value")),
                }
            }
        }
    }

    fn nested_key(&mut self) -> Result<(), Error> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => self.nested_string()?,
            _ => return Err(self.wrong("a key")),
        }
        self.skip_space();
        self.expect(b':', "':' behind a key")
    }

    fn nested_string(&mut self) -> Result<(), Error> {
        self.skip(1);
        while self.string_part()?.1.is_some() {}
        Ok(())
    }
}

/// The bytes of the number that a text begins with; 0 if it begins with none.
fn number_len(text: &[u8]) -> usize {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        let other = rest.iter().position(|byte| !byte.is_ascii_digit());
        other.unwrap_or(rest.len())
    };
    let at = |place: usize| text.get(place).copied();
    let mut len = usize::from(at(0) == Some(b'-'));
    let whole = digits(len);
    if whole == 0 || whole > 1 && at(len) == Some(b'0') {
        return 0;
    }
    len = len.saturating_add(whole);
    if at(len) == Some(b'.') {
        let from = len.saturating_add(1);
        match digits(from) {
            0 => return 0,
            count => len = from.saturating_add(count),
        }
    }
    if let Some(b'e' | b'E') = at(len) {
        let mut from = len.saturating_add(1);
        from = from.saturating_add(usize::from(matches!(at(from), Some(b'+' | b'-'))));
        match digits(from) {
            0 => return 0,
            count => len = from.saturating_add(count),
        }
    }
    len
}
