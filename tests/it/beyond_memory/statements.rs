//! Random statements over two tables larger than the least memory: joins of every type, chains,
//! windows, and WITH tables that are named twice.
//!
//! Each answers with a few sums over all rows, payload included: a row that is lost, doubled or
//! paired with another changes one.

use mayfly_testkit::Random;

/// The tables, with their rows: some 3 MB the one, 2 MB the other, beside 4 MiB of memory.
const TABLES: [(&str, u64); 2] = [("l", 16_000), ("r", 9_000)];
const ROWS_AT_A_TIME: u64 = 500;
/// This part of the rows shares a few keys; the others have one key for a row or two.
const SKEWED: f64 = 0.02;
const SKEWED_KEYS: u64 = 4;

/// Statements from a seed.
pub struct Statements {
    random: Random,
}

impl Statements {
    pub fn new(seed: u64) -> Statements {
        Statements {
            random: Random::new(seed),
        }
    }

    /// The statements that make and fill the tables.
    pub fn tables(&mut self) -> Vec<String> {
        let mut script = Vec::new();
        for (table, rows) in TABLES {
            script.push(format!(
                "CREATE TEMPORARY TABLE {table} (id INT NOT NULL, k INT, j INT NOT NULL, n INT, \
                 d DECIMAL(10,2), p VARCHAR(300))"
            ));
            for first in (0..rows).step_by(ROWS_AT_A_TIME as usize) {
                let values = (first..first + ROWS_AT_A_TIME).map(|id| self.row(id, rows));
                let values: Vec<String> = values.collect();
                script.push(format!("INSERT INTO {table} VALUES {}", values.join(", ")));
            }
        }
        script
    }

    fn row(&mut self, id: u64, rows: u64) -> String {
        let key = match self.random.chance(SKEWED) {
            true => self.random.below(SKEWED_KEYS),
            false => SKEWED_KEYS + self.random.below(rows),
        };
        let key = self.or_null(0.02, key.to_string());
        let group = self.random.below(30);
        let number = self.random.below(1_000).to_string();
        let number = self.or_null(0.1, number);
        let cents = self.random.below(1_000_000);
        let (decimal, letter) = (cents as f64 / 100.0, self.random.below(26) as u8 + b'a');
        let text = char::from(letter).to_string();
        let text = text.repeat(self.random.below(250) as usize);
        let text = self.or_null(0.05, format!("'{id}{text}'"));
        format!("({id}, {key}, {group}, {number}, {decimal:.2}, {text})")
    }

    fn or_null(&mut self, probability: f64, value: String) -> String {
        match self.random.chance(probability) {
            true => "NULL".to_owned(),
            false => value,
        }
    }

    /// One query.
    pub fn query(&mut self) -> String {
        match self.random.below(10) {
            0..=3 => self.join(),
            4 => self.chain(),
            5 => self.semi_join(),
            6 | 7 => self.window(),
            _ => self.with(),
        }
    }

    fn join(&mut self) -> String {
        let (left, right) = (self.table(), self.table());
        let join = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]);
        let equal = self.pick(&["x.k = y.k", "x.k <=> y.k AND x.j = y.j", "x.id = y.k"]);
        let residual = self.pick(&["", "", " AND x.n < y.n", " AND (x.j + y.j) % 3 = 0"]);
        let condition = self.condition();
        let payload = "COUNT(*), COUNT(y.id), SUM(x.n), SUM(y.d), SUM(CRC32(x.p)), \
                       SUM(CRC32(CONCAT_WS('|', x.id, y.p)))";
        let from = format!("{left} x {join} {right} y ON {equal}{residual} WHERE {condition}");
        match self.random.chance(0.3) {
            true => format!("SELECT x.j, {payload} FROM {from} GROUP BY x.j"),
            false => format!("SELECT {payload} FROM {from}"),
        }
    }

    fn chain(&mut self) -> String {
        let (first, second) = (
            self.pick(&["JOIN", "LEFT JOIN"]),
            self.pick(&["JOIN", "LEFT JOIN"]),
        );
        let condition = self.condition();
        format!(
            "SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', x.p, y.id, z.p))) FROM l x \
             {first} r y ON x.id = y.k {second} l z ON y.id = z.k WHERE {condition}"
        )
    }

    fn semi_join(&mut self) -> String {
        let (outer, inner) = (self.table(), self.table());
        let condition = self.condition();
        let not = self.pick(&["", "NOT "]);
        let asked = match self.random.below(3) {
            0 => format!("x.k {not}IN (SELECT y.id FROM {inner} y WHERE y.n > 300)"),
            1 => format!("x.id {not}IN (SELECT y.k FROM {inner} y WHERE y.p LIKE '%a%')"),
            _ => format!("{not}EXISTS (SELECT 1 FROM {inner} y WHERE y.k = x.k AND y.p < x.p)"),
        };
        format!(
            "SELECT COUNT(*), SUM(x.d), SUM(CRC32(x.p)) FROM {outer} x \
             WHERE {condition} AND {asked}"
        )
    }

    fn window(&mut self) -> String {
        let call = self.pick(&[
            "ROW_NUMBER()",
            "NTILE(7)",
            "LAG(x.n, 2)",
            "LEAD(x.p)",
            "FIRST_VALUE(x.p)",
            "SUM(x.n)",
            "SUM(x.d)",
            "COUNT(x.n)",
            "MIN(x.n)",
            "MAX(x.d)",
        ]);
        let parts = self.pick(&[
            "",
            "PARTITION BY x.k ",
            "PARTITION BY x.j ",
            "PARTITION BY x.n ",
        ]);
        let order = self.pick(&["x.k, x.id", "x.d DESC, x.id", "x.p, x.id", "x.id"]);
        let takes_frame = ["SUM", "COUNT", "MIN", "MAX"];
        let frame = match takes_frame.iter().any(|name| call.starts_with(name)) {
            true => self.pick(&[
                "",
                " ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING",
                " ROWS UNBOUNDED PRECEDING",
                " ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            ]),
            false => "",
        };
        let (table, condition) = (self.table(), self.condition());
        format!(
            "SELECT COUNT(*), COUNT(q.w), SUM(CRC32(CONCAT_WS('|', q.id, q.w, q.p))) \
             FROM (SELECT x.id, x.p, {call} OVER ({parts}ORDER BY {order}{frame}) AS w \
             FROM {table} x WHERE {condition}) q"
        )
    }

    fn with(&mut self) -> String {
        let (table, other) = (self.table(), self.table());
        let condition = self.condition();
        match self.random.below(3) {
            0 => format!(
                "WITH c AS (SELECT k, COUNT(*) AS m, MAX(p) AS p, SUM(n) AS s FROM {table} x \
                 WHERE {condition} GROUP BY k) SELECT COUNT(*), SUM(a.m * b.m), \
                 SUM(CRC32(CONCAT_WS('|', a.p, b.s))) FROM c a LEFT JOIN c b ON a.k = b.k + 1"
            ),
            1 => format!(
                "WITH c AS (SELECT DISTINCT k, j, p FROM {table} x WHERE {condition}) \
                 SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', c.p, y.p))) FROM c \
                 JOIN {other} y ON c.k = y.k AND c.j < y.j \
                 WHERE y.id IN (SELECT k FROM c)"
            ),
            _ => format!(
                "WITH c AS (SELECT k, p FROM {table} x WHERE {condition} UNION SELECT id, p \
                 FROM {other}) SELECT COUNT(*), SUM(CRC32(CONCAT_WS('|', a.k, b.p))) \
                 FROM c a JOIN c b ON a.k = b.k"
            ),
        }
    }

    /// Most rows, or nearly all.
    fn condition(&mut self) -> &'static str {
        self.pick(&["x.j <> 7", "x.d > 500", "x.n IS NOT NULL", "x.id % 10 <> 3"])
    }

    fn table(&mut self) -> &'static str {
        self.pick(&TABLES).0
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.random.below(among.len() as u64) as usize]
    }
}
