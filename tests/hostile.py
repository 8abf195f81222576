"""Reports in which every character that came from outside is hostile: for each sink, that nothing acts or breaks.

    @given(hostile_reports())
    def test_…(report): assert not acting(render(report))

`poisoned` does the same to any other document (a comparison, a check, an excerpt).
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from itertools import cycle
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from postmortem.knowledge.load import load
from postmortem.report import Report
from postmortem.scan import Lexicon
from postmortem.text import LogText, Words

Document = TypeVar("Document", bound=msgspec.Struct)

TERMINAL = (
    "\x1b[31mred\x1b[0m",
    "\x1b[2J\x1b[H\x1b[?1049h",
    "\x1b]0;title\x07",
    "\x1b]0;never ended",
    "\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1bP+q544e\x1b\\ \x1b_Gf=100;AAAA\x1b\\ \x1b^x\x1b\\",
    "\x9b31m c1 \x9d0;t\x9c \x90q\x9c \x85 \x84",
    "over\rwritten\x08\x08\x7f\x00\x07\x0b\x0c",
    "\x1b[\x1b[31m\x1b]\x1b",
    "\x1b(0lqqk\x0e\x1bc\x1b#8",
    "a\nnew line\r\nand another\u2028and\u2029more\x85end",
    "\ttabs\t\there",
)
UNICODE = (
    "\u202egnp.exe\u202c \u2066iso\u2069 \u200e\u200f\u061c",
    "ze\u200bro\u200c\u200d\u2060\ufeffwidth\u00ad\u180e",
    "\u3164\u115f\u1160\uffa0filler\u034f",
    "tag\U000e0041\U000e007f \ufff9a\ufffab\ufffb",
    "\U0001d173music\U0001d17a \U00013430\U0001343f \U0001bca0",
    "lone\ud800surrogate\udfff",
    "한국어 경로/사용자 日本語 ｆｕｌｌ",
    "emoji 👩‍👩‍👧‍👦 🇰🇷 ❤️ 👍🏽",
    "e\u0301\u0302\u0303\u0304 zalgo" + "\u0336" * 40,
    "\u0646\u0635 \u05e2\u05d1\u05e8\u05d9\u05ea",
)
MARKUP = (
    "[red]markup[/red] [/usr/bin/x] [link=https://evil.example]x[/link] [/]",
    ":smile: :skull:",
    "<script>alert(1)</script>",
    "</script><script src=//evil.example></script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)> \' onmouseover=alert(1) x="',
    "</details></summary></td></table></pre></code></svg></title></style>",
    "<!-- --> --!> <![CDATA[ ]]> <?php ?>",
    "&lt;script&gt; &#60;b&#62; &amp;nbsp;",
    "javascript:alert(1) data:text/html,<script>",
    "{{7*7}} {% raw %} ${7*7} #{7*7}",
)
ISSUES = (
    "```\n```` ~~~~ `````` ``",
    "` `` ``` `",
    "@here @everyone @octocat #1 GH-1 owner/repo#2 fixes #3",
    "https://evil.example/x www.evil.example <https://evil.example> mail@evil.example",
    "[click](https://evil.example) ![x](https://evil.example/x.png) [r]: https://evil.example",
    "# head\n## head\n- item\n1. item\n> quote\n---\n===\n    code",
    "| a | b |\n|---|---|\\| \\`",
    "**bold** __bold__ *i* _i_ ~~s~~ \\ \\\\",
    "{code} {noformat} {quote} {panel} {color:red}x{color} {html}<b>{html} {include:x}",
    "h1. head\nbq. quote\n|| a || * b # c !x.png! [~user] [^file] [a|https://evil.example] {{m}} ----",
    "- [ ] task\n- [x] task <details open>",
)
TABLES = ("=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", '=HYPERLINK("https://evil.example","x")', '","";\t')
PATHS = (
    "C:\\Users\\mina\\x.py",
    "\\\\server\\share\\x",
    "/home/mina/../../etc/passwd",
    "x" * 300,
    "a" * 79 + " " + "가" * 200,
    " ",
    "",
    "None",
    "%s %d %n {0} {name}",
    "null true 1e999",
)
HUGE = "1 MB of one word " + "W" * 1_000_000
HOSTILE = (*TERMINAL, *UNICODE, *MARKUP, *ISSUES, *TABLES, *PATHS)
"""All of them but the huge one."""

FIXTURES = (
    "early-step-checkpointing-off",
    "bucket-spike-lived-flux",
    "folder-retry-succeeded",
    "host-docker-137-caching",
    "no-memory-disk-full",
    "regression-klein-load-inside",
    "sampling-mid-run-flux-1600",
    "spill-flux-windows",
    "steady-fragmentation-chroma",
    "two-jobs-recover-first-fails",
)
"""Between them they have every part of a report."""
_VISIBLE_FORMATS = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""Arabic, Syriac and Kaithi signs that Unicode calls formats and that are seen."""
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5")


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The knowledge base, for tests whose arguments are drawn and no fixtures."""
    return Lexicon(load(cache=False))


@lru_cache(maxsize=256)
def whole(name: str, lang: str = "en") -> Report:
    """The report on a fixture as it is."""
    from tests.test_fixtures import report_on

    return report_on(name, lexicon(), lang)


def hostile_texts() -> st.SearchStrategy[str]:
    """One hostile text: of the list, mixed of two, or any characters at all."""
    listed = st.sampled_from(HOSTILE)
    return st.one_of(listed, st.tuples(listed, listed).map("".join), st.text(max_size=60))


@st.composite
def hostile_reports(draw: st.DrawFn, lang: str | None = None) -> Report:
    """A whole report, all of whose log text is hostile."""
    name = draw(st.sampled_from(FIXTURES))
    report = whole(name, lang or draw(st.sampled_from(["en", "ko"])))
    return poisoned(report, draw(st.lists(hostile_texts(), min_size=1, max_size=12)), huge=draw(st.booleans()))


def poisoned(document: Document, texts: list[str], *, huge: bool = False) -> Document:
    """`document` with each `LogText` in it, wherever it stands, replaced by one of `texts` in turn.

    With `huge`, one of them is a megabyte long.
    """
    turn = cycle([LogText(text) for text in texts])
    left = [LogText(HUGE)] if huge else []

    def walk(value: Any) -> Any:
        if isinstance(value, LogText):
            return left.pop() if left else next(turn)
        if isinstance(value, Words):
            return Words(*(walk(part) for part in value.parts))
        if isinstance(value, msgspec.Struct):
            fields = {name: walk(getattr(value, name)) for name in value.__struct_fields__}
            return msgspec.structs.replace(value, **fields)
        if isinstance(value, list):
            return [walk(item) for item in value]
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        return value

    changed: Document = walk(document)
    return changed


def acting(text: str) -> list[str]:
    """The characters in `text` that a reader does not see and that may act: all controls but LF, bidi, zero-width."""
    found = {
        character
        for character in set(text)
        if character != "\n"
        and (unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp") or character in _FILLERS)
        and character not in _VISIBLE_FORMATS
    }
    return sorted(f"U+{ord(character):04X}" for character in found)
