//! What is told of each mutation: the door for tables that outlive the process.
//!
//! **Owns** the interface, and the journal of temporary tables, which is [`Unlogged`]. **Never**
//! decides when something changes: a table and a dictionary have one call for each mutation, right
//! before what they do becomes visible.
//!
//! ```text
//!   Change, Appender --> Table: pages written, memory reserved, entries of keys changed
//!                          |
//!                          +--> Journal::record   may refuse: then nothing has happened
//!                          |
//!                          +--> rows are seen     cannot fail
//! ```
//!
//! # What a durable journal may rely on
//!
//! - **Ahead**: a mutation is told when nothing but the journal can make it fail any more, and
//!   before anybody sees it. So what was seen was told; what was told was seen, unless the process
//!   ended in between, or it was undone. A statement that fails tells nothing, unless it works on a
//!   draft ([`Draft`](crate::Draft)): it tells each of its parts, and that they are undone.
//! - **Once, in order**: mutations of one table are told one after the other, under its lock or by
//!   who has its draft; those of a dictionary under the dictionary's lock. Each mutation of rows
//!   has a version, one more than the one before; a snapshot of the table and row ids mean the rows
//!   of one version.
//! - **By meaning**: rows go and come by their ids in the version before, and as batches. Pages and
//!   keys follow from them. Reading what came is up to the journal; it is encoded already.
//! - **Undo is told too**: a rollback, of a statement or of a transaction, names the version whose
//!   rows come back. It cannot be refused, since a rollback must not fail: a journal that cannot
//!   write it down refuses whatever comes next.
//! - **Definitions** change in the dictionary: ALTER and RENAME put tables in the place of others
//!   ([`Mutation::Exchange`]). A table that takes over the rows of another asks for its journal
//!   ([`Journal::successor`]) when it is made, long before it has a name.
//!
//! A journal is called with a lock held: it must not ask the table or the dictionary for anything
//! that may take the same lock. Which mutations form a transaction is not told: shared tables, the
//! only ones that could be durable, commit each statement by itself.
//!
//! # Cost
//!
//! For a temporary table, one call of an empty function for each mutation, and no allocation.

use std::fmt;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt32Array, UInt64Array};
use arrow_select::take::take_record_batch;

use crate::column_page::{Format, StoredRows};
use crate::error::Result;
use crate::patch::{Patch, Patches};
use crate::removal::{Removal, row_id};
use crate::replace::{Replaced, ReplacedPages};
use crate::sealed::Writer;
use crate::table::Table;
use crate::table_page::TablePage;
use crate::view::View;

/// Is told of each mutation of a table or of a dictionary, as the [module](self) describes.
pub trait Journal: fmt::Debug + Send + Sync {
    /// Takes down what is about to be seen.
    ///
    /// # Errors
    /// Whatever prevents that; the mutation does not happen then, and its statement fails with
    /// this error.
    fn record(&self, mutation: &Mutation<'_>) -> Result<()>;

    /// The rows of a table are about to be those of version `to` again; that state gets a version
    /// of its own.
    fn undo(&self, to: u64, version: u64);

    /// The journal of a table that begins, as its version 0, with the rows of this one. It may be
    /// dropped without ever having had a name.
    fn successor(&self) -> Box<dyn Journal>;
}

/// Something that is about to be seen.
#[derive(Debug)]
#[non_exhaustive]
pub enum Mutation<'a> {
    /// Rows of a table go, become others, and come.
    Rows(RowChange<'a>),
    /// All rows of a table go, and AUTO_INCREMENT begins with 1.
    Truncate {
        /// The version of the table without rows.
        version: u64,
    },
    /// A database comes.
    CreateDatabase {
        /// Its name.
        database: &'a str,
    },
    /// A database goes with its tables.
    DropDatabase {
        /// Its name.
        database: &'a str,
    },
    /// A table gets a name. It may have rows, which were told before.
    CreateTable {
        /// The name of its database.
        database: &'a str,
        /// The table.
        table: &'a Table,
    },
    /// A table loses its name.
    DropTable {
        /// The name of its database.
        database: &'a str,
        /// The table.
        table: &'a Table,
    },
    /// Tables lose their names, and others get theirs, or the same, at once.
    Exchange {
        /// Those that lose them.
        gone: &'a [Place],
        /// Those that get them.
        come: &'a [Place],
    },
    /// A view gets a name, in the place of another view if there is one.
    SetView {
        /// The name of its database.
        database: &'a str,
        /// The view.
        view: &'a View,
    },
    /// A view loses its name.
    DropView {
        /// The name of its database.
        database: &'a str,
        /// Its name.
        view: &'a str,
    },
}

/// What one statement does to the rows of a table. A row that an UPDATE changes is replaced, or
/// removed and appended.
pub struct RowChange<'a> {
    pub(crate) version: u64,
    pub(crate) auto_increment: u64,
    pub(crate) width: usize,
    pub(crate) writer: &'a Writer,
    pub(crate) removal: &'a Removal,
    pub(crate) replaced: &'a ReplacedPages,
    pub(crate) patches: &'a Patches,
    /// The pages of the version before.
    pub(crate) pages: &'a [TablePage],
}

impl RowChange<'_> {
    /// The version of the table with the change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The AUTO_INCREMENT value that comes next.
    pub fn auto_increment(&self) -> u64 {
        self.auto_increment
    }

    /// The number of rows that go.
    pub fn removed_count(&self) -> u64 {
        self.removal.row_count
    }

    /// The ids of the rows that go.
    pub fn removed(&self) -> impl Iterator<Item = u64> {
        let batches = self.removal.slots.iter();
        batches.flat_map(|(batch, slots)| slots.iter().map(|slot| row_id(*batch, slot)))
    }

    /// The rows that become others in their places: their ids, and what they are now.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub fn replaced(&self) -> impl Iterator<Item = Result<(UInt64Array, RecordBatch)>> {
        let pages = self.replaced.iter();
        let pages = pages.map(|(batch, replaced)| self.written_again(*batch, replaced));
        let patches = self.patches.iter();
        pages.chain(patches.map(|(batch, patch)| self.written_over(batch, patch)))
    }

    fn written_again(
        &self,
        batch: usize,
        replaced: &Replaced,
    ) -> Result<(UInt64Array, RecordBatch)> {
        let written = replaced.rows.batch().written(self.format())?;
        let columns: Vec<usize> = (0..self.width).collect();
        let slots: Vec<u32> = replaced.slots.iter().collect();
        let ids = slots.iter().map(|slot| row_id(batch, *slot)).collect();
        let rows = written.project(&columns)?;
        let rows = take_record_batch(&rows, &UInt32Array::from(slots))?;
        Ok((ids, rows))
    }

    fn written_over(&self, batch: usize, patch: &Patch) -> Result<(UInt64Array, RecordBatch)> {
        let bytes = self.pages[batch].bytes_pinned()?;
        let columns: Vec<usize> = (0..self.width).collect();
        let rows = patch.rows(&StoredRows::open(self.format(), &bytes)?, &columns)?;
        let ids = patch
            .slots
            .iter()
            .map(|slot| row_id(batch, *slot))
            .collect();
        Ok((ids, rows))
    }

    /// The number of rows that come.
    pub fn appended_count(&self) -> u64 {
        self.writer.row_count
    }

    /// The rows that come, in their order, behind all others.
    ///
    /// # Errors
    /// If a page cannot be read.
    pub fn appended(&self) -> impl Iterator<Item = Result<RecordBatch>> {
        let columns: Vec<usize> = (0..self.width).collect();
        let pages = self.writer.pages.iter().map(Ok);
        let segments = self.writer.tail.segments().iter().map(Err);
        pages.chain(segments).map(move |part| match part {
            Ok(page) => page.read(self.format(), Some(&columns)),
            Err(segment) => self.format().decode(&segment.source(), Some(&columns)),
        })
    }

    fn format(&self) -> &Format {
        &self.writer.format
    }
}

impl fmt::Debug for RowChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowChange")
            .field("version", &self.version)
            .field("removed", &self.removed_count())
            .field("replaced_pages", &self.replaced.len())
            .field("patches", &self.patches.iter().count())
            .field("appended", &self.appended_count())
            .finish_non_exhaustive()
    }
}

/// The journal of what lives no longer than the process: nothing is taken down.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlogged;

impl Journal for Unlogged {
    fn record(&self, _: &Mutation<'_>) -> Result<()> {
        Ok(())
    }

    fn undo(&self, _: u64, _: u64) {}

    fn successor(&self) -> Box<dyn Journal> {
        Box::new(Unlogged)
    }
}

/// A table and the name of its database.
pub type Place = (String, Arc<Table>);
