//! JSON: objects that are written come back value for value, and any bytes are read in the same way
//! however the file is cut.

use mayfly_records::{
    Cells, ChunkReader, Error, Format, JsonReader, Kind, Limits, Unlimited, write_json,
};
use mayfly_testkit::Random;

const NAMES: [&str; 4] = ["a", "b \"c\"", "\u{e4}", "d"];
/// In front of inputs that are seeds of files, not files.
const SEED: u8 = 0;

/// A row: for each column, how its value is written and what it says.
type Row = Vec<(Kind, String)>;

pub fn check(input: &[u8]) {
    match input {
        [SEED, seed @ ..] => {
            let mut bytes = [0; 8];
            for (place, byte) in bytes.iter_mut().zip(seed) {
                *place = *byte;
            }
            check_written(&mut Random::new(u64::from_le_bytes(bytes)));
        }
        [longest, file @ ..] => check_any(file, 1 + usize::from(*longest)),
        [] => {}
    }
}

/// Any bytes: an error or rows, the same with all sizes of chunks.
fn check_any(file: &[u8], record_bytes_max: usize) {
    let whole = discover(file, 1 << 20);
    let cut = discover(file, record_bytes_max);
    match (whole, cut) {
        (Ok(whole), Ok(cut)) => assert_eq!(whole, cut),
        (_, Err(Error::RecordTooLong { limit_bytes, .. })) => assert!(file.len() > limit_bytes),
        (Err(_), Err(_)) => {}
        (Ok(_), Err(error)) => panic!("only in small chunks: {error}"),
        (Err(error), Ok(_)) => panic!("only in one chunk: {error}"),
    }
}

/// The names and rows of a file; a row ends with the last column that was known when it was read.
fn discover(file: &[u8], record_bytes_max: usize) -> Result<(Vec<String>, Vec<Row>), Error> {
    let mut reader = JsonReader::discovering(usize::MAX);
    let rows = read(file, &mut reader, 0, record_bytes_max)?;
    Ok((reader.names().map(str::to_owned).collect(), rows))
}

fn read(
    file: &[u8],
    reader: &mut JsonReader,
    width: usize,
    record_bytes_max: usize,
) -> Result<Vec<Row>, Error> {
    let limits = Limits {
        record_bytes_max,
        copies: 1,
    };
    let mut chunks = ChunkReader::new(file, Format::Json, limits, Unlimited);
    let mut cells = Cells::new(width);
    let mut rows = Vec::new();
    while let Some(mut chunk) = chunks.next_chunk()? {
        while !chunk.is_read() {
            reader.read(&mut chunk, &mut cells, 3)?;
            let texts = cells.texts(&chunk)?;
            for row in 0..cells.rows() {
                let values = (0..cells.width()).map(|column| {
                    let cell = cells.column(column).nth(row).expect("a cell");
                    (cell.kind, texts.get(cell).to_owned())
                });
                rows.push(values.collect());
            }
        }
    }
    Ok(rows)
}

/// Writes rows, and reads them.
fn check_written(random: &mut Random) {
    let mut file = String::new();
    let mut expected: Vec<Row> = Vec::new();
    let is_array = random.chance(0.5);
    for _ in 0..random.below(20) {
        let mut row: Row = vec![(Kind::Null, String::new()); NAMES.len()];
        let mut members = Vec::new();
        for (column, name) in NAMES.iter().enumerate() {
            if random.chance(0.3) {
                continue;
            }
            let (written, kind, value) = value(random);
            members.push(format!(
                "{}{}:{}{written}",
                string(name, random),
                space(random),
                space(random)
            ));
            row[column] = (kind, value);
        }
        if random.chance(0.2) {
            members.reverse();
        }
        let comma = format!("{},{}", space(random), space(random));
        if is_array {
            file.push_str(space(random));
            file.push(if expected.is_empty() { '[' } else { ',' });
        }
        file.push_str(&format!("{}{{{}}}", space(random), members.join(&comma)));
        file.push_str(if random.chance(0.9) { "\n" } else { " " });
        expected.push(row);
    }
    if is_array {
        file.push_str(if expected.is_empty() { "[]" } else { "]" });
        file.push_str(space(random));
    }
    for record_bytes_max in [1 << 20, 400] {
        let keys = NAMES.iter().enumerate();
        let keys = keys.map(|(column, name)| ((*name).to_owned(), Some(column)));
        let mut reader = JsonReader::new(keys.collect());
        let found = read(file.as_bytes(), &mut reader, NAMES.len(), record_bytes_max);
        assert_eq!(found.expect(&file), expected, "{file}");
    }
}

/// A value: as it is written, how, and what it says.
fn value(random: &mut Random) -> (String, Kind, String) {
    let plain = |text: &str| (text.to_owned(), Kind::Plain, text.to_owned());
    match random.below(8) {
        0 => ("null".to_owned(), Kind::Null, String::new()),
        1 => plain("true"),
        2 => plain("-12"),
        3 => plain("1.5e-3"),
        4 => {
            let document = "{\"x\":[1, \"}\\\"\",{}],\"y\":null}".to_owned();
            let mut spelled = String::new();
            write_json(&document, &mut spelled);
            assert_eq!(spelled, "{\"x\": [1, \"}\\\"\", {}], \"y\": null}");
            (document.clone(), Kind::Nested, document)
        }
        _ => {
            let text = text(random);
            (string(&text, random), Kind::Text, text)
        }
    }
}

fn text(random: &mut Random) -> String {
    let pieces = [
        "word",
        "\"",
        "\\",
        "\n",
        "\u{e4}",
        "\u{1f600}",
        "{",
        "}",
        "[",
        ",",
        "/",
        "\u{1}",
    ];
    let count = random.below(6);
    let piece = |random: &mut Random| pieces[random.below(pieces.len() as u64) as usize];
    (0..count).map(|_| piece(random)).collect()
}

/// A string of JSON, with escapes that are needed and some that are not.
fn string(text: &str, random: &mut Random) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '/' if random.chance(0.5) => out.push_str("\\/"),
            other if random.chance(0.2) => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

fn space(random: &mut Random) -> &'static str {
    ["", "", "", " ", "\n", "\t\r\n "][random.below(6) as usize]
}

/// The seed of a file.
pub fn plausible(random: &mut Random) -> Vec<u8> {
    let mut input = vec![SEED];
    input.extend_from_slice(&random.next_u64().to_le_bytes());
    input
}
