//! A hash table over the rows of one part, of which several may have one key.

use std::sync::Arc;

use mayfly_space::Admission;

use super::super::Error;
use super::super::encode::KeysView;
use super::super::hash::Level;
use super::super::layout::{ROW_ALIGN, RowLayout, row_is_dead};
use super::super::row_table::{Found, RowTable, Scratch};
use super::super::segment::{Shape, or_short};
use super::marks::Marks;
use super::part::JoinPart;

/// Reservations count in KiB: a table has two.
const ROUNDING_BYTES: u64 = 2 << 10;

/// A table over pinned pages. Threads may look rows up and mark them at the same time.
pub struct JoinTable {
    table: RowTable,
    marks: Option<Marks>,
    rows: usize,
    number: u32,
    level: Level,
    /// What it takes, beside the minimum of its side; goes last.
    _admission: Option<Admission>,
}

/// Whose memory a table takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableMemory {
    /// What is free, within the limits of the account. The minimum of the side is not touched.
    Free,
    /// The minimum of the side, which has room for a table over one page for each worker.
    Minimum,
}

/// Where a walk over the rows of a table goes on.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowCursor {
    page: usize,
    offset: usize,
}

impl JoinTable {
    /// Builds a table over the pages of a part, and gives them back where memory is short.
    ///
    /// # Errors
    /// Whatever else the temp space reports.
    pub fn build(
        part: JoinPart,
        keeps_marks: bool,
        memory: TableMemory,
    ) -> Result<Result<JoinTable, JoinPart>, Error> {
        let admission = match memory {
            TableMemory::Free => {
                let bytes = part.table_bytes(keeps_marks) + ROUNDING_BYTES;
                match or_short(part.shape.account.admit_within_limits(bytes))? {
                    Some(admission) => Some(admission),
                    None => return Ok(Err(part)),
                }
            }
            TableMemory::Minimum => None,
        };
        let JoinPart {
            shape,
            number,
            level,
            pages,
            has_marks,
        } = part;
        let rows = pages.iter().map(|page| page.rows as usize).sum();
        let pages = Vec::from(pages);
        let give_back = |pages: Vec<_>| JoinPart {
            has_marks,
            ..JoinPart::new(&shape, number as usize, level, pages)
        };
        let marks = match keeps_marks {
            true => match Marks::new(&shape, pages.len())? {
                Some(marks) => Some(marks),
                None => return Ok(Err(give_back(pages))),
            },
            false => None,
        };
        let mut scratch = Scratch::default();
        let table = match RowTable::adopt(&shape, level, pages, number, &mut scratch)? {
            Ok(table) => table,
            Err(pages) => return Ok(Err(give_back(pages))),
        };
        let table = JoinTable {
            table,
            marks,
            rows,
            number,
            level,
            _admission: admission,
        };
        if has_marks && table.marks.is_some() {
            table.each_row(|reference, row| {
                if row_is_dead(row) {
                    table.mark(reference);
                }
            })?;
        }
        Ok(Ok(table))
    }

    /// Gives the table up: its rows as pages that nobody has pinned, those that are marked so
    /// there.
    pub(crate) fn into_part(mut self) -> JoinPart {
        if let Some(marks) = &self.marks {
            self.table.mark_in_pages(|reference| marks.has(reference));
        }
        let shape = self.table.shape_arc();
        let pages = self.table.withdraw(self.number).collect();
        JoinPart {
            has_marks: self.marks.is_some(),
            ..JoinPart::new(&shape, self.number as usize, self.level, pages)
        }
    }

    /// Its rows.
    pub fn row_count(&self) -> usize {
        self.rows
    }

    /// Bytes of its pages and its directory.
    pub fn held_bytes(&self) -> u64 {
        self.table.held_bytes()
    }

    pub(crate) fn layout(&self) -> &RowLayout {
        &self.table.shape().layout
    }

    /// Whether several rows have one key.
    pub(crate) fn has_doubles(&self) -> bool {
        self.table.has_doubles()
    }

    /// Shows all rows with their references, in the order in which they were entered.
    pub(crate) fn each_row(&self, mut see: impl FnMut(u32, &[u8])) -> Result<(), Error> {
        for (number, page) in self.table.segments().iter().enumerate() {
            self.table.shape().stop.check()?;
            let mut at = 0;
            while at < page.used {
                let row = page.row(at as usize);
                see(self.table.reference_to(number, at), row);
                at += self.layout().row_len(row) as u32;
            }
        }
        Ok(())
    }

    pub(crate) fn find(
        &self,
        keys: KeysView<'_>,
        rows: &[u32],
        found: &mut Found,
        scratch: &mut Scratch,
    ) {
        self.table.find(keys, rows, found, scratch);
    }

    /// The next row with the same key.
    #[inline]
    pub(crate) fn next_of(&self, reference: u32) -> Option<u32> {
        self.table.next_of(reference)
    }

    /// The row at a reference, and what follows it in its page.
    #[inline]
    pub(crate) fn row(&self, reference: u32) -> &[u8] {
        self.table.row(reference)
    }

    /// Marks a row; whether it was not marked before.
    pub(crate) fn mark(&self, reference: u32) -> bool {
        let marks = self.marks.as_ref();
        marks
            .expect("the table was built with marks")
            .set(reference)
    }

    pub(crate) fn is_marked(&self, reference: u32) -> bool {
        let marks = self.marks.as_ref();
        marks
            .expect("the table was built with marks")
            .has(reference)
    }

    /// Appends the next rows that are wanted to `references`, at most `rows_max` of them or
    /// `bytes_max` bytes; false once there are no more.
    pub(crate) fn walk(
        &self,
        cursor: &mut RowCursor,
        (rows_max, bytes_max): (usize, usize),
        is_wanted: impl Fn(u32) -> bool,
        references: &mut Vec<u32>,
    ) -> Result<bool, Error> {
        self.table.shape().stop.check()?;
        let layout = self.layout();
        let mut bytes = 0;
        let first = references.len();
        while let Some(page) = self.table.segments().get(cursor.page) {
            while cursor.offset < page.used as usize {
                if references.len() - first >= rows_max || bytes >= bytes_max {
                    return Ok(true);
                }
                let offset = u32::try_from(cursor.offset).expect("a row starts within a page");
                debug_assert_eq!(cursor.offset % ROW_ALIGN, 0);
                let reference = self.table.reference_to(cursor.page, offset);
                let row_len = layout.row_len(page.row(cursor.offset));
                cursor.offset += row_len;
                if is_wanted(reference) {
                    references.push(reference);
                    bytes += row_len;
                }
            }
            cursor.page += 1;
            cursor.offset = 0;
        }
        Ok(references.len() > first)
    }
}

impl std::fmt::Debug for JoinTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinTable")
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

/// What all tables of a side share.
pub(crate) fn shape_of(table: &JoinTable) -> Arc<Shape> {
    table.table.shape_arc()
}
