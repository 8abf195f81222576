"""The run's phases as bands in the order of the log; as wide as they took where the log's lines carry times."""

from __future__ import annotations

from math import fsum

import msgspec

from postmortem.report.document import Report, TimelineItem
from postmortem.report.texts import Texts

MOST = 14
"""Bands drawn; what lies in the middle of more is drawn as one."""
NARROWEST = 3.0
"""Percent of the width."""
LOOKS = {
    "model_load": "load",
    "quantize": "load",
    "text_encoder_load": "load",
    "setup": "setup",
    "cache_latents": "cache",
    "cache_text_embeddings": "cache",
    "baseline_sampling": "preview",
    "mid_sampling": "preview",
    "training_step": "train",
    "saving": "save",
    "validation": "save",
}
SEVERAL = "several"
Group = tuple[str, list[TimelineItem]]
"""A phase, and the rows of the timeline in it."""


class Band(msgspec.Struct, frozen=True):
    """One phase: where it stands in the log and in the picture. `ooms` failed in it; `ended` says that the run did."""

    number: int
    title: str
    look: str
    first_line: int | None
    last_line: int | None
    took: str | None
    ooms: int
    ended: bool
    x: float = 0.0
    width: float = 0.0

    @property
    def middle(self) -> float:
        """Where its number stands."""
        return round(self.x + self.width / 2, 1)


class Phases(msgspec.Struct, frozen=True):
    """The bands; `timed` where their widths are times."""

    bands: list[Band]
    timed: bool
    sentence: str


def phases(report: Report, texts: Texts) -> Phases | None:
    """The bands; None where the log does not say what the program was doing."""
    groups = _bounded(_ended_in(_without_turns(_merged(report)), report.failure.phase))
    if all(phase == "unknown" for phase, _ in groups):
        return None
    died = report.run.outcome in ("failed", "killed")
    names = [phase for phase, _ in groups]
    spans = _spans(names, report)
    bands = [
        Band(
            number=index + 1,
            title=texts("html.several_phases") if phase == SEVERAL else texts(f"phase.{phase}.title"),
            look=LOOKS.get(phase, "setup"),
            first_line=next((item.line for item in items if item.line), None),
            last_line=next((item.line for item in reversed(items) if item.line), None),
            took=clock(spans[index]) if spans and names.count(phase) == 1 and phase != SEVERAL else None,
            ooms=_ooms(report, phase, items, alone=names.count(phase) == 1),
            ended=died and index == len(groups) - 1,
        )
        for index, (phase, items) in enumerate(groups)
    ]
    widths = _widths(spans or [3.0 if band.look == "train" else 1.0 for band in bands])
    at = 0.0
    placed: list[Band] = []
    for band, width in zip(bands, widths):
        placed.append(msgspec.structs.replace(band, x=round(at, 1), width=round(width, 1)))
        at += width
    return Phases(placed, bool(spans), ", ".join(band.title for band in placed))


def _ooms(report: Report, phase: str, items: list[TimelineItem], *, alone: bool) -> int:
    """How often memory ran out in a band; of a long training the timeline holds a part only, the events hold all."""
    if alone and phase != SEVERAL:
        return sum(event.phase == phase for event in report.oom_events)
    return sum(item.event.startswith("oom") for item in items)


def _merged(report: Report) -> list[Group]:
    """The rows by phase. From the first training step on it is all training."""
    groups: list[Group] = []
    trained = False
    for item in report.timeline:
        if item.phase == "unknown" and item.event not in ("oom", "oom_swallowed"):
            continue
        phase = "training_step" if trained else item.phase
        trained = trained or (item.phase == "training_step" and item.event in ("bar_main", "oom_skipped", "oom"))
        if groups and groups[-1][0] in (phase, "training_step" if trained else phase):
            groups[-1][1].append(item)
        else:
            groups.append((phase, [item]))
    return groups


def _without_turns(groups: list[Group]) -> list[Group]:
    """Each resolution of a dataset is looked through and then cached: together one band of caching."""
    found: list[Group] = []
    for phase, items in groups:
        if len(found) > 1 and phase.startswith("cache_") and found[-1][0] == "setup" and found[-2][0] == phase:
            between = found.pop()[1]
            found[-1] = (phase, [*found[-1][1], *between, *items])
        else:
            found.append((phase, items))
    return found


def _ended_in(groups: list[Group], phase: str) -> list[Group]:
    """The last band cut where the phase began in which a run failed that had trained (a preview, a save)."""
    if not groups or groups[-1][0] != "training_step" or phase == "training_step":
        return groups
    last = groups[-1][1]
    cut = len(last)
    while cut > 1 and last[cut - 1].phase == phase:
        cut -= 1
    return [*groups[:-1], ("training_step", last[:cut]), (phase, last[cut:])] if cut < len(last) else groups


def _bounded(groups: list[Group]) -> list[Group]:
    if len(groups) <= MOST:
        return groups
    left, right = MOST // 2, len(groups) - MOST // 2 + 1
    middle = [item for _, items in groups[left:right] for item in items]
    return [*groups[:left], (SEVERAL, middle), *groups[right:]]


def _spans(names: list[str], report: Report) -> list[float] | None:
    """Seconds of each band, a phase's time shared evenly by its bands; None where the lines carry no times."""
    took = {item.phase: item.seconds for item in report.pace.phases}
    spans = [took.get(name, 0.0) / names.count(name) for name in names]
    return spans if report.pace.total_s and fsum(spans) > 0 else None


def _widths(shares: list[float]) -> list[float]:
    whole = fsum(shares)
    least = min(NARROWEST, 100.0 / len(shares))
    widths = [max(least, 100.0 * share / whole) for share in shares]
    return [100.0 * width / fsum(widths) for width in widths]


def clock(seconds: float) -> str:
    """``1:02:03`` or ``4:05``."""
    whole = round(seconds)
    hours = f"{whole // 3600}:" if whole >= 3600 else ""
    return f"{hours}{whole // 60 % 60:02d}:{whole % 60:02d}" if hours else f"{whole // 60}:{whole % 60:02d}"
