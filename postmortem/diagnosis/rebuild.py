"""The bucket table out of the dataset's files, where the log lacks it; and held against it, where the log has it.

Which rule AI Toolkit sized by depends on its date: all rules that the log's date allows are worked out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import msgspec

from postmortem.diagnosis.dating import bounds
from postmortem.knowledge.history import History
from postmortem.knowledge.schema import Family
from postmortem.model import Attempt, Bucket, DatasetSizes, Dated, Diagnosis, JobConfig, Notice, is_whole
from postmortem.text import LogText
from postmortem.timeline.buckets import Sizing, exact, listed, table

MAX_DATASETS = 200
MAX_SIDE = 16_384
MAX_SIZES = 20_000
"""Different sizes of images in one dataset; each is fitted to some forty shapes."""
MAX_FITS = 100_000
"""Sizes to fit in all, each once for every resolution of its dataset."""
MAX_COPIES = 1_000_000
_LEGACY = "toolkit/stable_diffusion_model.py"
"""The class whose divisor was doubled on 2025-05-21."""
_WITH_IMAGES = "8c1a408"
"""From here on (2026-08-08) a video dataset takes the images among its files too."""


class _Rule(msgspec.Struct, frozen=True):
    """How shapes were sized from a date or commit of AI Toolkit until another."""

    sizing: Sizing
    divisor: str = "family"
    from_: str | None = None
    from_commit: str | None = None
    until: str | None = None
    until_commit: str | None = None


_RULES = (
    _Rule(listed, "tolerance", until="2025-03-29"),
    _Rule(listed, "halved", from_="2025-03-29", until="2025-05-21"),
    _Rule(listed, from_="2025-05-21", until_commit="c9264bd"),
    _Rule(exact, from_commit="87bac27"),
)
"""What main held for the three hours of 2026-05-28 in between is left out."""


class Unusable(ValueError):
    """The table cannot be rebuilt; `notice` says why."""

    def __init__(self, notice: Notice) -> None:
        super().__init__(notice.id)
        self.notice = notice


def tables(
    config: JobConfig,
    datasets: Sequence[DatasetSizes],
    family: Family | None,
    dated: Dated | None,
    history: History | None,
) -> tuple[tuple[Bucket, ...], ...]:
    """The job's bucket table by each rule that the log's date allows, oldest first, equal ones once.

    Raises Unusable where the files, the settings or the date do not give one.
    """
    paired = _paired(config, datasets)
    if family is None or family.divisor_px is None or family.media == "audio":
        raise Unusable(Notice("dataset_beyond"))
    found: list[tuple[Bucket, ...]] = []
    sides = [config.get(f"datasets[{index}].resolution") for index in range(len(paired))]
    wanted = sum(len(given) if isinstance(given, list) else 1 for given in sides)
    for rule, images in product(_RULES, (False, True)):
        known = _allowed(dated, history, rule.from_, rule.from_commit, rule.until, rule.until_commit)
        start, end = (_WITH_IMAGES, None) if images else (None, _WITH_IMAGES)
        if not known or not _allowed(dated, history, None, start, None, end):
            continue
        one = tuple(_buckets(config, paired, rule, family, with_images=images))
        # a dataset without a file of its kind stops AI Toolkit: by that rule the job would not have run
        if len({bucket.block for bucket in one}) == wanted and one not in found:
            found.append(one)
    if not found:
        raise Unusable(Notice("dataset_beyond"))
    return tuple(found)


def settle(table_of: Sequence[tuple[tuple[Bucket, ...], Diagnosis]]) -> int | None:
    """Which of the tables, each with the diagnosis under it, stands for all: the newest where all name the same
    largest shape, class and suspects; None where they differ in that."""
    says = {
        (
            max(buckets, key=lambda bucket: bucket.volume).label,
            found.class_,
            found.skips.label if found.skips else None,
            found.skips.fits if found.skips else None,
            tuple(sorted({row.bucket.label for row in found.skips.best})) if found.skips else (),
        )
        for buckets, found in table_of
    }
    return len(table_of) - 1 if len(says) == 1 else None


def changed(attempt: Attempt, rebuilt: Sequence[tuple[Bucket, ...]]) -> Notice | None:
    """A notice where a whole table of the log is none of those that the dataset gives now.

    A table whose head is cut off, or at which the log may end, is not whole.
    """
    last = max(bucket.block for bucket in attempt.buckets)
    printed = _blocks(attempt.buckets)
    known = {rows for one in rebuilt for rows in _blocks(one).values()}
    names = {_name(bucket.dataset) for one in rebuilt for bucket in one}
    for block, rows in printed.items():
        first = next(bucket for bucket in attempt.buckets if bucket.block == block)
        if block and (block < last or attempt.trained) and _name(first.dataset) in names and rows not in known:
            return Notice("dataset_changed", first.line, {"dataset": LogText(_name(first.dataset))})
    return None


def _blocks(buckets: Sequence[Bucket]) -> dict[int, frozenset[tuple[tuple[int, int, int], int]]]:
    blocks: dict[int, Counter[tuple[int, int, int]]] = {}
    for bucket in buckets:
        rows = blocks.setdefault(bucket.block, Counter())
        rows[bucket.width, bucket.height, bucket.files] += 1
    return {block: frozenset(rows.items()) for block, rows in blocks.items()}


def _allowed(dated: Dated | None, history: History | None, *between: str | None) -> bool:
    """Whether the log can be of a version between dates or commits, as `bounds` takes them."""
    if history is None or dated is None or dated.span is None:
        return True
    start, end = bounds(*between, history)
    return max(start, dated.span[0]) < min(end, dated.span[1])


def _paired(config: JobConfig, datasets: Sequence[DatasetSizes]) -> list[DatasetSizes]:
    """The folder of each dataset of the job: by its name where all have one, else in order."""
    paths: list[str] = []
    while len(paths) < MAX_DATASETS and f"datasets[{len(paths)}].resolution" in config.values:
        path = config.get(f"datasets[{len(paths)}].folder_path")
        paths.append(_name(LogText(path)) if isinstance(path, str) else "")
    names = [one.name.reveal() for one in datasets]
    if paths and len(set(names)) == len(names) and all(path in names for path in paths):
        paired = [datasets[names.index(path)] for path in paths]
    elif paths and len(paths) == len(datasets):
        paired = list(datasets)
    else:
        raise Unusable(Notice("dataset_unmatched", None, {"given": len(datasets), "wanted": len(paths)}))
    for one in paired:
        if one.unread or not one.whole or not one.sizes or len(one.sizes) > MAX_SIZES:
            raise Unusable(Notice("dataset_unsized", None, {"dataset": one.name, "unread": one.unread}))
    sides = [config.get(f"datasets[{index}].resolution") for index in range(len(paired))]
    if (
        sum(len(one.sizes) * (len(given) if isinstance(given, list) else 1) for one, given in zip(paired, sides))
        > MAX_FITS
    ):
        raise Unusable(Notice("dataset_beyond"))
    return paired


def _name(path: LogText) -> str:
    """The last part of a path of any system."""
    return path.reveal().replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]


def _buckets(
    config: JobConfig, paired: Sequence[DatasetSizes], rule: _Rule, family: Family, *, with_images: bool
) -> Iterator[Bucket]:
    block = 0
    for index, files in enumerate(paired):

        def get(key: str, index: int = index) -> Any:
            return config.get(f"datasets[{index}].{key}")

        given = get("resolution")
        frames, scale = get("num_frames"), get("scale")
        if get("auto_frame_count") or get("buckets") is False or not _is_count(frames):
            raise Unusable(Notice("dataset_beyond"))
        if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not 0 < scale <= 100:
            raise Unusable(Notice("dataset_beyond"))
        repeats = get("num_repeats")
        copies = (repeats if _is_count(repeats) else 1) * (2 if get("flip_x") else 1) * (2 if get("flip_y") else 1)
        groups = [(video, 1 if not video else frames) for video in ((True, False) if frames > 1 else (False,))]
        if not with_images:
            groups = groups[:1]
        folder = get("folder_path")
        for side in given if isinstance(given, list) else [given]:
            block += 1
            divisor = _divisor(rule, family, get("bucket_tolerance"))
            if not _is_count(side) or not side <= MAX_SIDE or divisor is None:
                raise Unusable(Notice("dataset_beyond"))
            for video, length in groups:
                sizes = [(width, height, count) for width, height, kind, count in files.sizes if kind is video]
                shapes = table(sizes, rule.sizing, side, divisor, square=get("square_crop") is True, scale=float(scale))
                if shapes is None:
                    raise Unusable(Notice("dataset_beyond"))
                dataset = LogText(folder) if isinstance(folder, str) else files.name
                for (width, height), count in shapes.items():
                    yield Bucket(dataset, width, height, length, count * copies, block, 0, "dataset")


def _divisor(rule: _Rule, family: Family, tolerance: Any) -> int | None:
    if rule.divisor == "tolerance":
        return tolerance if _is_count(tolerance) else None
    if rule.divisor == "halved" and family.source.startswith(_LEGACY):
        return (family.divisor_px or 0) // 2 or None
    return family.divisor_px


def _is_count(value: Any) -> bool:
    return is_whole(value) and 0 < value <= MAX_COPIES
