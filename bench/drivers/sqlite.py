"""Loads a table into SQLite, or runs one statement; the request is the first argument, as JSON."""
import json
import os
import sqlite3
import sys
import time

request = json.loads(sys.argv[1])
database = request["database"]


def rows(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield line.rstrip("\n").split("\t")


if sys.argv[2] == "load":
    partial = f"{database}.partial-{os.getpid()}"
    connection = sqlite3.connect(partial)
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute(f"CREATE TABLE {request['table']} ({request['columns']})")
    marks = ", ".join("?" * len(request["columns"].split(",")))
    connection.executemany(
        f"INSERT INTO {request['table']} VALUES ({marks})", rows(request["tsv"])
    )
    connection.commit()
    connection.close()
    os.rename(partial, database)
    sys.exit(0)

os.environ["SQLITE_TMPDIR"] = request["temp_dir"]
connection = sqlite3.connect(f"file:{database}?mode=ro&immutable=1", uri=True)
if request["unlimited"]:
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA cache_size = -4194304")
else:
    connection.execute("PRAGMA temp_store = FILE")
    connection.execute(f"PRAGMA soft_heap_limit = {request['memory_bytes']}")
    connection.execute(f"PRAGMA cache_size = -{request['memory_bytes'] // 2048}")
connection.execute(f"PRAGMA threads = {request['threads'] - 1}")
try:
    for _ in range(request["repeats"]):
        start = time.perf_counter()
        for row in connection.execute(request["statement"]):
            if request["emit"]:
                print("\t".join("NULL" if value is None else str(value) for value in row))
        elapsed = (time.perf_counter() - start) * 1000
        print(json.dumps({"elapsed_ms": elapsed}), file=sys.stderr)
except sqlite3.Error as error:
    sys.exit(str(error))
