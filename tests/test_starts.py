"""A log of many starts of a job: work in proportion to its length, and what all of them say is private."""

from __future__ import annotations

import cProfile
import pstats

from postmortem.cli import common, forms
from postmortem.knowledge.schema import Knowledge
from postmortem.report import build
from postmortem.report.excerpt import cut
from postmortem.report.redact import Redactor, settings_of
from tests.conftest import Analyse
from tests.simulate import config, head, training

START = head(config()) + training(6, [3])


def calls(log: str, run: Analyse, knowledge: Knowledge) -> int:
    """Functions that are called on the way from a log to a redacted page."""
    with cProfile.Profile() as counted:
        analysis = run(log)
        report = build(analysis, knowledge)
        excerpt = cut(report, lambda name: [log.encode()])
        redactor = Redactor(knowledge)
        redactor.learn(report, settings_of(analysis))
        redactor.learn(excerpt)
        forms.rendered(
            redactor.document(report), redactor.excerpt(excerpt), knowledge, common.Format.html, to_file=True
        )
    return int(pstats.Stats(counted).total_calls)  # type: ignore[attr-defined]


def test_the_work_grows_as_the_log_does(run: Analyse, knowledge: Knowledge) -> None:
    calls(START, run, knowledge)  # what is made once
    few, more, most = (calls(START * count, run, knowledge) for count in (65, 85, 105))
    assert most - more < 1.15 * (more - few)


def test_what_starts_say_again_is_learnt_once_and_what_differs_always(run: Analyse) -> None:
    names = [f"kiln{number}" for number in range(12)]
    analysis = run("".join((head(config(), name) + training(6, [3])) * 5 for name in names))
    assert len(analysis.attempts) == 60
    settings = settings_of(analysis)
    assert len(settings) <= 3 * len(names)
    assert [name for name in names if {"name": name} in settings] == names
