//! TPC-H `lineitem`, made by the `tpchgen` crates.

use std::path::Path;

use tpchgen::generators::LineItemGenerator;
use tpchgen_arrow::LineItemArrow;

use super::{Dataset, row_count, write_parquet};
use crate::error::{BenchError, data_error};

/// The columns that wide groupings carry (all but `l_shipinstruct` and `l_comment`, as in the
/// published script), with the bytes that a value takes in an Arrow view array.
pub(crate) const COLUMNS: [(&str, u64); 15] = [
    ("l_orderkey", 8),
    ("l_partkey", 8),
    ("l_suppkey", 8),
    ("l_linenumber", 4),
    ("l_quantity", 16),
    ("l_extendedprice", 16),
    ("l_discount", 16),
    ("l_tax", 16),
    ("l_returnflag", 16),
    ("l_linestatus", 16),
    ("l_shipdate", 4),
    ("l_commitdate", 4),
    ("l_receiptdate", 4),
    ("l_shipmode", 16),
    // Three of its four values are longer than the 12 bytes that a view holds.
    ("l_shipinstruct", 16 + 10),
];

/// The table at a scale factor.
pub(crate) fn dataset(cache: &Path, scale: f64) -> Result<Dataset, BenchError> {
    let parquet = cache.join(format!("lineitem-sf{scale}.parquet"));
    let schema = LineItemArrow::schema_ref();
    let generator = LineItemGenerator::new(scale, 1, 1);
    let batches = LineItemArrow::new(generator)
        .with_batch_size(8192)
        .map(|batch| batch.map_err(data_error("building lineitem")));
    write_parquet(&parquet, &schema, batches)?;
    let rows = row_count(&parquet)?;
    let bytes = rows * COLUMNS.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let table = format!("lineitem_{scale}");
    Ok(Dataset::of_file(table, parquet, rows, bytes))
}
