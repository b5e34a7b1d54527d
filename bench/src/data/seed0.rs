//! Rows `(i int unsigned, c char(32))` with a mostly unique `c`.
//!
//! `c` is a random 62-bit number in 32 hexadecimal digits.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{RecordBatch, StringArray, UInt32Array};
use arrow::datatypes::{DataType, Field, Schema};

use super::{Dataset, SplitMix64, write_parquet, write_tsv};
use crate::error::{BenchError, data_error};

const SEED: u64 = 0x6d61_7966_6c79_0000;
const BATCH_ROWS: u32 = 8192;
/// A view and 32 bytes for `c`, 4 for `i`.
const ROW_BYTES: u64 = 16 + 32 + 4;

/// The table with `rows` rows; the text form is written only `with_tsv`.
pub(crate) fn dataset(cache: &Path, rows: u32, with_tsv: bool) -> Result<Dataset, BenchError> {
    let parquet = cache.join(format!("seed0-{rows}.parquet"));
    let schema = Arc::new(Schema::new(vec![
        Field::new("i", DataType::UInt32, false),
        Field::new("c", DataType::Utf8, false),
    ]));
    let mut random = SplitMix64::new(SEED);
    let batches = (0..rows).step_by(BATCH_ROWS as usize).map(|first| {
        let end = rows.min(first + BATCH_ROWS);
        let i = UInt32Array::from_iter_values(first..end);
        let c = StringArray::from_iter_values((first..end).map(|_| digits(&mut random)));
        RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(i), Arc::new(c)])
            .map_err(data_error("building seed0"))
    });
    write_parquet(&parquet, &schema, batches)?;

    let tsv = cache.join(format!("seed0-{rows}.tsv"));
    if with_tsv {
        let mut random = SplitMix64::new(SEED);
        write_tsv(&tsv, |file| {
            (0..rows).try_for_each(|i| writeln!(file, "{i}\t{}", digits(&mut random)))
        })?;
    }
    Ok(Dataset {
        table: format!("seed0_{rows}"),
        parquet,
        tsv: with_tsv.then_some(tsv),
        columns: "i INT UNSIGNED NOT NULL, c CHAR(32) NOT NULL".to_owned(),
        primary_key: None,
        rows: u64::from(rows),
        bytes: u64::from(rows) * ROW_BYTES,
    })
}

fn digits(random: &mut SplitMix64) -> String {
    format!("{:032x}", random.next() >> 2)
}
