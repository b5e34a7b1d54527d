"""The checks of tests/clients with SQLAlchemy over PyMySQL: its types, its pool, its reflection."""

import datetime
import decimal
import json
import re

import sqlalchemy as sa
from sqlalchemy.dialects import mysql as own

import checks
import shared
from shared import DATABASE, HOST, NATIVE_USER, PASSWORD, PORT, SOCKET, TYPES, USER, equal, on_mariadb

# How SQLAlchemy declares the types of types.tsv.
DECLARED = {
    "tiny": own.TINYINT(), "tiny_u": own.TINYINT(unsigned=True), "flag": sa.Boolean(),
    "small": sa.SmallInteger(), "small_u": own.SMALLINT(unsigned=True),
    "medium": own.MEDIUMINT(), "medium_u": own.MEDIUMINT(unsigned=True),
    "whole": sa.Integer(), "whole_u": own.INTEGER(unsigned=True),
    "big": sa.BigInteger(), "big_u": own.BIGINT(unsigned=True), "bits": own.BIT(10),
    "money": sa.Numeric(20, 4), "wide": sa.Numeric(65, 30), "plain": sa.Numeric(5),
    "real4": own.FLOAT(), "real8": own.DOUBLE(asdecimal=False),
    "day": sa.Date(), "moment": sa.DateTime(), "moment3": own.DATETIME(fsp=3),
    "moment6": own.DATETIME(fsp=6), "stamp": sa.TIMESTAMP(), "stamp6": own.TIMESTAMP(fsp=6),
    "span": own.TIME(), "span6": own.TIME(fsp=6), "long_span": own.TIME(), "age": own.YEAR(),
    "fixed": sa.CHAR(5), "name": sa.String(40), "tiny_text": own.TINYTEXT(), "body": sa.Text(),
    "medium_text": own.MEDIUMTEXT(), "long_text": own.LONGTEXT(),
    "fixed_bytes": sa.BINARY(4), "bytes": sa.VARBINARY(40), "tiny_blob": own.TINYBLOB(),
    "blob_": sa.LargeBinary(), "medium_blob": own.MEDIUMBLOB(), "long_blob": own.LONGBLOB(),
    "word": sa.Enum("small", "large"), "words": own.SET("a", "b", "c"), "doc": sa.JSON(),
}


# A TIME is one of a day to SQLAlchemy.
COLUMNS = [column for column in TYPES if column["column"] not in ("span", "long_span")]


class SQLAlchemy:
    """Engines for the account, each with a pool of one connection."""

    def engine(self, user=USER, password=PASSWORD, database=DATABASE, query=(), **arguments):
        address = sa.URL.create(
            "mysql+pymysql", user, password, HOST, PORT, database, query=dict(query)
        )
        arguments.setdefault("ssl_disabled", True)
        return sa.create_engine(address, pool_size=1, max_overflow=0, connect_args=arguments)


def number(act):
    """The number of the error that `act` ends with."""
    return shared.refused(sa.exc.DBAPIError, act).orig.args[0]


def connect(driver):
    engine = driver.engine()
    with engine.connect() as connection:
        row = connection.execute(sa.text("SELECT 1, DATABASE(), CURRENT_USER()")).one()
        equal((row[0], row[1], row[2].split("@")[0]), (1, DATABASE, USER))
        equal(connection.dialect.is_mariadb, on_mariadb())
        version = (10, 11) if on_mariadb() else (8, 4)
        equal(connection.dialect.server_version_info[:2], version)
    equal(number(driver.engine(password="wrong").connect), 1045)
    equal(number(driver.engine(database="nowhere").connect), 1049)


def native_password(driver):
    with driver.engine(user=NATIVE_USER).connect() as connection:
        user = connection.execute(sa.text("SELECT CURRENT_USER()")).scalar_one()
        equal(user.split("@")[0], NATIVE_USER)
    equal(number(driver.engine(user=NATIVE_USER, password="wrong").connect), 1045)


def tls(driver):
    engine = driver.engine(ssl={"ca": shared.CA, "check_hostname": True}, ssl_disabled=False)
    with engine.connect() as connection:
        cipher = connection.execute(sa.text("SHOW STATUS LIKE 'Ssl_cipher'")).one()
        equal(cipher[1] != "", True)


def socket(driver):
    with driver.engine(query={"unix_socket": SOCKET}).connect() as connection:
        equal(connection.execute(sa.text("SELECT 1")).scalar_one(), 1)


def make_types(connection):
    connection.execute(sa.text("SET time_zone = '+00:00'"))
    for statement in shared.type_statements("kept"):
        # No marks of sa.text here, but those of the driver.
        connection.exec_driver_sql(statement.replace("%", "%%"))
    return declared("kept")


def declared(name):
    columns = [sa.Column(column["column"], DECLARED[column["column"]]) for column in COLUMNS]
    key = sa.Column("id", sa.Integer, primary_key=True, autoincrement=False)
    return sa.Table(name, sa.MetaData(), key, *columns, prefixes=["TEMPORARY"])


def read(connection, table):
    rows = connection.execute(sa.select(table).order_by(table.c.id)).all()
    equal([row.id for row in rows], [1, 2, 3])
    return rows


def comparable(row):
    """A row as the other drivers have it."""
    back = {
        "flag": int,
        "span": lambda value: datetime.datetime.combine(datetime.date.min, value) - datetime.datetime.min,
        "doc": lambda value: json.dumps(value, ensure_ascii=False),
    }
    back["span6"] = back["span"]
    found = row._mapping
    keep = lambda value: value
    return [
        found[name] if found[name] is None else back.get(name, keep)(found[name])
        for name in (column["column"] for column in COLUMNS)
    ]


def types(driver):
    with driver.engine().connect() as connection:
        rows = read(connection, make_types(connection))
        checks.check_rows([comparable(row) for row in rows], COLUMNS)
        equal(isinstance(rows[0].flag, bool), True)
        equal(isinstance(rows[0].words, set), True)


def nulls(driver):
    with driver.engine().connect() as connection:
        table = make_types(connection)
        for column in COLUMNS:
            is_null = table.c[column["column"]].is_(None)
            found = connection.execute(sa.select(table.c.id).where(is_null)).scalars().all()
            equal(found, [3], column["column"])


def metadata(driver):
    """Reflection of the table: the same types as it was declared with."""
    with driver.engine().connect() as connection:
        make_types(connection)
        found = sa.Table("kept", sa.MetaData(), autoload_with=connection)
        equal(list(found.c.keys()), ["id", *(column["column"] for column in TYPES)])
        equal([column.name for column in found.primary_key], ["id"])
        for column in COLUMNS:
            kind = found.c[column["column"]].type
            wanted = DECLARED[column["column"]]
            if column["column"] == "flag":
                wanted = own.TINYINT(display_width=1)
            if column["kind"] == "json" and on_mariadb():
                wanted = own.LONGTEXT()
            spelled, expected = (compiled(each, connection) for each in (kind, wanted))
            equal(spelled, expected, column["column"])
            equal(getattr(kind, "unsigned", False) or False, column["declared"].endswith("UNSIGNED"))
        equal(sa.inspect(connection).has_table("nothing"), False)


def compiled(kind, connection):
    """How a type is written, but for its character set, and names that mean the same."""
    text = kind.compile(dialect=connection.dialect)
    text = re.split(" (?:CHARACTER SET|COLLATE)", text)[0].replace("NUMERIC", "DECIMAL")
    text = text.replace("DECIMAL(5)", "DECIMAL(5, 0)").replace("BOOL", "TINYINT")
    # MariaDB has widths of integers.
    return re.sub(r"(INT|INTEGER|YEAR)\(\d+\)", r"\1", text) if on_mariadb() else text


def prepared(driver):
    """Rows through the types of SQLAlchemy into another table, and statements with parameters."""
    with driver.engine().connect() as connection:
        rows = read(connection, make_types(connection))
        again = declared("again")
        again.create(connection)
        # NULL in JSON would be the JSON value null.
        values = [{**row._mapping} for row in rows]
        for row in values:
            row["doc"] = sa.null() if row["doc"] is None else row["doc"]
            connection.execute(again.insert(), row)
        checks.check_rows([comparable(row) for row in read(connection, again)], COLUMNS)
        query = sa.select(again.c.id).where(
            again.c.money < sa.bindparam("limit"), again.c.stamp < datetime.datetime(2030, 1, 1)
        )
        found = connection.execute(query, {"limit": decimal.Decimal("0.5")}).scalars().all()
        equal(found, [1])


def errors(driver):
    with driver.engine().connect() as connection:
        connection.execute(sa.text("CREATE TEMPORARY TABLE t (a TINYINT NOT NULL PRIMARY KEY)"))
        connection.execute(sa.text("INSERT INTO t VALUES (1)"))
        for statement, code, _ in shared.ERRORS:
            equal(number(lambda: connection.execute(sa.text(statement))), code, statement)
        try:
            connection.execute(sa.text("INSERT INTO t VALUES (1)"))
        except sa.exc.IntegrityError as error:
            equal("Duplicate entry '1'" in str(error), True)
        equal(connection.execute(sa.text("SELECT a FROM t")).scalars().all(), [1])


def transactions(driver):
    engine = driver.engine()
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TEMPORARY TABLE t (a INT)"))
        connection.execute(sa.text("INSERT INTO t VALUES (1)"))
        connection.commit()
        with connection.begin():
            connection.execute(sa.text("INSERT INTO t VALUES (2)"))
            with connection.begin_nested() as nested:
                connection.execute(sa.text("INSERT INTO t VALUES (3)"))
                nested.rollback()
        connection.execute(sa.text("INSERT INTO t VALUES (4)"))
        connection.rollback()
        found = connection.execute(sa.text("SELECT a FROM t ORDER BY a")).scalars().all()
        equal(found, [1, 2])
    isolated = engine.execution_options(isolation_level="AUTOCOMMIT")
    with isolated.connect() as connection:
        equal(connection.execute(sa.text("SELECT @@autocommit")).scalar_one(), 1)
    isolated = engine.execution_options(isolation_level="READ COMMITTED")
    with isolated.connect() as connection:
        equal(connection.get_isolation_level(), "READ COMMITTED")


def several(driver):
    return "SQLAlchemy runs one statement at a time"


def big_result(driver):
    with driver.engine().connect() as connection:
        streaming = connection.execution_options(stream_results=True, yield_per=10_000)
        count = total = 0
        for rows in streaming.execute(sa.text(shared.BIG_QUERY)).partitions():
            count += len(rows)
            total += sum(row[0] for row in rows)
        equal((count, total), shared.BIG_ANSWER)
        query = sa.select(sa.func.length(sa.literal("z" * 20_000_000)), sa.func.repeat("y", 20_000_000))
        length, text = connection.execute(query).one()
        equal((length, len(text)), (20_000_000, 20_000_000))


def temp_tables(driver):
    key = sa.Column("id", sa.Integer, primary_key=True)
    name = sa.Column("name", sa.String(20), index=True)
    table = sa.Table("t", sa.MetaData(), key, name, prefixes=["TEMPORARY"])
    with driver.engine().connect() as connection:
        table.create(connection)
        equal(connection.execute(table.insert(), {"name": "first"}).inserted_primary_key, (1,))
        rows = [{"name": f"name {number % 10}"} for number in range(999)]
        equal(connection.execute(table.insert(), rows).rowcount, 999)
        count = sa.func.count().label("n")
        query = sa.select(table.c.name, count).group_by(table.c.name).having(count < 100)
        equal(connection.execute(query.order_by(table.c.name)).all(), [("first", 1), ("name 9", 99)])
        changed = connection.execute(table.update().where(table.c.id <= 2), {"name": "first"})
        equal(changed.rowcount, 2)
        equal(connection.execute(table.delete().where(table.c.name == "first")).rowcount, 2)
        with driver.engine().connect() as other:
            equal(number(lambda: other.execute(sa.select(table))), 1146)
        connection.execute(sa.text("DROP TEMPORARY TABLE t"))
        equal(number(lambda: connection.execute(sa.select(table))), 1146)


def reset(driver):
    return "SQLAlchemy leaves it to the driver, which has none"


def pool(driver):
    """The pool only rolls back: temporary tables stay with the connection."""
    engine = driver.engine()
    with engine.connect() as connection:
        before = connection.execute(sa.text("SELECT CONNECTION_ID()")).scalar_one()
        connection.execute(sa.text("CREATE TEMPORARY TABLE t (a INT)"))
        connection.execute(sa.text("INSERT INTO t VALUES (1)"))
        connection.commit()
        connection.execute(sa.text("INSERT INTO t VALUES (2)"))
    with engine.connect() as connection:
        equal(connection.execute(sa.text("SELECT CONNECTION_ID()")).scalar_one(), before)
        equal(connection.execute(sa.text("SELECT a FROM t")).scalars().all(), [1])


CHECKS = [
    connect, native_password, tls, socket, types, nulls, metadata, prepared, errors, transactions,
    several, big_result, temp_tables, reset, pool,
]

if __name__ == "__main__":
    shared.run(CHECKS, SQLAlchemy())
