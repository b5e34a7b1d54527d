"""Runs lines of statements on SQLite or DuckDB; the request is the first argument, as JSON.

Standard input: `run N` and N statements, one a line, answered by the nanoseconds that they took;
`ask` and a query, answered by its first row, tab-separated.
"""
import json
import os
import sys
import time

PIECE = 1024

request = json.loads(sys.argv[1])


def sqlite():
    os.environ["SQLITE_TMPDIR"] = request["temp_dir"]
    import sqlite3

    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute(f"PRAGMA temp_store = {request['store']}")
    connection.execute(f"PRAGMA temp.cache_size = -{request['memory_bytes'] // 1024}")
    return connection.cursor(), sqlite3.Error


def duckdb():
    try:
        import duckdb as module
    except ImportError:
        sys.exit("skipped: the Python package `duckdb` is not installed")
    connection = module.connect(config={
        "memory_limit": f"{request['memory_bytes'] // 1024}KiB",
        "threads": request["threads"],
        "temp_directory": request["temp_dir"],
    })
    connection.execute("SET enable_progress_bar = false")
    return connection, module.Error


def run(execute, statements):
    start = time.perf_counter_ns()
    for statement in statements:
        execute(statement)
    return time.perf_counter_ns() - start


connection, failure = {"sqlite": sqlite, "duckdb": duckdb}[request["system"]]()
execute = connection.execute
read = sys.stdin.readline
around = (["BEGIN"], ["COMMIT"]) if request["transaction"] else ([], [])
try:
    while command := read():
        word, _, count = command.partition(" ")
        if word == "run":
            left = int(count)
            elapsed = run(execute, around[0])
            while left > 0:
                piece = [read() for _ in range(min(left, PIECE))]
                left -= len(piece)
                elapsed += run(execute, piece)
            elapsed += run(execute, around[1])
            print(elapsed, flush=True)
        else:
            row = execute(read()).fetchone()
            print("\t".join("NULL" if value is None else str(value) for value in row), flush=True)
except failure as error:
    sys.exit(" ".join(str(error).split()))
