//! Statements from a grammar that is MySQL's and more: every construct of the other systems that
//! the parser below knows may stand where it would stand there.
//!
//! Nesting is shallow: what takes long here is planned for long, and that is another test's.

use mayfly_testkit::Random;

/// Words that mutations insert.
pub(super) const WORDS: [&[u8]; 64] = [
    b" SELECT ",
    b" FROM ",
    b" WHERE ",
    b" GROUP BY ",
    b" HAVING ",
    b" ORDER BY ",
    b" LIMIT 1 ",
    b" UNION ALL ",
    b" EXCEPT ",
    b" INTERSECT ",
    b" JOIN ",
    b" LEFT JOIN ",
    b" ON ",
    b" USING (a) ",
    b" NATURAL ",
    b" LATERAL ",
    b" WITH ROLLUP ",
    b" OVER () ",
    b" OVER (ORDER BY a) ",
    b" PARTITION BY ",
    b" DISTINCT ",
    b" ALL ",
    b" ANY ",
    b" EXISTS ",
    b" IN (1, NULL) ",
    b" BETWEEN 1 AND 2 ",
    b" LIKE ",
    b" REGEXP ",
    b" IS NULL ",
    b" IS NOT TRUE ",
    b" NOT ",
    b" AND ",
    b" XOR ",
    b" CASE WHEN a THEN 1 END ",
    b" CAST(a AS CHAR) ",
    b" CONVERT(a, DATE) ",
    b" INTERVAL 1 DAY ",
    b" COUNT(*) ",
    b" SUM(a) ",
    b" GROUP_CONCAT(a) ",
    b" ROW_NUMBER() ",
    b" GROUPING(a) ",
    b" ROW(1, 2) ",
    b" (SELECT 1) ",
    b" VALUES ",
    b" TABLE ",
    b" NULL ",
    b" DEFAULT ",
    b" @v := 1 ",
    b" @@sql_mode ",
    b" QUALIFY ",
    b" TABLESAMPLE ",
    b" FETCH FIRST ",
    b" NULLS LAST ",
    b" FILTER (WHERE 1) ",
    b" DISTINCT FROM ",
    b"::int ",
    b" ~ ",
    b"[1]",
    b" -> ",
    b" := ",
    b" /*! 1 */ ",
    b" AS q ",
    b" 1e400 ",
];

const COLUMNS: [&str; 14] = [
    "a", "b", "c", "d", "e", "id", "k", "v", "t.a", "u.b", "w.k", "q.a", "`a`", "nowhere",
];
const LITERALS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "NULL",
    "TRUE",
    "'a'",
    "''",
    "'2020-01-31'",
    "1.5",
    "1e3",
    "1e-400",
    "9223372036854775807",
    "18446744073709551615",
    "0x41",
    "b'101'",
    "x'41'",
    "_utf8mb4'x'",
    "N'n'",
    "DATE '2020-02-29'",
    "TIME '10:11:12'",
    "TIMESTAMP '2020-02-29 10:11:12'",
    "\"d\"",
    "@v",
    "@@max_heap_table_size",
];
const OPERATORS: [&str; 34] = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "DIV",
    "MOD",
    "=",
    "<>",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "<=>",
    "AND",
    "OR",
    "XOR",
    "&&",
    "||",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "LIKE",
    "REGEXP",
    "NOT LIKE",
    "RLIKE",
    "SOUNDS LIKE",
    "~",
    "==",
    "::",
    "->",
];
const FUNCTIONS: [&str; 40] = [
    "ABS",
    "IF",
    "IFNULL",
    "COALESCE",
    "NULLIF",
    "GREATEST",
    "CONCAT",
    "CONCAT_WS",
    "LENGTH",
    "SUBSTRING",
    "REPLACE",
    "LOCATE",
    "FIELD",
    "ELT",
    "MAKE_SET",
    "HEX",
    "UNHEX",
    "MD5",
    "ROUND",
    "TRUNCATE",
    "POW",
    "LOG",
    "MOD",
    "RAND",
    "DATE_FORMAT",
    "STR_TO_DATE",
    "DATEDIFF",
    "TIMESTAMPDIFF",
    "LAST_DAY",
    "MAKEDATE",
    "SEC_TO_TIME",
    "FROM_UNIXTIME",
    "INET_ATON",
    "UUID",
    "FORMAT",
    "LPAD",
    "REPEAT",
    "CONV",
    "REGEXP_REPLACE",
    "CHAR",
];
const AGGREGATES: [&str; 12] = [
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
    "STD",
    "VARIANCE",
    "BIT_AND",
    "BIT_XOR",
    "GROUP_CONCAT",
    "ANY_VALUE",
    "GROUPING",
];
const WINDOWS: [&str; 10] = [
    "ROW_NUMBER()",
    "RANK()",
    "DENSE_RANK()",
    "NTILE(2)",
    "LAG(a)",
    "LEAD(a, 2, 0)",
    "FIRST_VALUE(a)",
    "NTH_VALUE(a, 2)",
    "PERCENT_RANK()",
    "CUME_DIST()",
];
const TYPES: [&str; 18] = [
    "CHAR",
    "CHAR(2)",
    "BINARY(3)",
    "SIGNED",
    "UNSIGNED",
    "DECIMAL(10,2)",
    "DECIMAL",
    "DOUBLE",
    "FLOAT",
    "DATE",
    "DATETIME(3)",
    "TIME",
    "YEAR",
    "JSON",
    "INT",
    "TEXT",
    "BIGINT",
    "INT[]",
];
/// Clauses that only other systems have, behind a query.
const ELSEWHERE: [&str; 12] = [
    "QUALIFY a > 1",
    "FETCH FIRST 1 ROW ONLY",
    "LIMIT 1 BY a",
    "FOR JSON AUTO",
    "SETTINGS x = 1",
    "FORMAT JSON",
    "PREWHERE a",
    "CLUSTER BY a",
    "CONNECT BY PRIOR a = b",
    "OFFSET 1 ROWS",
    "|> WHERE a",
    "PIVOT (SUM(a) FOR b IN (1))",
];
const JOINS: [&str; 14] = [
    ",",
    "JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "CROSS JOIN",
    "STRAIGHT_JOIN",
    "NATURAL JOIN",
    "NATURAL LEFT JOIN",
    "INNER JOIN",
    "FULL JOIN",
    "SEMI JOIN",
    "CROSS APPLY",
    "ASOF JOIN",
    "ANTI JOIN",
];

/// Depth of expressions, and of queries in queries.
const DEPTH: usize = 3;

/// Statements from random numbers.
pub(super) struct Statements<'a> {
    random: &'a mut Random,
}

impl Statements<'_> {
    pub(super) fn new(random: &mut Random) -> Statements<'_> {
        Statements { random }
    }

    fn pick<'a>(&mut self, among: &[&'a str]) -> &'a str {
        among[self.random.below(among.len() as u64) as usize]
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    /// A few statements.
    pub(super) fn script(&mut self) -> String {
        let statements: Vec<String> = (0..=self.random.below(3))
            .map(|_| self.statement())
            .collect();
        statements.join(";\n")
    }

    fn statement(&mut self) -> String {
        match self.random.below(16) {
            0 => {
                let (column, value) = (self.pick(&COLUMNS), self.expression(DEPTH));
                let condition = self.expression(2);
                format!("UPDATE t SET {column} = {value} WHERE {condition}")
            }
            1 => {
                let condition = self.expression(DEPTH);
                format!("DELETE FROM u WHERE {condition}")
            }
            2 => {
                let query = self.query(2);
                format!("INSERT IGNORE INTO w {query}")
            }
            3 => {
                let values: Vec<String> = (0..3).map(|_| self.expression(2)).collect();
                format!("REPLACE INTO w VALUES ({})", values.join(", "))
            }
            4 => {
                let query = self.query(2);
                format!("CREATE TEMPORARY TABLE made AS {query}")
            }
            5 => {
                let value = self.expression(2);
                format!("SET @v = {value}")
            }
            6 => {
                let value = self.expression(DEPTH);
                format!("DO {value}")
            }
            7 => {
                let query = self.query(2);
                format!("EXPLAIN {query}")
            }
            8 => {
                let (of, value) = (self.pick(&TYPES), self.expression(2));
                format!("ALTER TABLE t ADD COLUMN n {of} DEFAULT ({value})")
            }
            _ => self.query(2),
        }
    }

    fn query(&mut self, depth: usize) -> String {
        let mut query = match self.random.below(12) {
            0 if depth > 0 => {
                let (left, right) = (self.query(depth - 1), self.query(depth - 1));
                let with = self.pick(&["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "MINUS"]);
                format!("({left}) {with} ({right})")
            }
            1 if depth > 0 => {
                let (inner, outer) = (self.query(depth - 1), self.select(depth - 1));
                let recursive = self.pick(&["", "RECURSIVE "]);
                format!("WITH {recursive}q (a, b) AS ({inner}) {outer}")
            }
            2 => {
                let (one, two) = (self.expression(1), self.expression(1));
                format!("VALUES ROW({one}, {two})")
            }
            3 => "TABLE t".to_owned(),
            _ => self.select(depth),
        };
        if self.chance(3) {
            let key = self.expression(2);
            let direction = self.pick(&["", " DESC", " NULLS LAST"]);
            query.push_str(&format!(" ORDER BY {key}{direction}"));
        }
        if self.chance(4) {
            query.push_str(self.pick(&[" LIMIT 2", " LIMIT 1, 2", " LIMIT 3 OFFSET 1"]));
        }
        if self.chance(12) {
            query.push(' ');
            query.push_str(self.pick(&ELSEWHERE));
        }
        query
    }

    fn select(&mut self, depth: usize) -> String {
        let distinct = match self.random.below(12) {
            0 | 1 => "DISTINCT ",
            2 => "DISTINCT ON (a) ",
            3 => "SQL_CALC_FOUND_ROWS ",
            _ => "",
        };
        let mut items: Vec<String> = (0..=self.random.below(3)).map(|_| self.item()).collect();
        if self.chance(6) {
            items[0] = self.pick(&["*", "t.*", "* EXCEPT (a)"]).to_owned();
        }
        let mut select = format!("SELECT {distinct}{}", items.join(", "));
        if self.chance(8) {
            return select;
        }
        select.push_str(&format!(" FROM {}", self.table(depth)));
        for _ in 0..self.random.below(3) {
            let (join, table) = (self.pick(&JOINS), self.table(depth));
            select.push_str(&format!(" {join} {table}"));
            if join.ends_with("JOIN") && !join.starts_with("NATURAL") && !self.chance(6) {
                match self.random.below(4) {
                    0 => select.push_str(" USING (a)"),
                    _ => select.push_str(&format!(" ON {}", self.expression(2))),
                }
            }
        }
        if self.chance(2) {
            select.push_str(&format!(" WHERE {}", self.expression(DEPTH)));
        }
        if self.chance(3) {
            let (one, two) = (self.expression(1), self.expression(1));
            let with = self.pick(&["", "", " WITH ROLLUP", " WITH CUBE"]);
            select.push_str(&format!(" GROUP BY {one}, {two}{with}"));
            if self.chance(2) {
                select.push_str(&format!(" HAVING {}", self.expression(2)));
            }
        }
        if self.chance(10) {
            select.push_str(" WINDOW x AS (PARTITION BY a ORDER BY b)");
        }
        select
    }

    fn item(&mut self) -> String {
        let value = match self.random.below(6) {
            0 => self.aggregate(),
            1 => self.window(),
            _ => self.expression(DEPTH),
        };
        match self.random.below(4) {
            0 => format!(
                "{value} AS {}",
                self.pick(&["a", "n", "`a b`", "'s'", "rank"])
            ),
            _ => value,
        }
    }

    fn table(&mut self, depth: usize) -> String {
        let table = match self.random.below(12) {
            0 if depth > 0 => {
                let query = self.query(depth - 1);
                let columns = self.pick(&["", "", " (a, b)", " (a)"]);
                let lateral = self.pick(&["", "", "LATERAL "]);
                return format!("{lateral}({query}) AS q{columns}");
            }
            1 => self.pick(&[
                "UNNEST(a)",
                "f(1)",
                "TABLE(a)",
                "(t)",
                "dual",
                "t PARTITION (p)",
            ]),
            2 => self.pick(&["(t JOIN u)", "t AS q (a, b)", "missing", "test.t", "a.b.c"]),
            _ => self.pick(&["t", "u", "w"]),
        };
        match self.random.below(8) {
            0 => format!("{table} AS q"),
            1 => format!(
                "{table} {}",
                self.pick(&["TABLESAMPLE (10)", "FOR JOIN", "USE KEY (k)"])
            ),
            _ => table.to_owned(),
        }
    }

    fn aggregate(&mut self) -> String {
        let (function, argument) = (self.pick(&AGGREGATES), self.expression(2));
        let distinct = self.pick(&["", "", "DISTINCT ", "ALL "]);
        let behind = self.pick(&["", "", "", " ORDER BY a", " SEPARATOR '-'", " LIMIT 1"]);
        let filter = self.pick(&["", "", "", "", " FILTER (WHERE a > 1)"]);
        match self.random.below(6) {
            0 => "COUNT(*)".to_owned(),
            _ => format!("{function}({distinct}{argument}{behind}){filter}"),
        }
    }

    fn window(&mut self) -> String {
        let aggregate = self.aggregate();
        let functions = [&WINDOWS[..], &[aggregate.as_str()]].concat();
        let function = self.pick(&functions).to_owned();
        let (part, key) = (self.expression(1), self.expression(1));
        let frame = self.pick(&[
            "",
            "",
            " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
            " RANGE BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
            " GROUPS 1 PRECEDING",
        ]);
        match self.random.below(4) {
            0 => format!("{function} OVER ()"),
            1 => format!("{function} OVER x"),
            2 => format!("{function} OVER (ORDER BY {key}{frame})"),
            _ => format!("{function} OVER (PARTITION BY {part} ORDER BY {key}{frame})"),
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 || self.chance(4) {
            return match self.random.below(3) {
                0 => self.pick(&LITERALS).to_owned(),
                _ => self.pick(&COLUMNS).to_owned(),
            };
        }
        let below = depth - 1;
        match self.random.below(20) {
            0..6 => {
                let (left, right) = (self.expression(below), self.expression(below));
                let operator = self.pick(&OPERATORS);
                format!("{left} {operator} {right}")
            }
            6..9 => {
                let count = self.random.below(4);
                let arguments: Vec<String> = (0..count).map(|_| self.expression(below)).collect();
                format!("{}({})", self.pick(&FUNCTIONS), arguments.join(", "))
            }
            9 => {
                let (value, of) = (self.expression(below), self.pick(&TYPES));
                format!("CAST({value} AS {of})")
            }
            10 => {
                let parts: Vec<String> = (0..3).map(|_| self.expression(below)).collect();
                format!(
                    "CASE WHEN {} THEN {} ELSE {} END",
                    parts[0], parts[1], parts[2]
                )
            }
            11 => {
                let (value, one) = (self.expression(below), self.expression(below));
                let not = self.pick(&["", "NOT "]);
                format!("{value} {not}IN ({one}, NULL, 'a')")
            }
            12 if depth > 1 => {
                let (value, query) = (self.expression(below), self.query(0));
                let test = self.pick(&["IN", "NOT IN", "= ANY", "> ALL", "<> SOME"]);
                format!("{value} {test} ({query})")
            }
            13 if depth > 1 => {
                let query = self.query(0);
                let exists = self.pick(&["", "EXISTS ", "NOT EXISTS "]);
                format!("{exists}({query})")
            }
            14 => {
                let value = self.expression(below);
                let test = self.pick(&[
                    "IS NULL",
                    "IS NOT TRUE",
                    "IS UNKNOWN",
                    "IS DISTINCT FROM 1",
                    "NOT NULL",
                    "BETWEEN 1 AND a",
                    "COLLATE utf8mb4_bin",
                    "AT TIME ZONE 'UTC'",
                    "[1]",
                    "MEMBER OF ('[1]')",
                ]);
                format!("{value} {test}")
            }
            15 => {
                let value = self.expression(below);
                let unit = self.pick(&["DAY", "MONTH", "MINUTE_SECOND", "EPOCH"]);
                match self.random.below(3) {
                    0 => format!("EXTRACT({unit} FROM {value})"),
                    1 => format!("{value} + INTERVAL 1 {unit}"),
                    _ => format!("DATE_ADD({value}, INTERVAL '1:1' {unit})"),
                }
            }
            16 => {
                let (one, two) = (self.expression(below), self.expression(below));
                format!("({one}, {two}) = (1, {one})")
            }
            17 => {
                let value = self.expression(below);
                format!(
                    "{} {value}",
                    self.pick(&["NOT", "-", "!", "~", "+", "BINARY"])
                )
            }
            18 => self.aggregate(),
            _ => {
                let value = self.expression(below);
                format!("({value})")
            }
        }
    }
}
