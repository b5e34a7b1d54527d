"""A blog is installed and written with WordPress: wordpress_checks.py FOLDER, that of its index.php."""

import json
import re
import sys
import tempfile

import web
import shared
from shared import equal, on_mariadb


def problems(browser):
    """What WordPress and PHP said, but for drafts, whose moment is a zero date."""
    lines = browser.php.problems().splitlines()
    no_draft = "Column 'post_date_gmt' cannot be null"
    return "\n".join(line for line in lines if on_mariadb() or no_draft not in line)[:600]


def fine(browser):
    """The page is there, and neither WordPress nor PHP found an error."""
    equal((browser.code, problems(browser)), (200, ""), browser.address)


def install(browser):
    browser.go("wp-admin/install.php")
    fine(browser)
    browser.go("wp-admin/install.php?step=1")
    fine(browser)
    browser.send(
        "weblog_title",
        weblog_title="Chäcks",
        user_name="anna",
        admin_password="a long secret",
        admin_password2="a long secret",
        admin_email="anna@example.com",
        pw_weak="on",
        blog_public="0",
    )
    fine(browser)
    browser.says("WordPress has been installed.")


def login(browser):
    browser.go("wp-login.php")
    fine(browser)
    browser.send("log", log="anna", pwd="wrong")
    browser.says("is incorrect")
    browser.send("log", log="anna", pwd="a long secret", testcookie="1")
    fine(browser)
    browser.says("Dashboard", "At a Glance")


def rest(browser, path, **fields):
    """A call of the interface that the editor uses."""
    browser.go("wp-admin/admin-ajax.php?action=rest-nonce")
    nonce = browser.text
    browser.go(f"index.php?rest_route=/wp/v2/{path}&_wpnonce={nonce}", fields or None)
    answer = json.loads(browser.text)
    found = (browser.code in (200, 201), problems(browser))
    equal(found, (True, ""), f"{path}: {str(answer)[:300]}")
    return answer


def draft(browser):
    """The page of a new post makes a draft of it."""
    if not on_mariadb():
        return "zero dates cannot be held"
    browser.go("wp-admin/post-new.php")
    fine(browser)


def write(browser):
    category = rest(browser, "categories", name="News", slug="news")
    post = rest(
        browser,
        "posts",
        title="A post with 😀 and 'quotes'",
        content="<p>What it says: ünïcode.</p>",
        status="publish",
        **{"categories[]": category["id"]},
        tags="",
    )
    browser.go(f"?p={post['id']}")
    fine(browser)
    browser.says("What it says: ünïcode.", "😀", "News")
    browser.go("")
    fine(browser)
    browser.says("😀", "Hello world!")
    rest(browser, f"posts/{post['id']}", title="Another title")
    browser.go(f"?p={post['id']}")
    browser.says("Another title")


def comment(browser):
    browser.go("?p=1")
    fine(browser)
    browser.send("comment_post_ID", comment="My own words", comment_post_ID="1")
    fine(browser)
    browser.says("My own words")


def lists(browser):
    """The lists of the administration, with pages, filters and searches."""
    for page, wanted in (
        ("edit.php", "Another title"),
        ("edit.php?s=Another&post_status=all", "Another title"),
        ("edit.php?m=0&cat=1&orderby=title&order=asc", "Hello world!"),
        ("edit.php?post_type=page", "Sample Page"),
        ("edit-comments.php", "My own words"),
        ("users.php", "anna@example.com"),
        ("edit-tags.php?taxonomy=category", "News"),
        ("upload.php", "Media Library"),
        ("plugins.php", "Plugins"),
        ("themes.php", "Themes"),
        ("options-general.php", "Chäcks"),
        ("tools.php", "Tools"),
        ("profile.php", "Profile"),
        ("options.php", "All Settings"),
    ):
        browser.go(f"wp-admin/{page}")
        fine(browser)
        browser.says(wanted)


def site_health(browser):
    browser.go("wp-admin/site-health.php?tab=debug")
    fine(browser)
    browser.says("Server version", "utf8mb4")


def search(browser):
    browser.go("?s=title")
    fine(browser)
    browser.says("Another title")
    for page in (
        "?feed=rss2",
        "?cat=2",
        "?m=" + re.search(r"<pubDate>.*?(\d{4})", browser.go("?feed=rss2"))[1],
        "?author=1",
    ):
        browser.go(page)
        fine(browser)
        browser.says("Another title")


def settings(browser):
    browser.go("wp-admin/options-general.php")
    browser.send("blogname", blogname="Other name", submit="Save Changes")
    fine(browser)
    browser.says("Settings saved.")
    browser.go("")
    browser.says("Other name")


def delete(browser):
    browser.go("wp-admin/edit.php")
    trash = re.search(r'href="([^"]+action=trash[^"]+)"', browser.text)[1].replace("&amp;", "&")
    browser.go(trash)
    fine(browser)
    browser.says("1 post moved to the Trash.")
    browser.go("wp-admin/edit.php?post_status=trash&post_type=post")
    gone = re.search(r'href="([^"]+action=delete[^"]+)"', browser.text)[1].replace("&amp;", "&")
    browser.go(gone)
    fine(browser)
    browser.says("1 post permanently deleted.")


CHECKS = [install, login, draft, write, comment, lists, search, settings, site_health, delete]

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as work, web.Php(sys.argv[1], work) as php:
        shared.run(CHECKS, web.Browser(php))
