"""The batch shape that AI Toolkit gives an image, and the table of them that a dataset makes.

Two rules. Until 2026-05-28 SDXL's list of sizes, scaled to the resolution and cut to the divisor, of which the one that
crops least was taken (`listed`). Since then the image itself is scaled to at most resolution² pixels, and of the four
ways to round its sides to the divisor the one nearest in area is taken (`exact`). Both never exceed resolution²
pixels, but for a side that would be smaller than the divisor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import product
from math import ceil, floor

Size = tuple[int, int]
Sizing = Callable[[int, int, int, int], Size]

_BASE = 1024
_LANDSCAPE: tuple[Size, ...] = (
    *((side, 512) for side in (2048, 1984, 1920, 1856)),
    *((side, 576) for side in (1792, 1728, 1664)),
    *((side, 640) for side in (1600, 1536)),
    *((side, 704) for side in (1472, 1408, 1344)),
    *((side, 768) for side in (1344, 1280)),
    *((side, 832) for side in (1216, 1152)),
    *((side, 896) for side in (1152, 1088)),
    *((side, 960) for side in (1088, 1024)),
)
_ODD_ONE = (1344, 704)
"""The one landscape size whose portrait the list lacks."""
_LIST: tuple[Size, ...] = (
    (_BASE, _BASE),
    *_LANDSCAPE,
    *((height, width) for width, height in reversed(_LANDSCAPE) if (width, height) != _ODD_ONE),
    (8192, 128),
    (128, 8192),
)


def exact(width: int, height: int, resolution: int, divisor: int) -> Size:
    """The shape of an image of `width` × `height` pixels since 2026-05-28."""
    most = resolution * resolution
    target = min(width * height, most)
    scale: float = (target / (width * height)) ** 0.5
    across, down = width * scale / divisor, height * scale / divisor
    roundings = product((floor(across), ceil(across)), (floor(down), ceil(down)))
    sizes = [(columns * divisor, rows * divisor) for columns, rows in roundings if columns and rows]
    fitting = [size for size in sizes if size[0] * size[1] <= most]
    if not fitting:
        return max(1, floor(across)) * divisor, max(1, floor(down)) * divisor
    return min(fitting, key=lambda size: abs(size[0] * size[1] - target))


def listed(width: int, height: int, resolution: int, divisor: int) -> Size:
    """The shape before that. A side is 0 where the image is too small for the divisor."""
    candidates = _scaled(min(resolution, int((width * height) ** 0.5)), divisor)
    if (width, height) in candidates:
        return width, height

    def cropped(size: Size) -> int:
        scale = max(size[0] / width, size[1] / height)
        across, down = int(width * scale), int(height * scale)
        return (across - size[0]) * down + (down - size[1]) * across

    return min(candidates, key=cropped)


@lru_cache(maxsize=4096)
def _scaled(resolution: int, divisor: int) -> tuple[Size, ...]:
    scale = resolution / _BASE
    return tuple(
        (int(width * scale) // divisor * divisor, int(height * scale) // divisor * divisor) for width, height in _LIST
    )


def table(
    sizes: Iterable[tuple[int, int, int]], sizing: Sizing, resolution: int, divisor: int, *, square: bool, scale: float
) -> dict[Size, int] | None:
    """Files in each shape, for `sizes` of (width, height, files); None where AI Toolkit itself could not go on.

    `square` and `scale` are the dataset's `square_crop` and `scale`.
    """
    found: dict[Size, int] = {}
    for own_width, own_height, files in sizes:
        width, height = int(own_width * scale), int(own_height * scale)
        if width < 1 or height < 1:
            return None
        shape = (resolution, resolution) if square else sizing(width, height, resolution, divisor)
        if not all(shape):
            return None
        found[shape] = found.get(shape, 0) + files
    return found
