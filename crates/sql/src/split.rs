//! Splits a text into statements at `;`.
//!
//! Knows quotes, comments and escapes; never looks inside a statement. `DELIMITER` belongs to the
//! shell, which passes its delimiter here.

/// One statement of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The statement without its delimiter, white space trimmed.
    pub text: &'a str,
    /// Byte offset of `text` in the whole text.
    pub start: usize,
    /// Byte offset after the delimiter.
    pub end: usize,
    /// Whether the delimiter was there; `false` only for the last piece.
    pub complete: bool,
}

/// Iterates over the statements of `text`; pieces of blanks and comments alone are left out.
#[derive(Debug, Clone)]
pub struct Statements<'a> {
    text: &'a str,
    delimiter: &'a str,
    position: usize,
}

/// Splits `text` at `;`.
pub fn split(text: &str) -> Statements<'_> {
    split_at(text, ";")
}

/// Splits `text` at another delimiter.
pub fn split_at<'a>(text: &'a str, delimiter: &'a str) -> Statements<'a> {
    Statements {
        text,
        delimiter,
        position: 0,
    }
}

impl<'a> Iterator for Statements<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        while self.position < self.text.len() {
            let begin = self.position;
            let (stop, complete, blank) = scan(self.text, begin, self.delimiter);
            self.position = if complete {
                stop + self.delimiter.len()
            } else {
                stop
            };
            if blank {
                continue;
            }
            let raw = &self.text[begin..stop];
            let lead = raw.len() - raw.trim_start().len();
            return Some(Piece {
                text: raw.trim(),
                start: begin + lead,
                end: self.position,
                complete,
            });
        }
        None
    }
}

/// Whether `text` ends inside a quote or a comment, so that more lines are wanted.
pub fn ends_open(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match skip(bytes, at) {
            Skipped::Quote(end) | Skipped::Comment(end) => at = end,
            Skipped::Open => return true,
            Skipped::Nothing => at += 1,
        }
    }
    false
}

/// Returns (end of the statement, delimiter found, nothing but blanks and comments).
fn scan(text: &str, begin: usize, delimiter: &str) -> (usize, bool, bool) {
    let bytes = text.as_bytes();
    let mut at = begin;
    let mut blank = true;
    while at < bytes.len() {
        if bytes[at..].starts_with(delimiter.as_bytes()) && !delimiter.is_empty() {
            return (at, true, blank);
        }
        match skip(bytes, at) {
            Skipped::Quote(end) => {
                blank = false;
                at = end;
            }
            Skipped::Comment(end) => {
                // Version comments hold statement text.
                if bytes[at..].starts_with(b"/*!") || bytes[at..].starts_with(b"/*M!") {
                    blank = false;
                }
                at = end;
            }
            Skipped::Open => return (bytes.len(), false, false),
            Skipped::Nothing => {
                blank = blank && bytes[at].is_ascii_whitespace();
                at += 1;
            }
        }
    }
    (bytes.len(), false, blank)
}

enum Skipped {
    Nothing,
    Quote(usize),
    Comment(usize),
    Open,
}

fn skip(bytes: &[u8], at: usize) -> Skipped {
    match bytes[at] {
        quote @ (b'\'' | b'"' | b'`') => {
            let mut i = at + 1;
            while i < bytes.len() {
                if bytes[i] == b'\\' && quote != b'`' {
                    i += 2;
                } else if bytes[i] == quote {
                    return Skipped::Quote(i + 1);
                } else {
                    i += 1;
                }
            }
            Skipped::Open
        }
        b'#' => Skipped::Comment(line_end(bytes, at)),
        b'-' if bytes[at..].starts_with(b"--")
            && bytes.get(at + 2).is_none_or(|b| b.is_ascii_whitespace()) =>
        {
            Skipped::Comment(line_end(bytes, at))
        }
        b'/' if bytes[at..].starts_with(b"/*") => {
            match bytes[at + 2..].windows(2).position(|w| w == b"*/") {
                Some(offset) => Skipped::Comment(at + 2 + offset + 2),
                None => Skipped::Open,
            }
        }
        _ => Skipped::Nothing,
    }
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..]
        .iter()
        .position(|b| *b == b'\n')
        .map_or(bytes.len(), |offset| at + offset + 1)
}
