"""What makes two failures the same: the kind, the place in the program, and what in the job brought it about.

Never a number, a path or a name of the user's own, never a text for people: the same failure of many users, of many
versions of AI Toolkit and of any capture is one group. docs/fleet.md says which failures count as the same.
"""

from __future__ import annotations

import re
from hashlib import blake2b

import msgspec

from postmortem.diagnosis import conditions
from postmortem.diagnosis.dating import TOOLKIT
from postmortem.knowledge.schema import Cause, Knowledge
from postmortem.model import Event
from postmortem.pipeline import Analysis
from postmortem.text import printable
from postmortem.timeline.frames import innermost_own

MEMORY = ("gpu_oom", "host_oom", "vram_spill")
SETTINGS = ("train.", "model.", "job.")
SHARED = ("host_ram", "pagefile")
"""Memory of the machine that all that is loaded shares."""
SEVERAL = ("startup", "caching", "sampling")
"""The classes that stand for several phases."""
HEAD_WORDS = 4
"""Of a message: what tells two errors of one function apart, before anything of the user's own comes."""
_WORD = re.compile(r"[A-Za-z][a-z]*[,.:;]?")
_NAME = re.compile(r"[\w.<>]{1,80}")


class Identity(msgspec.Struct, frozen=True):
    """A failure without anything that is chance, or of one user only; equal for the same failure.

    `cause` is an entry of causes.yaml; `mechanism` how the memory was refused (`killed`, `worker_killed`, `refused`,
    `swallowed`), or that the log does not hold the settings to tell. `place` is file and function of the innermost
    frame of the program's own, for errors that are not of memory: where in a step or a load memory runs out is chance,
    and the phase says it better. `head` are the first plain words of an error without a name.
    """

    kind: str
    resource: str | None = None
    class_: str | None = None
    phase: str | None = None
    trainer: str | None = None
    cause: str | None = None
    mechanism: str | None = None
    error: str | None = None
    place: str | None = None
    head: str | None = None

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits."""
        parts = (f"{name}={getattr(self, name) or ''}" for name in self.__struct_fields__)
        return blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()


def identity(analysis: Analysis, knowledge: Knowledge) -> Identity | None:
    """What failed; None where nothing did."""
    diagnosis = analysis.diagnosis
    if diagnosis.kind == "none":
        return None
    known = Identity(diagnosis.kind, diagnosis.resource, trainer=other_trainer(diagnosis.trainer))
    cause = _cause(analysis, knowledge)
    if diagnosis.kind in MEMORY:
        host = diagnosis.kind == "host_oom"
        loading = diagnosis.class_ == "startup" and diagnosis.resource in SHARED
        return msgspec.structs.replace(
            known,
            # how many good steps came before says much of the card's memory, and nothing of the machine's; and which
            # of the parts that load is one too many for the RAM is chance
            class_=diagnosis.class_ if not host or loading else None,
            phase=diagnosis.phase if not loading else None,
            cause=cause.id if cause else None,
            mechanism=_mechanism(analysis) or (_unsettled(analysis, knowledge) if cause is None else None),
        )
    event = _error(analysis)
    named = event.reason if event is not None else None
    if diagnosis.kind == "unknown":
        return msgspec.structs.replace(known, phase=diagnosis.phase, mechanism=named or diagnosis.outcome)
    if cause is not None and cause.anywhere:
        return msgspec.structs.replace(known, cause=cause.id, error=named)
    place = _place(analysis)
    return msgspec.structs.replace(
        known,
        phase=None if place else diagnosis.phase,
        cause=cause.id if cause else None,
        error=named or _exception(event),
        place=place,
        head=_head(event) if named is None and event is not None else None,
    )


def other_trainer(trainer: str | None) -> str | None:
    """The trainer's name if it is not AI Toolkit: its runs are groups of their own."""
    return trainer if trainer != TOOLKIT else None


def fingerprint(analysis: Analysis, knowledge: Knowledge) -> str | None:
    """The fingerprint of the failure; None where nothing failed."""
    found = identity(analysis, knowledge)
    return found.fingerprint if found is not None else None


def _cause(analysis: Analysis, knowledge: Knowledge) -> Cause | None:
    facts = analysis.diagnosis.facts
    return next((entry for entry in knowledge.causes if conditions.all_hold(entry.when, facts)), None)


def _unsettled(analysis: Analysis, knowledge: Knowledge) -> str | None:
    """Whether some setting would be the cause if only the log held it: such runs are not those that have none."""
    facts = analysis.diagnosis.facts
    for entry in knowledge.causes:
        told = {condition: conditions.holds(condition, facts) for condition in entry.when}
        settings = {condition for condition in told if conditions.parse(condition)[0].startswith(SETTINGS)}
        open_ = any(told[condition] is None for condition in settings)
        if open_ and all(told[one] is not False if one in settings else told[one] for one in told):
            return "settings_unknown"
    return None


def _mechanism(analysis: Analysis) -> str | None:
    """How the memory was refused, where that is another failure: never who reported it."""
    diagnosis, end = analysis.diagnosis, analysis.attempt.end
    if diagnosis.kind == "host_oom":
        if end.event is not None and end.event.reason == "worker_killed":
            return "worker_killed"
        return "killed" if end.outcome == "killed" else "refused"
    if diagnosis.kind == "gpu_oom" and end.outcome == "completed":
        return "swallowed"
    return None


def _error(analysis: Analysis) -> Event | None:
    end = analysis.attempt.end
    if end.event is not None:
        return end.event
    return end.traceback.exception if end.traceback is not None else None


def _exception(event: Event | None) -> str | None:
    """The exception's own name, without its module: that has moved between versions."""
    name = event.exception if event is not None else None
    return name.rsplit(".", 1)[-1] if name else None


def _place(analysis: Analysis) -> str | None:
    """The innermost function of the program's own: its file's name and its own, no line."""
    traceback = analysis.attempt.end.traceback
    frame = innermost_own(traceback) if traceback is not None else None
    if frame is None:
        return None
    file = frame.path.reveal().replace("\\", "/").rsplit("/", 1)[-1]
    if not (_NAME.fullmatch(file) and _NAME.fullmatch(frame.function)):
        return None
    return printable(f"{file}:{frame.function}")


def _head(event: Event) -> str | None:
    """The message's first plain words: a number, a quote, a path or a name of the user's own ends them."""
    text = event.text.reveal()
    if event.exception and event.exception in text:
        text = text.split(event.exception, 1)[1].lstrip(": ")
    words: list[str] = []
    for word in text.split():
        if len(words) == HEAD_WORDS or not _WORD.fullmatch(word):
            break
        words.append(word.rstrip(",.:;").lower())
        if word[-1] in ":;.":
            break
    return " ".join(words) or None
