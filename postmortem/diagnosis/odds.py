"""Which batch shape fails: the counts of skips per epoch against what each bucket can give, exactly.

AI Toolkit cuts every bucket into ceil(files / batch size) batches (a short one is padded) and draws all batches
of all datasets in a fresh random order each epoch, without replacement. So a bucket that never fits gives exactly
its number of batches in every whole epoch, a hypergeometric number in a part of one, and never more: a bucket
with fewer batches than an epoch has failures is ruled out as the only cause.

A shape that fails takes every larger shape with it, so the candidates are "the largest k shapes"; a single smaller
shape is kept as a distant possibility (datasets can differ in control images). Each candidate may fail always or
only sometimes (unknown rate, all equally likely).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, fsum, inf, lgamma, log, sqrt

import msgspec

from postmortem.model import BucketOdds, Skips

ALWAYS = 0.75
"""Prior weight of "every batch of these shapes fails" against "some do"."""
LONE = 0.2
"""Prior weight of all single shapes that are not the largest, together; each set of the largest has 1."""
LEVEL = 0.05
"""Tail probability below which an observed number is called too large for a share."""
LEAST = 0.4
"""Share of the expected failures that must be there for a set to fit: activations of one shape vary a little."""
CERTAIN = 0.9
"""Odds at which one shape is named for an event, given at least two failures."""
PLAUSIBLE = 0.2
"""Odds below which the best of bad explanations is none."""
MAX_SHAPES = 80
MAX_DRAWN = 200_000
"""Batches drawn by a run; real ones are far below, and numbers out of a log can be anything."""
SPREAD = 8.0
"""Standard deviations on either side of the mean that are summed over."""


class _Set(msgspec.Struct):
    """Some shapes together: their batches an epoch, and how well they explain the failures."""

    rows: tuple[BucketOdds, ...]
    batches: int
    prior: float
    weight: float = 0.0
    fits: bool = False
    always: bool = False


class _Seen(msgspec.Struct, frozen=True):
    """What was observed: batches an epoch, batches a step, steps run, failures."""

    total: int
    per_step: int
    steps: int
    failures: int
    most: int | None
    """The most failures in one epoch; None where a step is not known."""
    even: int | None
    """Failures in each whole epoch where all had the same number; None where they differ or are not known."""

    @property
    def whole(self) -> int:
        """Whole epochs that the run drew."""
        return self.steps * self.per_step // self.total

    @property
    def rest(self) -> int:
        """Batches drawn of the epoch that was under way."""
        return self.steps * self.per_step % self.total


def weigh(
    rows: Sequence[BucketOdds], failing: Sequence[int | None], start: int, steps: int, per_step: int = 1
) -> Skips | None:
    """What `failing` (step numbers, None where unknown) among `steps` from `start` say of the buckets `rows`.

    `rows` come largest shape first, with their batches an epoch; `per_step` is the gradient accumulation.
    None where there is nothing to weigh: no table, no failure, one shape only.
    """
    shapes = _shapes(rows)
    total = sum(row.batches for row in rows)
    if not failing or not 1 < len(shapes) <= MAX_SHAPES or steps < len(failing):
        return None
    per_step = max(1, min(per_step, 1000))
    if steps * per_step > MAX_DRAWN:
        return None
    seen = _Seen(total, per_step, steps, len(failing), *_by_epoch(failing, start, steps, per_step, total))
    sets = _sets(shapes, total)
    for one in sets:
        possible = _possible(seen, one.batches)
        drawn = _drawn(seen, one.batches) if possible else []
        always, sometimes = _likelihoods(seen, one.batches, drawn)
        one.weight = one.prior * (ALWAYS * always + (1 - ALWAYS) * sometimes)
        one.always = always > 0 and seen.whole > 0
        one.fits = possible and _fits(seen, drawn)
    whole = fsum(one.weight for one in sets)
    ordinary = [one for one in sets if one.batches < total]
    best = max(ordinary, key=lambda one: one.weight)
    fitting = [one for one in ordinary if one.fits]
    likely = best.weight / whole if whole else 0.0
    fits = best.fits and likely >= PLAUSIBLE
    odds = {
        id(row): fsum(one.weight for one in sets if one.batches < total and row in one.rows) / whole if whole else 0.0
        for row in rows
    }
    one_label = len({row.bucket.label for row in best.rows}) == 1
    return Skips(
        rows=tuple(msgspec.structs.replace(row, odds=min(1.0, odds[id(row)])) for row in rows),
        failures=len(failing),
        steps=steps,
        best=best.rows if best.weight > 0 else (),
        share=best.batches / total,
        odds=likely,
        fits=fits,
        fitting=len(fitting),
        always=best.always,
        label=best.rows[0].bucket.label if one_label and fits and likely >= CERTAIN and len(failing) > 1 else None,
    )


def _shapes(rows: Sequence[BucketOdds]) -> list[tuple[BucketOdds, ...]]:
    """The rows by size, largest first; shapes of one size cost the same and stand or fall together."""
    sizes: dict[int, list[BucketOdds]] = {}
    for row in rows:
        sizes.setdefault(row.bucket.volume, []).append(row)
    return [tuple(sizes[volume]) for volume in sorted(sizes, reverse=True)]


def _sets(shapes: Sequence[tuple[BucketOdds, ...]], total: int) -> list[_Set]:
    found: list[_Set] = []
    held: tuple[BucketOdds, ...] = ()
    for shape in shapes:
        held = (*held, *shape)
        found.append(_Set(held, sum(row.batches for row in held), 1.0))
    for shape in shapes[1:]:
        batches = sum(row.batches for row in shape)
        if batches < total:
            found.append(_Set(shape, batches, LONE / len(shapes)))
    return found


def _by_epoch(
    failing: Sequence[int | None], start: int, steps: int, per_step: int, total: int
) -> tuple[int | None, int | None]:
    """The most failures in one epoch, and the number that every whole epoch had, if one; None for what is not known."""
    counts: dict[int, int] = {}
    for step in failing:
        if step is None or step < start:
            return None, None
        epoch = (step - start) * per_step // total
        counts[epoch] = counts.get(epoch, 0) + 1
    whole = steps * per_step // total
    inside = {count for epoch, count in counts.items() if epoch < whole}
    if sum(epoch < whole for epoch in counts) < whole:
        inside.add(0)
    return max(counts.values()), inside.pop() if len(inside) == 1 else None


def _possible(seen: _Seen, batches: int) -> bool:
    """Whether a set of `batches` an epoch can have given the failures at all: it is drawn no oftener."""
    if seen.most is not None and seen.per_step == 1:
        return seen.most <= batches
    return seen.failures <= batches * (seen.whole + (1 if seen.rest else 0))


def _likelihoods(seen: _Seen, batches: int, numbers: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Probability of the failures if every batch of this set fails, and if some unknown share of them does."""
    always = sometimes = 0.0
    for drawn, probability in numbers:
        if drawn == seen.failures:
            always = probability
        if drawn >= seen.failures:
            sometimes += probability / (drawn + 1)
    if seen.per_step == 1 and seen.most is not None and seen.whole and seen.even != batches:
        always = 0.0  # a whole epoch holds each of its batches once
    if batches == seen.total:
        always = 0.0  # steps succeeded
    return always, sometimes


def _fits(seen: _Seen, numbers: Sequence[tuple[int, float]]) -> bool:
    """Whether the observed number is neither too large nor far too small for what the set's share gives."""
    expected = at_least = at_most = 0.0
    for drawn, probability in numbers:
        expected += drawn * probability
        at_least += probability if drawn >= seen.failures else 0.0
        at_most += probability if drawn <= seen.failures else 0.0
    return at_least >= LEVEL and (at_most >= LEVEL or seen.failures >= LEAST * expected)


def _drawn(seen: _Seen, batches: int) -> list[tuple[int, float]]:
    """How many steps met the set, with the probability of each number (those that matter)."""
    others = seen.total - batches
    if seen.per_step > 1:
        p = 1.0  # a step of more batches than an epoch has beside the set cannot miss it
        if seen.per_step <= others:
            p -= exp(_log_choose(others, seen.per_step) - _log_choose(seen.total, seen.per_step))
        numbers = _window(seen.steps * p, 0, seen.steps)
        return [(k, exp(_log_binomial(k, seen.steps, p))) for k in numbers]
    base = _log_choose(seen.total, seen.rest)
    numbers = _window(seen.rest * batches / seen.total, max(0, seen.rest - others), min(batches, seen.rest))
    return [
        (seen.whole * batches + k, exp(_log_choose(batches, k) + _log_choose(others, seen.rest - k) - base))
        for k in numbers
    ]


def _window(mean: float, low: int, high: int) -> range:
    """The numbers around `mean` that hold all but a trifle of the probability; no variance here exceeds the mean."""
    reach = SPREAD * sqrt(mean) + 30
    return range(max(low, int(mean - reach)), min(high, int(mean + reach)) + 1)


def _log_choose(n: int, k: int) -> float:
    if k < 0 or k > n:
        return -inf
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _log_binomial(k: int, n: int, p: float) -> float:
    if p <= 0 or p >= 1:
        return 0.0 if k == (n if p >= 1 else 0) else -inf
    return _log_choose(n, k) + k * log(p) + (n - k) * log(1 - p)
