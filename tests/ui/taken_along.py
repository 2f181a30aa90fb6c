"""Whether a report or a file that is taken along is words, tables and charts, whatever others wrote into it."""

import ast
from html.parser import HTMLParser

from tests.hostile import GFM, STRANGER, UNSEEN, formulas


def require_report(files):
    """Find out whether a report is paper: words, tables and charts, and nothing that goes elsewhere or runs."""
    parts = [part for token in GFM.parse(files["md"]) for part in (token, *(token.children or ()))]
    linked = [part.attrs["href"] for part in parts if part.type == "link_open"]
    assert not {"image", "html_inline", "html_block", "s_open"} & {part.type for part in parts}
    assert not [address for address in linked if STRANGER in address]
    prose = "".join(part.content for part in parts if part.type == "text")
    assert STRANGER not in prose, "what a renderer would make a link of is code"
    page = Page.of(files["html"])
    assert not page.tags & {"a", "img", "script", "iframe", "object", "link", "base", "form"}
    assert not [value for value in page.values if STRANGER in value and value.startswith(("http", "//", "www"))]
    for text in files.values():
        assert not UNSEEN.search(text)


class Page(HTMLParser):
    """Tags of a page, and the values of their attributes."""

    def __init__(self):
        super().__init__()
        self.tags, self.values = set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.values += [value for name, value in attrs if value and name in ("href", "src", "xlink:href", "style")]

    @classmethod
    def of(cls, text):
        page = cls()
        page.feed(text)
        return page


def made(data):
    """The bytes of a file, which some buttons make when they are pressed."""
    found = data() if callable(data) else data
    return found if isinstance(found, bytes) else found.encode()


def require_file(name, data):
    """Find out whether a file that is taken along is what its name says, and nothing more."""
    text = data.decode(errors="replace")
    if name.endswith(".csv"):
        assert formulas(data) == []
        assert not UNSEEN.search(text.replace("\r\n", "\n"))
        assert STRANGER in text or name == "timings.csv", "ours alone"
    elif name.endswith(".py"):
        assert text.isascii()
        assert not [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name) and node.id == "HYPERLINK"]
    elif name.endswith(".html"):
        page = Page.of(text)
        assert not page.tags & {"a", "img", "iframe", "object", "link", "base", "form"}
        assert not [value for value in page.values if STRANGER in value]
        assert "default-src 'none'" in text
