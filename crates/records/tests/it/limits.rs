//! Long records: their limit, and the memory that is asked for before they grow.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mayfly_records::{
    ChunkReader, Delimited, Delimiters, Error, Format, Limits, Record, Reserve, Step, Unlimited,
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

const CSV: Format = Format::Csv { delimiter: b',' };

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

#[test]
fn load_data_ends_at_the_limit_too() {
    let delimiters = Delimiters {
        field_end: b"\t".to_vec(),
        line_end: b"\n".to_vec(),
        line_start: Vec::new(),
        enclosure: None,
        escape: Some(b'\\'),
    };
    let mut records = Delimited::new(delimiters.clone(), 0, limits(1 << 20), Unlimited);
    let mut record = Record::default();
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
    assert_eq!(records.line(), 3);
}
