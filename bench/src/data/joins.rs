//! Both sides of joins: keys of a chosen distribution, and texts of a chosen width.
//!
//! The parameters are those of the generator of "Saving Private Hash Join" (VLDB 2025): number
//! of rows, number of keys, Zipf, payload. The stream of numbers is our own.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema};

use super::{Dataset, SplitMix64, permuted, write_parquet};
use crate::error::{BenchError, data_error};

const SEED: u64 = 0x6d61_7966_6c79_0003;
const BATCH_ROWS: u64 = 8192;

/// How the keys of a column are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Keys {
    /// Every key below the number of rows once, in no order.
    Unique,
    /// Any of so many keys, all alike.
    Uniform(u64),
    /// Any of so many keys by the inverse of Zipf's distribution; the exponent in hundredths.
    Zipf(u64, u32),
    /// Key 0 in so many rows, evenly spread; the others as unique.
    UniqueBut(u64),
    /// Key 0 in so many rows, evenly spread; the others any of so many keys.
    UniformBut(u64, u64),
}

/// One side of a join.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Side {
    pub(crate) rows: u64,
    /// A column `k`, or columns `k1`, `k2` ... where there are several.
    pub(crate) keys: Vec<Keys>,
    /// Bytes of the text `pay`; none without such a column.
    pub(crate) width: Option<usize>,
}

impl Side {
    /// Bytes of a row in memory: keys and a number, and a text as a view.
    fn row_bytes(&self) -> u64 {
        let text = match self.width {
            None => 0,
            // As long a text fits its view.
            Some(width) if width <= 12 => 16,
            Some(width) => 16 + width as u64,
        };
        (self.keys.len() as u64 + 1) * 8 + text
    }

    fn name(&self) -> String {
        let keys: Vec<String> = self
            .keys
            .iter()
            .map(|keys| match keys {
                Keys::Unique => "unique".to_owned(),
                Keys::Uniform(n) => format!("of_{n}"),
                Keys::Zipf(n, exponent) => format!("zipf_{exponent}_of_{n}"),
                Keys::UniqueBut(rows) => format!("unique_but_{rows}"),
                Keys::UniformBut(rows, n) => format!("of_{n}_but_{rows}"),
            })
            .collect();
        let width = self.width.map_or(String::new(), |w| format!("_{w}"));
        format!("joins_{}_{}{width}", self.rows, keys.join("_"))
    }

    fn schema(&self) -> Schema {
        let number = |name: String| Field::new(name, DataType::Int64, false);
        let mut fields = match self.keys.len() {
            1 => vec![number("k".to_owned())],
            many => (1..=many).map(|i| number(format!("k{i}"))).collect(),
        };
        fields.push(number("v".to_owned()));
        if self.width.is_some() {
            fields.push(Field::new("pay", DataType::Utf8, false));
        }
        Schema::new(fields)
    }

    fn column(&self, row: u64, keys: Keys, random: &mut SplitMix64) -> u64 {
        match keys {
            Keys::Unique => permuted(row, self.rows),
            Keys::Uniform(n) => random.below(n),
            Keys::Zipf(n, exponent) => zipf(random.unit(), n, exponent),
            Keys::UniqueBut(heavy) if is_marked(row, self.rows, heavy) => 0,
            Keys::UniqueBut(_) => permuted(row, self.rows) + 1,
            Keys::UniformBut(heavy, _) if is_marked(row, self.rows, heavy) => 0,
            Keys::UniformBut(_, n) => random.below(n) + 1,
        }
    }
}

/// The table of a side.
pub(crate) fn dataset(cache: &Path, side: &Side) -> Result<Dataset, BenchError> {
    let table = side.name();
    let parquet = cache.join(format!("{table}.parquet"));
    let schema = Arc::new(side.schema());
    let mut random: Vec<SplitMix64> = (0..side.keys.len() as u64)
        .map(|column| SplitMix64::new(SEED + (side.rows << 8) + column))
        .collect();
    let batches = (0..side.rows)
        .step_by(usize::try_from(BATCH_ROWS).expect("a batch fits memory"))
        .map(|first| {
            let rows = first..side.rows.min(first + BATCH_ROWS);
            let mut columns: Vec<ArrayRef> = Vec::new();
            for (keys, random) in side.keys.iter().zip(&mut random) {
                let keys = (rows.clone()).map(|row| side.column(row, *keys, random));
                columns.push(Arc::new(Int64Array::from_iter_values(keys.map(signed))));
            }
            columns.push(Arc::new(Int64Array::from_iter_values(
                rows.clone().map(|row| signed(row % 1000)),
            )));
            if let Some(width) = side.width {
                let texts = rows.map(|row| text(row, width));
                columns.push(Arc::new(StringArray::from_iter_values(texts)));
            }
            RecordBatch::try_new(Arc::clone(&schema), columns)
                .map_err(data_error("building a side of a join"))
        });
    write_parquet(&parquet, &schema, batches)?;
    let bytes = side.rows * side.row_bytes();
    Ok(Dataset::of_file(table, parquet, side.rows, bytes))
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).expect("keys are numbers of rows")
}

/// Hexadecimal digits that do not compress much.
fn text(row: u64, width: usize) -> String {
    let mut random = SplitMix64::new(SEED ^ (row << 20));
    let mut text = String::with_capacity(width + 16);
    while text.len() < width {
        text.push_str(&format!("{:016x}", random.next()));
    }
    text.truncate(width);
    text
}

/// Whether a row is one of `marked`, evenly spread over `rows`.
fn is_marked(row: u64, rows: u64, marked: u64) -> bool {
    (row + 1) * marked / rows > row * marked / rows
}

/// A key below `n` for a number in [0, 1): the inverse of the continuous form of Zipf's
/// distribution, whose density falls with the power of the exponent.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a key between 1 and n"
)]
fn zipf(unit: f64, n: u64, exponent: u32) -> u64 {
    let power = 1.0 - f64::from(exponent) / 100.0;
    let most = (n + 1) as f64;
    let rank = if power == 0.0 {
        most.powf(unit)
    } else {
        ((most.powf(power) - 1.0) * unit + 1.0).powf(1.0 / power)
    };
    (rank as u64).clamp(1, n) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zipf_prefers_small_keys_more_with_a_larger_exponent() {
        let share_of_first = |exponent| {
            let mut random = SplitMix64::new(1);
            let keys = (0..10_000).map(|_| zipf(random.unit(), 1000, exponent));
            let mut first = 0;
            for key in keys {
                assert!(key < 1000);
                first += u32::from(key == 0);
            }
            first
        };
        let shares = [0, 50, 100].map(share_of_first);
        // A thousandth, about a hundredth, ln 2 / ln 1000 = a tenth.
        assert!(shares[0] < 30, "{shares:?}");
        assert!((50..400).contains(&shares[1]), "{shares:?}");
        assert!((800..1200).contains(&shares[2]), "{shares:?}");
    }

    #[test]
    fn a_heavy_key_has_its_rows() {
        let side = Side {
            rows: 1000,
            keys: vec![Keys::UniqueBut(100)],
            width: None,
        };
        let mut random = SplitMix64::new(1);
        let mut keys: Vec<u64> = (0..1000)
            .map(|row| side.column(row, side.keys[0], &mut random))
            .collect();
        keys.sort_unstable();
        assert_eq!(keys.iter().filter(|key| **key == 0).count(), 100);
        keys.dedup();
        assert_eq!(keys.len(), 901);
    }

    #[test]
    fn texts_have_their_width_and_differ() {
        for width in [8, 64, 256] {
            assert_eq!(text(1, width).len(), width);
            assert_ne!(text(1, width), text(2, width));
        }
    }

    #[test]
    fn bytes_of_a_row_count_long_texts_beside_their_view() {
        let bytes = |width| {
            Side {
                rows: 1,
                keys: vec![Keys::Unique],
                width,
            }
            .row_bytes()
        };
        assert_eq!([None, Some(8), Some(64)].map(bytes), [16, 32, 96]);
    }
}
