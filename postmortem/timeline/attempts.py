"""Events → attempts: what was going on when, which steps were dropped, and how each attempt ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from postmortem.model import Attempt, BarSpan, Bucket, ConfigDump, End, Event, Item, ScanResult, Stage, Traceback
from postmortem.scan.lexicon import Lexicon
from postmortem.text import LogText
from postmortem.timeline import clock, ends, frames, ooms, processes, rates, steps
from postmortem.timeline.slower import against_earlier
from postmortem.timeline.split import split

_Events: TypeAlias = "Mapping[str, Sequence[Event]]"
"""The events of an attempt by what they say, in order."""
SAMPLING = "sampling"
"""What entries say that cannot tell a baseline preview from one mid-run; resolved here."""


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
            attempts.append(against_earlier(made, attempts))
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
    banner = _first(events, "job_banner")
    job_name = banner.groups.get("name") if banner else None
    name = steps.main_description(items, job_name.reveal() if job_name else None)
    if job_name is None and name is not None:
        spans = [item for item in items if isinstance(item, BarSpan) and steps.is_main(item, name)]
        if spans and spans[0].event is None and _is_name(name):
            job_name = LogText(name)
    resumed = _first(events, "resume_step") or _first(events, "resume_from")
    start = _number(_first(events, "resume_step"), "step") or 0
    stages = tuple(_stages(items, name))
    buckets = tuple(_buckets(items))
    main = [item for item in items if isinstance(item, BarSpan) and steps.is_main(item, name)]
    end = ends.end_of(items, name)
    died = end.outcome in ("failed", "killed")
    saves = tuple(n for n in (_number(e, "step") for e in events.get("saving", ())) if n is not None)
    silent = end.outcome in ("incomplete", "killed")
    placement = steps.place(items, name, start, died=died, silent=silent, done=saves)
    first = start if _start_known(events, scanned) else None
    found = ooms.collect(items, name, stages, placement, end, lexicon, first)
    last_stage = stages[-1].phase if stages else "unknown"
    end = ends.settle(end, found, main)
    skipped = {oom.step for oom in found if oom.caught and oom.phase == "training_step"}
    caught = sum(1 for oom in found if oom.caught and oom.phase == "training_step")
    started = clock.first_stamp(items)
    slow = rates.step_times(main)
    whole = items[-1] is scanned.items[-1]
    dumps = processes.candidates(*processes_of, items, name, completed=end.outcome.startswith("completed"))
    end_phase, end_step = _at_end(end, items, name, stages, placement, lexicon, first)
    last_bar = placement.last_bar
    at_work = last_bar if placement.excerpt else placement.death_step
    done = max(0, (at_work or 0) - start)
    good = max(0, done - caught)
    if main and last_bar == main[-1].total:
        good = max(0, last_bar - start - caught)
    return Attempt(
        index=index,
        source=scanned.source,
        # a traceback comes behind the exception that closes it, and starts above it
        first_line=min(item.place.line for item in items[:_OPENING]),
        last_line=_last_line(items, scanned),
        job_name=job_name,
        start_step=start,
        total_steps=main[-1].total if main else _number(_first(events, "total_steps"), "total"),
        last_bar=last_bar,
        last_completed_step=_last_completed(main, placement, skipped, start, silent=silent),
        good_steps=good,
        trained=bool(main),
        phase=last_stage,
        stages=stages,
        ooms=found,
        errors=tuple(item for item in items if isinstance(item, Event) and item.role in ends.ERRORS),
        notes=tuple(item for item in items if isinstance(item, Event) and item.role in ("note", "consequence")),
        buckets=buckets,
        dump=dumps[0] if dumps else None,
        other_dumps=dumps[1:],
        end=end,
        save_steps=saves,
        sample_steps=_sample_steps(stages, main, lags=not placement.counts_completed),
        last_saved_step=_last_saved(events),
        last_saved=_path(next(reversed(events.get("saved_checkpoint", ())), None)),
        resumed_from=_path(_first(events, "resume_from")),
        job_id=_job_id(events),
        stretches=rates.stretches(main),
        step_times=slow if slow is not None and slow.lasting else None,
        slow_stretch=slow if slow is not None and not slow.lasting else None,
        buffered=placement.buffered,
        bar_counts_completed=placement.counts_completed,
        bar_proves_count=placement.proves_count,
        skips_confirmed=placement.confirmed,
        excerpt_bars=placement.excerpt,
        resumed=resumed is not None,
        has_header=not _HEAD.isdisjoint(events),
        end_phase=end_phase,
        end_step=end_step,
        end_frame=frames.innermost_own(end.traceback) if end.traceback else None,
        main_bar_place=main[-1].last_place if main else None,
        main_bar_text=_bar_text(main[-1]) if main else LogText(""),
        closing=tuple(i for i in items if isinstance(i, Event) and i.role in ("kill", "crash", "exit", "stop"))[-8:],
        started=started,
        last_text=scanned.last_text if whole else LogText(""),
        pace=clock.pace(items, stages, name, started, scanned.last_stamp if whole else None),
    )


_OPENING = 8
"""Items among which the one that starts an attempt is found."""
_NAME = re.compile(r"[^\"{}\[\]|]{1,120}")


def _is_name(text: str) -> bool:
    """Whether what stands before a bar can be a job's name: in text that lost its line breaks it is anything."""
    return _NAME.fullmatch(text) is not None and text.count(" ") <= 12


def _unquoted(items: list[Item]) -> list[Item]:
    """Without errors that stand in the middle of other text, where the log is whole enough not to need them.

    In a pasted fragment such a line may be all there is; in a run's own log it is a name, a path or a quotation. Nor
    with what is quoted as mail quotes, unless the whole run is.
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
        phase = end.event.phase or ooms.phase_at(end.event.place, end.traceback, stages, lexicon)
        return phase, ooms.step_at(end.event.place, phase, items, name, stages, placement, fatal=True, start=start)
    phase = stages[-1].phase if stages else "unknown"
    last = items[-1].last_place if isinstance(items[-1], BarSpan) else items[-1].place
    return phase, ooms.step_at(last, phase, items, name, stages, placement, fatal=True, start=start)


_HEAD = frozenset({"job_count", "process_count", "job_banner"})
"""The first lines that AI Toolkit prints of a run."""


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


def _bar_text(span: BarSpan) -> LogText:
    return LogText(f"{steps.bar_counts(span).reveal()} {span.postfix.reveal()}".rstrip())


def _by_event(items: Sequence[Item]) -> _Events:
    found: dict[str, list[Event]] = {}
    for item in items:
        if isinstance(item, Event) and item.event is not None:
            found.setdefault(item.event, []).append(item)
    return found


def _first(events: _Events, event: str) -> Event | None:
    return next(iter(events.get(event, ())), None)


_SAVED = re.compile(r"_(\d{6,12})\.\w+$")


def _last_saved(events: _Events) -> int | None:
    """The step in the name of the last checkpoint that was written (the final one has no number)."""
    found = None
    for event in events.get("saved_checkpoint", ()):
        path = event.groups.get("path")
        named = _SAVED.search(path.reveal()) if path else None
        found = int(named[1]) if named else found
    return found


def _path(event: Event | None) -> LogText | None:
    return event.groups.get("path") if event else None


def _job_id(events: _Events) -> LogText | None:
    event = _first(events, "job_id")
    return event.groups.get("id") if event else None


def _number(event: Event | None, group: str) -> int | None:
    text = event.groups.get(group) if event else None
    digits = text.reveal() if text else ""
    return int(digits) if digits.isdecimal() and len(digits) < 13 else None


def _last_line(items: Sequence[Item], scanned: ScanResult) -> int:
    last = items[-1]
    if last is scanned.items[-1]:
        return scanned.lines
    return last.last_place.line if isinstance(last, BarSpan) else last.place.line


def _stages(items: Sequence[Item], name: str | None) -> Iterator[Stage]:
    """What the program was doing, in order; consecutive lines of one phase and kind are one stage."""
    trained = False
    count: int | None = None
    told: str | None = None
    stale = False
    for item in items:
        if isinstance(item, BarSpan):
            if steps.is_main(item, name):
                trained = True
                count = item.last_n
                yield Stage(
                    item.last_place, "training_step", "bar_main", steps.bar_counts(item), item.last_n, item.place.stamp
                )
            elif item.phase:
                phase = item.phase
                if phase == SAMPLING:
                    phase = "mid_sampling" if trained else "baseline_sampling"
                elif phase == "cache_latents" and told == "cache_text_embeddings":
                    phase = told  # for two months the bar of the text embeddings was called like the latents' one
                at = count if trained else None
                yield Stage(item.last_place, phase, item.event or "bar", item.description, at, item.place.stamp)
        elif isinstance(item, Event) and item.role == "marker" and item.phase:
            phase = item.phase
            if phase == SAMPLING:
                phase = "mid_sampling" if trained else "baseline_sampling"
            step = _number(item, "step")
            if step is not None and count is not None and step < count - 1:
                # printed late: the bar had long left that step
                stale = True
            elif step is not None or item.event not in ("saved_checkpoint", "saved_optimizer"):
                stale = False
            if stale and phase in ("saving", "mid_sampling"):
                phase = "training_step"
            told = phase
            at = step if step is not None else count
            yield Stage(item.place, phase, item.event or "status", item.text, at, pattern=item.pattern)


def _sample_steps(stages: Sequence[Stage], main: Sequence[BarSpan], *, lags: bool) -> tuple[int, ...]:
    """Steps inside which a mid-run preview was made: the bar's count then, or the step after it if the bar `lags`."""
    found: list[int] = []
    for stage in stages:
        if stage.phase == "mid_sampling" and stage.step is not None:
            step = stage.step + (lags and stage.event.startswith("bar_sampling"))
            if step not in found[-1:]:
                found.append(step)
    return tuple(found)


def _buckets(items: Sequence[Item]) -> Iterator[Bucket]:
    dataset = LogText("")
    block = 0
    for item in items:
        if not isinstance(item, Event):
            continue
        if item.event == "bucket_header":
            dataset = item.groups.get("path", LogText(""))
            block += 1
        elif item.event == "bucket":
            width, height = _number(item, "width"), _number(item, "height")
            files = _number(item, "files")
            if width and height and files is not None:
                frames = _number(item, "frames") or 1
                yield Bucket(dataset, width, height, frames, files, block, item.place.line)


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
