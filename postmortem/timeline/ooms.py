"""Every out-of-memory event of an attempt: skipped, swallowed or fatal, each once, with phase and step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from postmortem.knowledge.log_schema import Facts
from postmortem.model import BarSpan, End, Event, Item, Oom, Place, Stage, Traceback
from postmortem.scan.lexicon import Lexicon
from postmortem.timeline import frames, steps, training_bar

TRAINING = ("training_step", "mid_sampling", "saving", "validation")


MAX_CLUSTERS = 500
"""Failures that are looked at one by one; of a flood, the first and the last."""


class _Cluster(msgspec.Struct):
    """One failure as it is printed several times; `fullest` is the print that says most, the earliest of equals."""

    events: list[Event]
    fullest: Event
    traceback: Traceback | None = None

    def add(self, event: Event) -> None:
        self.events.append(event)
        if len(event.sizes_mib) > len(self.fullest.sizes_mib):
            self.fullest = event


_SWALLOWED_BELOW = {"optimizer_not_saved": "saving"}
_SWALLOWED_ABOVE = {"optimizer_not_loaded": "setup"}
_NEAR = 6


def mark_swallowed(items: list[Item]) -> list[Item]:
    """Errors that AI Toolkit caught around saving or loading the optimiser: a note beside them says so.

    It prints the message above `Could not save optimizer`, and below `Failed to load optimizer state`.
    """
    marks: dict[int, str] = {}
    for index, item in enumerate(items):
        if not isinstance(item, Event):
            continue
        if item.event in _SWALLOWED_BELOW:
            for other in range(index - 1, max(-1, index - _NEAR), -1):
                if _is_error(items[other]):
                    marks[other] = _SWALLOWED_BELOW[item.event]
                    break
        elif item.event in _SWALLOWED_ABOVE:
            for other in range(index + 1, min(len(items), index + _NEAR)):
                if _is_error(items[other]):
                    marks[other] = _SWALLOWED_ABOVE[item.event]
                    break
    if not marks:
        return items
    return [
        msgspec.structs.replace(item, caught=True, phase=marks[index])
        if index in marks and isinstance(item, Event)
        else item
        for index, item in enumerate(items)
    ]


def mark_by_frames(items: list[Item], lexicon: Lexicon) -> list[Item]:
    """Errors whose words name another cause, where the failing call shows that memory ran out.

    A semaphore lives in shared memory: `No space left on device` out of its making is no full disk. The entry of the
    frame has the `reason` of the errors that it explains.
    """
    explained: dict[str, Facts] = {}
    for item in items:
        if isinstance(item, Traceback) and item.exception is not None and item.exception.role == "other_error":
            told = frames.shortage(item, lexicon)
            if told is not None and told.reason is not None and told.reason == item.exception.reason:
                explained[item.exception.pattern] = told
    if not explained:
        return items
    return [
        msgspec.structs.replace(item, role="host_oom", kind=told.kind, resource=told.resource)
        if isinstance(item, Event) and item.role == "other_error" and (told := explained.get(item.pattern)) is not None
        else item
        for item in items
    ]


def _is_error(item: Item) -> bool:
    return isinstance(item, Event) and item.role in ("oom", "host_oom", "exception", "other_error")


def collect(
    items: Sequence[Item],
    name: str | None,
    stages: Sequence[Stage],
    placement: steps.Placement,
    end: End,
    lexicon: Lexicon,
    start: int | None,
) -> tuple[Oom, ...]:
    """All OOM events among `items`, in the order of the log; `start` is the attempt's first step, where it is known."""
    found: list[Oom] = []
    banner = 0
    aborted = False
    for item in items:
        if not isinstance(item, Event):
            continue
        if item.role == "skip":
            count = item.groups.get("count")
            found.append(
                Oom(
                    place=item.place,
                    pattern=item.pattern,
                    phase="training_step",
                    caught=True,
                    step=placement.steps[banner],
                    kind="gpu_oom",
                    resource="vram",
                    counter=int(count.reveal()[:3]) if count else None,
                    text=item.text,
                )
            )
            banner += 1
        elif item.role == "abort" and not aborted:
            aborted = True
            found.append(
                Oom(
                    place=item.place,
                    pattern=item.pattern,
                    phase="training_step",
                    caught=False,
                    step=_abort_step(found, placement),
                    kind="gpu_oom",
                    resource="vram",
                    implied=True,
                    text=item.text,
                )
            )
    if placement.extra:
        found.extend(_shown_by_the_bar(items, name, placement, lexicon))
    clusters = _clusters(items, name)
    if len(clusters) > MAX_CLUSTERS:
        clusters = [*clusters[: MAX_CLUSTERS // 2], *clusters[-MAX_CLUSTERS // 2 :]]
    for cluster in clusters:
        found.append(_oom(cluster, items, name, stages, placement, end, lexicon, start))
    return tuple(sorted(found, key=lambda oom: oom.place.offset))


def _shown_by_the_bar(
    items: Sequence[Item], name: str | None, placement: steps.Placement, lexicon: Lexicon
) -> Iterator[Oom]:
    """Skips whose banners never came out of the buffer: the bar left their counts without finishing them."""
    banner = next(item.pattern for item in lexicon.statements if item.pattern.role == "skip")
    last = next(item for item in reversed(items) if training_bar.is_span(item, name))
    for step in placement.extra:
        yield Oom(
            place=last.last_place,
            pattern=banner.id,
            phase="training_step",
            caught=True,
            step=step,
            kind="gpu_oom",
            resource="vram",
            implied=True,
            text=training_bar.counts(last),
            by_bar=True,
        )


def _abort_step(found: Sequence[Oom], placement: steps.Placement) -> int | None:
    """The fourth in a row is the step after the third banner's, where that is known."""
    if found and found[-1].counter is not None and found[-1].counter > 1:
        before = found[-1].step
        return placement.death_step if before is None else before + 1
    return placement.death_step


def _clusters(items: Sequence[Item], name: str | None) -> list[_Cluster]:
    clusters: list[_Cluster] = []
    count: int | None = None
    moved = True
    for item in items:
        if isinstance(item, BarSpan):
            if training_bar.is_span(item, name):
                moved = moved or (count is not None and item.last_n > count)
                count = item.last_n
        elif isinstance(item, Event) and item.role in ("oom", "host_oom"):
            last = clusters[-1] if clusters else None
            if last is None or moved or not _same(last, item):
                clusters.append(_Cluster([item], item))
            else:
                last.add(item)
            moved = False
        elif isinstance(item, Traceback) and item.exception is not None and clusters:
            last = clusters[-1]
            if item.exception.pattern == last.events[-1].pattern and last.traceback is None:
                last.traceback = item
    return clusters


def _same(cluster: _Cluster, event: Event) -> bool:
    """Whether `event` repeats the failure of `cluster`: same wording, same numbers as far as both were printed."""
    if event.caught or cluster.events[-1].caught:
        return False
    first = cluster.fullest
    if first.pattern != event.pattern:
        return event.kind == first.kind and not (event.sizes_mib and first.sizes_mib)
    return all(event.sizes_mib[key] == first.sizes_mib[key] for key in event.sizes_mib if key in first.sizes_mib)


def _oom(
    cluster: _Cluster,
    items: Sequence[Item],
    name: str | None,
    stages: Sequence[Stage],
    placement: steps.Placement,
    end: End,
    lexicon: Lexicon,
    start: int | None,
) -> Oom:
    event = cluster.fullest
    first = cluster.events[0]
    fatal = end.event is not None and any(end.event.place == e.place for e in cluster.events)
    # a traceback that the log breaks off in still tells the phase, not which call failed
    trace = cluster.traceback or (end.traceback if fatal else None)
    phase = phase_at(first.place, trace, stages, lexicon) if not event.phase else event.phase
    kind, resource = event.kind or "gpu_oom", event.resource
    if kind == "gpu_oom" and resource is None and cluster.traceback is not None:
        told = frames.shortage(cluster.traceback, lexicon)
        if told is not None and told.reason is None:
            kind, resource = told.kind or kind, told.resource
        elif frames.tells_call(cluster.traceback):
            resource = "vram"
    framed = trace is not None and frames.phase_of(trace, lexicon)[0] is not None
    return Oom(
        place=event.place if len(event.sizes_mib) > len(first.sizes_mib) else first.place,
        pattern=event.pattern,
        phase=phase,
        caught=event.caught or not (fatal or end.outcome in ("failed", "killed", "incomplete")),
        step=step_at(first.place, phase, items, name, stages, placement, fatal=fatal, start=start),
        kind=kind,
        resource=resource,
        placed=framed or bool(event.phase),
        sizes_mib=event.sizes_mib,
        others_mib=event.others_mib,
        device=event.device,
        text=event.text,
    )


def phase_at(place: Place, traceback: Traceback | None, stages: Sequence[Stage], lexicon: Lexicon) -> str:
    """The phase at `place`: what the traceback's frames say, else the last line that tells one."""
    by_stage = next((stage.phase for stage in reversed(stages) if stage.place.offset <= place.offset), None)
    by_frame = frames.phase_of(traceback, lexicon)[0] if traceback is not None else None
    if by_frame == "sampling":
        trained = any(stage.event == "bar_main" and stage.place.offset <= place.offset for stage in stages)
        by_frame = "mid_sampling" if trained else "baseline_sampling"
    if by_frame == "model_load" and by_stage == "text_encoder_load":
        return by_stage
    return by_frame or by_stage or "unknown"


def step_at(
    place: Place,
    phase: str,
    items: Sequence[Item],
    name: str | None,
    stages: Sequence[Stage],
    placement: steps.Placement,
    *,
    fatal: bool,
    start: int | None,
) -> int | None:
    """The step in which something at `place` happened. Before the first step that is the step to come, `start`."""
    if phase == "unknown":
        return None
    if phase not in TRAINING:
        return start
    if phase == "validation" and fatal and placement.death_step is not None:
        # it belongs to the step at work, which the bar has not drawn yet; it comes in the first step and then at
        # every nth, so hardly in the second
        first = start or 0
        return first if placement.death_step == first + 1 else placement.death_step
    if phase == "training_step":
        if fatal or placement.last_bar is None:
            return placement.death_step
        return _count_at(place, items, name)
    for stage in reversed(stages):
        if stage.phase == phase and stage.place.offset <= place.offset and stage.step is not None:
            # a preview has no number of its own: it is the bar's, which may lag by the step that it is made in
            lags = phase == "mid_sampling" and not placement.counts_completed
            return stage.step + 1 if lags and stage.step == placement.last_bar else stage.step
    return placement.last_bar


def _count_at(place: Place, items: Sequence[Item], name: str | None) -> int | None:
    for item in reversed(items):
        if training_bar.is_span(item, name) and item.place.offset <= place.offset:
            return item.last_n
    return None
