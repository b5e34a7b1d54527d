//! CSV: whatever the bytes, the reader finds what a simple model finds, however the file is cut.
//!
//! The first byte of an input chooses the longest record, and with it the size of the chunks; the
//! second one the number of columns.

use mayfly_records::{
    Cells, ChunkReader, CsvReader, CsvSyntax, Error, Format, Guess, Kind, Limits, TextType,
    Unlimited, value,
};
use mayfly_testkit::Random;

const SYNTAX: CsvSyntax = CsvSyntax::delimited(b',');
const COMMA: Format = Format::Csv(SYNTAX);

/// A record: its fields, empty for NULL.
type Fields = Vec<Vec<u8>>;

pub fn check(input: &[u8]) {
    let [longest, columns, file @ ..] = input else {
        return;
    };
    let width = 1 + usize::from(*columns % 4);
    let expected = model(file, width);
    // As one chunk, and in chunks as small as records can be.
    for record_bytes_max in [1 << 20, 1 + usize::from(*longest)] {
        let found = read(file, width, record_bytes_max);
        match (&expected, found) {
            (Ok(records), Ok(found)) => assert_eq!(*records, found, "limit {record_bytes_max}"),
            (Ok(_), Err(Error::RecordTooLong { limit_bytes, .. })) => {
                assert!(file.len() > limit_bytes);
            }
            (Ok(records), Err(Error::TooFewFields { .. } | Error::TooManyFields { .. })) => {
                assert!(records.iter().any(|record| record.len() != width));
            }
            (Ok(_), Err(Error::NotUtf8 { .. })) => assert!(std::str::from_utf8(file).is_err()),
            (Ok(_), Err(error)) => panic!("the model reads what is an error: {error}"),
            (Err(()), Ok(found)) => panic!("a wrong quote was read: {found:?}"),
            (Err(()), Err(_)) => {}
        }
    }
    if let Ok(records) = &expected {
        check_guess(records);
    }
}

/// Reads a file of so many columns.
fn read(file: &[u8], width: usize, record_bytes_max: usize) -> Result<Vec<Fields>, Error> {
    let limits = Limits {
        record_bytes_max,
        copies: 1,
    };
    let mut chunks = ChunkReader::new(file, COMMA, limits, Unlimited);
    let reader = CsvReader::new(SYNTAX, (0..width).map(Some).collect());
    let mut cells = Cells::new(width);
    let mut records = Vec::new();
    let mut line = 0;
    while let Some(mut chunk) = chunks.next_chunk()? {
        while !chunk.is_read() {
            reader.read(&mut chunk, &mut cells, 2)?;
            let texts = cells.texts(&chunk)?;
            for row in 0..cells.rows() {
                assert!(cells.line(row) >= line, "lines go up");
                line = cells.line(row);
                let fields = (0..width).map(|column| {
                    let cell = cells.column(column).nth(row).expect("a cell");
                    texts.get(cell).as_bytes().to_vec()
                });
                records.push(fields.collect());
            }
        }
        chunks.recycle(chunk.into_buffer());
    }
    Ok(records)
}

/// Reads byte by byte, as RFC 4180 says.
fn model(file: &[u8], width: usize) -> Result<Vec<Fields>, ()> {
    let file = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let mut bytes = file.iter().copied().peekable();
    let mut records: Vec<Fields> = Vec::new();
    while let Some(first) = bytes.peek() {
        let is_blank = matches!(first, b'\n' | b'\r');
        let mut fields = Vec::new();
        loop {
            let mut field = Vec::new();
            if bytes.next_if_eq(&b'"').is_some() {
                loop {
                    match bytes.next() {
                        None => return Err(()),
                        Some(b'"') if bytes.next_if_eq(&b'"').is_none() => break,
                        Some(byte) => field.push(byte),
                    }
                }
                if !matches!(bytes.peek(), None | Some(b',' | b'\n' | b'\r')) {
                    return Err(());
                }
            } else {
                while let Some(byte) = bytes.next_if(|byte| !b",\n\r".contains(byte)) {
                    field.push(byte);
                }
            }
            fields.push(field);
            if bytes.next_if_eq(&b',').is_none() {
                break;
            }
        }
        // LF, CRLF or CR.
        bytes.next_if_eq(&b'\r');
        bytes.next_if_eq(&b'\n');
        if !is_blank || width == 1 {
            records.push(fields);
        }
    }
    Ok(records)
}

fn check_guess(records: &[Fields]) {
    let texts: Vec<_> = records
        .iter()
        .filter_map(|record| record.first())
        .filter(|field| !field.is_empty())
        .filter_map(|field| std::str::from_utf8(field).ok())
        .collect();
    let mut guess = Guess::default();
    for text in &texts {
        guess.add(text, Kind::Plain);
    }
    let text_type = guess.text_type();
    for text in texts {
        let holds = match text_type {
            TextType::Text => true,
            TextType::Boolean => value::boolean(text).is_some(),
            TextType::Integer => value::integer(text).is_some(),
            TextType::Unsigned => value::unsigned(text).is_some(),
            TextType::Double => value::double(text).is_some(),
            TextType::Date => value::date(text).is_some(),
            TextType::Decimal { precision, scale } => {
                value::decimal_digits(text, precision, scale).is_some()
            }
            TextType::DateTime { digits } => {
                value::moment(text).is_some_and(|moment| moment.in_unit(digits).is_some())
            }
            TextType::Json => false,
        };
        assert!(holds, "{text_type:?} does not hold {text:?}");
    }
}

/// A file of some records, most of them well-formed.
pub fn plausible(random: &mut Random) -> Vec<u8> {
    let width = 1 + random.below(4);
    let mut file = vec![random.below(256) as u8, (width - 1) as u8];
    let numbers = [
        &b"1"[..],
        b"-2",
        b"1.5",
        b"2024-02-29",
        b"true",
        b"99999999999999999999",
    ];
    for _ in 0..random.below(12) {
        for column in 0..width {
            if column > 0 {
                file.push(b',');
            }
            match random.below(6) {
                0 => {}
                1 => file.extend_from_slice(b"word"),
                2 => file.extend_from_slice(b"\"a, \"\"b\"\"\nc\""),
                3 => file.extend_from_slice("\"\u{e4}\"\"\u{e4}\"".as_bytes()),
                _ => {
                    let number = random.below(numbers.len() as u64) as usize;
                    file.extend_from_slice(numbers[number]);
                }
            }
        }
        match random.below(8) {
            0 => file.extend_from_slice(b"\r\n"),
            1 => file.push(b'\r'),
            2 => file.extend_from_slice(b"\n\n"),
            _ => file.push(b'\n'),
        }
    }
    file
}
