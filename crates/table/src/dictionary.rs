//! The names of databases, tables and views, in memory only.
//!
//! **Owns** which names exist. Creating and dropping are operations of hash maps.
//!
//! **Never** waits for a reader of a table: whoever found a table keeps it until it lets go, also
//! after the name was dropped.
//!
//! Names are compared byte by byte, as MySQL does on Linux (`lower_case_table_names=0`).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::journal::Place;
use crate::error::{Error, Result};
use crate::journal::{Journal, Mutation, Unlogged};
use crate::table::Table;
use crate::view::View;

type Tables = HashMap<String, Arc<Table>>;
type Databases = HashMap<String, Tables>;

/// What names mean that all sessions share. No table has the name of a view.
#[derive(Debug, Default)]
struct Shared {
    databases: Databases,
    /// The views of databases that have some, in the order of their names.
    views: HashMap<String, BTreeMap<String, Arc<View>>>,
}

impl Shared {
    fn view(&self, database: &str, name: &str) -> Option<&Arc<View>> {
        self.views.get(database)?.get(name)
    }

    /// Whether a view has a name that a table is to get.
    fn check_no_view(&self, database: &str, name: &str) -> Result<()> {
        match self.view(database, name) {
            Some(_) => Err(Error::TableExists {
                table: name.to_owned(),
            }),
            None => Ok(()),
        }
    }
}

/// The databases of a server and the tables that all its sessions share.
#[derive(Debug)]
pub struct Dictionary {
    journal: Box<dyn Journal>,
    shared: RwLock<Shared>,
    version: AtomicU64,
}

impl Default for Dictionary {
    fn default() -> Self {
        Self::with_journal(Box::new(Unlogged))
    }
}

impl Dictionary {
    /// A dictionary without databases, forgotten with the process.
    pub fn new() -> Self {
        Self::default()
    }

    /// A dictionary without databases, whose mutations are told to a journal.
    pub fn with_journal(journal: Box<dyn Journal>) -> Self {
        Self {
            journal,
            shared: RwLock::default(),
            version: AtomicU64::new(0),
        }
    }

    /// A number that differs after each change: a plan made under another version may be wrong.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Creates an empty database.
    ///
    /// # Errors
    /// [`Error::DatabaseExists`]; those of the journal.
    pub fn create_database(&self, database: &str) -> Result<()> {
        let mut shared = self.write();
        if shared.databases.contains_key(database) {
            return Err(Error::DatabaseExists {
                database: database.to_owned(),
            });
        }
        self.journal
            .record(&Mutation::CreateDatabase { database })?;
        let databases = &mut shared.databases;
        databases.insert(database.to_owned(), Tables::new());
        self.change();
        Ok(())
    }

    /// Drops a database and tells how many tables and views it had.
    ///
    /// # Errors
    /// [`Error::UnknownDatabase`]; those of the journal.
    pub fn drop_database(&self, database: &str) -> Result<usize> {
        let mut shared = self.write();
        if !shared.databases.contains_key(database) {
            return Err(unknown_database(database));
        }
        self.journal.record(&Mutation::DropDatabase { database })?;
        let dropped = shared.databases.remove(database).unwrap_or_default();
        let views = shared.views.remove(database).unwrap_or_default();
        self.change();
        drop(shared);
        dropped.values().for_each(|table| table.retire_for_good());
        Ok(dropped.len() + views.len())
    }

    /// Whether there is such a database.
    pub fn has_database(&self, database: &str) -> bool {
        self.read().databases.contains_key(database)
    }

    /// The names of all databases in the order of their bytes.
    pub fn databases(&self) -> Vec<String> {
        sorted(self.read().databases.keys())
    }

    /// The tables of a database in the order of their names.
    ///
    /// # Errors
    /// [`Error::UnknownDatabase`].
    pub fn tables(&self, database: &str) -> Result<Vec<Arc<Table>>> {
        let shared = self.read();
        let tables = shared.databases.get(database);
        let mut tables: Vec<Arc<Table>> = tables
            .ok_or_else(|| unknown_database(database))?
            .values()
            .cloned()
            .collect();
        tables.sort_by(|a, b| a.name().cmp(b.name()));
        Ok(tables)
    }

    /// The table of this name.
    ///
    /// # Errors
    /// [`Error::UnknownDatabase`], [`Error::UnknownTable`].
    pub fn table(&self, database: &str, table: &str) -> Result<Arc<Table>> {
        let shared = self.read();
        let tables = shared.databases.get(database);
        let tables = tables.ok_or_else(|| unknown_database(database))?;
        let found = tables.get(table).cloned();
        found.ok_or_else(|| unknown_table(database, table))
    }

    /// Whether a table is known by its name.
    pub fn has(&self, table: &Arc<Table>) -> bool {
        let shared = self.read();
        let mut all = shared.databases.values();
        all.any(|tables| {
            let found = tables.get(table.name());
            found.is_some_and(|found| Arc::ptr_eq(found, table))
        })
    }

    /// Makes a table known under its name. A table may be filled before, so that nobody sees it
    /// without its rows.
    ///
    /// # Errors
    /// [`Error::UnknownDatabase`], [`Error::TableExists`]; those of the journal.
    pub fn create_table(&self, database: &str, table: Arc<Table>) -> Result<()> {
        let mut shared = self.write();
        shared.check_no_view(database, table.name())?;
        let tables = shared.databases.get_mut(database);
        let tables = tables.ok_or_else(|| unknown_database(database))?;
        let told = |table: &Table| {
            let mutation = Mutation::CreateTable { database, table };
            self.journal.record(&mutation)
        };
        insert(tables, table, told)?;
        self.change();
        Ok(())
    }

    /// Forgets a table; its rows are freed when the last reader lets go of them.
    ///
    /// # Errors
    /// [`Error::UnknownDatabase`], [`Error::UnknownTable`]; those of the journal.
    pub fn drop_table(&self, database: &str, table: &str) -> Result<Arc<Table>> {
        let mut shared = self.write();
        let tables = shared.databases.get_mut(database);
        let tables = tables.ok_or_else(|| unknown_database(database))?;
        let found = tables.get(table).map(Arc::clone);
        let found = found.ok_or_else(|| unknown_table(database, table))?;
        let told = Mutation::DropTable {
            database,
            table: &found,
        };
        self.journal.record(&told)?;
        tables.remove(table);
        self.change();
        drop(shared);
        found.retire_for_good();
        Ok(found)
    }

    /// Puts tables in the place of others, all at once: what `gone` names is forgotten, each table
    /// with its database, and `come` is known under its names.
    ///
    /// # Errors
    /// [`Error::Changed`] if a table is no longer the one of its name; [`Error::TableExists`],
    /// [`Error::UnknownDatabase`]; those of the journal. Nothing has changed then.
    pub fn exchange(&self, gone: &[Place], come: &[Place]) -> Result<()> {
        let mut shared = self.write();
        for (database, table) in come {
            if !shared.databases.contains_key(database) {
                return Err(unknown_database(database));
            }
            shared.check_no_view(database, table.name())?;
        }
        check_exchange(&shared.databases, gone, come)?;
        self.journal.record(&Mutation::Exchange { gone, come })?;
        exchange(&mut shared.databases, gone, come);
        self.change();
        Ok(())
    }

    /// The view of this name.
    pub fn view(&self, database: &str, view: &str) -> Option<Arc<View>> {
        self.read().view(database, view).cloned()
    }

    /// The views of a database in the order of their names.
    pub fn views(&self, database: &str) -> Vec<Arc<View>> {
        let shared = self.read();
        let views = shared.views.get(database);
        views.map_or_else(Vec::new, |views| views.values().cloned().collect())
    }

    /// Makes a view known under its name. `old` is the view that has the name so far.
    ///
    /// # Errors
    /// [`Error::UnknownDatabase`]; [`Error::TableExists`] if a table has the name, or a view where
    /// `old` is `None`; [`Error::Changed`] if `old` has the name no longer; those of the journal.
    pub fn set_view(&self, database: &str, view: View, old: Option<&Arc<View>>) -> Result<()> {
        let mut shared = self.write();
        let tables = shared.databases.get(database);
        let tables = tables.ok_or_else(|| unknown_database(database))?;
        if tables.contains_key(&view.name) {
            return Err(Error::TableExists { table: view.name });
        }
        match (shared.view(database, &view.name), old) {
            (Some(_), None) => return Err(Error::TableExists { table: view.name }),
            (found, Some(old)) if !found.is_some_and(|found| Arc::ptr_eq(found, old)) => {
                return Err(Error::Changed { table: view.name });
            }
            _ => {}
        }
        let told = Mutation::SetView {
            database,
            view: &view,
        };
        self.journal.record(&told)?;
        let views = shared.views.entry(database.to_owned()).or_default();
        views.insert(view.name.clone(), Arc::new(view));
        self.change();
        Ok(())
    }

    /// Forgets views: all of them, or none.
    ///
    /// # Errors
    /// [`Error::UnknownTable`] if one is not there; those of the journal.
    pub fn drop_views(&self, views: &[(String, String)]) -> Result<()> {
        let mut shared = self.write();
        for (database, view) in views {
            if shared.view(database, view).is_none() {
                return Err(unknown_table(database, view));
            }
        }
        for (database, view) in views {
            self.journal
                .record(&Mutation::DropView { database, view })?;
        }
        for (database, view) in views {
            if let Some(views) = shared.views.get_mut(database) {
                views.remove(view);
            }
        }
        self.change();
        Ok(())
    }

    /// Gives a view of a database another name.
    ///
    /// # Errors
    /// [`Error::UnknownTable`] if it is not there, [`Error::TableExists`] if a table or a view has
    /// the new name; those of the journal.
    pub fn rename_view(&self, database: &str, old: &str, new: &str) -> Result<()> {
        let mut shared = self.write();
        let view = shared.view(database, old).cloned();
        let view = view.ok_or_else(|| unknown_table(database, old))?;
        let tables = shared.databases.get(database);
        let is_taken = tables.is_some_and(|tables| tables.contains_key(new));
        if is_taken || shared.view(database, new).is_some() {
            return Err(Error::TableExists {
                table: new.to_owned(),
            });
        }
        let view = View {
            name: new.to_owned(),
            ..view.as_ref().clone()
        };
        self.journal.record(&Mutation::DropView {
            database,
            view: old,
        })?;
        self.journal.record(&Mutation::SetView {
            database,
            view: &view,
        })?;
        let views = shared.views.entry(database.to_owned()).or_default();
        views.remove(old);
        views.insert(new.to_owned(), Arc::new(view));
        self.change();
        Ok(())
    }

    fn change(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    /// The maps stay whole when a panic passes through: each change is one operation.
    fn read(&self) -> RwLockReadGuard<'_, Shared> {
        self.shared.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Shared> {
        self.shared.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The temporary tables of one session. They hide shared tables of the same name.
#[derive(Debug, Default)]
pub struct TemporaryTables {
    databases: Databases,
    version: u64,
}

impl TemporaryTables {
    /// No tables.
    pub fn new() -> Self {
        Self::default()
    }

    /// A number that differs after each change of this session's tables.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Makes a table known to this session.
    ///
    /// # Errors
    /// [`Error::TableExists`] if the session has a temporary table of this name; a shared one does
    /// not matter.
    pub fn create(&mut self, database: &str, table: Arc<Table>) -> Result<()> {
        match self.databases.get_mut(database) {
            Some(tables) => insert(tables, table, |_| Ok(()))?,
            None => {
                let tables = HashMap::from([(table.name().to_owned(), table)]);
                self.databases.insert(database.to_owned(), tables);
            }
        }
        self.version += 1;
        Ok(())
    }

    /// Forgets a table.
    ///
    /// # Errors
    /// [`Error::UnknownTable`].
    pub fn drop_table(&mut self, database: &str, table: &str) -> Result<Arc<Table>> {
        let tables = self.databases.get_mut(database);
        let dropped = tables.and_then(|tables| tables.remove(table));
        let dropped = dropped.ok_or_else(|| unknown_table(database, table))?;
        self.version += 1;
        Ok(dropped)
    }

    /// As [`Dictionary::exchange`], for this session's tables.
    ///
    /// # Errors
    /// [`Error::Changed`], [`Error::TableExists`]. Nothing has changed then.
    pub fn exchange(&mut self, gone: &[Place], come: &[Place]) -> Result<()> {
        check_exchange(&self.databases, gone, come)?;
        exchange(&mut self.databases, gone, come);
        self.version += 1;
        Ok(())
    }

    /// Forgets all tables, as at the end or the reset of a connection.
    pub fn clear(&mut self) {
        self.databases.clear();
        self.version += 1;
    }

    /// The session's table of this name.
    pub fn table(&self, database: &str, table: &str) -> Option<Arc<Table>> {
        self.databases.get(database)?.get(table).cloned()
    }

    /// Whether a table is one of this session's.
    pub fn has(&self, table: &Arc<Table>) -> bool {
        let tables = self.databases.values();
        let own = |tables: &Tables| {
            let found = tables.get(table.name());
            found.is_some_and(|found| Arc::ptr_eq(found, table))
        };
        tables.into_iter().any(own)
    }

    /// All tables with their databases, in the order of their names.
    pub fn tables(&self) -> Vec<(String, Arc<Table>)> {
        let mut all = Vec::new();
        for (database, tables) in &self.databases {
            all.extend(tables.values().map(|t| (database.clone(), Arc::clone(t))));
        }
        all.sort_by(|a, b| (&a.0, a.1.name()).cmp(&(&b.0, b.1.name())));
        all
    }

    /// The table that a name means in this session: its own temporary one before a shared one.
    ///
    /// # Errors
    /// [`Error::UnknownDatabase`], [`Error::UnknownTable`].
    pub fn resolve(&self, shared: &Dictionary, database: &str, table: &str) -> Result<Arc<Table>> {
        match self.table(database, table) {
            Some(own) => Ok(own),
            None => shared.table(database, table),
        }
    }
}

/// Makes a table known under its name, which `told` may still refuse.
fn insert(
    tables: &mut Tables,
    table: Arc<Table>,
    told: impl FnOnce(&Table) -> Result<()>,
) -> Result<()> {
    match tables.entry(table.name().to_owned()) {
        Entry::Occupied(_) => Err(Error::TableExists {
            table: table.name().to_owned(),
        }),
        Entry::Vacant(free) => {
            told(&table)?;
            free.insert(table);
            Ok(())
        }
    }
}

/// Whether tables can take the place of others.
fn check_exchange(databases: &Databases, gone: &[Place], come: &[Place]) -> Result<()> {
    for (database, table) in gone {
        let found = databases
            .get(database)
            .and_then(|found| found.get(table.name()));
        if !found.is_some_and(|found| Arc::ptr_eq(found, table)) {
            return Err(Error::Changed {
                table: table.name().to_owned(),
            });
        }
    }
    for (index, (database, table)) in come.iter().enumerate() {
        let is_same = |other: &Place| other.0 == *database && other.1.name() == table.name();
        let stays = databases
            .get(database)
            .is_some_and(|found| found.contains_key(table.name()))
            && !gone.iter().any(is_same);
        if stays || come[..index].iter().any(is_same) {
            return Err(Error::TableExists {
                table: table.name().to_owned(),
            });
        }
    }
    Ok(())
}

fn exchange(databases: &mut Databases, gone: &[Place], come: &[Place]) {
    for (database, table) in gone {
        if let Some(tables) = databases.get_mut(database) {
            tables.remove(table.name());
        }
    }
    for (database, table) in come {
        let tables = databases.entry(database.clone()).or_default();
        tables.insert(table.name().to_owned(), Arc::clone(table));
    }
}

fn sorted<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut names: Vec<String> = names.cloned().collect();
    names.sort();
    names
}

fn unknown_database(database: &str) -> Error {
    Error::UnknownDatabase {
        database: database.to_owned(),
    }
}

fn unknown_table(database: &str, table: &str) -> Error {
    Error::UnknownTable {
        database: database.to_owned(),
        table: table.to_owned(),
    }
}
