"""Every fixture: the values that must come out, and the golden reports."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from postmortem.intake import open_path
from postmortem.intake.sources import read_config
from postmortem.knowledge import yaml_loader
from postmortem.knowledge.load import history as built_in_history
from postmortem.knowledge.schema import Knowledge
from postmortem.pipeline import Source, analyse
from postmortem.report import Report, build, json_, markdown
from postmortem.report.excerpt import cut as excerpt_cut
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon

FIXTURES = Path(__file__).parent.parent / "fixtures"
GOLDENS = Path(__file__).parent / "goldens"
NAMES = sorted(path.parent.name for path in FIXTURES.glob("*/expect.yaml"))
MEMORY_KINDS = ("gpu_oom", "host_oom", "vram_spill")


def report_on(name: str, lexicon: Lexicon, lang: str = "en") -> Report:
    """The report on a fixture, as the command line would make it."""
    folder = FIXTURES / name
    whole = (folder / "logs").is_dir() or (folder / "samples").is_dir()
    opened = open_path(folder if whole else folder / "log.txt")
    configs = list(opened.configs)
    if not configs and (folder / "config.yaml").exists():
        configs.append(read_config(folder / "config.yaml"))
    logs = [Source(log.name, log.encoding, log.chunks(), log.repairs) for log in opened.logs]
    analysis = analyse(
        name,
        logs,
        configs,
        lexicon,
        skipped_steps=opened.skipped_steps(),
        folder=opened.witness() if whole else None,
        database=opened.database() if whole else None,
        versions=built_in_history(),
    )
    return build(analysis, lexicon.knowledge, lang)


def expected(name: str) -> dict[str, Any]:
    """What the fixture's author says must come out."""
    value, _, _ = yaml_loader.load((FIXTURES / name / "expect.yaml").read_text(encoding="utf-8"))
    assert isinstance(value, dict)
    return value


def at(value: Any, path: str) -> Any:
    """What stands at a dotted path of a report, a number being a place in a list; a list of all for ``[].key``."""
    for index, part in enumerate(path.split(".")):
        if part == "[]":
            rest = ".".join(path.split(".")[index + 1 :])
            return [at(item, rest) for item in value]
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value


def test_there_are_enough_fixtures() -> None:
    assert len(NAMES) >= 25


@pytest.mark.parametrize("name", NAMES)
def test_fixture_says_what_it_must(name: str, lexicon: Lexicon) -> None:
    want = expected(name)
    got = json.loads(json_.render(report_on(name, lexicon)))
    for part in ("failure", "run"):
        for key, value in (want.get(part) or {}).items():
            assert got[part][key] == value, f"{part}.{key}"
    for key, value in (want.get("memory") or {}).items():
        want_size = None if value is None else pytest.approx(value, rel=0.005, abs=1.0)
        assert got["memory"][key] == want_size, f"memory.{key}"
    if "oom_steps" in want:
        steps = sorted({event["step"] for event in got["oom_events"] if event["step"] is not None})
        assert steps == (want["oom_steps"] or [])
    ids = [remedy["id"] for remedy in got["remedies"]]
    if "first_remedy" in want:
        assert (ids[0] if ids else None) == want["first_remedy"]
    assert not set(ids) & set(want.get("never_remedies") or [])
    assert set(want.get("offered") or []) <= set(ids)
    if "regressions" in want:
        assert {item["id"]: item["standing"] for item in got["regressions"]} == want["regressions"]
    for key, day in (want.get("dated") or {}).items():
        found = got["run"]["dated"]
        assert found["from"] >= day if key == "from_after" else found["until"] <= day
    for path, value in (want.get("also") or {}).items():
        assert at(got, path) == value, path
    if "status" in want:
        assert int(got["failure"]["kind"] in MEMORY_KINDS) == want["status"]


def compared(text: str, golden: Path) -> None:
    """`text` is what the golden file holds, or becomes it where the user asks."""
    if os.environ.get("UPDATE_GOLDENS"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["json", "md"])
def test_golden_report(name: str, kind: str, lexicon: Lexicon, knowledge: Knowledge) -> None:
    report = report_on(name, lexicon)
    text = json_.render(report) if kind == "json" else markdown.render(report, Texts(knowledge, "en"))
    compared(text.replace(knowledge.version, "VERSION"), GOLDENS / f"{name}.{kind}")


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize(("flavor", "most"), [("jira", None), ("plain", None), ("discord", None), ("github", 4000)])
@pytest.mark.parametrize("name", ["bucket-spike-fatal-2025-sdxl", "host-kernel-kill-wan-load"])
def test_golden_ticket(
    name: str, flavor: str, most: int | None, lang: str, lexicon: Lexicon, knowledge: Knowledge
) -> None:
    """Of the other flavors two kinds of report, the excerpt cut from the log as the command line does."""
    report = report_on(name, lexicon, lang)
    opened = {log.name: log for log in open_path(FIXTURES / name / "log.txt", again=True).logs}
    excerpt = excerpt_cut(report, lambda source: opened[source].chunks() if source in opened else None)
    text = markdown.render(report, Texts(knowledge, lang), excerpt, flavor=flavor, max_chars=most)
    compared(text.replace(knowledge.version, "VERSION"), GOLDENS / "tickets" / f"{name}.{lang}.{flavor}.txt")


@pytest.mark.parametrize("name", NAMES)
def test_every_language_says_the_same(name: str, lexicon: Lexicon, knowledge: Knowledge) -> None:
    """Same structure, same numbers, same fixes; only words differ."""
    english, korean = (json.loads(json_.render(report_on(name, lexicon, lang))) for lang in ("en", "ko"))
    assert _without_words(english) == _without_words(korean)
    for report in (english, korean):
        assert "None" not in report["failure"]["headline"]
        assert not [item for item in report["remedies"] if item["title"].startswith("remedy.")]


def _without_words(value: Any) -> Any:
    words = ("headline", "says", "title", "name", "why", "cost", "ui", "lang")
    if isinstance(value, dict):
        kept = {key: _without_words(item) for key, item in value.items() if key not in words}
        if "id" in kept:
            kept.pop("text", None)
        if "standing" in kept:
            kept = {key: item for key, item in kept.items() if key not in ("what", "do")}
        return kept
    if isinstance(value, list):
        return [_without_words(item) for item in value]
    return value


@pytest.mark.parametrize("name", NAMES)
def test_markdown_parses_as_meant(name: str, lexicon: Lexicon, knowledge: Knowledge) -> None:
    text = markdown.render(report_on(name, lexicon), Texts(knowledge, "en"))
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    html = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert all(block.startswith(("<details>", "</details>", "<summary>")) for block in html)
    inline = [child for token in tokens if token.children for child in token.children]
    assert not [child for child in inline if child.type in ("html_inline", "image")]
    assert text.count("<details>") == text.count("</details>")
