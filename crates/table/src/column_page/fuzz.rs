//! The fuzz target of column pages: a page whose checksum is right and whose bytes are not what
//! was written to it. Whoever decodes it whole, or some of its rows, gets arrays that are valid or
//! an error. Text is left out: that it is UTF-8 is taken from the checksum (`crate::text`).
//!
//! ```text
//! nested, narrow? | row count | changes: place (2), value
//! ```

use std::sync::Arc;

use arrow_array::builder::{BinaryDictionaryBuilder, FixedSizeBinaryBuilder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Decimal128Array, Int32Array,
    LargeBinaryArray, NullArray, UInt64Array,
};
use arrow_schema::{Field, Schema};
use bytes::Bytes;
use mayfly_testkit::{FuzzTarget, Random};

use super::Prepared;
use super::decode::{Source, check as row_count_of};
use super::format::{Format, Kind, Rows};
use super::sizes::{ENTRY_BYTES, HEADER_BYTES};
use super::stored::StoredRows;
use crate::error::{Error, Result};

const ROWS_MAX: usize = 100;

/// Some values of each kind, every seventh of them NULL.
fn columns(rows: usize, is_nested: bool) -> Vec<ArrayRef> {
    let some = |row: usize| (row % 7 != 3).then_some(row);
    let value = |row: usize| some(row).map(|row| vec![row as u8; row * 5 % 130]);
    let values: Vec<Option<Vec<u8>>> = (0..rows).map(value).collect();
    let values = || values.iter().map(Option::as_deref);
    let mut fixed = FixedSizeBinaryBuilder::new(5);
    let mut words = BinaryDictionaryBuilder::<Int8Type>::new();
    for row in 0..rows {
        fixed.append_value([row as u8; 5]).expect("five bytes");
        words.append([row as u8 % 3]).expect("few words");
    }
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(
            (0..rows)
                .map(|row| some(row).map(|row| row as i32))
                .collect::<Int32Array>(),
        ),
        Arc::new(values().collect::<BinaryArray>()),
        Arc::new(values().collect::<BinaryViewArray>()),
        Arc::new(values().collect::<LargeBinaryArray>()),
        Arc::new(
            (0..rows)
                .map(|row| some(row).map(|row| row % 2 == 0))
                .collect::<BooleanArray>(),
        ),
        Arc::new(
            (0..rows)
                .map(|row| some(row).map(|row| row as i128))
                .collect::<Decimal128Array>(),
        ),
        Arc::new(UInt64Array::from_iter_values(0..rows as u64)),
        Arc::new(fixed.finish()),
        Arc::new(words.finish()),
        Arc::new(
            (0..rows)
                .map(|row| some(row).map(|row| vec![b'w'; 10 + row % 4]))
                .collect::<BinaryViewArray>(),
        ),
        Arc::new(NullArray::new(rows)),
    ];
    if is_nested {
        let mut lists = ListBuilder::new(arrow_array::builder::Int32Builder::new());
        for row in 0..rows {
            lists.append_value((0..row as i32 % 4).map(Some));
        }
        columns.push(Arc::new(lists.finish()));
    }
    columns
}

fn format_of(columns: &[ArrayRef]) -> Format {
    let fields = columns
        .iter()
        .enumerate()
        .map(|(index, column)| Field::new(format!("c{index}"), column.data_type().clone(), true));
    Format::new(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

fn check(input: &[u8]) {
    let mut input = input.iter().copied();
    let mut next = || input.next().unwrap_or(0);
    let first = next();
    let (is_nested, is_narrow) = (first % 4 == 1, first & 4 > 0);
    let rows = usize::from(next()) % ROWS_MAX;
    let columns = columns(rows, is_nested);
    let mut format = format_of(&columns);
    if is_narrow {
        format = format.narrow();
    }
    let held: [Rows; 1] = [format
        .admit(&columns, rows)
        .expect("they are of these types")];
    let prepared = Prepared::new(&format, &held).expect("they are few");
    let mut page = vec![0; prepared.len_bytes()];
    prepared.write(&mut page);
    let directory_bytes = HEADER_BYTES + ENTRY_BYTES * columns.len();
    let mut is_changed = false;
    loop {
        let (place, value) = (u16::from_le_bytes([next(), next()]), next());
        if (place, value) == (0, 0) {
            break;
        }
        // Half of them in header and directory, which lead to everything else. What lies in a
        // stream is Arrow's to look through.
        let place = usize::from(place / 2)
            % if place % 2 == 0 || is_nested {
                directory_bytes
            } else {
                page.len()
            };
        is_changed |= page[place] != value;
        page[place] = value;
    }
    let slots: Vec<u32> = (0..row_count_of(&format, &page).unwrap_or(0).min(5) as u32).collect();
    let shared = Source::Shared(Bytes::from(page.clone()));
    for source in [&shared, &Source::Copied(&page)] {
        let whole = format.decode(source, None);
        if !is_changed {
            let whole = whole.as_ref().expect("nothing was changed");
            assert_eq!(whole.columns(), &columns[..]);
        }
        look_at(whole.map(|batch| batch.columns().to_vec()));
        look_at(
            format
                .decode_slots(source, None, &slots)
                .map(|batch| batch.columns().to_vec()),
        );
        look_at(format.decode_stored(source).map(|rows| rows.columns));
        for column in 0..columns.len() {
            if let Ok(Some(within)) = format.rows_within(source, column, &(2..=40)) {
                assert_eq!(Some(within.len()), row_count_of(&format, &page).ok());
            }
        }
    }
    look_at_values(&format, &page);
}

/// Every value of a page is there, or what is wrong with its column is an error.
fn look_at_values(format: &Format, page: &[u8]) {
    let Ok(stored) = StoredRows::open(format, page) else {
        return;
    };
    for place in 0..format.kinds.len() {
        if let Ok(column) = stored.column(place)
            && (matches!(format.kinds[place], Kind::Fixed { .. }) || column.coded().is_some())
        {
            (0..column.row_count).for_each(|slot| _ = column.value(slot));
        }
    }
}

/// What came of a page is an error that says so, or is valid.
fn look_at(decoded: Result<Vec<ArrayRef>>) {
    match decoded {
        Ok(columns) => {
            for column in columns {
                match column.as_binary_view_opt() {
                    // That prefixes are those of their values is taken from the checksum too.
                    Some(views) => _ = views.iter().flatten().map(<[u8]>::len).sum::<usize>(),
                    None => {
                        let validated = column.to_data().validate_full();
                        validated.expect("what was decoded is valid");
                    }
                }
            }
        }
        Err(Error::CorruptPage { .. } | Error::Arrow(_)) => {}
        Err(other) => panic!("{other}"),
    }
}

fn plausible(random: &mut Random) -> Vec<u8> {
    let mut input = vec![random.below(8) as u8, random.below(ROWS_MAX as u64) as u8];
    for _ in 0..random.below(4) {
        let place = random.below(1 << 16) as u16;
        input.extend(place.to_le_bytes());
        let values = [0, 1, 2, 4, 64, 127, 128, 255];
        input.push(values[random.below(8) as usize]);
    }
    input
}

#[test]
fn hostile_pages_are_errors() {
    FuzzTarget::new("column-pages", &check)
        .generate(&plausible)
        .inputs(1000)
        .check();
}
