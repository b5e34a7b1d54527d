//! Group numbers 0, 1, 2, ... for keys: what vectorised accumulators index their states by.

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use mayfly_space::{Account, PageClass};

use super::Error;
use super::decode::GroupColumns;
use super::encode::{GroupInput, RowBlock, RowsView};
use super::layout::{HEADER_BYTES, RowLayout, row_key_len};
use super::row_table::{Drain, RowTable, Scratch};
use super::segment::Shape;
use super::state::StateKind;

/// Assigns numbers to keys in order of appearance.
pub struct GroupNumbering {
    table: RowTable,
    /// Encodes keys that come as columns; it has no states.
    layout: RowLayout,
    block: RowBlock,
    scratch: Scratch,
}

impl GroupNumbering {
    /// An empty numbering of keys of these types; `None` where memory is short.
    ///
    /// # Errors
    /// Whatever the temp space reports.
    ///
    /// # Panics
    /// Where a row cannot hold one of the types: ask [`RowLayout::supports`] before.
    pub fn new(
        key: &[DataType],
        account: &Account,
        page_class: PageClass,
        level_bits: u32,
    ) -> Result<Option<GroupNumbering>, Error> {
        let supported = "the caller asked RowLayout::supports";
        let numbered = RowLayout::new(key, &[], &[(StateKind::Count, false)]).expect(supported);
        let layout = RowLayout::new(key, &[], &[]).expect(supported);
        let shape = Shape::new(numbered, account.clone(), page_class);
        let table = RowTable::new(&shape, level_bits, 0, usize::MAX)?;
        Ok(table.map(|table| GroupNumbering {
            table,
            layout,
            block: RowBlock::default(),
            scratch: Scratch::default(),
        }))
    }

    /// How many different keys there were.
    pub fn groups(&self) -> usize {
        self.table.groups()
    }

    /// Appends the number of each row's key to `numbers`; false where memory is short, with
    /// `numbers` cut at the first row that has none.
    ///
    /// # Errors
    /// Whatever the temp space reports.
    pub fn assign(
        &mut self,
        rows: usize,
        key: &[ArrayRef],
        numbers: &mut Vec<u32>,
    ) -> Result<bool, Error> {
        let mut block = std::mem::take(&mut self.block);
        block.encode(
            &self.layout,
            &GroupInput {
                rows,
                key,
                payload: &[],
                states: &[],
            },
        );
        let assigned = self.assign_rows(block.view(), HEADER_BYTES, numbers);
        self.block = block;
        assigned
    }

    /// As [`GroupNumbering::assign`], for rows whose key section starts at `key_start`.
    pub(crate) fn assign_rows(
        &mut self,
        rows: RowsView<'_>,
        key_start: usize,
        numbers: &mut Vec<u32>,
    ) -> Result<bool, Error> {
        Ok(self
            .table
            .number(rows, key_start, numbers, &mut self.scratch)?)
    }

    /// The keys in the order of their numbers.
    pub fn into_keys(self) -> GroupKeys {
        GroupKeys {
            drain: self.table.drain(),
        }
    }
}

/// Keys on their way out of a [`GroupNumbering`].
pub struct GroupKeys {
    drain: Drain,
}

impl GroupKeys {
    /// The next keys, at most `rows_max`; `None` at the end.
    ///
    /// # Errors
    /// Where Arrow refuses the values, which it cannot.
    pub fn next_batch(&mut self, rows_max: usize) -> Result<Option<GroupColumns>, Error> {
        self.drain.next_batch(rows_max)
    }
}

/// Writes the row that holds a key and its number.
pub(crate) fn numbered_row(row: &mut Vec<u8>, hash: u64, key: &[u8], number: u64) {
    row.clear();
    row.extend_from_slice(&hash.to_le_bytes());
    let len = (HEADER_BYTES + 8 + key.len()).next_multiple_of(8);
    let total = u32::try_from(len).expect("a key is below 2 GiB");
    row.extend_from_slice(&total.to_le_bytes());
    let key_len = u32::try_from(key.len()).expect("a key is below 2 GiB");
    row.extend_from_slice(&key_len.to_le_bytes());
    row.extend_from_slice(&number.to_le_bytes());
    row.extend_from_slice(key);
    row.resize(len, 0);
}

/// The key bytes of a row.
pub(crate) fn key_of(row: &[u8], key_start: usize) -> &[u8] {
    &row[key_start..key_start + row_key_len(row)]
}
