//! Rows for window functions: `(id, g, v, c)` with `id` in no order, each once.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{Int32Array, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};

use super::{Dataset, SplitMix64, permuted, write_parquet};
use crate::error::{BenchError, data_error};

const SEED: u64 = 0x6d61_7966_6c79_0004;
const BATCH_ROWS: u64 = 8192;
/// Two numbers of 8 bytes, one of 4, a view and its 32 bytes.
const ROW_BYTES: u64 = 8 + 8 + 4 + 16 + 32;

/// The table with `rows` rows in at most `partitions` partitions of `g`.
pub(crate) fn dataset(cache: &Path, rows: u64, partitions: u64) -> Result<Dataset, BenchError> {
    let table = format!("windows_{rows}_{partitions}");
    let parquet = cache.join(format!("{table}.parquet"));
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("g", DataType::Int64, false),
        Field::new("v", DataType::Int32, false),
        Field::new("c", DataType::Utf8, false),
    ]));
    let mut random = SplitMix64::new(SEED);
    let batches = (0..rows)
        .step_by(usize::try_from(BATCH_ROWS).expect("a batch fits memory"))
        .map(|first| {
            let numbers = first..rows.min(first + BATCH_ROWS);
            let signed = |value: u64| i64::try_from(value).expect("a number of a row");
            let ids = numbers.clone().map(|row| signed(permuted(row, rows)));
            let id = Int64Array::from_iter_values(ids);
            let mut g = Vec::new();
            let mut v = Vec::new();
            let mut c = Vec::new();
            for row in numbers {
                // With as many partitions as rows, each row is one.
                g.push(signed(if partitions == rows {
                    permuted(rows - 1 - row, rows)
                } else {
                    random.below(partitions)
                }));
                v.push(i32::try_from(random.below(1000)).expect("a small number"));
                c.push(format!("{:032x}", random.next()));
            }
            let columns: Vec<arrow::array::ArrayRef> = vec![
                Arc::new(id),
                Arc::new(Int64Array::from(g)),
                Arc::new(Int32Array::from(v)),
                Arc::new(StringArray::from(c)),
            ];
            RecordBatch::try_new(Arc::clone(&schema), columns)
                .map_err(data_error("building rows of windows"))
        });
    write_parquet(&parquet, &schema, batches)?;
    Ok(Dataset::of_file(table, parquet, rows, rows * ROW_BYTES))
}
