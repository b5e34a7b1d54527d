"""What people do with Adminer: adminer_checks.py FOLDER, that of adminer.php."""

import re

import web
import shared
from shared import equal, on_mariadb

# Adminer keeps server, user and database in its addresses.
SERVER = f"server={shared.HOST}%3A{shared.PORT}&username={shared.USER}"
PLACE = f"adminer.php?{SERVER}&db={shared.DATABASE}"


class Adminer(web.Browser):
    def error(self):
        wrong = re.search(r"<p class='error'>(.*?)\n", self.text)
        return wrong and web.shown(wrong[1])


def login(browser):
    browser.go("adminer.php")
    browser.submit(
        "auth[username]",
        "Select database",
        f">{shared.DATABASE}<",
        ">information_schema<",
        **{
            "auth[driver]": "server",
            "auth[server]": f"{shared.HOST}:{shared.PORT}",
            "auth[username]": shared.USER,
            "auth[password]": shared.PASSWORD,
            "auth[db]": "",
        },
    )


def create(browser):
    browser.go(PLACE + "&sql=")
    browser.submit(
        "query",
        "Query executed OK, 2 rows affected.",
        "2 rows",
        query=f"{web.BOOKS}; SELECT shelf, COUNT(*) AS n FROM book GROUP BY shelf ORDER BY n, shelf",
    )
    # A table by its form.
    browser.go(PLACE + "&create=")
    browser.submit(
        "fields[1][field]",
        "Table has been created.",
        **{
            "name": "made",
            "Engine": "",
            "fields[1][field]": "id",
            "fields[1][type]": "int",
            "auto_increment_col": "1",
            "fields[2][field]": "word",
            "fields[2][type]": "varchar",
            "fields[2][length]": "30",
        },
    )


def tables(browser):
    browser.visit(PLACE, "Tables and views", ">book<", ">shelf<", ">made<")
    browser.go(PLACE + "&script=db")
    equal(browser.code, 200)


def structure(browser):
    browser.visit(
        PLACE + "&table=book",
        "Show structure",
        "int",
        "Auto Increment",
        "decimal(8,2)",
        "<b>1.50</b>",
        "enum(&#039;novel&#039;,&#039;atlas&#039;)",
        "Indexes",
        "PRIMARY",
        "UNIQUE",
    )
    # Foreign keys are offered where there is a table of InnoDB.
    foreign = ["foreign=book"] if on_mariadb() else []
    for page in ("create=book", "indexes=book", "trigger=book", *foreign):
        browser.visit(f"{PLACE}&{page}")


def browse(browser):
    browser.visit(PLACE + "&select=book", "Öne", "2026-02-03 04:05:06", "2 rows")
    browser.visit(
        PLACE
        + "&select=book&columns[0][fun]=count&columns[0][col]=id&columns[1][col]=shelf&where[0][col]=title&where[0][op]=LIKE+%25%25&where[0][val]=n&order[0]=shelf&desc[0]=1&limit=10",
        "blue",
    )
    browser.visit(
        PLACE + "&select=book&where[0][col]=&where[0][op]=LIKE+%25%25&where[0][val]=wo", "Two"
    )


def edit(browser):
    browser.visit(PLACE + "&edit=book")
    browser.submit(
        "fields[title]",
        "Item 3 has been inserted.",
        **{
            "fields[title]": "Three \"' <b>",
            "fields[price]": "3.25",
            "fields[published]": "2026-03-03 00:00:00",
            "fields[note]": "new\nline",
            "fields[shelf]": "red",
        },
    )
    browser.visit(PLACE + "&edit=book&where[id]=3", "Three &quot;&#039; &lt;b&gt;")
    browser.submit("fields[title]", "Item has been updated.", **{"fields[title]": "Third"})
    browser.go(PLACE + "&edit=book&where[id]=3")
    browser.submit("fields[title]", "Item has been deleted.", delete="1")


def alter(browser):
    browser.go(PLACE + "&create=made")
    browser.submit(
        "fields[2][field]",
        "Table has been altered.",
        **{
            "name": "changed",
            "fields[2][field]": "words",
            "fields[2][length]": "60",
            "Comment": "it's new",
        },
    )
    browser.go(PLACE + "&indexes=changed")
    browser.submit(
        "indexes[2][type]",
        "Indexes have been altered.",
        **{
            "indexes[2][type]": "INDEX",
            "indexes[2][columns][1]": "words",
            "indexes[2][lengths][1]": "10",
            "indexes[2][name]": "",
        },
    )
    browser.go(PLACE + "&table=changed")
    browser.says("varchar(60)", "words")


def export(browser):
    browser.visit(PLACE + "&dump=")
    for form, names in (("sql", ["book", "shelf"]), ("csv", ["book"])):
        browser.go(PLACE + "&dump=")
        text = browser.send(
            "format",
            **{
                "output": "text",
                "format": form,
                "db_style": "",
                "table_style": "DROP+CREATE",
                "data_style": "INSERT",
                "routines": "1",
                "events": "1",
                "triggers": "1",
                "tables[]": names,
                "data[]": names,
            },
        )
        equal((browser.code, browser.problems()), (200, ""))
        if form == "sql":
            browser.says("CREATE TABLE `book`", "INSERT INTO `book`", "'Öne'")
            browser.go(PLACE + "&sql=")
            browser.submit("query", query=text)
        else:
            browser.says("1,Öne,")


def server(browser):
    for page in ("variables=", "status=", "processlist=", "privileges=", "database="):
        browser.go(f"adminer.php?{SERVER}&{page}")
        equal((browser.code, browser.problems()), (200, ""), page)
    browser.go(f"adminer.php?{SERVER}&variables=")
    browser.says("tmp_table_size")
    browser.visit(f"adminer.php?{SERVER}&db={shared.DATABASE}&schema=")


def drop(browser):
    browser.go(PLACE)
    browser.submit(
        "tables_found" if "tables_found" in browser.text else "token",
        "Tables have been dropped.",
        **{"tables[]": ["changed", "book", "shelf"], "drop": "1"},
    )


CHECKS = [login, create, tables, structure, browse, edit, alter, export, server, drop]

if __name__ == "__main__":
    web.run(CHECKS, Adminer)
