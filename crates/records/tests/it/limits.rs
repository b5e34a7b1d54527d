//! Long records: their limit, and the memory that is asked for before they grow.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mayfly_records::{
    Cells, Chunk, ChunkReader, ChunkStep, CsvReader, CsvSyntax, Delimited, Delimiters, Error,
    Format, JsonReader, Kind, Limits, NAME_CHARACTERS_MAX, Record, Reserve, Step, Unlimited,
};

/// An endless line.
struct Endless;

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(b'x');
        Ok(buffer.len())
    }
}

/// Grants up to a number of bytes, and knows what is granted.
struct Granted {
    all: Arc<AtomicUsize>,
    own: usize,
    max: usize,
}

impl Reserve for Granted {
    fn grow(&mut self, bytes: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if self.all.load(Ordering::SeqCst) + bytes > self.max {
            return Err("no more".into());
        }
        self.all.fetch_add(bytes, Ordering::SeqCst);
        self.own += bytes;
        Ok(())
    }

    fn take(&mut self) -> Granted {
        let own = std::mem::take(&mut self.own);
        Granted {
            all: Arc::clone(&self.all),
            own,
            max: self.max,
        }
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        self.all.fetch_sub(self.own, Ordering::SeqCst);
    }
}

fn granting(max: usize) -> (Arc<AtomicUsize>, Granted) {
    let all = Arc::new(AtomicUsize::new(0));
    let granted = Granted {
        all: Arc::clone(&all),
        own: 0,
        max,
    };
    (all, granted)
}

const SYNTAX: CsvSyntax = CsvSyntax::delimited(b',');
const CSV: Format = Format::Csv(SYNTAX);

fn limits(record_bytes_max: usize) -> Limits {
    Limits {
        record_bytes_max,
        copies: 3,
    }
}

#[test]
fn an_endless_record_ends_at_the_limit() {
    for (format, first) in [
        (CSV, "a\n"),
        (CSV, "a\n\""),
        (Format::Json, "{\"a\":1}\n"),
        (Format::Json, "{\"a\":1}\n{\"a\":\""),
        (Format::Json, "[{\"a\":1},\n{\"a\":\""),
    ] {
        let file = first.as_bytes().chain(Endless);
        let mut chunks = ChunkReader::new(file, format, limits(1 << 20), Unlimited);
        let error = loop {
            match chunks.next_chunk() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the file has no end"),
                Err(error) => break error,
            }
        };
        let Error::RecordTooLong {
            line,
            limit_bytes,
            in_quotes,
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((line, limit_bytes), (2, 1 << 20));
        assert_eq!(in_quotes, first.ends_with('"'));
    }
}

#[test]
fn long_records_are_granted_before_they_grow() {
    let (_, granted) = granting(4 << 20);
    let mut chunks = ChunkReader::new(Endless, CSV, limits(64 << 20), granted);
    assert!(matches!(
        chunks.next_chunk(),
        Err(Error::Memory { line: 1, .. })
    ));
    // What was granted for one record is there for the next.
    let (all, granted) = granting(8 << 20);
    let record = [vec![b'x'; 1 << 20], vec![b'\n']].concat();
    let file = record.repeat(20);
    let mut chunks = ChunkReader::new(file.as_slice(), CSV, limits(2 << 20), granted);
    let mut bytes = 0;
    while let Some(chunk) = chunks.next_chunk().expect("there is room for each record") {
        bytes += chunk.into_buffer().len();
    }
    assert_eq!(bytes, file.len());
    drop(chunks);
    assert_eq!(all.load(Ordering::SeqCst), 0);
}

#[test]
fn usual_records_ask_for_nothing() {
    let (_, granted) = granting(0);
    let file = b"1,2,3\n".repeat(300_000);
    let mut chunks = ChunkReader::new(file.as_slice(), CSV, limits(64 << 20), granted);
    let mut bytes = 0;
    while let Some(chunk) = chunks.next_chunk().expect("nothing is asked for") {
        bytes += chunk.into_buffer().len();
    }
    assert_eq!(bytes, file.len());
}

fn tabs(line_end: &str) -> Delimiters {
    Delimiters {
        field_end: b"\t".to_vec(),
        line_end: line_end.into(),
        line_start: Vec::new(),
        enclosure: Some(b'"'),
        escape: Some(b'\\'),
    }
}

#[test]
fn load_data_ends_at_the_limit_too() {
    let delimiters = tabs("\n");
    let mut records = Delimited::new(delimiters.clone(), 0, limits(1 << 20), Unlimited);
    let mut record = Record::keeping(1);
    records.push(b"first\n").expect("short");
    let error = loop {
        match records.read(&mut record) {
            Ok(Step::NeedsBytes) => records.push(&[b'x'; 1000]).expect("unlimited"),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(
        error,
        Error::RecordTooLong {
            line: 2,
            limit_bytes: 0x10_0000,
            ..
        }
    ));
    // Lines that are skipped need no memory, however long they are.
    let (_, granted) = granting(0);
    let mut records = Delimited::new(delimiters, 1, limits(1 << 10), granted);
    for _ in 0..10_000 {
        assert_eq!(
            records.read(&mut record).expect("skipped"),
            Step::NeedsBytes
        );
        records.push(&[b'x'; 1000]).expect("nothing is kept");
    }
    records.push(b"\nlast\n").expect("nothing is kept");
    assert_eq!(records.read(&mut record).expect("short"), Step::Record);
    assert_eq!(record.field(0), Some(&b"last"[..]));
    assert_eq!(records.lines(), 2);
}

/// The only chunk of a file.
fn chunk_of(file: &str, format: Format) -> Chunk<Unlimited> {
    let mut chunks = ChunkReader::new(file.as_bytes(), format, limits(1 << 20), Unlimited);
    let chunk = chunks.next_chunk().expect("it is whole");
    chunk.expect("it is not empty")
}

#[test]
fn fields_beyond_the_columns_are_only_counted() {
    // LOAD DATA.
    let mut records = Delimited::new(tabs("\n"), 0, limits(1 << 20), Unlimited);
    let mut record = Record::keeping(2);
    let long = format!("a\tb\tc{}\nd\n", "\t".repeat(100_000));
    records.push(long.as_bytes()).expect("unlimited");
    assert_eq!(records.read(&mut record).expect("short"), Step::Record);
    assert_eq!(record.count(), 100_003);
    assert_eq!(record.field(0), Some(&b"a"[..]));
    assert_eq!(record.field(1), Some(&b"b"[..]));
    assert_eq!(record.field(2), None);
    assert_eq!(records.read(&mut record).expect("short"), Step::Record);
    assert_eq!(record.count(), 1);
    assert_eq!(record.field(0), Some(&b"d"[..]));
    // CSV: a record, and a header.
    let mut chunk = chunk_of(&format!("1,2\n{}\n", ",".repeat(100_000)), CSV);
    let reader = CsvReader::new(SYNTAX, vec![Some(0), Some(1)]);
    let error = reader.read(&mut chunk, &mut Cells::new(2), 10);
    let Err(Error::TooManyFields {
        line,
        expected,
        found,
    }) = error
    else {
        panic!("{error:?}");
    };
    assert_eq!((line, expected, found), (2, 2, 100_001));
    for (fields, is_right) in [(4, true), (5, false), (100_000, false)] {
        let mut chunk = chunk_of(&format!("\n{}a\n", "a,".repeat(fields - 1)), CSV);
        match CsvReader::header(SYNTAX, &mut chunk, 4) {
            Ok(Some(header)) => assert!(is_right && header.len() == fields, "{fields}"),
            Err(Error::TooManyColumns { line, limit }) => {
                assert!(!is_right, "{fields}");
                assert_eq!((line, limit), (2, 4));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Reads the objects of a file one after the other, as somebody who looks for columns does.
fn discover(file: &str, reader: &mut JsonReader) -> Result<Vec<Vec<String>>, Error> {
    let mut chunk = chunk_of(file, Format::Json);
    let mut cells = Cells::new(0);
    let mut rows = Vec::new();
    while !chunk.is_read() {
        reader.read(&mut chunk, &mut cells, 10)?;
        let texts = cells.texts(&chunk)?;
        for row in 0..cells.rows() {
            let values = (0..cells.width()).map(|column| {
                let cell = cells.column(column).nth(row).expect("a cell");
                match cell.kind {
                    Kind::Null => "NULL".to_owned(),
                    _ => texts.get(cell).to_owned(),
                }
            });
            rows.push(values.collect());
        }
    }
    Ok(rows)
}

#[test]
fn keys_become_so_many_columns() {
    let file = "{\"a\":1}\n{\"b\":2,\"a\":3}\n{\"c\":4}";
    let found = discover(file, &mut JsonReader::discovering(3)).expect("three columns");
    assert_eq!(found.last().expect("three rows"), &["NULL", "NULL", "4"]);
    let error = discover(file, &mut JsonReader::discovering(2));
    assert!(
        matches!(error, Err(Error::TooManyColumns { line: 3, limit: 2 })),
        "{error:?}"
    );
    for (length, is_right) in [
        (NAME_CHARACTERS_MAX, true),
        (NAME_CHARACTERS_MAX + 1, false),
        (100_000, false),
    ] {
        let file = format!("{{\"a\":1}}\n{{\"{}\":2}}", "\u{e4}".repeat(length));
        match discover(&file, &mut JsonReader::discovering(9)) {
            Ok(rows) => assert!(is_right && rows.len() == 2, "{length}"),
            Err(Error::NameTooLong { line, key }) => {
                assert!(!is_right && line == 2, "{length}");
                assert_eq!(key, "\u{e4}".repeat(64));
            }
            Err(error) => panic!("{error}"),
        }
    }
    // An error does not repeat a long key.
    let file = format!("{{\"{}\":2}}", "k".repeat(100_000));
    let error = discover(&file, &mut JsonReader::new(Vec::new()));
    let Err(Error::UnknownKey { key, .. }) = error else {
        panic!("{error:?}");
    };
    assert_eq!(key, "k".repeat(64));
}

#[test]
fn the_last_value_of_a_key_counts() {
    for (object, expected) in [
        ("{\"a\":1,\"a\":2}", &["2"][..]),
        ("{\"a\":1,\"b\":\"x\",\"a\":null}", &["NULL", "x"]),
        ("{\"a\":1,\"\\u0061\":[3]}", &["[3]"]),
    ] {
        let found = discover(object, &mut JsonReader::discovering(9)).expect(object);
        assert_eq!(found, [expected], "{object}");
    }
    let repeated = format!("{{{}\"a\":7}}", "\"a\":1,".repeat(50_000));
    let keys = vec![("a".to_owned(), Some(0))];
    let found = discover(&repeated, &mut JsonReader::discovering(9)).expect("one key");
    assert_eq!(found, [["7"]]);
    let mut chunk = chunk_of(&repeated, Format::Json);
    let mut cells = Cells::new(1);
    let read = JsonReader::new(keys).read(&mut chunk, &mut cells, 9);
    read.expect("one key");
    assert_eq!(cells.rows(), 1);
}

#[test]
fn lines_of_csv_end_with_carriage_returns_too() {
    for (file, expected) in [
        ("a,b\r1,2\r\r3\r", 4),
        ("a,b\r\n1,2\r\n\r\n3\r\n", 4),
        ("a,b\n1,\"x\ry\r\nz\n\"\n3\n", 6),
        ("\r\r\na,b\n\r3", 5),
    ] {
        // As one chunk, and in chunks of a few records.
        for record_bytes_max in [1 << 20, 12] {
            let limits = limits(record_bytes_max);
            let mut chunks = ChunkReader::new(file.as_bytes(), CSV, limits, Unlimited);
            let reader = CsvReader::new(SYNTAX, vec![Some(0), Some(1)]);
            let mut cells = Cells::new(2);
            let line = loop {
                let mut chunk = match chunks.next_chunk() {
                    Ok(Some(chunk)) => chunk,
                    other => panic!("{file:?}: {:?}", other.map(|_| ())),
                };
                match reader.read(&mut chunk, &mut cells, usize::MAX) {
                    Ok(()) => {}
                    Err(Error::TooFewFields { line, .. }) => break line,
                    Err(error) => panic!("{file:?}: {error}"),
                }
            };
            assert_eq!(line, expected, "{file:?}, at most {record_bytes_max} bytes");
        }
    }
}

#[test]
fn long_records_are_read_in_steps() {
    let record = [vec![b'x'; 2 << 20], vec![b'\n']].concat();
    let file = [b"a\n".to_vec(), record].concat();
    let mut chunks = ChunkReader::new(file.as_slice(), CSV, limits(4 << 20), Unlimited);
    let (mut steps, mut bytes) = (0, 0);
    loop {
        match chunks.step().expect("it is short enough") {
            ChunkStep::Reading => steps += 1,
            ChunkStep::Chunk(chunk) => bytes += chunk.into_buffer().len(),
            ChunkStep::End => break,
        }
    }
    assert_eq!(bytes, file.len());
    assert!(steps >= 4, "{steps} steps");
}

/// Reads a file to its end, in pieces of so many bytes: what `told` says of each record, and the
/// reader.
fn load<T>(
    file: &str,
    line_end: &str,
    skipped: u64,
    piece_bytes: usize,
    told: fn(&Record) -> T,
) -> (Vec<T>, Delimited<Unlimited>) {
    let mut records = Delimited::new(tabs(line_end), skipped, limits(1 << 20), Unlimited);
    let mut pieces = file.as_bytes().chunks(piece_bytes);
    let mut record = Record::keeping(1);
    let mut found = Vec::new();
    loop {
        match records.read(&mut record).expect("short") {
            Step::Record => found.push(told(&record)),
            Step::NeedsBytes => match pieces.next() {
                Some(piece) => records.push(piece).expect("unlimited"),
                None => records.finish(),
            },
            Step::End => return (found, records),
        }
    }
}

#[test]
fn records_without_an_end_tell_their_lines() {
    for (file, line_end, expected) in [
        ("1\n2\n3\n", "\r\n", &[(false, 3)][..]),
        ("1\ta\n2\tb\n3\tc", "\r\n", &[(false, 3)]),
        ("1\r2\r3\r", "\n", &[(false, 3)]),
        ("1\r\n2\r\n", ";", &[(false, 2)]),
        ("1\n2\n", "\n", &[(false, 0), (false, 0)]),
        ("1\n2", "\n", &[(false, 0), (false, 1)]),
        ("1;2;\n", ";", &[(false, 0), (false, 0), (false, 1)]),
        // An escape and a quote say that a line goes on.
        ("a\\\nb", ";", &[(false, 1)]),
        ("C:\\\\\nb", ";", &[(false, 2)]),
        ("C:\\\\\\\nb", ";", &[(false, 1)]),
        ("\"a\nb\"\tc", ";", &[(false, 1)]),
        // A quote without an end does not.
        ("\"a\nb\nc", "\n", &[(true, 3)]),
        ("x\n\"a\nb\nc\n", "\n", &[(false, 0), (true, 3)]),
    ] {
        for piece_bytes in [1, 3, 1000] {
            let told = |record: &Record| (record.is_unterminated(), record.lines());
            let (found, _) = load(file, line_end, 0, piece_bytes, told);
            assert_eq!(found, expected, "{file:?}, {line_end:?}, {piece_bytes}");
        }
    }
}

#[test]
fn lines_to_skip_may_be_the_whole_file() {
    for (file, line_end, skipped, expected) in [
        ("a\n1\n2\n", "\r\n", 1, (true, 3)),
        ("a\r1\r2\r", "\n", 1, (true, 3)),
        ("a\r\n1\r\n", "\r", 1, (false, 2)),
        ("a\n1\n2\n", "\n", 1, (false, 3)),
        // The last line need not have an end.
        ("a\n1", "\r\n", 1, (true, 2)),
        ("a", "\r\n", 1, (true, 1)),
        ("a\n1\n2", "\n", 1, (false, 3)),
        ("", "\n", 1, (true, 0)),
    ] {
        for piece_bytes in [1, 2, 1000] {
            let (_, records) = load(file, line_end, skipped, piece_bytes, |_| ());
            let found = (records.has_skipped_all(), records.lines());
            assert_eq!(found, expected, "{file:?}, {line_end:?}, {piece_bytes}");
        }
    }
}

/// Each file was loaded into MariaDB, which left this out of it.
#[test]
fn lines_to_skip_end_where_no_escape_stands() {
    for (file, line_end, skipped, expected) in [
        ("1\ta\\\n2\tb\\\tc\n3\tx\\", "\n", 1, &["3"][..]),
        ("1\ta\\\\\n2\tb\n3\tx", "\n", 1, &["2", "3"]),
        ("h1\\\nh2\nh3\\\\\n1\ta\n2\tb\n", "\n", 2, &["1", "2"]),
        // A quote is a byte like any other.
        ("\"1\n2\"\ta\n3\tb\n", "\n", 1, &["2\"", "3"]),
        // The end of a line of several bytes.
        ("1\ta\\\r\n2\tb\r\n3\tc\r\n", "\r\n", 1, &["3"]),
        ("1\ta\r\\\n2\tb\r\n3\tc\r\n", "\r\n", 1, &["3"]),
        ("1\taE\\ND2\tbEND3\tx", "END", 1, &["3"]),
        ("1\taE\\END2\tbEND3\tx", "END", 1, &["3"]),
        ("1\taEENEND2\tbEND3\tx", "END", 1, &["2", "3"]),
        ("1\taABABABC2\tbABABC3\tx", "ABABC", 1, &["2", "3"]),
        // Nothing is left behind an escape at the end of the file.
        ("1\ta\\", "\n", 1, &[]),
        ("1\ta\\\n", "\n", 1, &[]),
    ] {
        for piece_bytes in [1, 2, 3, 1000] {
            let first = |record: &Record| {
                let first = record.field(0).unwrap_or_default();
                String::from_utf8_lossy(first).into_owned()
            };
            let (found, _) = load(file, line_end, skipped, piece_bytes, first);
            assert_eq!(found, expected, "{file:?}, {line_end:?}, {piece_bytes}");
        }
    }
}
