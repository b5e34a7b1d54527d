//! The statements of the matrix: over `wide`, which is much of the budget, and what they change in
//! `target`.

use std::path::Path;

use super::ROWS;
use super::fault::Fault;

/// A statement under test.
pub struct Statement {
    /// Makes further input, once.
    pub setup: &'static [&'static str],
    /// Makes what the statement changes, before each run.
    pub each: Vec<String>,
    pub sql: String,
    /// Whether the rows of a query come in one order.
    pub is_ordered: bool,
    /// What it may never meet.
    pub unmet: &'static [Fault],
    /// Reads back what the statement changes.
    pub state: &'static [&'static str],
    /// Takes away what it changed, after each run.
    pub teardown: &'static [&'static str],
}

impl Statement {
    /// Rows in an order of their own where the statement gives them in none.
    pub fn ordered(&self, mut rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
        if !self.is_ordered {
            rows.sort();
        }
        rows
    }
}

/// Faults of statements that may have nothing to write.
const UNWRITTEN: [Fault; 3] = [Fault::Write, Fault::Writes, Fault::FullDisk];

/// All rows, those that the primary key finds, and those that the other key finds.
const TARGET: [&str; 3] = [
    "SELECT COUNT(*), SUM(n), COUNT(k), SUM(LENGTH(word)), SUM(CRC32(CONCAT_WS(',', n, k, word))) \
     FROM target",
    "SELECT COUNT(*), SUM(n) FROM target WHERE n >= 0",
    "SELECT COUNT(*), SUM(n) FROM target WHERE k >= ''",
];

/// How many rows are in `target` before statements that change some of them.
const FEW: u32 = 10_000;
/// The same for those that would write nothing otherwise.
const MANY: u32 = 30_000;

fn query(sql: &str) -> Statement {
    Statement {
        setup: &[],
        each: Vec::new(),
        sql: sql.to_owned(),
        is_ordered: false,
        unmet: &[],
        state: &[],
        teardown: &[],
    }
}

/// A statement that makes `target`, or fills one that `each` makes.
fn change(each: &[&str], sql: &str) -> Statement {
    Statement {
        each: each.iter().map(|sql| (*sql).to_owned()).collect(),
        state: &TARGET,
        teardown: &["DROP TABLE IF EXISTS target"],
        ..query(sql)
    }
}

/// A statement that changes a table of so many rows with two keys; `kind` is TEMPORARY or nothing.
fn change_keyed(kind: &str, rows: u32, sql: &str) -> Statement {
    let table = format!(
        "CREATE {kind} TABLE target (n INT PRIMARY KEY, k CHAR(32), word VARCHAR(200), KEY (k))"
    );
    let fill = format!("INSERT INTO target SELECT n, k, word FROM wide WHERE n < {rows}");
    change(&[&table, &fill], sql)
}

pub fn group_by_with_states(_: &Path) -> Statement {
    query(
        "SELECT COUNT(*), SUM(c), MAX(m), MIN(w) FROM (SELECT k, n, COUNT(*) c, MAX(n) m, \
         MIN(word) w FROM wide GROUP BY k, n) g",
    )
}

/// A table that is named twice and computed once.
pub fn computed_once(_: &Path) -> Statement {
    query(
        "WITH d AS (SELECT n, k, MAX(word) w FROM wide GROUP BY n, k) \
         SELECT COUNT(*), MIN(w), MAX(w) FROM (SELECT w FROM d UNION ALL SELECT k FROM d) u",
    )
}

pub fn group_by_with_kept_rows(_: &Path) -> Statement {
    query(
        "SELECT COUNT(*), SUM(LENGTH(c)) FROM (SELECT k, GROUP_CONCAT(word ORDER BY n) c \
         FROM wide GROUP BY k) g",
    )
}

pub fn distinct_aggregates(_: &Path) -> Statement {
    query("SELECT skewed, COUNT(DISTINCT k), SUM(DISTINCT n) FROM wide GROUP BY skewed")
}

pub fn distinct_aggregates_of_one_group(_: &Path) -> Statement {
    query(
        "SELECT d, COUNT(DISTINCT k), COUNT(DISTINCT k, n), SUM(DISTINCT n), COUNT(*), MAX(word) \
         FROM (SELECT n < 0 d, k, n, word FROM wide) w GROUP BY d",
    )
}

pub fn distinct_aggregates_without_groups(_: &Path) -> Statement {
    query(
        "SELECT COUNT(DISTINCT k), COUNT(DISTINCT k, n), SUM(DISTINCT n), COUNT(*), MAX(word), \
         GROUP_CONCAT(n ORDER BY n) FROM wide",
    )
}

pub fn distinct(_: &Path) -> Statement {
    query("SELECT COUNT(*), COUNT(k), MAX(w) FROM (SELECT DISTINCT n, k, word w FROM wide) d")
}

pub fn union(_: &Path) -> Statement {
    query(
        "SELECT COUNT(*), COUNT(k), MAX(w) FROM (SELECT k, n, word w FROM wide \
         UNION SELECT k, n + 20000, word FROM wide) u",
    )
}

pub fn order_by(_: &Path) -> Statement {
    Statement {
        is_ordered: true,
        ..query("SELECT word, k, n FROM wide ORDER BY word, k DESC, n")
    }
}

pub fn order_by_with_limit(_: &Path) -> Statement {
    Statement {
        is_ordered: true,
        ..query("SELECT word, k, n FROM wide ORDER BY word, n LIMIT 7 OFFSET 30000")
    }
}

pub fn joins_and_windows(_: &Path) -> Statement {
    Statement {
        unmet: &UNWRITTEN,
        ..query(
            "SELECT COUNT(*), SUM(r) FROM (SELECT a.n, ROW_NUMBER() OVER (PARTITION BY a.skewed \
             ORDER BY a.n) r FROM wide a JOIN digits d ON a.n % 10 = d.d) j",
        )
    }
}

pub fn windows(_: &Path) -> Statement {
    query(
        "SELECT COUNT(*), SUM(c), MAX(m), SUM(s), MAX(l), ROUND(SUM(r), 3) FROM (SELECT \
         COUNT(*) OVER (PARTITION BY skewed) c, MAX(word) OVER (PARTITION BY skewed) m, \
         SUM(n) OVER (PARTITION BY skewed ORDER BY n ROWS BETWEEN 3000 PRECEDING AND CURRENT ROW) s, \
         LEAD(word, 2000) OVER (ORDER BY n) l, PERCENT_RANK() OVER (ORDER BY k) r FROM wide) w",
    )
}

pub fn join_without_equality(_: &Path) -> Statement {
    Statement {
        unmet: &UNWRITTEN,
        ..query(
            "SELECT COUNT(*), SUM(a.n), MAX(CONCAT(a.word, d.d)), COUNT(d.d) FROM wide a \
             LEFT JOIN digits d ON a.n % 100 < d.d",
        )
    }
}

pub fn joins_by_equality(_: &Path) -> Statement {
    query(
        "SELECT COUNT(*), SUM(a.n), COUNT(b.n), MAX(CONCAT(a.k, b.word)), SUM(LENGTH(a.word)) \
         FROM wide a LEFT JOIN wide b ON a.n = b.n + 5000 AND a.word <= b.word",
    )
}

/// A table that is found by key, and one of few rows that finds it.
const KEYED: &[&str] = &[
    "CREATE TEMPORARY TABLE keyed (n INT PRIMARY KEY, k CHAR(32), word VARCHAR(100), KEY (k))",
    "INSERT INTO keyed SELECT n, k, word FROM wide",
    "CREATE TEMPORARY TABLE finders (n INT, k CHAR(32))",
    "INSERT INTO finders SELECT n, k FROM wide WHERE n % 300 = 7",
];

/// A query that finds few rows.
fn by_key(sql: &str) -> Statement {
    Statement {
        setup: KEYED,
        unmet: &UNWRITTEN,
        ..query(sql)
    }
}

pub fn join_by_key(_: &Path) -> Statement {
    by_key("SELECT f.n, t.k, t.word FROM finders f LEFT JOIN keyed t ON f.n = t.n")
}

pub fn semi_join_by_key(_: &Path) -> Statement {
    by_key("SELECT COUNT(*), SUM(n), MAX(word) FROM keyed WHERE k IN (SELECT k FROM finders)")
}

pub fn order_by_key(_: &Path) -> Statement {
    Statement {
        is_ordered: true,
        ..by_key("SELECT n, k, word FROM keyed WHERE n % 3 = 1 ORDER BY k DESC, n DESC LIMIT 40")
    }
}

pub fn create_temporary_table_select(_: &Path) -> Statement {
    change(
        &[],
        "CREATE TEMPORARY TABLE target (PRIMARY KEY (n), KEY (k)) \
         SELECT n, k, CONCAT(word, word) AS word FROM wide",
    )
}

pub fn create_table_select(_: &Path) -> Statement {
    change(
        &[],
        "CREATE TABLE target (KEY (k)) SELECT k, n, MAX(word) AS word FROM wide GROUP BY k, n",
    )
}

pub fn insert_without_key(_: &Path) -> Statement {
    change(
        &["CREATE TEMPORARY TABLE target (n INT, k CHAR(32), word TEXT)"],
        "INSERT INTO target SELECT n, k, CONCAT(n, word, word) FROM wide",
    )
}

/// More than the budget, so that some of it is written before the statement ends.
const INSERT: &str = "INSERT INTO target SELECT n + 100000, MD5(n), CONCAT(word, '!') FROM wide \
                      WHERE n < 30000";

pub fn insert_into_temporary(_: &Path) -> Statement {
    change_keyed("TEMPORARY", FEW, INSERT)
}

pub fn insert_into_shared(_: &Path) -> Statement {
    change_keyed("", FEW, INSERT)
}

pub fn replace_in_shared(_: &Path) -> Statement {
    let sql = "REPLACE INTO target SELECT n + 5000, MD5(n), CONCAT(word, word) FROM wide \
               WHERE n < 10000";
    Statement {
        unmet: &UNWRITTEN,
        ..change_keyed("", FEW, sql)
    }
}

pub fn insert_or_update_temporary(_: &Path) -> Statement {
    let sql = "INSERT INTO target SELECT n + 5000, k, CONCAT(word, word) FROM wide WHERE n < 30000 \
               ON DUPLICATE KEY UPDATE k = MD5(target.n), word = CONCAT(target.word, '!')";
    change_keyed("TEMPORARY", FEW, sql)
}

/// Texts that do not repeat: others would not be written before the end.
const UPDATE: &str = "UPDATE target SET k = MD5(n + 7), word = RPAD(n, 200, k) WHERE n % 30 <> 1";

pub fn update_temporary(_: &Path) -> Statement {
    change_keyed("TEMPORARY", FEW, UPDATE)
}

pub fn update_shared(_: &Path) -> Statement {
    change_keyed("", FEW, UPDATE)
}

/// The same, and what is in the other table that is changed.
const WITH_FEW: [&str; 4] = [
    TARGET[0],
    TARGET[1],
    TARGET[2],
    "SELECT COUNT(*), SUM(n), SUM(k = 'found') FROM few",
];

pub fn update_of_two_tables(_: &Path) -> Statement {
    let sql = "UPDATE target t JOIN few f ON t.n = f.n \
               SET t.word = CONCAT(t.word, f.k), t.k = f.k, f.k = 'found'";
    let mut statement = change_keyed("", FEW, sql);
    let few = "CREATE TABLE few (n INT PRIMARY KEY, k CHAR(32))";
    let fill = "INSERT INTO few SELECT n, MD5(n) FROM wide WHERE n % 20 = 7";
    statement.each.extend([few.to_owned(), fill.to_owned()]);
    Statement {
        unmet: &UNWRITTEN,
        state: &WITH_FEW,
        teardown: &["DROP TABLE IF EXISTS target, few"],
        ..statement
    }
}

const DELETE: &str = "DELETE FROM target WHERE n % 3 = 1";

pub fn delete_from_temporary(_: &Path) -> Statement {
    Statement {
        unmet: &UNWRITTEN,
        ..change_keyed("TEMPORARY", FEW, DELETE)
    }
}

pub fn delete_from_shared(_: &Path) -> Statement {
    Statement {
        unmet: &UNWRITTEN,
        ..change_keyed("", FEW, DELETE)
    }
}

/// Writes a file of rows and gives the statement that loads it.
fn load(directory: &Path) -> String {
    let path = directory.join("rows.tsv");
    let line = |n: u32| {
        let number = n + 100_000;
        format!("{number}\tkey{n}\t{}\n", "w".repeat(n as usize % 200))
    };
    let text: String = (0..ROWS).map(line).collect();
    std::fs::write(&path, text).unwrap();
    format!("LOAD DATA INFILE '{}' INTO TABLE target", path.display())
}

pub fn load_data_without_key(directory: &Path) -> Statement {
    Statement {
        // Its rows are in a file that is none of the space.
        unmet: &[Fault::Read, Fault::FlippedBit],
        ..change(
            &["CREATE TEMPORARY TABLE target (n INT, k CHAR(32), word TEXT)"],
            &load(directory),
        )
    }
}

pub fn load_data_into_shared(directory: &Path) -> Statement {
    change_keyed("", FEW, &load(directory))
}

pub fn alter_table(_: &Path) -> Statement {
    change_keyed(
        "",
        MANY,
        "ALTER TABLE target ADD KEY both_of (word, n), MODIFY n BIGINT",
    )
}
