"use strict";
// What applications of Sequelize do.

const assert = require("node:assert/strict");
const {
  DataTypes,
  Op,
  Sequelize,
  Transaction,
  UniqueConstraintError,
  col,
  fn,
  literal,
} = require("sequelize");
const { address, afterRollback, refused, run, volumes } = require("./shared");

const sequelize = new Sequelize(address.database, address.user, address.password, {
  dialect: "mysql",
  host: address.host,
  port: address.port,
  logging: false,
  pool: { max: 3 },
});

const Author = sequelize.define("Author", {
  name: { type: DataTypes.STRING(100), allowNull: false, unique: true },
  born: DataTypes.DATEONLY,
  alive: { type: DataTypes.BOOLEAN, defaultValue: true },
});
const Book = sequelize.define(
  "Book",
  {
    id: { type: DataTypes.BIGINT.UNSIGNED, primaryKey: true, autoIncrement: true },
    title: { type: DataTypes.STRING, allowNull: false, comment: "the book's name" },
    price: DataTypes.DECIMAL(10, 2),
    published: DataTypes.DATE(6),
    kind: DataTypes.ENUM("novel", "atlas"),
    details: DataTypes.JSON,
    reference: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 },
    cover: DataTypes.BLOB("medium"),
    weight: DataTypes.DOUBLE,
    text: DataTypes.TEXT("long"),
  },
  {
    paranoid: true,
    indexes: [{ fields: ["kind", "price"] }, { fields: [{ name: "title", length: 10 }] }],
  },
);
const Tag = sequelize.define(
  "Tag",
  { name: { type: DataTypes.STRING(20), primaryKey: true } },
  { timestamps: false },
);
Author.hasMany(Book, { onDelete: "CASCADE" });
Book.belongsTo(Author);
Book.belongsToMany(Tag, { through: "BookTags" });
Tag.belongsToMany(Book, { through: "BookTags" });

const published = new Date("2026-02-03T04:05:06.789Z");

run(
  {
    async authenticate() {
      await sequelize.authenticate();
    },
    async sync() {
      await sequelize.sync({ force: true });
      await sequelize.sync();
      assert.deepEqual(
        (await sequelize.getQueryInterface().showAllTables())
          .map((table) => table.tableName ?? table)
          .sort(),
        ["Authors", "BookTags", "Books", "Tags"],
      );
    },
    async alter() {
      await sequelize.sync({ alter: true });
      const description = await sequelize.getQueryInterface().describeTable("Books");
      assert.equal(description.id.primaryKey && description.id.autoIncrement, true);
      assert.deepEqual(
        [description.title.comment, description.title.allowNull, description.price.type],
        ["the book's name", false, "DECIMAL(10,2)"],
      );
      const queries = sequelize.getQueryInterface();
      await queries.addColumn("Authors", "country", {
        type: DataTypes.STRING(2),
        defaultValue: "XX",
      });
      await queries.renameColumn("Authors", "country", "land");
      await queries.changeColumn("Authors", "land", { type: DataTypes.STRING(3), allowNull: true });
      await queries.addIndex("Authors", ["land"]);
      await queries.removeIndex("Authors", ["land"]);
      await queries.removeColumn("Authors", "land");
      // Where foreign keys are kept, the one of Author has an index too.
      const names = (await queries.showIndex("Books")).map((index) => index.name);
      assert.deepEqual(names.filter((name) => name !== "AuthorId").sort(), [
        "PRIMARY",
        "books_kind_price",
        "books_title",
      ]);
    },
    async create() {
      const anna = await Author.create({ name: "Änna", born: "1970-02-28" });
      const book = await anna.createBook({
        title: "One",
        price: "12.50",
        published,
        kind: "atlas",
        details: { a: [1, "ü", null] },
        cover: Buffer.from([0, 255, 39, 92]),
        weight: 0.1,
        text: "ä".repeat(100000),
      });
      await book.reload();
      assert.deepEqual(
        [book.price, book.published, book.kind, book.cover, book.weight, book.text.length],
        ["12.50", published, "atlas", Buffer.from([0, 255, 39, 92]), 0.1, 100000],
      );
      assert.deepEqual(typeof book.details === "string" ? JSON.parse(book.details) : book.details, {
        a: [1, "ü", null],
      });
      const tags = await Tag.bulkCreate([{ name: "red" }, { name: "thin" }]);
      await book.addTags(tags);
      await Author.create(
        {
          name: "Bob",
          Books: volumes(50),
        },
        { include: Book },
      );
      await Tag.bulkCreate([{ name: "red" }, { name: "blue" }], { ignoreDuplicates: true });
      assert.equal(await Tag.count(), 3);
    },
    async select() {
      const authors = await Author.findAll({
        include: [{ model: Book, include: Tag }],
        order: [
          ["name", "DESC"],
          [Book, "id"],
        ],
      });
      assert.deepEqual(authors.map((author) => author.Books.length).sort(), [1, 50]);
      const groups = await Book.findAll({
        attributes: [
          "AuthorId",
          [fn("COUNT", col("Book.id")), "n"],
          [fn("SUM", col("price")), "total"],
        ],
        include: { model: Author, attributes: ["name"] },
        group: ["AuthorId", "Author.id"],
        having: literal("n > 0"),
        order: [[literal("n"), "DESC"]],
        raw: true,
      });
      assert.deepEqual(
        groups.map((row) => [row["Author.name"], row.n, row.total]),
        [
          ["Bob", 50, "1225.00"],
          ["Änna", 1, "12.50"],
        ],
      );
      const { count, rows } = await Book.findAndCountAll({
        where: {
          price: { [Op.between]: [10, 30] },
          title: { [Op.like]: "Volume %" },
          [Op.or]: [{ kind: "novel" }, { weight: { [Op.ne]: null } }],
        },
        limit: 3,
        offset: 2,
        order: [["price", "DESC"]],
        include: Author,
        distinct: true,
      });
      assert.deepEqual(
        [count, rows.map((row) => row.title)],
        [10, ["Volume 25", "Volume 23", "Volume 21"]],
      );
      assert.equal(await Book.max("price"), 49);
      assert.equal(
        await Book.count({ where: { published: { [Op.gt]: new Date("2026-01-01") } } }),
        1,
      );
      const page = await Author.findAll({
        include: { model: Book, where: { kind: "novel" }, required: true },
        limit: 1,
      });
      assert.deepEqual(
        page.map((author) => [author.name, author.Books.length]),
        [["Bob", 25]],
      );
    },
    async change() {
      assert.deepEqual(await Book.update({ weight: 1.5 }, { where: { kind: "novel" } }), [25]);
      await Book.increment("price", { by: 2, where: { title: "Volume 1" } });
      assert.equal((await Book.findOne({ where: { title: "Volume 1" } })).price, "3.00");
      await Author.upsert({ name: "Bob", born: "1980-01-01" });
      assert.equal((await Author.findOne({ where: { name: "Bob" } })).born, "1980-01-01");
      const [cleo, made] = await Author.findOrCreate({ where: { name: "Cleo" } });
      assert.equal(made, true);
      assert.equal((await Author.findOrCreate({ where: { name: "Cleo" } }))[1], false);
      await cleo.destroy();
      assert.equal(await Book.destroy({ where: { price: { [Op.gte]: 40 } } }), 10);
      assert.deepEqual([await Book.count(), await Book.count({ paranoid: false })], [41, 51]);
      await refused(1062, () => Author.create({ name: "Bob" }));
      await assert.rejects(Author.create({ name: "Bob" }), UniqueConstraintError);
    },
    async transaction() {
      await sequelize.transaction(
        { isolationLevel: Transaction.ISOLATION_LEVELS.READ_COMMITTED },
        async (transaction) => {
          await Tag.create({ name: "kept" }, { transaction });
          await Tag.findAll({ transaction, lock: transaction.LOCK.UPDATE });
        },
      );
      await assert.rejects(
        sequelize.transaction(async (transaction) => {
          await Tag.create({ name: "lost" }, { transaction });
          throw new Error("back");
        }),
        /back/,
      );
      assert.deepEqual(
        (await Tag.findAll({ order: ["name"] })).map((tag) => tag.name),
        afterRollback(["blue", "kept", "red", "thin"], "lost"),
      );
    },
    async drop() {
      await sequelize.drop();
      assert.deepEqual(await sequelize.getQueryInterface().showAllTables(), []);
    },
  },
  () => sequelize.close(),
);
