"""A small browser, and the server of PHP that it talks to."""

import html.parser
import http.cookiejar
import os
import re
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(
    0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "python")
)

import shared
from service import Service

# Tables as somebody enters them.
BOOKS = """CREATE TABLE shelf (name VARCHAR(20) PRIMARY KEY) COMMENT='where books stand';
    CREATE TABLE book (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, title VARCHAR(100) NOT NULL,
        price DECIMAL(8,2) DEFAULT 1.50 COMMENT 'net', published DATETIME, kind ENUM('novel','atlas'), note TEXT,
        shelf VARCHAR(20), cover BLOB, UNIQUE KEY title (title), KEY shelf (shelf, price),
        CONSTRAINT stands FOREIGN KEY (shelf) REFERENCES shelf (name));
    INSERT INTO shelf VALUES ('blue'), ('red');
    INSERT INTO book (title, published, kind, shelf) VALUES ('Öne', '2026-02-03 04:05:06', 'atlas', 'blue'), ('Two', NULL, NULL, NULL)"""

# The programs are older than PHP 8.2, and look for news of theirs on the network. What the server
# refused counts whatever else its line says.
IGNORED = re.compile(r"Deprecated|Undefined variable|WordPress\.org|wordpress\.org")


class Php(Service):
    """PHP's own web server over a folder."""

    def __init__(self, folder, work):
        super().__init__()
        self.log = os.path.join(work, "php.log")
        command = [
            "php",
            "-d",
            "memory_limit=512M",
            "-d",
            "display_errors=0",
            "-d",
            "log_errors=1",
            "-d",
            f"error_log={self.log}",
            "-d",
            f"session.save_path={work}",
            "-d",
            "opcache.enable_cli=1",
            "-S",
            f"127.0.0.1:{self.port}",
            "-t",
            folder,
        ]
        self.start(command, CHECK_LOG=self.log, CHECK_WORK=work)

    def problems(self):
        """What PHP and its program said since the last call, but for what no server can help."""
        try:
            with open(self.log, encoding="utf-8", errors="replace") as file:
                said = file.read()
        except FileNotFoundError:
            return ""
        os.truncate(self.log, 0)
        return "\n".join(
            line
            for line in said.splitlines()
            if "database error" in line or not IGNORED.search(line)
        )


class Forms(html.parser.HTMLParser):
    """The forms of a page: where they go, and what they send as they stand."""

    def __init__(self, text):
        super().__init__()
        self.all, self.select, self.area, self.option = [], None, None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "form":
            self.all.append(
                (given.get("action") or "", given.get("id") or given.get("name") or "", {})
            )
        if not self.all:
            return
        fields = self.all[-1][2]
        if tag == "input" and given.get("name") and "disabled" not in given:
            kind = given.get("type", "text")
            if kind in ("checkbox", "radio"):
                if "checked" in given:
                    fields[given["name"]] = given.get("value", "on")
            elif kind not in ("submit", "button", "image", "file", "reset"):
                fields[given["name"]] = given.get("value", "")
        elif tag == "select":
            self.select = given.get("name")
        elif tag == "option" and self.select:
            self.option = None
            if "selected" in given or self.select not in fields:
                # An option without a value stands for its text.
                fields[self.select] = given.get("value") or ""
                self.option = None if "value" in given else self.select
        elif tag == "textarea" and given.get("name"):
            self.area = given["name"]
            fields[self.area] = ""

    def handle_endtag(self, tag):
        if tag == "select":
            self.select = None
        if tag in ("option", "select"):
            self.option = None
        elif tag == "textarea":
            self.area = None

    def handle_data(self, data):
        if self.area:
            self.all[-1][2][self.area] += data
        elif self.option:
            self.all[-1][2][self.option] += data
            self.option = None


class Browser:
    """Keeps cookies and the page that it is on; each program has one that knows its errors."""

    def __init__(self, php):
        self.php = php
        self.address = ""
        self.cookies = http.cookiejar.CookieJar(http.cookiejar.DefaultCookiePolicy(rfc2965=True))
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        self.text = ""
        self.code = 0

    def go(self, place, fields=None):
        """Opens a page of the server, by POST with the fields if there are some; returns its text."""
        address = urllib.parse.urljoin(f"http://127.0.0.1:{self.php.port}/", place)
        data = None if fields is None else urllib.parse.urlencode(fields, doseq=True).encode()
        try:
            answer = self.opener.open(urllib.request.Request(address, data), timeout=60)
        except urllib.error.HTTPError as error:
            answer = error
        self.address, self.code = answer.geturl(), answer.status
        self.text = answer.read().decode("utf-8", errors="replace")
        return self.text

    def form(self, wanted):
        """The address and the fields of the form of this name, or with this field."""
        for action, name, fields in Forms(self.text).all:
            if name == wanted or wanted in fields:
                return action, dict(fields)
        raise AssertionError(
            f"there is no form {wanted} on {self.address}: {shown(self.text)[:300]}"
        )

    def send(self, wanted, **changed):
        """Fills a form of the page, and sends it."""
        action, fields = self.form(wanted)
        fields.update(changed)
        return self.go(urllib.parse.urljoin(self.address, action), fields)

    def error(self):
        """What the page says of an error."""
        return None

    def problems(self):
        """What was logged since the last call."""
        return self.php.problems()

    def fine(self):
        """Fails unless the page is there, and neither the program nor PHP found an error."""
        found = (self.code, self.error(), self.problems())
        shared.equal(found, (200, None, ""), self.address)

    def visit(self, place, *wanted):
        """Opens a page, which must be fine and have these texts."""
        self.go(place)
        self.fine()
        self.says(*wanted)

    def submit(self, form, *wanted, **changed):
        """Sends a form of the page; what answers must be fine and have these texts."""
        self.send(form, **changed)
        self.fine()
        self.says(*wanted)

    def says(self, *wanted):
        """Fails unless the page has these texts."""
        for text in wanted:
            if text not in self.text:
                raise AssertionError(
                    f"{self.address} ({self.code}) does not say {text}: {shown(self.text)[:400]}"
                )


def shown(text):
    """The text of a page without its tags, scripts and styles."""

    class Text(html.parser.HTMLParser):
        hidden = 0
        found = ""

        def handle_starttag(self, tag, _):
            self.hidden += tag in ("script", "style")

        def handle_endtag(self, tag):
            self.hidden -= tag in ("script", "style")

        def handle_data(self, data):
            if not self.hidden:
                self.found += data + " "

    reader = Text()
    reader.feed(text)
    return " ".join(reader.found.split())


def run(checks, browser):
    """Runs checks of a program under PHP, which stands in the folder that the command line names."""
    with tempfile.TemporaryDirectory() as work, Php(sys.argv[1], work) as php:
        shared.run(checks, browser(php))
