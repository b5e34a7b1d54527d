"use strict";
// The tables of an application of Drizzle, read by its checks and by drizzle-kit.

const { relations, sql } = require("drizzle-orm");
const m = require("drizzle-orm/mysql-core");

const number = (name) => m.bigint(name, { mode: "number", unsigned: true });
const authors = m.mysqlTable("authors", {
  id: number("id").autoincrement().primaryKey(),
  name: m.varchar("name", { length: 100 }).notNull().unique(),
  score: m.int("score").notNull().default(0),
  born: m.date("born", { mode: "string" }),
  alive: m.boolean("alive").default(true),
  made: m.timestamp("made").defaultNow().onUpdateNow(),
});
const books = m.mysqlTable(
  "books",
  {
    id: number("id").autoincrement().primaryKey(),
    author: number("author").notNull(),
    title: m.varchar("title", { length: 200 }).notNull(),
    price: m.decimal("price", { precision: 10, scale: 2 }),
    kind: m.mysqlEnum("kind", ["novel", "atlas"]).default("novel"),
    published: m.datetime("published", { fsp: 6, mode: "string" }),
    data: m.json("data"),
    text: m.longtext("text"),
    gross: m.decimal("gross", { precision: 12, scale: 4 }).generatedAlwaysAs(sql`(\`price\` * 1.19)`, { mode: "stored" }),
  },
  (table) => [
    m.index("kind_price").on(table.kind, table.price),
    m.uniqueIndex("author_title").on(table.author, table.title),
    m.check("price_sound", sql`(\`price\` >= 0)`),
  ],
);
module.exports = {
  authors,
  books,
  authorsRelations: relations(authors, ({ many }) => ({ books: many(books) })),
  booksRelations: relations(books, ({ one }) => ({
    author: one(authors, { fields: [books.author], references: [authors.id] }),
  })),
};
