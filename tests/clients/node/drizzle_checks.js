"use strict";
// What applications of Drizzle do, and its drizzle-kit: tables pushed and pulled.

const assert = require("node:assert/strict");
const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const mysql = require("mysql2/promise");
const { and, asc, avg, count, desc, eq, exists, gt, inArray, like, sql, sum } = require("drizzle-orm");
const { drizzle } = require("drizzle-orm/mysql2");
const { alias, unionAll } = require("drizzle-orm/mysql-core");
const { address, afterRollback, onMariadb, refused, run } = require("./shared");
const schema = require("./drizzle_schema");

const { authors, books } = schema;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "drizzle-"));
const modules = process.env.NODE_PATH;
let pool, db;

// drizzle-kit, as a project runs it.
function kit(...words) {
  const { host, port, user, password, database } = address;
  const credentials = { url: `mysql://${user}:${encodeURIComponent(password)}@${host}:${port}/${database}` };
  const config = { dialect: "mysql", schema: path.join(__dirname, "drizzle_schema.js"), out: "out", dbCredentials: credentials };
  fs.writeFileSync(path.join(folder, "drizzle.config.js"), `module.exports = ${JSON.stringify(config)}`);
  const program = path.join(modules, "drizzle-kit/bin.cjs");
  const said = spawnSync(process.execPath, [program, ...words], { cwd: folder, encoding: "utf8" });
  assert.equal(said.status, 0, said.stdout + said.stderr);
  return said.stdout;
}

const checks = {
  async push() {
    fs.symlinkSync(modules, path.join(folder, "node_modules"));
    assert.match(kit("push", "--force"), /Changes applied/);
    pool = mysql.createPool({ ...address, connectionLimit: 4 });
    db = drizzle(pool, { schema, mode: "default" });
    assert.deepEqual(await db.select().from(books), []);
    // All is as it was declared; MariaDB writes other expressions, defaults and types.
    if (!onMariadb) assert.match(kit("push", "--force"), /No changes detected/);
  },

  async pull() {
    // It looks for names in capitals that it wrote in small letters, which MariaDB does not give.
    if (onMariadb) return;
    assert.match(kit("pull"), /Your schema file is ready/);
    const pulled = fs.readFileSync(path.join(folder, "out/schema.ts"), "utf8");
    for (const part of ['mysqlTable("books"', 'index("kind_price")', 'decimal({ precision: 10, scale: 2 })', '"author_title"'])
      assert.ok(pulled.includes(part), `no ${part} in ${pulled}`);
  },

  async rows() {
    const [{ id }] = await db.insert(authors).values({ name: "Anna", born: "1970-02-28" }).$returningId();
    assert.equal(id, 1);
    await db.insert(authors).values([{ name: "Bert", score: 3 }, { name: "Cara", score: 7 }]);
    await db.insert(books).values([
      { author: 1, title: "first", price: "10.50", data: { a: [1, null, "ü"] }, text: "ü".repeat(100000), published: "2026-02-03 04:05:06.123456" },
      { author: 1, title: "second", price: "20.00", kind: "atlas" },
      ...[...Array(300).keys()].map((n) => ({ author: 2, title: `volume ${n}`, price: String(n) })),
    ]);
    const [first] = await db.select().from(books).where(eq(books.title, "first"));
    assert.deepEqual([first.price, first.gross, first.text.length, first.published], ["10.50", "12.4950", 100000, "2026-02-03 04:05:06.123456"]);
    if (!onMariadb) assert.deepEqual(first.data, { a: [1, null, "ü"] });
  },

  async queries() {
    const totals = await db
      .select({ name: authors.name, n: count(books.id), total: sum(books.price) })
      .from(authors)
      .leftJoin(books, eq(books.author, authors.id))
      .groupBy(authors.id, authors.name)
      .having(({ n }) => gt(n, 1))
      .orderBy(desc(sum(books.price)));
    assert.deepEqual(totals, [{ name: "Bert", n: 300, total: "44850.00" }, { name: "Anna", n: 2, total: "30.50" }]);
    const best = db
      .select({ author: books.author, top: sql`MAX(${books.price})`.as("top") })
      .from(books)
      .groupBy(books.author)
      .as("best");
    const joined = await db
      .select({ title: books.title })
      .from(books)
      .innerJoin(best, and(eq(books.author, best.author), eq(books.price, best.top)))
      .orderBy(asc(books.title));
    assert.deepEqual(joined.map((row) => row.title), ["second", "volume 299"]);
    const dear = db.$with("dear").as(db.select().from(books).where(gt(books.price, "297")));
    assert.equal((await db.with(dear).select({ n: count() }).from(dear))[0].n, 2);
    const some = db.select({ one: sql`1` }).from(books).where(and(eq(books.author, authors.id), like(books.title, "vol%")));
    assert.deepEqual((await db.select({ name: authors.name }).from(authors).where(exists(some))).map((row) => row.name), ["Bert"]);
    const other = alias(authors, "other");
    assert.equal((await db.select().from(authors).innerJoin(other, gt(other.score, authors.score))).length, 3);
    const both = await unionAll(db.select({ name: authors.name }).from(authors), db.select({ name: books.title }).from(books).where(inArray(books.id, [1, 2]))).orderBy(sql`name`);
    assert.equal(both.length, 5);
    assert.equal(await db.$count(books, gt(books.price, "100")), 199);
    const average = db.select({ it: avg(books.price) }).from(books);
    assert.equal((await db.select().from(books).where(sql`${books.price} > (${average})`)).length, 151);
    const place = sql`ROW_NUMBER() OVER (PARTITION BY ${books.author} ORDER BY ${books.price} DESC)`.mapWith(Number);
    const placed = db.select({ title: books.title, place: place.as("place") }).from(books).as("placed");
    assert.equal((await db.select().from(placed).where(eq(placed.place, 1))).length, 2);
  },

  // Relations are read in one statement of JSON functions and lateral subqueries.
  async relations() {
    const found = await db.query.authors.findMany({ columns: { name: true }, orderBy: asc(authors.name) });
    assert.deepEqual(found.map((one) => one.name), ["Anna", "Bert", "Cara"]);
  },

  async changes() {
    const [raised] = await db.update(authors).set({ score: sql`${authors.score} + 1` }).where(gt(authors.score, 0));
    assert.equal(raised.affectedRows, 2);
    await db.insert(authors).values({ name: "Cara", score: 1 }).onDuplicateKeyUpdate({ set: { score: sql`VALUES(score)` } });
    await db.insert(authors).ignore().values({ name: "Cara", score: 99 });
    const [cara] = await db.select().from(authors).where(eq(authors.name, "Cara"));
    assert.equal(cara.score, 1);
    const [gone] = await db.delete(books).where(gt(books.price, "250")).orderBy(desc(books.price)).limit(10);
    assert.equal(gone.affectedRows, 10);
    await refused(1062, () => db.insert(authors).values({ name: "Anna" }).catch((error) => Promise.reject(error.cause ?? error)));
  },

  async transactions() {
    await db.transaction(async (tx) => {
      await tx.execute(sql`CREATE TEMPORARY TABLE chosen AS SELECT id FROM books WHERE price > 200`);
      await tx
        .transaction(async (inner) => {
          await inner.execute(sql`DELETE FROM chosen`);
          inner.rollback();
        })
        .catch(() => {});
      const [[{ n }]] = await tx.execute(sql`SELECT COUNT(*) AS n FROM chosen JOIN books USING (id)`);
      assert.equal(Number(n), 89);
      await tx.execute(sql`DROP TEMPORARY TABLE chosen`);
    }, { isolationLevel: "repeatable read" });
    const failing = db.transaction(async (tx) => {
      await tx.insert(authors).values({ name: "Lost" });
      throw new Error("enough");
    });
    await assert.rejects(failing, /enough/);
    const names = (await db.select().from(authors).orderBy(asc(authors.name))).map((one) => one.name);
    assert.deepEqual(names, afterRollback(["Anna", "Bert", "Cara"], "Lost"));
  },
};

run(checks, async () => {
  fs.rmSync(folder, { recursive: true, force: true });
  await pool?.end();
});
