//! Pages whose rows are mostly gone.
//!
//! **Owns** nothing. **Never** fails a statement: pages that cannot be written again stay.
//!
//! A page that has lost three quarters of its rows is written again with what is left, together
//! with such neighbours; a row is copied for three that went, and a table takes at most four times
//! the bytes of its rows. Rows keep their order and their numbers, so that entries of keys stay.

use mayfly_space::{Account, NextUse, PageClass};

use crate::column_page::{Format, Rows};
use crate::error::Result;
use crate::patch::Patches;
use crate::rows::StopFlag;
use crate::sealed::write_all;
use crate::table_page::TablePage;

/// A page is sparse when at most this part of its rows is left.
const LEFT_PART: usize = 4;

/// Pages by their place in a table; `None` for one that has no rows left.
type Changed = [(usize, Option<TablePage>)];

/// Writes sparse pages again, several neighbours to one page if they fit, or else to fewer: those
/// take the places of the first, the others have no rows left.
///
/// Pages that values are about to be written to stay where they are.
///
/// # Errors
/// [`Error::Stopped`](crate::Error::Stopped) where the flag is raised.
pub(crate) fn sparse(
    account: &Account,
    format: &Format,
    page_bytes: usize,
    changed: &mut Changed,
    patches: &Patches,
    stop: Option<&StopFlag>,
) -> Result<()> {
    let mut from = 0;
    while format.merges() && from < changed.len() {
        StopFlag::check_any(stop)?;
        let group = group(format, page_bytes, &changed[from..], patches);
        let end = from + group.max(1);
        if group > 0
            && let Ok(pages) = written(account, format, page_bytes, &changed[from..end])
            && pages.len() < group.max(2)
        {
            let pages = pages
                .into_iter()
                .map(Some)
                .chain(std::iter::repeat_with(|| None));
            let places = changed[from..end].iter_mut().zip(pages);
            places.for_each(|(place, page)| place.1 = page);
        }
        from = end;
    }
    Ok(())
}

/// How many of the first pages are sparse neighbours that fit into one; none if that would spare
/// no page.
fn group(format: &Format, page_bytes: usize, changed: &Changed, patches: &Patches) -> usize {
    let (mut rows, mut bytes, mut wide_bytes) = (0, 0, 0);
    let mut last = None;
    let fits = |(place, page): &&(usize, Option<TablePage>)| {
        let follows = last.is_none_or(|last| last + 1 == *place);
        last = Some(*place);
        let Some(page) = page else {
            return follows;
        };
        rows += page.row_count();
        // About: what is left of texts that had codes may repeat less.
        bytes += page.bytes() * page.row_count() / page.written_count();
        wide_bytes += page.wide_bytes() * page.row_count() / page.written_count();
        follows
            && !patches.has(*place)
            && is_sparse(page)
            && format.takes(rows, (bytes, wide_bytes), page_bytes)
    };
    let group = changed.iter().take_while(fits).count();
    let mut pages = changed[..group]
        .iter()
        .filter_map(|(_, page)| page.as_ref());
    let is_large = |page: &TablePage| page.page_bytes() > PageClass::K4.bytes();
    let spares = match (pages.next(), pages.next()) {
        (Some(page), None) => is_large(page),
        (first, _) => first.is_some(),
    };
    if spares { group } else { 0 }
}

/// Whether few of the rows are left.
fn is_sparse(page: &TablePage) -> bool {
    page.row_count() * LEFT_PART <= page.written_count()
}

/// The pages of what is left in some: one, or few where that repeats less than all did.
fn written(
    account: &Account,
    format: &Format,
    page_bytes: usize,
    changed: &Changed,
) -> Result<Vec<TablePage>> {
    let pages = changed.iter().filter_map(|(_, page)| page.as_ref());
    let rows: Result<Vec<Rows>> = pages
        .map(|page| {
            let batch = page.read_slots(format, None, &page.slots())?;
            format.admit(batch.columns(), batch.num_rows())
        })
        .collect();
    let next_use = |_| NextUse::SecondChance;
    let (pages, _) = write_all(account, format, rows?, page_bytes, next_use)?;
    Ok(pages.into_iter().map(TablePage::from).collect())
}
