//! The entries of rows that come and go, all or none of them.
//!
//! **Owns** the order of the steps, and what is done when one of them fails. **Never** changes a
//! row: who calls changes the pages when the entries are right.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use super::{Indexes, KeyedRows};
use crate::column_page::Format;
use crate::error::{Error, Result};
use crate::patch::Patches;
use crate::removal::{Removal, Slots};
use crate::replace::ReplacedPages;
use crate::rows::StopFlag;
use crate::snapshot::Batch;
use crate::table_page::TablePage;
use crate::tail::Tail;

/// The rows of a table: those of its pages, then those of its tail.
#[derive(Clone, Copy)]
pub(crate) struct Rows<'a> {
    pub(crate) pages: &'a [TablePage],
    pub(crate) tail: &'a Tail,
}

/// Some rows whose entries come or go.
struct Step<'a> {
    source: Batch<'a>,
    /// The slots of the rows; `None` means all that are left.
    slots: Option<Cow<'a, Slots>>,
    /// The indexes whose entries change; `None` for all.
    only: Option<Rc<[usize]>>,
    comes: bool,
}

/// The rows of one statement.
pub(crate) struct Statement<'a> {
    pub(crate) before: Rows<'a>,
    pub(crate) removal: &'a Removal,
    pub(crate) replaced: &'a ReplacedPages,
    pub(crate) patches: &'a Patches,
    pub(crate) written: Rows<'a>,
}

impl Statement<'_> {
    /// Changes the entries as the statement changes the rows: those that it removes go, those that
    /// it wrote come.
    ///
    /// # Errors
    /// [`Error::DuplicateEntry`](crate::Error::DuplicateEntry), [`Error::Stopped`] where the flag
    /// is raised, or what a tree or a page gives. The entries are then as they were, or the indexes
    /// are stale.
    pub(crate) fn apply(
        &self,
        indexes: &mut Indexes,
        format: &Format,
        stop: Option<&StopFlag>,
    ) -> Result<()> {
        let steps = self.steps(indexes);
        run(indexes, format, &steps, stop)
    }

    /// As [`Statement::apply`], in a fork that is dropped should it fail: nothing is undone then.
    pub(crate) fn apply_to_fork(
        &self,
        fork: &mut Indexes,
        format: &Format,
        stop: Option<&StopFlag>,
    ) -> Result<()> {
        for step in self.steps(fork) {
            StopFlag::check_any(stop)?;
            step.run(fork, format, step.comes)?;
        }
        Ok(())
    }

    fn steps(&self, indexes: &Indexes) -> Vec<Step<'_>> {
        let removed = self.removal.slots.iter().map(|(batch, slots)| Step {
            slots: Some(Cow::Borrowed(slots)),
            ..Step::all(self.before.source(*batch), false)
        });
        let mut steps: Vec<Step<'_>> = removed.collect();
        let mut coming = Vec::new();
        for (batch, replaced) in self.replaced {
            let only = indexes.of_columns(&replaced.differing);
            if only.is_empty() {
                continue;
            }
            let (old, new) = (self.before.source(*batch), replaced.rows.batch());
            let only: Rc<[usize]> = only.into();
            for (source, comes, steps) in [(old, false, &mut steps), (new, true, &mut coming)] {
                steps.push(Step {
                    slots: Some(Cow::Borrowed(&replaced.slots)),
                    only: Some(Rc::clone(&only)),
                    ..Step::all(source, comes)
                });
            }
        }
        for (batch, patch) in self.patches.iter() {
            let Some(keyed) = &patch.keyed else {
                continue;
            };
            let only: Rc<[usize]> = indexes.of_columns(&keyed.columns).into();
            steps.push(Step {
                slots: Some(Cow::Owned(patch.slots.iter().copied().collect())),
                only: Some(Rc::clone(&only)),
                ..Step::all(self.before.source(batch), false)
            });
            coming.push(Step {
                only: Some(only),
                ..Step::all(Batch::Segment(&keyed.rows), true)
            });
        }
        steps.extend(coming);
        steps.extend(self.written.steps(true));
        steps
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
    if steps_between(indexes, format, from, to)
        .and_then(|steps| run(indexes, format, &steps, None))
        .is_err()
    {
        indexes.mark_stale();
    }
}

/// What leads from some rows to others.
fn steps_between<'a>(
    indexes: &Indexes,
    format: &Format,
    from: Rows<'a>,
    to: Rows<'a>,
) -> Result<Vec<Step<'a>>> {
    let mut steps = Vec::new();
    for (rows, others, comes) in [(from, to, false), (to, from, true)] {
        let pages = OtherPages::of(others, rows);
        for page in rows.pages_other_than(others) {
            pages.steps_of(page, comes, indexes, format, &mut steps)?;
        }
        // Rows of the tail may be named on both sides, and then go and come again.
        let others = others.tail.segments();
        let segments = rows.tail.segments().iter();
        let gone = segments.filter(|segment| !others.iter().any(|other| other.is(segment)));
        steps.extend(gone.map(|segment| Step::all(Batch::Segment(segment), comes)));
    }
    Ok(steps)
}

/// The pages of the other side, by what tells that they have the same rows.
struct OtherPages<'a> {
    by_number: HashMap<u32, &'a TablePage>,
    by_first_row: HashMap<u64, &'a TablePage>,
}

impl<'a> OtherPages<'a> {
    fn of(rows: Rows<'a>, others: Rows<'_>) -> OtherPages<'a> {
        let pages = || rows.pages_other_than(others);
        let first = |page: &'a TablePage| Some((page.row_numbers()?.first, page));
        OtherPages {
            by_number: pages().map(|page| (page.number(), page)).collect(),
            by_first_row: pages().filter_map(first).collect(),
        }
    }

    /// Adds the steps for those entries of a page that the other side has not.
    fn steps_of<'p>(
        &self,
        page: &'p TablePage,
        comes: bool,
        indexes: &Indexes,
        format: &Format,
        steps: &mut Vec<Step<'p>>,
    ) -> Result<()> {
        let source = Batch::Page(page);
        if let Some(other) = self.by_number.get(&page.number()) {
            let slots = page.slots_without(other);
            steps.extend(slots.map(|slots| Step {
                slots: Some(Cow::Owned(slots)),
                ..Step::all(source, comes)
            }));
            return Ok(());
        }
        let first = page.row_numbers().map(|numbers| numbers.first);
        let other = first.and_then(|first| self.by_first_row.get(&first));
        let Some(other) = other.filter(|other| other.has_the_slots_of(page)) else {
            steps.push(Step::all(source, comes));
            return Ok(());
        };
        // One of the two was written over the other, slot by slot.
        let (both, alone): (Vec<u32>, Vec<u32>) =
            { page.slots().into_iter() }.partition(|slot| other.has(*slot as usize));
        let only = indexes.of_columns(&source.differing(Batch::Page(other), format)?);
        for (slots, only) in [(both, Some(only)), (alone, None)] {
            if !slots.is_empty() && only.as_ref().is_none_or(|only| !only.is_empty()) {
                steps.push(Step {
                    slots: Some(Cow::Owned(slots.into_iter().collect())),
                    only: only.map(Rc::from),
                    ..Step::all(source, comes)
                });
            }
        }
        Ok(())
    }
}

/// Makes the entries anew from all rows.
///
/// # Errors
/// [`Error::Stopped`] where the flag is raised, or what a tree or a page gives; the indexes stay
/// stale.
pub(crate) fn rebuild(
    indexes: &mut Indexes,
    format: &Format,
    rows: Rows<'_>,
    stop: Option<&StopFlag>,
) -> Result<()> {
    indexes.clear();
    indexes.mark_stale();
    for step in rows.steps(true) {
        StopFlag::check_any(stop)?;
        step.run(indexes, format, true)?;
    }
    indexes.mark_whole();
    Ok(())
}

/// Makes the entries of some indexes, which have none. Looks at the flag between pages.
///
/// # Errors
/// [`Error::DuplicateEntry`], [`Error::Stopped`], or what a tree or a page gives.
pub(crate) fn build(
    indexes: &mut Indexes,
    format: &Format,
    rows: Rows<'_>,
    only: &[usize],
    stop: &StopFlag,
) -> Result<()> {
    let only: Rc<[usize]> = only.into();
    for step in rows.steps(true).filter(|_| !only.is_empty()) {
        StopFlag::check_any(Some(stop))?;
        let step = Step {
            only: Some(Rc::clone(&only)),
            ..step
        };
        step.run(indexes, format, true)?;
    }
    Ok(())
}

/// Checks that the numbers of rows ascend and are below `next_number`, and that the trees are whole
/// and have the entries of all rows and no others.
///
/// Each row finds an entry that leads to it, no two rows have one number, and there are as many
/// entries as rows: so each entry has its row, too.
///
/// # Errors
/// [`Error::CorruptPage`] says what does not hold; those of pages that cannot be read.
pub(crate) fn verify(
    indexes: &mut Indexes,
    format: &Format,
    rows: Rows<'_>,
    next_number: u64,
) -> Result<()> {
    let (mut count, mut next) = (0, 0);
    for step in rows.steps(true) {
        step.with_rows(format, |rows| {
            let numbers = rows.page.numbers()?;
            for slot in &rows.slots {
                let number = numbers.number(*slot as usize);
                if number < next || number >= next_number {
                    let what = "a row with the number of another one";
                    return Err(Error::CorruptPage { what });
                }
                next = number + 1;
            }
            count += rows.slots.len() as u64;
            indexes.verify_rows(rows)
        })?;
    }
    indexes.verify_trees(count)
}

fn run(
    indexes: &mut Indexes,
    format: &Format,
    steps: &[Step<'_>],
    stop: Option<&StopFlag>,
) -> Result<()> {
    for (done, step) in steps.iter().enumerate() {
        let ran = StopFlag::check_any(stop);
        if let Err(error) = ran.and_then(|()| step.run(indexes, format, step.comes)) {
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

impl<'a> Rows<'a> {
    fn source(self, batch: usize) -> Batch<'a> {
        Batch::of(self.pages, self.tail.segments(), batch)
    }

    /// The pages that have others in their places, or the same with other rows left. Most are the
    /// same when little has happened between two states.
    fn pages_other_than(self, others: Rows<'_>) -> impl Iterator<Item = &'a TablePage> {
        let places = self.pages.iter().enumerate();
        let differs = move |(place, page): &(usize, &TablePage)| {
            let other = others.pages.get(*place);
            other.is_none_or(|other| !page.is_same(other))
        };
        places.filter(differs).map(|(_, page)| page)
    }

    fn steps(self, comes: bool) -> impl Iterator<Item = Step<'a>> {
        let pages = self.pages.iter().map(Batch::Page);
        let segments = self.tail.segments().iter().map(Batch::Segment);
        pages
            .chain(segments)
            .map(move |source| Step::all(source, comes))
    }
}

impl<'a> Step<'a> {
    /// All rows that are left.
    fn all(source: Batch<'a>, comes: bool) -> Step<'a> {
        Step {
            source,
            slots: None,
            only: None,
            comes,
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
