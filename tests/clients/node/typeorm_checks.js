"use strict";
// What applications of TypeORM do.

require("reflect-metadata");
const assert = require("node:assert/strict");
const {
  Between,
  DataSource,
  EntitySchema,
  In,
  Like,
  MoreThan,
  Table,
  TableColumn,
  TableIndex,
} = require("typeorm");
const { address, afterRollback, onMariadb, refused, run, volumes } = require("./shared");

const Author = new EntitySchema({
  name: "Author",
  columns: {
    id: { type: "int", primary: true, generated: true, unsigned: true },
    name: { type: "varchar", length: 100, unique: true },
    born: { type: "date", nullable: true },
    alive: { type: "boolean", default: true },
    created: { type: "datetime", createDate: true },
    changed: { type: "datetime", updateDate: true },
  },
  relations: {
    books: { type: "one-to-many", target: "Book", inverseSide: "author", cascade: true },
  },
});
const Book = new EntitySchema({
  name: "Book",
  columns: {
    id: { type: "bigint", primary: true, generated: true },
    title: { type: "varchar", comment: "the book's name" },
    price: { type: "decimal", precision: 10, scale: 2, default: 0 },
    published: { type: "datetime", precision: 6, nullable: true },
    kind: { type: "enum", enum: ["novel", "atlas"], default: "novel" },
    details: { type: "json", nullable: true },
    reference: { type: "char", length: 36, nullable: true },
    cover: { type: "mediumblob", nullable: true },
    weight: { type: "double", nullable: true },
    text: { type: "longtext", nullable: true },
    version: { type: "int", version: true },
    gone: { type: "datetime", deleteDate: true },
  },
  indices: [{ name: "kind_price", columns: ["kind", "price"] }],
  relations: {
    author: {
      type: "many-to-one",
      target: "Author",
      inverseSide: "books",
      onDelete: "CASCADE",
      nullable: false,
    },
    tags: { type: "many-to-many", target: "Tag", joinTable: true, cascade: true },
  },
});
const Tag = new EntitySchema({
  name: "Tag",
  columns: { name: { type: "varchar", length: 20, primary: true } },
});

class AddCountry1700000000000 {
  async up(runner) {
    await runner.addColumn(
      "author",
      new TableColumn({ name: "country", type: "varchar", length: "2", default: "'XX'" }),
    );
    await runner.createIndex(
      "author",
      new TableIndex({ name: "author_country", columnNames: ["country"] }),
    );
    await runner.createTable(
      new Table({
        name: "note",
        columns: [
          {
            name: "id",
            type: "int",
            isPrimary: true,
            isGenerated: true,
            generationStrategy: "increment",
          },
          { name: "body", type: "text", isNullable: true },
        ],
      }),
    );
  }

  async down(runner) {
    await runner.dropTable("note");
    await runner.dropIndex("author", "author_country");
    await runner.dropColumn("author", "country");
  }
}

const source = new DataSource({
  type: onMariadb ? "mariadb" : "mysql",
  host: address.host,
  port: address.port,
  username: address.user,
  password: address.password,
  database: address.database,
  entities: [Author, Book, Tag],
  migrations: [AddCountry1700000000000],
  timezone: "Z",
  connectorPackage: "mysql2",
});

run(
  {
    async connect() {
      await source.initialize();
    },
    async synchronize() {
      await source.synchronize();
      const runner = source.createQueryRunner();
      const book = await runner.getTable("book");
      await runner.release();
      assert.equal(book.columns.length, 13);
      const title = book.findColumnByName("title");
      assert.deepEqual(
        [title.type, title.length, title.isNullable, title.comment],
        ["varchar", "255", false, "the book's name"],
      );
      assert.deepEqual(
        book.primaryColumns.map((column) => [column.name, column.isGenerated]),
        [["id", true]],
      );
      assert.deepEqual(book.indices.find((index) => index.name === "kind_price").columnNames, [
        "kind",
        "price",
      ]);
    },
    // What a schema still lacks. Where foreign keys are not kept each of them stays to be made, and
    // its index is one too many.
    async no_changes() {
      const missing = (await source.driver.createSchemaBuilder().log()).upQueries.map(
        (query) => query.query,
      );
      assert.deepEqual(
        missing.filter((query) => !/FOREIGN KEY|DROP INDEX `FK_/.test(query)),
        [],
      );
    },
    async migrations() {
      assert.equal((await source.runMigrations()).length, 1);
      assert.equal(await source.showMigrations(), false);
      const runner = source.createQueryRunner();
      assert.equal(await runner.hasColumn("author", "country"), true);
      await source.undoLastMigration();
      assert.deepEqual(
        [await runner.hasColumn("author", "country"), await runner.hasTable("note")],
        [false, false],
      );
      await runner.release();
    },
    async insert() {
      const published = new Date("2026-02-03T04:05:06.789Z");
      const anna = await source.manager.save(Author, {
        name: "Änna",
        born: "1970-02-28",
        books: [
          {
            title: "One",
            price: "12.50",
            published,
            kind: "atlas",
            details: { a: [1, "ü"] },
            cover: Buffer.from([0, 255, 39, 92]),
            weight: 0.1,
            text: "ä".repeat(100000),
            tags: [{ name: "red" }, { name: "thin" }],
          },
        ],
      });
      assert.ok(anna.created instanceof Date);
      const book = await source.manager.findOneOrFail(Book, {
        where: { title: "One" },
        relations: { author: true, tags: true },
      });
      assert.deepEqual(
        [
          book.price,
          book.published,
          book.kind,
          book.details,
          book.cover,
          book.weight,
          book.text.length,
          book.version,
        ],
        [
          "12.50",
          published,
          "atlas",
          { a: [1, "ü"] },
          Buffer.from([0, 255, 39, 92]),
          0.1,
          100000,
          1,
        ],
      );
      assert.deepEqual(
        [book.author.born, book.tags.map((tag) => tag.name).sort()],
        ["1970-02-28", ["red", "thin"]],
      );
      const bob = await source.manager.save(Author, { name: "Bob" });
      const made = await source.manager.insert(Book, volumes(50, { author: bob }));
      assert.equal(made.identifiers.length, 50);
      await source.manager.upsert(Author, { name: "Bob", born: "1980-01-01" }, ["name"]);
      await source
        .createQueryBuilder()
        .insert()
        .into(Tag)
        .values([{ name: "red" }, { name: "blue" }])
        .orIgnore()
        .execute();
      assert.deepEqual(
        [
          (await source.manager.findOneBy(Author, { name: "Bob" })).born,
          await source.manager.count(Tag),
        ],
        ["1980-01-01", 3],
      );
    },
    async select() {
      const groups = await source
        .getRepository(Book)
        .createQueryBuilder("book")
        .innerJoin("book.author", "author")
        .select("author.name", "name")
        .addSelect("COUNT(*)", "n")
        .addSelect("SUM(book.price)", "total")
        .groupBy("author.name")
        .having("COUNT(*) > :least", { least: 0 })
        .orderBy("n", "DESC")
        .getRawMany();
      assert.deepEqual(
        groups.map((row) => [row.name, Number(row.n), row.total]),
        [
          ["Bob", 50, "1225.00"],
          ["Änna", 1, "12.50"],
        ],
      );
      const [books, count] = await source.manager.findAndCount(Book, {
        where: {
          price: Between(10, 30),
          title: Like("Volume %"),
          kind: In(["novel"]),
          author: { name: "Bob" },
        },
        relations: { author: true, tags: true },
        order: { price: "DESC" },
        take: 3,
        skip: 2,
      });
      assert.deepEqual(
        [count, books.map((book) => book.title)],
        [10, ["Volume 25", "Volume 23", "Volume 21"]],
      );
      const authors = await source
        .getRepository(Author)
        .createQueryBuilder("author")
        .leftJoinAndSelect("author.books", "book", "book.price > 40")
        .orderBy("author.id")
        .getMany();
      assert.deepEqual(
        authors.map((author) => [author.name, author.books.length]),
        [
          ["Änna", 0],
          ["Bob", 9],
        ],
      );
      assert.deepEqual(
        [
          await source.manager.maximum(Book, "price"),
          await source.manager.existsBy(Book, { published: MoreThan(new Date("2026-01-01")) }),
        ].map(Number),
        [49, 1],
      );
      const within = await source
        .getRepository(Author)
        .createQueryBuilder("author")
        .where(
          (query) =>
            `author.id IN ${query.subQuery().select("book.author").from(Book, "book").where("book.kind = 'novel'").getQuery()}`,
        )
        .getMany();
      assert.deepEqual(
        within.map((author) => author.name),
        ["Bob"],
      );
    },
    async change() {
      assert.equal(
        (await source.manager.update(Book, { kind: "novel" }, { weight: 1.5 })).affected,
        25,
      );
      await source.manager.increment(Book, { title: "Volume 1" }, "price", 2);
      const book = await source.manager.findOneBy(Book, { title: "Volume 1" });
      assert.equal(book.price, "3.00");
      book.title = "First";
      assert.equal((await source.manager.save(Book, book)).title, "First");
      assert.equal(
        (await source.manager.findOneBy(Book, { title: "First" })).version,
        book.version,
      );
      assert.equal((await source.manager.softDelete(Book, { price: MoreThan(40) })).affected, 9);
      assert.equal((await source.manager.delete(Book, { price: Between(30, 40) })).affected, 11);
      assert.deepEqual(
        [await source.manager.count(Book), await source.manager.count(Book, { withDeleted: true })],
        [31, 40],
      );
      await refused(1062, () => source.manager.insert(Author, { name: "Bob" }));
    },
    async transaction() {
      await source.transaction("READ COMMITTED", async (manager) => {
        await manager.insert(Tag, { name: "kept" });
        await manager.findOne(Tag, {
          where: { name: "kept" },
          lock: { mode: "pessimistic_write" },
        });
        await manager.transaction((inner) => inner.insert(Tag, { name: "kept too" }));
      });
      await assert.rejects(
        source.transaction(async (manager) => {
          await manager.insert(Tag, { name: "lost" });
          throw new Error("back");
        }),
        /back/,
      );
      assert.deepEqual(
        (await source.manager.find(Tag)).map((tag) => tag.name).sort(),
        afterRollback(["blue", "kept", "kept too", "red", "thin"], "lost"),
      );
    },
    async drop() {
      await source.dropDatabase();
      assert.deepEqual(await source.query("SHOW TABLES"), []);
    },
  },
  () => source.destroy(),
);
