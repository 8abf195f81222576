"""The batch shape of an image, against sums done by hand and the laws that hold for all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postmortem.timeline.buckets import exact, listed, table

SIDES = st.integers(64, 8192)
RESOLUTIONS = st.sampled_from([256, 512, 768, 1024, 1536])
DIVISORS = st.sampled_from([8, 16, 32])


@pytest.mark.parametrize(
    ("image", "resolution", "divisor", "shape"),
    [
        # scale sqrt(1048576 / 2073600) = 0.7111: 85.33 × 48.0 sixteenths; 86 × 48 exceeds 1024²
        ((1920, 1080), 1024, 16, (1360, 768)),
        # scale 0.5543: 55.43 × 41.57; 880×656 = 577280, 896×656 = 587776, 880×672 = 591360 exceeds 589824
        ((1600, 1200), 768, 16, (896, 656)),
        # never scaled up: 18.75 × 12.5; of 60000 pixels 288×208 = 59904 is nearest
        ((300, 200), 512, 16, (288, 208)),
        ((2000, 2000), 1024, 32, (1024, 1024)),
        # scale 0.16: 400 × 0.04; no rounding fits 64², so the width stands and the height is one divisor
        ((40_000, 4), 64, 16, (6400, 16)),
    ],
)
def test_the_shape_since_the_rework(
    image: tuple[int, int], resolution: int, divisor: int, shape: tuple[int, int]
) -> None:
    assert exact(*image, resolution, divisor) == shape


@pytest.mark.parametrize(
    ("image", "resolution", "divisor", "shape"),
    [
        # 1344×768: scaled to 1365×768, 21 columns cropped; 1344×704: 52 rows cropped
        ((1920, 1080), 1024, 16, (1344, 768)),
        # smaller than the resolution: the list scaled to 1000, 1000 cut to a multiple of 16
        ((1000, 1000), 1024, 16, (992, 992)),
        # 1005² pixels: 832×1216 of the list scaled to 1005 is 816.6×1193.4, cut to 816×1184
        ((832, 1216), 1024, 16, (816, 1184)),
        # half of 1152×896
        ((1152, 896), 512, 32, (576, 448)),
    ],
)
def test_the_shape_before_it(image: tuple[int, int], resolution: int, divisor: int, shape: tuple[int, int]) -> None:
    assert listed(*image, resolution, divisor) == shape


@given(SIDES, SIDES, RESOLUTIONS, DIVISORS)
def test_sides_are_multiples_and_the_area_is_never_above_the_resolution(
    width: int, height: int, resolution: int, divisor: int
) -> None:
    for rule in (exact, listed):
        columns, rows = rule(width, height, resolution, divisor)
        assert columns % divisor == rows % divisor == 0
        assert columns * rows <= resolution * resolution or min(columns, rows) <= divisor


@given(SIDES, SIDES, RESOLUTIONS, DIVISORS)
def test_no_other_rounding_of_the_same_aspect_is_nearer_in_area(
    width: int, height: int, resolution: int, divisor: int
) -> None:
    columns, rows = exact(width, height, resolution, divisor)
    scale = min(1.0, resolution / (width * height) ** 0.5)
    assert abs(columns - width * scale) <= divisor
    assert abs(rows - height * scale) <= divisor


def test_a_table_counts_files_and_knows_square_crops() -> None:
    sizes = [(2000, 2000, 3), (1920, 1080, 2)]
    assert table(sizes, exact, 1024, 16, square=False, scale=1.0) == {(1024, 1024): 3, (1360, 768): 2}
    assert table(sizes, exact, 1000, 16, square=True, scale=1.0) == {(1000, 1000): 5}
    assert table([(1, 1, 1)], exact, 1024, 16, square=False, scale=0.1) is None
