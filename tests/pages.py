"""Pages of fixtures, and what the tests of pages ask of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path

from postmortem.report import Report, html
from postmortem.report.excerpt import Excerpt, cut
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon

FIXTURES = Path(__file__).parent.parent / "fixtures"


def excerpt(name: str, report: Report) -> Excerpt:
    """The lines around the evidence of a fixture's report."""

    def read(source: str) -> Iterable[bytes] | None:
        for path in (FIXTURES / name / source, FIXTURES / name / "log.txt"):
            if path.is_file():
                return [path.read_bytes()]
        return None

    return cut(report, read)


def page(name: str, report: Report, lexicon: Lexicon) -> str:
    """The page of a fixture's report, as the command line would write it without redaction."""
    return html.render(report, Texts(lexicon.knowledge, report.lang), excerpt(name, report))


class Elements(HTMLParser):
    """All elements of a page, with their attributes, the text in them, and the elements that they stand in."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.unbalanced: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.unbalanced += self._open

    VOID = ("meta", "br", "wbr", "hr", "img", "input", "link")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.found.append((tag, {key: value or "" for key, value in attrs}))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that has no content (SVG)."""
        self.found.append((tag, {key: value or "" for key, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """An element ends: it must be the one that began last."""
        if not self._open or self._open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        """Note text, with the element it stands in."""
        self.texts.append((self._open[-1] if self._open else "", data))

    def named(self, *tags: str) -> Iterator[dict[str, str]]:
        """The attributes of all elements of these names."""
        return (attributes for tag, attributes in self.found if tag in tags)

    def attributes(self, name: str) -> list[str]:
        """The values of an attribute, over all elements."""
        return [attributes[name] for _, attributes in self.found if name in attributes]

    def inside(self, tag: str) -> str:
        """All text directly in elements of a name."""
        return "".join(text for place, text in self.texts if place == tag)
