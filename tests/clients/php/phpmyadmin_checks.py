"""What people do with phpMyAdmin: phpmyadmin_checks.py FOLDER, that of its index.php."""

import hashlib
import json
import re

import web
import shared
from shared import equal

DB = shared.DATABASE


class PhpMyAdmin(web.Browser):
    """Also keeps the token that phpMyAdmin wants with each request that changes something."""

    token = ""

    def error(self):
        # What is said to browsers without scripts is no error, nor what is hidden.
        page = re.sub(
            r'<noscript>.*?</noscript>|<div class="hide" id="js-https-mismatch">.*?</div>',
            "",
            self.text,
            flags=re.DOTALL,
        )
        wrong = re.search(r'<div class="alert alert-danger"[^>]*>(.*?)</div>', page, re.DOTALL)
        return wrong and web.shown(wrong[1])[:400]

    def page(self, route, *wanted, **fields):
        """A page as a person opens it, which must have these texts."""
        place = f"index.php?route={route}"
        self.visit(place + "".join(f"&{name}={value}" for name, value in fields.items()), *wanted)

    def ask(self, route, **fields):
        """A request as the scripts of the page send them; returns the answer."""
        fields = {"ajax_request": "true", "server": "1", "token": self.token, **fields}
        text = self.go(f"index.php?route={route}", fields)
        try:
            answer = json.loads(text)
        except json.JSONDecodeError:
            raise AssertionError(
                f"{route}: {self.code} {web.shown(text)[:400]} {self.problems()[:400]}"
            ) from None
        error = web.shown(answer.get("error") or "")[:500]
        equal((answer.get("success"), error, self.problems()), (True, "", ""), route)
        return answer

    def run_script(self, db, script, is_js_confirmed):
        """Several statements, as the page for SQL and the one for imports send them."""
        self.ask(
            "/import",
            db=db,
            table="",
            is_js_confirmed=is_js_confirmed,
            pos="0",
            goto="",
            message_to_show="",
            prev_sql_query="",
            sql_delimiter=";",
            sql_query=script,
        )


def column_fields(number, **fields):
    """The fields of a column in the forms that make and change tables."""
    return {f"field_{name}[{number}]": value for name, value in fields.items()}


# The keys in these forms, as their scripts send them.
NO_KEYS = {
    "primary_indexes": "[]",
    "unique_indexes": "[]",
    "indexes": "[]",
    "fulltext_indexes": "[]",
    "spatial_indexes": "[]",
}


def login(pma):
    pma.visit("index.php", "Welcome to", "pma_username")
    pma.send("pma_username", pma_username=shared.USER, pma_password="wrong")
    pma.says("Access denied")
    pma.problems()
    pma.submit(
        "pma_username",
        "Database server",
        shared.USER,
        pma_username=shared.USER,
        pma_password=shared.PASSWORD,
    )
    pma.token = pma.form("token")[1]["token"]


def databases(pma):
    pma.page("/server/databases", f">{DB}<", "information_schema")
    pma.ask("/server/databases/create", new_db="made", db_collation="utf8mb4_bin")
    pma.page("/server/databases", "made", statistics=1)
    pma.ask("/server/databases/destroy", **{"selected_dbs[]": "made", "drop_selected_dbs": "1"})
    pma.ask("/navigation", getNaviSettings="", **{"aPath": "cm9vdA==", "pos": "0"})


def create(pma):
    pma.run_script(DB, web.BOOKS, is_js_confirmed="0")
    # A table by its form.
    pma.ask(
        "/table/create",
        db=DB,
        table="made",
        do_save_data="1",
        orig_num_fields="2",
        **{
            **column_fields(
                0,
                name="id",
                type="INT",
                length="",
                default_type="NONE",
                collation="",
                attribute="UNSIGNED",
                key="primary_0",
                extra="AUTO_INCREMENT",
                comments="",
            ),
            **column_fields(
                1,
                name="word",
                type="VARCHAR",
                length="30",
                default_type="USER_DEFINED",
                default_value="none",
                collation="",
                key="none_1",
                comments="it's a word",
            ),
            **NO_KEYS,
            "primary_indexes": '[{"Key_name":"PRIMARY","Non_unique":"0","Index_choice":"PRIMARY","columns":[{"col_index":"0","size":""}]}]',
            "comment": "by the form",
            "tbl_storage_engine": "InnoDB",
            "tbl_collation": "",
        },
    )


def structure(pma):
    pma.page("/database/structure", ">book</a>", ">shelf</a>", ">made</a>", db=DB)
    pma.page(
        "/table/structure",
        "decimal(8,2)",
        "AUTO_INCREMENT",
        "enum(",
        "PRIMARY",
        db=DB,
        table="book",
    )
    pma.page("/table/relation", db=DB, table="book")
    pma.page("/database/data-dictionary", "where books stand", "net", db=DB)
    pma.page("/table/tracking", db=DB, table="book")
    pma.page("/database/designer", db=DB)


def browse(pma):
    pma.page(
        "/sql", "Öne", "2026-02-03 04:05:06", "Showing rows 0 -  1", db=DB, table="book", pos=0
    )
    answer = pma.ask(
        "/sql",
        db=DB,
        table="book",
        pos="0",
        session_max_rows="25",
        is_browse_distinct="0",
        sql_query="SELECT shelf, COUNT(*) AS n FROM book GROUP BY shelf ORDER BY n DESC, shelf",
    )
    equal("blue" in str(answer), True)
    pma.page("/table/search", db=DB, table="book")
    answer = pma.ask(
        "/table/search",
        db=DB,
        table="book",
        goto="",
        displayAllColumns="true",
        session_max_rows="25",
        orderByColumn="title",
        order="DESC",
        **{
            "criteriaColumnNames[0]": "title",
            "criteriaColumnTypes[0]": "varchar(100)",
            "criteriaColumnCollations[0]": "",
            "criteriaColumnOperators[0]": "LIKE %...%",
            "criteriaValues[0]": "wo",
        },
    )
    equal("Two" in str(answer), True)
    pma.ask(
        "/database/search",
        db=DB,
        criteriaSearchString="wo",
        criteriaSearchType="1",
        submit_search="Go",
        **{"criteriaTables[]": ["book", "shelf"]},
    )
    pma.page("/sql", db=DB, table="book", sql_query="EXPLAIN+SELECT+*+FROM+book+WHERE+id=1")


def edit(pma):
    pma.page("/table/change", db=DB, table="book")
    _, fields = pma.form("insertForm")
    # Fields are named by hashes of their columns.
    for column, value in (("title", "Three \"' <b>"), ("price", "3.25"), ("shelf", "red")):
        place = f"[multi_edit][0][{hashlib.md5(column.encode()).hexdigest()}]"
        equal("fields" + place in fields, True, column)
        fields["fields" + place] = value
        fields.pop("fields_null" + place, None)
    fields = {name: value for name, value in fields.items() if "[multi_edit][1]" not in name}
    pma.go(
        "index.php?route=/table/replace",
        {**fields, "submit_type": "insert", "after_insert": "back", "token": pma.token},
    )
    pma.fine()
    pma.says("1 row inserted")
    answer = pma.ask(
        "/sql",
        db=DB,
        table="book",
        sql_query="UPDATE `book` SET `title` = 'Third' WHERE `book`.`id` = 3",
    )
    equal("1 row affected" in answer["message"], True)
    answer = pma.ask(
        "/sql",
        db=DB,
        table="book",
        sql_query="DELETE FROM book WHERE `book`.`id` = 3",
        is_js_confirmed="1",
        message_to_show="",
    )
    equal("1 row" in answer["message"], True)


def alter(pma):
    pma.ask(
        "/table/add-field",
        db=DB,
        table="made",
        do_save_data="1",
        orig_num_fields="1",
        field_where="last",
        after_field="",
        **{
            **column_fields(
                0,
                name="n",
                type="BIGINT",
                length="",
                default_type="NULL",
                null="YES",
                key="index_0",
                collation="",
                comments="",
            ),
            **NO_KEYS,
            "indexes": '[{"Key_name":"n","Non_unique":"1","Index_choice":"INDEX","columns":[{"col_index":"0","size":""}]}]',
        },
    )
    pma.ask(
        "/table/operations",
        db=DB,
        table="made",
        new_name="changed",
        comment="it's new",
        prev_comment="by the form",
        tbl_collation="utf8mb4_bin",
        new_tbl_storage_engine="InnoDB",
        submitoptions="1",
        reload="1",
    )
    pma.ask(
        "/table/operations",
        db=DB,
        table="changed",
        new_db=DB,
        target_db=DB,
        copy="1",
        new_name="copy",
        what="data",
        submit_copy="Go",
    )
    pma.page("/table/structure", "bigint", "varchar(30)", db=DB, table="changed")
    for route in (
        "/table/maintenance/analyze",
        "/table/maintenance/check",
        "/table/maintenance/optimize",
    ):
        pma.ask(route, db=DB, table="changed", **{"selected_tbl[]": ["changed", "copy"]})


def export(pma):
    pma.page("/database/export", db=DB)
    text = pma.go(
        "index.php?route=/export",
        {
            "db": DB,
            "table": "",
            "export_type": "database",
            "export_method": "quick",
            "template_id": "",
            "token": pma.token,
            "server": "1",
            "quick_or_custom": "quick",
            "filename_template": "@DATABASE@",
            "what": "sql",
            "structure_or_data_forced": "0",
            "output_format": "sendit",
            "charset": "utf-8",
            "compression": "none",
            "sql_structure_or_data": "structure_and_data",
            "sql_create_table": "something",
            "sql_auto_increment": "something",
            "sql_backquotes": "something",
            "sql_type": "INSERT",
            "sql_insert_syntax": "both",
            "sql_max_query_size": "50000",
            "sql_hex_for_binary": "something",
            "sql_include_comments": "something",
            "sql_if_not_exists": "something",
            "sql_drop_table": "something",
            "aliases_new": "",
            "table_select[]": ["book", "shelf"],
            "table_structure[]": ["book", "shelf"],
            "table_data[]": ["book", "shelf"],
        },
    )
    equal((pma.code, pma.problems()), (200, ""))
    pma.says("CREATE TABLE IF NOT EXISTS `book`", "'Öne'", "PRIMARY KEY")
    pma.ask("/server/databases/create", new_db="again", db_collation="")
    pma.run_script("again", text, is_js_confirmed="1")
    pma.page("/sql", "Öne", db="again", table="book", pos=0)


def server(pma):
    for route in (
        "/server/status",
        "/server/status/variables",
        "/server/status/processes",
        "/server/status/queries",
        "/server/status/advisor",
        "/server/status/monitor",
        "/server/variables",
        "/server/collations",
        "/server/engines",
        "/server/plugins",
        "/server/privileges",
        "/server/binlog",
        "/server/replication",
        "/server/export",
        "/server/import",
        "/server/sql",
    ):
        pma.page(route)
    pma.page("/server/variables", "tmp table size")


def drop(pma):
    for table in ("book", "shelf", "changed", "copy"):
        pma.ask(
            "/sql",
            db=DB,
            table=table,
            reload="1",
            purge="1",
            sql_query=f"DROP TABLE `{table}`",
            is_js_confirmed="1",
        )
    pma.page("/database/structure", "No tables found", db=DB)
    pma.go("index.php?route=/logout", {"token": pma.token})
    pma.says("pma_username")


CHECKS = [login, databases, create, structure, browse, edit, alter, export, server, drop]

if __name__ == "__main__":
    web.run(CHECKS, PhpMyAdmin)
