"use strict";
// What applications of Prisma do: checks.js MODULES FOLDER, those of npm, and one in which its client is made.
//
// Its migrations and its introspection run in a program that it downloads, so they are not here: the tables are made by
// the statements that `prisma migrate diff` writes, but for their collation, utf8mb4_unicode_ci, which counts no case.

const assert = require("node:assert/strict");
const { execFileSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { address, afterRollback, onMariadb, run } = require("../node/shared");

const [modules, folder] = process.argv.slice(2);
const TABLES = [
  `CREATE TABLE \`Author\` (
    \`id\` INTEGER NOT NULL AUTO_INCREMENT,
    \`name\` VARCHAR(100) NOT NULL,
    \`born\` DATE NULL,
    UNIQUE INDEX \`Author_name_key\`(\`name\`),
    PRIMARY KEY (\`id\`)
  ) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
  `CREATE TABLE \`Book\` (
    \`id\` BIGINT NOT NULL AUTO_INCREMENT,
    \`title\` VARCHAR(200) NOT NULL,
    \`price\` DECIMAL(10, 2) NOT NULL,
    \`kind\` ENUM('NOVEL', 'ATLAS') NOT NULL DEFAULT 'NOVEL',
    \`published\` DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    \`data\` JSON NULL,
    \`cover\` LONGBLOB NULL,
    \`sold\` BOOLEAN NOT NULL DEFAULT false,
    \`weight\` DOUBLE NULL,
    \`authorId\` INTEGER NOT NULL,
    INDEX \`Book_kind_price_idx\`(\`kind\`, \`price\`),
    PRIMARY KEY (\`id\`)
  ) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
  `ALTER TABLE \`Book\` ADD CONSTRAINT \`Book_authorId_fkey\` FOREIGN KEY (\`authorId\`) REFERENCES \`Author\`(\`id\`)
    ON DELETE RESTRICT ON UPDATE CASCADE`,
];

let client;
const shown = (value) => JSON.parse(JSON.stringify(value, (_, v) => (typeof v === "bigint" ? Number(v) : v)));
const refused = async (code, act) => assert.equal(await act().then(() => "nothing", (error) => error.code ?? error), code);

const checks = {
  async generate() {
    fs.mkdirSync(folder, { recursive: true });
    fs.symlinkSync(modules, path.join(folder, "node_modules"));
    fs.copyFileSync(path.join(__dirname, "schema.prisma"), path.join(folder, "schema.prisma"));
    fs.writeFileSync(path.join(folder, "prisma.config.js"), `module.exports = { schema: "schema.prisma" };`);
    // Nothing asks the program that would be downloaded.
    const environment = { ...process.env, PRISMA_SCHEMA_ENGINE_BINARY: process.execPath, CHECKPOINT_DISABLE: "1" };
    execFileSync(process.execPath, [path.join(modules, "prisma/build/index.js"), "generate"], {
      cwd: folder,
      env: environment,
      stdio: "pipe",
    });
    const { PrismaClient } = require(path.join(folder, "made"));
    const { PrismaMariaDb } = require("@prisma/adapter-mariadb");
    client = new PrismaClient({
      adapter: new PrismaMariaDb({ ...address, connectionLimit: 4, allowPublicKeyRetrieval: true }),
    });
    for (const statement of TABLES) await client.$executeRawUnsafe(statement);
  },

  async rows() {
    const anna = await client.author.create({
      data: {
        name: "Anna",
        born: new Date("1970-02-28"),
        books: {
          create: [
            { title: "first", price: "10.5", data: { a: [1, null, "ü"] }, cover: Buffer.from([0, 255]), weight: 0.1, sold: true },
            { title: "second", price: 20, kind: "ATLAS" },
          ],
        },
      },
      include: { books: true },
    });
    assert.equal(anna.id, 1);
    const first = await client.book.findUniqueOrThrow({ where: { id: 1n }, include: { author: true } });
    assert.equal(first.price.toFixed(2), "10.50");
    assert.deepEqual(first.data, { a: [1, null, "ü"] });
    assert.deepEqual([...first.cover], [0, 255]);
    assert.deepEqual([first.weight, first.sold, first.kind], [0.1, true, "NOVEL"]);
    assert.equal(first.author.born.toISOString(), "1970-02-28T00:00:00.000Z");
    const more = [{ name: "Bert" }, { name: "Cara" }, { name: "Anna" }];
    assert.deepEqual(await client.author.createMany({ data: more, skipDuplicates: true }), { count: 2 });
    const books = [...Array(300).keys()].map((n) => ({ title: `volume ${n}`, price: n, authorId: 2 }));
    assert.deepEqual(await client.book.createMany({ data: books }), { count: 300 });
  },

  async queries() {
    const { author, book } = client;
    const names = async (where) => (await author.findMany({ where, orderBy: { name: "asc" } })).map((one) => one.name);
    assert.deepEqual(await names({ books: { some: { price: { gt: 15 }, kind: "ATLAS" } } }), ["Anna"]);
    assert.deepEqual(await names({ books: { none: {} } }), ["Cara"]);
    assert.deepEqual(await names({ books: { every: { price: { gt: 5 } } }, NOT: { name: { in: ["Cara"] } } }), ["Anna"]);
    assert.deepEqual(await names({ OR: [{ name: { startsWith: "B" } }, { born: { lt: new Date() } }] }), ["Anna", "Bert"]);
    const with_ = await author.findMany({
      orderBy: { name: "asc" },
      include: { books: { orderBy: { price: "desc" }, take: 1 }, _count: { select: { books: true } } },
    });
    assert.deepEqual(with_.map((one) => [one.books[0]?.title, one._count.books]), [["second", 2], ["volume 299", 300], [undefined, 0]]);
    assert.equal(await book.count({ where: { author: { name: "Bert" }, price: { gte: 10, lt: 20 } } }), 10);
    const all = await book.aggregate({ _sum: { price: true }, _avg: { price: true }, _min: { title: true }, _count: true });
    assert.deepEqual(shown([all._sum.price, all._min.title, all._count]), ["44880.5", "first", 302]);
    const groups = await book.groupBy({
      by: ["kind"],
      _count: { _all: true },
      _max: { price: true },
      having: { price: { _avg: { gt: 5 } } },
      orderBy: { kind: "asc" },
    });
    assert.deepEqual(groups.map((one) => [one.kind, one._count._all]), [["NOVEL", 301], ["ATLAS", 1]]);
    const page = await book.findMany({ cursor: { id: 10n }, skip: 1, take: 2, orderBy: { id: "asc" } });
    assert.deepEqual(page.map((one) => one.id), [11n, 12n]);
    const ordered = await book.findMany({ orderBy: [{ author: { name: "desc" } }, { price: "desc" }], take: 2, skip: 299 });
    assert.deepEqual(ordered.map((one) => one.title), ["volume 0", "second"]);
    const by = await author.findMany({ orderBy: { books: { _count: "desc" } }, select: { name: true } });
    assert.deepEqual(by.map((one) => one.name), ["Bert", "Anna", "Cara"]);
    assert.equal((await book.findMany({ distinct: ["kind"], select: { kind: true } })).length, 2);
    const raw = await client.$queryRaw`SELECT kind, SUM(price) AS total, COUNT(*) AS n FROM Book WHERE price > ${5} GROUP BY kind ORDER BY kind`;
    assert.deepEqual(shown(raw), [{ kind: "NOVEL", total: "44845.5", n: 295 }, { kind: "ATLAS", total: "20", n: 1 }]);
  },

  async changes() {
    const { author, book } = client;
    const where = { name: "Anna" };
    assert.equal((await author.upsert({ where, update: { born: null }, create: { name: "Anna" } })).born, null);
    assert.equal((await author.upsert({ where: { name: "Dora" }, update: {}, create: { name: "Dora" } })).name, "Dora");
    assert.deepEqual(await book.updateMany({ where: { price: { lte: 10 } }, data: { price: { increment: 1 } } }), { count: 11 });
    const data = { title: "changed", author: { connect: { name: "Cara" } } };
    assert.equal((await book.update({ where: { id: 1n }, data, include: { author: true } })).author.name, "Cara");
    assert.deepEqual(await book.deleteMany({ where: { author: { name: "Bert" }, price: { gt: 250 } } }), { count: 49 });
    assert.equal((await author.delete({ where: { name: "Dora" } })).name, "Dora");
    assert.equal(await client.$executeRaw`UPDATE Book SET title = CONCAT(title, ${"!"}) WHERE id = ${2}`, 1);
  },

  async errors() {
    await refused("P2002", () => client.author.create({ data: { name: "Bert" } }));
    await refused("P2025", () => client.author.delete({ where: { id: 1000 } }));
    await refused("P2000", () => client.author.create({ data: { name: "x".repeat(101) } }));
    await refused("P2010", () => client.$queryRawUnsafe("SELEC 1"));
    if (onMariadb) await refused("P2003", () => client.author.delete({ where: { name: "Bert" } }));
  },

  async transactions() {
    const count = await client.$transaction(
      async (tx) => {
        await tx.$executeRaw`CREATE TEMPORARY TABLE chosen AS SELECT id FROM Book WHERE price > 200`;
        const [{ n }] = await tx.$queryRaw`SELECT COUNT(*) AS n FROM chosen JOIN Book USING (id)`;
        await tx.$executeRaw`DROP TEMPORARY TABLE chosen`;
        return Number(n);
      },
      { isolationLevel: "Serializable" },
    );
    assert.equal(count, 50);
    const failing = client.$transaction([
      client.author.create({ data: { name: "Lost" } }),
      client.author.create({ data: { name: "Bert" } }),
    ]);
    await refused("P2002", () => failing);
    const names = (await client.author.findMany({ orderBy: { name: "asc" } })).map((one) => one.name);
    assert.deepEqual(names, afterRollback(["Anna", "Bert", "Cara"], "Lost"));
    const many = await Promise.all([...Array(40).keys()].map((n) => client.book.count({ where: { price: { gt: n } } })));
    assert.equal(many.length, 40);
  },
};

run(checks, async () => client.$disconnect());
