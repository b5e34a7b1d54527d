//! What the clients of a soak run.
//!
//! Owns: their tables, and the statements drawn at random.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::data::SplitMix64;
use crate::scripts::wire::Client;
use crate::systems::server::{DATABASE, Server};

/// Stands in every statement that may be killed.
pub(super) const MARK: &str = "/* soak */";
/// Rows of the table that is grouped, sorted and joined.
const ROWS: u64 = 400_000;

/// Half a GiB of groups.
pub(super) const LARGE: &str = "SELECT COUNT(*) FROM (SELECT CONCAT(text, n) t, COUNT(*) \
    FROM big JOIN thousand WHERE n < 6 GROUP BY CONCAT(text, n)) d";

/// What is run in turn, drawn at random; `?` is a random number below a hundred thousand.
const STATEMENTS: [&str; 22] = [
    "SELECT text FROM points WHERE id = ?",
    "UPDATE points SET number = number + 1 WHERE id = ?",
    "INSERT INTO points VALUES (?, 1, 'new') ON DUPLICATE KEY UPDATE text = 'again'",
    "DELETE FROM points WHERE id = ?",
    "REPLACE INTO points VALUES (?, 2, 'replaced'), (?, 3, 'replaced')",
    "INSERT IGNORE INTO points SELECT number, number, text FROM big WHERE number BETWEEN ? AND ? + 2000",
    "UPDATE points SET text = REPEAT('u', ? % 40) WHERE number % 7 = ? % 7",
    "DELETE FROM points WHERE id > 100000",
    "SELECT COUNT(*) FROM (SELECT text, COUNT(*) FROM big GROUP BY text) t",
    "SELECT COUNT(*) FROM (SELECT DISTINCT number + ? FROM big) t",
    "SELECT SUM(LENGTH(text)) FROM (SELECT text FROM big ORDER BY text LIMIT 300000) t",
    "SELECT COUNT(*) FROM big a JOIN points b ON a.number = b.id",
    "SELECT COUNT(*) FROM (SELECT number FROM big UNION SELECT id FROM points) t",
    "SELECT GROUP_CONCAT(text) FROM big GROUP BY number % 100 LIMIT 3",
    "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < ? % 900) SELECT SUM(n) FROM r",
    "CREATE TEMPORARY TABLE own (id INT PRIMARY KEY, text VARCHAR(100), KEY (text))",
    "INSERT INTO own SELECT number + 1000000, text FROM big LIMIT 20000",
    "INSERT IGNORE INTO own VALUES (?, 'one'), (?, 'two')",
    "UPDATE own SET text = CONCAT(text, '.') WHERE id % 3 = ? % 3",
    "DROP TEMPORARY TABLE own",
    "SELECT * FROM nowhere",
    "SET max_tmp_session_space_usage = 33554432",
];

/// A client that runs them.
pub(super) struct Worker {
    random: SplitMix64,
}

impl Worker {
    pub(super) fn new(seed: u64) -> Worker {
        Worker {
            random: SplitMix64::new(seed),
        }
    }

    /// Runs statements until it is over; how many, and how many of them failed. A connection that
    /// was killed is made anew.
    ///
    /// # Errors
    /// If the server does not let it in.
    pub(super) fn run(
        mut self,
        server: &Server,
        is_over: &AtomicBool,
    ) -> Result<(u64, u64), String> {
        let (mut statements, mut errors) = (0, 0);
        while !is_over.load(Ordering::Relaxed) {
            let mut client = Client::connect(&server.socket, DATABASE)?;
            while !is_over.load(Ordering::Relaxed) {
                let answer = client.query(&self.statement());
                statements += 1;
                if let Err(error) = answer {
                    errors += 1;
                    if !is_of_statement(&error) {
                        break;
                    }
                }
                // Clients come and go by themselves, too.
                if self.random.next().is_multiple_of(200) {
                    break;
                }
            }
        }
        Ok((statements, errors))
    }

    fn statement(&mut self) -> String {
        let count = STATEMENTS.len() as u64;
        let place = usize::try_from(self.random.next() % count).expect("below their number");
        let mut text = MARK.to_owned();
        for part in STATEMENTS[place].split_inclusive('?') {
            match part.strip_suffix('?') {
                Some(part) => {
                    text.push_str(part);
                    text.push_str(&(self.random.next() % 100_000).to_string());
                }
                None => text.push_str(part),
            }
        }
        text
    }
}

/// Whether the connection goes on after an error.
fn is_of_statement(error: &str) -> bool {
    !error.contains("the server has gone") && !error.contains("Connection was killed")
}

/// Makes the tables that all clients share.
pub(super) fn prepare(client: &mut Client) -> Result<(), String> {
    let digits = "(SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 \
                  UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)";
    for statement in [
        "CREATE TABLE thousand (n INT PRIMARY KEY)".to_owned(),
        format!(
            "INSERT INTO thousand SELECT a.d * 100 + b.d * 10 + c.d FROM {digits} a JOIN {digits} b JOIN {digits} c"
        ),
        "CREATE TABLE big (number INT, text VARCHAR(200))".to_owned(),
        format!(
            "INSERT INTO big SELECT a.n * 1000 + b.n, CONCAT(REPEAT(MD5(a.n * 1000 + b.n), 5), a.n) \
             FROM thousand a JOIN thousand b WHERE a.n * 1000 + b.n < {ROWS}"
        ),
        "CREATE TABLE points (id INT PRIMARY KEY, number INT, text VARCHAR(200), KEY (number))"
            .to_owned(),
        "INSERT INTO points SELECT number, number, text FROM big WHERE number < 100000".to_owned(),
    ] {
        client
            .query(&statement)
            .map_err(|error| format!("{error}: {statement}"))?;
    }
    Ok(())
}

/// Makes a small table in the middle of it all, which stays: its pages lie anywhere in the file.
pub(super) fn keep_something(client: &mut Client) -> Result<(), String> {
    client.query("CREATE TABLE kept (id INT PRIMARY KEY, text VARCHAR(200))")?;
    client.query("INSERT INTO kept SELECT n, REPEAT('k', 150) FROM thousand")?;
    Ok(())
}

/// Drops the other tables.
pub(super) fn tidy_up(client: &mut Client) -> Result<(), String> {
    client.query("DROP TABLE big, points, thousand")?;
    Ok(())
}
