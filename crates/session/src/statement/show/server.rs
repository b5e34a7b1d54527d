//! SHOW about the server: variables, status, warnings, connections.

use mayfly_sql::statement::Scope;
use mayfly_types::{Collation, Level};

use super::super::Job;
use super::super::information::processlist;
use crate::listing::{Listing, some};
use crate::plugins;
use crate::variables::{self, Kind, Where};

impl Job {
    pub(in super::super) fn list_variables(&self, scope: Scope) -> Listing {
        let mut listing = Listing::new(&["Variable_name", "Value"]);
        let globals = self.connection.engine.globals().variables.clone();
        for definition in variables::all() {
            let name = definition.name;
            let value = match (definition.place, scope) {
                (Where::Session, Scope::Global | Scope::Persist) => continue,
                (Where::Global, _) | (_, Scope::Global | Scope::Persist) => globals.text(name),
                _ => match self.system_variable(name) {
                    Ok(_)
                        if definition.place == Where::Both
                            || matches!(definition.kind, Kind::Switch | Kind::Off) =>
                    {
                        self.connection.local().variables.text(name)
                    }
                    Ok(value) => value.to_string(),
                    Err(_) => continue,
                },
            };
            listing.push(vec![some(name), Some(value)]);
        }
        listing
    }

    pub(in super::super) fn list_status(&self, scope: Scope) -> Listing {
        let connection = &self.connection;
        let rows = match scope {
            Scope::Session => {
                let status = connection.local().status;
                let counters = connection.account.counters();
                connection.engine.list_status(&status, &counters)
            }
            _ => connection.engine.status(),
        };
        let encryption = match scope {
            Scope::Session => connection.local().encryption.clone(),
            _ => None,
        };
        let (tls_version, cipher) = encryption.unwrap_or_default();
        let texts = [("Ssl_cipher", cipher), ("Ssl_version", tls_version)];
        let numbers = rows.iter().map(|(name, value)| (*name, value.to_string()));
        let mut rows: Vec<(&str, String)> = numbers.chain(texts).collect();
        rows.sort_unstable();
        let mut listing = Listing::new(&["Variable_name", "Value"]);
        for (name, value) in rows {
            listing.push(vec![some(name), some(value)]);
        }
        listing
    }

    pub(super) fn list_warnings(
        &self,
        errors_only: bool,
        offset: u64,
        limit: Option<u64>,
    ) -> Listing {
        let mut listing = Listing::new(&["Level", "Code", "Message"]).with_numbers(&["Code"]);
        let local = self.connection.local();
        let wanted = local
            .warnings
            .iter()
            .filter(|warning| !errors_only || warning.level == Level::Error)
            .skip(usize::try_from(offset).unwrap_or(usize::MAX))
            .take(limit.map_or(usize::MAX, |limit| {
                usize::try_from(limit).unwrap_or(usize::MAX)
            }));
        for warning in wanted {
            listing.push(vec![
                some(warning.level),
                some(warning.error.code),
                some(&warning.error.message),
            ]);
        }
        listing
    }

    pub(super) fn count_warnings(&self, errors_only: bool) -> Listing {
        let local = self.connection.local();
        let errors = local
            .warnings
            .iter()
            .filter(|warning| warning.level == Level::Error)
            .count();
        let (name, count) = if errors_only {
            ("@@session.error_count", errors as u64)
        } else {
            ("@@session.warning_count", local.warning_count)
        };
        let mut listing = Listing::new(&[name]).with_numbers(&[name]);
        listing.push(vec![some(count)]);
        listing
    }
}

/// The columns of INFORMATION_SCHEMA.PROCESSLIST that MySQL has too.
pub(super) fn processes(job: &Job) -> Listing {
    processlist(job).renamed(&[
        ("Id", "ID"),
        ("User", "USER"),
        ("Host", "HOST"),
        ("db", "DB"),
        ("Command", "COMMAND"),
        ("Time", "TIME"),
        ("State", "STATE"),
        ("Info", "INFO"),
    ])
}

pub(in super::super) fn engines() -> Listing {
    let mut listing = Listing::new(&[
        "Engine",
        "Support",
        "Comment",
        "Transactions",
        "XA",
        "Savepoints",
    ]);
    listing.push(vec![
        some(plugins::ENGINE),
        some("DEFAULT"),
        some(plugins::ENGINE_COMMENT),
        some("YES"),
        some("NO"),
        some("YES"),
    ]);
    listing
}

pub(in super::super) fn character_sets() -> Listing {
    let mut listing = Listing::new(&["Charset", "Description", "Default collation", "Maxlen"])
        .with_numbers(&["Maxlen"]);
    listing.push(vec![
        some("binary"),
        some("Binary pseudo charset"),
        some("binary"),
        some(1),
    ]);
    listing.push(vec![
        some("utf8mb4"),
        some("UTF-8 Unicode"),
        some(Collation::default()),
        some(4),
    ]);
    listing
}

pub(in super::super) fn collations() -> Listing {
    let mut listing = Listing::new(&[
        "Collation",
        "Charset",
        "Id",
        "Default",
        "Compiled",
        "Sortlen",
        "Pad_attribute",
    ])
    .with_numbers(&["Id", "Sortlen"]);
    for (collation, id) in [(Collation::Binary, 63), (Collation::Utf8mb4_0900Bin, 309)] {
        listing.push(vec![
            some(collation),
            some(collation.character_set()),
            some(id),
            some("Yes"),
            some("Yes"),
            some(1),
            some("NO PAD"),
        ]);
    }
    listing
}
