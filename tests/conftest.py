"""What all tests share: the knowledge base, loaded once, and shortcuts through the pipe."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from functools import cache

import pytest

from postmortem.jobconfig import ConfigText
from postmortem.knowledge.history import History
from postmortem.knowledge.load import history as built_in_history
from postmortem.knowledge.load import load
from postmortem.knowledge.schema import Knowledge
from postmortem.pipeline import Analysis, Source, analyse
from postmortem.scan import Lexicon

Analyse = Callable[..., Analysis]

# a shell's job in the background is deaf to Ctrl-C, and so would be all that tests start and interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@cache
def _lexicon() -> Lexicon:
    """Once a process, not once a session: mutation testing starts a session for each change, in a fork."""
    return Lexicon(load(cache=False))


@pytest.fixture(scope="session")
def knowledge() -> Knowledge:
    """The built-in knowledge base."""
    return _lexicon().knowledge


@pytest.fixture(scope="session")
def lexicon() -> Lexicon:
    """The knowledge base, ready for scanning."""
    return _lexicon()


@pytest.fixture(scope="session")
def history() -> History:
    """AI Toolkit's history, which dates logs."""
    return built_in_history()


@pytest.fixture(scope="session")
def run(lexicon: Lexicon, history: History) -> Analyse:
    """Analyse a log given as text or chunks, with an optional config text."""

    def analyse_log(
        log: str | bytes | Iterable[bytes], config: str | None = None, attempt: int | None = None
    ) -> Analysis:
        chunks = [log.encode()] if isinstance(log, str) else [log] if isinstance(log, bytes) else log
        configs = [ConfigText("config.yaml", config)] if config is not None else []
        log_source = Source("log", "utf-8", chunks)
        return analyse("-", [log_source], configs, lexicon, attempt=attempt, versions=history)

    return analyse_log
