"""The encoders of tickets: log text and sentences as GitHub's Markdown, Discord's, Jira's wiki markup, and plain text.

Log text stands in code only, where trackers look for no mentions, issue numbers, addresses, shortcodes, formulas or
HTML. Our own words are escaped, and what a tracker would act on even in escaped text goes into code as well.
"""

from __future__ import annotations

import html
import re

from postmortem.text import LogText, Words, printable

# what trackers turn into links, mentions, emoji or formulas after the Markdown is rendered, where no escape helps
_ACTS = re.compile(
    r"[^\s@]{0,80}@\w[^\s)\],;]*"
    r"|[\w./-]{0,80}#\d[^\s)\],;]*|\bGH-\d+"
    r"|(?<!\w)[!%&]\d+\b"
    r"|(?:[a-z][a-z+.-]{1,20}://|\bwww\.)[^\s)\],;]+"
    r"|[^\s$]{0,80}\$\S*"
    r"|(?<!\w):[\w+-]+:"
    r"|\b(?=[0-9a-f]{0,39}[0-9])(?=[0-9a-f]{0,39}[a-f])[0-9a-f]{7,40}\b",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https://[A-Za-z0-9.-]+(?:/[A-Za-z0-9._~%/#?=&-]*)?")
_MARKUP = re.compile(r"([\\`*_\[\]<>|~&])")
_LINE_START = re.compile(r"^(\s*)([#+=-]|\d+(?=[.)](?:\s|$)))")
_WIKI = re.compile(r"[-#*_+?^~|%{}\[\]()!@&\\:;]|(?<=www)\.", re.IGNORECASE)
_WIKI_OURS = re.compile(
    r"[*_+?^|%{}\[\]!@&\\]|#(?!\w)|(?<!\w)~(?=\S)|~(?=\w)"
    r"|(?<!\w)-(?=\S)|-(?!\w)(?=\S)|(?<=[A-Z])-(?=\d)|-(?=-)"
    r"|[:;](?=[-)(DPpO|]|//)|\((?=(?:[xyni/*]|on|off|flag|flagoff|\*[rgby])\))"
)
_WIKI_CLOSER = re.compile(r"\{(?=(?:noformat|code)\b)", re.IGNORECASE)
_WIKI_STARTS = re.compile(r"^(\s*)(h[1-6]|bq)\.")


def shortened(text: LogText, limit: int) -> LogText:
    """Log text cut to `limit` characters."""
    shown = text.reveal().strip()
    return LogText(shown if len(shown) <= limit else shown[: limit - 1].rstrip() + "…")


def cut(words: Words, limit: int, each: int = 300) -> Words:
    """A sentence of at most `limit` characters, `each` of them out of one piece of a log or a config."""
    left, parts = limit, []
    for part in words.parts:
        shown = shortened(part, each).reveal() if isinstance(part, LogText) else printable(part)
        if len(shown) > left:
            shown = shown[: max(0, left - 1)].rstrip() + "…"
        parts.append(LogText(shown) if isinstance(part, LogText) else shown)
        left -= len(shown)
        if left <= 0:
            break
    return Words(*parts)


def length(text: str) -> int:
    """The length as trackers count it: in UTF-16 units, of which a code point has one or two."""
    return len(text) + sum(1 for char in text if char > "\uffff")


def address(url: str) -> str | None:
    """`url` if it can stand in any markup as it is; else None."""
    return url if _ADDRESS.fullmatch(url) else None


def markdown(words: Words, *, start: bool = False, cell: bool = False, ticks: bool = True) -> str:
    """A sentence of Markdown on one line. `start`: at the start of a line; `cell`: in a table; without `ticks`,
    backticks in code are replaced (Discord knows no longer fences)."""
    shown: list[str] = []
    for text, is_code in _pieces(words):
        if is_code:
            shown.append(markdown_code(LogText(text), cell=cell, ticks=ticks))
        else:
            escaped = _MARKUP.sub(r"\\\1", text)
            shown.append(escaped if shown or not start else _LINE_START.sub(_escaped_start, escaped))
    return "".join(shown).strip()


def _escaped_start(found: re.Match[str]) -> str:
    """A character that makes a heading, a list or a rule of a line that starts with it; of ``1.`` the dot."""
    return found[0] + "\\" if found[2].isdigit() else f"{found[1]}\\{found[2]}"


def markdown_code(text: LogText, *, cell: bool = False, ticks: bool = True, limit: int = 300) -> str:
    """An inline code span that cannot be left from inside. A bar would end a table's cell, even in code."""
    shown = shortened(text, limit).reveal() or " "
    if cell:
        shown = shown.replace("|", "¦")
    if not ticks:
        shown = shown.replace("`", "ˋ")
    fence = "`" * (_longest_run(shown) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def markdown_fence(lines: tuple[LogText, ...], info: str, *, ticks: bool = True) -> str:
    """A fenced block longer than any run inside it; without `ticks`, no run inside it can be a fence."""
    shown = [line.reveal().rstrip() for line in lines]
    if not ticks:
        shown = [line.replace("```", "ˋˋˋ") for line in shown]
    fence = "`" * max(3, max((_longest_run(line) for line in shown), default=0) + 1)
    return "\n".join([fence + info, *shown, fence])


def markup(words: Words) -> str:
    """A sentence inside an HTML element of Markdown, where Markdown itself is not read."""
    parts = [f"<code>{html.escape(text)}</code>" if is_code else html.escape(text) for text, is_code in _pieces(words)]
    return "".join(parts).strip()


def wiki(words: Words, *, cell: bool = False) -> str:
    """A sentence of Jira's wiki markup on one line: log text in monospace, where Jira can see that it is one."""
    pieces = _pieces(words)
    shown: list[str] = []
    for index, (text, is_code) in enumerate(pieces):
        text = text.replace("|", "¦") if cell else text
        if not is_code:
            shown.append(_wiki_ours(text))
            continue
        before = pieces[index - 1][0][-1:] if index else ""
        after = pieces[index + 1][0][:1] if index + 1 < len(pieces) else ""
        inside = _wiki_escaped(shortened(LogText(text), 300).reveal())
        # Jira sees the braces beside a letter, or beside other braces, as text
        beside_word = any(char.isalnum() or char in "{}" for char in before + after)
        shown.append(f"‘{inside}’" if beside_word else "{{" + inside + "}}")
    return _WIKI_STARTS.sub(r"\1\2&#46;", "".join(shown).strip())


def _wiki_escaped(text: str) -> str:
    """Any text. Jira unescapes a backslash before some characters only, and not after another one; the rest are
    entities: the backslash, the ampersand, and what makes addresses and faces (the colon, the at, the dot of www)."""
    return _WIKI.sub(_wiki_char, text)


def _wiki_char(found: re.Match[str]) -> str:
    return f"&#{ord(found[0])};" if found[0] in "&\\:;@." else "\\" + found[0]


def _wiki_ours(text: str) -> str:
    """A sentence of ours: brackets and hyphens stay where they are only that, so that it can be read unrendered."""
    return _WIKI_OURS.sub(_wiki_char, text)


def wiki_block(lines: tuple[LogText, ...]) -> str:
    """A block that Jira shows as it stands; its closing tag inside it is broken, visibly."""
    shown = [_WIKI_CLOSER.sub("{ ", line.reveal().rstrip()) for line in lines]
    return "\n".join(["{noformat}", *shown, "{noformat}"])


def text(words: Words) -> str:
    """A sentence of plain text on one line; a mention out of a log mentions nobody where such text is pasted."""
    return printable("".join(_quiet(part) for part in words.parts)).strip()


def text_line(line: LogText) -> str:
    """A line of a log or a diff in plain text."""
    return _quiet(line).rstrip()


def _quiet(part: str | LogText) -> str:
    return re.sub(r"@(?=\w)", "＠", part.reveal()) if isinstance(part, LogText) else part


def _pieces(words: Words) -> list[tuple[str, bool]]:
    """The sentence as runs of our words (False) and of code (True), no two of a kind beside each other."""
    found: list[tuple[str, bool]] = []

    def add(text: str, is_code: bool) -> None:
        if text and found and found[-1][1] == is_code:
            found[-1] = (found[-1][0] + text, is_code)
        elif text:
            found.append((text, is_code))

    for part in words.parts:
        if isinstance(part, LogText):
            shown = part.reveal().strip()
            add(shown, True)
            continue
        ours, at = printable(part), 0
        for acts in _ACTS.finditer(ours):
            add(ours[at : acts.start()], False)
            add(acts[0], True)
            at = acts.end()
        add(ours[at:], False)
    return found


def _longest_run(text: str) -> int:
    return max((len(run) for run in re.findall(r"`+", text)), default=0)
