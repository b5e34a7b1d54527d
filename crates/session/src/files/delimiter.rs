//! What stands between the fields of a CSV file, where neither its name nor an option says it.
//!
//! It is a comma, unless the first records have no fields of it: if there is one other sign that
//! divides each of them into the same number of fields, that sign is it, and a note says so. Where
//! several do, nothing is guessed.

use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryPool;
use mayfly_exec::TimeSlice;
use mayfly_records::{ChunkStep, CsvReader, CsvSyntax, Format};
use mayfly_types::{COLUMNS_MAX, ErrorCode, Level, MySqlError, Warning};

use super::text_file::{FileChunk, TextOptions};

/// Signs other than a comma.
const OTHERS: [u8; 3] = [b';', b'|', b'\t'];
/// Records that are looked at, of those of the first chunk.
const RECORDS_MAX: usize = 1000;

/// The sign, and what is to be said of it.
#[derive(Debug)]
pub(super) struct Delimiter {
    pub(super) sign: u8,
    pub(super) warning: Option<Warning>,
}

/// Looks at the first records of a file.
///
/// # Errors
/// If it cannot be opened.
pub(super) async fn guess(
    options: &TextOptions,
    syntax: CsvSyntax,
    path: &str,
    pool: &Arc<dyn MemoryPool>,
    slice: &mut TimeSlice,
) -> Result<Delimiter, MySqlError> {
    let comma = Delimiter {
        sign: syntax.delimiter,
        warning: None,
    };
    if divides(options, syntax, path, pool, slice).await? {
        return Ok(comma);
    }
    let mut signs = Vec::new();
    let is_free = |sign: &u8| ![syntax.quote, syntax.escape].contains(&Some(*sign));
    for delimiter in OTHERS.into_iter().filter(is_free) {
        let syntax = CsvSyntax {
            delimiter,
            ..syntax
        };
        if divides(options, syntax, path, pool, slice).await? {
            signs.push(delimiter);
        }
    }
    let names: Vec<String> = signs.iter().map(|sign| named(*sign)).collect();
    Ok(match signs.as_slice() {
        [] => comma,
        [sign] => Delimiter {
            sign: *sign,
            warning: Some(note(format!(
                "The fields of file '{path}' are read with {} between them, as all of its first \
                 lines have it; (delimiter = ',') behind its name is for commas",
                names.join("")
            ))),
        },
        _ => Delimiter {
            warning: Some(note(format!(
                "The fields of file '{path}' may have {} between them; it is read with commas \
                 unless (delimiter = ...) behind its name says which",
                names.join(" or ")
            ))),
            ..comma
        },
    })
}

fn note(text: String) -> Warning {
    Warning {
        level: Level::Note,
        error: MySqlError::with_message(ErrorCode::Unknown, text),
    }
}

/// The sign as an option has it.
pub(super) fn named(sign: u8) -> String {
    match sign {
        b'\t' => "'\\t'".to_owned(),
        sign => format!("'{}'", char::from(sign)),
    }
}

/// Whether all of the first records have the same number of fields, and more than one.
async fn divides(
    options: &TextOptions,
    syntax: CsvSyntax,
    path: &str,
    pool: &Arc<dyn MemoryPool>,
    slice: &mut TimeSlice,
) -> Result<bool, MySqlError> {
    let options = TextOptions {
        format: Format::Csv(syntax),
        ..options.clone()
    };
    let mut reader = options.open(path, pool)?;
    loop {
        slice.share().await;
        match reader.step() {
            Ok(ChunkStep::Chunk(chunk)) => return Ok(is_even(chunk, syntax)),
            Ok(ChunkStep::Reading) => {}
            // Whoever reads the rows is told of what is wrong with them.
            Ok(ChunkStep::End) | Err(_) => return Ok(false),
        }
    }
}

fn is_even(mut chunk: FileChunk, syntax: CsvSyntax) -> bool {
    let mut width = None;
    for _ in 0..RECORDS_MAX {
        let fields = match CsvReader::header(syntax, &mut chunk, COLUMNS_MAX) {
            Ok(Some(fields)) => fields.len(),
            Ok(None) => break,
            Err(_) => return false,
        };
        if *width.get_or_insert(fields) != fields {
            return false;
        }
    }
    width.is_some_and(|width| width > 1)
}
