"""The report as a ticket: what it says first, that hostile text changes nothing in it, and that it fits any budget."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from postmortem.knowledge.schema import Knowledge
from postmortem.report import Report, markdown
from postmortem.report.encode_ticket import length
from postmortem.report.excerpt import Excerpt, ExcerptLine, Passage
from postmortem.report.texts import Texts
from postmortem.report.ticket import FLAVORS, FLOOR
from postmortem.scan import Lexicon
from postmortem.text import LogText
from tests.report.tickets import ACTING, HARMLESS, HOSTILE, balanced, dressed, parsed, shape, spoken
from tests.test_fixtures import report_on

SOME = [
    "bucket-spike-fatal-2025-sdxl",
    "early-step-checkpointing-off",
    "sampling-mid-run-flux-1600",
    "host-kernel-kill-wan-load",
    "regression-klein-load-inside",
    "no-memory-disk-full",
    "folder-torn-checkpoint",
    "two-jobs-recover-first-fails",
    "silent-load-windows-wan",
    "ok-clean-sdxl",
]


@pytest.fixture(scope="module")
def reports(lexicon: Lexicon) -> dict[tuple[str, str], Report]:
    return {(name, lang): report_on(name, lexicon, lang) for name in SOME for lang in ("en", "ko")}


def excerpt_for(report: Report, text: str = HARMLESS) -> Excerpt:
    """An excerpt with lines around each piece of evidence, all saying `text`."""
    passages = [
        Passage(
            item.source,
            [
                ExcerptLine(max(1, item.line - 1), LogText(text)),
                ExcerptLine(item.line, LogText(text), item.what, item.says),
                ExcerptLine(item.line + 1, LogText(text)),
            ],
        )
        for item in report.failure.evidence
    ]
    return Excerpt(passages)


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_verdict_proof_and_first_fix_come_first(
    lang: str, reports: dict[tuple[str, str], Report], knowledge: Knowledge
) -> None:
    report = reports["early-step-checkpointing-off", lang]
    text = markdown.render(report, Texts(knowledge, lang))
    first, _, folded = text.partition("<details>")
    assert first.startswith(f"### {report.failure.headline.reveal()[:20]}")
    order = [
        "141: Error running job: OOM",
        report.remedies[0].title,
        "-  gradient_checkpointing: false",
        "velvet_masks",
    ]
    places = [first.index(part) for part in order]
    assert places == sorted(places)
    assert "\n train:\n-  gradient_checkpointing: false\n+  gradient_checkpointing: true\n" in first
    assert all(item.title in folded for item in report.remedies[1:])


def test_the_proof_is_the_most_telling_line_of_each_kind(reports: dict[tuple[str, str], Report]) -> None:
    assert [item.what for item in markdown.proof(reports["bucket-spike-fatal-2025-sdxl", "en"])] == [
        "bar", "frame", "oom",
    ]  # fmt: skip
    assert [item.what for item in markdown.proof(reports["host-kernel-kill-wan-load", "en"])] == ["phase", "kill"]
    assert markdown.proof(reports["ok-clean-sdxl", "en"]) == []


def test_evidence_is_marked_in_the_excerpt(reports: dict[tuple[str, str], Report], knowledge: Knowledge) -> None:
    report = reports["bucket-spike-fatal-2025-sdxl", "en"]
    text = markdown.render(report, Texts(knowledge, "en"), excerpt_for(report))
    assert f"> 111  {HARMLESS}   <- allocation failed" in text
    assert f"  110  {HARMLESS}\n" in text


def test_a_value_that_the_config_does_not_hold_is_not_taken_out_of_it(
    reports: dict[tuple[str, str], Report], knowledge: Knowledge
) -> None:
    text = markdown.render(reports["bucket-spike-fatal-2025-sdxl", "en"], Texts(knowledge, "en"))
    assert "+  cache_text_embeddings: true  # default: false" in text
    assert "-  cache_text_embeddings" not in text


@pytest.mark.parametrize("name", SOME)
def test_links_lead_to_guides_and_sources_only(
    name: str, reports: dict[tuple[str, str], Report], knowledge: Knowledge
) -> None:
    report = dressed(reports[name, "en"], "https://evil.example www.evil.example")
    urls = {item.guide.url for item in report.remedies} | {item.url for item in report.regressions}
    tokens = parsed(markdown.render(report, Texts(knowledge, "en"), excerpt_for(report, "https://evil.example")))
    found = {child.attrs["href"] for token in tokens for child in token.children or () if child.type == "link_open"}
    assert found <= urls


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("name", SOME[:4])
def test_hostile_text_changes_no_token_of_the_markdown(
    name: str, hostile: str, reports: dict[tuple[str, str], Report], knowledge: Knowledge
) -> None:
    report = reports[name, "en"]
    texts = Texts(knowledge, "en")
    tame = markdown.render(dressed(report, HARMLESS), texts, excerpt_for(report), max_chars=0)
    wild = markdown.render(dressed(report, hostile), texts, excerpt_for(report, hostile), max_chars=0)
    tokens = parsed(wild)
    assert shape(tokens) == shape(parsed(tame))
    assert not [run for run in spoken(tokens) if ACTING.search(run)]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_text_changes_no_block_of_the_other_flavors(
    hostile: str, reports: dict[tuple[str, str], Report], knowledge: Knowledge
) -> None:
    report = reports["folder-torn-checkpoint", "en"]
    texts = Texts(knowledge, "en")

    def written(text: str, flavor: str) -> str:
        return markdown.render(dressed(report, text), texts, excerpt_for(report, text), flavor=flavor, max_chars=0)

    wiki = [jira_outline(written(text, "jira")) for text in (HARMLESS, hostile)]
    assert wiki[0] == wiki[1]
    discord = written(hostile, "discord")
    assert discord.count("```") == written(HARMLESS, "discord").count("```")
    outside = re.sub(r"```.*?```", "", discord, flags=re.DOTALL)
    assert not ACTING.search(re.sub(r"<https://[^>]*>|(`+)(?!`).+?(?<!`)\1(?!`)", "", outside))
    plain = written(hostile, "plain")
    assert not re.search(r"@\w", plain)
    assert max(cell_len(line) for line in plain.split("\n") if "https://www" not in line) <= 76


def jira_outline(text: str) -> list[str]:
    """The lines of a wiki text without what stands in blocks, and of each line only what Jira would act on."""
    kept: list[str] = []
    inside = False
    for line in text.split("\n"):
        if line == "{noformat}":
            inside = not inside
        if not inside:
            bare = re.sub(r"\\[-#*_+?^~|%{}\[\]()!@]|&#\d+;", "", line)
            kept.append("".join(re.findall(r"\{\{|\}\}|[{}|*_\[\]!@\\]|^h\d|^bq|https?:", bare)))
    assert not inside
    return kept


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from(SOME),
    st.sampled_from(["en", "ko"]),
    st.sampled_from(sorted(FLAVORS)),
    st.one_of(st.sampled_from(HOSTILE), st.text(max_size=200)),
    st.integers(FLOOR, 12_000),
)
def test_a_ticket_fits_its_budget_and_is_whole(
    reports: dict[tuple[str, str], Report],
    knowledge: Knowledge,
    name: str,
    lang: str,
    flavor: str,
    hostile: str,
    most: int,
) -> None:
    report = dressed(reports[name, lang], hostile)
    text = markdown.render(report, Texts(knowledge, lang), excerpt_for(report, hostile), flavor=flavor, max_chars=most)
    assert length(text) <= most
    assert balanced(text, flavor)


@pytest.mark.parametrize("hostile", ["`" * 400, "😀" * 300, "*" * 400, ":" * 400, "<&>" * 200, "\\" * 300, HARMLESS])
@pytest.mark.parametrize("flavor", sorted(FLAVORS))
def test_the_floor_holds_verdict_table_and_first_fix(
    flavor: str, hostile: str, lexicon: Lexicon, knowledge: Knowledge, reports: dict[tuple[str, str], Report]
) -> None:
    for (name, lang), report in reports.items():
        if name in SOME[1::2]:
            continue
        text = markdown.render(dressed(report, hostile), Texts(knowledge, lang), flavor=flavor, max_chars=FLOOR)
        assert length(text) <= FLOOR, name
        assert report.failure.headline.reveal()[:12] in text
        if report.remedies and not report.remedies[0].title.isascii() and flavor != "plain":
            assert report.remedies[0].title[:20] in text
        if report.remedies and report.remedies[0].changes:
            assert re.search(r"^ *\+ ", text, re.MULTILINE), name


@pytest.mark.parametrize(("flavor", "most"), [("github", 60_000), ("discord", 2_000), ("jira", 30_000)])
def test_by_default_a_ticket_fits_its_tracker(
    flavor: str, most: int, reports: dict[tuple[str, str], Report], knowledge: Knowledge
) -> None:
    report = dressed(reports["bucket-spike-fatal-2025-sdxl", "ko"], "한국어 " * 100)
    huge = Excerpt([Passage(LogText("log"), [ExcerptLine(n, LogText("한" * 500), "oom", "x") for n in range(80)])] * 9)
    text = markdown.render(report, Texts(knowledge, "ko"), huge, flavor=flavor)
    assert length(text) <= most
    assert len(text.encode()) < 4 * 65_536
    assert "--max-chars 0" in text.replace("\\", "")


def test_what_was_left_out_is_said_and_the_least_important_goes_first(
    reports: dict[tuple[str, str], Report], knowledge: Knowledge
) -> None:
    report, texts = reports["bucket-spike-fatal-2025-sdxl", "en"], Texts(knowledge, "en")
    whole = markdown.render(report, texts, max_chars=0)
    assert "--max-chars" not in whole
    less = markdown.render(report, texts, max_chars=length(whole) - 1)
    assert less.rstrip().endswith(
        f"stay within {length(whole) - 1:,} characters: timeline. For all of it: `--max-chars 0`"
    )
    short = markdown.render(report, texts, max_chars=2000)
    for kept in (
        "### GPU out of memory",
        "111: torch.OutOfMemoryError",
        "+    resolution: [768]",
        "| card | 16 GB class",
    ):
        assert kept in short
    assert "settings, what will not help" in short


def test_a_budget_below_the_floor_is_refused(reports: dict[tuple[str, str], Report], knowledge: Knowledge) -> None:
    with pytest.raises(ValueError, match=str(FLOOR)):
        markdown.render(reports["ok-clean-sdxl", "en"], Texts(knowledge, "en"), max_chars=FLOOR - 1)


def test_room_that_a_large_part_leaves_is_filled_again(
    reports: dict[tuple[str, str], Report], knowledge: Knowledge
) -> None:
    """Of a huge excerpt only the evidence is left, and then there is room again for what had gone before it."""
    report, texts = reports["bucket-spike-fatal-2025-sdxl", "en"], Texts(knowledge, "en")
    lines = [ExcerptLine(line, LogText("x" * 500)) for line in range(60)]
    text = markdown.render(report, texts, Excerpt([Passage(LogText("log"), lines)]), max_chars=20_000)
    assert "Settings that matter" in text
    assert "What happened, in order" in text
    assert "characters: log excerpt." in text


@pytest.mark.parametrize(
    ("lang", "fact", "row", "says"),
    [
        ("en", "| config | in the log |", "| log, line ", "from here on 54.7 s a step, before 3 s"),
        ("ko", "| 설정 | 로그 안의 설정 |", "| 로그, 줄 ", "여기부터 스텝당 54.7초, 그 전에는 3초"),
    ],
)
def test_a_pace_is_proven_by_its_figures_and_the_log_is_named_in_words(
    lang: str, fact: str, row: str, says: str, lexicon: Lexicon, knowledge: Knowledge
) -> None:
    report = report_on("spill-flux-windows", lexicon, lang)
    shown = markdown.render(report, Texts(knowledge, lang))
    assert fact in shown and row in shown
    assert [item.says for item in report.failure.evidence if item.what == "slowdown"] == [says]


def test_a_bar_in_the_timeline_says_where_it_stood(lexicon: Lexicon) -> None:
    report = report_on("bucket-spike-fatal-2025-sdxl", lexicon, "en")
    bars = [item.text.reveal() for item in report.timeline if item.event == "bar_main"]
    assert bars and all(re.fullmatch(r"[\w -]+: \d+/\d+", text) for text in bars)
