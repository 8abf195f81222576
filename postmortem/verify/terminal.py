"""A verification for a terminal: the verdict, what was checked, then claim by claim what differs."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from postmortem.report import encode
from postmortem.report.page import Page
from postmortem.report.texts import Texts
from postmortem.text import LogText
from postmortem.verify.document import Finding, Verification

MAX_SHOWN = 40
"""Claims listed of each kind; all are in the JSON."""
SOME = 5
"""Where one thing already says that the rest cannot hold, so many are enough."""
MAX_VALUE = 240
_STYLE = {"same": "bold green", "differs": "bold red", "unproven": "bold yellow"}


def render(found: Verification, texts: Texts, width: int = 80, *, colour: bool = False) -> str:
    """The verification as text, `width` columns wide."""
    page = Page(width, colour=colour)
    counts = {"differs": len(found.differs), "unchecked": len(found.unchecked)}
    stranger = any(item.why == "other_log" for item in found.differs)
    said = "other_log" if stranger else found.verdict
    page.add(Text(texts(f"verify.verdict.{said}", counts), style=_STYLE[found.verdict]))
    made = {"version": found.report.tool_version, "patterns": found.report.patterns}
    page.add(Text(texts("verify.made", made) + (texts("verify.redacted") if found.report.redacted else "")))
    page.add(Text(""))
    for group in found.groups:
        told = {"same": group.same, "all": group.same + group.differs + group.unchecked}
        page.add(Text(texts(f"verify.group.{group.id}", told), style="" if told["same"] == told["all"] else "bold"))
    _list(page, found.differs, texts, "verify.differs", SOME if stranger else MAX_SHOWN)
    _list(page, found.unchecked, texts, "verify.unchecked", SOME if found.differs else MAX_SHOWN)
    if found.hints:
        page.add(Text(""))
        for hint in found.hints:
            page.add(Text(hint.text))
    return page.text()


def _list(page: Page, findings: list[Finding], texts: Texts, title: str, most: int) -> None:
    if not findings:
        return
    page.add(Text(""))
    page.add(Text(texts(title), style="bold"))
    for item in findings[:most]:
        page.add(Text(f"  {encode.terminal(item.path, 200)}: {item.says}"))
        if item.report is None and item.log is None:
            continue
        where = texts("verify.line", {"line": item.line}) if item.line else ""
        page.add(Text(f"    {texts('verify.report_says')} {_value(item.report)}"))
        page.add(Text(f"    {texts('verify.log_says')} {_value(item.log)}{where}"))
    if len(findings) > most:
        page.add(Text("  " + texts("verify.more", {"count": len(findings) - most})))


def _value(value: Any) -> str:
    return encode.terminal(LogText(encode.value(value)), MAX_VALUE)
