//! A journal hears of each mutation once, in order, before it is seen, and of nothing that failed:
//! who only listens knows the rows.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use arrow_array::UInt64Array;
use mayfly_space::Account;
use mayfly_table::rows::StopFlag;
use mayfly_table::{
    Definition, Dictionary, Error, Journal, Mutation, Result, RowChange, Saved, Table,
    TableSnapshot,
};
use proptest::prelude::*;

use crate::batches::Random;
use crate::kept_numbers::update_all;
use crate::keyed::{Row, batch, definition, read, read_all, rows, thin_out};
use crate::spaces::{BUDGETS, Whole as _, assert_empty, open};

/// What was heard.
#[derive(Debug, PartialEq)]
enum Told {
    Rows(Rows),
    Truncate { version: u64 },
    Undo { to: u64, version: u64 },
    Successor,
    Names(String),
}

#[derive(Debug, Default, PartialEq)]
struct Rows {
    version: u64,
    auto_increment: u64,
    removed: Vec<u64>,
    replaced: Vec<(u64, Row)>,
    appended: Vec<Row>,
}

impl Rows {
    fn of(change: &RowChange<'_>) -> Rows {
        let mut replaced = Vec::new();
        for page in change.replaced() {
            let (ids, rows) = page.unwrap();
            replaced.extend(ids.values().iter().copied().zip(read(&rows)));
        }
        let appended = change.appended().flat_map(|rows| read(&rows.unwrap()));
        let rows = Rows {
            version: change.version(),
            auto_increment: change.auto_increment(),
            removed: change.removed().collect(),
            replaced,
            appended: appended.collect(),
        };
        assert_eq!(rows.removed.len() as u64, change.removed_count());
        assert_eq!(rows.appended.len() as u64, change.appended_count());
        rows
    }
}

#[derive(Debug, Default)]
struct Heard {
    told: Vec<Told>,
    /// Nothing more can be written down.
    refuses: bool,
}

/// Writes down what it is told.
#[derive(Clone, Debug, Default)]
struct Recorder(Arc<Mutex<Heard>>);

impl Recorder {
    fn take(&self) -> Vec<Told> {
        std::mem::take(&mut self.0.lock().unwrap().told)
    }

    fn refuse(&self, refuses: bool) {
        self.0.lock().unwrap().refuses = refuses;
    }

    fn table(&self, name: &str, definition: Definition, account: &Account) -> Arc<Table> {
        let table = Table::new(name, definition, account);
        Arc::new(table.with_journal(Box::new(self.clone())))
    }
}

impl Journal for Recorder {
    fn record(&self, mutation: &Mutation<'_>) -> Result<()> {
        let mut heard = self.0.lock().unwrap();
        if heard.refuses {
            return Err(mayfly_space::Error::Io {
                operation: "write",
                dir: "journal".into(),
                source: io::Error::from(io::ErrorKind::StorageFull),
            }
            .into());
        }
        let told = match mutation {
            Mutation::Rows(change) => Told::Rows(Rows::of(change)),
            Mutation::Truncate { version } => Told::Truncate { version: *version },
            Mutation::CreateDatabase { database } => Told::Names(format!("create {database}")),
            Mutation::DropDatabase { database } => Told::Names(format!("drop {database}")),
            Mutation::CreateTable { database, table } => {
                Told::Names(format!("create {database}.{}", table.name()))
            }
            Mutation::DropTable { database, table } => {
                Told::Names(format!("drop {database}.{}", table.name()))
            }
            Mutation::Exchange { gone, come } => {
                let names = |places: &[(String, Arc<Table>)]| {
                    let names = places
                        .iter()
                        .map(|(d, table)| format!("{d}.{}", table.name()));
                    names.collect::<Vec<_>>().join(", ")
                };
                Told::Names(format!("{} for {}", names(come), names(gone)))
            }
            other => panic!("{other:?} is new"),
        };
        heard.told.push(told);
        Ok(())
    }

    fn undo(&self, to: u64, version: u64) {
        self.0.lock().unwrap().told.push(Told::Undo { to, version });
    }

    fn successor(&self) -> Box<dyn Journal> {
        self.0.lock().unwrap().told.push(Told::Successor);
        Box::new(self.clone())
    }
}

/// The rows of each version by their ids, as a listener knows them.
#[derive(Default)]
struct Listener {
    versions: BTreeMap<u64, BTreeMap<i64, Row>>,
    version: u64,
}

impl Listener {
    fn new() -> Listener {
        let versions = [(0, BTreeMap::new())].into();
        Listener {
            versions,
            version: 0,
        }
    }

    fn rows(&self) -> &BTreeMap<i64, Row> {
        &self.versions[&self.version]
    }

    fn hear(&mut self, told: &Told, before: &TableSnapshot) {
        let mut rows = self.rows().clone();
        let version = match told {
            Told::Rows(change) => {
                let go = |rows: &mut BTreeMap<i64, Row>, ids: &[u64]| {
                    for row in read(&before.rows(ids, None).unwrap()) {
                        assert_eq!(rows.remove(&row.0), Some(row), "it was there");
                    }
                };
                go(&mut rows, &change.removed);
                let ids: Vec<u64> = change.replaced.iter().map(|(id, _)| *id).collect();
                go(&mut rows, &ids);
                let replaced = change.replaced.iter().map(|(_, row)| row);
                for row in replaced.chain(&change.appended) {
                    assert_eq!(rows.insert(row.0, row.clone()), None, "it was not there");
                }
                change.version
            }
            Told::Truncate { version } => {
                rows.clear();
                *version
            }
            Told::Undo { to, version } => {
                rows = self.versions[to].clone();
                *version
            }
            Told::Successor | Told::Names(_) => return,
        };
        assert_eq!(version, self.version + 1, "nothing is left out");
        self.version = version;
        self.versions.insert(version, rows);
    }
}

/// Does something to a table; whether it did.
fn mutate(
    random: &mut Random,
    table: &Arc<Table>,
    saved: &mut Vec<Saved>,
    recorder: &Recorder,
) -> bool {
    let refused = random.chance(10);
    recorder.refuse(refused);
    let result = match random.below(9) {
        0..3 => {
            let count = [1, 3, 200][random.below(3)];
            let rows = rows(random, count, 100_000);
            table.append(&batch(table, &rows))
        }
        3 => thin_out(table, 2 + random.below(5) as i64),
        4 => update_all(table, |row| (row.0, row.1.clone(), row.2 + 1)),
        5 => {
            // Some rows of each page go, some change.
            let mut change = table.begin_change();
            let snapshot = change.snapshot().clone();
            for index in 0..snapshot.batch_count() {
                let ids = snapshot.row_ids(index);
                let part = |residue: u64| {
                    let few = ids.values().iter().filter(|id| **id % 11 == residue);
                    few.copied().collect::<Vec<u64>>()
                };
                change.remove(&UInt64Array::from(part(0)));
                let few = part(1);
                let mut rows = read(&snapshot.rows(&few, None).unwrap());
                rows.iter_mut().for_each(|row| row.2 += 10);
                change.replace(&few.into(), &batch(table, &rows)).unwrap();
            }
            if random.chance(20) {
                drop(change);
                return false;
            }
            change.commit()
        }
        6 => table.truncate().map(drop),
        7 => {
            saved.push(table.save().unwrap());
            return false;
        }
        _ => {
            let Some(state) = saved.pop() else {
                return false;
            };
            state.restore();
            return true;
        }
    };
    let version_less = |error: &Error| matches!(error, Error::DuplicateEntry { .. });
    match result {
        Ok(()) => !refused || recorder.0.lock().unwrap().told.is_empty(),
        Err(error) => {
            assert!(refused || version_less(&error), "{error}");
            false
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn who_listens_knows_the_rows(seed in any::<u64>(), budget in 1..BUDGETS.len()) {
        let mut random = Random(seed);
        let dir = tempfile::tempdir().unwrap();
        let space = open(BUDGETS[budget], dir.path());
        let recorder = Recorder::default();
        let table = recorder.table("t", definition(), space.root());
        let (mut listener, mut saved) = (Listener::new(), Vec::new());
        for _ in 0..60 {
            let before = table.snapshot();
            let rows = read_all(&before);
            let has_changed = mutate(&mut random, &table, &mut saved, &recorder);
            let told = recorder.take();
            let seen = read_all(&table.snapshot());
            if !has_changed {
                assert!(told.is_empty(), "{told:?} of nothing");
                assert!(seen == rows);
            }
            assert!(told.len() <= 1, "told once");
            told.iter().for_each(|told| listener.hear(told, &before));
            let by_id: BTreeMap<i64, Row> = seen.into_iter().map(|row| (row.0, row)).collect();
            assert!(*listener.rows() == by_id);
            table.assert_whole();
        }
        drop((table, saved));
        assert_empty(&space);
    }
}

#[test]
fn parts_of_a_draft_are_told_and_so_is_that_they_are_undone() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let recorder = Recorder::default();
    let table = recorder.table("t", definition(), space.root());
    let mut listener = Listener::new();
    let mut random = Random(11);
    for publishes in [false, true, false] {
        let draft = table.draft().unwrap();
        for part in 0..4 {
            let before = draft.table().snapshot();
            match part % 2 {
                0 => {
                    let rows = rows(&mut random, 5, 100_000_000);
                    draft.table().append(&batch(&table, &rows)).unwrap();
                }
                _ => update_all(draft.table(), |row| (row.0, row.1.clone(), row.2 + 1)).unwrap(),
            }
            let told = recorder.take();
            assert_eq!(told.len(), 1);
            listener.hear(&told[0], &before);
        }
        match publishes {
            true => draft.publish().unwrap(),
            false => drop(draft),
        }
        let told = recorder.take();
        assert_eq!(told.len(), usize::from(!publishes), "{told:?}");
        told.iter()
            .for_each(|told| listener.hear(told, &table.snapshot()));
        let rows = read_all(&table.snapshot()).into_iter();
        let by_id: BTreeMap<i64, Row> = rows.map(|row| (row.0, row)).collect();
        assert!(*listener.rows() == by_id);
    }
    // A draft that nothing was told of is not undone.
    drop(table.draft().unwrap());
    assert!(recorder.take().is_empty());
    drop(table);
    assert_empty(&space);
}

#[test]
fn each_mutation_is_told_once_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let recorder = Recorder::default();
    let table = recorder.table("t", definition(), space.root());
    let row = |id: i64| (id, Some(format!("code {id}")), 1);
    let id_of = |id: i64| {
        let snapshot = table.snapshot();
        let rows = read_all(&snapshot);
        let place = rows.iter().position(|row| row.0 == id).unwrap();
        let ids =
            (0..snapshot.batch_count()).flat_map(|index| snapshot.row_ids(index).values().to_vec());
        ids.collect::<Vec<u64>>()[place]
    };
    let appended = |version, auto_increment, appended: Vec<Row>| {
        Told::Rows(Rows {
            version,
            auto_increment,
            appended,
            ..Rows::default()
        })
    };

    // INSERT: two batches of one statement are one mutation; a duplicate and nothing are none.
    table.raise_auto_increment(4);
    let mut appender = table.begin_append();
    appender.append(&batch(&table, &[row(1), row(2)])).unwrap();
    appender.append(&batch(&table, &[row(3)])).unwrap();
    assert_eq!(recorder.take(), [], "not before the statement ends");
    appender.commit().unwrap();
    assert_eq!(
        recorder.take(),
        [appended(1, 4, vec![row(1), row(2), row(3)])]
    );
    let duplicate = table.append(&batch(&table, &[row(4), row(1)]));
    assert!(matches!(duplicate, Err(Error::DuplicateEntry { .. })));
    table.begin_append().commit().unwrap();
    table.begin_change().commit().unwrap();
    table.append(&batch(&table, &[])).unwrap();
    assert_eq!(recorder.take(), []);

    // UPDATE of one row of few, DELETE, and an UPDATE that lost a race.
    let saved = table.save().unwrap();
    let first = id_of(1);
    let mut change = table.begin_change();
    let late = table.begin_change();
    change
        .replace(&vec![first].into(), &batch(&table, &[(1, None, 9)]))
        .unwrap();
    change.commit().unwrap();
    let [Told::Rows(told)] = &recorder.take()[..] else {
        panic!("one mutation");
    };
    let moved = (vec![first], vec![], vec![(1, None, 9)]);
    let stayed = (vec![], vec![(first, (1, None, 9))], vec![]);
    let found = (
        told.removed.clone(),
        told.replaced.clone(),
        told.appended.clone(),
    );
    assert!(found == moved || found == stayed, "{told:?}");
    let mut late = late;
    late.remove(&vec![first].into());
    assert!(matches!(late.commit(), Err(Error::Changed { .. })));
    assert_eq!(recorder.take(), []);
    let second = id_of(2);
    let mut change = table.begin_change();
    change.remove(&vec![second, second].into());
    change.commit().unwrap();
    let gone = Told::Rows(Rows {
        version: 3,
        auto_increment: 4,
        removed: vec![second],
        ..Rows::default()
    });
    assert_eq!(recorder.take(), [gone]);

    // ROLLBACK, TRUNCATE.
    saved.restore();
    assert_eq!(recorder.take(), [Told::Undo { to: 1, version: 4 }]);
    table.truncate().unwrap();
    assert_eq!(recorder.take(), [Told::Truncate { version: 5 }]);
    assert_eq!(table.auto_increment(), 1);
}

#[test]
fn what_a_journal_refuses_does_not_happen() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let recorder = Recorder::default();
    let table = recorder.table("t", definition(), space.root());
    let rows: Vec<Row> = (0..3000).map(|id| (id, Some(id.to_string()), 1)).collect();
    table.append(&batch(&table, &rows)).unwrap();
    recorder.take();
    recorder.refuse(true);
    let more = [(3000, None, 1)];
    let is_refused = |result: Result<()>| matches!(result, Err(Error::Space(_)));
    assert!(is_refused(table.append(&batch(&table, &more))));
    assert!(is_refused(thin_out(&table, 2)));
    assert!(is_refused(update_all(&table, |row| (row.0, None, 2))));
    assert!(is_refused(table.truncate().map(drop)));
    table.assert_whole();
    assert!(read_all(&table.snapshot()) == rows);
    assert_eq!(recorder.take(), []);
    recorder.refuse(false);
    table.append(&batch(&table, &more)).unwrap();
    table.assert_whole();
    assert_eq!(recorder.take().len(), 1);
    drop(table);
    assert_empty(&space);
}

#[test]
fn names_and_definitions_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let space = open(64 << 20, dir.path());
    let recorder = Recorder::default();
    let dictionary = Dictionary::with_journal(Box::new(recorder.clone()));
    let names = |names: &[&str]| {
        let names = names.iter().map(|name| Told::Names((*name).to_owned()));
        assert_eq!(recorder.take(), names.collect::<Vec<_>>());
    };
    dictionary.create_database("d").unwrap();
    let table = recorder.table("t", definition(), space.root());
    dictionary.create_table("d", Arc::clone(&table)).unwrap();
    names(&["create d", "create d.t"]);
    assert!(dictionary.create_database("d").is_err());
    assert!(dictionary.create_table("d", Arc::clone(&table)).is_err());
    assert!(dictionary.drop_table("d", "other").is_err());
    assert!(dictionary.drop_database("other").is_err());
    names(&[]);

    // ALTER with RENAME: the successor has its rows, a version of its own, and a journal.
    table.append(&batch(&table, &[(1, None, 1)])).unwrap();
    assert_eq!(recorder.take().len(), 1);
    let mut other = definition();
    other.comment = "other".to_owned();
    let (successor, seen) = table
        .successor("s", &other, &StopFlag::default())
        .unwrap()
        .unwrap();
    let successor = Arc::new(successor);
    assert_eq!(recorder.take(), [Told::Successor]);
    assert!(table.retire(&seen));
    table.hand_over_keys(&successor);
    let place = |table: &Arc<Table>| [("d".to_owned(), Arc::clone(table))];
    dictionary
        .exchange(&place(&table), &place(&successor))
        .unwrap();
    names(&["d.s for d.t"]);
    let refused = dictionary.exchange(&place(&table), &place(&successor));
    assert!(matches!(refused, Err(Error::Changed { .. })));
    names(&[]);
    successor
        .append(&batch(&successor, &[(2, None, 1)]))
        .unwrap();
    let told = recorder.take();
    assert!(matches!(&told[..], [Told::Rows(Rows { version: 1, .. })]));

    // What is refused stays as it was.
    recorder.refuse(true);
    assert!(dictionary.create_database("e").is_err());
    assert!(dictionary.create_table("d", Arc::clone(&table)).is_err());
    assert!(dictionary.drop_table("d", "s").is_err());
    assert!(dictionary.drop_database("d").is_err());
    let refused = dictionary.exchange(&place(&successor), &place(&table));
    assert!(matches!(refused, Err(Error::Space(_))));
    recorder.refuse(false);
    assert!(!dictionary.has_database("e"));
    assert_eq!(dictionary.tables("d").unwrap().len(), 1);
    dictionary.drop_table("d", "s").unwrap();
    assert_eq!(dictionary.drop_database("d").unwrap(), 0);
    names(&["drop d.s", "drop d"]);
}
