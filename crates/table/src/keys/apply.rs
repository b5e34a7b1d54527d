//! The entries of rows that come and go, all or none of them.
//!
//! **Owns** the order of the steps, and what is done when one of them fails. **Never** changes a
//! row: who calls changes the pages when the entries are right.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use super::{Indexes, KeyedRows};
use crate::change::{Removal, Slots};
use crate::column_page::{Format, StoredRows};
use crate::error::Result;
use crate::replace::{NewRows, ReplacedPages};
use crate::table_page::TablePage;
use crate::tail::{Segment, Tail};

/// The rows of a table: those of its pages, then those of its tail.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) pages: &'a [TablePage],
    pub(crate) tail: &'a Tail,
}

/// Some rows whose entries come or go.
struct Step<'a> {
    source: Source<'a>,
    /// The slots of the rows; `None` means all that are left.
    slots: Option<Cow<'a, Slots>>,
    /// The indexes whose entries change; `None` for all.
    only: Option<Rc<[usize]>>,
    comes: bool,
}

/// Where rows stand.
#[derive(Clone, Copy)]
enum Source<'a> {
    Page(&'a TablePage),
    Segment(&'a Segment),
}

/// The rows of one statement.
pub(crate) struct Statement<'a> {
    pub(crate) before: Rows<'a>,
    pub(crate) removal: &'a Removal,
    pub(crate) replaced: &'a ReplacedPages,
    pub(crate) written: Rows<'a>,
}

impl Statement<'_> {
    /// Changes the entries as the statement changes the rows: those that it removes go, those that
    /// it wrote come.
    ///
    /// # Errors
    /// [`Error::DuplicateEntry`](crate::Error::DuplicateEntry), or what a tree or a page gives. The
    /// entries are then as they were, or the indexes are stale.
    pub(crate) fn apply(&self, indexes: &mut Indexes, format: &Format) -> Result<()> {
        let steps = self.steps(indexes, format)?;
        run(indexes, format, &steps)
    }

    fn steps(&self, indexes: &Indexes, format: &Format) -> Result<Vec<Step<'_>>> {
        let removed = self.removal.slots.iter().map(|(batch, slots)| Step {
            source: self.before.source(*batch),
            slots: Some(Cow::Borrowed(slots)),
            only: None,
            comes: false,
        });
        let mut steps: Vec<Step<'_>> = removed.collect();
        let mut coming = Vec::new();
        for (batch, replaced) in self.replaced {
            let (old, new) = (self.before.source(*batch), Source::of(&replaced.rows));
            let only = old.with_stored(format, |old| {
                new.with_stored(format, |new| indexes.differing(&old, &new))
            })?;
            if only.is_empty() {
                continue;
            }
            let only: Rc<[usize]> = only.into();
            for (source, comes, steps) in [(old, false, &mut steps), (new, true, &mut coming)] {
                steps.push(Step {
                    source,
                    slots: Some(Cow::Borrowed(&replaced.slots)),
                    only: Some(Rc::clone(&only)),
                    comes,
                });
            }
        }
        steps.extend(coming);
        steps.extend(self.written.steps(true));
        Ok(steps)
    }
}

/// Makes the entries of some rows those of others: the state of a table goes back, which cannot
/// fail. Where entries cannot be changed, the indexes become stale.
pub(crate) fn restore(indexes: &mut Indexes, format: &Format, from: Rows<'_>, to: Rows<'_>) {
    if indexes.is_empty() {
        return;
    }
    if indexes.is_stale() {
        indexes.mark_stale();
        return;
    }
    indexes.begin_change();
    let mut steps = Vec::new();
    from.without(to, false, &mut steps);
    to.without(from, true, &mut steps);
    if run(indexes, format, &steps).is_err() {
        indexes.mark_stale();
    }
}

/// Makes the entries anew from all rows.
///
/// # Errors
/// What a tree or a page gives; the indexes stay stale.
pub(crate) fn rebuild(indexes: &mut Indexes, format: &Format, rows: Rows<'_>) -> Result<()> {
    indexes.clear();
    indexes.mark_stale();
    for step in rows.steps(true) {
        step.run(indexes, format, true)?;
    }
    indexes.mark_whole();
    Ok(())
}

/// Checks that the trees are whole and have the entries of all rows and no others; for tests.
///
/// # Panics
/// If they do not.
pub(crate) fn verify(indexes: &mut Indexes, format: &Format, rows: Rows<'_>) {
    let mut count = 0;
    for step in rows.steps(true) {
        let verified = step.with_rows(format, |rows| {
            indexes.verify_rows(rows);
            Ok(rows.slots.len() as u64)
        });
        let Ok(rows) = verified else {
            return;
        };
        count += rows;
    }
    indexes.verify_trees(count);
}

fn run(indexes: &mut Indexes, format: &Format, steps: &[Step<'_>]) -> Result<()> {
    for (done, step) in steps.iter().enumerate() {
        if let Err(error) = step.run(indexes, format, step.comes) {
            undo(indexes, format, &steps[..done]);
            return Err(error);
        }
    }
    Ok(())
}

fn undo(indexes: &mut Indexes, format: &Format, steps: &[Step<'_>]) {
    for step in steps.iter().rev() {
        if step.run(indexes, format, !step.comes).is_err() {
            indexes.mark_stale();
            return;
        }
    }
}

impl<'a> Source<'a> {
    fn of(rows: &'a NewRows) -> Source<'a> {
        match rows {
            NewRows::Page(page) => Source::Page(page),
            NewRows::Segment(segment) => Source::Segment(segment),
        }
    }

    /// Reads the rows where they stand.
    fn with_stored<R>(
        self,
        format: &Format,
        use_rows: impl FnOnce(StoredRows<'_>) -> Result<R>,
    ) -> Result<R> {
        match self {
            Source::Page(page) => {
                let bytes = page.bytes_pinned()?;
                use_rows(StoredRows::open(format, &bytes)?)
            }
            Source::Segment(segment) => use_rows(StoredRows::open(format, segment.bytes())?),
        }
    }

    /// The slots of the rows that are left.
    fn slots(self) -> Vec<u32> {
        match self {
            Source::Page(page) => page.slots(),
            Source::Segment(segment) => (0..segment.row_count() as u32).collect(),
        }
    }
}

impl<'a> Rows<'a> {
    fn source(self, batch: usize) -> Source<'a> {
        match self.pages.get(batch) {
            Some(page) => Source::Page(page),
            None => Source::Segment(&self.tail.segments()[batch - self.pages.len()]),
        }
    }

    fn steps(self, comes: bool) -> impl Iterator<Item = Step<'a>> {
        let pages = self.pages.iter().map(Source::Page);
        let segments = self.tail.segments().iter().map(Source::Segment);
        pages.chain(segments).map(move |source| Step {
            source,
            slots: None,
            only: None,
            comes,
        })
    }

    /// Adds a step for all rows that are not among the others. Rows of the tail may be named on
    /// both sides, and then go and come again.
    fn without(self, others: Rows<'a>, comes: bool, steps: &mut Vec<Step<'a>>) {
        let pages = others.pages.iter().map(|page| (page.number(), page));
        let pages: HashMap<u32, &TablePage> = pages.collect();
        for step in self.steps(comes) {
            let slots = match step.source {
                Source::Page(page) => match pages.get(&page.number()) {
                    None => None,
                    Some(other) => match page.slots_without(other) {
                        Some(slots) => Some(Cow::Owned(slots)),
                        None => continue,
                    },
                },
                Source::Segment(segment) => {
                    if others.tail.segments().iter().any(|other| other.is(segment)) {
                        continue;
                    }
                    None
                }
            };
            steps.push(Step { slots, ..step });
        }
    }
}

impl Step<'_> {
    fn run(&self, indexes: &mut Indexes, format: &Format, comes: bool) -> Result<()> {
        self.with_rows(format, |rows| match comes {
            true => indexes.insert(rows),
            false => indexes.remove(rows),
        })
    }

    fn with_rows<R>(
        &self,
        format: &Format,
        use_rows: impl FnOnce(&KeyedRows<'_>) -> Result<R>,
    ) -> Result<R> {
        self.source.with_stored(format, |page| {
            let slots = match &self.slots {
                Some(slots) => slots.iter().collect(),
                None => self.source.slots(),
            };
            use_rows(&KeyedRows {
                page,
                slots,
                only: self.only.as_deref(),
            })
        })
    }
}
