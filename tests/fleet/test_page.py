"""The page: offline, whole without script, harmless whatever the names are, and light enough for many runs."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from postmortem.fleet import reports
from postmortem.fleet.groups import fixes_of
from postmortem.fleet.page import Page, render
from postmortem.fleet.page.private import private
from postmortem.fleet.page.table import CHUNK
from postmortem.fleet.row import Row
from postmortem.fleet.table import frame
from postmortem.knowledge.schema import Knowledge
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon
from tests.fleet.rows import HOSTILE, dead, fine, grouped
from tests.simulate import config, head, training

FLEET = [
    *(dead(number, card_gib=24) for number in range(12)),
    dead(12, step=4000, fingerprint="b" * 16, class_="steady_training", family="SDXL"),
    *(fine(number, family="Z-Image") for number in range(13, 60)),
    Row(run="broken.log", path="/broken.log", status="error", error="a program, not a log"),
]
VOID = {"meta", "link", "input", "br", "rect"}


class Tree(HTMLParser):
    """Elements, attributes and texts; complains where tags do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data.strip()))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def page(
    rows: Sequence[Row],
    knowledge: Knowledge,
    lang: str = "en",
    links: dict[int, str] | None = None,
    *,
    redacted: bool = False,
) -> str:
    content = Page(
        rows, rows, grouped(rows, knowledge), fixes_of(frame(rows), rows), links or {}, "v", "runs", redacted
    )
    return render(content, Texts(knowledge, lang))


def rows_of(tree: Tree) -> int:
    return sum("class" in one and one["class"] in ("bad", "fine") for one in tree.all("tr"))


def test_script_and_style_are_the_only_ones_that_the_policy_allows(knowledge: Knowledge) -> None:
    text = page(FLEET, knowledge)
    policy = next(one["content"] for one in Tree(text).all("meta") if one.get("http-equiv"))
    assert policy is not None and policy.startswith("default-src 'none';") and "unsafe" not in policy
    for tag in ("script", "style"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert f"'sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}'" in policy
    tree = Tree(text)
    assert not any(name.startswith("on") or name in ("style", "src") for _, given in tree.elements for name in given)
    assert not re.search(r"https?://|@import|url\(", text)


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_everything_is_there_without_script(knowledge: Knowledge, lang: str) -> None:
    tree = Tree(page(FLEET, knowledge, lang))
    assert rows_of(tree) == 60
    assert ("bdi", "dead_11") in tree.texts and ("bdi", "fine_59") in tree.texts
    assert all("hidden" in one for one in tree.all("form"))
    said = " ".join(text for _, text in tree.texts)
    assert "fleet_page." not in said and "fleet." not in said and "None" not in said


def test_every_picture_has_words(knowledge: Knowledge) -> None:
    text = page(FLEET, knowledge)
    tree = Tree(text)
    assert all(one["role"] == "img" and one["aria-label"] for one in tree.all("svg"))
    assert text.count("<svg") == text.count("<title>") - 1
    assert ("title", "step 0 to 9: 12") in tree.texts and ("title", "step 2000 to 4999: 1") in tree.texts


def test_what_groups_are_compared_with_are_all_runs(knowledge: Knowledge) -> None:
    """Of a page that shows failures only, the groups were compared all the same."""
    few = "too few runs that did not fail"
    failed = [dead(number, gradient_checkpointing=None, batch_size=None) for number in range(12)]
    narrowed = Page(failed, FLEET, grouped(failed, knowledge), [], {}, "v", "runs", False)
    assert few not in render(narrowed, Texts(knowledge, "en"))
    alone = [*failed, *(dead(number, fingerprint=f"{number:016d}") for number in range(20, 25))]
    assert page(alone, knowledge).count(few) == 1  # once, not with each group


def test_what_could_not_be_read_is_counted_with_the_rest(knowledge: Knowledge) -> None:
    rows = [*FLEET, Row(run="broken.log", path="/broken.log", status="error", error="a program, not a log")]
    tree = Tree(page(rows, knowledge))
    assert ("dt", "Not readable") in tree.texts and ("dt", "Not readable") not in Tree(
        page(FLEET[:60], knowledge)
    ).texts


def test_ranked_by_hours_the_page_speaks_of_hours(knowledge: Knowledge) -> None:
    rows = [*FLEET, dead(99, first_fix="shrink_preview", fingerprint="c" * 16, class_="sampling", hours_lost=40.0)]
    fixes = fixes_of(frame(rows), rows, "hours")
    content = Page(rows, rows, grouped(rows, knowledge, "hours"), fixes, {}, "v", "hours", False)
    tree = Tree(render(content, Texts(knowledge, "en")))
    said = ("p", "The change that would save most GPU hours: Make the previews smaller (Width and Height)")
    assert said in tree.texts and ("title", "40.0 GPU hours lost") in tree.texts


def test_labels_and_headings_are_of_what_they_name(knowledge: Knowledge) -> None:
    tree = Tree(page(FLEET, knowledge))
    ids = [one["id"] for _, one in tree.elements if one.get("id")]
    assert len(ids) == len(set(ids))
    assert all(one["aria-labelledby"] in ids for one in tree.all("section"))
    levels = [int(name[1]) for name, _ in tree.elements if re.fullmatch("h[1-6]", name)]
    assert levels[0] == 1 and all(after <= before + 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("redacted", [True, False])
def test_nothing_hostile_acts(knowledge: Knowledge, redacted: bool) -> None:
    many = dict.fromkeys(("run", "family", "job", "arch", "optimizer", "exception", "place", "resolutions"), HOSTILE)
    rows = [
        dead(1, **many),
        dead(2, **many, kind="not_memory", class_=None, fingerprint="b" * 16, first_fix=HOSTILE),
        Row(run=HOSTILE, path=HOSTILE, status="error", error=HOSTILE, duplicate_of=HOSTILE),
    ]
    shown = private(rows, knowledge) if redacted else rows
    text = page(shown, knowledge, links={0: f"x_reports/{HOSTILE}.md"}, redacted=redacted)
    tree = Tree(text)
    assert len(tree.all("script")) == 1
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u200b]", text)
    assert all(not (one["href"] or "").lower().startswith(("javascript", "data")) for one in tree.all("a"))


def test_labels_stand_for_names(knowledge: Knowledge) -> None:
    rows = [
        dead(1, run="kim/geheim", path="/home/kim/geheim", job="geheim", arch="/home/kim/model"),
        dead(2, run="lee/geheim", path="/home/lee/geheim", job="geheim", duplicate_of="kim/geheim"),
        Row(run="kim/x.log", path="/home/kim/x.log", status="error", error="kim/x.log: not readable"),
    ]
    found = private(rows, knowledge)
    assert [row.run for row in found] == ["<run-1>", "<run-2>", "<run-3>"]
    assert (found[0].job, found[1].job, found[1].duplicate_of) == ("<job-1>", "<job-1>", "<run-1>")
    text = page(found, knowledge, redacted=True)
    assert not re.search("kim|geheim|/home", text)
    assert "&lt;run-1&gt;" in text


def test_many_rows_come_in_parts(knowledge: Knowledge) -> None:
    rows = [*(dead(number) for number in range(3000)), *(fine(number) for number in range(7000))]
    text = page(rows, knowledge)
    tree = Tree(text)
    assert rows_of(tree) == 10_000
    parts = tree.all("details")
    assert len(parts) == 10_000 // CHUNK and sum("open" in one for one in parts) == 1
    assert len(text) < 7_000_000


def test_a_fleet_without_failures_has_a_page(knowledge: Knowledge) -> None:
    tree = Tree(page([fine(1)], knowledge))
    assert ("h1", "None of 1 run ran out of memory") in tree.texts
    Tree(page([], knowledge))


def test_each_failed_run_opens_its_report(tmp_path: Path, lexicon: Lexicon, knowledge: Knowledge) -> None:
    log = tmp_path / "kim" / "log.txt"
    log.parent.mkdir()
    log.write_text(head(config(train__gradient_checkpointing=False), name="geheim") + training(400, {0, 1, 2, 3}))
    rows = [fine(0), dead(1, path=str(log)), dead(2, path=str(log), duplicate_of="dead_1"), dead(3, path="/gone.log")]
    asked = reports.wanted(rows, [row.path for row in rows], tmp_path, "en", redact=True)
    assert list(asked) == [1, 3]
    names = reports.write_all(list(asked.values()), lexicon, 1, None)
    assert names[1] is None and names[0] is not None
    assert "gradient_checkpointing" in (tmp_path / names[0]).read_text()
    again = reports.write_all(list(asked.values()), lexicon, 1, None)
    assert again == names and not list(tmp_path.glob(".*"))
    tree = Tree(page(rows, knowledge, links={1: f"fleet_reports/{names[0]}"}))
    assert {one["href"] for one in tree.all("a")} == {"#runs", f"fleet_reports/{names[0]}"}


def test_reports_are_the_same_whoever_writes_them(tmp_path: Path, lexicon: Lexicon) -> None:
    paths = []
    for number in range(20):
        log = tmp_path / f"{number}.log"
        log.write_text(head(config(), name=f"job_{number}") + training(400, {0, 1, 2, 3}))
        paths.append(log)
    written = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        asked = [reports.Wanted(str(path), str(folder), "ko", True) for path in paths]
        names = reports.write_all(asked, lexicon, workers, None)
        written.append([(folder / str(name)).read_text() for name in names])
    assert written[0] == written[1] and len(set(written[0])) == 20


def test_a_report_that_cannot_be_made_any_more_leaves_no_old_one(tmp_path: Path, lexicon: Lexicon) -> None:
    (one,) = reports.wanted([dead(1)], [str(tmp_path / "gone.log")], tmp_path, "en", redact=True).values()
    (tmp_path / f"{one.stem}.html").write_text("of an earlier page")
    assert reports.write_all([one], lexicon, 1, None) == [None]
    assert list(tmp_path.iterdir()) == []
