"""What must hold of every input whatever: one place, for the harnesses, the mutated logs and the hostile corpus.

Bounds are counts of what is kept and written, never clocks.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import jsonschema
import msgspec

from postmortem.intake import Intake, IntakeError, open_stream
from postmortem.intake.packed import Limits
from postmortem.jobconfig import ConfigText
from postmortem.model import BarSpan, Event, Item, ScanResult, Traceback
from postmortem.pipeline import Analysis, NothingRecognised, Source, analyse
from postmortem.report import Report, build, html, json_, markdown, terminal
from postmortem.report.excerpt import cut
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon, scan
from postmortem.scan.bars import MAX_RANGES, MAX_SAMPLES
from postmortem.scan.items import MAX_ITEMS
from postmortem.scan.recognise import MAX_EVENT_TEXT
from postmortem.scan.segments import MAX_TEXT
from postmortem.scan.traceback import MAX_FRAMES
from postmortem.schema import schema
from tests.hostile import acting, lexicon
from tests.pages import Elements
from tests.ways import pieces

MAX_JSON = 4_000_000
MAX_PAGE = 3_000_000
MAX_TICKET = 65_536
"""Characters of a report in each form; the largest input gives no larger one."""
MAX_LISTED = 30_000
"""Entries of any list in a report."""
SMALL = Limits(expanded_mib=8, ratio=200, entries=200)
"""For archives that are tried by the thousand."""


@cache
def validator() -> Any:
    """Of the report's schema, which takes no key that it does not tell of."""
    whole = schema("report")
    for part in whole["$defs"].values():
        if "properties" in part:
            part["additionalProperties"] = False
    return jsonschema.Draft202012Validator(whole)


def check_line(text: str) -> None:
    """`text`, said to a user, is one line with nothing in it that acts."""
    assert text, "nothing said"
    assert "\n" not in text, text
    assert acting(text) == [], text
    assert len(text) < 2000, f"{len(text)} characters in one line"


def check_scan(result: ScanResult) -> None:
    """What a scan keeps is bounded."""
    items = result.items
    assert len(items) <= MAX_ITEMS + 500, f"{len(items)} items"
    assert len(result.last_text.reveal()) <= MAX_TEXT
    for item in items:
        _check_item(item)


def _check_item(item: Item) -> None:
    if isinstance(item, Event):
        assert len(item.text.reveal()) <= MAX_EVENT_TEXT, "an event's text"
        assert len(item.others_mib) <= 64
        assert all(size is None or 0 <= size < 1e8 for size in item.sizes_mib.values()), "a size"
        assert item.place.line >= 1
        assert item.place.offset >= 0
    elif isinstance(item, Traceback):
        assert len(item.frames) <= MAX_FRAMES, "frames"
    elif isinstance(item, BarSpan):
        assert len(item.unproven) <= MAX_RANGES, "ranges"
        assert len(item.samples) <= 3 * MAX_SAMPLES, "samples"


def check_report(report: Report, *, whole: bool = True) -> str:
    """The JSON of `report`, which is as its schema says; nothing acts in it, nor, if `whole`, in any other form."""
    text = json_.render(report)
    assert acting(text) == []
    assert len(text) < MAX_JSON, f"{len(text)} characters of JSON"
    value = json.loads(text, parse_constant=_no_constant)
    check_lists(value)
    if whole:
        validator().validate(value)
        _check_forms(report)
    return text


def _no_constant(name: str) -> Any:
    raise AssertionError(f"{name} in JSON")


def check_lists(value: Any) -> None:
    """No list in a document is without bounds, and no text in it acts."""
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, dict):
            stack.extend(one.values())
            stack.extend(one.keys())
        elif isinstance(one, list):
            assert len(one) <= MAX_LISTED, f"a list of {len(one)}"
            stack.extend(one)
        elif isinstance(one, str):
            assert "\n" not in one or acting(one) == []
            assert acting(one) == [], repr(one[:200])


def _check_forms(report: Report) -> None:
    texts = Texts(lexicon().knowledge, report.lang)
    shown = terminal.render(report, texts, width=80, colour=False, encoding="utf-8")
    assert acting(shown) == []
    for flavor in ("github", "jira"):
        ticket = markdown.render(report, texts, None, flavor=flavor, max_chars=None)
        assert acting(ticket) == []
        assert len(ticket) <= MAX_TICKET
    page = html.render(report, texts, None)
    assert acting(page) == []
    assert len(page) < MAX_PAGE, f"{len(page)} characters of HTML"
    elements = Elements(page)
    assert elements.unbalanced == []
    tags = [tag for tag, _ in elements.found]
    assert tags.count("script") == tags.count("style") == 1  # our own
    assert not {"iframe", "object", "embed", "img", "link", "base", "form"} & {*tags}
    for tag, attributes in elements.found:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert attributes.get("href", "#").startswith(("#", "https://")), (tag, attributes)


def analysed(data: bytes | Sequence[bytes], configs: Sequence[ConfigText] = ()) -> Analysis | None:
    """The analysis of UTF-8 bytes, in one chunk or several; None where nothing in them is known."""
    chunks: Iterable[bytes] = [data] if isinstance(data, bytes) else data
    from postmortem.knowledge.load import history

    try:
        return analyse("-", [Source("log", "utf-8", chunks)], configs, lexicon(), versions=history())
    except NothingRecognised:
        return None


def check_log(data: bytes, *, whole: bool = True, lang: str = "en") -> str | None:
    """All promises for a log whose text is `data`; its report as JSON, or None where nothing in it is known."""
    analysis = analysed(data)
    if analysis is None:
        return None
    check_scan(analysis.scanned)
    report = build(analysis, lexicon().knowledge, lang)
    text = check_report(report, whole=whole)
    cut(report, lambda name: [data])
    return text


def check_chunks(data: bytes, sizes: Sequence[int]) -> None:
    """A scan says the same of `data` in pieces of these sizes, and with its bars read together."""
    plain = scan([data], lexicon(), "log", bulk_from=1 << 62)
    assert scan(pieces(data, *sizes), lexicon(), "log", bulk_from=1 << 62) == plain, f"in pieces of {sizes}"
    assert scan([data], lexicon(), "log", bulk_from=0) == plain, "with bars read together"


def opened(data: bytes, limits: Limits = SMALL, *, again: bool = False) -> Intake | None:
    """`data` as if it were piped in; None where it is refused with one harmless line."""
    try:
        return open_stream(io.BytesIO(data), limits=limits, again=again)
    except IntakeError as refusal:
        check_line(str(refusal))
        return None


def check_input(data: bytes, *, whole: bool = False) -> str | None:
    """All promises for bytes of any kind: opened, read, and reported on."""
    given = opened(data)
    if given is None:
        return None
    from postmortem.reading import analysis_of

    try:
        analysis = analysis_of(msgspec.structs.replace(given, source="-"), lexicon())
    except NothingRecognised:
        return None
    except OSError as problem:
        check_line(problem.strerror or type(problem).__name__)
        return None
    check_scan(analysis.scanned)
    return check_report(build(analysis, lexicon().knowledge), whole=whole)


def fresh(knowledge: Any) -> Lexicon:
    """A lexicon of its own, for packs."""
    return Lexicon(knowledge)
