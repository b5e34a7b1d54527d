//! The benchmarks' data, generated once and kept.
//!
//! Owns: the files of the cache directory and how they are written. Every file depends on its
//! name alone: the same name has the same bytes on every machine.
//! Never: leaves half a file under its final name.

pub(crate) mod joins;
pub(crate) mod lineitem;
pub(crate) mod seed0;
pub(crate) mod seed1;
pub(crate) mod tpch;
pub(crate) mod windows;

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::error::{BenchError, Context, data_error};

/// Rows of a Parquet row group: DuckDB's own default, small enough that two threads share a
/// million rows evenly.
const ROW_GROUP_ROWS: usize = 122_880;

/// One generated table.
#[derive(Clone, Debug)]
pub(crate) struct Dataset {
    /// Name of the table in systems that load it.
    pub(crate) table: String,
    pub(crate) parquet: PathBuf,
    /// Tab-separated rows without a header, for systems that load text.
    pub(crate) tsv: Option<PathBuf>,
    /// Columns with MySQL types, for CREATE TABLE.
    pub(crate) columns: String,
    /// The columns of its primary key; MariaDB's table alone has it.
    pub(crate) primary_key: Option<&'static str>,
    pub(crate) rows: u64,
    /// Bytes of the rows in memory, as Arrow view arrays.
    pub(crate) bytes: u64,
}

impl Dataset {
    /// One that is read from its file alone: no system loads it.
    fn of_file(table: String, parquet: PathBuf, rows: u64, bytes: u64) -> Self {
        Self {
            table,
            parquet,
            tsv: None,
            columns: String::new(),
            primary_key: None,
            rows,
            bytes,
        }
    }
}

/// A table with its name in statements, where it stands as `{NAME}`.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) dataset: Dataset,
}

impl Named {
    pub(crate) fn new(name: &str, dataset: &Dataset) -> Self {
        Self {
            name: name.to_owned(),
            dataset: dataset.clone(),
        }
    }
}

/// A generator with 64 bits of state (Steele, Lea, Flood: Fast splittable pseudorandom number
/// generators, OOPSLA 2014).
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, by the high bits of a product: as good as even for any `n` of rows.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        let product = u128::from(self.next()) * u128::from(n);
        u64::try_from(product >> 64).expect("the high half of a product")
    }

    /// A number in [0, 1), like MySQL's `rand()`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The place of `i` in a fixed permutation of the numbers below `n`.
///
/// A bijection of the next power of two is applied again until it is below `n`, which keeps it a
/// bijection.
pub(crate) fn permuted(i: u64, n: u64) -> u64 {
    let mask = n.next_power_of_two() - 1;
    let half = (mask.count_ones() / 2).max(1);
    let mut value = i;
    loop {
        // Odd factors and shifts to the right can be undone, so no two numbers become one.
        value = value.wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask;
        value ^= value >> half;
        value = value.wrapping_mul(0xBF58_476D_1CE4_E5B9) & mask;
        value ^= value >> half;
        if value < n {
            return value;
        }
    }
}

/// The row count that a Parquet file itself states.
fn row_count(parquet: &Path) -> Result<u64, BenchError> {
    let file = File::open(parquet).context(|| format!("opening {}", parquet.display()))?;
    let reader = SerializedFileReader::new(file).map_err(data_error("reading Parquet"))?;
    let rows = reader.metadata().file_metadata().num_rows();
    Ok(u64::try_from(rows).expect("a file has no negative number of rows"))
}

/// Writes `path` once: nothing happens when it exists.
fn once(path: &Path, write: impl FnOnce(File) -> Result<(), BenchError>) -> Result<(), BenchError> {
    if path.exists() {
        return Ok(());
    }
    let dir = path
        .parent()
        .expect("a file of the cache directory has a parent");
    fs::create_dir_all(dir).context(|| format!("creating {}", dir.display()))?;
    let partial = path.with_extension(format!("partial-{}", std::process::id()));
    let start = Instant::now();
    eprint!("generating {} ... ", path.display());
    let file = File::create(&partial).context(|| format!("creating {}", partial.display()))?;
    write(file)?;
    fs::rename(&partial, path).context(|| format!("renaming {}", partial.display()))?;
    eprintln!("{:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Writes batches as Parquet with Snappy, which every system reads.
fn write_parquet(
    path: &Path,
    schema: &SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, BenchError>>,
) -> Result<(), BenchError> {
    once(path, |file| {
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .set_compression(Compression::SNAPPY)
            .build();
        let mut writer = ArrowWriter::try_new(file, SchemaRef::clone(schema), Some(properties))
            .map_err(data_error("writing Parquet"))?;
        for batch in batches {
            writer
                .write(&batch?)
                .map_err(data_error("writing Parquet"))?;
        }
        writer.close().map_err(data_error("writing Parquet"))?;
        Ok(())
    })
}

/// Writes text lines.
fn write_tsv(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>,
) -> Result<(), BenchError> {
    once(path, |file| {
        let mut writer = BufWriter::with_capacity(1 << 20, file);
        write(&mut writer)
            .and_then(|()| writer.flush())
            .context(|| format!("writing {}", path.display()))
    })
}

/// Reads a file once, so that every system finds it in the page cache, charged to nobody's cgroup.
pub(crate) fn warm(path: &Path) {
    if let Ok(mut file) = File::open(path) {
        // A file that cannot be read fails visibly in the system that reads it.
        let _copied = std::io::copy(&mut file, &mut std::io::sink()).is_ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_has_every_number_once_and_no_order() {
        for n in [1, 2, 3, 7, 1000, 1024, 4097] {
            let mut values: Vec<u64> = (0..n).map(|i| permuted(i, n)).collect();
            let rising = values.windows(2).filter(|pair| pair[0] < pair[1]).count();
            if n >= 1000 {
                assert!(
                    (400..600).contains(&(rising * 1000 / values.len())),
                    "{n}: {rising}"
                );
            }
            values.sort_unstable();
            assert!(values.into_iter().eq(0..n), "{n}");
        }
    }

    #[test]
    fn numbers_below_a_bound_reach_both_ends() {
        let mut random = SplitMix64::new(7);
        let mut seen = [0_u32; 10];
        for _ in 0..1000 {
            seen[usize::try_from(random.below(10)).expect("below ten")] += 1;
        }
        assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
    }
}
