"""What each fix saves, whether it is enough, how far it has to go, and which few together are. All sizes in MiB.

The guide's order stands; the numbers size a fix that its smallest step would not carry, name the popular ones that
cannot matter, and say which rung of the ladder fits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from postmortem.knowledge.schema import Change, Knowledge, Remedy
from postmortem.model import ConfigChange, JobConfig, NotHelping, Range, Rung, Suggestion, is_whole
from postmortem.remedies.changes import accumulated, work_out
from postmortem.remedies.edited import edited, merged
from postmortem.vram import Estimate, Forecast, verdict
from postmortem.vram.estimate import SAMPLING, rules_of
from postmortem.vram.forecast import FITS, TOO_MUCH

MAX_STEPS = 6
"""How often a fix is applied again to find how far it has to go."""
_RUNG_MIB = 64.0
"""A retry for less than this is a wasted run."""
_TRIFLE = 0.1
_SMALL_MIB = 1024.0
"""A saving below this, and below that share of what is missing, is no fix."""


class Numbers(msgspec.Struct, frozen=True):
    """The suggestions with their figures, the ladder, and the fixes that turned out too small."""

    suggestions: tuple[Suggestion, ...]
    ladder: tuple[Rung, ...]
    too_small: tuple[NotHelping, ...]


def with_numbers(
    suggestions: Sequence[Suggestion],
    config: JobConfig,
    estimate: Estimate,
    knowledge: Knowledge,
    wanted: Mapping[str, tuple[Change, ...]],
) -> Numbers:
    """`suggestions` with savings and verdicts by `estimate`; `wanted` are the edits that each remedy makes."""
    before = estimate(config)
    by_id = {remedy.id: remedy for remedy in knowledge.remedies}
    if before is None:
        return Numbers(tuple(_observed(item, by_id[item.id]) for item in suggestions), (), ())
    kept: list[Suggestion] = []
    small: list[NotHelping] = []
    missing = before.need.likely - before.usable if before.usable is not None else None
    for item in suggestions:
        remedy = by_id[item.id]
        if before.phase not in remedy.predict or not item.changes:
            kept.append(_freed(_observed(item, remedy), before, knowledge))
            continue
        found = _sized(item, config, estimate, knowledge, wanted.get(item.id, ()))
        if found is None:
            kept.append(item)
            continue
        sized, after = found
        saving = saved(before, after)
        if saving.likely < 0 or saving.low < -_RUNG_MIB:
            continue  # in this job it would, or may, raise the peak
        saving = Range(max(0.0, saving.low), saving.likely, saving.high)
        if saving.likely < 1 or (missing is not None and saving.high < min(_SMALL_MIB, _TRIFLE * missing)):
            small.append(NotHelping(item.id, "too_small", saving))
            continue
        kept.append(msgspec.structs.replace(sized, saving=saving, peak=after.peak, need=after.need, fits=after.fits))
    kept = _previews_in_order(kept, before)
    kept = [_same_effective_batch(item, kept, wanted.get(item.id, ())) for item in kept]
    ranked = tuple(msgspec.structs.replace(item, rank=index + 1) for index, item in enumerate(kept))
    return Numbers(ranked, _ladder(ranked, config, before, estimate, knowledge, wanted), tuple(small))


def saved(before: Forecast, after: Forecast) -> Range:
    """The difference of two forecasts of one model: their errors are the same, so ends are taken from ends."""
    ends = sorted(getattr(before.peak, end) - getattr(after.peak, end) for end in ("low", "likely", "high"))
    likely = before.peak.likely - after.peak.likely
    return Range(min(ends[0], likely), likely, max(ends[2], likely))


def _observed(item: Suggestion, remedy: Remedy) -> Suggestion:
    """What the allocator's message itself says that a fix without settings can free, at most."""
    freed = item.facts.get(remedy.saves) if remedy.saves else None
    if not isinstance(freed, (int, float)) or freed <= 0:
        return item
    exact = remedy.saves == "memory.other_processes"
    return msgspec.structs.replace(item, saving=Range(freed if exact else 0.0, freed, freed))


def _previews_in_order(kept: list[Suggestion], before: Forecast) -> list[Suggestion]:
    """Shorter clips go behind what saves far more in a preview: its decoder works through them in chunks."""
    if before.phase not in SAMPLING:
        return kept
    most = max((item.saving.likely for item in kept if item.saving is not None), default=0.0)
    weak = [
        item
        for item in kept
        if item.id == "reduce_num_frames" and item.saving is not None and 4 * item.saving.likely < most
    ]
    return [*(item for item in kept if item not in weak), *weak]


def _freed(item: Suggestion, before: Forecast, knowledge: Knowledge) -> Suggestion:
    """Whether what other processes give back is enough: the need stays, the card gets larger."""
    if item.saving is None or before.usable is None or item.saving.low < item.saving.high:
        return item
    fits = verdict(before.need, before.usable + item.saving.likely, rules_of(knowledge))
    return msgspec.structs.replace(item, peak=before.peak, need=before.need, fits=fits)


def _sized(
    item: Suggestion, config: JobConfig, estimate: Estimate, knowledge: Knowledge, wanted: tuple[Change, ...]
) -> tuple[Suggestion, Forecast] | None:
    """The fix as far as it has to go: its own first step, or more of the same while that is clearly not enough.

    None where the config as edited was not measured.
    """
    changes = item.changes
    first = estimate(edited(config, changes, knowledge))
    if first is None:
        return None
    after = first
    for _ in range(MAX_STEPS):
        if after.fits != TOO_MUCH:
            return msgspec.structs.replace(item, changes=changes), after
        more = work_out(wanted, edited(config, changes, knowledge))
        if not more:
            break
        changes = merged(changes, more)
        found = estimate(edited(config, changes, knowledge))
        if found is None or found.peak.likely >= after.peak.likely:
            break
        after = found
    # none of its steps is enough: the smallest is the least that can be lost
    return msgspec.structs.replace(item, changes=item.changes), first


def _same_effective_batch(item: Suggestion, others: Sequence[Suggestion], wanted: tuple[Change, ...]) -> Suggestion:
    """Accumulation takes over just what the batch size loses, however far that was lowered."""
    paths = {change.path for change in wanted if change.op == "multiply_by_batch_cut"}
    cuts = [
        change.before // change.after
        for other in others
        for change in other.changes
        if change.path == "train.batch_size" and is_whole(change.before) and is_whole(change.after) and change.after > 0
    ]
    if not paths or not cuts:
        return item
    changes = tuple(
        msgspec.structs.replace(change, after=after)
        if change.path in paths and (after := accumulated(change.before, cuts[0])) is not None
        else change
        for change in item.changes
    )
    return msgspec.structs.replace(item, changes=changes)


def _ladder(
    suggestions: Sequence[Suggestion],
    config: JobConfig,
    before: Forecast,
    estimate: Estimate,
    knowledge: Knowledge,
    wanted: Mapping[str, tuple[Change, ...]],
) -> tuple[Rung, ...]:
    """One variable a rung, each on top of the last, until one fits; later ones that save nothing are left out."""
    rungs: list[Rung] = []
    made: tuple[ConfigChange, ...] = ()
    last = before
    for item in suggestions:
        if item.peak is None or not item.changes:
            continue
        here = edited(config, made, knowledge)
        more = _again(item, here, wanted)
        found = estimate(edited(here, more, knowledge)) if more else None
        # the fix that is said to come first is the first retry, too, however little it weighs here
        if found is None or (last.peak.likely - found.peak.likely < _RUNG_MIB and item.rank != 1):
            continue
        made = merged(made, more)
        more = merged(more, _kept_batch(item, suggestions, wanted))
        rungs.append(Rung(item.id, more, found.peak, found.need, found.fits))
        last = found
        if found.fits == FITS:
            break
    return tuple(rungs)


def _kept_batch(
    item: Suggestion, others: Sequence[Suggestion], wanted: Mapping[str, tuple[Change, ...]]
) -> tuple[ConfigChange, ...]:
    """What keeps the effective batch when the batch size goes down: for the guide the two are one step."""
    if not any(change.path == "train.batch_size" for change in item.changes):
        return ()
    paths = {
        change.path for other in others for change in wanted.get(other.id, ()) if change.op == "multiply_by_batch_cut"
    }
    return tuple(change for other in others for change in other.changes if change.path in paths)


def _again(item: Suggestion, config: JobConfig, wanted: Mapping[str, tuple[Change, ...]]) -> tuple[ConfigChange, ...]:
    """The edits of `item` on a config that rungs before it have changed already."""
    ends = {change.path: change.after for change in item.changes}
    if all(path in config.values for path in ends):
        return tuple(
            ConfigChange(path, config.values[path].value, end)
            for path, end in ends.items()
            if config.values[path].value != end
        )
    return work_out(wanted.get(item.id, ()), config)
