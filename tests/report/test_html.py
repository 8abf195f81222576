"""The report as a web page: one sound file that loads nothing, says what the document says, and links its evidence."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import html5lib
import pytest
from markupsafe import escape

from postmortem.knowledge.schema import Knowledge
from postmortem.report import Report, html
from postmortem.report.texts import Texts
from postmortem.scan import Lexicon
from tests.conftest import Analyse
from tests.pages import Elements, page
from tests.test_fixtures import GOLDENS, NAMES, report_on

GOLDEN_NAMES = ("early-step-checkpointing-off", "host-docker-137-caching", "sampling-mid-run-checkpointing-off")
KINDS = (
    *GOLDEN_NAMES,
    *("bucket-spike-lived-flux", "caching-latents-wan-81-frames", "folder-second-attempt-skips", "ok-clean-sdxl"),
    *("no-memory-disk-full", "regression-klein-load-inside", "sizes-underflowed-wsl", "slow-while-windows-zimage"),
    *("startup-quantise-other-process", "folder-database-has-the-error", "spill-flux-windows"),
)
TEMPLATES = Path(html.__file__).parent


@pytest.fixture(scope="module")
def made(lexicon: Lexicon) -> Any:
    @cache
    def make(name: str, lang: str = "en") -> tuple[Report, str, Elements]:
        report = report_on(name, lexicon, lang)
        text = page(name, report, lexicon)
        return report, text, Elements(text)

    return make


@pytest.mark.parametrize("name", GOLDEN_NAMES)
def test_golden_page(name: str, made: Any, knowledge: Knowledge) -> None:
    text = made(name)[1].replace(knowledge.version, "VERSION")
    text = re.sub(r"sha256-[\w+/=]+", "HASH", re.sub(r"(?s)<(style|script)>.*?</\1>", r"<\1></\1>", text))
    golden = GOLDENS / f"{name}.html"
    if os.environ.get("UPDATE_GOLDENS"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("lang", ["en", "ko"])
def test_every_page_is_balanced_and_complete(name: str, lang: str, made: Any) -> None:
    report, text, found = made(name, lang)
    assert found.unbalanced == []
    assert next(found.named("html"))["lang"] == lang
    assert text.count("<h1") == 1
    assert not re.search(r">\s*(?:None|html\.[a-z_.]+|Undefined)\s*<", text)
    for item in report.remedies:
        assert escape(item.title) in text


@pytest.mark.parametrize("name", KINDS)
def test_html5_finds_no_error(name: str, made: Any) -> None:
    parser = html5lib.HTMLParser(strict=False)
    parser.parse(made(name)[1])
    assert [error for error in parser.errors if error[1] != "non-void-element-with-trailing-solidus"] == []


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_loaded_and_only_known_pages_are_linked(name: str, made: Any, knowledge: Knowledge) -> None:
    report, _, found = made(name)
    known = {item.guide.url for item in report.remedies} | {item.url for item in report.regressions}
    for href in found.attributes("href"):
        assert href.startswith("#") or (href in known and href.startswith("https://"))
    assert found.attributes("src") == found.attributes("srcset") == found.attributes("data") == []
    assert not {tag for tag, _ in found.found} & {
        "img",
        "link",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
        "use",
        "image",
    }
    assert not re.search(r"url\(|@import|https?:", found.inside("style"))
    assert all(link["rel"] == "noreferrer" for link in found.named("a") if link["href"].startswith("https:"))


def test_the_policy_allows_this_style_and_this_script_alone(made: Any) -> None:
    _, text, found = made(KINDS[0])
    metas = list(found.named("meta"))
    policy = next(meta["content"] for meta in metas if meta.get("http-equiv") == "Content-Security-Policy")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("default-src") == "'none'"
    for tag in ("style", "script"):
        contents = re.findall(rf"(?s)<{tag}>(.*?)</{tag}>", text)
        assert len(contents) == 1
        digest = base64.b64encode(hashlib.sha256(contents[0].encode()).digest()).decode()
        assert rules.pop(f"{tag}-src") == f"'sha256-{digest}'"
    assert rules == {"base-uri": "'none'", "form-action": "'none'"}
    assert {"name": "referrer", "content": "no-referrer"} in metas
    # the policy holds for what comes after it only
    assert text.index("Content-Security-Policy") < text.index("<style")


@pytest.mark.parametrize("name", KINDS)
def test_no_attribute_acts(name: str, made: Any) -> None:
    _, _, found = made(name)
    names = {key for _, attributes in found.found for key in attributes}
    assert not {key for key in names if key.startswith("on") or key in ("style", "srcdoc", "action")}


@pytest.mark.parametrize("name", NAMES)
def test_ids_are_unique_and_links_lead_somewhere(name: str, made: Any) -> None:
    _, _, found = made(name)
    ids = found.attributes("id")
    assert len(ids) == len(set(ids))
    for href in found.attributes("href"):
        assert not href.startswith("#") or href[1:] in ids
    for label in ("aria-labelledby", "aria-describedby"):
        for value in found.attributes(label):
            assert set(value.split()) <= set(ids)


@pytest.mark.parametrize("name", NAMES)
def test_every_line_of_evidence_is_linked_to_its_place(name: str, made: Any) -> None:
    report, text, found = made(name)
    hrefs = found.attributes("href")
    several = len({item.source for item in report.failure.evidence}) > 1
    for item in report.failure.evidence:
        anchors = [f"L{item.line}"] if not several else [f"L{item.line}", *(f"F{n}L{item.line}" for n in range(2, 6))]
        assert any(f"#{anchor}" in hrefs for anchor in anchors)
        assert escape(item.says) in text


@pytest.mark.parametrize("name", KINDS)
def test_headings_and_landmarks_are_in_order(name: str, made: Any) -> None:
    _, _, found = made(name)
    levels = [int(tag[1]) for tag, _ in found.found if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    tags = [tag for tag, _ in found.found]
    for landmark in ("header", "nav", "main", "footer"):
        assert tags.count(landmark) == 1
    for table in re.findall(r"(?s)<table.*?</table>", made(name)[1]):
        assert "<th scope=" in table


@pytest.mark.parametrize("name", KINDS)
def test_every_picture_has_a_title_and_its_content_in_words(name: str, made: Any) -> None:
    _, text, _ = made(name)
    told = ('role="img"', 'aria-hidden="true"', 'overflow="visible"')  # the last ones stand inside one that is told
    for picture in re.findall(r"<svg [^>]*>", text):
        assert any(sign in picture for sign in told)
    for picture in re.findall(r'(?s)<svg [^>]*role="img".*?<desc[^>]*>(.*?)</desc>', text):
        assert len(picture) > 3


def test_the_first_screen_has_the_cause_the_proof_and_the_next_action(made: Any) -> None:
    report, text, _ = made("early-step-checkpointing-off")
    first = text[: text.index('<dl class="facts">')]
    assert report.failure.headline.reveal() in first
    assert report.failure.factors[0].text.reveal() in first
    assert report.remedies[0].title in first
    assert "gradient_checkpointing: true" in first
    assert 'href="#L141"' in first
    assert re.search(r'<p class="set"><code>train.gradient_checkpointing: <bdi>false</bdi></code>.*line 32', first)


def test_settings_stand_beside_their_defaults(made: Any) -> None:
    _, text, _ = made("early-step-checkpointing-off")
    row = next(row for row in re.findall(r"(?s)<tr.*?</tr>", text) if "gradient_<wbr>checkpointing" in row)
    assert re.findall(r"<bdi>(.*?)</bdi>", row)[:2] == ["false", "true"]
    assert 'class="cause"' in row


def test_every_line_of_a_change_can_be_copied(made: Any) -> None:
    report, text, _ = made("early-step-checkpointing-off")
    changes = sum(len(item.changes) for item in report.remedies)
    assert text.count('<button type="button" class="copy" hidden>') == changes
    assert '<code class="new"><bdi>resolution: [512]</bdi></code>' in text


def test_a_fragment_claims_little_and_still_makes_a_page(run: Analyse, knowledge: Knowledge) -> None:
    from postmortem.report import build

    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.53 GiB of which 1.00 GiB is free.\n"
    report = build(run(line), knowledge)
    text = html.render(report, Texts(knowledge, "en"))
    assert Elements(text).unbalanced == []
    assert '<h2 id="act-title">' not in text
    assert 'id="L1"' in text
    # sizes that are no whole are told, not drawn
    assert "2.0 GiB" in text
    assert 'class="bar"' not in text


def test_every_text_that_the_templates_ask_for_is_there(knowledge: Knowledge) -> None:
    asked: set[str] = set()
    for path in TEMPLATES.glob("*.j2"):
        asked.update(re.findall(r"""t\(["']([a-z_]+(?:\.[a-z_]+)+)["'][,)]""", path.read_text(encoding="utf-8")))
    asked.update(f"html.confidence.{level}" for level in ("high", "medium", "low"))
    asked.update(f"html.picture.{name}" for name in ("ledger", "need", "bands", "steps"))
    asked.update(f"html.mark.{name}" for name in ("preview", "save", "skip", "fail"))
    asked.update(f"html.regression.{name}" for name in ("inside", "possible"))
    assert len(asked) > 60
    for texts in knowledge.texts.values():
        assert [key for key in sorted(asked) if key not in texts] == []
    own = {key for key in knowledge.texts["en"] if key.startswith("html.")}
    code = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES.glob("*.py"))
    assert [key for key in sorted(own - asked) if f'"{key}"' not in code] == []


def test_the_page_is_the_same_every_time(lexicon: Lexicon) -> None:
    one, two = (page(KINDS[0], report_on(KINDS[0], lexicon), lexicon) for _ in range(2))
    assert one == two
