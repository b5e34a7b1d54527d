"use strict";
// What applications of Knex do.

const assert = require("node:assert/strict");
const { address, afterRollback, refused, run, volumes } = require("./shared");

// Migrations as a project has them in files.
const migrations = {
  first: {
    async up(schema) {
      await schema.schema.createTable("authors", (table) => {
        table.increments("id");
        table.string("name", 100).notNullable().unique();
        table.date("born").comment("it's a day");
        table.boolean("alive").defaultTo(true);
        table.timestamps(true, true);
      });
      await schema.schema.createTable("books", (table) => {
        table.bigIncrements("id");
        table
          .integer("author")
          .unsigned()
          .notNullable()
          .references("authors.id")
          .onDelete("CASCADE");
        table.string("title").index();
        table.decimal("price", 10, 2);
        table.datetime("published", { precision: 6 });
        table.enu("kind", ["novel", "atlas"]);
        table.json("details");
        table.uuid("reference");
        table.binary("cover");
        table.double("weight");
        table.text("text", "longtext");
        table.index(["kind", "price"], "kind_price");
      });
    },
    async down(schema) {
      await schema.schema.dropTable("books");
      await schema.schema.dropTable("authors");
    },
  },
  second: {
    async up(schema) {
      await schema.schema.alterTable("authors", (table) => {
        table.string("country", 2).defaultTo("XX").after("name");
        table.string("name", 120).notNullable().alter();
        table.index("country");
        table.renameColumn("born", "birthday");
      });
    },
    async down(schema) {
      await schema.schema.alterTable("authors", (table) => {
        table.dropIndex("country");
        table.dropColumn("country");
        table.renameColumn("birthday", "born");
      });
    },
  },
};

const knex = require("knex")({
  client: "mysql2",
  connection: { ...address, timezone: "Z" },
  pool: { min: 0, max: 3 },
  migrations: {
    migrationSource: {
      getMigrations: async () => Object.keys(migrations),
      getMigrationName: (name) => name,
      getMigration: async (name) => migrations[name],
    },
  },
});

run(
  {
    async migrate() {
      assert.deepEqual((await knex.migrate.latest())[1], ["first", "second"]);
      assert.deepEqual((await knex.migrate.latest())[1], []);
      assert.deepEqual((await knex.migrate.down())[1], ["second"]);
      assert.equal(await knex.schema.hasColumn("authors", "country"), false);
      assert.deepEqual((await knex.migrate.up())[1], ["second"]);
      assert.deepEqual(
        [
          await knex.schema.hasTable("books"),
          await knex.schema.hasTable("nothing"),
          await knex.schema.hasColumn("authors", "birthday"),
        ],
        [true, false, true],
      );
      const columns = await knex("books").columnInfo();
      assert.deepEqual(
        [columns.title.type, columns.title.maxLength, columns.title.nullable, columns.kind.type],
        ["varchar", 255, true, "enum"],
      );
    },
    async insert() {
      const [anna] = await knex("authors").insert({ name: "Änna", birthday: "1970-02-28" });
      const [bob] = await knex("authors").insert({ name: "Bob" });
      const published = new Date("2026-02-03T04:05:06.789Z");
      const [one] = await knex("books").insert({
        author: anna,
        title: "One",
        price: "12.50",
        published,
        kind: "atlas",
        details: JSON.stringify({ a: [1, "ü"] }),
        cover: Buffer.from([0, 255, 39, 92]),
        weight: 0.1,
        text: "ä".repeat(100000),
      });
      const book = await knex("books").where({ id: one }).first();
      assert.deepEqual(
        [book.price, book.published, book.cover, book.weight, book.text.length],
        ["12.50", published, Buffer.from([0, 255, 39, 92]), 0.1, 100000],
      );
      await knex.batchInsert("books", volumes(500, { author: bob }), 120);
      assert.equal((await knex("books").count("* as n"))[0].n, 501);
      await knex("authors")
        .insert({ name: "Bob", country: "DE" })
        .onConflict("name")
        .merge(["country"]);
      await knex("authors").insert({ name: "Bob", country: "FR" }).onConflict("name").ignore();
      assert.deepEqual(await knex("authors").pluck("country").orderBy("id"), ["XX", "DE"]);
      await refused(1062, () => knex("authors").insert({ name: "Bob" }));
    },
    async select() {
      const groups = await knex("books")
        .join("authors", "authors.id", "books.author")
        .groupBy("authors.name")
        .select("authors.name")
        .count("books.id as n")
        .sum("price as total")
        .max("title as last")
        .having("n", ">", 0)
        .orderBy("n", "desc");
      assert.deepEqual(
        groups.map((row) => Object.values(row)),
        [
          ["Bob", 500, "124750.00", "Volume 99"],
          ["Änna", 1, "12.50", "One"],
        ],
      );
      const found = await knex
        .with("dear", knex("books").where("price", ">", 490))
        .select("dear.title")
        .from("dear")
        .whereExists(knex("authors").whereRaw("authors.id = dear.author"))
        .whereIn("kind", ["novel"])
        .whereNotNull("price")
        .orderByRaw("price DESC")
        .limit(2)
        .offset(1);
      assert.deepEqual(
        found.map((row) => row.title),
        ["Volume 497", "Volume 495"],
      );
      const ranked = await knex("books")
        .select("title")
        .rank("place", (window) => window.orderBy("price", "desc").partitionBy("author"))
        .orderBy("place")
        .limit(3);
      assert.deepEqual(ranked.map((row) => row.place).sort(), [1, 1, 2]);
      const both = await knex("authors")
        .select("name")
        .where("alive", true)
        .union([knex("books").select("title").where("kind", "novel").limit(3)], true);
      assert.equal(both.length, 5);
      assert.equal(
        (
          await knex("authors")
            .leftJoin("books", function on() {
              this.on("books.author", "=", "authors.id").andOn(
                "books.price",
                ">",
                knex.raw("?", [1000]),
              );
            })
            .whereNull("books.id")
        ).length,
        2,
      );
      assert.equal((await knex("books").countDistinct("kind as n").first()).n, 2);
      let count = 0;
      for await (const row of knex("books").select("id", "title").stream()) {
        count += row.id > 0 ? 1 : 0;
      }
      assert.equal(count, 501);
      assert.deepEqual(
        (
          await knex.raw("SELECT ? + 1 AS n, ?? FROM ?? WHERE id = ?", [41, "name", "authors", 1])
        )[0].map((row) => [row.n, row.name]),
        [[42, "Änna"]],
      );
    },
    async change() {
      assert.equal(await knex("books").where("kind", "novel").update({ weight: 1.5 }), 250);
      assert.equal(await knex("books").where("title", "Volume 1").increment("price", 2), 1);
      assert.equal(
        await knex("books")
          .join("authors", "authors.id", "books.author")
          .where("authors.name", "Änna")
          .update({ "books.title": "First" }),
        1,
      );
      assert.equal(
        await knex("books").where("price", ">=", 400).whereNot("kind", "atlas").del(),
        50,
      );
      await refused(1048, () => knex("authors").insert({ name: null }));
      await refused(1146, () => knex("nothing"));
    },
    async transaction() {
      await knex.transaction(async (transaction) => {
        await transaction("authors").insert({ name: "kept" });
        await transaction("authors").where({ name: "kept" }).forUpdate().first();
        await transaction.transaction(async (inner) =>
          inner("authors").insert({ name: "kept too" }),
        );
      });
      await assert.rejects(
        knex.transaction(
          async (transaction) => {
            await transaction("authors").insert({ name: "lost" });
            throw new Error("back");
          },
          { isolationLevel: "read committed" },
        ),
        /back/,
      );
      assert.deepEqual(
        (await knex("authors").pluck("name")).filter((name) => name > "a" && name < "z").sort(),
        afterRollback(["kept", "kept too"], "lost"),
      );
    },
    // Temporary tables are of one connection, which the transaction keeps.
    async temporary() {
      await knex.transaction(async (transaction) => {
        await transaction.raw(
          "CREATE TEMPORARY TABLE heap (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(20), KEY (name))",
        );
        await transaction("heap").insert([{ name: "a" }, { name: "b" }, { name: "a" }]);
        await assert.rejects(
          transaction.transaction(async (inner) => {
            await inner("heap").del();
            throw new Error("back");
          }),
          /back/,
        );
        const groups = await transaction("heap")
          .groupBy("name")
          .select("name")
          .count("* as n")
          .orderBy("name");
        assert.deepEqual(
          groups.map((row) => [row.name, row.n]),
          [
            ["a", 2],
            ["b", 1],
          ],
        );
      });
    },
    async rollback() {
      assert.deepEqual((await knex.migrate.rollback(undefined, true))[1], ["second", "first"]);
      assert.equal(await knex.schema.hasTable("books"), false);
    },
  },
  () => knex.destroy(),
);
