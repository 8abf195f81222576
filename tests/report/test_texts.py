"""Every text that the code can ask for is there, in every language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from postmortem.knowledge.schema import Knowledge
from postmortem.report.texts import Texts, size

CODE = Path(__file__).parents[2] / "postmortem"
CLASSES = (
    *("startup", "caching", "sampling", "early_step", "early_step_unseen", "bucket_spike", "after_sampling"),
    *("steady_training", "saving", "unknown"),
)
PREVIEWS = ("baseline", "unplaced", "finished", "last", "and_steps")
OUTCOMES = ("completed", "completed_with_skips", "failed", "killed", "stopped", "incomplete")


def has(knowledge: Knowledge, key: str) -> bool:
    return all(key in texts for texts in knowledge.texts.values())


def test_every_notice_has_a_text(knowledge: Knowledge) -> None:
    found: set[str] = set()
    for path in CODE.rglob("*.py"):
        found.update(re.findall(r'Notice\(\s*"(\w+)"', path.read_text(encoding="utf-8")))
    assert len(found) > 15
    assert [name for name in found if not has(knowledge, f"warning.{name}")] == []


def test_every_text_key_in_the_code_is_there(knowledge: Knowledge) -> None:
    found: set[str] = set()
    for path in CODE.rglob("*.py"):
        found.update(re.findall(r'texts\(\s*"([a-z_]+(?:\.[a-z_]+)+)"', path.read_text(encoding="utf-8")))
        found.update(re.findall(r"texts\(\s*'([a-z_]+(?:\.[a-z_]+)+)'", path.read_text(encoding="utf-8")))
    assert len(found) > 30
    assert [name for name in found if not has(knowledge, name)] == []


def test_every_headline_is_there(knowledge: Knowledge) -> None:
    keys = [f"gpu_oom.{name}" for name in (*CLASSES, "completed_with_skips", "skips_alive", "swallowed", "bare_error")]
    keys += [f"gpu_oom.sampling_{name}" for name in PREVIEWS]
    keys += [f"host_oom.{name}" for name in CLASSES] + ["host_oom.killed"]
    keys += [f"none.{outcome}" for outcome in ("completed", "stopped", "nan")]
    keys += [f"unknown.{outcome}" for outcome in ("failed", "incomplete", "nan")]
    keys += ["vram_spill", "not_memory"]
    assert [key for key in keys if not has(knowledge, f"headline.{key}")] == []


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_words_of_the_contract(knowledge: Knowledge, outcome: str) -> None:
    assert has(knowledge, f"word.outcome.{outcome}")


@pytest.mark.parametrize(
    ("mib", "shown"),
    [
        (0.000244, "256 bytes"),
        (0.5, "512 KiB"),
        (2, "2.0 MiB"),
        (378, "378 MiB"),
        (1536, "1.5 GiB"),
        (141516, "138 GiB"),
    ],
)
def test_sizes_are_rounded_as_they_deserve(mib: float, shown: str) -> None:
    assert size(mib) == shown


def test_placeholders_are_filled_and_log_text_is_harmless(knowledge: Knowledge) -> None:
    from postmortem.text import LogText

    texts = Texts(knowledge, "en")
    shown = texts(
        "warning.config_differs", {"file": LogText("a\x1b[31m.yaml"), "path": "train.steps", "other": 1, "ran": 2}
    )
    assert shown == "a.yaml says train.steps = 1, but the run used 2."
    assert "{" not in texts("headline.gpu_oom.early_step", {"good_steps": 3})


def test_every_word_on_what_is_safe_is_there(knowledge: Knowledge) -> None:
    for name in ("folder_step", "folder_final", "log_step", "log_final", "log_bare", "nothing"):
        assert has(knowledge, f"word.safe.{name}")
    for name in ("checkpoint_torn", "checkpoint_empty", "optimizer_missing", "optimizer_torn"):
        assert has(knowledge, f"warning.{name}")
    for name in ("running", "completed", "stopped"):
        assert has(knowledge, f"warning.db_{name}")


def test_one_and_many(knowledge: Knowledge) -> None:
    texts = Texts(knowledge, "en")
    one, two = (texts("warning.skips_by_bar_only", {"count": count}) for count in (1, 2))
    assert one.startswith("1 skipped batch is known ")
    assert two.startswith("2 skipped batches are known ")
    broken = re.compile(r"\{[\w.]+\?(?![^{}|]*\|[^{}|]*\})")
    assert [key for language in knowledge.texts.values() for key, text in language.items() if broken.search(text)] == []
