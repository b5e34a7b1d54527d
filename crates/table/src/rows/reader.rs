//! Reading a filled [`GroupSet`]: partition after partition, freeing pages behind.

use std::sync::Arc;

use super::Error;
use super::decode::GroupColumns;
use super::directory::directory_bytes;
use super::drain::Drain;
use super::group_set::{GroupSet, SPLIT_BITS};
use super::hash::Level;
use super::partition::Mode;
use super::row_table::{RowTable, Scratch};
use super::segment::{Segment, Shape};
use super::split::split_pages;
use super::stop::StopFlag;

/// A part with more than one in this many rows of what was split was not split by its hash: its
/// keys share more of that than they do by chance, and the other hash goes on.
const UNSPLIT_SHARE: usize = 2;

/// What one step of a reader came to.
pub enum ReadStep {
    /// Finished groups.
    Groups(GroupColumns),
    /// Work without groups so far: rows of a partition were merged, or split. Whoever shares a
    /// thread with others lets them run before the next step.
    Working,
    /// There are no more groups.
    End,
}

/// One thread's way out of a [`GroupSet`], opened when every worker has finished.
pub struct GroupReader {
    set: Arc<GroupSet>,
    settled: bool,
    draining: Option<Drain>,
    /// Parts of a split partition, the next one last.
    parts: Vec<Part>,
    scratch: Scratch,
}

/// Rows that belong together by the hash bits of their level.
pub(crate) struct Part {
    pub(crate) number: u32,
    pub(crate) level: Level,
    pub(crate) cold: Vec<Segment>,
    /// Every living row is a group of its own.
    pub(crate) unique: bool,
}

impl GroupReader {
    /// A reader; several share the partitions between them.
    pub fn new(set: Arc<GroupSet>) -> GroupReader {
        let scratch = Scratch::default();
        GroupReader {
            set,
            settled: false,
            draining: None,
            parts: Vec::new(),
            scratch,
        }
    }

    /// Up to `rows_max` finished groups; `None` at the end. For whoever shares a thread with
    /// nobody: operators take [`GroupReader::step`].
    ///
    /// # Errors
    /// Whatever the temp space reports; then the set is to be dropped.
    pub fn next_batch(&mut self, rows_max: usize) -> Result<Option<GroupColumns>, Error> {
        loop {
            match self.step(rows_max)? {
                ReadStep::Groups(groups) => return Ok(Some(groups)),
                ReadStep::Working => {}
                ReadStep::End => return Ok(None),
            }
        }
    }

    /// The same in steps: each goes over one partition at most, or gives up to `rows_max` groups.
    ///
    /// # Errors
    /// As [`GroupReader::next_batch`].
    pub fn step(&mut self, rows_max: usize) -> Result<ReadStep, Error> {
        if let Some(drain) = &mut self.draining {
            match drain.next_batch(rows_max)? {
                Some(batch) => return Ok(ReadStep::Groups(batch)),
                None => self.draining = None,
            }
        }
        if self.settle_next()? {
            return Ok(ReadStep::Working);
        }
        let Some(part) = self.next_part()? else {
            return Ok(ReadStep::End);
        };
        self.draining = self.finish_part(part)?;
        Ok(ReadStep::Working)
    }

    /// The flag that ends its steps early.
    pub fn stop_flag(&self) -> &StopFlag {
        &self.set.shape.stop
    }

    pub(crate) fn set(&self) -> &Arc<GroupSet> {
        &self.set
    }

    /// Parts that come next, the first one first.
    pub(crate) fn push_parts(&mut self, parts: impl DoubleEndedIterator<Item = Part>) {
        self.parts.extend(parts.rev());
    }

    /// The next part to finish: of a split partition first, then a whole partition.
    pub(crate) fn next_part(&mut self) -> Result<Option<Part>, Error> {
        if let Some(part) = self.parts.pop() {
            return Ok(Some(part));
        }
        let Some(number) = self.set.take_partition() else {
            return Ok(None);
        };
        self.set.read_ahead(number as usize);
        let mut partition = self.set.lock(number as usize);
        // Another reader may have drawn its number and not got to it.
        partition.settle(&mut self.scratch)?;
        let (cold, unique) = partition.take_pages();
        Ok(Some(Part {
            number,
            level: partition.level(),
            cold,
            unique,
        }))
    }

    /// Settles partitions, together with the other readers, until all are. From here on the set
    /// pins nothing that is not being read, so operators above find memory.
    ///
    /// # Errors
    /// Whatever the temp space reports.
    pub fn settle(&mut self) -> Result<(), Error> {
        while self.settle_next()? {}
        Ok(())
    }

    /// The next step of [`GroupReader::settle`]: one partition; false if none was left.
    ///
    /// # Errors
    /// Whatever the temp space reports.
    pub fn settle_next(&mut self) -> Result<bool, Error> {
        if self.settled {
            return Ok(false);
        }
        match self.set.take_unsettled() {
            Some(number) => self.set.lock(number as usize).settle(&mut self.scratch)?,
            None => self.settled = true,
        }
        Ok(!self.settled)
    }

    /// Bytes of pages and directory that one reader may pin at once.
    fn share_bytes(&self) -> u64 {
        let limit = self.set.shape.account.space().memory_bytes();
        limit / 2 / self.set.options.workers.max(1) as u64
    }

    fn finish_part(&mut self, part: Part) -> Result<Option<Drain>, Error> {
        let Part {
            number,
            level,
            mut cold,
            unique,
        } = part;
        if unique {
            return Ok(Some(Drain::new(
                Arc::clone(&self.set.shape),
                Vec::new(),
                cold,
            )));
        }
        if cold.is_empty() {
            return Ok(None);
        }
        let rows: usize = cold.iter().map(|s| s.rows as usize).sum();
        let bytes: u64 = cold.iter().map(|s| s.page.len_bytes() as u64).sum();
        if bytes + directory_bytes(rows) <= self.share_bytes() {
            match RowTable::adopt(&self.set.shape, level, cold, number, &mut self.scratch)? {
                Ok(table) => return Ok(Some(table.drain())),
                Err(pages) => cold = pages,
            }
        }
        // A part that is too large after a split, or one of repeating keys, may have few groups.
        if level.bits() > self.set.options.partition_bits || self.set.merges() {
            let table = RowTable::new(&self.set.shape, level, 0, usize::MAX)?;
            if let Some(mut table) = table {
                if table.merge_pages(&mut cold, &mut self.scratch)? {
                    return Ok(Some(table.drain()));
                }
                cold.extend(table.withdraw(number));
            }
        }
        self.split(number, level, cold).map(|()| None)
    }

    /// Splits rows by the next hash bits into parts that are finished one after the other.
    fn split(&mut self, number: u32, level: Level, cold: Vec<Segment>) -> Result<(), Error> {
        let mode = if self.set.merges() {
            Mode::Merge
        } else {
            Mode::Append
        };
        let shape = Arc::clone(&self.set.shape);
        let parts = split_part(&shape, number, level, cold, mode, &mut self.scratch)?;
        self.push_parts(parts.into_iter());
        Ok(())
    }
}

/// Splits the pages of a part by the next [`SPLIT_BITS`] hash bits, freeing them one by one.
pub(crate) fn split_part(
    shape: &Arc<Shape>,
    number: u32,
    level: Level,
    cold: Vec<Segment>,
    mode: Mode,
    scratch: &mut Scratch,
) -> Result<Vec<Part>, Error> {
    let Some(below) = level.below(SPLIT_BITS) else {
        // Keys are equal for all that matters.
        let asked_bytes = cold.iter().map(|s| s.page.len_bytes() as u64).sum();
        return Err(shape.short_of(asked_bytes).into());
    };
    let rows_before: usize = cold.iter().map(|segment| segment.rows as usize).sum();
    let partitions = split_pages(shape, number, below, SPLIT_BITS, cold, mode, scratch)?;
    let mut parts = Vec::with_capacity(partitions.len());
    for mut partition in partitions {
        let (cold, unique) = partition.take_pages();
        if !cold.is_empty() {
            let rows: usize = cold.iter().map(|segment| segment.rows as usize).sum();
            let is_split = rows <= rows_before / UNSPLIT_SHARE;
            parts.push(Part {
                number,
                level: if is_split { below } else { below.by_second() },
                cold,
                unique,
            });
        }
    }
    Ok(parts)
}
