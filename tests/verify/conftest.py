"""An honest report of each fixture, and what its log gives, made once."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from postmortem.knowledge.schema import Knowledge
from postmortem.report import json_
from postmortem.scan import Lexicon
from postmortem.verify import Given, build, read, spans
from postmortem.verify.document import Verification
from tests.report.test_spans import logs_of
from tests.test_fixtures import report_on

Sent = dict[str, Any]
Verify = Callable[[str, Sent], Verification]


@pytest.fixture(scope="session")
def honest(lexicon: Lexicon) -> Callable[[str], Sent]:
    """The report on a fixture as JSON values, a new copy each time."""
    made = cache(lambda name: json_.render(report_on(name, lexicon)))
    return lambda name: json.loads(made(name))


@pytest.fixture(scope="session")
def verify(lexicon: Lexicon, knowledge: Knowledge, honest: Callable[[str], Sent]) -> Verify:
    """Verify a report against the log of the fixture `name`."""
    logs = cache(logs_of)
    looked_up: dict[str, list[spans.Found]] = {}

    def check(name: str, sent: Sent) -> Verification:
        claims = read(json.dumps(sent).encode())
        held = logs(name)
        key = f"{name} {json.dumps(sent['failure'].get('evidence'))}"
        if key not in looked_up:
            read_log = lambda source: [held.get(source, b"")]  # noqa: E731
            looked_up[key] = list(spans.check(spans.cited(sent), read_log, lexicon, str))
        found = looked_up[key]
        return build(claims, Given(honest(name), found, []), knowledge, "en")

    return check
