//! What writes one result set, whatever its format.

use std::io::{self, Write};

use super::cells::Cells;

/// Writes one result set.
pub trait ResultWriter {
    /// Takes the next row. The first row comes before any output, so that an empty result set
    /// prints nothing but what [`ResultWriter::finish`] does.
    fn row(&mut self, cells: &Cells, out: &mut dyn Write) -> io::Result<()>;

    /// Ends the result set after its last row.
    fn finish(&mut self, out: &mut dyn Write) -> io::Result<()>;
}
