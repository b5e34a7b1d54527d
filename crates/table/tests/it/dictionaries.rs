//! Names of databases and tables.

use std::sync::Arc;

use mayfly_space::{Space, SpaceOptions};
use mayfly_table::{Dictionary, Error, Table, TemporaryTables};

use crate::tables::columns;

fn space() -> Space {
    let options = SpaceOptions {
        memory_bytes: 1 << 20,
        ..SpaceOptions::default()
    };
    Space::open(options).unwrap()
}

#[test]
fn names_come_and_go() {
    let space = space();
    let table = |name: &str| Arc::new(Table::new(name, columns(), space.root()));
    let dictionary = Dictionary::new();
    let error = dictionary.create_table("d", table("t")).unwrap_err();
    assert!(matches!(error, Error::UnknownDatabase { .. }));
    dictionary.create_database("d").unwrap();
    let error = dictionary.create_database("d").unwrap_err();
    assert!(matches!(error, Error::DatabaseExists { .. }));

    let version = dictionary.version();
    dictionary.create_table("d", table("t")).unwrap();
    dictionary.create_table("d", table("T")).unwrap();
    assert_ne!(dictionary.version(), version);
    let error = dictionary.create_table("d", table("t")).unwrap_err();
    assert!(matches!(error, Error::TableExists { .. }));
    let names: Vec<String> = dictionary
        .tables("d")
        .unwrap()
        .iter()
        .map(|t| t.name().to_owned())
        .collect();
    assert_eq!(names, ["T", "t"], "names differ by case");

    assert_eq!(dictionary.drop_table("d", "t").unwrap().name(), "t");
    let error = dictionary.table("d", "t").err().unwrap();
    assert!(matches!(error, Error::UnknownTable { .. }));
    assert_eq!(dictionary.drop_database("d").unwrap(), 1);
    assert!(!dictionary.has_database("d"));
    assert!(dictionary.databases().is_empty());
}

#[test]
fn temporary_tables_hide_shared_ones() {
    let space = space();
    let table = || Arc::new(Table::new("t", columns(), space.root()));
    let dictionary = Dictionary::new();
    dictionary.create_database("d").unwrap();
    let (shared, own) = (table(), table());
    dictionary.create_table("d", Arc::clone(&shared)).unwrap();
    let mut temporary = TemporaryTables::new();
    let found = |temporary: &TemporaryTables| temporary.resolve(&dictionary, "d", "t").unwrap();
    assert!(Arc::ptr_eq(&found(&temporary), &shared));
    temporary.create("d", Arc::clone(&own)).unwrap();
    assert!(Arc::ptr_eq(&found(&temporary), &own));
    assert!(matches!(
        temporary.create("d", table()),
        Err(Error::TableExists { .. })
    ));
    assert_eq!(temporary.tables().len(), 1);
    temporary.drop_table("d", "t").unwrap();
    assert!(Arc::ptr_eq(&found(&temporary), &shared));
    assert!(matches!(
        temporary.drop_table("d", "t"),
        Err(Error::UnknownTable { .. })
    ));
}

#[test]
fn tables_change_places_at_once_or_not_at_all() {
    let space = space();
    let account = space.root();
    let table = |name: &str| Arc::new(Table::new(name, columns(), account));
    let place = |table: &Arc<Table>| ("d".to_owned(), Arc::clone(table));
    let dictionary = Dictionary::new();
    dictionary.create_database("d").unwrap();
    let (a, b) = (table("a"), table("b"));
    dictionary.create_table("d", Arc::clone(&a)).unwrap();
    dictionary.create_table("d", Arc::clone(&b)).unwrap();

    // The names of two tables are exchanged.
    let (new_a, new_b) = (table("a"), table("b"));
    let version = dictionary.version();
    dictionary
        .exchange(&[place(&a), place(&b)], &[place(&new_b), place(&new_a)])
        .unwrap();
    assert_ne!(dictionary.version(), version);
    assert!(Arc::ptr_eq(&dictionary.table("d", "a").unwrap(), &new_a));
    assert!(Arc::ptr_eq(&dictionary.table("d", "b").unwrap(), &new_b));

    // A table that is no longer the one of its name, a name that is taken, a missing database.
    let changed = dictionary.exchange(&[place(&a)], &[place(&table("c"))]);
    assert!(matches!(changed, Err(Error::Changed { .. })));
    let taken = dictionary.exchange(&[place(&new_a)], &[place(&table("b"))]);
    assert!(matches!(taken, Err(Error::TableExists { .. })));
    let twice = dictionary.exchange(&[], &[place(&table("c")), place(&table("c"))]);
    assert!(matches!(twice, Err(Error::TableExists { .. })));
    let nowhere = dictionary.exchange(&[place(&new_a)], &[("e".to_owned(), table("a"))]);
    assert!(matches!(nowhere, Err(Error::UnknownDatabase { .. })));
    assert!(Arc::ptr_eq(&dictionary.table("d", "a").unwrap(), &new_a));
    assert_eq!(dictionary.tables("d").unwrap().len(), 2);

    // Temporary tables of a session.
    let mut temporary = TemporaryTables::new();
    temporary.create("d", Arc::clone(&a)).unwrap();
    let c = table("c");
    temporary.exchange(&[place(&a)], &[place(&c)]).unwrap();
    assert!(temporary.table("d", "a").is_none());
    assert!(temporary.has(&c));
}
