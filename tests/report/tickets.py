"""What the tests of tickets share: hostile texts, reports made of them, and readers of what was written."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

from postmortem.text import LogText, Words

T = TypeVar("T")

HARMLESS = "train log text"
HOSTILE = [
    "@here @everyone @octocat @org/team mail me@example.com",
    "#123 GH-123 org/repo#1 a5c3785ed8d6a35868bc169f07e40e889087fd2e !12 &3 %4 ~bug",
    "https://evil.example/x www.evil.example ftp://evil.example <https://evil.example>",
    "[click](https://evil.example) ![pixel](https://evil.example/p.png) [a]: https://evil.example",
    ":bomb: :+1: <:emoji:123> <@123> <#456> <@&789>",
    "<script>alert(1)</script><img src=x onerror=alert(1)><!-- &lt;b&gt; &#64;here",
    "</details></summary><details open><summary>",
    "``` ```` ~~~ `",
    "`",
    "````````````",
    "~~~~~~~~~~~~",
    "a ` b `` c ``` d",
    "ends with a backslash \\",
    "\\` \\| \\\\| a|b||c",
    "| a | b |",
    "[^1] [^1]: note [[wiki]]",
    "- [ ] task",
    "> [!NOTE]",
    "# heading",
    "====",
    "----",
    "1. one",
    "$x^2$ $$y$$ $`z`$",
    "mermaid\ngraph TD\n```",
    "{noformat}x{noformat} {code}y{code} {color:red}z{color} {html}h{html}",
    "[~admin] [~accountid:5b10] ABC-123 !image.png! [link|http://evil.example] h1. bq. ----",
    "*b* _i_ -s- +u+ ^sup^ ~sub~ ??cite?? {{mono}} (!) (x) (y) :) ;) :D (*r)",
    "C:\\Users\\bob\\x \\{ \\\\{noformat}",
    "||spoiler|| >>> quote -# small",
    "\x1b[31mred\x1b[0m \x1b]8;;http://x\x07link\x1b]8;;\x07 \u202eevil\u202c \u200bzero",
    "new\nline\r\nand\ttab \u2028 \x0b \x0c",
    "=1+1 +cmd|' /C calc'!A0",
    "한국어 문장입니다",
    "😀" * 300,
    "`" * 400,
    "*" * 400,
    "x" * 2000,
    "&" * 500,
]


def dressed(value: T, text: str) -> T:
    """A copy of a document with `text` wherever something of a log or a config stands."""
    return _dressed(value, text)  # type: ignore[no-any-return]


def _dressed(value: Any, text: str) -> Any:
    if isinstance(value, LogText):
        return LogText(text)
    if isinstance(value, Words):
        # as much as `Texts` lets into a sentence
        return Words(*(_dressed(part, text[:200]) for part in value.parts))
    if isinstance(value, list):
        return [_dressed(item, text) for item in value]
    if isinstance(value, dict):
        return {key: _dressed(item, text) for key, item in value.items()}
    if isinstance(value, msgspec.Struct):
        return type(value)(**{name: _dressed(getattr(value, name), text) for name in value.__struct_fields__})
    return value


def parsed(text: str) -> list[Token]:
    """As GitHub reads it: tables, strikethrough, bare addresses, HTML."""
    return MarkdownIt("gfm-like", {"html": True}).parse(text)


def shape(tokens: list[Token]) -> list[str]:
    """What a text consists of, whatever it says: blocks and inline elements in order, and where links lead."""
    found: list[str] = []
    for token in tokens:
        kind = f"{token.type} {token.tag} {token.info}"
        found.append(f"{kind} {re.sub(r'<summary>.*</summary>', '', token.content)}" if "html" in kind else kind)
        for child in token.children or ():
            name = f"  {child.type} {child.attrs.get('href', '')}"
            if child.type != "text" or found[-1] != name:
                found.append(name)
    return found


def spoken(tokens: list[Token]) -> list[str]:
    """All text outside code: where GitHub looks for mentions, references, shortcodes and formulas."""
    inline = [child for token in tokens for child in token.children or ()]
    runs: list[str] = [""]
    for child in inline:
        if child.type == "text":
            runs[-1] += child.content
        else:
            runs.append("")
    return [run for run in runs if run]


ACTING = re.compile(
    r"@\w|#\d|\bGH-\d|\b(?=\d*[a-f])[0-9a-f]{7,40}\b(?<=\d)|(?<!\w):[a-z0-9_+-]+:|\$|https?:|\bwww\.|\w@\w",
    re.IGNORECASE,
)
"""What GitHub acts on in text that is not code."""


def balanced(text: str, flavor: str) -> bool:
    """Whether every fence, fold and block that opens is closed."""
    if flavor == "discord":
        return text.count("```") % 2 == 0 and "<details>" not in text
    if flavor == "jira":
        return sum(line == "{noformat}" for line in text.split("\n")) % 2 == 0 == text.lower().count("{noformat}") % 2
    if flavor == "plain":
        return True
    blocks = parsed(text)
    opened = sum(token.content.startswith("<details>") for token in blocks if token.type == "html_block")
    closed = sum(token.content.strip() == "</details>" for token in blocks if token.type == "html_block")
    lines = text.split("\n")
    fences = [token for token in blocks if token.type == "fence"]
    ends = all(token.map is not None and lines[token.map[1] - 1] == token.markup for token in fences)
    return opened == closed and ends
