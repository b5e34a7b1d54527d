//! The tables of all partitions of a side that have one: where a batch finds its partners.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};

use super::super::Error;
use super::super::encode::KeysView;
use super::super::numbers::Numbers;
use super::super::row_table::{Found, Scratch};
use super::super::scatter::Scatter;
use super::super::segment::Shape;
use super::direct::DirectHeads;
use super::filter::KeyFilter;
use super::keys::JoinKeys;
use super::page::JoinPage;
use super::part::JoinPart;
use super::row_ref::RowRef;
use super::side::SideRows;
use super::stored::{Stored, decode_stored};
use super::table::{JoinTable, RowCursor};

/// Rows of a batch with a row that has the same key, in the order of the batch.
#[derive(Debug, Default)]
pub struct Matches {
    /// The rows of the batch.
    pub rows: Vec<u32>,
    /// Their partners.
    pub found: Vec<RowRef>,
}

/// How far the matches of a batch were listed.
#[derive(Debug, Clone, Copy, Default)]
pub struct MatchCursor {
    row: usize,
    next: Option<RowRef>,
}

impl MatchCursor {
    /// The first row of which not all matches were listed.
    pub fn row(&self) -> usize {
        self.row
    }
}

/// What there is of one partition.
#[derive(Clone)]
enum Slot {
    /// No row has a key that somebody can look for.
    Empty,
    Table(Arc<JoinTable>),
    /// Its rows are in pages without a table.
    Absent,
}

/// Tables by partition. Threads may probe them at the same time.
pub struct JoinTables {
    shape: Arc<Shape>,
    slots: Vec<Slot>,
    /// Where keys are numbers that lie close together, and every row is in a table.
    direct: Option<Arc<DirectHeads>>,
    /// Whether several rows of a table have one key.
    has_doubles: bool,
    /// A row of zeros, which stands for no row until its columns are made NULL.
    zeros: Vec<u8>,
}

/// A table that was given up, while threads may still be in the midst of a batch with it.
pub struct LeavingTable {
    partition: usize,
    table: Arc<JoinTable>,
}

impl LeavingTable {
    /// The bytes that it has pinned.
    pub fn held_bytes(&self) -> u64 {
        self.table.held_bytes()
    }

    /// Its partition and its rows, once nobody uses the table any more.
    pub fn try_into_part(self) -> Result<(usize, JoinPart), LeavingTable> {
        let LeavingTable { partition, table } = self;
        match Arc::try_unwrap(table) {
            Ok(table) => Ok((partition, table.into_part())),
            Err(table) => Err(LeavingTable { partition, table }),
        }
    }
}

/// Buffers of a prober, kept between batches.
#[derive(Default)]
pub struct ProbeScratch {
    scatter: Scatter,
    found: Found,
    scratch: Scratch,
    hashes: Vec<u64>,
    picked: Vec<u32>,
    numbers: Numbers,
}

/// What looking a batch up gives.
#[derive(Default)]
pub struct Looked {
    /// For each row of the batch the first row with its key.
    pub heads: Vec<RowRef>,
    /// Rows whose partners may be in a partition without a table.
    pub absent: Vec<u32>,
    /// Rows that would be among those, had the filter not told better.
    pub dropped: u64,
}

impl JoinTables {
    /// Without any row, for the partitions of a side.
    pub fn new(side: &SideRows) -> JoinTables {
        JoinTables::of_shape(side.shape(), 1 << side.partition_bits())
    }

    fn of_shape(shape: &Arc<Shape>, partitions: usize) -> JoinTables {
        JoinTables {
            zeros: vec![0; shape.layout.fixed_row_bytes()],
            shape: Arc::clone(shape),
            slots: (0..partitions).map(|_| Slot::Empty).collect(),
            direct: None,
            has_doubles: false,
        }
    }

    /// Without any row, in one partition.
    pub fn empty(side: &SideRows) -> JoinTables {
        JoinTables::of_shape(side.shape(), 1)
    }

    /// One table, in which all keys are looked up.
    pub fn of_one(table: JoinTable) -> JoinTables {
        let mut tables = JoinTables::of_shape(&super::table::shape_of(&table), 1);
        tables.set_table(0, table);
        tables
    }

    /// Puts the table of a partition in its place.
    pub fn set_table(&mut self, partition: usize, table: JoinTable) {
        self.has_doubles |= table.has_doubles();
        self.slots[partition] = Slot::Table(Arc::new(table));
    }

    /// Addresses rows directly where their keys allow it and no partition is absent.
    ///
    /// # Errors
    /// Whatever the temp space reports, but for shortage of memory.
    pub fn address_directly(&mut self) -> Result<(), Error> {
        let mut tables = Vec::new();
        for (number, slot) in self.slots.iter().enumerate() {
            match slot {
                Slot::Empty => {}
                Slot::Table(table) => tables.push((number, table.as_ref())),
                Slot::Absent => return Ok(()),
            }
        }
        self.direct = DirectHeads::build(&self.shape, &tables)?.map(Arc::new);
        Ok(())
    }

    /// Looks all rows of a batch up that is addressed directly; false where it is not.
    pub fn find_direct(
        &self,
        key: &[ArrayRef],
        looked: &mut Looked,
        scratch: &mut ProbeScratch,
    ) -> bool {
        let Some(direct) = &self.direct else {
            return false;
        };
        let numbers = &mut scratch.numbers;
        numbers.read(&key[0]);
        if numbers.has_nulls() && !self.shape.layout.has_unmatchable_keys() {
            // NULL is a key as any other.
            return false;
        }
        direct.find(numbers, &mut looked.heads);
        looked.absent.clear();
        looked.dropped = 0;
        true
    }

    /// Says that a partition has rows but no table.
    pub fn set_absent(&mut self, partition: usize, _part: &JoinPart) {
        self.slots[partition] = Slot::Absent;
    }

    /// The partitions with a table, and the bytes that each of them has pinned.
    pub fn held_bytes(&self) -> impl Iterator<Item = (usize, u64)> {
        let tables = self.slots.iter().enumerate();
        tables.filter_map(|(partition, slot)| match slot {
            Slot::Table(table) => Some((partition, table.held_bytes())),
            Slot::Empty | Slot::Absent => None,
        })
    }

    /// These tables but for that of one partition, which is absent there.
    pub fn without(&self, partition: usize) -> (JoinTables, LeavingTable) {
        let Slot::Table(table) = &self.slots[partition] else {
            unreachable!("a table that is given up is there");
        };
        let leaving = LeavingTable {
            partition,
            table: Arc::clone(table),
        };
        let mut slots = self.slots.clone();
        slots[partition] = Slot::Absent;
        let rest = JoinTables {
            shape: Arc::clone(&self.shape),
            slots,
            direct: None,
            has_doubles: self.has_doubles,
            zeros: self.zeros.clone(),
        };
        (rest, leaving)
    }

    /// The number of partitions.
    pub fn partition_count(&self) -> usize {
        self.slots.len()
    }

    /// Looks all rows of a batch up, or those that are `matchable`.
    pub fn find(
        &self,
        keys: &JoinKeys,
        matchable: Option<&[u32]>,
        filter: Option<&KeyFilter>,
        looked: &mut Looked,
        scratch: &mut ProbeScratch,
    ) {
        self.find_keys(keys.view(), matchable, filter, looked, scratch);
    }

    /// Looks all rows of a page up.
    pub fn find_page(&self, page: &JoinPage, looked: &mut Looked, scratch: &mut ProbeScratch) {
        self.find_keys(page.view(), None, None, looked, scratch);
    }

    fn find_keys(
        &self,
        keys: KeysView<'_>,
        matchable: Option<&[u32]>,
        filter: Option<&KeyFilter>,
        looked: &mut Looked,
        scratch: &mut ProbeScratch,
    ) {
        let Looked {
            heads,
            absent,
            dropped,
        } = looked;
        let ProbeScratch {
            scatter,
            found,
            scratch,
            hashes,
            picked,
            ..
        } = scratch;
        heads.clear();
        heads.resize(keys.hashes.len(), RowRef::NONE);
        absent.clear();
        *dropped = 0;
        let all: &[u32] = match matchable {
            Some(rows) => rows,
            None => {
                picked.clear();
                picked.extend(0..keys.hashes.len() as u32);
                picked
            }
        };
        let mut find_in = |partition: usize, rows: &[u32]| match &self.slots[partition] {
            Slot::Empty => {}
            Slot::Table(table) => {
                table.find(keys, rows, found, scratch);
                for (row, reference) in &found.known {
                    heads[*row as usize] = RowRef::new(partition, *reference);
                }
            }
            Slot::Absent => {
                let before = absent.len();
                let may_have = |row: &&u32| {
                    filter.is_none_or(|filter| filter.may_have(keys.hashes[**row as usize]))
                };
                absent.extend(rows.iter().filter(may_have));
                *dropped += (rows.len() - (absent.len() - before)) as u64;
            }
        };
        if self.slots.len() == 1 {
            find_in(0, all);
            return;
        }
        hashes.clear();
        hashes.extend(all.iter().map(|row| keys.hashes[*row as usize]));
        scatter.sort(hashes, 0, self.slots.len().trailing_zeros());
        let mut rows = Vec::new();
        for partition in 0..self.slots.len() {
            rows.clear();
            let places = scatter.rows_of(partition);
            rows.extend(places.iter().map(|place| all[*place as usize]));
            if !rows.is_empty() {
                find_in(partition, &rows);
            }
        }
    }

    /// Lists matches of a batch from the cursor on: with all rows of a key behind their head. Ends
    /// at the end of the batch, or when there are `rows_max` of them or they have `bytes_max`
    /// bytes.
    ///
    /// # Errors
    /// Where nobody wants them any more.
    pub fn matches(
        &self,
        heads: &[RowRef],
        cursor: &mut MatchCursor,
        (rows_max, bytes_max): (usize, usize),
        matches: &mut Matches,
    ) -> Result<(), Error> {
        self.shape.stop.check()?;
        let Matches { rows, found } = matches;
        rows.clear();
        found.clear();
        let layout = &self.shape.layout;
        let mut bytes = 0;
        while cursor.row < heads.len() {
            let mut next = cursor.next.take().unwrap_or(heads[cursor.row]);
            while next.is_some() {
                if rows.len() >= rows_max || bytes >= bytes_max {
                    cursor.next = Some(next);
                    return Ok(());
                }
                rows.push(cursor.row as u32);
                found.push(next);
                let table = self.table(next);
                bytes += match layout.has_one_len() {
                    true => layout.fixed_row_bytes(),
                    false => layout.row_len(table.row(next.reference())),
                };
                if !self.has_doubles {
                    break;
                }
                next = match table.next_of(next.reference()) {
                    Some(reference) => RowRef::new(next.table(), reference),
                    None => RowRef::NONE,
                };
            }
            cursor.row += 1;
        }
        Ok(())
    }

    fn table(&self, row: RowRef) -> &JoinTable {
        match &self.slots[row.table()] {
            Slot::Table(table) => table,
            _ => unreachable!("a row that was found is in a table"),
        }
    }

    /// The bytes of a row.
    pub fn row_bytes(&self, row: RowRef) -> usize {
        self.shape
            .layout
            .row_len(self.table(row).row(row.reference()))
    }

    /// Marks a row; whether it was not marked before.
    pub fn mark(&self, row: RowRef) -> bool {
        self.table(row).mark(row.reference())
    }

    /// Marks all rows with the key of `head`, and appends them to `marked` if they were not.
    pub fn mark_all(&self, head: RowRef, marked: &mut Vec<RowRef>) {
        let table = self.table(head);
        if !table.mark(head.reference()) {
            // All rows of a key are marked together, the head first; whoever marked it does so now.
            return;
        }
        marked.push(head);
        let mut next = table.next_of(head.reference());
        while let Some(reference) = next {
            table.mark(reference);
            marked.push(RowRef::new(head.table(), reference));
            next = table.next_of(reference);
        }
    }

    /// Whether a row is marked.
    pub fn is_marked(&self, row: RowRef) -> bool {
        self.table(row).is_marked(row.reference())
    }

    /// Whether the key of a row may have an equal.
    pub fn is_matchable(&self, row: RowRef) -> bool {
        let layout = &self.shape.layout;
        layout.is_matchable(layout.key_of(self.table(row).row(row.reference())))
    }

    /// The next rows of a partition, marked or not as `is_marked` says or all of them; false once
    /// there are no more.
    ///
    /// # Errors
    /// Where nobody wants them any more.
    pub fn walk(
        &self,
        partition: usize,
        cursor: &mut RowCursor,
        limits: (usize, usize),
        is_marked: Option<bool>,
        rows: &mut Vec<RowRef>,
    ) -> Result<bool, Error> {
        rows.clear();
        let Slot::Table(table) = &self.slots[partition] else {
            return Ok(false);
        };
        let mut references = Vec::new();
        let is_wanted = |row: u32| is_marked.is_none_or(|wanted| table.is_marked(row) == wanted);
        let has_more = table.walk(cursor, limits, is_wanted, &mut references)?;
        let row_of = |reference| RowRef::new(partition, reference);
        rows.extend(references.into_iter().map(row_of));
        Ok(has_more)
    }

    /// Frees the table of a partition.
    pub fn free(&mut self, partition: usize) {
        self.slots[partition] = Slot::Empty;
    }

    /// Columns of rows; those of [`RowRef::NONE`] are NULL.
    ///
    /// # Errors
    /// Where Arrow refuses the values, which it cannot.
    pub fn decode(&self, rows: &[RowRef], columns: &[Stored]) -> Result<Vec<ArrayRef>, Error> {
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        let row_at = |row: &RowRef| match row.is_some() {
            true => self.table(*row).row(row.reference()),
            false => &self.zeros[..],
        };
        let slices: Vec<&[u8]> = rows.iter().map(row_at).collect();
        let has_none = rows.iter().any(|row| !row.is_some());
        let is_absent = has_none.then(|| -> BooleanArray {
            let absent: Vec<bool> = rows.iter().map(|row| !row.is_some()).collect();
            absent.into()
        });
        let layout = &self.shape.layout;
        Ok(decode_stored(layout, &slices, is_absent.as_ref(), columns)?)
    }
}
