//! Where many rows of a snapshot lie, and how they are read.
//!
//! **Owns** the places of rows that were found by their numbers: neighbours are one entry, so a
//! range of a key in whose order the rows came is a few bytes, whatever it holds. **Never** pins a
//! page longer than the batch that is read from it.
//!
//! A page of which many rows are wanted is read in place, as a scan would, and cut; of a page with
//! few of them those are copied.

use arrow_array::{RecordBatch, UInt32Array};
use arrow_select::take::take_record_batch;
use mayfly_space::{Account, Admission};

use crate::column_page::StoredRows;
use crate::error::Result;
use crate::sealed::{Ahead, RowNumbers};
use crate::snapshot::{Batch, TableSnapshot};
use crate::table_page::TablePage;

/// A page is read in place from this part of its rows on.
const IN_PLACE_PART: usize = 4;

/// Neighbouring slots of one batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    batch: u32,
    from: u32,
    count: u32,
}

/// The places of rows in a snapshot, in the order in which they lie.
#[derive(Debug)]
pub struct RowPlaces {
    snapshot: TableSnapshot,
    stretches: Vec<Stretch>,
}

impl TableSnapshot {
    /// The places of the rows that have these numbers; a number without a row is left out.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub fn places(&self, mut numbers: Vec<u64>) -> Result<RowPlaces> {
        if !numbers.is_sorted() {
            numbers.sort_unstable();
        }
        let mut stretches = Stretches(Vec::new());
        let pages = self.parts().pages.as_slice();
        let mut rest = numbers.as_slice();
        while let Some(number) = rest.first() {
            let of_page = |page: &TablePage| page.row_numbers();
            let is_before = |page: &TablePage| of_page(page).is_none_or(|of| of.first <= *number);
            let after = pages.partition_point(is_before);
            let page = after.checked_sub(1).and_then(|index| pages.get(index));
            if let Some(of) = page.and_then(of_page).filter(|of| *number <= of.last) {
                let (here, behind) = rest.split_at(rest.partition_point(|other| *other <= of.last));
                stretches.add_of_page(self, after - 1, of, here)?;
                rest = behind;
            } else {
                stretches.add_of_tail(self, *number)?;
                rest = &rest[1..];
            }
        }
        Ok(RowPlaces {
            snapshot: self.clone(),
            stretches: stretches.0,
        })
    }
}

impl RowPlaces {
    /// Reads the rows in their order, each time the wanted ones of one page. The memory that this
    /// needs is the reader's from here on, so that reading does not fail for want of it.
    ///
    /// # Errors
    /// If there is no memory for the largest of the pages.
    pub fn read(self, projection: Vec<usize>) -> Result<RowReader> {
        let batches = self.stretches.iter().map(|stretch| stretch.batch as usize);
        let bytes = batches.map(|batch| self.snapshot.page_bytes_max(batch..batch + 1));
        let account: &Account = self.snapshot.account();
        let admission = account.admit(bytes.max().unwrap_or(0))?;
        let first = self.stretches.first();
        let first = first.map_or(0, |stretch| stretch.batch as usize);
        Ok(RowReader {
            ahead: Ahead::new(account, self.snapshot.default_page_bytes(), first),
            at: 0,
            places: self,
            projection,
            _admission: admission,
        })
    }
}

/// Places that are gathered.
struct Stretches(Vec<Stretch>);

impl Stretches {
    /// Adds rows whose numbers are among those of a page.
    fn add_of_page(
        &mut self,
        snapshot: &TableSnapshot,
        index: usize,
        of: RowNumbers,
        numbers: &[u64],
    ) -> Result<()> {
        let page = &snapshot.parts().pages[index];
        // Rows that were written together have consecutive numbers.
        if of.last - of.first + 1 == page.written_count() as u64 {
            for number in numbers {
                self.add_slot(index, page, (number - of.first) as usize);
            }
            return Ok(());
        }
        let bytes = page.bytes_pinned()?;
        let rows = StoredRows::open(&snapshot.parts().format, &bytes)?;
        let written = rows.numbers()?;
        let count = page.written_count();
        let mut from = 0;
        for &number in numbers {
            if from == count {
                break;
            }
            // Numbers ascend, so between two of them there are no more slots than numbers.
            let distance = number.saturating_sub(written.number(from));
            let distance = usize::try_from(distance).unwrap_or(usize::MAX);
            let mut to = from.saturating_add(distance).min(count - 1);
            while from < to {
                let middle = from + (to - from) / 2;
                match written.number(middle) < number {
                    true => from = middle + 1,
                    false => to = middle,
                }
            }
            if written.number(from) == number {
                self.add_slot(index, page, from);
                from += 1;
            }
        }
        Ok(())
    }

    fn add_slot(&mut self, index: usize, page: &TablePage, slot: usize) {
        if page.has(slot) {
            self.add(index, slot);
        }
    }

    /// Adds a row that is not in a page yet.
    fn add_of_tail(&mut self, snapshot: &TableSnapshot, number: u64) -> Result<()> {
        let parts = snapshot.parts();
        for (index, segment) in parts.segments.iter().enumerate() {
            let rows = StoredRows::open(&parts.format, segment.bytes())?;
            if let Some(slot) = rows.place_of(number)? {
                self.add(parts.pages.len() + index, slot);
                return Ok(());
            }
        }
        Ok(())
    }

    fn add(&mut self, batch: usize, slot: usize) {
        let (batch, slot) = (batch as u32, slot as u32);
        match self.0.last_mut() {
            Some(last) if last.batch == batch && last.from + last.count == slot => last.count += 1,
            _ => self.0.push(Stretch {
                batch,
                from: slot,
                count: 1,
            }),
        }
    }
}

/// Reads the rows of some places, batch by batch.
#[derive(Debug)]
pub struct RowReader {
    // fixed
    projection: Vec<usize>,
    // state
    places: RowPlaces,
    /// The stretches before were read.
    at: usize,
    ahead: Ahead,
    // resources
    _admission: Admission,
}

impl RowReader {
    fn read_batch(&self, index: usize, stretches: &[Stretch]) -> Result<RecordBatch> {
        let parts = self.places.snapshot.parts();
        let wanted: usize = stretches.iter().map(|stretch| stretch.count as usize).sum();
        let batch = parts.batch(index);
        let projection = Some(self.projection.as_slice());
        if wanted * IN_PLACE_PART < batch.written_count() {
            let slots: Vec<u32> = slots_of(stretches).collect();
            return batch.read_slots(&parts.format, projection, &slots);
        }
        let written = match batch {
            Batch::Page(page) => page.written_columns(&parts.format, projection)?,
            Batch::Segment(segment) => parts.format.decode(&segment.source(), projection)?,
        };
        Ok(match stretches {
            [one] => written.slice(one.from as usize, one.count as usize),
            _ => take_record_batch(
                &written,
                &UInt32Array::from_iter_values(slots_of(stretches)),
            )?,
        })
    }
}

fn slots_of(stretches: &[Stretch]) -> impl Iterator<Item = u32> {
    let slots = stretches.iter();
    slots.flat_map(|stretch| stretch.from..stretch.from + stretch.count)
}

impl Iterator for RowReader {
    type Item = Result<RecordBatch>;

    /// The rows of the next page, pointing into it or in memory of their own. After an error, those
    /// of the page that follows.
    fn next(&mut self) -> Option<Self::Item> {
        let stretches = &self.places.stretches;
        let rest = stretches.get(self.at..)?;
        let batch = rest.first()?.batch;
        let last = rest.last()?.batch as usize;
        for index in self.ahead.pages(batch as usize, last + 1) {
            let is_wanted = rest.binary_search_by_key(&index, |stretch| stretch.batch as usize);
            if is_wanted.is_ok() {
                self.places.snapshot.prefetch(index);
            }
        }
        let count = rest.partition_point(|stretch| stretch.batch <= batch);
        let read = self.read_batch(batch as usize, &rest[..count]);
        self.at += count;
        Some(read)
    }
}
