"""The log excerpt of a ticket: what is in it, what is left out, and how much of it there is."""

from __future__ import annotations

import pytest

from postmortem.bundle import passages
from postmortem.knowledge.schema import Knowledge
from postmortem.report import build
from postmortem.report.texts import Texts
from tests.conftest import Analyse
from tests.simulate import config, finished, head, training


def excerpt(log: str, run: Analyse, knowledge: Knowledge) -> str:
    report = build(run(log), knowledge)
    texts = Texts(knowledge, "en")
    found = passages.gather(report, lambda: [log.encode()], "log", texts)
    return passages.render(found, report.input.lines, texts)


def test_a_long_log_is_cut_with_marks_and_keeps_its_numbers(run: Analyse, knowledge: Knowledge) -> None:
    noise = [f"nothing of note {number}" for number in range(5000)]
    log = head(config()) + "\n".join([*noise, ""]) + training(40, {3, 4, 5, 6}) + finished()
    shown = excerpt(log, run, knowledge)
    rows = shown.splitlines()
    lines = log.split("\n")
    assert any(row.startswith("… ") and "lines left out" in row for row in rows)
    left_out = sum(int(row.split()[1]) for row in rows if row.startswith("… "))
    numbers = {int(row[2:].split("|")[0]) for row in rows if not row.startswith("… ")}
    assert len(numbers) + left_out == len(lines) - 1
    for row in rows:
        number, _, text = row[2:].partition(" |")
        if not row.startswith("… ") and "\r" not in lines[int(number) - 1] and "redraws" not in text:
            assert lines[int(number) - 1].strip() == text.strip()
    proofs = [row for row in rows if row.startswith("> ")]
    assert any("OOM during training step" in row for row in proofs)
    assert "Running 1 job" in rows[0] and "nothing of note 2500" not in shown


def test_an_excerpt_is_bounded_and_the_proof_comes_first(
    run: Analyse, knowledge: Knowledge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "MAX_BYTES", 100_000)
    log = head(config()) + ("x" * 9_000 + "\n") * 300 + training(40, {0, 1, 2, 3}) + ("y" * 9_000 + "\n") * 400
    shown = excerpt(log, run, knowledge)
    assert len(shown.encode()) <= passages.MAX_BYTES * 1.1
    assert any(row.startswith("> ") and "OOM during" in row for row in shown.splitlines())
    assert max(map(len, shown.splitlines())) < passages.MAX_SHOWN + 40


def test_nothing_in_it_acts(run: Analyse, knowledge: Knowledge) -> None:
    log = head(config()) + "\x1b]8;;http://x\x07link\x1b[0m \u202eevil\u200b\n" + training(40, {0, 1, 2, 3})
    assert not set(excerpt(log, run, knowledge)) & set("\x1b\x07\u202e\u200b\r")
