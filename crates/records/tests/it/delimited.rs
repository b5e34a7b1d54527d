//! LOAD DATA: rows that are written come back, and the pieces in which a file comes do not matter.
//!
//! The first byte of an input chooses the delimiters, the second the length of the pieces.

use mayfly_records::{Delimited, Delimiters, Error, Limits, Record, Step, Unlimited};
use mayfly_testkit::Random;

type Fields = Vec<Option<Vec<u8>>>;

fn delimiters(choice: u8) -> Delimiters {
    let words = |field: &str, line: &str, start: &str, enclosure: &str, escape: &str| Delimiters {
        field_end: field.into(),
        line_end: line.into(),
        line_start: start.into(),
        enclosure: enclosure.bytes().next(),
        escape: escape.bytes().next(),
    };
    match choice % 4 {
        0 => words("\t", "\n", "", "", "\\"),
        1 => words(",", "\r\n", "", "\"", "\\"),
        2 => words("::", ";;", ">>", "'", "!"),
        _ => words(",", "\n", "", "\"", ""),
    }
}

pub fn check(input: &[u8]) {
    let [choice, piece_bytes, file @ ..] = input else {
        return;
    };
    let piece_bytes = 1 + usize::from(*piece_bytes);
    let skipped = u64::from(choice / 4 % 3);
    let whole = read(file, *choice, skipped, file.len().max(1), 1 << 20);
    let pieces = read(file, *choice, skipped, piece_bytes, 1 << 20);
    let whole = whole.expect("no record is too long");
    assert_eq!(whole, pieces.expect("no record is too long"));
    match read(file, *choice, skipped, piece_bytes, 64) {
        Ok(short) => assert_eq!(short, whole),
        Err(Error::RecordTooLong { limit_bytes, .. }) => assert!(file.len() > limit_bytes),
        Err(error) => panic!("{error}"),
    }
    if skipped == 0 {
        check_written(&whole, *choice);
    }
}

fn read(
    file: &[u8],
    choice: u8,
    skipped: u64,
    piece_bytes: usize,
    record_bytes_max: usize,
) -> Result<Vec<Fields>, Error> {
    let limits = Limits {
        record_bytes_max,
        copies: 1,
    };
    let mut records = Delimited::new(delimiters(choice), skipped, limits, Unlimited);
    let mut pieces = file.chunks(piece_bytes);
    let mut record = Record::keeping(usize::MAX);
    let mut found = Vec::new();
    loop {
        match records.read(&mut record)? {
            Step::Record => {
                let fields = (0..record.count()).map(|field| record.field(field));
                found.push(fields.map(|field| field.map(<[u8]>::to_vec)).collect());
            }
            Step::NeedsBytes => match pieces.next() {
                Some(piece) => records.push(piece)?,
                None => records.finish(),
            },
            Step::End => return Ok(found),
        }
    }
}

/// Writes records as SELECT ... INTO OUTFILE does, and reads them again.
fn check_written(rows: &[Fields], choice: u8) {
    let shape = delimiters(choice);
    let Some(escape) = shape.escape else {
        return;
    };
    let mut file = Vec::new();
    for row in rows {
        file.extend_from_slice(&shape.line_start);
        for (place, field) in row.iter().enumerate() {
            if place > 0 {
                file.extend_from_slice(&shape.field_end);
            }
            let Some(field) = field else {
                file.extend_from_slice(&[escape, b'N']);
                continue;
            };
            file.extend(shape.enclosure);
            for byte in field {
                // All that could mean something, and what an escape makes something else of.
                match byte {
                    0 => file.extend_from_slice(&[escape, b'0']),
                    8 => file.extend_from_slice(&[escape, b'b']),
                    b'\n' => file.extend_from_slice(&[escape, b'n']),
                    b'\r' => file.extend_from_slice(&[escape, b'r']),
                    b'\t' => file.extend_from_slice(&[escape, b't']),
                    26 => file.extend_from_slice(&[escape, b'Z']),
                    byte if byte.is_ascii_punctuation() => {
                        file.extend_from_slice(&[escape, *byte]);
                    }
                    byte => file.push(*byte),
                }
            }
            file.extend(shape.enclosure);
        }
        file.extend_from_slice(&shape.line_end);
    }
    // Without quotes the word NULL is a text like any other.
    let again = read(&file, choice, 0, 7, 1 << 20).expect("no record is too long");
    assert_eq!(again, rows, "{}", file.escape_ascii());
}

/// Some records, most of them well-formed.
pub fn plausible(random: &mut Random) -> Vec<u8> {
    let choice = random.below(256) as u8;
    let shape = delimiters(choice);
    let mut input = vec![choice, random.below(256) as u8];
    for _ in 0..random.below(12) {
        input.extend_from_slice(&shape.line_start);
        for place in 0..random.below(4) {
            if place > 0 {
                input.extend_from_slice(&shape.field_end);
            }
            let escape = shape.escape.unwrap_or(b'x');
            match random.below(6) {
                0 => input.extend_from_slice(&[escape, b'N']),
                1 => input.extend_from_slice(b"NULL"),
                2 => {
                    input.extend(shape.enclosure);
                    input.extend_from_slice(&shape.field_end);
                    input.extend(shape.enclosure);
                    input.extend(shape.enclosure);
                    input.extend_from_slice(&shape.line_end);
                    input.extend(shape.enclosure);
                }
                3 => input.extend_from_slice(&[escape, b't', escape, escape, escape, b'0']),
                _ => input.extend_from_slice(b"word"),
            }
        }
        input.extend_from_slice(&shape.line_end);
    }
    input
}
