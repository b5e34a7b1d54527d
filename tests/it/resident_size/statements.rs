//! The statements of the suite: each operator over narrow and wide rows, of tables and of files.
//!
//! `{dir}` is the directory of the files. The tables `narrow` and `wide` have the rows of the files
//! of these names; statements that change rows work on copies of their own.

/// Statements that end with error 1038 at a budget in MiB: what they hold in memory is larger.
pub const OUT_OF_MEMORY: &[(&str, u64)] = &[
    // One page of 20 MiB, which is read and decompressed at once.
    ("Parquet, a large page of texts", 16),
];

/// Statements that exceed a budget by more than the program itself takes: the budget, the MiB that
/// they may exceed it by, and why.
pub const EXCESSES: &[(&str, u64, u64, &str)] = &[];

/// Name and text, in the order in which they run.
pub const STATEMENTS: &[(&str, &str)] = &[
    (
        "create narrow from Parquet",
        "CREATE TEMPORARY TABLE narrow AS SELECT * FROM '{dir}/narrow.parquet'",
    ),
    (
        "create wide from Parquet",
        "CREATE TEMPORARY TABLE wide AS SELECT * FROM '{dir}/wide.parquet'",
    ),
    // Groups.
    (
        "few groups",
        "SELECT few, COUNT(*), SUM(v), AVG(d), MIN(s), MAX(s) FROM narrow GROUP BY few",
    ),
    (
        "many groups",
        "SELECT COUNT(*), SUM(n), MAX(m) FROM \
         (SELECT k, COUNT(*) n, MAX(v) m FROM narrow GROUP BY k) g",
    ),
    (
        "a group for each row",
        "SELECT COUNT(*), SUM(n) FROM (SELECT id, s, COUNT(*) n FROM narrow GROUP BY id, s) g",
    ),
    (
        "groups of wide keys",
        "SELECT COUNT(*), SUM(n) FROM (SELECT a, b, COUNT(*) n FROM wide GROUP BY a, b) g",
    ),
    (
        "decimals in groups",
        "SELECT COUNT(*), SUM(x), MAX(y), MIN(z) FROM \
         (SELECT k, SUM(d) x, AVG(d) y, MIN(d * 3) z FROM narrow GROUP BY k) g",
    ),
    (
        "COUNT(DISTINCT) in few groups",
        "SELECT few, COUNT(DISTINCT v), COUNT(DISTINCT k) FROM narrow GROUP BY few",
    ),
    (
        "COUNT(DISTINCT) of all rows",
        "SELECT COUNT(DISTINCT v), COUNT(DISTINCT s), SUM(DISTINCT k) FROM narrow",
    ),
    (
        "COUNT(DISTINCT) of wide values",
        "SELECT COUNT(DISTINCT b), COUNT(DISTINCT a, b) FROM wide",
    ),
    (
        "GROUP_CONCAT in many groups",
        "SELECT COUNT(*), SUM(LENGTH(c)) FROM \
         (SELECT k, GROUP_CONCAT(s ORDER BY s) c FROM narrow GROUP BY k) g",
    ),
    (
        "GROUP_CONCAT in few groups",
        "SELECT few, LENGTH(GROUP_CONCAT(DISTINCT s ORDER BY s DESC)) FROM narrow GROUP BY few",
    ),
    (
        "GROUP_CONCAT of wide values",
        "SELECT COUNT(*), SUM(LENGTH(c)) FROM \
         (SELECT k, GROUP_CONCAT(a ORDER BY id) c FROM wide GROUP BY k) g",
    ),
    (
        "MIN and MAX of wide values",
        "SELECT COUNT(*), MAX(x), MIN(y) FROM \
         (SELECT k, MIN(a) x, MAX(b) y FROM wide GROUP BY k) g",
    ),
    (
        "ROLLUP",
        "SELECT COUNT(*), SUM(n) FROM \
         (SELECT few, k, COUNT(*) n FROM narrow GROUP BY few, k WITH ROLLUP) g",
    ),
    (
        "HAVING",
        "SELECT COUNT(*) FROM (SELECT k FROM narrow GROUP BY k HAVING SUM(v) > 4000000000) g",
    ),
    // Sets.
    (
        "DISTINCT",
        "SELECT COUNT(*) FROM (SELECT DISTINCT v, s FROM narrow) g",
    ),
    (
        "DISTINCT of wide rows",
        "SELECT COUNT(*) FROM (SELECT DISTINCT * FROM wide) g",
    ),
    (
        "UNION",
        "SELECT COUNT(*) FROM (SELECT v, s FROM narrow UNION SELECT v + 1, s FROM narrow) g",
    ),
    (
        "UNION of wide rows",
        "SELECT COUNT(*) FROM (SELECT a, b FROM wide UNION SELECT b, a FROM wide) g",
    ),
    (
        "UNION ALL",
        "SELECT COUNT(*), SUM(v) FROM (SELECT v FROM narrow UNION ALL SELECT d FROM narrow) g",
    ),
    (
        "INTERSECT",
        "SELECT COUNT(*) FROM \
         (SELECT k FROM narrow INTERSECT SELECT k FROM narrow WHERE few < 5) g",
    ),
    (
        "EXCEPT",
        "SELECT COUNT(*) FROM (SELECT k FROM narrow EXCEPT SELECT k FROM narrow WHERE few < 5) g",
    ),
    // Orders.
    ("ORDER BY", "SELECT id, v, s FROM narrow ORDER BY v, id"),
    (
        "ORDER BY of wide rows",
        "SELECT id, a FROM wide ORDER BY b DESC, id",
    ),
    (
        "ORDER BY with LIMIT",
        "SELECT * FROM narrow ORDER BY d DESC, id LIMIT 20",
    ),
    (
        "ORDER BY of wide rows with LIMIT",
        "SELECT * FROM wide ORDER BY a LIMIT 500",
    ),
    (
        "ORDER BY with a far LIMIT",
        "SELECT id, s FROM narrow ORDER BY s, id LIMIT 10 OFFSET 300000",
    ),
    // Joins.
    (
        "join with a small side",
        "SELECT COUNT(*), SUM(n.v) FROM narrow n \
         JOIN (SELECT id, k FROM wide WHERE few = 3) w ON n.k = w.k",
    ),
    (
        "join of narrow rows",
        "SELECT COUNT(*), SUM(a.v) FROM narrow a JOIN narrow b ON a.id = b.v % 400000",
    ),
    (
        "join of wide rows",
        "SELECT COUNT(*), MAX(x.a), MIN(y.b) FROM wide x JOIN wide y ON x.id = y.id",
    ),
    (
        "left join",
        "SELECT COUNT(*), COUNT(b.id), SUM(a.v) FROM narrow a LEFT JOIN narrow b ON a.v = b.id",
    ),
    (
        "semi-join",
        "SELECT COUNT(*) FROM narrow a WHERE a.k IN (SELECT v % 100000 FROM narrow)",
    ),
    (
        "anti-join",
        "SELECT COUNT(*) FROM narrow a WHERE NOT EXISTS \
         (SELECT * FROM narrow b WHERE b.v % 100000 = a.k AND b.few = 1)",
    ),
    (
        "join without an equality",
        "SELECT COUNT(*) FROM narrow a JOIN (SELECT id FROM wide WHERE id < 40) b ON a.k < b.id",
    ),
    (
        "join without an equality of wide rows",
        "SELECT COUNT(*), MAX(x.a) FROM wide x JOIN (SELECT * FROM wide WHERE id < 8) y \
         ON x.b < y.b",
    ),
    // Windows.
    (
        "ranks",
        "SELECT SUM(r), SUM(d), SUM(n) FROM (SELECT ROW_NUMBER() OVER w r, DENSE_RANK() OVER w d, \
         NTILE(7) OVER w n FROM narrow WINDOW w AS (PARTITION BY few ORDER BY v, id)) g",
    ),
    (
        "running sums",
        "SELECT MAX(x), SUM(y) FROM (SELECT SUM(v) OVER (ORDER BY id) x, \
         COUNT(*) OVER (PARTITION BY k ORDER BY id) y FROM narrow) g",
    ),
    (
        "sliding frames",
        "SELECT SUM(x), MAX(y) FROM (SELECT \
         SUM(v) OVER (ORDER BY id ROWS BETWEEN 5000 PRECEDING AND CURRENT ROW) x, \
         MAX(v) OVER (ORDER BY id ROWS BETWEEN 100 PRECEDING AND 100 FOLLOWING) y FROM narrow) g",
    ),
    (
        "whole partitions",
        "SELECT SUM(v - m) FROM (SELECT v, MIN(v) OVER (PARTITION BY few) m FROM narrow) g",
    ),
    (
        "whole partitions of wide rows",
        "SELECT MAX(a), MAX(m), COUNT(*) FROM (SELECT a, MAX(b) OVER () m FROM wide) g",
    ),
    (
        "LAG and LEAD",
        "SELECT SUM(x), SUM(y) FROM (SELECT v - LAG(v) OVER w x, LEAD(v, 1000) OVER w y \
         FROM narrow WINDOW w AS (ORDER BY s, id)) g",
    ),
    (
        "several windows",
        "SELECT SUM(x), SUM(y), SUM(z) FROM (SELECT RANK() OVER (ORDER BY v) x, \
         SUM(v) OVER (PARTITION BY k) y, FIRST_VALUE(v) OVER (PARTITION BY few ORDER BY id) z \
         FROM narrow) g",
    ),
    (
        "windows over wide rows",
        "SELECT COUNT(*), MAX(x), MAX(y) FROM (SELECT ROW_NUMBER() OVER (ORDER BY a) x, \
         LAG(b) OVER (PARTITION BY few ORDER BY id) y FROM wide) g",
    ),
    // Queries in queries.
    (
        "a table of WITH named twice",
        "WITH g AS (SELECT k, SUM(v) x FROM narrow GROUP BY k) \
         SELECT (SELECT COUNT(*) FROM g), (SELECT MAX(x) FROM g), COUNT(*) FROM g WHERE x > 5",
    ),
    (
        "a wide table of WITH named twice",
        "WITH g AS (SELECT DISTINCT id, a, b FROM wide) \
         SELECT (SELECT MAX(a) FROM g), (SELECT COUNT(*) FROM g WHERE b < '8')",
    ),
    (
        "recursion",
        "WITH RECURSIVE r AS (SELECT 1 n UNION ALL SELECT n + 1 FROM r WHERE n < 30000) \
         SELECT COUNT(*), SUM(n) FROM r",
    ),
    (
        "recursion with large levels",
        "WITH RECURSIVE r AS (SELECT id, 0 depth FROM narrow UNION ALL \
         SELECT id + 1, depth + 1 FROM r WHERE depth < 2) SELECT COUNT(*), SUM(id) FROM r",
    ),
    (
        "derived tables",
        "SELECT COUNT(*), SUM(x) FROM (SELECT few, MAX(y) x FROM \
         (SELECT few, k, SUM(v) y FROM narrow GROUP BY few, k) g GROUP BY few) h",
    ),
    (
        "a subquery for each group",
        "SELECT few, (SELECT SUM(w.n1) FROM wide w WHERE w.few = g.few) FROM \
         (SELECT DISTINCT few FROM narrow) g",
    ),
    // Texts.
    (
        "text functions",
        "SELECT MAX(REPLACE(UPPER(a), 'F', 'xyz')), MIN(REVERSE(b)), \
         SUM(LENGTH(CONCAT(a, b, a, b))) FROM wide",
    ),
    (
        "texts that grow",
        "SELECT SUM(LENGTH(REPEAT(a, 50))), COUNT(DISTINCT LEFT(REPEAT(b, 9), 4000)) FROM wide",
    ),
    (
        "hashes",
        "SELECT COUNT(DISTINCT SHA2(a, 256)), MAX(HEX(b)), MIN(MD5(b)) FROM wide",
    ),
    (
        "patterns",
        "SELECT COUNT(*), SUM(b LIKE '%00%'), SUM(REGEXP_LIKE(a, 'a.*b$')) FROM wide \
         WHERE a LIKE '%ff%'",
    ),
    (
        "long texts",
        "CREATE TEMPORARY TABLE long_texts AS SELECT * FROM '{dir}/long.parquet'",
    ),
    (
        "groups of long texts",
        "SELECT COUNT(*) FROM (SELECT DISTINCT t, id FROM long_texts) g",
    ),
    (
        "an order of long texts",
        "SELECT id, LENGTH(t) FROM long_texts ORDER BY t DESC, id",
    ),
    (
        "blobs",
        "CREATE TEMPORARY TABLE blobs AS SELECT id, CAST(CONCAT(t, t) AS BINARY) c FROM long_texts",
    ),
    (
        "blobs as hex",
        "SELECT SUM(LENGTH(HEX(c))), MAX(MD5(c)) FROM blobs",
    ),
    ("long texts to the client", "SELECT id, t FROM long_texts"),
    // Files.
    (
        "Parquet, narrow",
        "SELECT COUNT(*), SUM(v), MAX(s) FROM '{dir}/narrow.parquet'",
    ),
    (
        "Parquet, wide",
        "SELECT COUNT(*), MAX(a), MAX(b), SUM(n1) FROM '{dir}/wide.parquet'",
    ),
    (
        "Parquet, one column of wide rows",
        "SELECT SUM(n2) FROM '{dir}/wide.parquet'",
    ),
    (
        "Parquet, long",
        "SELECT MAX(t), COUNT(*) FROM '{dir}/long.parquet'",
    ),
    (
        "Parquet, wide groups",
        "SELECT COUNT(*) FROM (SELECT DISTINCT a, b FROM '{dir}/wide.parquet') g",
    ),
    (
        "Parquet, an order",
        "SELECT id, a FROM '{dir}/wide.parquet' ORDER BY b, id",
    ),
    (
        "Parquet, large pages",
        "SELECT COUNT(*), SUM(n1), SUM(n2) FROM '{dir}/one_page.parquet'",
    ),
    (
        "Parquet, a large page of texts",
        "SELECT COUNT(*), MAX(a) FROM '{dir}/one_page.parquet'",
    ),
    (
        "CSV, narrow",
        "SELECT COUNT(*), SUM(v), MAX(s) FROM '{dir}/narrow.csv'",
    ),
    (
        "CSV, wide",
        "SELECT COUNT(*), MAX(a), MAX(b), SUM(n1) FROM '{dir}/wide.csv'",
    ),
    ("CSV, long", "SELECT COUNT(*), MAX(t) FROM '{dir}/long.csv'"),
    (
        "CSV, groups",
        "SELECT COUNT(*) FROM (SELECT DISTINCT id, s FROM '{dir}/narrow.csv') g",
    ),
    (
        "JSON, narrow",
        "SELECT COUNT(*), SUM(v), MAX(s) FROM '{dir}/narrow.json'",
    ),
    (
        "JSON, wide",
        "SELECT COUNT(*), MAX(a), MAX(b), SUM(n1) FROM '{dir}/wide.json'",
    ),
    (
        "JSON, long",
        "SELECT COUNT(*), MAX(t) FROM '{dir}/long.json'",
    ),
    (
        "a join of files",
        "SELECT COUNT(*), SUM(c.v) FROM '{dir}/narrow.csv' c \
         JOIN (SELECT k FROM '{dir}/wide.parquet' WHERE few = 1) p ON c.k = p.k",
    ),
    // Changes.
    (
        "CREATE TABLE ... SELECT",
        "CREATE TEMPORARY TABLE changed AS SELECT id, k, v, s, few FROM narrow",
    ),
    (
        "INSERT ... SELECT",
        "INSERT INTO changed SELECT id + 400000, k, v, s, few FROM narrow WHERE few < 5",
    ),
    (
        "UPDATE of all rows",
        "UPDATE changed SET v = v + 1, s = CONCAT(s, 'x')",
    ),
    (
        "ALTER TABLE ... ADD KEY",
        "ALTER TABLE changed ADD PRIMARY KEY (id), ADD KEY (k, s(12))",
    ),
    (
        "join by a key",
        "SELECT COUNT(*), SUM(c.v) FROM (SELECT k FROM wide WHERE id < 300) w \
         JOIN changed c ON c.k = w.k",
    ),
    (
        "UPDATE by a key",
        "UPDATE changed SET v = 0, k = k + 1 WHERE id BETWEEN 1000 AND 60000",
    ),
    (
        "INSERT ... ON DUPLICATE KEY UPDATE",
        "INSERT INTO changed SELECT id, k, v, s, few FROM narrow WHERE id < 50000 \
         ON DUPLICATE KEY UPDATE v = changed.v + 1",
    ),
    (
        "DELETE of many rows",
        "DELETE FROM changed WHERE few IN (1, 3, 5, 7)",
    ),
    (
        "ALTER TABLE ... ADD COLUMN",
        "ALTER TABLE changed ADD COLUMN t VARCHAR(50) DEFAULT 'none'",
    ),
    (
        "CREATE TABLE LIKE",
        "CREATE TEMPORARY TABLE loaded LIKE narrow",
    ),
    (
        "LOAD DATA",
        "LOAD DATA INFILE '{dir}/narrow.csv' INTO TABLE loaded FIELDS TERMINATED BY ',' \
         IGNORE 1 LINES",
    ),
    (
        "UPDATE of wide rows",
        "UPDATE wide SET b = a, a = REVERSE(b) WHERE few < 6",
    ),
    ("DELETE of wide rows", "DELETE FROM wide WHERE few > 6"),
    (
        "INTO OUTFILE",
        "SELECT * FROM narrow INTO OUTFILE '{dir}/out-{memory}.txt'",
    ),
    (
        "INTO OUTFILE in order",
        "SELECT * FROM wide ORDER BY a INTO OUTFILE '{dir}/wide-{memory}.txt'",
    ),
    (
        "INTO OUTFILE as Parquet",
        "SELECT * FROM narrow INTO OUTFILE '{dir}/out-{memory}.parquet'",
    ),
    (
        "INTO OUTFILE as Parquet in order",
        "SELECT * FROM wide ORDER BY a INTO OUTFILE '{dir}/wide-{memory}.parquet'",
    ),
    (
        "INTO OUTFILE as Parquet, long texts",
        "SELECT id, t FROM long_texts INTO OUTFILE '{dir}/long-{memory}.parquet'",
    ),
    (
        "INTO OUTFILE as CSV, compressed",
        "SELECT * FROM narrow INTO OUTFILE '{dir}/out-{memory}.csv.zst'",
    ),
    (
        "INTO OUTFILE as JSON",
        "SELECT * FROM wide INTO OUTFILE '{dir}/wide-{memory}.json'",
    ),
    (
        "Parquet that was written",
        "SELECT COUNT(*), SUM(v), MAX(d), MAX(s) FROM '{dir}/out-{memory}.parquet'",
    ),
    (
        "wide Parquet that was written",
        "SELECT COUNT(*), SUM(id), MAX(a), MIN(b) FROM '{dir}/wide-{memory}.parquet'",
    ),
    (
        "CSV that was written",
        "SELECT COUNT(*), SUM(v), MAX(s) FROM '{dir}/out-{memory}.csv.zst'",
    ),
    (
        "what is left",
        "SELECT COUNT(*), SUM(v), MAX(s) FROM changed",
    ),
    (
        "what was loaded",
        "SELECT COUNT(*), SUM(v), MAX(s) FROM loaded",
    ),
];

/// Statements for the largest budget alone: they hold more than it.
pub const LARGE: &[(&str, &str)] = &[
    (
        "many wide groups",
        "SELECT COUNT(*), SUM(n) FROM (SELECT w.a, w.b, d.n, COUNT(*) c FROM wide w, \
         (SELECT 1 n UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5) d \
         GROUP BY w.a, w.b, d.n) g",
    ),
    (
        "a large order of wide rows",
        "SELECT MAX(r), COUNT(*) FROM (SELECT ROW_NUMBER() OVER (ORDER BY w.a, d.n) r, w.b \
         FROM wide w, (SELECT 1 n UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4) d) g",
    ),
];
