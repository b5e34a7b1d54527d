//! Rows that keep their numbers: updates of many rows of a page, and tables that take the place of
//! others.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use arrow_array::{Int64Array, StringViewArray};
use mayfly_table::rows::StopFlag;
use mayfly_table::{Error, KeyKind, Result, Search, Table};

use crate::keyed::{CODE, KIND, PRIMARY, Row, batch, definition, read, read_all, table, thin_out};
use crate::spaces::{Whole as _, assert_empty, open};

/// Changes all rows, a batch at a time.
pub(crate) fn update_all(table: &Arc<Table>, update: impl Fn(&Row) -> Row) -> Result<()> {
    let mut change = table.begin_change();
    for index in 0..change.snapshot().batch_count() {
        let rows = read(&change.snapshot().read(index, None)?);
        let rows: Vec<Row> = rows.iter().map(&update).collect();
        let ids = change.snapshot().row_ids(index);
        change.replace(&ids, &batch(table, &rows))?;
    }
    change.commit()
}

/// Rows whose codes are all other ones, in no order.
pub(crate) fn rows_in_disorder(count: i64) -> Vec<Row> {
    let row = |id| (id, Some(format!("code {}", id * 7919 % count)), 1);
    (0..count).map(row).collect()
}

#[test]
fn updated_rows_keep_their_numbers_and_their_entries() {
    for budget in [1 << 20, 64 << 20] {
        let dir = tempfile::tempdir().unwrap();
        let space = open(budget, dir.path());
        let table = table(space.root());
        let rows = rows_in_disorder(20_000);
        table.append(&batch(&table, &rows)).unwrap();
        let by_id = Search::equal(PRIMARY, vec![Arc::new(Int64Array::from(vec![12_345]))]);
        let numbers = || {
            table
                .search(std::slice::from_ref(&by_id), 2)
                .unwrap()
                .unwrap()
                .1
        };
        let (before, first) = (table.save().unwrap(), numbers());
        let reader = table.snapshot();
        let longer = |code: &Option<String>| code.as_ref().map(|code| format!("{code} longer"));
        let mut expect = rows.clone();
        // A key of rows that stay, one that is unique, and none.
        for update in [
            &(|row: &Row| (row.0, row.1.clone(), row.2 + 1)) as &dyn Fn(&Row) -> Row,
            &|row| (row.0, longer(&row.1), row.2),
            &|row| row.clone(),
        ] {
            update_all(&table, update).unwrap();
            expect = expect.iter().map(update).collect();
            table.assert_whole();
            assert!(
                read_all(&table.snapshot()) == expect,
                "rows keep their places"
            );
            assert_eq!(numbers(), first);
        }
        // Rows that went leave their slots, in which the others stay.
        thin_out(&table, 2).unwrap();
        expect.retain(|row| row.0 % 2 == 0);
        update_all(&table, |row| (row.0, row.1.clone(), 9)).unwrap();
        expect.iter_mut().for_each(|row| row.2 = 9);
        table.assert_whole();
        assert!(read_all(&table.snapshot()) == expect);
        assert!(read_all(&reader) == rows);
        before.restore();
        table.assert_whole();
        assert!(read_all(&table.snapshot()) == rows);
        assert_eq!(numbers(), first);
        drop((table, reader));
        assert_empty(&space);
    }
}

/// A table of another name, with a key on kind and code in the place of the one on kind and id.
pub(crate) fn succeeded(table: &Arc<Table>) -> Result<Arc<Table>> {
    let mut other = definition();
    other.columns[2].name = "sort".to_owned();
    other.keys[KIND].parts[1].column = 1;
    let (next, seen) = table
        .successor("next", &other, &StopFlag::default())?
        .expect("rows lie alike");
    assert!(table.retire(&seen));
    table.hand_over_keys(&next);
    Ok(Arc::new(next))
}

#[test]
fn a_successor_has_the_rows_and_the_keys() {
    for budget in [1 << 20, 64 << 20] {
        let dir = tempfile::tempdir().unwrap();
        let space = open(budget, dir.path());
        let old = table(space.root());
        let rows = rows_in_disorder(10_000);
        old.append(&batch(&old, &rows)).unwrap();
        let bytes = old.bytes();
        // A key that rows do not obey is refused, and nothing has happened.
        let mut unique = definition();
        unique.keys[KIND].kind = KeyKind::Unique;
        unique.keys[KIND].parts.truncate(1);
        let refused = old
            .successor("next", &unique, &StopFlag::default())
            .unwrap_err();
        assert!(matches!(refused, Error::DuplicateEntry { key, .. } if key == "kind"));
        // So is one that is stopped while its key is built.
        let raised = StopFlag::from(Arc::new(AtomicBool::new(true)));
        let mut other = definition();
        other.keys[KIND].parts.truncate(1);
        let stopped = old.successor("next", &other, &raised).unwrap_err();
        assert!(matches!(stopped, Error::Stopped), "{stopped}");
        assert_eq!(old.bytes(), bytes);
        let mut shorter = definition();
        shorter.columns.pop();
        shorter.keys.pop();
        assert!(
            old.successor("next", &shorter, &StopFlag::default())
                .unwrap()
                .is_none()
        );
        old.assert_whole();

        let next = succeeded(&old).unwrap();
        next.assert_whole();
        assert_eq!(next.columns()[2].name, "sort");
        assert_eq!((next.bytes(), next.row_count()), (bytes, 10_000));
        assert!(read_all(&next.snapshot()) == rows);
        let refused = next.append(&batch(&next, &rows[..1])).unwrap_err();
        assert!(matches!(refused, Error::DuplicateEntry { .. }));
        update_all(&next, |row| (row.0, row.1.clone(), 3)).unwrap();
        next.append(&batch(&next, &[(10_000, None, 4)])).unwrap();
        next.assert_whole();
        // Who still reads the old one finds what it had.
        let by_code = Search::equal(CODE, vec![Arc::new(StringViewArray::from(vec!["code 7"]))]);
        let (snapshot, numbers) = old.search(&[by_code], 2).unwrap().unwrap();
        assert_eq!(snapshot.locate(numbers).unwrap().len(), 1);
        assert!(read_all(&old.snapshot()) == rows);
        old.return_to_use();
        old.assert_whole();
        drop((old, snapshot));
        next.assert_whole();
        drop(next);
        assert_empty(&space);
    }
}
