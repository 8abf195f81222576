"""Which preview a traceback alone stands in: before training, or during it."""

from __future__ import annotations

from collections.abc import Iterable

from postmortem.knowledge.history import History
from postmortem.model import Attempt, Dated
from postmortem.scan.lexicon import Lexicon
from postmortem.timeline.frames import subject


def which(attempt: Attempt, dated: Dated | None, lexicon: Lexicon, history: History) -> str | None:
    """The phase of the preview that the traceback stands in; None where the line of the call does not tell.

    AI Toolkit asks for previews before the loop, in it and behind it, by the same words. In every version the first
    of these lines is the one before the loop, so the number of the line tells which call it was.
    """
    calls = [entry for entry in lexicon.frames if entry.pattern.sets.event == "sample_call"]
    traceback = attempt.end.traceback
    for frame in traceback.frames if traceback is not None else ():
        if any(entry.match(subject(frame)) for entry in calls):
            path = history.path_of(frame.path.reveal())
            code = frame.code.reveal().strip()
            if path is None or not frame.number or not code:
                return None
            here = _versions(history.code(path, [(frame.number, code)]), dated)
            above = _versions(history.code(path, [(line, code) for line in range(1, frame.number)]), dated)
            if not here or (here & above and here - above):
                return None
            return "mid_sampling" if here & above else "baseline_sampling"
    return None


def _versions(found: Iterable[Iterable[tuple[int, int]]], dated: Dated | None) -> set[int]:
    """The versions in which one of some lines read so, of those that the log can be of."""
    start, end = (dated.span if dated is not None else None) or (0, 1 << 30)
    return {
        version for ranges in found for first, last in ranges for version in range(max(first, start), min(last, end))
    }
