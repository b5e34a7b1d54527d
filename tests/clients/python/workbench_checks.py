"""What MySQL Workbench sends when its editor, the tree of its schemas and its pages of the server are opened.

Workbench itself has windows and is not run: these are its statements, and the columns that it reads of their answers.
"""

import replay
import shared
from shared import DATABASE, equal, on_mariadb

# Of SHOW GLOBAL STATUS and SHOW VARIABLES: what the server's page and the dashboard draw.
DRAWN = """Bytes_received Bytes_sent Threads_connected Threads_running Connections Aborted_clients Aborted_connects
Connection_errors_accept Connection_errors_internal Connection_errors_max_connections Connection_errors_peer_address
Connection_errors_select Connection_errors_tcpwrap Threads_cached Threads_created Table_open_cache_hits
Table_open_cache_misses Table_open_cache_overflows Com_select Com_insert Com_update Com_delete Com_create_table Com_alter_table
Com_drop_table Questions Queries Uptime"""
SETTINGS = """version version_comment version_compile_os version_compile_machine hostname port socket datadir tmpdir basedir
performance_schema general_log general_log_file slow_query_log slow_query_log_file log_output log_error have_ssl
lower_case_table_names max_connections sql_mode wait_timeout interactive_timeout"""
# Those of them that MySQL 8.4 no longer has.
GONE = {"have_ssl"}


def setting(program, name):
    rows = program.ask(f"SHOW SESSION VARIABLES LIKE '{name}'", reads="variable_name value")
    return rows[0]["VALUE"] if rows else None


def connect(program):
    """Two connections for each editor: one for its tree, one for what is typed."""
    program.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    program.run("SET CHARACTER SET utf8")
    program.run("SET NAMES utf8")
    program.ask("show character set where charset = 'utf8mb4'", least=1)
    program.run("SET NAMES 'utf8mb4'")
    program.run("SET SQL_SAFE_UPDATES=1")
    program.ask("SELECT CONNECTION_ID()", least=1)
    program.ask("SHOW SESSION STATUS LIKE 'Ssl_cipher'", least=1)
    for name in ("lower_case_table_names", "sql_mode", "version_comment", "version", "version_compile_os"):
        equal(setting(program, name) is not None, True, name)
    setting(program, "offline_mode")
    for name in ("wait_timeout", "interactive_timeout"):
        program.run(f"SET @@SESSION.{name}={int(setting(program, name)) + 10}")
    program.ask("SELECT current_user()", least=1)
    program.run("SET CHARACTER SET utf8mb4")
    program.run("do 1")
    for statement in ("show engines", "show charset", "show collation", "show variables", "SHOW DATABASES"):
        program.ask(statement, least=2 if statement != "show engines" else 1)
    program.ask("SELECT VARIABLE_NAME FROM performance_schema.user_variables_by_thread")


def tree(program):
    tables = program.ask(f"SHOW FULL TABLES FROM `{DATABASE}`", reads="table_type")
    equal([row["TABLE_TYPE"] for row in tables], ["BASE TABLE", "BASE TABLE"] + ["VIEW"] * VIEWS)
    program.ask(f"SHOW PROCEDURE STATUS WHERE Db='{DATABASE}'", reads="db name type")
    program.ask(f"SHOW FUNCTION STATUS WHERE Db='{DATABASE}'", reads="db name type")
    columns = program.ask(f"SHOW FULL COLUMNS FROM `{DATABASE}`.`book`", reads="field type collation null key default extra")
    equal([row["FIELD"] for row in columns], ["id", "author", "title", "price", "gross", "changed"])
    program.ask(f"SHOW TRIGGERS FROM `{DATABASE}` LIKE 'book'", reads="trigger event timing")
    keys = program.ask(
        f"SHOW INDEXES FROM `{DATABASE}`.`book`", reads="key_name non_unique column_name index_type seq_in_index collation"
    )
    if not on_mariadb():
        equal({row["VISIBLE"] for row in keys}, {"YES"})
    equal(sorted({row["KEY_NAME"] for row in keys}), ["PRIMARY", "book_author"])
    (row,) = program.ask(f"SHOW CREATE TABLE `{DATABASE}`.`book`")
    equal("`book`" in row["CREATE TABLE"], True)
    equal(len(program.ask(f"SHOW FULL TABLES FROM `{DATABASE}` LIKE 'author'")), 1)


def inspector(program):
    """The page of a table or a schema, and the editor of its definition."""
    program.ask(f"SHOW CREATE SCHEMA `{DATABASE}`", reads="database", least=1)
    program.ask(f"SHOW TRIGGERS FROM `{DATABASE}` WHERE `Table` = 'book'")
    program.ask(f"SHOW TABLE STATUS FROM `{DATABASE}`", reads="name engine rows data_length", least=2)
    program.ask(f"SHOW TABLE STATUS FROM `{DATABASE}` LIKE 'book'", least=1)
    program.ask(f"SHOW EVENTS FROM `{DATABASE}`")
    program.ask("SHOW GRANTS", least=1)
    program.ask(
        f"SELECT COLUMN_TYPE FROM INFORMATION_SCHEMA.COLUMNS WHERE table_schema = '{DATABASE}' and table_name = 'book'"
        " and column_name = 'title'",
        least=1,
    )
    program.ask(
        "SELECT DEFINER, SECURITY_TYPE, VIEW_DEFINITION FROM INFORMATION_SCHEMA.VIEWS"
        f" WHERE TABLE_SCHEMA = '{DATABASE}' AND TABLE_NAME = 'dear'",
        least=VIEWS,
    )
    program.ask("SHOW DATABASES LIKE 'nothing'")
    for kind in ("!=", "="):
        program.ask(f"SHOW FULL TABLES FROM `{DATABASE}` WHERE `Tables_in_{DATABASE}` = 'book' AND Table_type {kind} 'VIEW'")
    program.ask(f"SHOW FUNCTION STATUS WHERE Db='{DATABASE}' AND NAME = 'x'")
    if VIEWS:
        program.ask(f"SHOW CREATE VIEW `{DATABASE}`.`dear`", least=1)
    program.run(f"ANALYZE TABLE `{DATABASE}`.`book`")
    program.run(f"CHECK TABLE `{DATABASE}`.`book` QUICK")


def editor(program):
    """Rows looked at and changed in the grid, with its limit of rows and its safe updates."""
    equal(len(program.ask(f"SELECT * FROM {DATABASE}.book LIMIT 0, 1000")), 3)
    try:
        program.run(f"DELETE FROM {DATABASE}.book WHERE price > 1000")
    except Exception as error:
        equal(error.args[0], 1175)
    else:
        raise AssertionError("safe updates take a DELETE without a key")
    equal(program.run(f"UPDATE `{DATABASE}`.`book` SET `title` = 'changed' WHERE (`id` = '3')"), 1)
    equal(program.run(f"INSERT INTO `{DATABASE}`.`book` (`author`, `title`) VALUES ('2', 'new')"), 1)
    equal(program.run(f"DELETE FROM `{DATABASE}`.`book` WHERE (`id` = '4')"), 1)
    program.run("SHOW WARNINGS")
    program.ask(f"EXPLAIN SELECT * FROM {DATABASE}.book WHERE price > 5", least=1)
    program.ask(f"EXPLAIN FORMAT=JSON SELECT * FROM {DATABASE}.book WHERE price > 5", least=1)
    program.ask("SHOW STATUS LIKE 'Last_query_cost'")
    program.run(
        f"ALTER TABLE `{DATABASE}`.`book` ADD COLUMN `pages` INT NULL DEFAULT 0 AFTER `price`,"
        " ADD INDEX `by_pages` (`pages` DESC), CHANGE COLUMN `title` `title` VARCHAR(255) NULL"
    )
    program.run(f"DROP TABLE IF EXISTS `{DATABASE}`.`nothing`")


def statistics(program):
    """What is shown below a statement: its events in performance_schema."""
    program.ask("select @@performance_schema", least=1)
    program.ask(
        "SELECT st.* FROM performance_schema.events_statements_current st JOIN performance_schema.threads thr"
        " ON thr.thread_id = st.thread_id WHERE thr.processlist_id = CONNECTION_ID()"
    )
    program.ask("SELECT st.* FROM performance_schema.events_stages_history_long st WHERE st.nesting_event_id = 1")
    program.ask("SELECT st.* FROM performance_schema.events_waits_history_long st WHERE st.nesting_event_id = 1")


def server(program):
    """The page of the server, its variables, and the dashboard."""
    status = {row["VARIABLE_NAME"] for row in program.ask("SHOW GLOBAL STATUS")}
    variables = {row["VARIABLE_NAME"] for row in program.ask("SHOW VARIABLES")}
    equal(set(DRAWN.split()) - status, set(), "status")
    equal(set(SETTINGS.split()) - variables - GONE, set(), "variables")
    program.ask("SHOW PLUGINS", reads="name status type library license")
    program.ask("SHOW GLOBAL VARIABLES", least=100)
    if not on_mariadb():
        program.ask("select * from performance_schema.persisted_variables")
    program.run("SET GLOBAL long_query_time=5")
    program.run("SET GLOBAL long_query_time=DEFAULT")


def replication(program):
    try:
        program.ask("SHOW REPLICA STATUS")
    except Exception as error:
        equal(error.args[0], 1227)


def connections(program):
    program.ask("SHOW FULL PROCESSLIST", reads="id user host db command time state info", least=1)
    program.ask("SELECT COUNT(*) FROM performance_schema.threads", least=1)
    program.ask(
        "select count(*) from performance_schema.setup_instruments where name = 'wait/lock/metadata/sql/mdl' and enabled='YES'"
    )
    fields = "PROCESSLIST_ID PROCESSLIST_HOST PROCESSLIST_DB PROCESSLIST_COMMAND PROCESSLIST_TIME PROCESSLIST_STATE THREAD_ID"
    fields += " TYPE NAME PARENT_THREAD_ID INSTRUMENTED PROCESSLIST_INFO"
    program.ask(
        f"SELECT {','.join('t.' + name for name in fields.split())},"
        "IF (NAME = 'thread/sql/event_scheduler','event_scheduler',t.PROCESSLIST_USER) PROCESSLIST_USER,a.ATTR_VALUE"
        " FROM performance_schema.threads t  LEFT OUTER JOIN performance_schema.session_connect_attrs a"
        " ON t.processlist_id = a.processlist_id AND (a.attr_name IS NULL OR a.attr_name = 'program_name')"
        " WHERE t.TYPE <> 'BACKGROUND'"
    )
    program.ask(
        "SELECT * FROM performance_schema.session_connect_attrs WHERE processlist_id = 1 ORDER BY ORDINAL_POSITION",
        reads="attr_name attr_value",
    )
    program.ask(
        "SELECT * FROM performance_schema.metadata_locks WHERE owner_thread_id = 1",
        reads="lock_status object_type object_schema object_name lock_type lock_duration owner_thread_id",
    )
    other = replay.Program()
    program.run(f"KILL QUERY {other.connection.thread_id()}")
    program.run(f"KILL CONNECTION {other.connection.thread_id()}")


def instrumentation(program):
    program.ask("SELECT * FROM performance_schema.setup_instruments", reads="name enabled timed")
    program.ask("SELECT * FROM performance_schema.setup_consumers", reads="name enabled")
    program.ask("SELECT user, host FROM performance_schema.setup_actors")
    program.ask("SELECT * FROM performance_schema.setup_objects", reads="object_type object_schema object_name")
    program.ask("SHOW variables LIKE 'performance_schema%'")


def users(program):
    program.run("use mysql")
    program.ask("DESCRIBE mysql.user", reads="field", least=3)
    program.ask("DESCRIBE mysql.db", reads="field", least=3)
    program.ask("SELECT host FROM mysql.user WHERE user = 'root' AND 'localhost' LIKE host")
    program.ask("SELECT * FROM mysql.user order by User, Host", reads="user host", least=1)
    program.ask("SELECT * FROM mysql.db order by Host, User, Db")
    program.ask("SHOW GRANTS", least=1)


def reports(program):
    """Its performance reports are views of `sys`."""
    program.ask("show full tables from sys where Table_type='VIEW'")


def export(program):
    """What its pages of exports ask before mysqldump runs."""
    program.ask("SHOW DATABASES", reads="database", least=2)
    program.ask(f"SHOW CREATE DATABASE `{DATABASE}`", least=1)
    program.ask(f"SHOW FULL TABLES FROM `{DATABASE}`", least=2)
    program.ask("SELECT @@version_compile_os", least=1)


if __name__ == "__main__":
    VIEWS = replay.start()
    shared.run(
        [connect, tree, inspector, editor, statistics, server, replication, connections, instrumentation, users, reports, export],
        replay.Program(),
    )
