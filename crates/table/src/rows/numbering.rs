//! Group numbers 0, 1, 2, ... for keys: what vectorised accumulators index their states by.

use arrow_array::ArrayRef;
use mayfly_space::{Account, PageClass};

use super::Error;
use super::decode::GroupColumns;
use super::drain::Drain;
use super::encode::{GroupInput, KeysView, RowBlock};
use super::hash::Level;
use super::layout::KeyColumn;
use super::layout::RowLayout;
use super::row_table::{RowTable, Scratch};
use super::segment::Shape;
use super::slices::{Slice, cut};
use super::state::StateKind;
use super::stop::StopFlag;

/// Assigns numbers to keys in order of appearance.
pub struct GroupNumbering {
    table: RowTable,
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
        key: &[KeyColumn],
        account: &Account,
        page_class: PageClass,
        level: Level,
    ) -> Result<Option<GroupNumbering>, Error> {
        let supported = "the caller asked RowLayout::supports";
        let numbered = RowLayout::new(key, &[], &[(StateKind::Count, false)]).expect(supported);
        let shape = Shape::new(numbered, account.clone(), page_class, StopFlag::default());
        let table = RowTable::new(&shape, level, 0, usize::MAX)?;
        Ok(table.map(|table| GroupNumbering {
            table,
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
        let input = GroupInput {
            rows,
            key,
            payload: &[],
            states: &[],
        };
        let shape = self.table.shape();
        let cuts = cut(&shape.layout, &input).map_err(|row_bytes| shape.short_of(row_bytes))?;
        let mut block = std::mem::take(&mut self.block);
        let mut assigned = Ok(true);
        for rows in cuts {
            let slice = Slice::of(&input, rows);
            let shape = self.table.shape();
            let keys = block.encode_keys(&shape.layout, &shape.hasher, &slice.input());
            assigned = self.assign_keys(keys, numbers);
            if !matches!(assigned, Ok(true)) {
                break;
            }
        }
        block.shrink();
        self.block = block;
        assigned
    }

    /// As [`GroupNumbering::assign`], for keys that are sections already.
    pub(crate) fn assign_keys(
        &mut self,
        keys: KeysView<'_>,
        numbers: &mut Vec<u32>,
    ) -> Result<bool, Error> {
        self.table.number(keys, numbers, &mut self.scratch)
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
