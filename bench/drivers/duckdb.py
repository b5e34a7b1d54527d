"""Runs one statement on DuckDB; the request is the first argument, as JSON."""
import json
import sys
import time

request = json.loads(sys.argv[1])
try:
    import duckdb
except ImportError:
    sys.exit("skipped: the Python package `duckdb` is not installed")

connection = duckdb.connect(config={
    "memory_limit": f"{request['memory_bytes'] // 1024}KiB",
    "threads": request["threads"],
    "temp_directory": request["temp_dir"],
    # DuckDB's own advice for work beyond memory.
    "preserve_insertion_order": False,
})
# A bar on standard output would be counted as a row.
connection.execute("SET enable_progress_bar = false")
try:
    for statement in request["settings"] + request["setup"]:
        connection.execute(statement)
    for _ in range(request["repeats"]):
        start = time.perf_counter()
        if request["emit"]:
            connection.execute(
                f"COPY ({request['statement']}) TO '/dev/stdout' (FORMAT csv, HEADER false, "
                "DELIMITER '\t', QUOTE '', ESCAPE '', NULLSTR 'NULL')"
            )
        else:
            connection.execute(request["statement"]).fetchall()
        elapsed = (time.perf_counter() - start) * 1000
        print(json.dumps({"elapsed_ms": elapsed}), file=sys.stderr)
except duckdb.Error as error:
    sys.exit(" ".join(str(error).split()))
