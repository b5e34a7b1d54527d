//! Left sides whose keys share hashes of the stock join.
//!
//! DataFusion's join hashes with a seed that everybody knows. Its hash of two numbers can be
//! inverted: a client chooses the second one of each row such that all rows have one hash. Rows of
//! one hash are a list, which is walked for each row of the other side that has it: ten thousand
//! rows on either side are a hundred million steps. Our tables have secrets and watch the length
//! of their probes (`mayfly_table::rows`, `hash`), so such a left side goes there, however small
//! it is.
//!
//! **How.** Rows are counted by some bits of their hashes. Only where these have many rows a second
//! hash is computed, under a secret (SipHash): rows that share the first one and not the second
//! have different keys. Many rows of one key are none of that.
//!
//! **Cost.** Some 5 ns a row; for rows of a key that many have about 40 ns, up to [`LOOKED_MAX`].

use std::hash::RandomState as SecretState;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::take;
use datafusion::common::Result;
use datafusion::common::hash_utils::{RandomState, create_hashes, create_hashes_with_hasher};
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;

/// The seed of the stock join's hashes: `HASH_JOIN_SEED` in DataFusion 55.
const STOCK_SEED: u64 = 12_210_250_226_015_887_276;
/// Fewer rows may share a hash.
const ROWS_MIN: usize = 1024;
/// So many keys of one hash are nobody's will; of more than a few it is no chance.
const SHARED_MAX: usize = 64;
/// Of rows whose hashes are looked at closely this many are taken.
const LOOKED_MAX: usize = 1 << 16;

/// Whether many different keys of some rows have one hash in the stock join. Keys are looked at
/// where they are columns, which is where planners of joins put them.
pub(super) fn are_shared(batches: &[RecordBatch], keys: &[PhysicalExprRef]) -> Result<bool> {
    let stock = RandomState::with_seed(STOCK_SEED);
    are_shared_in(batches, keys, |keys, hashes| {
        create_hashes(keys, &stock, hashes)?;
        Ok(())
    })
}

fn are_shared_in(
    batches: &[RecordBatch],
    keys: &[PhysicalExprRef],
    hash: impl Fn(&[ArrayRef], &mut [u64]) -> Result<()>,
) -> Result<bool> {
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    let columns = keys.iter().map(|key| key.downcast_ref().map(Column::index));
    let Some(columns) = columns.collect::<Option<Vec<_>>>() else {
        return Ok(false);
    };
    if rows < ROWS_MIN {
        return Ok(false);
    }
    let keys_of = |batch: &RecordBatch| -> Vec<ArrayRef> {
        let keys = columns.iter();
        keys.map(|column| ArrayRef::clone(batch.column(*column)))
            .collect()
    };
    let mut hashes = vec![0; rows];
    let mut rest = hashes.as_mut_slice();
    for batch in batches {
        let (of_batch, behind) = rest.split_at_mut(batch.num_rows());
        hash(&keys_of(batch), of_batch)?;
        rest = behind;
    }
    let counts = Counts::of(&hashes);
    let crowded = hashes.iter().filter(|hash| counts.are_many(**hash)).count();
    if crowded == 0 {
        return Ok(false);
    }
    let step = crowded.div_ceil(LOOKED_MAX);
    let secret = SecretState::new();
    let mut found: Vec<(u64, u64)> = Vec::new();
    let (mut number, mut rest) = (0, hashes.as_slice());
    for batch in batches {
        let (of_batch, behind) = rest.split_at(batch.num_rows());
        rest = behind;
        let is_picked = |row: &u32| {
            let is_crowded = counts.are_many(of_batch[*row as usize]);
            number += usize::from(is_crowded);
            is_crowded && number % step == 0
        };
        let picked: UInt32Array = (0..batch.num_rows() as u32).filter(is_picked).collect();
        let keys = keys_of(batch).into_iter();
        let keys = keys.map(|key| take(&key, &picked, None));
        let keys = keys.collect::<std::result::Result<Vec<_>, _>>()?;
        let mut second = vec![0; picked.len()];
        create_hashes_with_hasher(&keys, &secret, &mut second)?;
        let first = picked.values().iter().map(|row| of_batch[*row as usize]);
        found.extend(first.zip(second));
    }
    found.sort_unstable();
    found.dedup();
    let mut of_one = found.chunk_by(|one, other| one.0 == other.0);
    Ok(of_one.any(|keys| keys.len() > SHARED_MAX))
}

/// How many rows there are by some bits of their hashes.
struct Counts {
    counts: Vec<u32>,
    bits: u32,
}

impl Counts {
    fn of(hashes: &[u64]) -> Counts {
        let bits = hashes.len().next_power_of_two().ilog2().max(1);
        let mut counts = Counts {
            counts: vec![0; 1 << bits],
            bits,
        };
        for hash in hashes {
            let place = counts.place(*hash);
            counts.counts[place] += 1;
        }
        counts
    }

    fn place(&self, hash: u64) -> usize {
        let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (u64::BITS - self.bits)) as usize
    }

    /// Whether so many rows have hashes like this one that they may all have the same.
    fn are_many(&self, hash: u64) -> bool {
        self.counts[self.place(hash)] as usize > SHARED_MAX
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, Int64Array, StringViewArray};
    use arrow::datatypes::Int64Type;

    use super::*;

    fn batches(columns: Vec<ArrayRef>) -> Vec<RecordBatch> {
        let columns = columns.into_iter().enumerate();
        let columns = columns.map(|(place, column)| (format!("c{place}"), column));
        let all = RecordBatch::try_from_iter(columns).unwrap();
        let cut = all.num_rows() / 3;
        vec![all.slice(0, cut), all.slice(cut, all.num_rows() - cut)]
    }

    fn columns(count: usize) -> Vec<PhysicalExprRef> {
        let column = |place| Arc::new(Column::new(&format!("c{place}"), place)) as PhysicalExprRef;
        (0..count).map(column).collect()
    }

    fn numbers(rows: i64, of: impl Fn(i64) -> i64) -> ArrayRef {
        Arc::new(Int64Array::from_iter_values((0..rows).map(of)))
    }

    /// Pairs of numbers that have one hash in the stock join.
    pub(in crate::join) fn pairs_of_one_hash(rows: i64) -> Vec<ArrayRef> {
        let first = numbers(rows, |row| row);
        let mut hashes = vec![0; rows as usize];
        let stock = RandomState::with_seed(STOCK_SEED);
        create_hashes([&first], &stock, &mut hashes).unwrap();
        let second = hashes.into_iter().map(|hash| (hash ^ 4711) as i64);
        let second = Int64Array::from_iter_values(second);
        vec![first, Arc::new(second)]
    }

    #[test]
    fn keys_that_were_made_to_share_a_hash_are_found() {
        let pairs = pairs_of_one_hash(4_000);
        let mut hashes = vec![0; 4_000];
        let stock = RandomState::with_seed(STOCK_SEED);
        create_hashes(&pairs, &stock, &mut hashes).unwrap();
        assert!(hashes.iter().all(|hash| *hash == hashes[0]));
        assert!(are_shared(&batches(pairs.clone()), &columns(2)).unwrap());
        // One of the two says nothing bad.
        assert!(!are_shared(&batches(pairs), &columns(1)).unwrap());
    }

    #[test]
    fn a_few_of_them_among_others_are_found() {
        let pairs = pairs_of_one_hash(300);
        let mixed = |place: usize| {
            let pairs = pairs[place].as_primitive::<Int64Type>().clone();
            let of = move |row: i64| match row % 100 {
                7 => pairs.value((row / 100) as usize),
                _ => row * 31,
            };
            numbers(30_000, of)
        };
        let columns_of = vec![mixed(0), mixed(1)];
        assert!(are_shared(&batches(columns_of), &columns(2)).unwrap());
    }

    #[test]
    fn rows_of_one_key_are_not() {
        for values in [1, 3, 1_000, 50_000] {
            let number = numbers(20_000, |row| row % values);
            let texts = (0..20_000).map(|row| format!("the text of {}", row % values));
            let texts = Arc::new(StringViewArray::from_iter_values(texts));
            let nulls = (0..20_000).map(|row| (row % 3 > 0).then_some(row % values));
            let nulls = Arc::new(nulls.collect::<Int64Array>());
            let batches = batches(vec![number, texts, nulls]);
            for keys in 1..=3 {
                let keys = columns(keys);
                assert!(!are_shared(&batches, &keys).unwrap(), "{values} {keys:?}");
            }
        }
    }

    #[test]
    fn hashes_by_a_weak_function_are_found() {
        let batches = batches(vec![numbers(200_000, |row| row / 2)]);
        // 1,000 keys of each hash, two rows of each key; and 20 keys, which may be chance.
        for (keys_each, is_found) in [(1_000, true), (20, false)] {
            let weak = |keys: &[ArrayRef], hashes: &mut [u64]| {
                let values = keys[0].as_primitive::<Int64Type>().values();
                for (hash, value) in hashes.iter_mut().zip(values) {
                    *hash = (value / keys_each) as u64;
                }
                Ok(())
            };
            let found = are_shared_in(&batches, &columns(1), weak).unwrap();
            assert_eq!(found, is_found, "{keys_each}");
        }
    }
}
