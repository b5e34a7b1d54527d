"""Prometheus' mysqld_exporter beside the server: exporter_checks.py PROGRAM."""

import os
import re
import subprocess
import sys
import tempfile
import urllib.request

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
)

import shared
from service import Service
from shared import equal, on_mariadb

# Collectors that have nothing to ask here. MariaDB 10.11 has no group replication, workers of MySQL
# and columns of InnoDB as MySQL 8 has them, and its performance_schema is off; Mayfly has no
# counters of InnoDB. TokuDB is nowhere.
OTHERS = {"engine_tokudb_status"} | (
    {
        "info_schema.innodb_tablespaces",
        "perf_schema.eventsstatementssum",
        "perf_schema.replication_applier_status_by_worker",
        "perf_schema.replication_group_member_stats",
        "perf_schema.replication_group_members",
    }
    if on_mariadb()
    else {"info_schema.innodb_metrics"}
)


class Exporter(Service):
    """The program with some collectors."""

    def __init__(self, program, folder, *flags):
        super().__init__()
        self.log = os.path.join(folder, f"log{self.port}")
        source = f"{shared.USER}:{shared.PASSWORD}@tcp({shared.HOST}:{shared.PORT})/"
        command = [program, f"--web.listen-address=127.0.0.1:{self.port}", *flags]
        with open(self.log, "xb") as log:
            self.start(command, log, DATA_SOURCE_NAME=source, HOME=folder)

    def metrics(self):
        """Names with their labels, and values; and what was logged of collectors that failed."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        found = dict(line.rsplit(" ", 1) for line in lines if line.startswith("mysql_"))
        with open(self.log, encoding="utf-8", errors="replace") as file:
            logged = file.read()
        wrong = re.findall(r"level=error .*?scraper=(\S+) err=(.*)", logged)
        # An error of the exporter as a whole.
        wrong += [
            ("", line) for line in re.findall(r"level=error .*", logged) if "scraper=" not in line
        ]
        return found, dict(wrong)


def flags_of(program):
    """A flag for each collector that the program knows."""
    told = subprocess.run([program, "--help"], capture_output=True, text=True, check=False)
    names = re.findall(
        r"^ +--((?:\[no-\])?collect\.[a-z_.]+)(?: |$)", told.stdout + told.stderr, re.MULTILINE
    )
    options = ("heartbeat.utc", "processes_by_user", "processes_by_host", "user.privileges")
    return [f"--{name.removeprefix('[no-]')}" for name in names if not name.endswith(options)]


def defaults(place):
    """What is collected when nobody asks for more."""
    with Exporter(*place) as exporter:
        found, failed = exporter.metrics()
        equal(failed, {})
        equal((found["mysql_up"], found["mysql_exporter_last_scrape_error"]), ("1", "0"))
        for name in (
            "mysql_global_status_queries",
            "mysql_global_status_threads_connected",
            "mysql_global_status_uptime",
            'mysql_global_status_commands_total{command="select"}',
            "mysql_global_variables_max_connections",
            "mysql_global_variables_tmp_table_size",
            "mysql_global_status_created_tmp_tables",
            "mysql_global_status_bytes_received",
            "mysql_global_status_slow_queries",
            "mysql_global_variables_innodb_buffer_pool_size",
            'mysql_global_status_handlers_total{handler="read_rnd_next"}',
            "mysql_global_status_connections",
        ):
            equal(float(found.get(name, "nan")) >= 0, True, name)
        equal(any(name.startswith("mysql_version_info{") for name in found), True)
        # Counters go on from scrape to scrape.
        again, _ = exporter.metrics()
        name = "mysql_global_status_queries"
        equal(float(again[name]) > float(found[name]), True)


def collectors(place):
    """Every collector there is."""
    flags = flags_of(place[0])
    equal(len(flags) > 30, True, str(flags))
    # The one of pt-heartbeat reads its table.
    import MySQLdb

    connection = MySQLdb.connect(
        host=shared.HOST,
        port=shared.PORT,
        user=shared.USER,
        password=shared.PASSWORD,
        autocommit=True,
    )
    cursor = connection.cursor()
    cursor.execute("CREATE DATABASE IF NOT EXISTS heartbeat")
    cursor.execute(
        "CREATE TABLE IF NOT EXISTS heartbeat.heartbeat (ts VARCHAR(26) NOT NULL, server_id INT UNSIGNED NOT NULL PRIMARY KEY)"
    )
    cursor.execute("REPLACE INTO heartbeat.heartbeat VALUES ('2026-01-02T03:04:05.000006', 1)")
    cursor.execute(
        f"CREATE TABLE {shared.DATABASE}.numbered (id TINYINT AUTO_INCREMENT PRIMARY KEY)"
    )
    cursor.execute(f"INSERT INTO {shared.DATABASE}.numbered VALUES (41)")
    with Exporter(*place, *flags) as exporter:
        found, failed = exporter.metrics()
        equal({name: said for name, said in failed.items() if name not in OTHERS}, {})
        equal(found["mysql_up"], "1")
        labels = f'column="id",schema="{shared.DATABASE}",table="numbered"'
        equal(
            float(found[f"mysql_info_schema_auto_increment_column{{{labels}}}"]) in (41, 42), True
        )
        equal(float(found[f"mysql_info_schema_auto_increment_column_max{{{labels}}}"]), 127)
        equal(
            any(
                name.startswith("mysql_info_schema_table_rows{") and "numbered" in name
                for name in found
            ),
            True,
        )
        equal(
            any(name.startswith("mysql_heartbeat_now_timestamp_seconds{") for name in found), True
        )
    cursor.execute("DROP DATABASE heartbeat")
    connection.close()


CHECKS = [defaults, collectors]

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work:
        shared.run(CHECKS, (sys.argv[1], work))
