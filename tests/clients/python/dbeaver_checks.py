"""What DBeaver's support of MySQL sends when a connection, a table or a definition is opened.

DBeaver itself has windows and is not run: these are its statements, and the columns that it reads of their answers. What
Connector/J sends for it, and what it asks of DatabaseMetaData, is what the checks of `java` and `hibernate` ask.
"""

import json

import replay
import shared
from shared import DATABASE, equal

QUOTED = f"`{DATABASE}`"


def connect(program):
    program.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    program.ask("SELECT DATABASE()", least=1)
    program.ask("SHOW ENGINES", reads="engine support comment transactions xa savepoints", least=1)
    program.ask("SHOW CHARSET", reads="charset description maxlen", least=2)
    program.ask("SHOW COLLATION", reads="charset collation id default compiled sortlen", least=2)
    program.ask("SELECT @@GLOBAL.character_set_server,@@GLOBAL.collation_server", least=1)
    program.ask("SHOW PLUGINS", reads="name status type library license")
    program.ask("SHOW VARIABLES LIKE 'lower_case_table_names'", reads="variable_name value", least=1)
    program.ask(
        "SELECT * FROM information_schema.TABLES t\nWHERE\n\tt.TABLE_SCHEMA = 'information_schema'\n"
        "\tAND t.TABLE_NAME = 'CHECK_CONSTRAINTS'",
        least=1,
    )
    found = program.ask("show databases", reads="database", least=2)
    equal(DATABASE in [row["DATABASE"] for row in found], True)
    program.ask("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA", least=2)
    program.run(f"use {QUOTED}")


def database(program):
    (row,) = program.ask(
        "SELECT * FROM information_schema.SCHEMATA WHERE SCHEMA_NAME=%s",
        DATABASE,
        reads="default_character_set_name default_collation_name sql_path",
    )
    equal(row["SQL_PATH"], None)
    tables = program.ask(f"SHOW FULL TABLES FROM {QUOTED}", reads="table_type")
    equal([row["TABLE_TYPE"] for row in tables], ["BASE TABLE", "BASE TABLE"] + ["VIEW"] * VIEWS)
    tables = program.ask(
        f"SHOW FULL TABLES FROM {QUOTED} WHERE (`Tables_in_{DATABASE}` LIKE 'b%%') AND "
        f"(`Tables_in_{DATABASE}` NOT LIKE 'x%%')"
    )
    equal(len(tables), 1)
    program.ask(
        f"SHOW TABLE STATUS FROM {QUOTED}",
        reads="name engine version rows auto_increment collation create_time update_time check_time avg_row_length"
        " data_length max_data_length index_length data_free checksum comment",
        least=2,
    )
    program.ask(
        "SELECT table_schema, SUM(data_length + index_length) \nFROM information_schema.tables \n"
        "GROUP BY table_schema",
        least=1,
    )
    program.ask(
        "SELECT SUM((DATA_LENGTH+INDEX_LENGTH))\nFROM INFORMATION_SCHEMA.TABLES \nWHERE TABLE_SCHEMA=%s", DATABASE
    )
    program.ask(f"SHOW CREATE DATABASE {QUOTED}", reads="database", least=1)
    program.ask(
        "SELECT * FROM information_schema.ROUTINES\nWHERE ROUTINE_SCHEMA=%s AND ROUTINE_TYPE IN"
        " ('PROCEDURE','FUNCTION')\nORDER BY ROUTINE_NAME",
        DATABASE,
        reads="routine_name routine_type dtd_identifier routine_body routine_definition is_deterministic",
    )
    program.ask(
        "SELECT * FROM INFORMATION_SCHEMA.TRIGGERS\nWHERE TRIGGER_SCHEMA = %s",
        DATABASE,
        reads="trigger_name event_manipulation event_object_table action_statement action_timing sql_mode definer",
    )
    program.ask(
        "SELECT * FROM information_schema.EVENTS WHERE EVENT_SCHEMA=%s",
        DATABASE,
        reads="event_name event_definition event_type interval_value starts ends status on_completion",
    )


def table(program):
    (row,) = program.ask(f"SHOW TABLE STATUS FROM {QUOTED} LIKE 'author'")
    equal((row["COMMENT"], row["AUTO_INCREMENT"]), ("who writes", 3))
    columns = program.ask(
        "SELECT * FROM information_schema.COLUMNS WHERE TABLE_SCHEMA=%s AND TABLE_NAME=%s ORDER BY ORDINAL_POSITION",
        DATABASE,
        "book",
        reads="column_name ordinal_position column_default is_nullable data_type character_maximum_length"
        " numeric_precision numeric_scale column_type column_key extra column_comment generation_expression",
    )
    equal([row["COLUMN_NAME"] for row in columns], ["id", "author", "title", "price", "gross", "changed"])
    equal([row["COLUMN_KEY"] for row in columns], ["PRI", "MUL", "", "", "", ""])
    keys = program.ask(
        "SELECT * FROM information_schema.STATISTICS WHERE TABLE_SCHEMA=%s ORDER BY TABLE_NAME,INDEX_NAME,SEQ_IN_INDEX",
        DATABASE,
        reads="table_name index_name non_unique seq_in_index column_name collation nullable sub_part index_type comment"
        " index_comment cardinality",
    )
    # Names of keys are in another order where their collation counts case.
    equal(
        sorted((row["INDEX_NAME"], row["COLUMN_NAME"], row["SUB_PART"]) for row in keys if row["TABLE_NAME"] == "book"),
        [("PRIMARY", "id", None), ("book_author", "author", None), ("book_author", "title", 20)],
    )
    unique = program.ask(
        "SELECT kc.CONSTRAINT_NAME,kc.TABLE_NAME,kc.COLUMN_NAME,kc.ORDINAL_POSITION\n"
        "FROM INFORMATION_SCHEMA.KEY_COLUMN_USAGE kc WHERE kc.TABLE_SCHEMA=%s AND kc.REFERENCED_TABLE_NAME IS NULL"
        " AND kc.TABLE_NAME=%s\nORDER BY kc.CONSTRAINT_NAME,kc.ORDINAL_POSITION",
        DATABASE,
        "author",
    )
    equal(sorted((row["CONSTRAINT_NAME"], row["COLUMN_NAME"]) for row in unique), [("PRIMARY", "id"), ("author_name", "name")])
    checks = program.ask(
        "SELECT cc.CONSTRAINT_NAME, cc.CHECK_CLAUSE, tc.TABLE_NAME\nFROM (SELECT CONSTRAINT_NAME, CHECK_CLAUSE\n"
        "FROM INFORMATION_SCHEMA.CHECK_CONSTRAINTS\nWHERE CONSTRAINT_SCHEMA = %s\nORDER BY CONSTRAINT_NAME) cc,\n"
        "(SELECT TABLE_NAME, CONSTRAINT_NAME\nFROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS\nWHERE TABLE_SCHEMA = %s"
        " AND TABLE_NAME=%s) tc\nWHERE cc.CONSTRAINT_NAME = tc.CONSTRAINT_NAME\nORDER BY cc.CONSTRAINT_NAME",
        DATABASE,
        DATABASE,
        "book",
    )
    equal(len(checks), 1)
    program.ask(
        "SELECT * FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA=%s AND TABLE_NAME=%s "
        " ORDER BY PARTITION_ORDINAL_POSITION,SUBPARTITION_ORDINAL_POSITION",
        DATABASE,
        "book",
        reads="partition_name subpartition_name partition_method partition_expression partition_description table_rows",
    )
    program.ask(
        "SELECT CHECK_OPTION,DEFINER,IS_UPDATABLE FROM information_schema.VIEWS WHERE TABLE_SCHEMA=%s AND TABLE_NAME=%s",
        DATABASE,
        "dear",
        least=VIEWS,
    )


def definition(program):
    (row,) = program.ask(f"SHOW CREATE TABLE {QUOTED}.book")
    equal("CREATE TABLE `book`" in row["CREATE TABLE"], True)
    if VIEWS:
        (row,) = program.ask(f"SHOW CREATE VIEW {QUOTED}.dear")
        equal(" VIEW `" in row["CREATE VIEW"] and "ALGORITHM=" in row["CREATE VIEW"], True)


def grid(program):
    """Rows, looked at, counted, sorted, filtered, and changed in place."""
    equal(len(program.ask(f"SELECT b.* FROM {DATABASE}.book b\nLIMIT 0, 200")), 3)
    equal(program.value(f"SELECT count(*) FROM {DATABASE}.book b"), 3)
    found = program.ask(
        f"SELECT b.* FROM {DATABASE}.book b\nWHERE b.price > 5\nORDER BY b.title DESC, b.id\nLIMIT 0, 200"
    )
    equal([row["TITLE"] for row in found], ["second", "first"])
    program.run("SET autocommit=0")
    equal(program.run(f"UPDATE {DATABASE}.book\nSET title=%s\nWHERE id=%s", "changed", 3), 1)
    equal(program.run(f"INSERT INTO {DATABASE}.book\n(author, title, price)\nVALUES(%s, %s, %s)", 2, "new", "1.5"), 1)
    equal(program.run(f"DELETE FROM {DATABASE}.book\nWHERE id=%s", 4), 1)
    program.connection.commit()
    program.run("SET autocommit=1")
    # Its grouping panel, and a column's values for a filter.
    program.ask(f"SELECT author, COUNT(*) FROM (\n\tSELECT b.* FROM {DATABASE}.book b\n) src\nGROUP BY author", least=2)
    program.ask(f"SELECT title, count(*) FROM {DATABASE}.book GROUP BY title ORDER BY count(*) DESC LIMIT 100", least=3)


def search(program):
    for select, source, name in (
        ("TABLE_SCHEMA,TABLE_NAME", "information_schema.TABLES", "TABLE_NAME"),
        ("ROUTINE_SCHEMA,ROUTINE_NAME", "information_schema.ROUTINES", "ROUTINE_NAME"),
        (
            "TABLE_SCHEMA,TABLE_NAME,CONSTRAINT_NAME,CONSTRAINT_TYPE",
            "information_schema.TABLE_CONSTRAINTS",
            "CONSTRAINT_NAME",
        ),
        ("TABLE_SCHEMA,TABLE_NAME,COLUMN_NAME", "information_schema.COLUMNS", "COLUMN_NAME"),
    ):
        program.ask(f"SELECT {select} FROM {source} WHERE {name} LIKE %s ORDER BY {name} LIMIT 10", "%o%")
        program.ask(
            f"SELECT {select} FROM {source} WHERE (UPPER({name}) LIKE %s ) AND {select.split(',')[0]} = %s"
            f" ORDER BY {name} LIMIT 10",
            "%O%",
            DATABASE,
        )
    program.ask(
        "SELECT TABLE_SCHEMA,TABLE_NAME FROM information_schema.TABLES WHERE (TABLE_NAME LIKE %s OR TABLE_COMMENT LIKE %s)"
        " ORDER BY TABLE_NAME LIMIT 10",
        "%writes%",
        "%writes%",
        least=1,
    )


def plan(program):
    text = program.value(f"EXPLAIN FORMAT=JSON SELECT b.* FROM {DATABASE}.book b JOIN {DATABASE}.author a ON a.id = b.author")
    equal("query_block" in json.loads(text), True)


def sessions(program):
    program.ask("SHOW FULL PROCESSLIST", reads="id user host db command time state info", least=1)
    other = replay.Program()
    program.run(f"KILL QUERY {other.value('SELECT CONNECTION_ID()')}")
    program.run(f"KILL CONNECTION {other.connection.thread_id()}")


def administration(program):
    program.ask("SHOW PRIVILEGES", reads="privilege context comment", least=1)
    program.ask("SHOW GLOBAL STATUS", reads="variable_name value", least=100)
    program.ask("SHOW STATUS", reads="variable_name value", least=100)
    program.ask("SHOW GLOBAL VARIABLES", reads="variable_name value", least=100)
    program.ask("SHOW GRANTS", least=1)


def users(program):
    program.ask("SELECT * FROM mysql.user ORDER BY user", reads="user host ssl_type max_questions max_connections", least=1)


if __name__ == "__main__":
    VIEWS = replay.start()
    shared.run(
        [connect, database, table, definition, grid, search, plan, sessions, administration, users], replay.Program()
    )
