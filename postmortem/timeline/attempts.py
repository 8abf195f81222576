"""Events → attempts: what each line of an attempt says, put together into one value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from postmortem.model import (
    Attempt,
    BarSpan,
    Bucket,
    ConfigDump,
    End,
    Event,
    Item,
    Place,
    ScanResult,
    Stage,
    Traceback,
)
from postmortem.scan.lexicon import Lexicon
from postmortem.text import LogText
from postmortem.timeline import clock, ends, frames, ooms, rates, steps, training_bar
from postmortem.timeline.split import split
from postmortem.timeline.stages import sample_steps, stages_of

_Events: TypeAlias = "Mapping[str, Sequence[Event]]"
"""The events of an attempt by what they say, in order."""
_OPENING = 8
"""Items among which the one that starts an attempt is found."""
_HEAD = frozenset({"job_count", "process_count", "job_banner"})
"""The first lines that AI Toolkit prints of a run."""
_NAME = re.compile(r"[^\"{}\[\]|]{1,120}")
_SAVED = re.compile(r"_(\d{6,12})\.\w+$")
_CLOSING = frozenset({"kill", "crash", "exit", "stop"})
"""Roles of events that say how the process ended."""
_LAST_WORDS = 8
"""Such events that are kept."""


def build(scans: Sequence[ScanResult], lexicon: Lexicon) -> tuple[Attempt, ...]:
    """The attempts of all logs of one run folder (oldest log first), numbered from 1."""
    attempts: list[Attempt] = []
    for scanned in scans:
        dumps: tuple[ConfigDump, ...] = ()
        before = 0
        for items in split(scanned):
            own = tuple(item for item in items if isinstance(item, ConfigDump))
            # a model that loads again after training is the next process of a job that has several
            goes_on = len(dumps) > 1 and not own and not _headed(items)
            dumps, before = (dumps, before + 1) if goes_on else (own, 0)
            made = _attempt(len(attempts) + 1, scanned, items, lexicon, (dumps, before))
            if attempts:
                from postmortem.timeline import slower

                made = slower.against_earlier(made, attempts)
            attempts.append(made)
    return tuple(attempts)


def _attempt(
    index: int,
    scanned: ScanResult,
    items: list[Item],
    lexicon: Lexicon,
    processes_of: tuple[Sequence[ConfigDump], int],
) -> Attempt:
    items = ooms.mark_by_frames(ooms.mark_swallowed(_unquoted(items)), lexicon)
    events = _by_event(items)
    job_name, name = _names(items, events)
    main = training_bar.spans(items, name)
    resume, resumed_from = _first(events, "resume_step"), _first(events, "resume_from")
    start = _number(resume, "step") or 0
    stages = tuple(stages_of(items, name))
    end = ends.end_of(items, name)
    saves = tuple(step for event in events.get("saving", ()) if (step := event.number("step")) is not None)
    silent = end.outcome in ("incomplete", "killed")
    placement = steps.place(items, name, start, died=end.outcome in ("failed", "killed"), silent=silent, done=saves)
    first = start if _start_known(events, scanned) else None
    found = ooms.collect(items, name, stages, placement, end, lexicon, first)
    end = ends.settle(end, found, main)
    end_phase, end_step = _at_end(end, items, name, stages, placement, lexicon, first)
    dropped = [oom.step for oom in found if oom.caught and oom.phase == "training_step"]
    dumps = _at_work(*processes_of, items, name, end)
    started = clock.first_stamp(items)
    slow = rates.step_times(main)
    whole = items[-1] is scanned.items[-1]
    return Attempt(
        index=index,
        source=scanned.source,
        # a traceback comes behind the exception that closes it, and starts above it
        first_line=min(item.place.line for item in items[:_OPENING]),
        last_line=scanned.lines if whole else _last_place(items[-1]).line,
        job_name=job_name,
        start_step=start,
        total_steps=main[-1].total if main else _number(_first(events, "total_steps"), "total"),
        last_bar=placement.last_bar,
        last_completed_step=_last_completed(main, placement, set(dropped), start, silent=silent),
        good_steps=_good(main, placement, len(dropped), start),
        trained=bool(main),
        phase=stages[-1].phase if stages else "unknown",
        stages=stages,
        ooms=found,
        errors=tuple(item for item in items if isinstance(item, Event) and item.role in ends.ERRORS),
        notes=tuple(item for item in items if isinstance(item, Event) and item.role in ("note", "consequence")),
        buckets=tuple(_buckets(items)),
        dump=dumps[0] if dumps else None,
        other_dumps=tuple(dumps[1:]),
        end=end,
        save_steps=saves,
        sample_steps=sample_steps(stages, lags=not placement.counts_completed),
        last_saved_step=_last_saved(events),
        last_saved=_group(next(reversed(events.get("saved_checkpoint", ())), None), "path"),
        resumed_from=_group(resumed_from, "path"),
        job_id=_group(_first(events, "job_id"), "id"),
        stretches=rates.stretches(main),
        step_times=slow if slow is not None and slow.lasting else None,
        slow_stretch=slow if slow is not None and not slow.lasting else None,
        buffered=placement.buffered,
        bar_counts_completed=placement.counts_completed,
        bar_proves_count=placement.proves_count,
        skips_confirmed=placement.confirmed,
        excerpt_bars=placement.excerpt,
        resumed=resume is not None or resumed_from is not None,
        has_header=not _HEAD.isdisjoint(events),
        end_phase=end_phase,
        end_step=end_step,
        end_frame=frames.innermost_own(end.traceback) if end.traceback else None,
        main_bar_place=main[-1].last_place if main else None,
        main_bar_text=_bar_text(main[-1]) if main else LogText(""),
        closing=tuple(item for item in items if isinstance(item, Event) and item.role in _CLOSING)[-_LAST_WORDS:],
        started=started,
        last_text=scanned.last_text if whole else LogText(""),
        pace=clock.pace(items, stages, name, started, scanned.last_stamp if whole else None),
    )


def _names(items: Sequence[Item], events: _Events) -> tuple[LogText | None, str | None]:
    """The job's name, as its banner or else its training bar gives it, and the description of that bar."""
    told = _group(_first(events, "job_banner"), "name")
    name = training_bar.name_of(items, told.reveal() if told else None)
    if told is None and name is not None and _is_name(name):
        first = next((item for item in items if training_bar.is_span(item, name)), None)
        if first is not None and first.event is None:
            return LogText(name), name
    return told, name


def _is_name(text: str) -> bool:
    """Whether what stands before a bar can be a job's name: in text that lost its line breaks it is anything."""
    return _NAME.fullmatch(text) is not None and text.count(" ") <= 12


def _unquoted(items: list[Item]) -> list[Item]:
    """Without errors that stand in the middle of other text, where the log is whole enough not to need them.

    In a pasted fragment such a line may be all there is; in a run's own log it is a name, a path or a quotation. What
    is quoted as mail quotes goes as well, unless the whole run is.
    """
    heads = [item for item in items if isinstance(item, Event) and item.event in _HEAD]
    if not heads:
        return items
    claims = ("oom", "host_oom", "other_error", "abort")
    kept = [item for item in items if not (isinstance(item, Event) and item.quoted and item.role in claims)]
    if not any(head.cited for head in heads):
        kept = [item for item in kept if not _cited(item)]
    return kept or items


def _cited(item: Item) -> bool:
    said = item.exception if isinstance(item, Traceback) else item
    return isinstance(said, Event) and said.cited


def _headed(items: Sequence[Item]) -> bool:
    return any(isinstance(item, Event) and item.event in _HEAD for item in items)


def _start_known(events: _Events, scanned: ScanResult) -> bool:
    """Whether the log says at which step the attempt starts: a resume names it, and a whole log without one is new.

    Where the head of an AI Toolkit log is missing, the resume may have stood there.
    """
    if "resume_step" in events:
        return True
    foreign = any(trainer != "ai-toolkit" for trainer in scanned.trainers)
    return (not _HEAD.isdisjoint(events) or foreign) and "resume_from" not in events


def _at_end(
    end: End,
    items: list[Item],
    name: str | None,
    stages: Sequence[Stage],
    placement: steps.Placement,
    lexicon: Lexicon,
    start: int | None,
) -> tuple[str, int | None]:
    """The phase and step at which the attempt ended."""
    if end.event is not None:
        place = end.event.place
        phase = end.event.phase or ooms.phase_at(place, end.traceback, stages, lexicon)
    else:
        place = _last_place(items[-1])
        phase = stages[-1].phase if stages else "unknown"
    return phase, ooms.step_at(place, phase, items, name, stages, placement, fatal=True, start=start)


def _last_place(item: Item) -> Place:
    return item.last_place if isinstance(item, BarSpan) else item.place


def _at_work(
    dumps: Sequence[ConfigDump], before: int, items: Sequence[Item], name: str | None, end: End
) -> Sequence[ConfigDump]:
    """The configs of the processes that may have been at work, the likeliest first; `before` it some had ended."""
    if len(dumps) < 2:
        return dumps
    from postmortem.timeline import processes

    return processes.candidates(dumps, before, items, name, completed=end.outcome.startswith("completed"))


def _bar_text(span: BarSpan) -> LogText:
    return LogText(f"{training_bar.counts(span).reveal()} {span.postfix.reveal()}".rstrip())


def _by_event(items: Sequence[Item]) -> _Events:
    found: dict[str, list[Event]] = {}
    for item in items:
        if isinstance(item, Event) and item.event is not None:
            found.setdefault(item.event, []).append(item)
    return found


def _first(events: _Events, event: str) -> Event | None:
    return next(iter(events.get(event, ())), None)


def _group(event: Event | None, group: str) -> LogText | None:
    return event.groups.get(group) if event else None


def _number(event: Event | None, group: str) -> int | None:
    return event.number(group) if event else None


def _last_saved(events: _Events) -> int | None:
    """The step in the name of the last checkpoint that was written (the final one has no number)."""
    found = None
    for event in events.get("saved_checkpoint", ()):
        path = event.groups.get("path")
        named = _SAVED.search(path.reveal()) if path else None
        found = int(named[1]) if named else found
    return found


def _buckets(items: Sequence[Item]) -> Iterator[Bucket]:
    """The bucket tables as the log prints them, a block for each dataset and resolution."""
    dataset = LogText("")
    block = 0
    for item in items:
        if not isinstance(item, Event):
            continue
        if item.event == "bucket_header":
            dataset = item.groups.get("path", LogText(""))
            block += 1
        elif item.event == "bucket":
            width, height = item.number("width"), item.number("height")
            files = item.number("files")
            if width and height and files is not None:
                frames = item.number("frames") or 1
                yield Bucket(dataset, width, height, frames, files, block, item.place.line)


def _good(main: Sequence[BarSpan], placement: steps.Placement, dropped: int, start: int) -> int:
    """Steps that ended well, as far as the bar came: all but the `dropped` ones."""
    at_work = placement.last_bar if placement.excerpt else placement.death_step
    if main and placement.last_bar == main[-1].total:
        at_work = placement.last_bar
    return max(0, (at_work or 0) - start - dropped)


def _last_completed(
    main: Sequence[BarSpan], placement: steps.Placement, skipped: set[int | None], start: int, *, silent: bool
) -> int | None:
    """The last step that ended well, as far as the bar proves it.

    In a log that just ends, a dropped batch may have no banner: what the bar left without a sign is not counted.
    """
    if not main or placement.last_bar is None:
        return None
    last = main[-1]
    at_work = last.last_n if placement.excerpt or placement.death_step is None else placement.death_step
    step = min(at_work, last.total) - 1
    if silent and not placement.excerpt and not placement.confirmed:
        step -= steps.open_counts(last, 0 if placement.counts_completed else 1)
    while step >= start and step in skipped:
        step -= 1
    return step if step >= start else None
