//! The connections that own what others run: plans over shared tables.
//!
//! A plan is bound to the connection that made it: its functions read the variables there, and warn
//! there. What connections share is therefore made by a connection of its own that nobody speaks
//! on, one for each current database and set of variables that connections have. It has no
//! temporary tables, so none can be in what it makes, and all connections of the same database and
//! variables may run that.
//!
//! **Owns** which connection that is. **Never** keeps one alive: it lives as long as one that runs
//! its plans.
//!
//! **Cost**: the memory of one more connection, and a look into a map for each statement that a
//! connection does not know.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::connection::Connection;
use crate::local::Local;
use crate::running::EndHandle;
use crate::statement::Described;

/// Variables that clients set anew for each statement, such as those that replay a log.
const OF_ONE_STATEMENT: [&str; 2] = ["timestamp", "insert_id"];

/// A connection that makes plans, and what it has made.
pub(crate) struct PlanOwner {
    // fixed
    key: Key,
    pub(crate) connection: Arc<Connection>,
    // state
    /// Who makes something, so that others who want the same wait for it.
    pub(crate) making: tokio::sync::Mutex<()>,
    pub(crate) described: Mutex<Described>,
}

/// What connections must have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    /// The version of the variables.
    variables: u64,
    database: Option<String>,
}

impl Key {
    fn of(local: &Local) -> Key {
        Key {
            variables: local.variables.version(),
            database: local.database.clone(),
        }
    }
}

/// The owners that live.
#[derive(Default)]
pub(crate) struct PlanOwners(Mutex<HashMap<Key, Weak<PlanOwner>>>);

impl PlanOwners {
    fn find(&self, key: &Key) -> Option<Arc<PlanOwner>> {
        let owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        owners.get(key).and_then(Weak::upgrade)
    }

    fn find_or_open(&self, key: Key, open: impl FnOnce() -> Arc<Connection>) -> Arc<PlanOwner> {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(owner) = owners.get(&key).and_then(Weak::upgrade) {
            return owner;
        }
        owners.retain(|_, owner| owner.strong_count() > 0);
        let owner = Arc::new(PlanOwner {
            key: key.clone(),
            connection: open(),
            making: tokio::sync::Mutex::default(),
            described: Mutex::default(),
        });
        owners.insert(key, Arc::downgrade(&owner));
        owner
    }
}

impl Connection {
    /// The owner of plans that this connection may run, if there is one.
    pub(crate) fn plan_owner(&self) -> Option<Arc<PlanOwner>> {
        let key = match self.known_owner() {
            Ok(owner) => return Some(owner),
            Err(key) => key,
        };
        let found = self.engine.shared().plan_owners.find(&key)?;
        self.remember_owner(&found);
        Some(found)
    }

    /// The owner of plans that this connection may run; a new one if there is none. `None` where a
    /// variable is set that is meant for one statement, so that nobody will be alike.
    pub(crate) fn plan_owner_or_new(&self) -> Option<Arc<PlanOwner>> {
        let key = match self.known_owner() {
            Ok(owner) => return Some(owner),
            Err(key) => key,
        };
        let is_set = |name: &&str| self.local().variables.is_set(name);
        if OF_ONE_STATEMENT.iter().any(is_set) {
            return None;
        }
        let owners = &self.engine.shared().plan_owners;
        let owner = owners.find_or_open(key, || self.for_plans());
        self.remember_owner(&owner);
        Some(owner)
    }

    /// A connection of the same database and variables that nobody speaks on and nobody sees.
    fn for_plans(&self) -> Arc<Connection> {
        let new = Connection::open_with(self.engine.clone(), 0, EndHandle::default());
        {
            let (variables, database) = {
                let local = self.local();
                (local.variables.clone(), local.database.clone())
            };
            let mut new = new.local();
            new.variables = variables;
            new.database = database;
        }
        new.begin_looking(false);
        new
    }

    fn known_owner(&self) -> Result<Arc<PlanOwner>, Key> {
        let local = self.local();
        let key = Key::of(&local);
        match &local.plan_owner {
            Some(owner) if owner.key == key => Ok(Arc::clone(owner)),
            _ => Err(key),
        }
    }

    fn remember_owner(&self, owner: &Arc<PlanOwner>) {
        let before = self.local().plan_owner.replace(Arc::clone(owner));
        // It may be the last to hold it, whose end takes locks.
        drop(before);
    }
}
