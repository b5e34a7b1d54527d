//! Measurements that choose the constants of the space.
//!
//! **Owns** nothing. **Never** used by the space itself. Each function makes its own files and
//! memory, returns a [`Table`], and leaves nothing behind. On a machine that others use too, only
//! the ratios inside one table mean anything.

mod codecs;
mod device;
mod memory;

use std::path::PathBuf;
use std::time::Duration;

pub use codecs::codecs;
pub use device::{buffered_and_direct, busy_cores, device, fresh_and_recycled};
pub use memory::{MemoryWalk, frames, huge_pages, scatter};

use crate::Result;

/// How long and where to measure.
#[derive(Debug, Clone)]
pub struct MeasureOptions {
    /// Where temp files are made; the system's temp directory when `None`.
    pub dir: Option<PathBuf>,
    /// How long each point of the device measurements runs.
    pub point: Duration,
    /// How large the temp file is, and the memory that is walked.
    pub bytes: u64,
    /// Fewer points.
    pub quick: bool,
}

impl Default for MeasureOptions {
    fn default() -> MeasureOptions {
        MeasureOptions {
            dir: None,
            point: Duration::from_millis(250),
            bytes: 512 << 20,
            quick: true,
        }
    }
}

/// One value of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A setting or a name.
    Text(String),
    /// A whole number, for example a depth.
    Count(u64),
    /// A measured value.
    Value(f64),
}

/// The result of a measurement.
#[derive(Debug, Clone)]
pub struct Table {
    /// A short name for files and arguments.
    pub name: &'static str,
    /// What was measured.
    pub title: &'static str,
    /// Column headings, with units.
    pub columns: &'static [&'static str],
    /// As many cells each as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A measurement by name.
pub type Measurement = fn(&MeasureOptions) -> Result<Table>;

/// Every measurement, in the order in which they are worth reading.
pub const ALL: [(&str, Measurement); 8] = [
    ("device", device),
    ("buffered", buffered_and_direct),
    ("recycled", fresh_and_recycled),
    ("huge_pages", huge_pages),
    ("scatter", scatter),
    ("codecs", codecs),
    ("busy_cores", busy_cores),
    ("frames", frames),
];

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Cell {
        Cell::Count(count)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::Value(value)
    }
}

/// Megabytes per second.
fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64().max(1e-9)
}

/// Nanoseconds each.
fn each(time: Duration, count: u64) -> f64 {
    time.as_nanos() as f64 / count.max(1) as f64
}

/// Scrambles a number; the low bits of the result depend on all bits of it.
fn mix(number: u64) -> u64 {
    let z = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (z ^ (z >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) ^ (z >> 29)
}
