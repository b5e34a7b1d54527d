//! What the neighbours do.
//!
//! Owns: their tables and statements.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::args::SystemName;
use crate::scripts::wire::Client;
use crate::systems::server::{DATABASE, Server};

/// How deep statements that are hard to plan go.
const DEPTH: usize = 29;
/// Tables of those that join many; 61 is the most.
const JOINED: usize = 60;
/// Rows of the file that is loaded.
const LOADED: u64 = 500_000;
/// Its name.
const FILE: &str = "rows.tsv";

/// Clients that do the same.
pub(super) struct Neighbour {
    pub(super) name: &'static str,
    pub(super) clients: usize,
    /// What each of them begins with; an error is none of ours.
    begin: &'static [&'static str],
    /// What they run in turn.
    pub(super) statements: &'static [Work],
    /// Whether the statements are meant to fail.
    fails: bool,
    only_mayfly: bool,
}

/// What a neighbour runs.
pub(super) enum Work {
    Sql(&'static str),
    /// A file into the table `loaded`.
    Load,
    /// A statement that is hard to plan, another one each time.
    Plan,
}

use Work::{Load, Plan, Sql};

const NOBODY: Neighbour = Neighbour {
    name: "nobody",
    clients: 0,
    begin: &[],
    statements: &[],
    fails: false,
    only_mayfly: false,
};

/// The first is nobody.
pub(super) const NEIGHBOURS: [Neighbour; 10] = [
    NOBODY,
    Neighbour {
        name: "groups",
        clients: 2,
        statements: &[Sql(
            "SELECT COUNT(*) FROM (SELECT text, COUNT(*) FROM big GROUP BY text) t",
        )],
        ..NOBODY
    },
    Neighbour {
        name: "joins",
        clients: 2,
        statements: &[Sql(
            "SELECT COUNT(*) FROM big a JOIN big b ON a.number = b.number + 1",
        )],
        ..NOBODY
    },
    Neighbour {
        name: "sorts",
        clients: 2,
        statements: &[Sql(
            "SELECT SUM(n) FROM (SELECT number + ROW_NUMBER() OVER (ORDER BY text) n FROM big) t",
        )],
        ..NOBODY
    },
    Neighbour {
        name: "files that are loaded",
        clients: 1,
        statements: &[Load, Sql("TRUNCATE TABLE loaded")],
        ..NOBODY
    },
    Neighbour {
        name: "5,000,000 keyed rows, committed and deleted",
        clients: 1,
        statements: &[
            Sql(
                "INSERT INTO points SELECT 1000000 + a.n * 1000000 + b.n * 1000 + c.n, a.n, c.n, REPEAT('x', 20) \
             FROM thousand a JOIN thousand b JOIN thousand c WHERE a.n < 5",
            ),
            Sql("DELETE FROM points WHERE id >= 1000000"),
        ],
        ..NOBODY
    },
    Neighbour {
        name: "updates of all rows",
        clients: 1,
        statements: &[Sql("UPDATE points SET other = other + 1")],
        ..NOBODY
    },
    Neighbour {
        name: "rows that come one by one",
        clients: 4,
        statements: &[
            Sql("INSERT INTO log VALUES (NULL, 'a row'), (NULL, 'another one')"),
            Sql("UPDATE log SET text = 'changed' WHERE id = 7"),
        ],
        ..NOBODY
    },
    Neighbour {
        name: "statements that are hard to plan",
        clients: 4,
        // Mayfly has bounds of its own, and no such variable.
        begin: &["SET max_statement_time = 2"],
        statements: &[Plan],
        fails: true,
        ..NOBODY
    },
    Neighbour {
        name: "groups beyond their quota",
        clients: 2,
        begin: &["SET max_tmp_session_space_usage = 16777216"],
        statements: &[Sql(
            "SELECT COUNT(*) FROM (SELECT text, number, COUNT(*) FROM big GROUP BY text, number) t",
        )],
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
        files: &Path,
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
                let answer = match statement {
                    Sql(text) => client.query(text),
                    Load => client.query(&load(files)),
                    Plan => client.query(&hard_to_plan(number, ended)),
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

fn load(files: &Path) -> String {
    let file = files.join(FILE);
    format!("LOAD DATA INFILE '{}' INTO TABLE loaded", file.display())
}

/// A statement that a planner must not take exponential time for; another text each time.
fn hard_to_plan(number: usize, round: u64) -> String {
    let mut text = format!("SELECT COUNT(*) FROM points p0 WHERE p0.id = {number}{round}");
    let (begin, link): (&str, fn(usize) -> String) = match round % 4 {
        0 => (" AND p0.id IN (", |level| {
            format!("SELECT p{level}.id FROM points p{level} WHERE p{level}.id IN (")
        }),
        1 => (" AND EXISTS (", |level| {
            let before = level - 1;
            format!("SELECT 1 FROM points p{level} WHERE p{level}.id = p{before}.id AND EXISTS (")
        }),
        2 => (" AND p0.id = (", |level| {
            format!("SELECT MIN(p{level}.id) FROM points p{level} WHERE p{level}.k = (")
        }),
        _ => return joined(number, round),
    };
    text.push_str(begin);
    (1..DEPTH).for_each(|level| text.push_str(&link(level)));
    text.push_str("SELECT 1");
    text.push_str(&")".repeat(DEPTH));
    text
}

/// A join of almost as many tables as there may be.
fn joined(number: usize, round: u64) -> String {
    let mut text = "SELECT COUNT(*) FROM points p0".to_owned();
    for table in 1..JOINED {
        let before = table - 1;
        text.push_str(&format!(
            " JOIN points p{table} ON p{table}.id = p{before}.id"
        ));
    }
    text.push_str(&format!(" WHERE p0.id = {number}{round}"));
    text
}

/// Makes the tables.
pub(super) fn prepare(
    client: &mut Client,
    system: SystemName,
    files: &Path,
    points: u64,
    rows: u64,
) -> Result<(), String> {
    let written = write_file(files);
    written.map_err(|error| format!("{FILE}: {error}"))?;
    // Mayfly's texts have this collation without being told.
    let collation = match system {
        SystemName::Mariadb => " CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        _ => "",
    };
    let digits = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 \
                  UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    for statement in [
        "DROP TABLE IF EXISTS points, big, thousand, log, loaded".to_owned(),
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
        "CREATE TABLE loaded (id INT PRIMARY KEY, k INT, text VARCHAR(40), KEY (k))".to_owned(),
    ] {
        client
            .query(&statement)
            .map_err(|error| format!("{error}: {statement}"))?;
    }
    Ok(())
}

/// Writes the file that is loaded.
fn write_file(files: &Path) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(files.join(FILE))?);
    for id in 0..LOADED {
        writeln!(file, "{id}\t{}\tthe text of row {id}", id % 1000)?;
    }
    file.flush()
}

/// Takes away what a neighbour has left.
pub(super) fn tidy_up(client: &mut Client, points: u64) -> Result<(), String> {
    client.query(&format!("DELETE FROM points WHERE id > {points}"))?;
    client.query("TRUNCATE TABLE log")?;
    client.query("TRUNCATE TABLE loaded")?;
    Ok(())
}
