//! The rows of a statement, and whether two systems gave the same ones.
//!
//! Owns: reading rows from a child, and the two ways to compare them, both without regard to
//! order: as text, by a digest that takes no memory, and as values, cell by cell.
//!
//! Values are compared exactly where they are decimals, whatever the number of digits behind the
//! point: `1.50` is `1.5`. Columns that some systems compute as doubles and others as decimals of
//! fewer digits (averages, quotients) are compared to a tolerance; a case names them.

use std::io::{BufRead, BufReader, Read};

use crate::digest::Digest;

/// How far two roundings of one value may be apart, relative to it, or absolute below 1.
const TOLERANCE: f64 = 1e-6;
/// More rows than this are not kept for a comparison by value.
const MOST_LINES: u64 = 1_000_000;

/// What a statement returned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) digest: Digest,
    /// The rows themselves, tab-separated, where they are compared by value.
    pub(crate) lines: Vec<String>,
}

impl Answer {
    /// Reads rows to the end, one line each, after `skip` header lines.
    pub(crate) fn read(source: impl Read, skip: usize, keep: bool) -> std::io::Result<Self> {
        let mut reader = BufReader::with_capacity(1 << 20, source);
        let mut answer = Self::default();
        let mut line = Vec::new();
        let mut skip = skip;
        loop {
            line.clear();
            if reader.read_until(b'\n', &mut line)? == 0 {
                return Ok(answer);
            }
            while line
                .last()
                .is_some_and(|byte| matches!(byte, b'\n' | b'\r'))
            {
                line.pop();
            }
            if skip > 0 {
                skip -= 1;
                continue;
            }
            answer.digest.add(&line);
            if keep && answer.digest.rows <= MOST_LINES {
                answer
                    .lines
                    .push(String::from_utf8_lossy(&line).into_owned());
            }
        }
    }
}

/// How the answers of a case are compared.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Comparison {
    /// By the digest of all rows as text.
    Text,
    /// Cell by cell; columns with these numbers are rounded differently by different systems.
    Values { rounded: &'static [usize] },
}

impl Comparison {
    /// Whether the rows themselves are needed.
    pub(crate) fn keeps_lines(self) -> bool {
        matches!(self, Self::Values { .. })
    }

    /// What differs; nothing if the answers are the same.
    pub(crate) fn difference(self, found: &Answer, expected: &Answer) -> Option<String> {
        let (ours, theirs) = (found.digest.rows, expected.digest.rows);
        if ours != theirs {
            return Some(format!("{ours} rows instead of {theirs}"));
        }
        let rounded = match self {
            Self::Text => {
                return (found.digest != expected.digest)
                    .then(|| format!("other values in {ours} rows"));
            }
            Self::Values { rounded } => rounded,
        };
        if ours > MOST_LINES {
            return Some(format!("{ours} rows are more than are compared"));
        }
        let [ours, theirs] = [found, expected].map(|answer| sorted(&answer.lines, rounded));
        ours.iter()
            .zip(&theirs)
            .find(|(ours, theirs)| !ours.is_like(theirs))
            .map(|(ours, theirs)| {
                shortened(&format!("`{}` instead of `{}`", ours.line, theirs.line))
            })
    }
}

/// One row, in a form that sorts alike for all systems.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Row<'a> {
    exact: Vec<String>,
    rounded: Vec<&'a str>,
    line: &'a str,
}

impl<'a> Row<'a> {
    fn of(line: &'a str, rounded: &[usize]) -> Self {
        let mut row = Row {
            exact: Vec::new(),
            rounded: Vec::new(),
            line,
        };
        for (column, cell) in line.split('\t').enumerate() {
            if rounded.contains(&column) {
                row.rounded.push(cell);
            } else {
                row.exact.push(canonical(cell));
            }
        }
        row
    }

    fn is_like(&self, other: &Row<'_>) -> bool {
        self.exact == other.exact
            && self.rounded.len() == other.rounded.len()
            && self
                .rounded
                .iter()
                .zip(&other.rounded)
                .all(|(a, b)| is_close(a, b))
    }
}

fn sorted<'a>(lines: &'a [String], rounded: &[usize]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'_>> = lines.iter().map(|line| Row::of(line, rounded)).collect();
    rows.sort();
    rows
}

/// A decimal number without zeros that say nothing; any other text as it is.
fn canonical(cell: &str) -> String {
    let (sign, digits) = match cell.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", cell),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = !whole.is_empty() && (whole.bytes().chain(fraction.bytes())).all(is_digit);
    if !is_number {
        return cell.to_owned();
    }
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        whole => whole,
    };
    let fraction = fraction.trim_end_matches('0');
    match (whole, fraction) {
        ("0", "") => "0".to_owned(),
        (whole, "") => format!("{sign}{whole}"),
        (whole, fraction) => format!("{sign}{whole}.{fraction}"),
    }
}

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit()
}

fn is_close(a: &str, b: &str) -> bool {
    if a == b {
        return true;
    }
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()).max(1.0),
        _ => false,
    }
}

/// A message that fits a cell.
pub(crate) fn shortened(message: &str) -> String {
    const MOST: usize = 160;
    match message.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} ...", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Answer {
        Answer::read(text.as_bytes(), 0, true).expect("reading memory does not fail")
    }

    fn by_value(rounded: &'static [usize], found: &str, expected: &str) -> Option<String> {
        Comparison::Values { rounded }.difference(&answer(found), &answer(expected))
    }

    #[test]
    fn decimals_are_values_and_texts_are_texts() {
        for (cell, value) in [
            ("1.50", "1.5"),
            ("007", "7"),
            ("-0.00", "0"),
            ("-12.30", "-12.3"),
            ("100", "100"),
            (".5", ".5"),
            ("1995-02-15", "1995-02-15"),
            ("-", "-"),
            ("NULL", "NULL"),
            ("", ""),
        ] {
            assert_eq!(canonical(cell), value, "{cell}");
        }
    }

    #[test]
    fn rows_are_compared_without_their_order() {
        let (found, expected) = ("a\t1.50\nb\t2\n", "b\t2.0\na\t1.5\n");
        assert_eq!(by_value(&[], found, expected), None);
        let text = Comparison::Text.difference(&answer(found), &answer(expected));
        assert_eq!(text.as_deref(), Some("other values in 2 rows"));
        let swapped = answer("b\t2\na\t1.50\n");
        assert!(
            Comparison::Text
                .difference(&answer(found), &swapped)
                .is_none()
        );
    }

    #[test]
    fn only_rounded_columns_have_a_tolerance() {
        let (found, expected) = ("x\t0.049985\n", "x\t0.04998529583839761\n");
        assert_eq!(by_value(&[1], found, expected), None);
        assert!(by_value(&[], found, expected).is_some());
        assert!(by_value(&[1], "x\t0.05\n", "x\t0.0501\n").is_some());
        assert!(by_value(&[1], "x\tNULL\n", "x\t0\n").is_some());
        assert_eq!(by_value(&[1], "x\tNULL\n", "x\tNULL\n"), None);
    }

    #[test]
    fn a_difference_names_both_sides() {
        let rows = by_value(&[], "a\n", "a\nb\n");
        assert_eq!(rows.as_deref(), Some("1 rows instead of 2"));
        let values = by_value(&[], "a\nc\n", "a\nb\n");
        assert_eq!(values.as_deref(), Some("`c` instead of `b`"));
        // The same row twice is not the same as two rows.
        assert!(by_value(&[], "a\na\nb\n", "a\nb\nb\n").is_some());
    }

    #[test]
    fn header_lines_are_no_rows() {
        let read = Answer::read("name\nx\r\ny".as_bytes(), 1, true).expect("memory is read");
        assert_eq!(read.lines, ["x", "y"]);
        assert_eq!(read.digest.rows, 2);
    }
}
