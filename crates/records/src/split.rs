//! Finds the end of the last whole record of a buffer.
//!
//! Looks at no more than quotes, brackets and ends of lines; whether a record makes sense is found
//! out when its fields are read. What was looked at is not looked at again when a buffer grows.

use memchr::{memchr, memchr2, memrchr2};

/// The format of a text file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Fields between delimiters, in quotes where they hold delimiters, quotes or line feeds.
    Csv {
        /// What stands between fields.
        delimiter: u8,
    },
    /// One object after the other; white space between them.
    Json,
}

/// Where the scan of a buffer stands.
#[derive(Debug)]
pub(crate) struct Splitter {
    format: Format,
    /// Bytes of the buffer that were looked at.
    scanned: usize,
    is_in_quotes: bool,
    /// Brackets of JSON that are open.
    depth: usize,
}

impl Splitter {
    pub(crate) fn new(format: Format) -> Splitter {
        Splitter {
            format,
            scanned: 0,
            is_in_quotes: false,
            depth: 0,
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
            (true, Format::Csv { .. }) => "a quote",
            (true, Format::Json) => "a string",
            (false, _) => "an object",
        }
    }

    /// The end of the last whole record; 0 if there is none. The last record of a file needs no
    /// line feed.
    pub(crate) fn scan(&mut self, buffer: &[u8], is_last: bool) -> usize {
        let cut = match self.format {
            Format::Csv { delimiter } => self.scan_csv(buffer, delimiter, is_last),
            Format::Json => self.scan_json(buffer, is_last),
        };
        match is_last && !self.is_in_quotes && self.depth == 0 {
            true => buffer.len(),
            false => cut,
        }
    }

    /// The buffer begins anew behind `cut`.
    pub(crate) fn cut(&mut self, cut: usize) {
        self.scanned = self.scanned.saturating_sub(cut);
    }

    fn scan_csv(&mut self, buffer: &[u8], delimiter: u8, is_last: bool) -> usize {
        let mut cut = 0;
        while let Some(rest) = buffer.get(self.scanned..)
            && !rest.is_empty()
        {
            let quote = memchr(b'"', rest);
            if self.is_in_quotes {
                let Some(quote) = quote else {
                    self.scanned = buffer.len();
                    break;
                };
                let behind = self.scanned.saturating_add(quote).saturating_add(1);
                match buffer.get(behind) {
                    Some(b'"') => self.scanned = behind.saturating_add(1),
                    // Whether the quote is doubled is not known yet.
                    None if !is_last => {
                        self.scanned = behind.saturating_sub(1);
                        break;
                    }
                    _ => {
                        self.is_in_quotes = false;
                        self.scanned = behind;
                    }
                }
                continue;
            }
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
                Some(before) => *before == delimiter || matches!(before, b'\n' | b'\r'),
            };
            self.scanned = at.saturating_add(1);
        }
        cut
    }

    fn scan_json(&mut self, buffer: &[u8], is_last: bool) -> usize {
        let mut cut = 0;
        while let Some(rest) = buffer.get(self.scanned..)
            && !rest.is_empty()
        {
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
        cut
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

    const CSV: Format = Format::Csv { delimiter: b',' };

    #[track_caller]
    fn check(format: Format, buffer: &str, expect: &str) {
        let mut splitter = Splitter::new(format);
        let cut = splitter.scan(buffer.as_bytes(), false);
        assert_eq!(&buffer[..cut], expect, "{buffer:?}");
        // The same byte by byte.
        let mut splitter = Splitter::new(format);
        let mut best = 0;
        for len in 0..=buffer.len() {
            best = best.max(splitter.scan(&buffer.as_bytes()[..len], false));
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
    fn records_of_json_end_with_their_bracket() {
        check(Format::Json, "{\"a\":1}\n{\"a\"", "{\"a\":1}\n");
        check(Format::Json, "{\"a\":{\"b\":[1]}", "");
        check(Format::Json, "{\"a\":\"}\\\"}\"} {", "{\"a\":\"}\\\"}\"}");
        check(Format::Json, "{\n}\n{\n", "{\n}\n");
        check(Format::Json, "1\n2\n3", "1\n2\n");
    }

    #[test]
    fn the_last_record_needs_no_line_feed() {
        let cut = |text: &str| Splitter::new(CSV).scan(text.as_bytes(), true);
        assert_eq!(cut("a\nb"), 3);
        assert_eq!(cut("\"a\""), 3);
        assert_eq!(cut("a\n\"b"), 2);
        let cut = |text: &str| Splitter::new(Format::Json).scan(text.as_bytes(), true);
        assert_eq!(cut("{}\n{}"), 5);
        assert_eq!(cut("{}\n{"), 3);
    }
}
