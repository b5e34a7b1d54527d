//! Finds the end of the last whole record of a buffer.
//!
//! Looks at no more than quotes, brackets and ends of lines; whether a record makes sense is found
//! out when its fields are read. What was looked at is not looked at again when a buffer grows.

use memchr::{memchr, memchr2, memrchr2};

use crate::array::{ArrayPlace, Misplaced};

/// The format of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Fields between delimiters, in quotes where they hold delimiters, quotes or line feeds.
    Csv(CsvSyntax),
    /// Objects with white space between them, or one array of objects.
    Json,
}

/// The signs of a CSV file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsvSyntax {
    /// What stands between fields.
    pub delimiter: u8,
    /// What stands around a field that holds delimiters or line feeds.
    pub quote: Option<u8>,
    /// What stands in front of a quote, or of itself, inside quotes: mostly the quote.
    pub escape: Option<u8>,
}

impl CsvSyntax {
    /// Fields between these delimiters; quotes are `"`, doubled inside of quotes.
    pub const fn delimited(delimiter: u8) -> CsvSyntax {
        CsvSyntax {
            delimiter,
            quote: Some(b'"'),
            escape: Some(b'"'),
        }
    }

    /// Whether `byte` and the one behind it, inside quotes, stand for the second one alone.
    pub(crate) fn is_escaped(self, byte: u8, behind: Option<u8>) -> bool {
        let is_sign = behind.is_some() && (behind == self.quote || behind == self.escape);
        self.escape == Some(byte) && is_sign
    }
}

/// Where the scan of a buffer stands.
#[derive(Debug)]
pub(crate) struct Splitter {
    format: Format,
    /// Bytes of the buffer that were looked at.
    scanned: usize,
    is_in_quotes: bool,
    /// Brackets of JSON that are open, but for that of the array of all objects.
    depth: usize,
    /// Where a file of JSON stands between its objects.
    array: ArrayPlace,
}

impl Splitter {
    pub(crate) fn new(format: Format) -> Splitter {
        Splitter {
            format,
            scanned: 0,
            is_in_quotes: false,
            depth: 0,
            array: ArrayPlace::default(),
        }
    }

    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// Whether the scan stands inside quotes.
    pub(crate) fn is_in_quotes(&self) -> bool {
        self.is_in_quotes
    }

    /// What the last record lacks the end of.
    pub(crate) fn unfinished(&self) -> &'static str {
        match (self.is_in_quotes, self.format) {
            (true, Format::Csv(_)) => "a quote",
            (true, Format::Json) => "a string",
            (false, _) if self.depth == 0 => "an array",
            (false, _) => "an object",
        }
    }

    /// Whether a file may end here.
    pub(crate) fn may_end(&self) -> bool {
        !self.is_in_quotes && self.depth == 0 && self.array.may_end()
    }

    /// The end of the last whole record; 0 if there is none. The last record of a file needs no
    /// line feed. What stands around the objects of an array is made white space.
    ///
    /// # Errors
    /// What does not belong between the objects of an array.
    pub(crate) fn scan(&mut self, buffer: &mut [u8], is_last: bool) -> Result<usize, Misplaced> {
        let cut = match self.format {
            Format::Csv(syntax) => self.scan_csv(buffer, syntax, is_last),
            Format::Json => self.scan_json(buffer, is_last)?,
        };
        Ok(match is_last && self.may_end() {
            true => buffer.len(),
            false => cut,
        })
    }

    /// The buffer begins anew behind `cut`.
    pub(crate) fn cut(&mut self, cut: usize) {
        self.scanned = self.scanned.saturating_sub(cut);
    }

    fn scan_csv(&mut self, buffer: &[u8], syntax: CsvSyntax, is_last: bool) -> usize {
        let mut cut = 0;
        while let Some(rest) = buffer.get(self.scanned..)
            && !rest.is_empty()
        {
            if let Some(quote) = syntax.quote
                && self.is_in_quotes
            {
                let escape = syntax.escape.unwrap_or(quote);
                let Some(found) = memchr2(quote, escape, rest) else {
                    self.scanned = buffer.len();
                    break;
                };
                let byte = rest.get(found).copied().unwrap_or(quote);
                let behind = self.scanned.saturating_add(found).saturating_add(1);
                match buffer.get(behind) {
                    // What the escape belongs to is not known yet.
                    None if !is_last && syntax.escape == Some(byte) => {
                        self.scanned = behind.saturating_sub(1);
                        break;
                    }
                    next if syntax.is_escaped(byte, next.copied()) => {
                        self.scanned = behind.saturating_add(1);
                    }
                    _ => {
                        self.is_in_quotes = byte != quote;
                        self.scanned = behind;
                    }
                }
                continue;
            }
            let quote = syntax.quote.and_then(|quote| memchr(quote, rest));
            let plain = rest.get(..quote.unwrap_or(rest.len())).unwrap_or_default();
            if let Some(end) = last_line_end(plain, quote.is_some() || is_last) {
                cut = self.scanned.saturating_add(end);
            }
            let Some(quote) = quote else {
                // A carriage return at the end is looked at again with what follows it.
                let is_open = !is_last && plain.last() == Some(&b'\r');
                self.scanned = buffer.len().saturating_sub(usize::from(is_open));
                break;
            };
            let at = self.scanned.saturating_add(quote);
            // Only a quote at the beginning of a field opens.
            let before = at.checked_sub(1).and_then(|before| buffer.get(before));
            self.is_in_quotes = match before {
                None => true,
                Some(before) => *before == syntax.delimiter || matches!(before, b'\n' | b'\r'),
            };
            self.scanned = at.saturating_add(1);
        }
        cut
    }

    fn scan_json(&mut self, buffer: &mut [u8], is_last: bool) -> Result<usize, Misplaced> {
        let mut cut = 0;
        while let Some(rest) = buffer.get(self.scanned..)
            && !rest.is_empty()
        {
            if self.depth == 0 && self.array != ArrayPlace::None {
                self.scanned = self.array.skip(buffer, self.scanned)?;
                cut = self.scanned;
                if self.array == ArrayPlace::Within {
                    // The bracket of an object.
                    self.array = ArrayPlace::Behind;
                    self.depth = 1;
                    self.scanned = self.scanned.saturating_add(1);
                }
                continue;
            }
            if self.is_in_quotes {
                let Some(found) = memchr2(b'"', b'\\', rest) else {
                    self.scanned = buffer.len();
                    break;
                };
                let behind = self.scanned.saturating_add(found).saturating_add(1);
                self.scanned = behind;
                if rest.get(found) == Some(&b'"') {
                    self.is_in_quotes = false;
                } else if behind < buffer.len() {
                    // Whatever was escaped.
                    self.scanned = behind.saturating_add(1);
                } else {
                    if !is_last {
                        self.scanned = behind.saturating_sub(1);
                    }
                    break;
                }
                continue;
            }
            let special = |byte: &u8| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']' | b'\n');
            let Some(found) = rest.iter().position(special) else {
                self.scanned = buffer.len();
                break;
            };
            self.scanned = self.scanned.saturating_add(found).saturating_add(1);
            match rest.get(found) {
                Some(b'"') => self.is_in_quotes = true,
                Some(b'{' | b'[') => self.depth = self.depth.saturating_add(1),
                Some(b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        cut = self.scanned;
                    }
                }
                // What is no object ends with its line.
                _ if self.depth == 0 => cut = self.scanned,
                _ => {}
            }
        }
        Ok(cut)
    }
}

/// The end of the last line of a text without quotes. A carriage return that is the last byte may
/// be half of an end, unless it is known what follows.
fn last_line_end(plain: &[u8], is_followed: bool) -> Option<usize> {
    let last = memrchr2(b'\n', b'\r', plain)?;
    let behind = last.saturating_add(1);
    if plain.get(last) == Some(&b'\r') && behind == plain.len() && !is_followed {
        let before = plain.get(..last)?;
        return memrchr2(b'\n', b'\r', before).map(|at| at.saturating_add(1));
    }
    Some(behind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: Format = Format::Csv(CsvSyntax::delimited(b','));

    #[track_caller]
    fn check(format: Format, buffer: &str, expect: &str) {
        let mut bytes = buffer.as_bytes().to_vec();
        let mut splitter = Splitter::new(format);
        let cut = splitter.scan(&mut bytes, false).expect(buffer);
        assert_eq!(&buffer[..cut], expect, "{buffer:?}");
        // The same byte by byte.
        let mut bytes = buffer.as_bytes().to_vec();
        let mut splitter = Splitter::new(format);
        let mut best = 0;
        for len in 0..=buffer.len() {
            best = best.max(splitter.scan(&mut bytes[..len], false).expect(buffer));
        }
        assert_eq!(&buffer[..best], expect, "{buffer:?} byte by byte");
    }

    #[test]
    fn records_of_csv_end_outside_of_quotes() {
        check(CSV, "a,b\nc,d\ne", "a,b\nc,d\n");
        check(CSV, "a\n\"b\nc", "a\n");
        check(CSV, "a\n\"b\n\"\nc", "a\n\"b\n\"\n");
        check(CSV, "\"a\"\"\n\"\nb", "\"a\"\"\n\"\n");
        check(CSV, "\"a\"\"\nb", "");
        check(CSV, "a\"b\nc\"\nd", "a\"b\nc\"\n");
        check(CSV, "a\r\nb\r\n", "a\r\nb\r\n");
        check(CSV, "a\rb\rc", "a\rb\r");
        check(CSV, "a\r\nb\r", "a\r\n");
        check(CSV, "no end", "");
    }

    #[test]
    fn signs_of_csv_may_be_others() {
        let with = |quote, escape| {
            Format::Csv(CsvSyntax {
                delimiter: b';',
                quote,
                escape,
            })
        };
        let escaped = with(Some(b'"'), Some(b'\\'));
        check(escaped, "\"a\\\"\n\"\nb", "\"a\\\"\n\"\n");
        check(escaped, "\"a\\\\\"\nb\"", "\"a\\\\\"\n");
        check(escaped, "\"a\\\"\nb", "");
        check(escaped, "\"a\\n\nb", "");
        check(escaped, "\"a\"\"\n\"\nb", "\"a\"\"\n");
        let single = with(Some(b'\''), Some(b'\''));
        check(single, "'a\n';\"\nb", "'a\n';\"\n");
        check(with(None, None), "\"a\n\"b", "\"a\n");
        check(with(Some(b'"'), None), "\"a\"\"\nb", "\"a\"\"\n");
    }

    #[test]
    fn records_of_json_end_with_their_bracket() {
        check(Format::Json, "{\"a\":1}\n{\"a\"", "{\"a\":1}\n");
        check(Format::Json, "{\"a\":{\"b\":[1]}", "");
        check(Format::Json, "{\"a\":\"}\\\"}\"} {", "{\"a\":\"}\\\"}\"}");
        check(Format::Json, "{\n}\n{\n", "{\n}\n");
        check(Format::Json, "1\n2\n3", "1\n2\n");
    }

    #[test]
    fn the_objects_of_an_array_are_records() {
        check(Format::Json, " [", " [");
        check(Format::Json, "[{\"a\":[1]}, {\"a\"", "[{\"a\":[1]}, ");
        check(Format::Json, "[\n{\"]\": {}}\n]\n", "[\n{\"]\": {}}\n]\n");
        let scanned = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            let mut splitter = Splitter::new(Format::Json);
            let cut = splitter.scan(&mut bytes, true);
            let cut = cut.map(|_| String::from_utf8(bytes).unwrap());
            (cut, splitter.may_end())
        };
        let whole = " {\"a\":1} \n{\"b\":[2,3]} ";
        assert_eq!(
            scanned("[{\"a\":1},\n{\"b\":[2,3]}]"),
            (Ok(whole.to_owned()), true)
        );
        assert_eq!(scanned("[]").0, Ok("  ".to_owned()));
        for (text, at) in [
            ("[1]", 1),
            ("[[{}]]", 1),
            ("[{},]", 4),
            ("[,{}]", 1),
            ("[{} {}]", 4),
            ("[{}] {}", 5),
            ("[{}][", 4),
        ] {
            let found = scanned(text).0;
            assert_eq!(found.map_err(|wrong| wrong.at), Err(at), "{text}");
        }
        for text in ["[", "[{}", "[{},", "[{"] {
            let (found, may_end) = scanned(text);
            assert!(found.is_ok() && !may_end, "{text}");
        }
        assert!(scanned("").1 && scanned(" \n").1);
    }

    #[test]
    fn the_last_record_needs_no_line_feed() {
        let cut = |format: Format, text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            Splitter::new(format).scan(&mut bytes, true).expect(text)
        };
        assert_eq!(cut(CSV, "a\nb"), 3);
        assert_eq!(cut(CSV, "\"a\""), 3);
        assert_eq!(cut(CSV, "a\n\"b"), 2);
        assert_eq!(cut(Format::Json, "{}\n{}"), 5);
        assert_eq!(cut(Format::Json, "{}\n{"), 3);
    }
}
