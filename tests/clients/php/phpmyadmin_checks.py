"""What people do with phpMyAdmin: phpmyadmin_checks.py FOLDER, that of its index.php."""

import hashlib
import json
import re
import sys
import tempfile

import web
import shared
from shared import equal

DB = shared.DATABASE


def fine(browser):
    """The page is there, and neither phpMyAdmin nor PHP found an error."""
    # What is said to browsers without scripts is no error, nor what is hidden.
    page = re.sub(
        r'<noscript>.*?</noscript>|<div class="hide" id="js-https-mismatch">.*?</div>',
        "",
        browser.text,
        flags=re.DOTALL,
    )
    wrong = re.search(r'<div class="alert alert-danger"[^>]*>(.*?)</div>', page, re.DOTALL)
    equal(
        (browser.code, wrong and web.shown(wrong[1])[:400], browser.php.problems()),
        (200, None, ""),
        browser.address,
    )


class Pma:
    """The browser, and the token that phpMyAdmin wants with each request that changes something."""

    def __init__(self, php):
        self.browser, self.token = web.Browser(php), ""

    def page(self, route, **fields):
        """A page as a person opens it."""
        self.browser.go(
            "index.php?route="
            + route
            + "".join(f"&{name}={value}" for name, value in fields.items())
        )
        fine(self.browser)
        return self.browser

    def ask(self, route, **fields):
        """A request as the scripts of the page send them; returns the answer."""
        fields = {"ajax_request": "true", "server": "1", "token": self.token, **fields}
        text = self.browser.go("index.php?route=" + route, fields)
        try:
            answer = json.loads(text)
        except json.JSONDecodeError:
            raise AssertionError(
                f"{route}: {self.browser.code} {web.shown(text)[:400]} {self.browser.php.problems()[:400]}"
            ) from None
        equal(
            (
                answer.get("success"),
                web.shown(answer.get("error") or "")[:500],
                self.browser.php.problems(),
            ),
            (True, "", ""),
            route,
        )
        return answer


def login(pma):
    browser = pma.browser
    browser.go("index.php")
    fine(browser)
    browser.says("Welcome to", "pma_username")
    browser.send("pma_username", pma_username=shared.USER, pma_password="wrong")
    browser.says("Access denied")
    browser.php.problems()
    browser.send("pma_username", pma_username=shared.USER, pma_password=shared.PASSWORD)
    fine(browser)
    browser.says("Database server", shared.USER)
    pma.token = browser.form("token")[1]["token"]


def databases(pma):
    pma.page("/server/databases").says(f">{DB}<", "information_schema")
    pma.ask("/server/databases/create", new_db="made", db_collation="utf8mb4_bin")
    pma.page("/server/databases", statistics=1).says("made")
    pma.ask("/server/databases/destroy", **{"selected_dbs[]": "made", "drop_selected_dbs": "1"})
    pma.ask("/navigation", getNaviSettings="", **{"aPath": "cm9vdA==", "pos": "0"})


def create(pma):
    pma.ask(
        "/import",
        db=DB,
        table="",
        is_js_confirmed="0",
        pos="0",
        goto="",
        message_to_show="",
        prev_sql_query="",
        sql_delimiter=";",
        sql_query="""
        CREATE TABLE shelf (name VARCHAR(20) PRIMARY KEY) COMMENT='where books stand';
        CREATE TABLE book (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, title VARCHAR(100) NOT NULL,
            price DECIMAL(8,2) DEFAULT 1.50 COMMENT 'net', published DATETIME, kind ENUM('novel','atlas'), note TEXT,
            shelf VARCHAR(20), cover BLOB, UNIQUE KEY title (title), KEY shelf (shelf, price),
            CONSTRAINT stands FOREIGN KEY (shelf) REFERENCES shelf (name));
        INSERT INTO shelf VALUES ('blue'), ('red');
        INSERT INTO book (title, published, kind, shelf) VALUES ('Öne', '2026-02-03 04:05:06', 'atlas', 'blue'), ('Two', NULL, NULL, NULL)""",
    )
    # A table by its form.
    pma.ask(
        "/table/create",
        db=DB,
        table="made",
        do_save_data="1",
        orig_num_fields="2",
        **{
            "field_name[0]": "id",
            "field_type[0]": "INT",
            "field_length[0]": "",
            "field_default_type[0]": "NONE",
            "field_collation[0]": "",
            "field_attribute[0]": "UNSIGNED",
            "field_key[0]": "primary_0",
            "field_extra[0]": "AUTO_INCREMENT",
            "field_comments[0]": "",
            "field_name[1]": "word",
            "field_type[1]": "VARCHAR",
            "field_length[1]": "30",
            "field_default_type[1]": "USER_DEFINED",
            "field_default_value[1]": "none",
            "field_collation[1]": "",
            "field_key[1]": "none_1",
            "field_comments[1]": "it's a word",
            "primary_indexes": '[{"Key_name":"PRIMARY","Non_unique":"0","Index_choice":"PRIMARY","columns":[{"col_index":"0","size":""}]}]',
            "unique_indexes": "[]",
            "indexes": "[]",
            "fulltext_indexes": "[]",
            "spatial_indexes": "[]",
            "comment": "by the form",
            "tbl_storage_engine": "InnoDB",
            "tbl_collation": "",
        },
    )


def structure(pma):
    pma.page("/database/structure", db=DB).says(">book</a>", ">shelf</a>", ">made</a>")
    page = pma.page("/table/structure", db=DB, table="book")
    page.says("decimal(8,2)", "AUTO_INCREMENT", "enum(", "PRIMARY")
    pma.page("/table/relation", db=DB, table="book")
    pma.page("/database/data-dictionary", db=DB).says("where books stand", "net")
    pma.page("/table/tracking", db=DB, table="book")
    pma.page("/database/designer", db=DB)


def browse(pma):
    pma.page("/sql", db=DB, table="book", pos=0).says(
        "Öne", "2026-02-03 04:05:06", "Showing rows 0 -  1"
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
    page = pma.page("/table/change", db=DB, table="book")
    action, fields = page.form("insertForm")
    # Fields are named by hashes of their columns.
    for column, value in (("title", "Three \"' <b>"), ("price", "3.25"), ("shelf", "red")):
        place = f"[multi_edit][0][{hashlib.md5(column.encode()).hexdigest()}]"
        equal("fields" + place in fields, True, column)
        fields["fields" + place] = value
        fields.pop("fields_null" + place, None)
    fields = {name: value for name, value in fields.items() if "[multi_edit][1]" not in name}
    page.go(
        "index.php?route=/table/replace",
        {**fields, "submit_type": "insert", "after_insert": "back", "token": pma.token},
    )
    fine(page)
    page.says("1 row inserted")
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
            "field_name[0]": "n",
            "field_type[0]": "BIGINT",
            "field_length[0]": "",
            "field_default_type[0]": "NULL",
            "field_null[0]": "YES",
            "field_key[0]": "index_0",
            "field_collation[0]": "",
            "field_comments[0]": "",
            "primary_indexes": "[]",
            "unique_indexes": "[]",
            "fulltext_indexes": "[]",
            "spatial_indexes": "[]",
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
    pma.page("/table/structure", db=DB, table="changed").says("bigint", "varchar(30)")
    for route in (
        "/table/maintenance/analyze",
        "/table/maintenance/check",
        "/table/maintenance/optimize",
    ):
        pma.ask(route, db=DB, table="changed", **{"selected_tbl[]": ["changed", "copy"]})


def export(pma):
    pma.page("/database/export", db=DB)
    text = pma.browser.go(
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
    equal((pma.browser.code, pma.browser.php.problems()), (200, ""))
    pma.browser.says("CREATE TABLE IF NOT EXISTS `book`", "'Öne'", "PRIMARY KEY")
    pma.ask("/server/databases/create", new_db="again", db_collation="")
    pma.ask(
        "/import",
        db="again",
        table="",
        is_js_confirmed="1",
        pos="0",
        goto="",
        message_to_show="",
        prev_sql_query="",
        sql_delimiter=";",
        sql_query=text,
    )
    pma.page("/sql", db="again", table="book", pos=0).says("Öne")


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
    pma.page("/server/variables").says("tmp table size")


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
    pma.page("/database/structure", db=DB).says("No tables found")
    pma.browser.go("index.php?route=/logout", {"token": pma.token})
    pma.browser.says("pma_username")


CHECKS = [login, databases, create, structure, browse, edit, alter, export, server, drop]

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work, web.Php(sys.argv[1], work, CHECK_WORK=work) as php:
        shared.run(CHECKS, Pma(php))
