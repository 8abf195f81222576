"""What two attempts prove about each other, by the guide's rule: one variable at a time."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from postmortem.compare.changes import CHECKPOINTING, Change, turned_checkpointing
from postmortem.compare.reach import Reach, failed, reach
from postmortem.pipeline import Analysis

PROOFS = ("cause_confirmed", "variable_proven")


class Conclusion(msgspec.Struct, frozen=True):
    """`id` names the text; `proven` says whether something is proven; `revert_first` is a variable to undo to learn."""

    id: str
    proven: bool
    reach: Reach
    revert_first: Change | None = None


def conclude(earlier: Analysis, later: Analysis, changes: Sequence[Change] | None) -> Conclusion:
    """The conclusion; `changes` is None where a config is unknown."""
    if not failed(earlier):
        return _broke(earlier, later, changes)
    found = reach(earlier, later)
    bearing = [change for change in changes or () if change.bears]
    other_job = any(change.identity for change in bearing)
    if other_job:
        return Conclusion("other_job", False, found)
    if found.verdict == "passed":
        if changes is None:
            return Conclusion("passes_config_unknown", False, found)
        if not bearing:
            return Conclusion("unchanged_passes", False, found)
        if len(bearing) == 1:
            on = turned_checkpointing(bearing[0], True)
            name = "cause_confirmed" if on else "variable_proven"
            return Conclusion("preview_left_out" if found.preview_off else name, not found.preview_off, found)
        return Conclusion("several_unproven", False, found, revert_first(bearing, earlier))
    if found.verdict == "same":
        if changes is None:
            return Conclusion("same_config_unknown", False, found)
        name = ("unchanged_same", "not_enough")[len(bearing) == 1] if len(bearing) < 2 else "none_enough"
        return Conclusion(name, bool(bearing), found)
    return Conclusion(found.verdict, False, found)


def _broke(earlier: Analysis, later: Analysis, changes: Sequence[Change] | None) -> Conclusion:
    """The earlier attempt had not failed: did a change break it?"""
    if not failed(later):
        return Conclusion("nothing_failed", False, Reach("passed"))
    stood = reach(later, earlier)
    bearing = [change for change in changes or () if change.bears]
    if stood.verdict != "passed":
        return Conclusion("broke_unproven", False, stood)
    if any(change.identity for change in bearing):
        return Conclusion("other_job", False, stood)
    if changes is None:
        return Conclusion("broke_config_unknown", False, stood)
    if not bearing:
        return Conclusion("unchanged_broke", False, stood)
    if len(bearing) == 1:
        off = turned_checkpointing(bearing[0], False)
        return Conclusion("checkpointing_broke" if off else "variable_broke", True, stood)
    first = next((change for change in bearing if turned_checkpointing(change, False)), bearing[0])
    return Conclusion("several_broke", False, stood, first)


def revert_first(bearing: Sequence[Change], failing: Analysis) -> Change:
    """Of several changes, the one least likely to be needed: not among the fixes, or the last of them.

    Gradient checkpointing stays on (the guide's default), unless there is nothing else to undo.
    """
    ranks = {edit.path: item.rank for item in reversed(failing.suggestions) for edit in item.changes}

    def weight(change: Change) -> tuple[bool, int]:
        known = [ranks[edit.path] for edit in change.edits if edit.path in ranks]
        keeps = any(edit.path == CHECKPOINTING for edit in change.edits)
        return (not keeps, min(known, default=1000))

    return max(bearing, key=weight)
