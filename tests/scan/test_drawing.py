"""Which bar a draw belongs to, where something that no entry knows stands before its description."""

from __future__ import annotations

import pytest

from postmortem.model import BarSpan
from postmortem.scan import Lexicon, scan

DRAW = "Generating Samples:  25%|##5       | 1/4 [00:10<00:30, 10.21s/it]\n"


def span_of(log: str, lexicon: Lexicon) -> BarSpan:
    return next(item for item in scan([log.encode()], lexicon).items if isinstance(item, BarSpan))


@pytest.mark.parametrize("before", ["2026/05/20,INFO,", 'level=info msg="', "<7> trainer> ", "[aitk] worker 3 | "])
def test_a_known_description_behind_unknown_words(lexicon: Lexicon, before: str) -> None:
    span = span_of(before + DRAW, lexicon)
    assert (span.description.reveal(), span.event) == ("Generating Samples", "bar_sampling")


@pytest.mark.parametrize("before", ["my_", "x"])
def test_a_description_that_only_ends_in_the_same_letters(lexicon: Lexicon, before: str) -> None:
    assert span_of(before + DRAW, lexicon).event is None


def test_a_job_is_called_what_it_likes(lexicon: Lexicon) -> None:
    name = "how to Generating Samples"
    log = f"# Running job: {name}\n" + DRAW.replace("Generating Samples", name)
    assert span_of(log, lexicon).description.reveal() == name
