"""Times in front of lines."""

from __future__ import annotations

import pytest

from postmortem.scan import Lexicon
from postmortem.scan.clock import stamp_of

DAY = 20_457  # 2026-01-04, in days since 1970


@pytest.mark.parametrize(
    ("line", "kind", "seconds", "printed"),
    [
        ("2026-01-04T01:00:00.5Z Running 1 job", "utc", DAY * 86400 + 3600.5, "2026-01-04T01:00:00.5Z"),
        ("2026-01-04T01:00:00+02:00 stdout F Running", "utc", DAY * 86400 - 3600, "2026-01-04T01:00:00+02:00"),
        ("[2026-01-04 00:00:07,250] Loading", "local", DAY * 86400 + 7.25, "2026-01-04 00:00:07,250"),
        ("[09:41:27] Running 1 job", "clock", 34887, "09:41:27"),
        ("09:41:27 Running 1 job", "clock", 34887, "09:41:27"),
        ("01/04/2026 12:00:07 AM Running 1 job", "local", DAY * 86400 + 7, "01/04/2026 12:00:07 AM"),
        ("[Sun Jan  4 00:00:01 2026] Out of memory: Killed process 1 (python)", "local", DAY * 86400 + 1, None),
        ("[12345.678901] python invoked oom-killer: gfp_mask=0", "uptime", 12345.678901, "12345.678901"),
        ("Jan  4 00:00:05 gpu-box python[4711]: Loading", "yearless", 10957 * 86400 + 3 * 86400 + 5, "Jan  4 00:00:05"),
        ("1767484800.25 Model Loaded", "utc", 1767484800.25, "1767484800.25"),
        ("2026-01-04 00:00:09,705 - trainer.main - INFO - x", "local", DAY * 86400 + 9.705, "2026-01-04 00:00:09,705"),
        ("W0104 00:00:03.442000 31764 redirects.py:29] NOTE", "yearless", 10957 * 86400 + 3 * 86400 + 3.442, None),
        ("web-1  | [00:00:07] Running 1 job", "clock", 7, "00:00:07"),
    ],
)
def test_the_time_in_front_of_a_line(
    lexicon: Lexicon, line: str, kind: str, seconds: float, printed: str | None
) -> None:
    stamp = stamp_of(line, lexicon)
    assert stamp is not None
    assert stamp.kind == kind
    assert stamp.seconds == pytest.approx(seconds)
    assert printed is None or stamp.text.reveal() == printed


@pytest.mark.parametrize(
    "line", ["Running 1 job", "[rank0]: Traceback", "2026-13-45T01:00:00Z Running", "[99:99:99] Running", ""]
)
def test_no_time(lexicon: Lexicon, line: str) -> None:
    assert stamp_of(line, lexicon) is None
