//! What stands between the fields of a CSV file, where neither its name nor an option says it.
//!
//! It is a comma, unless the first record has none between its fields: if there is one other sign
//! that divides each of the first records into the same number of fields, that sign is it, and a
//! note says so. Where several do, nothing is guessed. A file whose first record has commas, or is
//! wrong, is read with them, so that a wrong row is told and does not make another table of it.

use std::sync::Arc;

use datafusion::execution::memory_pool::MemoryPool;
use mayfly_exec::TimeSlice;
use mayfly_records::{ChunkStep, CsvReader, CsvSyntax, Error, Format};
use mayfly_types::{COLUMNS_MAX, ErrorCode, Level, MySqlError, Warning};

use super::sign::named;
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
    let of_comma = shape(options, syntax, path, pool, slice).await?;
    if of_comma.is_none_or(|shape| shape.first > 1) {
        return Ok(comma);
    }
    let mut signs = Vec::new();
    let is_free = |sign: &u8| ![syntax.quote, syntax.escape].contains(&Some(*sign));
    for delimiter in OTHERS.into_iter().filter(is_free) {
        let syntax = CsvSyntax {
            delimiter,
            ..syntax
        };
        let found = shape(options, syntax, path, pool, slice).await?;
        if found.is_some_and(|shape| shape.first > 1 && shape.is_even) {
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

/// What a sign makes of the first records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// The number of fields of the first one.
    first: usize,
    /// Whether all are right and have as many.
    is_even: bool,
}

/// What a sign makes of the first records; `None` if there are none, or the first one is wrong.
async fn shape(
    options: &TextOptions,
    syntax: CsvSyntax,
    path: &str,
    pool: &Arc<dyn MemoryPool>,
    slice: &mut TimeSlice,
) -> Result<Option<Shape>, MySqlError> {
    let options = TextOptions {
        format: Format::Csv(syntax),
        ..options.clone()
    };
    let mut reader = options.open(path, pool)?;
    loop {
        slice.share().await;
        match reader.step() {
            Ok(ChunkStep::Chunk(chunk)) => return Ok(shape_of(chunk, syntax)),
            Ok(ChunkStep::Reading) => {}
            // Whoever reads the rows is told of what is wrong with them.
            Ok(ChunkStep::End) | Err(_) => return Ok(None),
        }
    }
}

fn shape_of(mut chunk: FileChunk, syntax: CsvSyntax) -> Option<Shape> {
    let mut width = || {
        let fields = CsvReader::header(syntax, &mut chunk, COLUMNS_MAX);
        fields.map(|fields| fields.map(|fields| fields.len()))
    };
    let first = match width() {
        Ok(first) => first?,
        // Another sign stands behind the quote, and none of these in front of it.
        Err(Error::TextAfterQuote { field: 1, .. }) => {
            return Some(Shape {
                first: 1,
                is_even: false,
            });
        }
        Err(_) => return None,
    };
    let mut is_even = true;
    for _ in 1..RECORDS_MAX {
        match width() {
            Ok(Some(fields)) if fields == first => {}
            Ok(None) => break,
            Ok(Some(_)) | Err(_) => {
                is_even = false;
                break;
            }
        }
    }
    Some(Shape { first, is_even })
}
