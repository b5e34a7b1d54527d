//! Getting the room of dead rows back: rows that grew left their old places behind.

use super::layout::{RowLayout, row_is_dead};
use super::segment::OpenSegment;

/// Moves the living rows of pages together, in place; pages that end up empty are freed. Rows go to
/// other places, so whoever refers to them must look for them anew.
pub(crate) fn compact(layout: &RowLayout, pages: Vec<OpenSegment>) -> Vec<OpenSegment> {
    let mut kept: Vec<OpenSegment> = Vec::with_capacity(pages.len());
    for mut page in pages {
        let (mut used, mut rows) = (0, 0);
        let mut at = 0;
        while at < page.used as usize {
            let row = page.row(at);
            let len = layout.row_len(row);
            if !row_is_dead(row) {
                match kept.last_mut().filter(|last| last.has_room(len)) {
                    Some(last) => {
                        last.push(&row[..len]);
                    }
                    None => {
                        page.guard.copy_within(at..at + len, used);
                        used += len;
                        rows += 1;
                    }
                }
            }
            at += len;
        }
        page.used = u32::try_from(used).expect("less than it was");
        page.rows = rows;
        if rows > 0 {
            kept.push(page);
        }
    }
    kept
}
