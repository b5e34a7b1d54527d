//! EXPLAIN as a table with MySQL's columns.
//!
//! Owns: its rows and their order: those of the first SELECT, of the next, and then what MySQL does
//! not show: each temporary table, and what cannot spill.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use mayfly_exec::{Why, planned_temp_tables, unspillable};
use mayfly_sql::planning::Optimized;
use mayfly_sql::selects::{Part, Selects};
use mayfly_sql::statement::{Delete, Update};

use super::leaves::{KeyUse, Leaf, Scan, leaves, scans};
use crate::listing::{Listing, some};
use crate::statement::query::Ready;

/// Which tables a statement changes beside reading them.
pub(super) struct Changed {
    /// What MySQL says of them: UPDATE or DELETE.
    word: &'static str,
    /// Their names or aliases; empty for the first table.
    names: Vec<String>,
}

impl Changed {
    pub(super) fn by_update(update: &Update) -> Changed {
        let assigned = update.assignments.iter();
        Changed {
            word: "UPDATE",
            names: { assigned.filter_map(|column| column.table.as_ref()) }
                .map(|table| table.table.clone())
                .collect(),
        }
    }

    pub(super) fn by_delete(delete: &Delete) -> Changed {
        let targets = delete.targets.iter();
        Changed {
            word: "DELETE",
            names: targets.map(|target| target.table.clone()).collect(),
        }
    }

    /// The word for a table that is read at a place, if it is changed.
    fn word_for(&self, index: usize, name: &str) -> Option<&'static str> {
        let name = name.rsplit('.').next().unwrap_or(name);
        let is_named = || self.names.iter().any(|changed| changed == name);
        let is_changed = match self.names.is_empty() {
            true => index == 0,
            false => is_named(),
        };
        is_changed.then_some(self.word)
    }
}

/// A row of the table.
#[derive(Default)]
struct Row {
    id: Option<usize>,
    word: &'static str,
    name: Option<String>,
    kind: Option<&'static str>,
    key: Option<KeyUse>,
    rows: Option<usize>,
    extra: Vec<String>,
}

/// The table of a query.
pub(super) fn table(
    logical: &Optimized,
    ready: &Ready,
    selects: &Selects,
    changed: Option<&Changed>,
) -> Listing {
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
    let planned = planned_temp_tables(&ready.plan);
    let sorts = |why: &Why| matches!(why, Why::OrderBy | Why::OrderByLimit);
    let uses_temporary = planned.iter().any(|table| !sorts(&table.why));
    let uses_filesort = planned.iter().any(|table| sorts(&table.why));
    let mut scans = of_selects(scans(logical), selects);
    let mut tables = Vec::new();
    leaves(&ready.plan, &mut scans, &mut tables);
    tables.retain(|leaf| leaf.scan.is_some());
    // Tables of which the plan knows that they have no rows to show are not read.
    tables.extend(scans.into_iter().map(|scan| Leaf {
        scan: Some(scan),
        ..Leaf::new(Arc::new(Schema::empty()), None)
    }));
    let mut rows = Vec::new();
    for (block, order) in selects.blocks.iter().zip(places(selects, &tables)) {
        let row = Row {
            id: Some(block.id),
            word: selects.word(block),
            ..Row::default()
        };
        let reads_nothing = order.is_empty() && block.parts.is_empty();
        for place in order {
            rows.push(match place {
                Place::Leaf(leaf) => of_table(row_again(&row), leaf, &tables[leaf], changed),
                Place::Derived(number) => Row {
                    name: Some(format!("<derived{number}>")),
                    kind: Some("ALL"),
                    ..row_again(&row)
                },
            });
        }
        if reads_nothing {
            rows.push(Row {
                extra: vec!["No tables used".to_owned()],
                ..row
            });
        }
    }
    if let Some(first) = rows.first_mut() {
        if uses_temporary {
            first.extra.push("Using temporary".to_owned());
        }
        if uses_filesort {
            first.extra.push("Using filesort".to_owned());
        }
    }
    rows.extend(selects.results.iter().map(|result| Row {
        word: result.word,
        name: Some(result.name.clone()),
        kind: Some("ALL"),
        ..Row::default()
    }));
    let temporary = |name: Option<String>, extra: String| Row {
        id: Some(1),
        word: "TEMPORARY",
        name,
        extra: vec![extra],
        ..Row::default()
    };
    rows.extend(planned.iter().enumerate().map(|(index, table)| {
        let name = format!("<temporary{}>", index + 1);
        temporary(
            Some(name),
            format!("Temporary table for {}", table.why.text()),
        )
    }));
    let unspillable = unspillable(&ready.plan).into_iter();
    rows.extend(
        unspillable.map(|name| temporary(None, format!("{name}: in memory only, cannot spill"))),
    );
    for row in rows {
        let extra = row.extra.join("; ");
        let key = row.key.as_ref();
        let filtered = row
            .kind
            .filter(|_| row.id.is_some())
            .map(|_| "100.00".to_owned());
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
            filtered,
            (!extra.is_empty()).then_some(extra),
        ]);
    }
    listing
}

/// A row of the same SELECT.
fn row_again(row: &Row) -> Row {
    Row {
        id: row.id,
        word: row.word,
        ..Row::default()
    }
}

/// The row of a table.
fn of_table(row: Row, index: usize, leaf: &Leaf, changed: Option<&Changed>) -> Row {
    let Some(scan) = &leaf.scan else {
        return row;
    };
    let mut extra = Vec::new();
    if leaf.has_filter.unwrap_or(scan.has_filter) {
        extra.push("Using where".to_owned());
    }
    let is_outer = row.id == Some(1);
    let changed = changed.filter(|_| is_outer);
    let word = changed.and_then(|changed| changed.word_for(index, &scan.name));
    let found = leaf.key.as_ref();
    // A row that changes is read whole.
    if word.is_none() && found.is_some_and(|found| found.is_covered) {
        extra.push("Using index".to_owned());
    }
    if leaf.is_reversed {
        extra.push("Backward index scan".to_owned());
    }
    Row {
        word: word.unwrap_or(row.word),
        name: Some(scan.name.clone()),
        kind: Some(found.map_or("ALL", |found| found.access.name())),
        key: found.map(|found| KeyUse::of(found, leaf.asked.as_deref())),
        rows: leaf.rows,
        extra,
        ..row
    }
}

/// What is read for one SELECT.
enum Place {
    /// A table, by its place in the plan.
    Leaf(usize),
    /// The rows of another SELECT, by its number.
    Derived(usize),
}

/// The tables of a plan with the SELECTs that read them, and with the names that those have for
/// them; without those that a plan reads once more than the text says.
fn of_selects(scans: Vec<Scan>, selects: &Selects) -> Vec<Scan> {
    let mut missing: Vec<(usize, &str, &str)> = Vec::new();
    for (block, select) in selects.blocks.iter().enumerate() {
        missing.extend(select.parts.iter().filter_map(|part| match part {
            Part::Table { table, name } => Some((block, table.as_str(), name.as_str())),
            Part::Derived(_) => None,
        }));
    }
    let all = missing.clone();
    let same = |left: &str, right: &str| left.eq_ignore_ascii_case(right);
    let named = scans.into_iter().filter_map(|scan| {
        let is_table = |(_, table, _): &(usize, &str, &str)| same(table, &scan.table);
        let is_it = |part: &(usize, &str, &str)| is_table(part) && same(part.2, &scan.name);
        let place = missing.iter().position(is_it);
        match place.or_else(|| missing.iter().position(is_table)) {
            Some(place) => {
                let (block, _, name) = missing.remove(place);
                let name = name.to_owned();
                Some(Scan {
                    block,
                    name,
                    ..scan
                })
            }
            None if all.iter().any(is_table) => None,
            None if selects.recursive.iter().any(|name| same(name, &scan.table)) => None,
            None => Some(scan),
        }
    });
    named.collect()
}

/// What is read for each SELECT, in the order of the plan.
fn places(selects: &Selects, tables: &[Leaf]) -> Vec<Vec<Place>> {
    let mut places: Vec<Vec<(usize, Place)>> = Vec::new();
    places.resize_with(selects.blocks.len(), Vec::new);
    for (index, leaf) in tables.iter().enumerate() {
        let block = leaf.scan.as_ref().map(|scan| scan.block);
        if let Some(of_block) = block.and_then(|block| places.get_mut(block)) {
            of_block.push((index, Place::Leaf(index)));
        }
    }
    // From the inner ones outwards: a derived table stands where its first table is read.
    for block in (0..selects.blocks.len()).rev() {
        for part in &selects.blocks[block].parts {
            let Part::Derived(number) = part else {
                continue;
            };
            let inner = selects
                .blocks
                .iter()
                .position(|select| select.id == *number);
            let first = inner.and_then(|inner| places[inner].first());
            let first = first.map_or(usize::MAX, |(index, _)| *index);
            places[block].push((first, Place::Derived(*number)));
        }
        places[block].sort_by_key(|(index, _)| *index);
    }
    let places = places.into_iter();
    places
        .map(|places| places.into_iter().map(|(_, place)| place).collect())
        .collect()
}
