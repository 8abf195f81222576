"""Which bar a draw belongs to: by its description and total, through prefixes, pauses and restarts."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from postmortem.model import BarSpan, Item, Place, Stamp
from postmortem.scan.bars import Fold
from postmortem.scan.clock import stamp_of
from postmortem.scan.lexicon import Compiled, Lexicon
from postmortem.scan.segments import Draw, Region
from postmortem.text import seen

if TYPE_CHECKING:
    from postmortem.scan.runs import Run

ECHO = "echo"
"""The event of lines that quote another line: a bar in one is no bar."""
MAX_NAME = 400
"""Bytes of a description that are read, from its end."""
MAX_NAMES = 4096
MAX_IN_A_ROW = 8192
"""Spans that are read with nothing between that is kept; behind them only what comes last before that is."""
LATE = 400
"""How much that is: draws, and items between them."""
MAX_WORDS = 8
"""Words at the end of a description among which a known one is looked for."""
_AFTER_A_MARK = r"(?<=[\s,;|\]\"=>])[^\s,;|\]\"=>]"

Name = tuple[str, str | None, str | None, bool]
"""A description without its prefixes, the event and the phase that it means, and whether there were any prefixes."""


Counted = tuple["Item | Region", int]
"""The last of some items of a kind, or where that stands, and how many they are."""


class Bars:
    """The bar that is being drawn, and the main bar while another one stands in its way."""

    def __init__(
        self,
        lexicon: Lexicon,
        source: str,
        add: Callable[[BarSpan], None],
        count: Callable[[str, Item | Region, int], None],
    ) -> None:
        self._lexicon = lexicon
        self._source = source
        self._add = add
        self._count = count
        self._names: dict[bytes, Name] = {}
        self._in_a_row = 0
        self._late: deque[Draw | dict[str, Counted]] = deque()
        """What came last where too many spans had, and was not read at once."""
        self.passed = 0
        """Draws and items that were not read at all."""
        self._fold: Fold | None = None
        self._kept: Fold | None = None
        self._single = False
        self._job = ""
        self._stamped_name = b""
        self._latest_stamp: Stamp | None = None

    @property
    def descriptions(self) -> tuple[str, ...] | None:
        """The descriptions of the bar that is drawn and of the main one; None before the first draw."""
        self._catch_up()
        if self._fold is None:
            return None
        return self._fold.description, self._kept.description if self._kept else ""

    def start(self, job: str = "") -> None:
        """A job called `job` starts: nothing is known yet of how its log is written."""
        self._single = False
        if job != self._job:
            self._job = job
            self._names.clear()
            if self._fold is not None:
                self._fold.raw_total = b""  # what its description means is to be asked again

    def echoed(self, raw_name: bytes) -> bool:
        """Whether what is drawn so only quotes a bar."""
        return not self.flooded and self._named(raw_name)[1] == ECHO

    def draw(self, piece: Draw) -> bool:
        """Take in one draw; False for what only quotes one."""
        if self._in_a_row >= MAX_IN_A_ROW:
            self._wait(piece)
            return True
        return self._draw(piece)

    def _draw(self, piece: Draw) -> bool:
        raw_name, raw_n, raw_total, elapsed, postfix, line, offset, end = piece
        fold = self._fold
        if fold is not None and raw_name == fold.raw and raw_total == fold.raw_total and int(raw_n) >= (fold.n or 0):
            fold.draw(int(raw_n), elapsed, postfix, line, offset, end)  # nearly always: one more of the same
            return True
        name, event, phase, _ = self._names.get(raw_name) or self._read_name(raw_name)
        if event == ECHO:
            return False
        total = int(raw_total)
        n = int(raw_n)
        if fold is None or fold.description != name or fold.total != total or (fold.n is not None and n < fold.n):
            if fold is not None:
                self._end_span()
                self._single = self._single or fold.single
            fold = self._fold = self._resume(name, total, n, Place(line, offset, self._source), event, phase)
        if raw_name[:1] == b"\r":
            fold.redrawn = True
        fold.raw = raw_name
        fold.raw_total = raw_total
        fold.draw(n, elapsed, postfix, line, offset, end)
        return True

    def run(self, run: Run) -> None:
        """Take in many draws of the bar that was drawn last, with the result of taking them in one by one."""
        row = 0
        while row < run.rows and not self.flooded:
            last = run.rises_to(row)
            fold = self._fold
            if last > row and fold is not None and fold.settled:
                fold.draw_run(run, row, last)
                row = last
            else:
                self._draw(run.draw(row))
                row += 1
        first = max(row, run.rows - LATE)
        self.passed += first - row
        for late in range(first, run.rows):
            self._wait(run.draw(late))

    def end(self) -> None:
        """Something else happens: the draws so far are a span."""
        self._catch_up()
        self._end_span()
        self._in_a_row = 0

    @property
    def flooded(self) -> bool:
        """Whether what comes is not read at once."""
        return self._in_a_row >= MAX_IN_A_ROW

    def count(self, kind: str, item: Item | Region, number: int) -> None:
        """So many items of a kind come that are only counted; `item` is the last of them, or where that stands."""
        if not self.flooded:
            self._end_span()
            self._count(kind, item, number)
        elif self._late and isinstance(self._late[-1], dict):
            known = self._late[-1].get(kind)
            self._late[-1][kind] = item, number + (known[1] if known else 0)
        else:
            self._wait({kind: (item, number)})

    def _wait(self, late: Draw | dict[str, Counted]) -> None:
        self._late.append(late)
        if len(self._late) > LATE:
            passed = self._late.popleft()
            self.passed += 1 if isinstance(passed, tuple) else sum(number for _, number in passed.values())

    def _catch_up(self) -> None:
        """Read the latest of what was not read at once."""
        for late in self._late:
            if isinstance(late, tuple):
                self._draw(late)
            else:
                self._end_span()
                for kind, (item, number) in late.items():
                    self._count(kind, item, number)
        self._late.clear()

    def _end_span(self) -> None:
        if self._fold is not None:
            span = self._fold.take(self._stamp)
            if span is not None:
                self._in_a_row += 1
                self._add(span)
            if self._fold.event is None and self._fold.description:
                self._kept = self._fold

    def stamped(self, raw_name: bytes) -> int:
        """How many bytes of a description are prefixes, whose digits are a time and change from draw to draw."""
        if len(raw_name) > MAX_NAME or not raw_name.isascii() or b"\x1b" in raw_name:
            return 0
        bare = self._named(raw_name)[0].encode()
        return max(0, raw_name.rfind(bare)) if bare else 0

    def _resume(self, name: str, total: int, n: int, place: Place, event: str | None, phase: str | None) -> Fold:
        """The main bar goes on after a preview's bar came between: its state must too."""
        kept = self._kept
        if kept is not None and kept.description == name and kept.total == total and (kept.n or 0) <= n:
            kept.paused = True
            return kept
        return Fold(name, total, place, event=event, phase=phase, single=self._single)

    def _named(self, raw: bytes) -> Name:
        return self._names.get(raw) or self._read_name(raw)

    def _read_name(self, raw: bytes) -> Name:
        text = seen(raw[-MAX_NAME:].decode("utf-8", "replace")).strip()
        bare = self._lexicon.peel_prefix(text + " ")
        prefixed = len(bare) <= len(text)
        text = bare.strip().removesuffix(":").strip()
        event = phase = None
        known = self._lexicon.bar_name(text)
        if known is not None and known.pattern.sets.event == ECHO and text == self._job:
            known = None  # its own bar, whatever it is called
        if known is None and text != self._job:
            text, known = self._behind_decoration(text)
        if known is not None:
            event = known.pattern.sets.event or "bar_other"
            phase = known.pattern.sets.phase if event != ECHO else None
        if len(self._names) >= MAX_NAMES:
            self._names.clear()  # a log of ever new names: the latest ones are asked for again, and soon
        found = self._names[raw] = text, event, phase, prefixed
        return found

    def _behind_decoration(self, text: str) -> tuple[str, Compiled | None]:
        """A known description that stands behind what no prefix entry knows (a table's columns, a collector's words),
        with its entry; else `text` and None."""
        starts = [found.start() for found in re.finditer(_AFTER_A_MARK, text)]
        for start in starts[-MAX_WORDS:]:
            known = self._lexicon.bar_name(text[start:])
            if known is not None and known.pattern.sets.event != ECHO:
                return text[start:], known
        return text, None

    def _stamp(self, raw: bytes) -> Stamp | None:
        """The time in front of a bar's description."""
        if not self._named(raw)[3]:
            return None
        if raw != self._stamped_name:
            text = seen(raw[-MAX_NAME:].decode("utf-8", "replace")).lstrip("\r")
            self._stamped_name, self._latest_stamp = raw, stamp_of(text, self._lexicon)
        return self._latest_stamp
