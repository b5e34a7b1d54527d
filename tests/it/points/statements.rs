//! Statements on few rows, each with one that means the same but is of no kind that is known.

use mayfly_testkit::Random;

/// Columns with values that fit, values that must be changed, and values that are refused.
pub const COLUMNS: [(&str, &[&str]); 16] = [
    (
        "TINYINT",
        &["5", "-128", "127", "128", "'7'", "1.5", "-0", "NULL"],
    ),
    (
        "TINYINT UNSIGNED",
        &["5", "255", "256", "-1", "'12'", "'1x'"],
    ),
    ("SMALLINT", &["-32768", "32768", "007", "1e2"]),
    ("MEDIUMINT", &["-8388608", "8388607", "8388608", "1"]),
    ("MEDIUMINT UNSIGNED", &["16777215", "16777216", "1"]),
    (
        "INT NOT NULL",
        &["1", "2", "NULL", "2147483647", "2147483648", "TRUE"],
    ),
    (
        "BIGINT UNSIGNED",
        &["18446744073709551615", "18446744073709551616", "3", "-3"],
    ),
    (
        "DECIMAL(5,2)",
        &[
            "1", "-1.5", "999.99", "1000", "1.005", "-0.00", "1e1", "'2.5'",
        ],
    ),
    (
        "DECIMAL(38,10)",
        &[
            "1.0000000001",
            "9999999999999999999999999999",
            "12345678901234567890.5",
        ],
    ),
    (
        "DOUBLE",
        &[
            "0.1",
            "-0.0",
            "1e300",
            "123456789012345678",
            "0.30000000000000004",
            "1.1e-5",
        ],
    ),
    ("FLOAT", &["0.1", "3", "16777217"]),
    (
        "CHAR(4)",
        &[
            "'ab'",
            "'ab  '",
            "''",
            "'abcde'",
            "'\u{e4}\u{f6}\u{fc}x'",
            "12",
            "\"q\"",
            "'it''s'",
        ],
    ),
    (
        "VARCHAR(4) DEFAULT 'dflt'",
        &["'ab'", "'ab  '", "'ab   '", "'abcde'", "DEFAULT", "'a\\nb'"],
    ),
    (
        "DATETIME(2)",
        &[
            "'2026-01-02 03:04:05'",
            "'2026-01-02 03:04:05.25'",
            "'2026-01-02 03:04:05.255'",
            "'2026-02-30 00:00:00'",
            "20260102030405",
            "'2026-1-2'",
            "'0000-00-00 00:00:00'",
        ],
    ),
    (
        "DATE",
        &[
            "'2024-02-29'",
            "'2023-02-29'",
            "'2024-02-29 10:00:00'",
            "NULL",
        ],
    ),
    ("VARBINARY(3)", &["'abc'", "'abcd'", "x'4142'"]),
];

/// What queries make of rows, and their order where there is a LIMIT.
const COMPUTED: [(&str, &str); 11] = [
    ("COUNT(*), SUM(c0), MAX(id)", ""),
    ("MIN(c0), AVG(id), COUNT(DISTINCT c1)", ""),
    ("DISTINCT c1", "ORDER BY 1"),
    ("c0, COUNT(*) AS n", "GROUP BY c0 ORDER BY n DESC, c0"),
    ("c2", "GROUP BY c2"),
    ("id, c0 + 1", "ORDER BY id DESC LIMIT 3"),
    ("id, c1", "ORDER BY id LIMIT 2 OFFSET 1"),
    ("*", "ORDER BY c3"),
    // What the key of the condition may hold.
    ("COUNT(id), SUM(id)", ""),
    ("COUNT(c0), MIN(c0), MAX(c0)", ""),
    ("c1, c2, COUNT(*)", "GROUP BY c1, c2"),
];
/// Random statements on a table of four such columns.
pub struct Statements {
    pub random: Random,
    /// Their places among [`COLUMNS`].
    pub columns: Vec<usize>,
}

impl Statements {
    fn value(&mut self, column: usize) -> &'static str {
        let values = COLUMNS[column].1;
        values[self.random.below(values.len() as u64) as usize]
    }

    fn id(&mut self) -> String {
        match self.random.below(12) {
            0 => "NULL".to_owned(),
            1 => "0".to_owned(),
            2 => format!("'{}'", self.random.below(40)),
            _ => self.random.below(40).to_string(),
        }
    }

    fn row(&mut self) -> String {
        let mut row = self.id();
        for column in self.columns.clone() {
            row += &format!(", {}", self.value(column));
        }
        format!("({row})")
    }

    fn condition(&mut self) -> String {
        match self.random.below(20) {
            0..10 => return format!("id = {}", self.id()),
            10..13 => return self.range(),
            13..17 => return self.ranges(),
            _ => {}
        }
        let place = self.random.below(self.columns.len() as u64) as usize;
        let column = self.columns[place];
        // DEFAULT is no value of a condition.
        let value = self.value(column).replace("DEFAULT", "'dflt'");
        format!("c{place} = {value}")
    }

    fn range(&mut self) -> String {
        let (low, high) = (self.id(), self.id());
        match self.random.below(8) {
            0..3 => format!("id BETWEEN {low} AND {high}"),
            3 => format!("id >= {low} AND {high} > id"),
            4 => format!("id IN ({low}, {high}, 7)"),
            5 => format!("id < {low}"),
            6 => format!("c0 > {low} AND c0 <= {high}"),
            _ => format!("c1 = {low} AND c2 > {high}"),
        }
    }

    /// Several ranges, which may meet or be empty.
    fn ranges(&mut self) -> String {
        let ids = [self.id(), self.id(), self.id(), self.id()];
        let [a, b, c, d] = &ids;
        let places = [1, 1, 2, 2].map(|place: usize| self.columns[place]);
        let [x, y, v, w] = places.map(|column| self.value(column).replace("DEFAULT", "'dflt'"));
        match self.random.below(10) {
            0..2 => format!("id BETWEEN {a} AND {b} OR id BETWEEN {c} AND {d}"),
            2 => format!("id = {a} OR id > {b} AND id < {c} OR (id IN ({d}, 3))"),
            3 => format!("(id < {a} OR {b} <= id)"),
            4 => format!("c0 BETWEEN {a} AND {b} OR c0 = {c} OR c0 > {d}"),
            5 => format!("id = {a} OR c0 = {b}"),
            6 => format!("(c1, c2) IN (({x}, {v}), ({y}, {w}))"),
            7 => format!("c1 = {x} AND (c2 > {a} OR c2 = {w})"),
            8 => format!("(c2, c1) = ({v}, {x}) OR c1 = {y}"),
            _ => format!("c1 = {x} AND c2 = {v} OR c1 = {y} AND c2 < {b}"),
        }
    }

    /// What a column is compared with besides a key.
    fn rest(&mut self) -> String {
        let place = self.random.below(self.columns.len() as u64) as usize;
        let value = self.value(self.columns[place]).replace("DEFAULT", "'dflt'");
        let number = self.random.below(40);
        match self.random.below(12) {
            0 => format!("c{place} = {value}"),
            1 => format!("c{place} <> {value}"),
            2 => format!("c{place} IS NOT NULL"),
            3 => format!("t.c{place} IS NULL"),
            4 => format!("c{place} LIKE 'a%'"),
            5 => format!("c{place} IN ({value}, {number})"),
            6 => format!("(c{place} < {number} OR id > {number})"),
            7 => format!("c{place} BETWEEN {number} AND {value}"),
            8 => format!("NOT c{place} <=> {value}"),
            9 => format!("COALESCE(c{place}, {number}) > {number}"),
            10 => format!("c{place} + {number}"),
            _ => format!("id < {number}"),
        }
    }

    /// What a row gets that depends on it.
    fn computed(&mut self) -> String {
        let place = self.random.below(self.columns.len() as u64) as usize;
        let number = self.random.below(90);
        let value = self.value(self.columns[place]).replace("DEFAULT", "'dflt'");
        match self.random.below(12) {
            0 => format!("id + {number}"),
            1 => format!("id * 2 - c{place}"),
            2 => format!("c{place}"),
            3 => "CONCAT('x', id)".to_owned(),
            4 => format!("CONCAT(c{place}, '{number}')"),
            5 => format!("UPPER(t.c{place})"),
            6 => format!("IFNULL(c{place}, {value})"),
            7 => format!("CASE WHEN id > {number} THEN {value} ELSE c{place} END"),
            8 => format!("LEFT(c{place}, 2)"),
            9 => format!("IF(c{place} > {value}, {number}, NULL)"),
            10 => format!("c{place} / {}", number % 3),
            _ => format!("-c{place}"),
        }
    }

    /// A change that computes over its rows, and the same for the long way.
    fn over_rows(&mut self) -> (String, String) {
        let place = self.random.below(self.columns.len() as u64) as usize;
        let other = self.random.below(self.columns.len() as u64) as usize;
        let value = match self.random.chance(0.5) {
            true => self.computed(),
            false => self.value(self.columns[place]).to_owned(),
        };
        let mut set = format!("c{place} = {value}");
        if self.random.chance(0.3) {
            set += &format!(", c{other} = {}", self.computed());
        }
        let kind = self.random.below(10);
        if kind < 2 {
            let row = self.row();
            let set = set.replace(" = id", " = VALUES(id)");
            let insert = format!("INSERT INTO t VALUES {row}");
            return (
                format!("{insert} ON DUPLICATE KEY UPDATE {set}"),
                format!("{insert} AS new ON DUPLICATE KEY UPDATE {set}"),
            );
        }
        let mut condition = self.condition();
        if condition.contains(" OR ") {
            condition = format!("({condition})");
        }
        if self.random.chance(0.7) {
            let rest = self.rest();
            condition = match self.random.chance(0.5) {
                true => format!("{condition} AND {rest}"),
                false => format!("{rest} AND {condition}"),
            };
        }
        // No more than one row, or the long way may choose another.
        let limit = match self.random.chance(0.2) {
            true => format!(" AND id = {} LIMIT {}", self.id(), self.random.below(3)),
            false => String::new(),
        };
        let change = match kind {
            2..4 => "DELETE FROM t".to_owned(),
            _ => format!("UPDATE t SET {set}"),
        };
        (
            format!("{change} WHERE {condition}{limit}"),
            format!("{change} WHERE 1 = 1 AND {condition}{limit}"),
        )
    }

    /// A statement, and the same for the long way.
    pub fn next(&mut self) -> (String, String) {
        let place = self.random.below(self.columns.len() as u64) as usize;
        if self.random.chance(0.3) {
            return self.over_rows();
        }
        match self.random.below(13) {
            0..4 => {
                let rows = match self.random.below(8) {
                    0..6 => 1,
                    _ => 1 + self.random.below(6),
                };
                let rows: Vec<String> = (0..rows).map(|_| self.row()).collect();
                let text = format!("INSERT INTO t VALUES {}", rows.join(", "));
                let long = format!("{text} AS new");
                (text, long)
            }
            4 => {
                let (id, value) = (self.id(), self.value(self.columns[place]));
                let text = format!("INSERT INTO t (c{place}, id) VALUES ({value}, {id})");
                let long = format!("{text} AS new");
                (text, long)
            }
            5..7 => {
                let value = match self.random.chance(0.3) {
                    true => format!("c{place} + {}", self.random.below(300)),
                    false => self.value(self.columns[place]).to_owned(),
                };
                let update = format!("UPDATE t SET c{place} = {value} WHERE");
                let condition = self.condition();
                let long = format!("{update} ({condition}) AND 1 = 1");
                (format!("{update} {condition}"), long)
            }
            7 => {
                let condition = self.condition();
                let long = format!("DELETE FROM t WHERE ({condition}) AND 1 = 1");
                (format!("DELETE FROM t WHERE {condition}"), long)
            }
            10.. => {
                let (list, rest) = COMPUTED[self.random.below(COMPUTED.len() as u64) as usize];
                let condition = self.condition();
                let text = format!("SELECT {list} FROM t WHERE {condition} {rest}");
                let long = format!("SELECT {list} FROM t WHERE ({condition}) AND 1 = 1 {rest}");
                (text, long)
            }
            _ => {
                let list = ["*", "id", "c0, id", "t.c0"][self.random.below(4) as usize];
                let condition = self.condition();
                let long = format!("SELECT {list} FROM t WHERE ({condition}) AND 1 = 1");
                (format!("SELECT {list} FROM t WHERE {condition}"), long)
            }
        }
    }

    /// What happens between statements on rows.
    pub fn between(&mut self) -> Option<&'static str> {
        let all = [
            "BEGIN",
            "COMMIT",
            "ROLLBACK",
            "SAVEPOINT s",
            "SET sql_mode = ''",
            "SET sql_mode = 'STRICT_TRANS_TABLES'",
            "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,STRICT_TRANS_TABLES'",
            "SET autocommit = 0",
            "SET autocommit = 1",
            "SET div_precision_increment = 1",
            "SET div_precision_increment = 4",
        ];
        let place = self.random.below(120) as usize;
        all.get(place).copied()
    }
}
