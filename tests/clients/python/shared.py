"""What the checks of all Python clients have in common: where the server is, and what is expected."""

import csv
import os
import sys
import traceback

HOST = os.environ["CHECK_HOST"]
PORT = int(os.environ["CHECK_PORT"])
SOCKET = os.environ["CHECK_SOCKET"]
USER = os.environ["CHECK_USER"]
NATIVE_USER = os.environ["CHECK_NATIVE_USER"]
PASSWORD = os.environ["CHECK_PASSWORD"]
DATABASE = os.environ["CHECK_DATABASE"]
CA = os.environ["CHECK_CA"]

with open(os.environ["CHECK_TYPES"], encoding="utf-8", newline="") as file:
    TYPES = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
TYPE_NAMES = ", ".join(column["column"] for column in TYPES)

# Statement, number, SQLSTATE.
ERRORS = [
    ("SELEC 1", 1064, "42000"),
    ("SELECT * FROM nothing", 1146, "42S02"),
    ("SELECT nothing FROM t", 1054, "42S22"),
    ("INSERT INTO t VALUES (1)", 1062, "23000"),
    ("INSERT INTO t VALUES (NULL)", 1048, "23000"),
    ("INSERT INTO t VALUES (300)", 1264, "22003"),
    ("SELECT nothing(1) FROM t WHERE", 1064, "42000"),
]

NUMBERS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)"
BIG_QUERY = f"{NUMBERS} SELECT a.i * 1000 + b.i, REPEAT('x', 100) FROM n AS a, n AS b"
BIG_ANSWER = (160_000, 400 * 1001 * 400 * 401 // 2)


def on_mariadb():
    """Whether the reference is asked: MariaDB, which has no JSON and no caching_sha2_password."""
    return os.environ.get("CHECK_SERVER") == "mariadb"


def field(column):
    """The number of a column's type in the protocol."""
    return 252 if column["kind"] == "json" and on_mariadb() else int(column["field"])


def type_statements(table):
    """Makes a table with a column of each type, and rows of lowest values, highest, and NULLs."""
    declared = ", ".join(f"{column['column']} {column['declared']} NULL" for column in TYPES)
    yield f"CREATE TEMPORARY TABLE {table} (id INT PRIMARY KEY, {declared})"
    for number, wanted in ((1, "low_literal"), (2, "high_literal")):
        values = ", ".join(column[wanted] for column in TYPES)
        yield f"INSERT INTO {table} VALUES ({number}, {values})"
    yield f"INSERT INTO {table} (id) VALUES (3)"


def shown_fraction(microsecond):
    return f".{microsecond:06}".rstrip("0") if microsecond else ""


def shown_datetime(value):
    return f"{value:%Y-%m-%d %H:%M:%S}".zfill(19) + shown_fraction(value.microsecond)


def shown_time(value):
    sign, value = ("-", -value) if value.days < 0 else ("", value)
    seconds = value.days * 86_400 + value.seconds
    clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return sign + clock + shown_fraction(value.microseconds)


def equal(found, expected, what=""):
    if isinstance(found, tuple) and found and isinstance(found[0], tuple):
        found = list(found)
    if found != expected:
        raise AssertionError(f"{what}{': ' if what else ''}{found!r:.300}, expected {expected!r:.300}")


def refused(kinds, act):
    """The error that `act` ends with, which is of these kinds."""
    try:
        act()
    except kinds as error:
        return error
    raise AssertionError("it was not refused")


def run(checks, driver):
    """Runs checks, prints a line for each, and ends the program: with 1 if one has failed."""
    failed = False
    for check in checks:
        name = check.__name__
        try:
            skipped = check(driver)
            print(f"{name}\tskip\t{skipped}" if skipped else f"{name}\tok", flush=True)
        except Exception as error:
            failed = True
            place = traceback.extract_tb(error.__traceback__)
            own = [frame for frame in place if frame.filename.endswith("checks.py")][-1]
            text = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"{name}\tFAIL\tline {own.lineno}: {text}", flush=True)
    sys.exit(1 if failed else 0)
