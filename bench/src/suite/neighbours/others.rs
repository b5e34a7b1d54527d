//! What the neighbours do.
//!
//! Owns: their tables and statements.

use std::time::{Duration, Instant};

use crate::args::SystemName;
use crate::scripts::wire::Client;
use crate::systems::server::{DATABASE, Server};

/// How deep the statement that is hard to plan goes.
const DEPTH: usize = 29;

/// Clients that do the same.
pub(super) struct Neighbour {
    pub(super) name: &'static str,
    pub(super) clients: usize,
    /// What each of them begins with; an error is none of ours.
    begin: &'static [&'static str],
    /// What they run in turn; [`NESTED`] stands for the statement that is hard to plan.
    pub(super) statements: &'static [&'static str],
    /// Whether the statements are meant to fail.
    fails: bool,
    only_mayfly: bool,
}

const NESTED: &str = "nested";

const NOBODY: Neighbour = Neighbour {
    name: "nobody",
    clients: 0,
    begin: &[],
    statements: &[],
    fails: false,
    only_mayfly: false,
};

/// The first is nobody.
pub(super) const NEIGHBOURS: [Neighbour; 9] = [
    NOBODY,
    Neighbour {
        name: "groups",
        clients: 2,
        statements: &["SELECT COUNT(*) FROM (SELECT text, COUNT(*) FROM big GROUP BY text) t"],
        ..NOBODY
    },
    Neighbour {
        name: "joins",
        clients: 2,
        statements: &["SELECT COUNT(*) FROM big a JOIN big b ON a.number = b.number + 1"],
        ..NOBODY
    },
    Neighbour {
        name: "sorts",
        clients: 2,
        statements: &[
            "SELECT SUM(n) FROM (SELECT number + ROW_NUMBER() OVER (ORDER BY text) n FROM big) t",
        ],
        ..NOBODY
    },
    Neighbour {
        name: "5,000,000 keyed rows, committed and deleted",
        clients: 1,
        statements: &[
            "INSERT INTO points SELECT 1000000 + a.n * 1000000 + b.n * 1000 + c.n, a.n, c.n, REPEAT('x', 20) \
             FROM thousand a JOIN thousand b JOIN thousand c WHERE a.n < 5",
            "DELETE FROM points WHERE id >= 1000000",
        ],
        ..NOBODY
    },
    Neighbour {
        name: "updates of all rows",
        clients: 1,
        statements: &["UPDATE points SET other = other + 1"],
        ..NOBODY
    },
    Neighbour {
        name: "rows that come one by one",
        clients: 4,
        statements: &[
            "INSERT INTO log VALUES (NULL, 'a row'), (NULL, 'another one')",
            "UPDATE log SET text = 'changed' WHERE id = 7",
        ],
        ..NOBODY
    },
    Neighbour {
        name: "statements that are hard to plan",
        clients: 4,
        begin: &[
            "SET max_statement_time = 2",
            "SET max_execution_time = 2000",
        ],
        statements: &[NESTED],
        fails: true,
        ..NOBODY
    },
    Neighbour {
        name: "groups beyond their quota",
        clients: 2,
        begin: &["SET max_tmp_session_space_usage = 16777216"],
        statements: &[
            "SELECT COUNT(*) FROM (SELECT text, number, COUNT(*) FROM big GROUP BY text, number) t",
        ],
        fails: true,
        only_mayfly: true,
    },
];

impl Neighbour {
    pub(super) fn takes_part(&self, system: SystemName) -> bool {
        !self.only_mayfly || system == SystemName::Mayfly
    }

    /// Runs its statements for a while; how many ended.
    pub(super) fn work(
        &self,
        server: &Server,
        system: SystemName,
        number: usize,
        duration: Duration,
    ) -> Result<u64, String> {
        let mut client = Client::connect(&server.socket, DATABASE)?;
        for statement in self.begin {
            // Another server may have no such variable.
            let _set = client.query(statement).is_ok();
        }
        let begin = Instant::now();
        let mut ended = 0;
        while begin.elapsed() < duration {
            for statement in self.statements {
                let answer = match *statement {
                    NESTED => client.query(&nested(number, ended)),
                    statement => client.query(statement),
                };
                match answer {
                    Ok(_) => {}
                    // MariaDB ends a statement of its own kind in its own way.
                    Err(_) if self.fails || system != SystemName::Mayfly => {}
                    Err(error) => return Err(error),
                }
                ended += 1;
            }
        }
        Ok(ended)
    }
}

/// A statement that a planner must not take exponential time for; another text each time.
fn nested(number: usize, round: u64) -> String {
    let mut text = format!("SELECT COUNT(*) FROM points WHERE id = {number} AND k = {round}");
    for _ in 0..DEPTH {
        text.push_str(" AND id IN (SELECT id FROM points WHERE k < 3");
    }
    text.push_str(&")".repeat(DEPTH));
    text
}

/// Makes the tables.
pub(super) fn prepare(
    client: &mut Client,
    system: SystemName,
    points: u64,
    rows: u64,
) -> Result<(), String> {
    // Mayfly's texts have this collation without being told.
    let collation = match system {
        SystemName::Mariadb => " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        _ => "",
    };
    let digits = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 \
                  UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    for statement in [
        "DROP TABLE IF EXISTS points, big, thousand, log".to_owned(),
        "CREATE TABLE thousand (n INT PRIMARY KEY)".to_owned(),
        format!(
            "INSERT INTO thousand SELECT a.d * 100 + b.d * 10 + c.d FROM {digits} a JOIN {digits} b JOIN {digits} c"
        ),
        "CREATE TABLE points (id INT PRIMARY KEY, k INT, other INT, text VARCHAR(40), KEY (k))"
            .to_owned(),
        format!(
            "INSERT INTO points SELECT a.n * 1000 + b.n + 1, (a.n * 1000 + b.n + 1) % 1000, 0, REPEAT('x', 20) \
             FROM thousand a JOIN thousand b WHERE a.n * 1000 + b.n < {points}"
        ),
        format!("CREATE TABLE big (number INT, text VARCHAR(40)){collation}"),
        format!(
            "INSERT INTO big SELECT a.n * 1000000 + b.n * 1000 + c.n, MD5(a.n * 1000000 + b.n * 1000 + c.n) \
             FROM thousand a JOIN thousand b JOIN thousand c WHERE a.n * 1000000 + b.n * 1000 + c.n < {rows}"
        ),
        "CREATE TABLE log (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(40))".to_owned(),
    ] {
        client
            .query(&statement)
            .map_err(|error| format!("{error}: {statement}"))?;
    }
    Ok(())
}

/// Takes away what a neighbour has left.
pub(super) fn tidy_up(client: &mut Client, points: u64) -> Result<(), String> {
    client.query(&format!("DELETE FROM points WHERE id > {points}"))?;
    client.query("TRUNCATE TABLE log")?;
    Ok(())
}
