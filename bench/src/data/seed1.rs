//! The table of "Benchmarking Aria": `id int`, `tea text`.
//!
//! `insert t1 select rand()*2e8, repeat(rand(), rand()*64)` until there are 2,097,152 rows: each
//! row draws three numbers; the product is rounded, the text is the first number as MySQL prints
//! a DOUBLE (shortest digits that read back), repeated 0 to 64 times.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{Int32Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};

use super::{Dataset, SplitMix64, write_parquet, write_tsv};
use crate::error::{BenchError, data_error};

/// Rows of the table.
pub(crate) const ROWS: u32 = 2_097_152;
const SEED: u64 = 0x6d61_7966_6c79_0001;
const BATCH_ROWS: u32 = 8192;
/// `id`, a view, and 18 characters 32 times in the mean.
const ROW_BYTES: u64 = 4 + 16 + 18 * 32;

/// The table; the text form is written only `with_tsv`.
pub(crate) fn dataset(cache: &Path, with_tsv: bool) -> Result<Dataset, BenchError> {
    let parquet = cache.join("seed1.parquet");
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int32, false),
        Field::new("tea", DataType::Utf8, false),
    ]));
    let mut random = SplitMix64::new(SEED);
    let batches = (0..ROWS).step_by(BATCH_ROWS as usize).map(|first| {
        let rows: Vec<(i32, String)> = (first..ROWS.min(first + BATCH_ROWS))
            .map(|_| row(&mut random))
            .collect();
        let id = Int32Array::from_iter_values(rows.iter().map(|(id, _)| *id));
        let tea = StringArray::from_iter_values(rows.iter().map(|(_, tea)| tea));
        RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(id), Arc::new(tea)])
            .map_err(data_error("building seed1"))
    });
    write_parquet(&parquet, &schema, batches)?;

    let tsv = cache.join("seed1.tsv");
    if with_tsv {
        let mut random = SplitMix64::new(SEED);
        write_tsv(&tsv, |file| {
            (0..ROWS).try_for_each(|_| {
                let (id, tea) = row(&mut random);
                writeln!(file, "{id}\t{tea}")
            })
        })?;
    }
    Ok(Dataset {
        table: "seed1".to_owned(),
        parquet,
        tsv: with_tsv.then_some(tsv),
        columns: "id INT, tea TEXT".to_owned(),
        primary_key: None,
        rows: u64::from(ROWS),
        bytes: u64::from(ROWS) * ROW_BYTES,
    })
}

fn row(random: &mut SplitMix64) -> (i32, String) {
    #[expect(clippy::cast_possible_truncation, reason = "at most 2e8")]
    let id = (random.unit() * 2e8).round() as i32;
    let text = random.unit().to_string();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 64"
    )]
    let count = (random.unit() * 64.0).round() as usize;
    (id, text.repeat(count))
}
