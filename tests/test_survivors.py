"""scripts/survivors.py reads what mutmut writes: which change is which, whatever its number."""

from __future__ import annotations

import runpy
from pathlib import Path

WRITTEN = """
def x_first__mutmut_orig(
    number: int,
) -> int:
    if number > 3:
        return 1
    return 0
def x_first__mutmut_1(
    number: int,
) -> int:
    if number >= 3:
        return 1
    return 0
mutants_x_first__mutmut['_mutmut_orig'] = x_first__mutmut_orig # type: ignore # mutmut generated
class _Seen:
    def xǁ_Seenǁrest__mutmut_orig(self) -> int:
        return self.a % 2
    def xǁ_Seenǁrest__mutmut_1(self) -> int:
        return self.a % 3
    @property
    def other(self) -> int:
        return 0
"""


def test_changes_are_told_by_their_lines() -> None:
    script = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "survivors.py"))
    found = [(script["shown"]("odds", name), *rest) for name, *rest in script["changes"](WRITTEN)]
    assert found == [
        ("odds.first", "1", "if number > 3:", "if number >= 3:"),
        ("odds._Seen.rest", "1", "return self.a % 2", "return self.a % 3"),
    ]
