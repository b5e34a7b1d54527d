//! SHOW about the server: variables, status, warnings, connections.

use mayfly_sql::statement::{Nothing, Scope};
use mayfly_types::{Collation, Level};

use super::super::Job;
use crate::listing::{Listing, some};
use crate::variables::{CATALOG, Where};

impl Job {
    pub(super) fn list_variables(&self, scope: Scope) -> Listing {
        let mut listing = Listing::new(&["Variable_name", "Value"]);
        let globals = self.connection.engine.globals().variables.clone();
        for definition in CATALOG {
            let name = definition.name;
            let value = match (definition.place, scope) {
                (Where::Session, Scope::Global | Scope::Persist) => continue,
                (Where::Global, _) | (_, Scope::Global | Scope::Persist) => globals.text(name),
                _ => match self.system_variable(name) {
                    Ok(_) if definition.place == Where::Both => {
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

    pub(super) fn list_status(&self, scope: Scope) -> Listing {
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

    pub(super) fn list_processes(&self) -> Listing {
        let mut listing = Listing::new(&[
            "Id", "User", "Host", "db", "Command", "Time", "State", "Info",
        ])
        .with_numbers(&["Id", "Time"]);
        for connection in self.connection.engine.open_connections() {
            let running = connection.cancel.running();
            let (database, port) = {
                let local = connection.local();
                (local.database.clone(), local.client_port)
            };
            let elapsed = running
                .as_ref()
                .map_or(0, |running| running.elapsed().as_secs());
            let user = connection.values.lock().user.clone();
            let (user, host) = user.rsplit_once('@').unwrap_or((&user, ""));
            let host = match port {
                Some(port) => format!("{host}:{port}"),
                None => host.to_owned(),
            };
            let command = match &running {
                Some(running) if running.is_prepared() => "Execute",
                Some(_) => "Query",
                None => "Sleep",
            };
            listing.push(vec![
                some(connection.id),
                some(user),
                some(host),
                database,
                some(command),
                some(elapsed),
                some(
                    running
                        .as_ref()
                        .map_or("", |running| running.stage().name()),
                ),
                running.map(|running| running.text.clone()),
            ]);
        }
        listing
    }
}

pub(super) fn engines() -> Listing {
    let mut listing = Listing::new(&[
        "Engine",
        "Support",
        "Comment",
        "Transactions",
        "XA",
        "Savepoints",
    ]);
    listing.push(vec![
        some("Mayfly"),
        some("DEFAULT"),
        some("Temporary tables, transactions, row versions; one space of memory and disk"),
        some("YES"),
        some("NO"),
        some("YES"),
    ]);
    listing
}

pub(super) fn character_sets() -> Listing {
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

pub(super) fn collations() -> Listing {
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

/// What there is none of: the columns of MySQL's answer.
pub(super) fn nothing(what: Nothing) -> Listing {
    let sets = [
        "character_set_client",
        "collation_connection",
        "Database Collation",
    ];
    let columns: &[&str] = match what {
        Nothing::Events => &[
            "Db",
            "Name",
            "Definer",
            "Time zone",
            "Type",
            "Execute at",
            "Interval value",
            "Interval field",
            "Starts",
            "Ends",
            "Status",
            "Originator",
        ],
        Nothing::Routines => &[
            "Db",
            "Name",
            "Type",
            "Definer",
            "Modified",
            "Created",
            "Security_type",
            "Comment",
        ],
        Nothing::Triggers => &[
            "Trigger",
            "Event",
            "Table",
            "Statement",
            "Timing",
            "Created",
            "sql_mode",
            "Definer",
        ],
    };
    Listing::new(&[columns, &sets].concat())
}
