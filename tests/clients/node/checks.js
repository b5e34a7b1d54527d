// The checks of tests/clients with mysql2.
//
// Each check connects anew, prints one line, and has its name and meaning in common with the other
// clients; tests/clients/README.md says what each of them asks for.

"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const mysql = require("mysql2/promise");

const env = process.env;
const onMariaDB = env.CHECK_SERVER === "mariadb";
const TYPES = readTypes();
const NAMES = TYPES.map((column) => column.column).join(", ");

function readTypes() {
  const [head, ...lines] = fs.readFileSync(env.CHECK_TYPES, "utf8").trimEnd().split("\n");
  const names = head.split("\t");
  return lines.map((line) => {
    const fields = line.split("\t");
    return Object.fromEntries(names.map((name, at) => [name, fields[at]]));
  });
}

const opened = [];

/** A connection that is closed when its check has ended. */
async function open(options = {}) {
  const connection = await mysql.createConnection(account(options));
  opened.push(connection);
  return connection;
}

function account(options) {
  const address = options.socketPath ? {} : { host: env.CHECK_HOST, port: Number(env.CHECK_PORT) };
  return {
    ...address,
    user: env.CHECK_USER,
    password: env.CHECK_PASSWORD,
    database: env.CHECK_DATABASE,
    timezone: "Z",
    // Nothing is lost: dates stay texts, and so do numbers that a double cannot hold.
    dateStrings: true,
    supportBigNumbers: true,
    rowsAsArray: true,
    ...options,
  };
}

async function refused(number, act, state) {
  await assert.rejects(act, (error) => {
    assert.equal(error.errno, number, error.message);
    if (state) assert.equal(error.sqlState, state);
    return true;
  });
}

async function connect() {
  for (let round = 0; round < 2; round++) {
    const connection = await open();
    const [[row]] = await connection.query("SELECT 1, DATABASE(), CURRENT_USER(), CONNECTION_ID()");
    assert.deepEqual([row[0], row[1]], [1, env.CHECK_DATABASE]);
    assert.equal(row[2].split("@")[0], env.CHECK_USER);
    assert.equal(Number(row[3]), connection.threadId);
    await connection.ping();
  }
  await refused(1045, () => open({ password: "wrong" }));
  await refused(1045, () => open({ password: "" }));
  await refused(1049, () => open({ database: "nowhere" }));
}

async function native_password() {
  const connection = await open({ user: env.CHECK_NATIVE_USER });
  const [[[user]]] = await connection.query("SELECT CURRENT_USER()");
  assert.equal(user.split("@")[0], env.CHECK_NATIVE_USER);
  await refused(1045, () => open({ user: env.CHECK_NATIVE_USER, password: "wrong" }));
}

async function tls() {
  const ca = fs.readFileSync(env.CHECK_CA);
  const connection = await open({ host: "localhost", ssl: { ca, verifyIdentity: true } });
  const [[cipher]] = await connection.query("SHOW STATUS LIKE 'Ssl_cipher'");
  assert.notEqual(cipher[1], "");
}

async function socket() {
  const connection = await open({ socketPath: env.CHECK_SOCKET });
  const [rows] = await connection.query("SELECT 1");
  assert.deepEqual(rows, [[1]]);
}

/** Makes a table with a column of each type, with rows of lowest values, highest, and NULLs. */
async function makeTypes(connection) {
  const declared = TYPES.map((column) => `${column.column} ${column.declared} NULL`).join(", ");
  const values = (which) => TYPES.map((column) => column[which]).join(", ");
  await connection.query("SET time_zone = '+00:00'");
  await connection.query(`CREATE TEMPORARY TABLE kept (id INT PRIMARY KEY, ${declared})`);
  await connection.query(`INSERT INTO kept VALUES (1, ${values("low_literal")})`);
  await connection.query(`INSERT INTO kept VALUES (2, ${values("high_literal")})`);
  await connection.query("INSERT INTO kept (id) VALUES (3)");
}

/** The text by which types.tsv knows a value. */
function shown(kind, value) {
  if (value === null) return null;
  switch (kind) {
    case "bytes":
    case "bits":
      assert.ok(Buffer.isBuffer(value));
      return value.toString("hex");
    case "datetime":
    case "time":
    case "long_time":
      return value.replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
    case "float":
      assert.equal(typeof value, "number");
      return String(value);
    case "json":
      // Parsed already where the server says what it is.
      return JSON.stringify(typeof value === "string" ? JSON.parse(value) : value);
    default:
      return String(value);
  }
}

function checkRows(rows) {
  assert.equal(rows.length, 3);
  for (const [place, wanted] of ["low", "high", undefined].entries()) {
    for (const [at, column] of TYPES.entries()) {
      let expected = wanted === undefined ? null : column[wanted];
      if (expected !== null && column.kind === "float") expected = String(Number(expected));
      if (expected !== null && column.kind === "json") expected = JSON.stringify(JSON.parse(expected));
      assert.equal(shown(column.kind, rows[place][at]), expected, `${column.column} ${wanted}`);
    }
  }
}

async function types() {
  const connection = await open();
  await makeTypes(connection);
  const [rows] = await connection.query(`SELECT ${NAMES} FROM kept ORDER BY id`);
  checkRows(rows);
  const dates = await open({ dateStrings: false, rowsAsArray: false });
  const [[row]] = await dates.query("SELECT TIMESTAMP'2024-02-29 23:59:58.123' AS moment");
  assert.equal(row.moment.toISOString(), "2024-02-29T23:59:58.123Z");
}

async function nulls() {
  const connection = await open();
  await makeTypes(connection);
  for (const { column } of TYPES) {
    const query = `SELECT COUNT(*), COUNT(${column}), MIN(id) FROM kept WHERE ${column} IS NULL`;
    const [[row]] = await connection.query(query);
    assert.deepEqual(row.map(Number), [1, 0, 3], column);
  }
  const [rows] = await connection.execute("SELECT NULL, id FROM kept WHERE age <=> ?", [null]);
  assert.deepEqual(rows, [[null, 3]]);
}

const UNSIGNED = 32;

async function metadata() {
  const connection = await open();
  await makeTypes(connection);
  for (const way of ["query", "execute"]) {
    const [, fields] = await connection[way](`SELECT ${NAMES} FROM kept AS k WHERE id = 0`);
    for (const [at, column] of TYPES.entries()) {
      const field = fields[at];
      const expected = column.kind === "json" && onMariaDB ? 252 : Number(column.field);
      assert.deepEqual([field.name, field.columnType], [column.column, expected]);
      assert.deepEqual([field.table, field.orgTable, field.orgName], ["k", "kept", column.column]);
      if (column.kind === "integer") {
        const isUnsigned = (field.flags & UNSIGNED) !== 0;
        assert.equal(isUnsigned, column.declared.endsWith("UNSIGNED"), column.column);
      }
      if (column.kind === "bytes") assert.equal(field.characterSet, 63, column.column);
    }
    const width = (name) => fields.find((field) => field.name === name).columnLength;
    assert.deepEqual(["money", "name", "bytes"].map(width), [22, 160, 40]);
  }
}

async function prepared() {
  const connection = await open();
  await makeTypes(connection);
  await connection.query("CREATE TEMPORARY TABLE again LIKE kept");
  const [rows] = await connection.execute("SELECT * FROM kept WHERE id > ? ORDER BY id", [0]);
  const marks = Array(TYPES.length + 1).fill("?").join(", ");
  for (const row of rows) {
    const [result] = await connection.execute(`INSERT INTO again VALUES (${marks})`, row);
    assert.equal(result.affectedRows, 1);
  }
  const query = `SELECT ${NAMES} FROM again WHERE id < ? ORDER BY id`;
  checkRows((await connection.execute(query, [100]))[0]);
  const [[moment]] = await connection.execute("SELECT CAST(? AS DATETIME(3))", [
    new Date("2024-02-29T23:59:58.123Z"),
  ]);
  assert.deepEqual(moment, ["2024-02-29 23:59:58.123"]);

  await connection.query("CREATE TEMPORARY TABLE numbers (id INT PRIMARY KEY, name VARCHAR(20))");
  const insert = await connection.prepare("INSERT INTO numbers VALUES (?, ?)");
  const byKey = await connection.prepare("SELECT name FROM numbers WHERE id = ?");
  for (let number = 0; number < 100; number++) {
    await insert.execute([number, `n ${number}`]);
    assert.deepEqual((await byKey.execute([number]))[0], [[`n ${number}`]]);
  }
  await insert.close();
  const like = "SELECT COUNT(*) FROM numbers WHERE name LIKE ? AND id > ?";
  assert.deepEqual((await connection.execute(like, ["n 1%", 1]))[0], [[10]]);
}

async function errors() {
  const connection = await open();
  await connection.query("CREATE TEMPORARY TABLE t (a TINYINT NOT NULL PRIMARY KEY)");
  await connection.query("INSERT INTO t VALUES (1)");
  const expected = [
    ["SELEC 1", 1064, "42000"],
    ["SELECT * FROM nothing", 1146, "42S02"],
    ["SELECT nothing FROM t", 1054, "42S22"],
    ["INSERT INTO t VALUES (1)", 1062, "23000"],
    ["INSERT INTO t VALUES (NULL)", 1048, "23000"],
    ["INSERT INTO t VALUES (300)", 1264, "22003"],
  ];
  for (const [statement, number, state] of expected) {
    await refused(number, () => connection.query(statement), state);
    await refused(number, () => connection.execute(statement), state);
  }
  await connection.query("SET sql_mode = ''");
  const [result] = await connection.query("INSERT INTO t VALUES (300)");
  assert.equal(result.warningStatus, 1);
  assert.deepEqual((await connection.query("SELECT a FROM t ORDER BY a"))[0], [[1], [127]]);
}

async function transactions() {
  const connection = await open();
  await connection.query("CREATE TEMPORARY TABLE t (a INT)");
  for (const [end, expected] of [["rollback", 0], ["commit", 2], ["rollback", 2]]) {
    await connection.beginTransaction();
    await connection.execute("INSERT INTO t VALUES (?)", [1]);
    await connection.query("SAVEPOINT s");
    await connection.execute("INSERT INTO t VALUES (?)", [2]);
    await connection.query("ROLLBACK TO SAVEPOINT s");
    await connection.execute("INSERT INTO t VALUES (?)", [3]);
    await connection[end]();
    const [[[count]]] = await connection.query("SELECT COUNT(*) FROM t WHERE a <> 2");
    assert.equal(Number(count), expected, end);
  }
}

async function several() {
  const connection = await open({ multipleStatements: true });
  const [results] = await connection.query(
    "CREATE TEMPORARY TABLE t (a INT); INSERT INTO t VALUES (1), (2); SELECT a FROM t; SELECT 'x'",
  );
  assert.equal(results[1].affectedRows, 2);
  assert.deepEqual(results.slice(2), [[[1], [2]], [["x"]]]);
}

async function big_result() {
  const connection = await open();
  const numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)";
  const query = `${numbers} SELECT a.i * 1000 + b.i, REPEAT('x', 100) FROM n AS a, n AS b`;
  let count = 0;
  let total = 0;
  for await (const row of connection.connection.query(query).stream()) {
    count += 1;
    total += Number(row[0]);
    assert.equal(row[1].length, 100);
  }
  assert.deepEqual([count, total], [160_000, (400 * 1001 * 400 * 401) / 2]);
  const [rows] = await connection.execute(`${query} WHERE a.i > ?`, [0]);
  assert.equal(rows.length, 160_000);
  const [[[text]]] = await connection.query("SELECT REPEAT('y', 20000000)");
  assert.equal(text.length, 20_000_000);
  const long = "z".repeat(20_000_000);
  assert.equal(Number((await connection.execute("SELECT LENGTH(?)", [long]))[0][0][0]), 20_000_000);
  assert.equal(Number((await connection.query("SELECT LENGTH(?)", [long]))[0][0][0]), 20_000_000);
}

async function temp_tables() {
  const connection = await open();
  await connection.query(
    "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20), KEY (name))",
  );
  const [first] = await connection.query("INSERT INTO t (name) VALUES ('first')");
  assert.equal(first.insertId, 1);
  const names = Array.from({ length: 999 }, (_, number) => [`name ${number % 10}`]);
  const [many] = await connection.query("INSERT INTO t (name) VALUES ?", [names]);
  assert.deepEqual([many.affectedRows, many.insertId], [999, 2]);
  assert.equal(many.info, "Records: 999  Duplicates: 0  Warnings: 0");
  await connection.query(
    "CREATE TEMPORARY TABLE u AS SELECT name, COUNT(*) AS n FROM t GROUP BY name",
  );
  const [groups] = await connection.query(
    "SELECT t.name, n, COUNT(*) FROM t JOIN u USING (name) GROUP BY name, n HAVING n < 100 ORDER BY name",
  );
  assert.deepEqual(groups, [["first", 1, 1], ["name 9", 99, 99]]);
  const [changed] = await connection.query("UPDATE t SET name = 'first' WHERE id <= 2");
  assert.deepEqual([changed.affectedRows, changed.changedRows], [2, 1]);
  const [gone] = await connection.execute("DELETE FROM t WHERE name = ?", ["first"]);
  assert.equal(gone.affectedRows, 2);
  const other = await open();
  await refused(1146, () => other.query("SELECT * FROM t"));
  await connection.query("DROP TEMPORARY TABLE t, u");
  await refused(1146, () => connection.query("SELECT * FROM t"));
}

async function checkReset(connection) {
  await refused(1146, () => connection.query("SELECT * FROM t"));
  const [rows] = await connection.query("SELECT @a, @@sql_select_limit > 3, DATABASE()");
  assert.deepEqual(rows, [[null, 1, env.CHECK_DATABASE]]);
}

async function reset() {
  const connection = await open();
  const statement = await connection.prepare("SELECT 1");
  for (const way of ["reset", "changeUser"]) {
    await connection.query("CREATE TEMPORARY TABLE t (a INT)");
    await connection.query("SET @a = 5, sql_select_limit = 3");
    await connection[way]({ database: env.CHECK_DATABASE });
    await checkReset(connection);
  }
  await refused(1243, () => statement.execute([]));
  await connection.changeUser({ user: env.CHECK_NATIVE_USER });
  const [[[user]]] = await connection.query("SELECT CURRENT_USER()");
  assert.equal(user.split("@")[0], env.CHECK_NATIVE_USER);
}

async function pool() {
  for (const resetOnRelease of [false, true]) {
    const connections = mysql.createPool({ ...account({}), connectionLimit: 1, resetOnRelease });
    try {
      let connection = await connections.getConnection();
      const before = connection.threadId;
      await connection.query("CREATE TEMPORARY TABLE t (a INT)");
      connection.release();
      connection = await connections.getConnection();
      assert.equal(connection.threadId, before);
      if (resetOnRelease) await checkReset(connection);
      else await connection.query("SELECT * FROM t");
      connection.release();
    } finally {
      await connections.end();
    }
  }
}

const CHECKS = [
  connect, native_password, tls, socket, types, nulls, metadata, prepared, errors, transactions,
  several, big_result, temp_tables, reset, pool,
];

(async () => {
  for (const check of CHECKS) {
    try {
      await check();
      console.log(`${check.name}\tok`);
    } catch (error) {
      process.exitCode = 1;
      const place = /checks\.js:(\d+):\d+\)?\n(?!.*refused)/.exec(error.stack + "\n");
      const text = error.message.split(/\s+/).join(" ").slice(0, 300);
      console.log(`${check.name}\tFAIL\tline ${place ? place[1] : "?"}: ${text}`);
    }
    for (const connection of opened.splice(0)) connection.destroy();
  }
})();
