//! Column pages: some rows of a schema, column by column, in one page.
//!
//! **Owns** the layout of a column page, its encoder and its decoder.
//!
//! **Never** allocates or pins a page, and keeps no state: bytes in, arrays out.
//!
//! ```text
//! header, 64 bytes | one entry of 32 bytes a column | buffers, each aligned to 64 bytes
//! magic, rows,       kind, nulls, offsets and         validity, values, data of column 0,
//! columns, bytes     lengths of up to 3 buffers       validity, values, data of column 1, ...
//! ```
//!
//! Numbers, decimals, dates and the like are Arrow's own buffers, so reading them copies nothing:
//! the arrays point into the page and keep it pinned. In pages of tables, integers and decimals are
//! their distances from the least of the page, of fewer bytes, where that is narrower (`frame`);
//! they are widened while reading, and texts that repeat are codes of one or two bytes, of the
//! different ones (`text_codes`). All other text and binary values, of all lengths, are stored as
//! 32-bit end offsets and one data area: 4 bytes a value where views would take 16.
//! `Utf8` and `Binary` columns are read without a copy; for `Utf8View` and `BinaryView` the views
//! are built while reading and point into the page. A view holds the first four bytes of its value:
//! those of values longer than a cache line stand behind the data once more, so that a scan that
//! has no use for long texts does not load a line of each. A dictionary column is stored as its
//! values, and read back as a dictionary whose keys count the rows. Nested columns are stored as an
//! Arrow IPC stream, in which a nested dictionary is whole: one that is longer than a page makes
//! each page longer than that.
//!
//! All offsets are relative to the page, so the page in memory is the page on disk.
//!
//! **Source**: PAX (Ailamaki et al., VLDB 2001) with Arrow's buffers as minipages.
//!
//! **Cost**: `docs/decisions/column-pages.md`.

mod decode;
mod distinct_texts;
mod edit;
mod encode;
mod fixed_bytes;
mod form;
mod format;
mod frame;
#[cfg(test)]
mod fuzz;
mod layout;
mod row_bits;
mod sizes;
mod stored;
mod text_codes;
mod value_bytes;

pub use decode::Source;
pub use distinct_texts::DistinctTexts;
pub(crate) use edit::Edits;
pub use encode::Prepared;
pub use format::{Format, Rows, Size};
pub(crate) use sizes::ALIGNMENT;
pub(crate) use sizes::{PREFIX_BYTES, PREFIXED_BYTES};
pub(crate) use stored::{Columns, Joined, StoredColumn, StoredRows, StoredValue};
pub(crate) use text_codes::{Codes, TextShare};

const _: () = assert!(
    cfg!(target_endian = "little"),
    "pages hold Arrow's own buffers"
);
