"""What people do with Adminer: adminer_checks.py FOLDER, that of adminer.php."""

import re
import sys
import tempfile

import web
import shared
from shared import equal, on_mariadb

# Adminer keeps server, user and database in its addresses.
SERVER = f"server={shared.HOST}%3A{shared.PORT}&username={shared.USER}"
PLACE = f"adminer.php?{SERVER}&db={shared.DATABASE}"


def fine(browser):
    """The page is there, and neither Adminer nor PHP found an error."""
    wrong = re.search(r"<p class='error'>(.*?)\n", browser.text)
    equal(
        (browser.code, wrong and web.shown(wrong[1]), browser.php.problems()),
        (200, None, ""),
        browser.address,
    )


def login(browser):
    browser.go("adminer.php")
    browser.send(
        "auth[username]",
        **{
            "auth[driver]": "server",
            "auth[server]": f"{shared.HOST}:{shared.PORT}",
            "auth[username]": shared.USER,
            "auth[password]": shared.PASSWORD,
            "auth[db]": "",
        },
    )
    fine(browser)
    browser.says("Select database", f">{shared.DATABASE}<", ">information_schema<")


def create(browser):
    browser.go(PLACE + "&sql=")
    browser.send(
        "query",
        query="""CREATE TABLE shelf (name VARCHAR(20) PRIMARY KEY) COMMENT='where books stand';
        CREATE TABLE book (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, title VARCHAR(100) NOT NULL,
            price DECIMAL(8,2) DEFAULT 1.50 COMMENT 'net', published DATETIME, kind ENUM('novel','atlas'), note TEXT,
            shelf VARCHAR(20), cover BLOB, UNIQUE KEY title (title), KEY shelf (shelf, price),
            CONSTRAINT stands FOREIGN KEY (shelf) REFERENCES shelf (name));
        INSERT INTO shelf VALUES ('blue'), ('red');
        INSERT INTO book (title, published, kind, shelf) VALUES ('Öne', '2026-02-03 04:05:06', 'atlas', 'blue'), ('Two', NULL, NULL, NULL);
        SELECT shelf, COUNT(*) AS n FROM book GROUP BY shelf ORDER BY n, shelf""",
    )
    fine(browser)
    browser.says("Query executed OK, 2 rows affected.", "2 rows")
    # A table by its form.
    browser.go(PLACE + "&create=")
    browser.send(
        "fields[1][field]",
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
    fine(browser)
    browser.says("Table has been created.")


def tables(browser):
    browser.go(PLACE)
    fine(browser)
    browser.says("Tables and views", ">book<", ">shelf<", ">made<")
    browser.go(PLACE + "&script=db")
    equal(browser.code, 200)


def structure(browser):
    browser.go(PLACE + "&table=book")
    fine(browser)
    browser.says(
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
        browser.go(f"{PLACE}&{page}")
        fine(browser)


def browse(browser):
    browser.go(PLACE + "&select=book")
    fine(browser)
    browser.says("Öne", "2026-02-03 04:05:06", "2 rows")
    browser.go(
        PLACE
        + "&select=book&columns[0][fun]=count&columns[0][col]=id&columns[1][col]=shelf&where[0][col]=title&where[0][op]=LIKE+%25%25&where[0][val]=n&order[0]=shelf&desc[0]=1&limit=10"
    )
    fine(browser)
    browser.says("blue")
    browser.go(PLACE + "&select=book&where[0][col]=&where[0][op]=LIKE+%25%25&where[0][val]=wo")
    fine(browser)
    browser.says("Two")


def edit(browser):
    browser.go(PLACE + "&edit=book")
    fine(browser)
    browser.send(
        "fields[title]",
        **{
            "fields[title]": "Three \"' <b>",
            "fields[price]": "3.25",
            "fields[published]": "2026-03-03 00:00:00",
            "fields[note]": "new\nline",
            "fields[shelf]": "red",
        },
    )
    fine(browser)
    browser.says("Item 3 has been inserted.")
    browser.go(PLACE + "&edit=book&where[id]=3")
    fine(browser)
    browser.says("Three &quot;&#039; &lt;b&gt;")
    browser.send("fields[title]", **{"fields[title]": "Third"})
    fine(browser)
    browser.says("Item has been updated.")
    browser.go(PLACE + "&edit=book&where[id]=3")
    browser.send("fields[title]", delete="1")
    fine(browser)
    browser.says("Item has been deleted.")


def alter(browser):
    browser.go(PLACE + "&create=made")
    browser.send(
        "fields[2][field]",
        **{
            "name": "changed",
            "fields[2][field]": "words",
            "fields[2][length]": "60",
            "Comment": "it's new",
        },
    )
    fine(browser)
    browser.says("Table has been altered.")
    browser.go(PLACE + "&indexes=changed")
    browser.send(
        "indexes[2][type]",
        **{
            "indexes[2][type]": "INDEX",
            "indexes[2][columns][1]": "words",
            "indexes[2][lengths][1]": "10",
            "indexes[2][name]": "",
        },
    )
    fine(browser)
    browser.says("Indexes have been altered.")
    browser.go(PLACE + "&table=changed")
    browser.says("varchar(60)", "words")


def export(browser):
    browser.go(PLACE + "&dump=")
    fine(browser)
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
        equal((browser.code, browser.php.problems()), (200, ""))
        if form == "sql":
            browser.says("CREATE TABLE `book`", "INSERT INTO `book`", "'Öne'")
            browser.go(PLACE + "&sql=")
            browser.send("query", query=text)
            fine(browser)
        else:
            browser.says("1,Öne,")


def server(browser):
    for page in ("variables=", "status=", "processlist=", "privileges=", "database="):
        browser.go(f"adminer.php?{SERVER}&{page}")
        equal((browser.code, browser.php.problems()), (200, ""), page)
    browser.go(f"adminer.php?{SERVER}&variables=")
    browser.says("tmp_table_size")
    browser.go(f"adminer.php?{SERVER}&db={shared.DATABASE}&schema=")
    fine(browser)


def drop(browser):
    browser.go(PLACE)
    browser.send(
        "tables_found" if "tables_found" in browser.text else "token",
        **{"tables[]": ["changed", "book", "shelf"], "drop": "1"},
    )
    fine(browser)
    browser.says("Tables have been dropped.")


CHECKS = [login, create, tables, structure, browse, edit, alter, export, server, drop]

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work, web.Php(sys.argv[1], work) as php:
        shared.run(CHECKS, web.Browser(php))
