"""What programs with Peewee do."""

import datetime
import decimal
import uuid

import peewee
from playhouse.migrate import MySQLMigrator, migrate as run_migration
from playhouse.reflection import Introspector

import shared
from shared import equal, on_mariadb, refused

database = peewee.MySQLDatabase(
    shared.DATABASE,
    host=shared.HOST,
    port=shared.PORT,
    user=shared.USER,
    password=shared.PASSWORD,
)


class Author(peewee.Model):
    name = peewee.CharField(max_length=100, unique=True)
    born = peewee.DateField(null=True)
    alive = peewee.BooleanField(default=True)

    class Meta:
        database = database


class Book(peewee.Model):
    author = peewee.ForeignKeyField(Author, backref="books", on_delete="CASCADE")
    title = peewee.CharField(index=True)
    price = peewee.DecimalField(
        max_digits=10, decimal_places=2, constraints=[peewee.Check("price >= 0")]
    )
    published = peewee.DateTimeField(null=True)
    opening = peewee.TimeField(null=True)
    reference = peewee.UUIDField(default=uuid.uuid4)
    cover = peewee.BlobField(null=True)
    weight = peewee.DoubleField(null=True)
    text = peewee.TextField(default="")
    pages = peewee.BigIntegerField(default=0)

    class Meta:
        database = database
        indexes = ((("author", "title"), True),)


class Heap(peewee.Model):
    name = peewee.CharField(max_length=20, index=True)

    class Meta:
        database = database
        temporary = True


def connect(_):
    database.connect()
    equal(database.execute_sql("SELECT 1").fetchone(), (1,))


def create_tables(_):
    database.create_tables([Author, Book])
    database.create_tables([Author, Book])
    equal(sorted(database.get_tables()), ["author", "book"])
    equal(
        sorted(tuple(index.columns) for index in database.get_indexes("book") if index.unique),
        [("author_id", "title"), ("id",)],
    )
    equal(database.get_primary_keys("book"), ["id"])
    equal(
        [column.name for column in database.get_columns("author")], ["id", "name", "born", "alive"]
    )


def rows(_):
    anna = Author.create(name="Änna", born=datetime.date(1970, 2, 28))
    published = datetime.datetime(2026, 2, 3, 4, 5, 6)
    made = Book.create(
        author=anna,
        title="One",
        price=decimal.Decimal("12.50"),
        published=published,
        opening=datetime.time(23, 59, 58),
        cover=b"\0\xff'\\",
        weight=0.1,
        text="ä" * 20_000,
        pages=2**62,
    )
    book = Book.get_by_id(made.id)
    equal(
        (
            book.price,
            book.published,
            book.opening,
            book.reference,
            book.cover,
            book.weight,
            len(book.text),
            book.pages,
        ),
        (
            decimal.Decimal("12.50"),
            published,
            datetime.time(23, 59, 58),
            made.reference,
            b"\0\xff'\\",
            0.1,
            20_000,
            2**62,
        ),
    )
    bob = Author.create(name="Bob")
    Book.insert_many(
        [{"author": bob, "title": f"Volume {n}", "price": n} for n in range(50)]
    ).execute()
    Book.bulk_create(
        [Book(author=bob, title=f"More {n}", price=n) for n in range(10)], batch_size=4
    )
    equal(Book.select().count(), 61)


def queries(_):
    count, total = peewee.fn.COUNT(Book.id), peewee.fn.SUM(Book.price)
    found = (
        Author.select(Author.name, count.alias("n"), total.alias("total"))
        .join(Book, peewee.JOIN.LEFT_OUTER)
        .group_by(Author.name)
        .having(count > 0)
        .order_by(count.desc())
    )
    equal(
        [(row.name, row.n, row.total) for row in found],
        [("Bob", 60, decimal.Decimal("1270.00")), ("Änna", 1, decimal.Decimal("12.50"))],
    )
    found = (
        Book.select(Book, Author)
        .join(Author)
        .where(Book.title.startswith("Volume"), Book.price.between(10, 30), Author.name == "Bob")
        .order_by(Book.price.desc())
        .paginate(2, 3)
    )
    equal(
        [(book.title, book.author.name) for book in found],
        [("Volume 27", "Bob"), ("Volume 26", "Bob"), ("Volume 25", "Bob")],
    )
    dear = Book.select(Book.author).where(Book.price > 12).distinct()
    equal(
        sorted(author.name for author in Author.select().where(Author.id.in_(dear))),
        ["Bob", "Änna"],
    )
    place = (
        peewee.fn.RANK()
        .over(partition_by=[Book.author], order_by=[Book.price.desc()])
        .alias("place")
    )
    equal(
        [row.place for row in Book.select(Book.title, place).order_by(place).limit(3)].count(1), 2
    )
    both = Author.select(Author.name) | Author.select(Author.name).where(Author.alive)
    equal(len(both), 2)
    equal(
        [
            len(author.books)
            for author in peewee.prefetch(Author.select().order_by(Author.id), Book)
        ],
        [1, 60],
    )
    equal(Book.select().where(Book.published.year == 2026).count(), 1)
    cte = (
        Book.select(Book.author, count.alias("n"))
        .group_by(Book.author)
        .cte("counts", columns=["author_id", "n"])
    )
    found = (
        Author.select(Author.name, cte.c.n)
        .join(cte, on=(Author.id == cte.c.author_id))
        .with_cte(cte)
        .order_by(cte.c.n)
    )
    equal([(row.name, row.n) for row in found.objects()], [("Änna", 1), ("Bob", 60)])


def changes(_):
    equal(Book.update(weight=1.5, pages=Book.pages + 1).where(Book.price > 40).execute(), 9)
    Author.insert(name="Bob", born=datetime.date(1980, 1, 1)).on_conflict(
        preserve=[Author.born]
    ).execute()
    Author.insert(name="Bob").on_conflict_ignore().execute()
    equal(Author.get(Author.name == "Bob").born, datetime.date(1980, 1, 1))
    cleo, made = Author.get_or_create(name="Cleo")
    equal((made, Author.get_or_create(name="Cleo")[1]), (True, False))
    equal(cleo.delete_instance(), 1)
    books = list(Book.select().where(Book.price < 3))
    for book in books:
        book.text = f"about {book.title}"
    equal(Book.bulk_update(books, ["text"], batch_size=3), 6)
    equal(Book.delete().where(Book.title.startswith("More")).execute(), 10)
    for act in (
        lambda: Author.create(name="Bob"),
        lambda: Book.create(author=1, title="x", price=-1),
    ):
        refused((peewee.IntegrityError, peewee.OperationalError), act)


def transactions(_):
    with database.atomic() as outer:
        Author.create(name="kept")
        with database.atomic() as inner:
            Author.create(name="lost")
            inner.rollback()
    with database.atomic() as outer:
        Author.create(name="lost too")
        outer.rollback()
    names = sorted(author.name for author in Author.select() if author.name.islower())
    # Shared tables keep their rows, as those of MyISAM do.
    equal(names, ["kept"] if on_mariadb() else ["kept", "lost", "lost too"])
    Author.delete().where(Author.name << names).execute()


def temporary(_):
    Heap.create_table()
    Heap.insert_many([{"name": f"name {n % 3}"} for n in range(300)]).execute()
    with database.atomic() as block:
        Heap.delete().execute()
        block.rollback()
    count = peewee.fn.COUNT(Heap.id).alias("n")
    equal(
        [
            (row.name, row.n)
            for row in Heap.select(Heap.name, count).group_by(Heap.name).order_by(Heap.name)
        ],
        [("name 0", 100), ("name 1", 100), ("name 2", 100)],
    )
    Heap.drop_table()


def migrations(_):
    migrator = MySQLMigrator(database)
    run_migration(
        migrator.add_column("author", "country", peewee.CharField(max_length=2, default="XX"))
    )
    run_migration(
        migrator.rename_column("author", "country", "land"),
        migrator.add_index("author", ("land", "born"), False),
    )
    run_migration(migrator.add_not_null("author", "land"), migrator.drop_not_null("author", "land"))
    equal(list(database.execute_sql("SELECT DISTINCT land FROM author")), [("XX",)])
    run_migration(
        migrator.drop_index("author", "author_land_born"), migrator.drop_column("author", "land")
    )
    run_migration(
        migrator.rename_table("author", "writer"), migrator.rename_table("writer", "author")
    )
    equal(
        [column.name for column in database.get_columns("author")], ["id", "name", "born", "alive"]
    )


def reflection(_):
    models = Introspector.from_database(database).generate_models()
    equal(sorted(models), ["author", "book"])
    kinds = {
        name: type(field).__name__
        for name, field in models["book"]._meta.fields.items()
        if not name.startswith("author")
    }
    equal(
        {
            name: kinds[name]
            for name in ("title", "price", "published", "opening", "weight", "text", "pages")
        },
        {
            "title": "CharField",
            "price": "DecimalField",
            "published": "DateTimeField",
            "opening": "TimeField",
            "weight": "DoubleField" if "Double" in kinds["weight"] else "FloatField",
            "text": "TextField",
            "pages": "BigIntegerField",
        },
    )
    equal(models["author"].select().count(), 2)


def drop_tables(_):
    database.drop_tables([Book, Author])
    equal(database.get_tables(), [])


CHECKS = [
    connect,
    create_tables,
    rows,
    queries,
    changes,
    transactions,
    temporary,
    migrations,
    reflection,
    drop_tables,
]

if __name__ == "__main__":
    shared.run(CHECKS, None)
