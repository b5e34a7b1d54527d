//! EXPLAIN as a table with MySQL's columns.
//!
//! Owns: its rows and their order: those of the first SELECT, of the next, and the results of set
//! operations. Temporary tables have no rows of their own, as in MySQL.

use super::blocks::{Blocks, NO_TABLES, Place, Uses};
use super::leaves::{KeyUse, Leaf};
use super::target::Target;
use crate::listing::{Listing, some};

/// A row of the table.
#[derive(Default)]
struct Row {
    id: Option<usize>,
    word: &'static str,
    name: Option<String>,
    kind: Option<&'static str>,
    key: Option<KeyUse>,
    rows: Option<usize>,
    extra: Vec<&'static str>,
    /// Whether it tells how many of its rows conditions keep.
    is_filtered: bool,
}

/// The table of a statement; without SELECTs for one that has none.
pub(super) fn table(blocks: Option<&Blocks<'_>>, target: &Target) -> Listing {
    let mut listing = Listing::new(&[
        "id",
        "select_type",
        "table",
        "partitions",
        "type",
        "possible_keys",
        "key",
        "key_len",
        "ref",
        "rows",
        "filtered",
        "Extra",
    ])
    .with_numbers(&["id", "rows"]);
    let mut rows = Vec::new();
    if let &Target::Filled { word, ref table } = target {
        rows.push(Row {
            id: Some(1),
            word,
            name: Some(table.clone()),
            kind: Some("ALL"),
            ..Row::default()
        });
    }
    if let Some(blocks) = blocks {
        of_blocks(blocks, target, &mut rows);
    }
    for row in rows {
        let extra = row.extra.join("; ");
        let key = row.key.as_ref();
        listing.push(vec![
            row.id.map(|id| id.to_string()),
            some(row.word),
            row.name,
            None,
            row.kind.map(str::to_owned),
            key.map(|key| key.name.clone()),
            key.map(|key| key.name.clone()),
            key.map(|key| key.bytes.to_string()),
            key.and_then(|key| key.reference.clone()),
            row.rows.map(|rows| rows.to_string()),
            row.is_filtered.then(|| "100.00".to_owned()),
            (!extra.is_empty()).then_some(extra),
        ]);
    }
    listing
}

fn of_blocks(blocks: &Blocks<'_>, target: &Target, rows: &mut Vec<Row>) {
    let selects = blocks.selects;
    let all = selects.blocks.iter().zip(&blocks.places);
    let all = all.zip(&blocks.of_blocks).zip(&blocks.empty);
    for (((block, places), uses), empty) in all {
        let row = || Row {
            id: Some(block.id),
            word: selects.word(block),
            ..Row::default()
        };
        let first = rows.len();
        rows.extend(places.iter().map(|place| match place {
            Place::Leaf(leaf) => of_table(row(), *leaf, &blocks.leaves[*leaf], target),
            Place::Derived { id, .. } => Row {
                name: Some(format!("<derived{id}>")),
                kind: Some("ALL"),
                is_filtered: true,
                ..row()
            },
        }));
        if let Some(why) = *empty {
            rows.push(Row {
                word: target.word_of_empty(block.id).unwrap_or(row().word),
                extra: vec![why],
                ..row()
            });
        }
        if let Some(row) = rows.get_mut(first)
            && empty.is_none_or(|why| why == NO_TABLES)
        {
            add_uses(uses, &mut row.extra);
        }
    }
    let results = selects.results.iter().zip(&blocks.of_results);
    for (result, uses) in results.filter(|(result, _)| result.is_kept()) {
        let mut row = Row {
            word: result.word,
            name: Some(result.name.clone()),
            kind: Some("ALL"),
            ..Row::default()
        };
        add_uses(uses, &mut row.extra);
        rows.push(row);
    }
}

/// What MySQL says of temporary tables, in the first row of their SELECT.
fn add_uses(uses: &Uses, extra: &mut Vec<&'static str>) {
    if uses.is_temporary() {
        extra.push("Using temporary");
    }
    if uses.sorts > 0 {
        extra.push("Using filesort");
    }
}

/// The row of a table.
fn of_table(row: Row, index: usize, leaf: &Leaf, target: &Target) -> Row {
    let Some(scan) = &leaf.scan else {
        return row;
    };
    let mut extra = Vec::new();
    if leaf.is_filtered() {
        extra.push("Using where");
    }
    let word = target.word_for(row.id, index, &scan.name);
    // A row that changes is read whole.
    if word.is_none() && leaf.is_covered() {
        extra.push("Using index");
    }
    if leaf.is_reversed {
        extra.push("Backward index scan");
    }
    Row {
        word: word.unwrap_or(row.word),
        name: Some(scan.name.clone()),
        kind: Some(leaf.access()),
        key: leaf.key_use(),
        rows: leaf.rows,
        extra,
        is_filtered: true,
        ..row
    }
}
