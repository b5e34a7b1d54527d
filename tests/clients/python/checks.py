"""The checks of tests/clients with the Python drivers: checks.py pymysql|connector|connector-pure.

Each check connects anew, prints one line, and has its name and meaning in common with the other
clients; tests/clients/README.md says what each of them asks for.
"""

import decimal
import datetime
import json
import sys

import shared
from shared import CA, DATABASE, HOST, PASSWORD, PORT, SOCKET, TYPES, USER, equal, on_mariadb


class PyMySQL:
    """Text only: the driver has no prepared statements of the server."""

    prepares = False
    resets = False
    unbound = ()

    def __init__(self):
        import pymysql
        import pymysql.constants.CLIENT

        self.module = pymysql
        self.several = {"client_flag": pymysql.constants.CLIENT.MULTI_STATEMENTS}
        self.found_rows = {"client_flag": pymysql.constants.CLIENT.FOUND_ROWS}

    def connect(self, socket=False, tls=False, **options):
        address = {"unix_socket": SOCKET} if socket else {"host": HOST, "port": PORT}
        if tls:
            options["ssl"] = {"ca": CA, "check_hostname": True}
        else:
            options["ssl_disabled"] = True
        return self.module.connect(**self.account(address, options))

    @staticmethod
    def account(address, options):
        return {"user": USER, "password": PASSWORD, "database": DATABASE, **address, **options}

    def stream(self, connection):
        return connection.cursor(self.module.cursors.SSCursor)

    def number(self, error):
        # PyMySQL does not keep the SQLSTATE.
        return error.args[0], None

    def results(self, cursor, texts):
        cursor.execute(texts)
        found = [cursor.fetchall()]
        while cursor.nextset():
            found.append(cursor.fetchall())
        return found

    def id(self, connection):
        return connection.thread_id()

    def version(self, connection):
        return connection.get_server_info()


class Connector:
    """mysql-connector-python, with the C library of MySQL or in Python alone."""

    prepares = True
    resets = True
    several = {}
    # Columns whose values the driver garbles in prepared statements, against any server. In C: it
    # sends DOUBLE as FLOAT, cannot send the highest BIGINT and reads TIME wrong. In Python: it
    # reads one byte of a YEAR, and makes another time of a negative one.
    unbound_in_c = ("big_u", "real8", "span", "span6", "long_span")
    unbound_in_python = ("age", "long_span", "span")

    def __init__(self, pure):
        self.unbound = self.unbound_in_python if pure else self.unbound_in_c
        import mysql.connector

        self.module = mysql.connector
        self.pure = pure
        flag = mysql.connector.constants.ClientFlag.FOUND_ROWS
        self.found_rows = {"client_flags": [flag]}

    def connect(self, socket=False, tls=False, **options):
        address = {"unix_socket": SOCKET} if socket else {"host": HOST, "port": PORT}
        if tls:
            options.update(ssl_ca=CA, ssl_verify_cert=True, ssl_verify_identity=True)
        elif not socket and not self.without_tls(options):
            # The driver sends passwords of caching_sha2_password over TLS only.
            options.update(ssl_ca=CA)
        else:
            options["ssl_disabled"] = True
        return self.module.connect(
            use_pure=self.pure, **PyMySQL.account(address, options)
        )

    @staticmethod
    def without_tls(options):
        return on_mariadb() or options.get("user") == shared.NATIVE_USER

    def stream(self, connection):
        return connection.cursor(buffered=False)

    def number(self, error):
        return error.errno, error.sqlstate

    def results(self, cursor, texts):
        cursor.execute(texts)
        found = [cursor.fetchall()]
        while cursor.nextset():
            found.append(cursor.fetchall())
        return found

    def id(self, connection):
        return connection.connection_id

    def version(self, connection):
        return connection.server_info


DRIVERS = {
    "pymysql": PyMySQL,
    "connector": lambda: Connector(pure=False),
    "connector-pure": lambda: Connector(pure=True),
}


def refused(driver, act):
    """Number and SQLSTATE of the error that `act` ends with."""
    return driver.number(shared.refused(driver.module.Error, act))


def connect(driver):
    for _ in range(2):
        connection = driver.connect()
        cursor = connection.cursor()
        cursor.execute("SELECT 1, DATABASE(), CURRENT_USER(), CONNECTION_ID(), VERSION()")
        one, database, user, connection_id, version = cursor.fetchone()
        equal((one, database, connection_id), (1, DATABASE, driver.id(connection)))
        equal(user.split("@")[0], USER)
        equal(driver.version(connection).endswith(version), True)
        connection.ping(reconnect=False)
        connection.close()
    equal(refused(driver, lambda: driver.connect(password="wrong"))[0], 1045)
    equal(refused(driver, lambda: driver.connect(password=""))[0], 1045)
    equal(refused(driver, lambda: driver.connect(database="nowhere"))[0], 1049)


def native_password(driver):
    connection = driver.connect(user=shared.NATIVE_USER)
    cursor = connection.cursor()
    cursor.execute("SELECT CURRENT_USER()")
    equal(cursor.fetchone()[0].split("@")[0], shared.NATIVE_USER)
    wrong = {"user": shared.NATIVE_USER, "password": "wrong"}
    equal(refused(driver, lambda: driver.connect(**wrong))[0], 1045)


def tls(driver):
    connection = driver.connect(tls=True)
    cursor = connection.cursor()
    cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
    equal(cursor.fetchone()[1] != "", True)


def socket(driver):
    connection = driver.connect(socket=True)
    cursor = connection.cursor()
    cursor.execute("SELECT 1")
    equal(cursor.fetchone()[0], 1)


CLASSES = {
    "integer": int,
    "decimal": decimal.Decimal,
    "float": float,
    "date": datetime.date,
    "datetime": datetime.datetime,
    "time": datetime.timedelta,
    "long_time": datetime.timedelta,
    "year": int,
    "text": str,
    "json": str,
    "bytes": bytes,
}


def shown(kind, value):
    """The text by which types.tsv knows a value."""
    if value is None:
        return None
    if kind == "bits":
        # mysql-connector-python makes a number of it.
        return value.hex() if isinstance(value, bytes) else f"{value:04x}"
    if kind == "json" and isinstance(value, (bytes, bytearray)):
        value = value.decode()
    if kind == "text" and isinstance(value, set):
        return ",".join(sorted(value))
    if kind == "bytes" and isinstance(value, (bytearray, memoryview)):
        value = bytes(value)
    if not isinstance(value, CLASSES[kind]):
        raise AssertionError(f"{value!r} is {type(value).__name__}, wanted {kind}")
    if kind == "float":
        return repr(value)
    if kind == "decimal":
        return f"{value:f}"
    if kind == "bytes":
        return value.hex()
    if kind in ("time", "long_time"):
        return shared.shown_time(value)
    if kind == "json":
        return json.dumps(json.loads(value), ensure_ascii=False)
    return str(value) if kind != "datetime" else shared.shown_datetime(value)


def check_rows(rows, columns):
    """Rows of the table of all types: lowest values, highest values, NULLs."""
    for row, wanted in zip(rows, ("low", "high", None), strict=True):
        for column, value in zip(columns, row, strict=True):
            expected = column.get(wanted)
            found = shown(column["kind"], value)
            if column["kind"] == "float" and expected is not None:
                found, expected = float(found), float(expected)
            equal(found, expected, f"{column['column']} ({wanted or 'NULL'})")


def make_types(connection):
    cursor = connection.cursor()
    cursor.execute("SET time_zone = '+00:00'")
    for statement in shared.type_statements("kept"):
        cursor.execute(statement)
    return cursor


SELECT_TYPES = f"SELECT {shared.TYPE_NAMES} FROM kept ORDER BY id"


def types(driver):
    connection = driver.connect()
    cursor = make_types(connection)
    cursor.execute(SELECT_TYPES)
    check_rows(cursor.fetchall(), TYPES)


def nulls(driver):
    connection = driver.connect()
    cursor = make_types(connection)
    for column in TYPES:
        name = column["column"]
        cursor.execute(f"SELECT COUNT(*), COUNT({name}), MIN(id) FROM kept WHERE {name} IS NULL")
        equal(cursor.fetchall(), [(1, 0, 3)], name)
    cursor.execute("SELECT NULL, id FROM kept WHERE age <=> %s", (None,))
    equal(cursor.fetchall(), [(None, 3)])


def metadata(driver):
    connection = driver.connect()
    cursor = make_types(connection)
    cursor.execute(SELECT_TYPES)
    for column, told in zip(TYPES, cursor.description, strict=True):
        equal((told[0], told[1]), (column["column"], shared.field(column)))
    cursor.fetchall()
    cursor.execute("SELECT id AS renamed, COUNT(*) FROM kept GROUP BY id")
    equal([column[0] for column in cursor.description], ["renamed", "COUNT(*)"])
    # Whether NULL may be there.
    equal([bool(column[6]) for column in cursor.description], [False, False])
    cursor.fetchall()


def prepared(driver):
    connection = driver.connect()
    cursor = make_types(connection)
    columns = [column for column in TYPES if column["column"] not in driver.unbound]
    names = ", ".join(column["column"] for column in columns)
    cursor.execute(f"SELECT {names} FROM kept ORDER BY id")
    rows = cursor.fetchall()
    cursor.execute("CREATE TEMPORARY TABLE again LIKE kept")
    arguments = {"prepared": True} if driver.prepares else {}
    cursor.close()
    cursor = connection.cursor(**arguments)
    marks = ", ".join(["%s"] * (len(columns) + 1))
    for number, row in enumerate(rows, start=1):
        # A set is read and not written.
        values = [",".join(sorted(value)) if isinstance(value, set) else value for value in row]
        cursor.execute(f"INSERT INTO again (id, {names}) VALUES ({marks})", [number, *values])
        equal(cursor.rowcount, 1)
    cursor.execute(f"SELECT {names} FROM again WHERE id < %s ORDER BY id", (100,))
    check_rows(cursor.fetchall(), columns)
    cursor.execute("CREATE TEMPORARY TABLE numbers (id INT PRIMARY KEY, name VARCHAR(20))")
    for number in range(100):
        cursor.execute("INSERT INTO numbers VALUES (%s, %s)", (number, f"n {number}"))
    for number in range(0, 100, 9):
        cursor.execute("SELECT name FROM numbers WHERE id = %s", (number,))
        equal(cursor.fetchall(), [(f"n {number}",)])
    cursor.execute("SELECT COUNT(*) FROM numbers WHERE name LIKE %s AND id > %s", ("n 1%", 1))
    equal(cursor.fetchall(), [(10,)])


def errors(driver):
    connection = driver.connect()
    cursor = connection.cursor()
    cursor.execute("CREATE TEMPORARY TABLE t (a TINYINT NOT NULL PRIMARY KEY)")
    cursor.execute("INSERT INTO t VALUES (1)")
    for statement, number, state in shared.ERRORS:
        found = refused(driver, lambda: cursor.execute(statement))
        equal(found[0], number, statement)
        equal(found[1] in (None, state), True, statement)
    try:
        cursor.execute("INSERT INTO t VALUES (1)")
    except driver.module.IntegrityError as error:
        equal("Duplicate entry '1' for key" in str(error), True)
    cursor.execute("SET sql_mode = ''")
    cursor.execute("INSERT INTO t VALUES (300)")
    cursor.execute("SHOW WARNINGS")
    warning = cursor.fetchall()
    equal(warning, [("Warning", 1264, "Out of range value for column 'a' at row 1")])
    cursor.execute("SELECT a FROM t ORDER BY a")
    equal(cursor.fetchall(), [(1,), (127,)])


def transactions(driver):
    connection = driver.connect(autocommit=False)
    cursor = connection.cursor()
    cursor.execute("CREATE TEMPORARY TABLE t (a INT)")
    cursor.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    cursor.execute("INSERT INTO t VALUES (2)")
    cursor.execute("SAVEPOINT s")
    cursor.execute("INSERT INTO t VALUES (3)")
    cursor.execute("ROLLBACK TO SAVEPOINT s")
    cursor.execute("SELECT a FROM t ORDER BY a")
    equal(cursor.fetchall(), [(1,), (2,)])
    connection.rollback()
    cursor.execute("SELECT a, @@autocommit FROM t")
    equal(cursor.fetchall(), [(1, 0)])
    if driver.module.__name__ == "pymysql":
        connection.autocommit(True)
        connection.begin()
    else:
        connection.rollback()
        connection.autocommit = True
        connection.start_transaction(isolation_level="READ COMMITTED")
        equal(connection.in_transaction, True)
    cursor.execute("DELETE FROM t")
    connection.rollback()
    cursor.execute("SELECT a, @@autocommit FROM t")
    equal(cursor.fetchall(), [(1, 1)])


def several(driver):
    connection = driver.connect(**driver.several)
    cursor = connection.cursor()
    found = driver.results(
        cursor,
        "CREATE TEMPORARY TABLE t (a INT); INSERT INTO t VALUES (1), (2); SELECT a FROM t; SELECT 'x'",
    )
    equal([list(rows) for rows in found], [[], [], [(1,), (2,)], [("x",)]])


def big_result(driver):
    connection = driver.connect()
    cursor = driver.stream(connection)
    cursor.execute(shared.BIG_QUERY)
    count = total = 0
    while rows := cursor.fetchmany(10_000):
        count += len(rows)
        total += sum(row[0] for row in rows)
        equal(rows[0][1], "x" * 100)
    equal((count, total), shared.BIG_ANSWER)
    cursor.close()
    cursor = connection.cursor()
    cursor.execute("SELECT REPEAT('y', 20000000)")
    equal(cursor.fetchone()[0] == "y" * 20_000_000, True)
    cursor.execute("SELECT LENGTH(%s)", ("z" * 20_000_000,))
    equal(cursor.fetchone()[0], 20_000_000)


def temp_tables(driver):
    connection = driver.connect(autocommit=True, **driver.found_rows)
    cursor = connection.cursor()
    cursor.execute(
        "CREATE TEMPORARY TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, name VARCHAR(20), KEY (name))"
    )
    cursor.execute("INSERT INTO t (name) VALUES ('first')")
    equal(cursor.lastrowid, 1)
    names = [(f"name {number % 10}",) for number in range(999)]
    cursor.executemany("INSERT INTO t (name) VALUES (%s)", names)
    equal(cursor.rowcount, 999)
    cursor.execute("CREATE TEMPORARY TABLE u AS SELECT name, COUNT(*) AS n FROM t GROUP BY name")
    cursor.execute(
        "SELECT t.name, n, COUNT(*) FROM t JOIN u USING (name) GROUP BY name, n HAVING n < 100 ORDER BY name"
    )
    equal(list(cursor.fetchall()), [("first", 1, 1), ("name 9", 99, 99)])
    cursor.execute("UPDATE t SET name = 'first' WHERE id <= 2")
    equal(cursor.rowcount, 2)
    cursor.execute("DELETE FROM t WHERE name = 'first'")
    equal(cursor.rowcount, 2)
    other = driver.connect()
    stranger = other.cursor()
    equal(refused(driver, lambda: stranger.execute("SELECT * FROM t"))[0], 1146)
    cursor.execute("DROP TEMPORARY TABLE t, u")
    equal(refused(driver, lambda: cursor.execute("SELECT * FROM t"))[0], 1146)


def check_reset(driver, connection):
    cursor = connection.cursor()
    equal(refused(driver, lambda: cursor.execute("SELECT * FROM t"))[0], 1146)
    cursor.execute("SELECT @a, @@sql_select_limit > 3, DATABASE()")
    equal(list(cursor.fetchall()), [(None, 1, DATABASE)])


def reset(driver):
    if not driver.resets:
        return "the driver has no reset"
    connection = driver.connect()
    before = driver.id(connection)
    for name in ("cmd_reset_connection", "cmd_change_user"):
        cursor = connection.cursor()
        cursor.execute("CREATE TEMPORARY TABLE t (a INT)")
        cursor.execute("SET @a = 5, sql_select_limit = 3")
        cursor.close()
        arguments = (USER, PASSWORD, DATABASE) if name == "cmd_change_user" else ()
        getattr(connection, name)(*arguments)
        check_reset(driver, connection)
    equal(driver.id(connection), before)


def pool(driver):
    if not driver.resets:
        return "the driver has no pool"
    from mysql.connector.pooling import MySQLConnectionPool

    options = {"host": HOST, "port": PORT, "use_pure": driver.pure, "pool_name": "checks"}
    if driver.without_tls({}):
        options["ssl_disabled"] = True
    connections = MySQLConnectionPool(pool_size=1, **PyMySQL.account(options, {}))
    connection = connections.get_connection()
    cursor = connection.cursor()
    cursor.execute("CREATE TEMPORARY TABLE t (a INT)")
    cursor.execute("SET @a = 5, sql_select_limit = 3")
    cursor.close()
    before = connection.connection_id
    connection.close()
    connection = connections.get_connection()
    equal(connection.connection_id, before)
    check_reset(driver, connection)
    connection.close()


CHECKS = [
    connect, native_password, tls, socket, types, nulls, metadata, prepared, errors, transactions,
    several, big_result, temp_tables, reset, pool,
]

if __name__ == "__main__":
    shared.run(CHECKS, DRIVERS[sys.argv[1]]())
