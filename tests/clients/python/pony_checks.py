"""What programs with Pony do."""

import datetime
import decimal
import sys
import uuid

# Pony would take mysqlclient, and does not know its newer versions; PyMySQL is its other driver.
sys.modules["MySQLdb"] = None

from pony import orm

import shared
from shared import equal, on_mariadb, refused

database = orm.Database()


class Author(database.Entity):
    name = orm.Required(str, 100, unique=True)
    born = orm.Optional(datetime.date)
    alive = orm.Required(bool, default=True)
    books = orm.Set("Book")


class Book(database.Entity):
    author = orm.Required(Author)
    title = orm.Required(str, index=True)
    price = orm.Required(decimal.Decimal, 10, 2)
    published = orm.Optional(datetime.datetime)
    opening = orm.Optional(datetime.time)
    took = orm.Optional(datetime.timedelta)
    reference = orm.Required(uuid.UUID, default=uuid.uuid4)
    cover = orm.Optional(bytes)
    weight = orm.Optional(float)
    text = orm.Optional(orm.LongStr)
    pages = orm.Required(int, size=64, unsigned=True, default=0)
    details = orm.Optional(orm.Json)
    words = orm.Set("Word")
    orm.composite_key(author, title)
    orm.composite_index(published, price)


class Word(database.Entity):
    name = orm.PrimaryKey(str, 20)
    books = orm.Set(Book)


def mapping(_):
    database.bind(
        "mysql",
        host=shared.HOST,
        port=shared.PORT,
        user=shared.USER,
        passwd=shared.PASSWORD,
        db=shared.DATABASE,
    )
    database.generate_mapping(create_tables=True)
    database.disconnect()


@orm.db_session
def rows(_):
    anna = Author(name="Änna", born=datetime.date(1970, 2, 28))
    red = Word(name="red")
    published = datetime.datetime(2026, 2, 3, 4, 5, 6)
    made = Book(
        author=anna,
        title="One",
        price=decimal.Decimal("12.50"),
        published=published,
        opening=datetime.time(23, 59, 58),
        took=datetime.timedelta(hours=30),
        cover=b"\0\xff'\\",
        weight=0.1,
        text="ä" * 20_000,
        pages=2**63,
        words=[red],
        details={"color": "red", "sizes": [1, None]},
    )
    bob = Author(name="Bob")
    for number in range(50):
        Book(author=bob, title=f"Volume {number}", price=number)
    orm.commit()
    key, reference = made.id, made.reference
    orm.rollback()
    book = Book[key]
    equal(
        (
            book.price,
            book.published,
            book.opening,
            book.took,
            book.reference,
            bytes(book.cover),
            book.weight,
            len(book.text),
            book.pages,
        ),
        (
            decimal.Decimal("12.50"),
            published,
            datetime.time(23, 59, 58),
            datetime.timedelta(hours=30),
            reference,
            b"\0\xff'\\",
            0.1,
            20_000,
            2**63,
        ),
    )
    equal(
        (book.details, [word.name for word in book.words]),
        ({"color": "red", "sizes": [1, None]}, ["red"]),
    )


@orm.db_session
def queries(_):
    equal(
        orm.select(
            (a.name, orm.count(b), orm.sum(b.price)) for a in Author for b in a.books
        ).order_by(-2)[:],
        [("Bob", 50, decimal.Decimal("1225.00")), ("Änna", 1, decimal.Decimal("12.50"))],
    )
    equal(
        [
            b.title
            for b in orm.select(
                b
                for b in Book
                if b.price >= 10 and b.title.startswith("Volume") and b.author.name == "Bob"
            )
            .order_by(orm.desc(Book.price))
            .page(2, 3)
        ],
        ["Volume 46", "Volume 45", "Volume 44"],
    )
    equal(
        orm.select(
            a for a in Author if orm.exists(b for b in Book if b.author == a and b.price > 40)
        )
        .first()
        .name,
        "Bob",
    )
    equal([a.name for a in orm.select(a for a in Author if "red" in a.books.words.name)], ["Änna"])
    equal(
        (
            orm.max(b.price for b in Book),
            orm.avg(b.weight for b in Book),
            orm.count(b for b in Book if b.published.year == 2026),
        ),
        (decimal.Decimal("49.00"), 0.1, 1),
    )
    equal(
        Book.select(
            lambda b: orm.between(b.price, 10, 20) and b.title not in ("One", "Volume 15")
        ).count(),
        10,
    )
    equal(
        orm.select((b.published.month, orm.count()) for b in Book if b.published is not None)[:],
        [(2, 1)],
    )
    equal(
        sorted(database.select("SELECT name FROM author WHERE id IN (SELECT author FROM book)")),
        ["Bob", "Änna"],
    )
    equal(Author.select().prefetch(Author.books).order_by(Author.id).first().books.count(), 1)


@orm.db_session
def changes(_):
    bob = Author.get(name="Bob")
    bob.set(born=datetime.date(1980, 1, 1), alive=False)
    orm.flush()
    for book in bob.books.select(lambda b: b.price < 3):
        book.text = f"about {book.title}"
    equal(orm.delete(b for b in Book if b.price >= 45 and b.price < 50), 5)
    equal(Book.select(lambda b: b.price > 40).delete(bulk=True), 4)
    orm.commit()
    equal((Book.select().count(), Author.get_for_update(name="Bob").alive), (42, False))
    refused(orm.IntegrityError, lambda: database.insert("author", name="Bob", alive=True))
    orm.rollback()
    Book.get(title="Volume 3").delete()
    orm.commit()
    equal(Book.select().count(), 41)


def transactions(_):
    with orm.db_session:
        Word(name="kept")
    try:
        with orm.db_session:
            Word(name="lost")
            orm.flush()
            raise KeyError
    except KeyError:
        pass
    with orm.db_session:
        names = sorted(word.name for word in Word.select())
    # Shared tables keep their rows, as those of MyISAM do.
    equal(names, ["kept", "red"] if on_mariadb() else ["kept", "lost", "red"])


@orm.db_session
def json_queries(_):
    if not on_mariadb():
        return "there are no functions for parts of JSON"
    equal(orm.select(b.title for b in Book if b.details["color"] == "red")[:], ["One"])
    equal(orm.select(b.details["sizes"][0] for b in Book if "color" in b.details)[:], [1])


def drop_tables(_):
    database.drop_all_tables(with_all_data=True)
    with orm.db_session:
        equal(list(database.execute("SHOW TABLES")), [])


CHECKS = [mapping, rows, queries, changes, transactions, json_queries, drop_tables]

if __name__ == "__main__":
    shared.run(CHECKS, None)
